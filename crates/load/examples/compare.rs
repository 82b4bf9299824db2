//! Compares load generators by the requests that they make per second of CPU time, in interleaved blocks.
//!
//! `cargo build --release -p brewbench-load --examples --bins`, then
//! `target/release/examples/compare 5 path/to/k6` measures five blocks of 4 seconds each, with wrk if it is installed.
//! The limit is the example `limit`: a loop that only writes and reads.

use std::io::{self, BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use brewbench_load::events::Event;
use brewbench_load::plan::{Expect, Plan};
use brewbench_wire::load::{Closed, Form, Load};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

const CONNECTIONS: u32 = 32;
const SECONDS: u32 = 4;

/// The SHA-256 of the example server's body.
const SHA256: &str = "315f5bdb76d078c43b8ac0064e4a0164612b1fce77c869345bfc94c75894edd3";

const K6_SCRIPT: &str = "import http from 'k6/http'; import { check } from 'k6';
export const options = { vus: __ENV.VUS, duration: __ENV.DURATION, discardResponseBodies: true };
export default function () { check(http.get(__ENV.URL), { ok: (response) => response.status === 200 }); }";

/// A load generator: makes its load on an address, and returns the number of requests.
type Generate = Box<dyn Fn(&str) -> io::Result<u64>>;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let blocks: usize = arguments.next().unwrap_or_else(|| "5".to_owned()).parse().map_err(io::Error::other)?;
    let mut server = Command::new(sibling("examples/server")?).stdout(Stdio::piped()).spawn()?;
    let mut address = String::new();
    let output = server.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    BufReader::new(output).read_line(&mut address)?;
    let generators = generators(arguments.next());
    let mut rates = vec![Vec::new(); generators.len()];
    for block in 0..blocks {
        for turn in 0..generators.len() {
            let place = (block + turn) % generators.len();
            let (name, generate) = &generators[place];
            match requests_per_cpu_second(|| generate(address.trim())) {
                Ok(rate) => rates[place].push(rate),
                Err(error) => eprintln!("{name}: {error}"),
            }
        }
    }
    server.kill()?;
    server.wait()?;
    println!("{:24} {:>12} {:>24} {:>16}", "", "requests/CPU s", "lowest to highest", "native ÷ it");
    for ((name, _), own) in generators.iter().zip(&rates) {
        let ratios = rates[0].iter().zip(own).map(|(native, own)| native / own).collect();
        let (Some(median), Some(ratio)) = (median(own.clone()), median(ratios)) else { continue };
        let (low, high) = own.iter().fold((f64::MAX, 0.0), |(low, high), &rate| (rate.min(low), rate.max(high)));
        println!("{name:24} {median:>14.0} {low:>12.0} to {high:>8.0} {ratio:>16.3}");
    }
    Ok(())
}

/// Returns all that can be compared; the native one is the first.
fn generators(k6: Option<String>) -> Vec<(&'static str, Generate)> {
    let checks = Expect {
        status: Some(200),
        length: Some(13),
        sha256: Some(SHA256.to_owned()),
        contains: Some("world".to_owned()),
    };
    let mut all: Vec<(&str, Generate)> = vec![
        ("native", Box::new(|address| native(address, Expect::default()))),
        ("native with all checks", Box::new(move |address| native(address, checks.clone()))),
        ("limit", Box::new(limit)),
        ("wrk", Box::new(wrk)),
    ];
    if let Some(k6) = k6 {
        all.push(("k6", Box::new(move |address| run_k6(&k6, address))));
    }
    all
}

fn native(address: &str, expect: Expect) -> io::Result<u64> {
    let form = Form::Constant { level: CONNECTIONS, duration_ms: u64::from(SECONDS) * 1_000 };
    let load = Load::Closed(Closed::new(form).map_err(io::Error::other)?);
    let mut plan = Plan::get(&format!("http://{address}"), "/", load);
    plan.threads = Some(1);
    plan.list.requests[0].expect = expect;
    let output = run(&mut Command::new(sibling("brewbench-load")?), &serde_json::to_string(&plan)?)?;
    match output.lines().last().map(serde_json::from_str) {
        Some(Ok(Event::Summary(summary))) if summary.failed == 0 => Ok(summary.requests),
        _ => Err(io::Error::other(output)),
    }
}

fn limit(address: &str) -> io::Result<u64> {
    let mut command = Command::new(sibling("examples/limit")?);
    let output = run(command.args([address, &CONNECTIONS.to_string(), &SECONDS.to_string()]), "")?;
    output.trim().parse().map_err(io::Error::other)
}

fn wrk(address: &str) -> io::Result<u64> {
    let options = ["-t1".to_owned(), format!("-c{CONNECTIONS}"), format!("-d{SECONDS}s"), format!("http://{address}/")];
    let output = run(Command::new("wrk").args(options), "")?;
    let line = output.lines().find(|line| line.contains(" requests in ")).unwrap_or_default();
    line.split_whitespace().next().unwrap_or_default().parse().map_err(io::Error::other)
}

fn run_k6(k6: &str, address: &str) -> io::Result<u64> {
    let mut command = Command::new(k6);
    command.args(["run", "--no-usage-report", "--quiet", "--address", ""]);
    for variable in [format!("VUS={CONNECTIONS}"), format!("DURATION={SECONDS}s"), format!("URL=http://{address}/")] {
        command.args(["-e", &variable]);
    }
    let output = run(command.arg("-"), K6_SCRIPT)?;
    let line = output.lines().find(|line| line.trim_start().starts_with("http_reqs")).unwrap_or_default();
    let count = line.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()));
    count.unwrap_or_default().parse().map_err(io::Error::other)
}

/// Runs a command with some input, and returns its output.
fn run(command: &mut Command, input: &str) -> io::Result<String> {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    String::from_utf8(child.wait_with_output()?.stdout).map_err(io::Error::other)
}

fn requests_per_cpu_second(generate: impl Fn() -> io::Result<u64>) -> io::Result<f64> {
    let cpu_us = || {
        let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
        Ok::<_, io::Error>((usage.user_time() + usage.system_time()).num_microseconds())
    };
    let before = cpu_us()?;
    let requests = generate()?;
    Ok(requests as f64 * 1e6 / (cpu_us()? - before) as f64)
}

fn median(mut all: Vec<f64>) -> Option<f64> {
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied()
}

/// Returns a program of the same build.
fn sibling(name: &str) -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(|examples| examples.parent()).ok_or(io::ErrorKind::NotFound)?;
    Ok(folder.join(name))
}
