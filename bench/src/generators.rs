//! Compares load generators on one server: brewbench's own, wrk and k6, each with one core, in turn.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, ensure};
use brewbench_wire::{
    histogram::{Histogram, sparse},
    reports::{read, summary::Figures},
};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Deserialize;

use crate::{figures::Figure, kinds::Running};

/// Blocks of one run of each generator.
const BLOCKS: usize = 9;
const SECONDS: u32 = 3;
const CONNECTIONS: u32 = 64;
/// Requests per second that every generator can sustain with one core.
const COMMON_RATE: f64 = 2_000.0;
/// Cores of the server and of the generator.
const CORES: [&str; 2] = ["0", "1"];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tool {
    Native,
    Wrk,
    K6,
}

#[derive(Clone, Copy)]
enum Load {
    /// Connections that send their next request after a response.
    Closed,
    /// Requests per second.
    Rate(f64),
}

type Percentile = fn(&Figures) -> Option<f64>;

/// What one run of a generator showed.
struct Shown {
    figures: Figures,
    cpu_s: f64,
    output: String,
}

impl Shown {
    /// Returns the requests per second of CPU time of the generator.
    fn per_core(&self) -> f64 {
        self.figures.requests as f64 / self.cpu_s
    }
}

pub fn title() -> String {
    format!("load generators, one core each, {BLOCKS} blocks of {SECONDS} s in turn")
}

/// Measures all of them. The program is the one next to this benchmark.
pub fn measure(manifests: &Path) -> anyhow::Result<Vec<Figure>> {
    let server = manifests.join("bin/rust-hyper").canonicalize().context("the bundled server")?;
    let running = Running::start_on(&server, CORES[0])?;
    let bench = Bench { url: format!("http://{}/hash", running.at), folder: tempfile::tempdir()? };
    let mut closed: Vec<[Shown; 3]> = Vec::new();
    let mut open: Vec<[Shown; 2]> = Vec::new();
    for _ in 0..BLOCKS {
        let [native, wrk, k6] = [Tool::Native, Tool::Wrk, Tool::K6].map(|tool| bench.run(tool, Load::Closed));
        closed.push([native?, wrk?, k6?]);
        let [native, k6] = [Tool::Native, Tool::K6].map(|tool| bench.run(tool, Load::Rate(COMMON_RATE)));
        open.push([native?, k6?]);
    }
    let capacity = closed.iter().map(|[native, ..]| native.figures.rps).fold(f64::INFINITY, f64::min);
    let half = bench.run(Tool::Native, Load::Rate(capacity / 2.0))?;
    let mut all = costs(&closed);
    all.extend(latencies(&open));
    all.push(scatter(&closed));
    let what = format!("native: intended to actual start, p99, at {:.0} requests/s", half.figures.rps);
    all.push(Figure::new(what, "ms", scheduling_ms(&half.output)?).at_most(0.2));
    Ok(all)
}

fn costs(closed: &[[Shown; 3]]) -> Vec<Figure> {
    let of = |value: fn(&[Shown; 3]) -> f64| closed.iter().map(value).collect::<Vec<_>>();
    vec![
        Figure::from_values("native: requests per CPU second", "1/s", &of(|[native, ..]| native.per_core())),
        Figure::from_values("wrk: requests per CPU second", "1/s", &of(|[_, wrk, _]| wrk.per_core())),
        Figure::from_values("k6: requests per CPU second", "1/s", &of(|[.., k6]| k6.per_core())),
        Figure::from_values("native ÷ k6", "ratio", &of(|[native, _, k6]| native.per_core() / k6.per_core()))
            .at_least(10.0),
        Figure::from_values("native ÷ wrk", "ratio", &of(|[native, wrk, _]| native.per_core() / wrk.per_core()))
            .at_least(1.0),
    ]
}

fn latencies(open: &[[Shown; 2]]) -> Vec<Figure> {
    let names = [(0, "native"), (1, "k6")];
    let percentiles: [(&str, Percentile); 3] = [
        ("p50", |figures| figures.latency.p50_ms),
        ("p99", |figures| figures.latency.p99_ms),
        ("p99.9", |figures| figures.latency.p999_ms),
    ];
    let of =
        |index: usize, at: Percentile| open.iter().filter_map(|block| at(&block[index].figures)).collect::<Vec<_>>();
    let rows = percentiles.into_iter().flat_map(|(percent, at)| names.map(|(index, name)| (percent, at, index, name)));
    rows.map(|(percent, at, index, name)| {
        Figure::from_values(format!("{name}: {percent} at {COMMON_RATE} requests/s"), "ms", &of(index, at))
    })
    .collect()
}

