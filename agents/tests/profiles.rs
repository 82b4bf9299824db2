//! Profiles of real targets by real profilers, of misbehaving endpoints, and that nothing is left of a profiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brewbench_agent::host::cleanup;
use brewbench_agent::run::execute;
use brewbench_agent::target::Containers;
use brewbench_testing::{Guest, Image, Podman, skip};
use brewbench_wire::job::{Job, Size};
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::profile::pprof::{Facts, decode, encode};
use brewbench_wire::profile::stacks::{Builder, Frame, Stacks};
use brewbench_wire::profile::{ProfileKind, ProfileSource, Profiled, RunProfile};
use brewbench_wire::run_spec::RunSpec;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, processes_with, scenario, vus};

const HASH: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// Returns a bench that allows all profilers.
async fn bench(test: &str) -> Option<Bench> {
    let mut bench = Bench::new(test).await?;
    bench.work.profilers = ProfileSource::ALL.to_vec();
    Some(bench)
}

/// Returns a bundled target, installed beside the tests.
fn bundled(name: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().expect("own path");
    let path = own.ancestors().nth(2).expect("target/profile/deps/test").join("targets/bin").join(name);
    if !path.exists() {
        skip(&format!("no {}: scripts/install-targets.sh", path.display()));
        return None;
    }
    Some(path)
}

fn has(program: &str) -> bool {
    let found =
        std::env::split_paths(&std::env::var_os("PATH").expect("PATH")).any(|folder| folder.join(program).is_file());
    if !found {
        skip(&format!("no {program}"));
    }
    found
}

/// Writes the manifest of a bundled target.
fn offer_bundled(bench: &Bench, name: &str, profile: &str) -> Option<()> {
    let program = bundled(name)?;
    let text = format!(
        "name = \"{name}\"\nversion = \"1\"\ncommand = [\"{}\", \"--listen\", \"{{host}}:{{port}}\"]\n\
         [ready]\npath = \"/health\"\n[profile]\n{profile}\n",
        program.display()
    );
    std::fs::write(bench.work.targets.join(format!("{name}.toml")), text).expect("a manifest");
    Some(())
}

/// A profiled run of `/hash`.
fn hashing(target: &str, duration_ms: u64) -> Job {
    Job {
        scenario: scenario(HASH),
        spec: RunSpec { load: Some(vus(4, duration_ms)), warm_up_s: Some(0.0), profiled: true, ..job(target).spec },
        ..job(target)
    }
}

async fn run(bench: &Bench, job: &Job) -> Outcome {
    let outcome = execute::run(job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    outcome
}

async fn profiled(bench: &Bench, job: &Job) -> Profiled {
    let outcome = run(bench, job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let profiled = outcome.profiled.expect("profiles or faults");
    for RunProfile { kind, source, quality, .. } in &profiled.profiles {
        println!("{kind} by {source}: {quality:?}");
    }
    profiled
}

/// Returns the only profile and its stacks.
fn only(profiled: &Profiled) -> (&RunProfile, Stacks) {
    let Profiled { profiles, faults } = profiled;
    assert_eq!((profiles.len(), faults.as_slice()), (1, &[][..]), "{profiled:?}");
    let profile = &profiles[0];
    (profile, decode(profile.data.as_bytes(), profile.kind).expect("pprof"))
}

fn names<'a>(stacks: &'a Stacks, part: &str) -> Vec<&'a str> {
    stacks.frames.iter().map(|frame| frame.function.as_str()).filter(|name| name.contains(part)).collect()
}

#[tokio::test]
async fn the_bundled_go_target_is_profiled_by_its_endpoint() {
    let Some(bench) = bench("profile go").await else { return };
    let profile = "pprof = \"/debug/pprof/profile?seconds={s}\"\nkinds = [\"cpu\", \"heap\", \"allocs\"]";
    let Some(()) = offer_bundled(&bench, "go-nethttp", profile) else { return };
    let Profiled { profiles, faults } = profiled(&bench, &hashing("go-nethttp", 3_000)).await;
    assert_eq!(faults, Vec::<String>::new());
    let kinds: Vec<_> = profiles.iter().map(|profile| (profile.kind, profile.source)).collect();
    assert_eq!(kinds, ProfileKind::ALL.map(|kind| (kind, ProfileSource::Pprof)));
    let cpu = decode(profiles[0].data.as_bytes(), ProfileKind::Cpu).expect("pprof");
    assert!(!names(&cpu, "sendHash").is_empty(), "{cpu:?}");
    let quality = &profiles[0].quality;
    assert!(quality.samples > 0 && quality.rate_hz == Some(100.0), "{quality:?}");
    assert!(quality.duration_ms.is_some_and(|ms| (1_900..4_000).contains(&ms)), "{quality:?}");
    assert!(quality.unknown_share < 0.05 && quality.shallow_share < 0.5 && quality.notes.is_empty(), "{quality:?}");
    let allocs = decode(profiles[2].data.as_bytes(), ProfileKind::Allocs).expect("pprof");
    assert!(names(&allocs, "net/http").len() > 1, "{allocs:?}");
}