/// Returns how much the throughput of one server scatters, as seen by native and by k6.
fn scatter(closed: &[[Shown; 3]]) -> Figure {
    let relative = |index: usize| {
        let values: Vec<f64> = closed.iter().map(|block| block[index].figures.rps).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum();
        (squares / (values.len() - 1) as f64).sqrt()
    };
    let [native, k6] = [0, 2].map(relative);
    let what = format!("scatter of throughput: native {:.1} % ÷ k6 {:.1} %", native * 100.0, k6 * 100.0);
    Figure::new(what, "ratio", native / k6).at_most(0.5)
}

struct Bench {
    url: String,
    folder: tempfile::TempDir,
}

impl Bench {
    fn run(&self, tool: Tool, load: Load) -> anyhow::Result<Shown> {
        let before = children_s()?;
        let (mut command, summary) = self.command(tool, load)?;
        let output = command.output().with_context(|| format!("{tool:?}"))?;
        ensure!(output.status.success(), "{tool:?}: {}", String::from_utf8_lossy(&output.stderr));
        let cpu_s = children_s()? - before;
        let output = match summary {
            Some(file) => fs::read_to_string(file)?,
            None => String::from_utf8(output.stdout)?,
        };
        let summary = read::parse(output.as_bytes()).map_err(|fault| anyhow::anyhow!("{tool:?}: {fault}"))?;
        let figures = summary.figures();
        ensure!(figures.failed == Some(0), "{tool:?}: {:?} requests failed", figures.failed);
        Ok(Shown { figures, cpu_s, output })
    }

    /// Returns the command, and the file of its summary unless it prints it.
    fn command(&self, tool: Tool, load: Load) -> anyhow::Result<(Command, Option<PathBuf>)> {
        let mut command = Command::new("taskset");
        command.args(["--cpu-list", CORES[1]]);
        let (vus, duration) = (CONNECTIONS.to_string(), format!("{SECONDS}s"));
        match tool {
            Tool::Native => {
                let program = std::env::current_exe()?.with_file_name("brewbench");
                command.arg(program).args(["load", &self.url, "--json", "--threads", "1", "--duration", &duration]);
                match load {
                    Load::Closed => command.args(["--vus", &vus]),
                    Load::Rate(rate) => command.args(["--rate", &format!("{rate:.0}"), "--max-vus", &vus]),
                };
                Ok((command, None))
            }
            Tool::Wrk => {
                command.args(["wrk", "-t", "1", "-c", &vus, "-d", &duration, "--latency", &self.url]);
                Ok((command, None))
            }
            Tool::K6 => {
                let [script, summary] = ["script.js", "summary.json"].map(|name| self.folder.path().join(name));
                fs::write(&script, script_of(&self.url, load))?;
                command.args(["k6", "run", "--quiet", "--no-usage-report", "--summary-export"]).arg(&summary);
                command.args(["--summary-trend-stats", "avg,min,med,max,p(90),p(95),p(99),p(99.9)"]).arg(&script);
                Ok((command, Some(summary)))
            }
        }
    }
}

fn script_of(url: &str, load: Load) -> String {
    let scenario = match load {
        Load::Closed => format!("executor: 'constant-vus', vus: {CONNECTIONS}"),
        Load::Rate(rate) => {
            format!("executor: 'constant-arrival-rate', rate: {rate:.0}, preAllocatedVUs: {CONNECTIONS}")
        }
    };
    format!(
        "import http from 'k6/http';\n\
         export const options = {{ scenarios: {{ all: {{ {scenario}, duration: '{SECONDS}s' }} }} }};\n\
         export default function () {{ http.get('{url}'); }}\n"
    )
}

/// Returns the CPU time of all child processes that have ended, seconds.
fn children_s() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}

/// Returns the 99th percentile of how late requests were started.
fn scheduling_ms(summary: &str) -> anyhow::Result<f64> {
    #[derive(Deserialize)]
    struct Summary {
        scheduling: Scheduling,
    }
    #[derive(Deserialize)]
    struct Scheduling {
        #[serde(with = "sparse")]
        histogram: Histogram,
    }
    let Summary { scheduling } = serde_json::from_str(summary)?;
    Ok(scheduling.histogram.quantile(0.99).context("no open load")?.estimate)
}