#[tokio::test]
async fn the_bundled_rust_target_is_profiled_by_perf() {
    let Some(bench) = bench("profile rust").await else { return };
    if !has("perf") {
        return;
    }
    let Some(()) = offer_bundled(&bench, "rust-hyper", "perf = true") else { return };
    let profiled = profiled(&bench, &hashing("rust-hyper", 2_000)).await;
    let (profile, stacks) = only(&profiled);
    let hash = names(&stacks, "rust_hyper::site");
    assert!(!hash.is_empty(), "{:?}", names(&stacks, ""));
    assert!(stacks.frames.iter().any(|frame| frame.kernel && frame.function != "[unknown]"), "kernel functions");
    let quality = &profile.quality;
    assert!(quality.profiler.as_deref().is_some_and(|name| name.starts_with("perf ")), "{quality:?}");
    assert!(quality.samples > 20 && quality.lost == Some(0) && quality.rate_hz == Some(999.0), "{quality:?}");
    assert!(quality.unknown_share < 0.1, "{quality:?}");
    assert!(quality.shallow_share < 0.3, "it has frame pointers: {quality:?}");
    let deep = stacks.share(|sample| stacks.stack(sample).any(|frame| frame.function.contains("tokio::runtime")));
    assert!(deep > 0.5, "stacks reach tokio: {deep}");
}

#[tokio::test]
async fn context_switches_of_lasting_threads_are_counted() {
    let Some(bench) = bench("profile switches").await else { return };
    let Some(()) = offer_bundled(&bench, "rust-hyper", "perf = true") else { return };
    let outcome = run(
        &bench,
        &Job { spec: RunSpec { profiled: false, ..hashing("rust-hyper", 1_500).spec }, ..hashing("rust-hyper", 1_500) },
    )
    .await;
    let counters = outcome.conditions.counters.expect("counters");
    let switches = counters.voluntary_switches.zip(counters.involuntary_switches);
    assert!(switches.is_some_and(|(voluntary, _)| voluntary > 0) && counters.page_faults.is_some(), "{counters:?}");
}

#[tokio::test]
async fn a_container_is_profiled_by_perf_with_the_names_of_its_program() {
    let Some(mut bench) = bench("profile container").await else { return };
    if !has("perf") {
        return;
    }
    let (Some(podman), Some(program)) = (Podman::start(), bundled("rust-hyper")) else { return };
    bench.work.containers = Containers::find(Some(&podman.socket()), &bench.agent);
    podman.load("rust:1", &Image::of(&program, &[]));
    let text = "name = \"boxed\"\nversion = \"1\"\n[ready]\npath = \"/health\"\n[container]\n\
                image = \"localhost/rust:1\"\ncommand = [\"--listen\", \"127.0.0.1:{port}\"]\n";
    std::fs::write(bench.work.targets.join("boxed.toml"), text).expect("a manifest");
    let profiled = profiled(&bench, &hashing("boxed", 2_000)).await;
    let (profile, stacks) = only(&profiled);
    assert!(!names(&stacks, "rust_hyper::site").is_empty(), "{:?} {:?}", names(&stacks, ""), profile.quality);
}

#[tokio::test]
async fn a_program_is_profiled_by_dwarf_where_it_asks_for_it() {
    let Some(bench) = bench("profile dwarf").await else { return };
    if !has("perf") {
        return;
    }
    let Some(()) = offer_bundled(&bench, "rust-hyper", "call_graph = \"dwarf\"") else { return };
    let profiled = profiled(&bench, &hashing("rust-hyper", 1_500)).await;
    let (profile, stacks) = only(&profiled);
    assert!(!names(&stacks, "rust_hyper::site").is_empty(), "{:?}", names(&stacks, ""));
    assert!(profile.quality.rate_hz == Some(99.0) && profile.quality.shallow_share < 0.2, "{:?}", profile.quality);
}

#[tokio::test]
async fn a_command_profiles_by_collapsed_stacks() {
    let Some(bench) = bench("profile command").await else { return };
    let script = "#!/bin/sh\n# usage: profiler PID PIDS SECONDS HZ\nsleep \"$3\"\n\
                  read -r name < \"/proc/$1/comm\" || exit 1\n\
                  printf 'main;<b>%s;hash 30\\nmain;\\033[31mred;write_[k] 10\\n' \"$name\"\n\
                  echo \"$2 at $4\" >&2\n";
    let profiler = bench.work.targets.join("profiler");
    std::fs::write(&profiler, script).expect("a script");
    std::fs::set_permissions(&profiler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let command = "[profile]\ncommand = [\"./profiler\", \"{pid}\", \"{pids}\", \"{s}\", \"{hz}\"]";
    bench.offer("good", command);
    let observed = profiled(&bench, &Job { spec: RunSpec { profiled: true, ..job("good").spec }, ..job("good") }).await;
    let (profile, stacks) = only(&observed);
    let mut frames = names(&stacks, "");
    frames.sort_unstable();
    assert_eq!(frames, ["<b>unruly", "hash", "main", "red", "write"]);
    assert_eq!((stacks.total(), profile.quality.samples), (400_000_000, 40), "at 100 Hz");
    assert_eq!(profile.quality.profiler.as_deref(), Some("profiler"));

    for (script, words) in [
        ("echo no permission >&2; exit 3", "profiler: exit status 3: no permission"),
        ("echo hello", "wrote no profile: line 1 is not a stack"),
        ("exit 0", "the CPU profile has no samples"),
        ("yes 'main;work 1' | head -c 70000000; exit 0", "wrote more than 64 MiB"),
        ("trap '' INT; sleep 600; :", "did not end"),
    ] {
        std::fs::write(&profiler, format!("#!/bin/sh\n{script}\n")).expect("a script");
        let Profiled { profiles, faults } =
            profiled(&bench, &Job { spec: RunSpec { profiled: true, ..job("good").spec }, ..job("good") }).await;
        assert!(profiles.is_empty() && faults.len() == 1 && faults[0].contains(words), "{script}: {faults:?}");
    }

    bench.offer("good", "[profile]\ncommand = [\"sh\", \"-c\", \"echo 'main;work 1'; : {pid} {output}\"]");
    let Profiled { faults, .. } =
        profiled(&bench, &Job { spec: RunSpec { profiled: true, ..job("good").spec }, ..job("good") }).await;
    assert_eq!(faults, ["profile.command: sh wrote no file {output}"]);
}

/// A threaded server whose requests burn their time in one function.
const PYTHON: &str = r#"
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

def burn():
    return sum(number * number for number in range(200000))

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = str(burn()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass

ThreadingHTTPServer((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
"#;

#[tokio::test]
async fn a_python_target_is_profiled_by_py_spy() {
    let Some(bench) = bench("profile python").await else { return };
    if !has("py-spy") {
        return;
    }
    std::fs::write(bench.work.targets.join("server.py"), PYTHON).expect("a server");
    let manifest = "name = \"python\"\nversion = \"1\"\ncommand = [\"/usr/bin/python3\", \"server.py\", \"{host}\", \"{port}\"]\n\
         [ready]\npath = \"/\"\n[profile]\ncommand = [\"py-spy\", \"record\", \"--gil\", \"--pid\", \"{pid}\", \"--duration\", \"{s}\", \
         \"--rate\", \"{hz}\", \"--format\", \"raw\", \"--output\", \"{output}\"]\n";
    std::fs::write(bench.work.targets.join("python.toml"), manifest).expect("a manifest");
    let profiled = profiled(&bench, &hashing("python", 3_000)).await;
    let (profile, stacks) = only(&profiled);
    assert_eq!(profile.source, ProfileSource::Command);
    assert!(!names(&stacks, "burn").is_empty(), "{:?}", names(&stacks, ""));
    let burning = stacks.share(|sample| stacks.stack(sample).any(|frame| frame.function.contains("burn")));
    assert!(burning > 0.5, "{burning} of {stacks:?}");
}

#[tokio::test]
async fn the_monitor_of_a_virtual_machine_is_profiled_by_perf() {
    let Some(bench) = bench("profile vm").await else { return };
    let (Some(program), Some(())) = (bundled("rust-hyper"), has("perf").then_some(())) else { return };
    let Some(guest) = Guest::of(&program) else { return };
    let (kernel, initrd) = (guest.kernel().display().to_string(), guest.ramdisk().display().to_string());
    let manifest = format!(
        "name = \"guest\"\nversion = \"1\"\n[vm]\nkernel = \"{kernel}\"\ninitrd = \"{initrd}\"\nport = 8080\n\
         accelerator = \"tcg\"\n[ready]\npath = \"/health\"\ntimeout_s = 60\n"
    );
    std::fs::write(bench.work.targets.join("guest.toml"), manifest).expect("a manifest");
    let size = Size { name: "1/256MiB".to_owned(), vcpus: 1.0, memory_bytes: 256 << 20, replicas: 1 };
    let profiled = profiled(
        &bench,
        &Job { spec: RunSpec { size: Some(size), ..hashing("guest", 2_000).spec }, ..hashing("guest", 2_000) },
    )
    .await;
    let (profile, stacks) = only(&profiled);
    assert_eq!(profile.source, ProfileSource::Perf);
    let programs: Vec<_> = stacks.frames.iter().map(|frame| frame.module.as_str()).collect();
    assert!(programs.iter().any(|module| module.contains("qemu")), "{programs:?}");
}

/// Answers every path: `/` with hello, others with what an endpoint may do wrong.
async fn endpoint(profile: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let at = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let profile = profile.clone();
            tokio::spawn(async move {
                let mut head = vec![0; 4 << 10];
                while let Ok(length @ 1..) = stream.read(&mut head).await {
                    let line = String::from_utf8_lossy(&head[..length]).lines().next().unwrap_or_default().to_owned();
                    let (status, length, body) = match line.split(['/', '?', ' ']).nth(2) {
                        Some("garbage") => ("200 OK", 9, b"<p>hi</p>".to_vec()),
                        Some("large") => ("200 OK", 200 << 20, vec![0; 200 << 20]),
                        Some("cut") => ("200 OK", 1_000, b"x".to_vec()),
                        Some("never") => std::future::pending().await,
                        Some("profile") => ("200 OK", profile.len(), profile.clone()),
                        Some("missing") => ("404 Not Found", 10, b"\x1b[31m<b>no".to_vec()),
                        _ => ("200 OK", 5, b"hello".to_vec()),
                    };
                    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\n\r\n");
                    let answer = [head.as_bytes(), &body].concat();
                    if stream.write_all(&answer).await.is_err() || body.len() < length {
                        return;
                    }
                }
            });
        }
    });
    format!("http://{at}")
}

/// Profiles of a server that already runs.
async fn of_endpoint(bench: &Bench, base: &str, profile: &str) -> Profiled {
    let text = format!(
        "name = \"there\"\nversion = \"1\"\n[url]\nbase = \"{base}\"\n[ready]\npath = \"/\"\n[profile]\n{profile}\n"
    );
    std::fs::write(bench.work.targets.join("there.toml"), text).expect("a manifest");
    profiled(
        bench,
        &Job { spec: RunSpec { profiled: true, warm_up_s: Some(0.0), ..job("there").spec }, ..job("there") },
    )
    .await
}

fn one_stack(kind: ProfileKind, function: &str, value: u64) -> Vec<u8> {
    let mut builder = Builder::default();
    let frame = builder.frame(Frame::new(function, "", "")).expect("room");
    builder.add(&[frame], value).expect("room");
    encode(&builder.build(), kind, &Facts::default()).as_bytes().to_vec()
}

#[tokio::test]
async fn an_endpoint_that_misbehaves_is_a_sentence_and_no_failure() {
    let Some(bench) = bench("profile faults").await else { return };
    let base = endpoint(one_stack(ProfileKind::Cpu, "<script>alert(1)</script>", 7)).await;
    for (path, words) in [
        ("missing", "has status 404: \"<b>no\""),
        ("garbage", "returned no cpu profile: it is not in the pprof format"),
        ("large", "returned more than 64 MiB"),
        ("cut", "was cut off"),
        ("never", "did not respond within 11 s"),
    ] {
        let Profiled { profiles, faults } = of_endpoint(&bench, &base, &format!("pprof = \"/{path}?s={{s}}\"")).await;
        assert!(profiles.is_empty() && faults.len() == 1 && faults[0].contains(words), "{path}: {faults:?}");
        assert!(faults[0].starts_with("GET http://127.0.0.1:"), "{faults:?}");
    }
    let good = of_endpoint(&bench, &base, "pprof = \"/profile?s={s}\"").await;
    let (_, stacks) = only(&good);
    assert_eq!((stacks.frames[0].function.as_str(), stacks.total()), ("<script>alert(1)</script>", 7));

    let elsewhere = of_endpoint(&bench, &base, "pprof = \"http://10.0.0.1:6060/profile?s={s}\"").await;
    assert!(elsewhere.faults[0].contains("10.0.0.1 is not the target's host"), "{elsewhere:?}");
    let closed = of_endpoint(&bench, &base, "pprof = \"http://{host}:1/profile?s={s}\"").await;
    assert!(closed.faults[0].contains("http://127.0.0.1:1/profile?s=1 failed"), "{closed:?}");

    // A profile of another type, and one of no samples.
    let Profiled { profiles, faults } =
        of_endpoint(&bench, &base, "pprof = \"/profile?s={s}\"\nkinds = [\"cpu\", \"heap\"]").await;
    assert_eq!(profiles.len(), 1);
    assert!(faults[0].contains("/heap returned no heap profile: it is not in the pprof format"), "{faults:?}");
    let heap = endpoint(one_stack(ProfileKind::Heap, "a", 1)).await;
    let other = of_endpoint(&bench, &heap, "pprof = \"/profile?s={s}\"").await;
    assert!(other.faults[0].contains("it counts inuse_space in bytes, but a profile of kind cpu needs"), "{other:?}");
    let empty = endpoint(encode(&Stacks::default(), ProfileKind::Cpu, &Facts::default()).as_bytes().to_vec()).await;
    let empty = of_endpoint(&bench, &empty, "pprof = \"/profile?s={s}\"").await;
    assert_eq!(empty.faults, ["the CPU profile has no samples: the target used no CPU time while it was observed"]);
}

#[tokio::test]
async fn what_the_owner_does_not_allow_is_not_attached() {
    let Some(mut bench) = bench("profile owner").await else { return };
    bench.work.profilers.clear();
    bench.offer("good", "");
    let Profiled { profiles, faults } =
        profiled(&bench, &Job { spec: RunSpec { profiled: true, ..job("good").spec }, ..job("good") }).await;
    assert!(profiles.is_empty());
    assert_eq!(faults, ["the agent's owner does not allow perf: start the agent with --profilers perf"]);
    let unasked = run(&bench, &job("good")).await;
    assert_eq!(unasked.profiled, None);
}

#[tokio::test]
async fn a_target_that_forks_or_exits_while_perf_observes_it_leaves_nothing() {
    let Some(bench) = bench("profile exit").await else { return };
    if !has("perf") {
        return;
    }
    bench.offer("restarting", "");
    let profiled = profiled(
        &bench,
        &Job { spec: RunSpec { profiled: true, warm_up_s: Some(0.0), ..job("restarting").spec }, ..job("restarting") },
    )
    .await;
    assert_eq!(profiled.faults, Vec::<String>::new(), "{profiled:?}");
    bench.offer("mortal", "");
    let outcome = run(
        &bench,
        &Job { spec: RunSpec { profiled: true, load: Some(vus(1, 600_000)), ..job("mortal").spec }, ..job("mortal") },
    )
    .await;
    assert!(matches!(&outcome.ended, Ended::Failed { cause: Cause::TargetDied, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_cancelled_run_leaves_no_perf() {
    let Some(bench) = bench("profile cancel").await else { return };
    if !has("perf") {
        return;
    }
    bench.offer("good", "");
    let job = Job {
        spec: RunSpec { profiled: true, load: Some(vus(1, 600_000)), warm_up_s: Some(0.0), ..job("good").spec },
        ..job("good")
    };
    let cancel = CancellationToken::new();
    let cancelling = async {
        while perfs(&job).is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(execute::run(&job, &bench.work, &cancel, |_| {}), cancelling);
    assert_eq!(outcome.ended, Ended::Cancelled);
    bench.assert_clean(job.run);
}

/// Returns the processes of a run that are perf.
fn perfs(job: &Job) -> Vec<i32> {
    let is_perf =
        |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "perf");
    processes_with(&job.run.to_string()).into_iter().filter(is_perf).collect()
}

const CHILD: &str = "BREWBENCH_TEST_PROFILED_CHILD";

/// Not a test: the agent that [`a_killed_agent_leaves_no_perf`] kills.
#[tokio::test]
async fn profiled_child() {
    let Some(folder) = std::env::var_os(CHILD).map(PathBuf::from) else { return };
    let mut bench = Bench::new("profile killed").await.expect("k6");
    bench.work.profilers = ProfileSource::ALL.to_vec();
    bench.offer("good", "");
    bench.work.work_folder = folder;
    let job = Job {
        spec: RunSpec { profiled: true, load: Some(vus(1, 600_000)), warm_up_s: Some(0.0), ..job("good").spec },
        ..job("good")
    };
    execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
}

#[tokio::test]
async fn a_killed_agent_leaves_no_perf() {
    if !has("perf") || !has("k6") {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let own = std::env::current_exe().expect("own path");
    let mut child = Command::new(own);
    child
        .args(["profiles::profiled_child", "--exact"])
        .env(CHILD, folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = child.spawn().expect("a child");
    let agent = format!("test profile killed {}", child.id());
    let perf = || {
        let is_perf =
            |pid: &i32| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "perf");
        processes_with(&agent).into_iter().find(is_perf)
    };
    let data = || has_data(folder.path());
    let begun = Instant::now();
    while perf().is_none() || !data() {
        assert!(begun.elapsed() < Duration::from_mins(1), "no perf");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    child.kill().expect("killed");
    child.wait().expect("an exit status");
    let begun = Instant::now();
    while perf().is_some() {
        assert!(begun.elapsed() < Duration::from_secs(5), "the kernel kills it with its parent");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let root = Path::new(brewbench_agent::sandbox::CGROUP_ROOT);
    let sandbox = brewbench_agent::sandbox::Sandbox::detect(root, &agent);
    cleanup::remove(&sandbox, folder.path()).await;
    assert_eq!(processes_with(&agent), Vec::<i32>::new());
    assert_eq!(crate::support::groups_of(&agent), Vec::<PathBuf>::new());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
}

fn has_data(folder: &Path) -> bool {
    let runs = std::fs::read_dir(folder).expect("a folder").flatten();
    runs.map(|run| run.path().join("profiler/perf.data")).any(|data| data.metadata().is_ok_and(|data| data.len() > 0))
}

#[test]
fn go_reads_what_is_encoded() {
    if !has("go") {
        return;
    }
    let mut builder = Builder::default();
    let server = "/usr/bin/server";
    let mut add = |stack: &[(&str, &str)], value: u64| {
        let frames = stack.iter().map(|(function, module)| builder.frame(Frame::new(function, "main.rs", module)));
        let stack: Vec<u32> = frames.collect::<Result<_, _>>().expect("room");
        builder.add(&stack, value).expect("room");
    };
    add(&[("main", server), ("hash", server)], 600_000_000);
    add(&[("main", server), ("hash", server), ("write", "[kernel.kallsyms]")], 250_000_000);
    add(&[("main", server)], 150_000_000);
    let stacks = builder.build();
    let facts = Facts {
        rate_hz: Some(999.0),
        duration_ms: Some(2_000),
        build_ids: [(server.to_owned(), "abcdef0123".to_owned())].into(),
        comments: vec!["by a test".to_owned()],
        ..Facts::default()
    };
    let folder = tempfile::tempdir().expect("a folder");
    let go = |kind: ProfileKind, arguments: &[&str]| {
        let file = folder.path().join(kind.as_str());
        std::fs::write(&file, encode(&stacks, kind, &facts).as_bytes()).expect("a file");
        let mut command = Command::new("go");
        command.args(["tool", "pprof"]).args(arguments).arg(&file);
        let output = command.env("PPROF_TMPDIR", folder.path()).output().expect("go");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let top = go(ProfileKind::Cpu, &["-top", "-unit=ms"]);
    for (flat, cumulative, name) in
        [("600ms", "850ms", "hash"), ("250ms", "250ms", "write"), ("150ms", "1000ms", "main")]
    {
        let line =
            top.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap_or_else(|| panic!("{name}: {top}"));
        let words: Vec<_> = line.split_whitespace().collect();
        assert_eq!((words[0], words[3]), (flat, cumulative), "{top}");
    }
    assert!(top.contains("Type: cpu") && top.contains("Duration: 2s, Total samples = 1000ms"), "{top}");
    assert!(go(ProfileKind::Cpu, &["-comments"]).contains("by a test"));
    let raw = go(ProfileKind::Cpu, &["-raw"]);
    assert!(raw.contains("/usr/bin/server abcdef0123 [FN]"), "{raw}");
    assert!(go(ProfileKind::Heap, &["-top"]).contains("Type: inuse_space"));
}
