//! Each verdict provoked for real: the agent's own code, a real k6, a real target, and the server that judges.
//!
//! Whatever a machine does besides may be seen in a verdict, too: a neighbour is a neighbour, also in a test. So
//! reasons that speak of the host are printed and allowed everywhere, and none is taken for granted that a slow or noisy
//! machine could keep from coming. One run at a time: each would be the noisy neighbour of the others.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use brewbench_agent::{
    engine::k6::K6,
    host::idle_wait::IdleWait,
    run::{execute, execute::RunContext},
    sandbox::{CGROUP_ROOT, Sandbox},
    wire::{Phase, job::Job, messages::TargetOffer, outcome::Ended},
};
use brewbench_testing::skip;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    program::{PROGRAM, Tools},
    submit::{plan_with, submit, text},
};

/// The machine, of which there is one.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// So small that k6 has room on the one core that two leave it.
const SMALL: &str = "0.1 vCPU / 64 MiB";

/// Its target does nothing but to answer.
const ASKS: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// A server, somebody who submits, and an agent whose work is done by the agent's own code.
struct Stage {
    _app: App,
    user: Actor,
    agent: Agent,
    bench: RunContext,
    /// Rung when k6 begins to measure.
    measuring: Notify,
    _folder: tempfile::TempDir,
    _machine: MutexGuard<'static, ()>,
}

/// What is asked for; `Default` is an ordinary run.
#[derive(Clone, Copy)]
struct Asked<'a> {
    /// The shell's words that start the target; `$0` is the bundled server, `$1` its address.
    target: &'a str,
    size: &'a str,
    script: &'a str,
    vus: u32,
    duration_s: f64,
    /// How long the target may take to serve.
    ready_s: u32,
}

const ORDINARY: Asked =
    Asked { target: "exec $0 --listen $1", size: SMALL, script: ASKS, vus: 4, duration_s: 3.0, ready_s: 30 };

impl Stage {
    /// Nothing, with a printed reason, where k6, the targets or control groups are missing.
    async fn set() -> Option<Self> {
        let machine = MACHINE.lock().await;
        let tools = Tools::find()?;
        let sandbox = Sandbox::detect(Path::new(CGROUP_ROOT), &format!("verdicts {}", std::process::id()));
        if sandbox.mechanisms().cpu.as_str() == "none" || sandbox.mechanisms().memory.as_str() == "none" {
            skip("nothing can be limited here");
            return None;
        }
        let folder = tempfile::tempdir().expect("a folder");
        let (targets, work_folder) = (folder.path().join("targets"), folder.path().join("work"));
        for folder in [&targets, &work_folder] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let k6 = K6::find(Some(&tools.k6)).await.expect("k6");
        let bench = RunContext::new(sandbox, k6, targets, work_folder);
        let quiet = IdleWait { longest: Duration::ZERO, ..bench.quiet };
        let bench = RunContext { quiet, ..bench };
        // What is provoked takes the processors from the agent as well, which is played in this thread.
        let app = App::with(|config| (config.silence, config.lease) = (PATIENCE, PATIENCE)).await;
        let size = json!({"name": SMALL, "vcpus": 0.1, "memory_bytes": 64 << 20});
        app.admin().await.post("/api/v1/sizes", &size).await.ok();
        let offer = TargetOffer {
            name: "it".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            sha256: "ab".repeat(32),
            anywhere: false,
        };
        let agent = Agent::start_with(&app, "rack", |hello| {
            hello.targets = vec![offer];
            hello.any_scenario = true;
        })
        .await;
        Some(Self {
            user: app.user().await,
            _app: app,
            agent,
            bench,
            measuring: Notify::new(),
            _folder: folder,
            _machine: machine,
        })
    }

    /// Submits it, and gives the job that comes of it.
    async fn job(&mut self, asked: Asked<'_>, load: Option<Value>) -> (String, Job) {
        let server = Path::new(PROGRAM).with_file_name("targets").join("bin/rust-hyper");
        let manifest = format!(
            "name = \"it\"\nversion = \"1\"\ncommand = [\"sh\", \"-c\", {:?}, \"{}\", \"127.0.0.1:{{port}}\"]\n\
             [ready]\npath = \"/health\"\ntimeout_s = {}\n[verify]\npath = \"/hash\"\nstatus = 200\n",
            asked.target,
            server.display(),
            asked.ready_s
        );
        std::fs::write(self.bench.targets.join("it.toml"), manifest).expect("a manifest");
        let scenario = json!({"name": "provoked", "script": asked.script});
        self.user.post("/api/v1/scenarios", &scenario).await.ok();
        let usual = json!({"kind": "vus", "vus": asked.vus, "duration_s": asked.duration_s});
        let plan = plan_with(&json!({"targets": ["it"], "sizes": [asked.size], "scenario": "provoked",
            "load": load.unwrap_or(usual), "warm_up_s": 0.3, "retries": 0}));
        let id = submit(&self.user, &plan).await.1.remove(0);
        (id, self.agent.job().await)
    }

    /// Has the job done and judged, while something else goes on; gives the run.
    async fn done(&self, id: &str, job: &Job, meanwhile: impl Future<Output = ()>) -> Value {
        let end = CancellationToken::new();
        let doing = async {
            let outcome = execute::run(job, &self.bench, &end, |phase| {
                if phase == Phase::Measuring {
                    self.measuring.notify_one();
                }
            })
            .await;
            if let Ended::Failed { reason, .. } = &outcome.ended {
                println!("failed: {reason}");
            }
            outcome
        };
        let mut doing = Box::pin(doing);
        let outcome = tokio::select! {
            outcome = &mut doing => outcome,
            () = meanwhile => doing.await,
        };
        self.agent.end(outcome).await;
        self.user.run(id).await
    }

    /// An ordinary end of a run that was asked for like this.
    async fn run(&mut self, asked: Asked<'_>) -> Value {
        let (id, job) = self.job(asked, None).await;
        self.done(&id, &job, std::future::pending()).await
    }
}

fn codes(run: &Value) -> Vec<String> {
    let reasons = run["reasons"].as_array().expect("reasons");
    for reason in reasons {
        println!("{}: {}", text(&reason["code"]), text(&reason["text"]));
    }
    reasons.iter().map(|reason| text(&reason["code"])).collect()
}

/// The run has this reason, with figure and limit.
#[track_caller]
fn assert_told(run: &Value, code: &str, verdict: &str) {
    assert!(codes(run).iter().any(|told| told == code), "{code}: {run}");
    let reason = run["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == code);
    let reason = reason.expect("just found");
    assert_eq!(reason["verdict"], verdict, "{reason}");
    assert!(reason["seen"].is_number() && reason["limit"].is_number() && reason["unit"].is_string(), "{reason}");
}

/// What a neighbour of this test does to a run is true, and not its fault.
fn is_of_the_host(code: &str) -> bool {
    matches!(code, "host_disturbed" | "host_steal" | "not_quiet_before")
}

#[tokio::test]
async fn ten_ordinary_runs_are_valid_but_for_what_the_host_did() {
    let Some(mut stage) = Stage::set().await else { return };
    for number in 1..=10 {
        let run = stage.run(ORDINARY).await;
        let told = codes(&run);
        println!("ordinary run {number}: {} at {} requests/s", run["verdict"], run["rps"]);
        assert_eq!(run["phase"], "finished", "{run}");
        assert!(told.iter().all(|code| is_of_the_host(code)), "{told:?}");
        assert_eq!(run["verdict"] == "valid", told.is_empty(), "{run}");
    }
}

#[tokio::test]
async fn a_generator_that_is_the_bottleneck_is_told_where_the_machine_lets_it_be_one() {
    let Some(mut stage) = Stage::set().await else { return };
    // A page takes k6 more than the target, which has a whole core.
    let script = "import http from 'k6/http'; export default function () {
        const answer = http.get(__ENV.BASE_URL + '/hash'); let sum = 0;
        for (let n = 0; n < 20000; n++) { sum += n; } if (!answer || sum < 0) throw 1; }";
    let run = stage.run(Asked { script, size: "1/256MiB", vus: 1, ..ORDINARY }).await;
    // Its one virtual user counts most of the time, and asks for nothing meanwhile.
    assert_told(&run, "generator_held_back", "suspect");
    let told = codes(&run);
    // On one core there is no other, and next to a neighbour k6 does not get all of its own.
    assert!(
        told.iter().any(|code| code == "generator_busy" || code == "shared_cores" || is_of_the_host(code)),
        "{told:?}"
    );
    assert_eq!(run["verdict"], "suspect");
}

/// Where the processor time of a run's k6 is limited, and what is written there: so little that it wants more, however much
/// others leave it.
fn quota_of(run: &str) -> Option<(PathBuf, &'static str)> {
    let mut open = vec![PathBuf::from(CGROUP_ROOT)];
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_dir() {
                continue;
            }
            if path.ends_with(format!("{run}-generator")) {
                for (name, quota) in [("cpu.cfs_quota_us", "10000"), ("cpu.max", "10000 100000")] {
                    if path.join(name).exists() {
                        return Some((path.join(name), quota));
                    }
                }
            }
            open.push(path);
        }
    }
    None
}

#[tokio::test]
async fn a_generator_that_a_quota_holds_back_is_told() {
    let Some(mut stage) = Stage::set().await else { return };
    let (id, job) = stage.job(Asked { size: "1/256MiB", ..ORDINARY }, None).await;
    let hold = async {
        stage.measuring.notified().await;
        loop {
            if let Some((file, quota)) = quota_of(&id)
                && std::fs::write(file, quota).is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let run = stage.done(&id, &job, hold).await;
    assert_told(&run, "generator_throttled", "suspect");
}

/// Programs that do nothing as fast as they can, one for each core.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn move_in() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let one = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Self((0..cores).map(|_| one().expect("a shell")).collect())
    }
}

impl Drop for Neighbours {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[tokio::test]
async fn noisy_neighbours_are_told() {
    let Some(mut stage) = Stage::set().await else { return };
    let neighbours = Neighbours::move_in();
    let run = stage.run(ORDINARY).await;
    drop(neighbours);
    assert_told(&run, "host_disturbed", "suspect");
}

#[tokio::test]
async fn a_target_that_eats_more_memory_than_its_size_has_is_told() {
    let Some(mut stage) = Stage::set().await else { return };
    let target = "(sleep 1; tail /dev/zero) & exec $0 --listen $1";
    let run = stage.run(Asked { target, size: "1/256MiB", ..ORDINARY }).await;
    // Whom the kernel chooses is its own affair: the one that eats, or the server itself.
    assert_eq!(run["verdict"], "invalid", "{run}");
    assert!(codes(&run).iter().any(|code| code == "oom_killed" || code == "target_died"));
}

/// The shells of a run's target.
fn workers_of(run: &str) -> Vec<i32> {
    processes_of(run, "while [ ! -e gone ]")
}

/// The processes of a run's target that listen.
fn servers_of(run: &str) -> Vec<i32> {
    processes_of(run, "rust-hyper\0--listen")
}

/// The processes of a run that have this in their command.
fn processes_of(run: &str, words: &str) -> Vec<i32> {
    let entries = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let is_one = |pid: &i32| {
        let read = |name| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let has = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
        has(&read("environ"), run) && has(&read("cmdline"), words)
    };
    pids.filter(is_one).collect()
}

#[tokio::test]
async fn a_target_that_is_killed_half_way_is_a_failure_of_its_own() {
    let Some(mut stage) = Stage::set().await else { return };
    let (id, job) = stage.job(Asked { duration_s: 60.0, ..ORDINARY }, None).await;
    let murder = async {
        stage.measuring.notified().await;
        for pid in servers_of(&id) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    };
    let run = stage.done(&id, &job, murder).await;
    assert_eq!(run["phase"], "failed", "{run}");
    assert!(text(&run["error"]).contains("exited"), "{run}");
    assert_eq!((&run["verdict"], codes(&run)), (&json!("invalid"), vec!["target_died".to_owned()]));
}

#[tokio::test]
async fn a_target_that_never_serves_is_a_failure_of_its_own() {
    let Some(mut stage) = Stage::set().await else { return };
    let run = stage.run(Asked { target: "sleep 600", ready_s: 2, ..ORDINARY }).await;
    assert_eq!((&run["verdict"], codes(&run)), (&json!("invalid"), vec!["target_not_ready".to_owned()]));
}

#[tokio::test]
async fn a_target_that_loses_a_process_meanwhile_is_told() {
    let Some(mut stage) = Stage::set().await else { return };
    // A worker that ends once the load has begun, however long it took to get there.
    let target = "(while [ ! -e gone ]; do sleep 0.1; done) & exec $0 --listen $1";
    let (id, job) = stage.job(Asked { target, ..ORDINARY }, None).await;
    let murder = async {
        stage.measuring.notified().await;
        // Any moment within its three seconds will do.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for pid in workers_of(&id) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    };
    let run = stage.done(&id, &job, murder).await;
    assert_told(&run, "target_restarted", "suspect");
}

#[tokio::test]
async fn a_target_that_answers_errors_wins_nothing() {
    let Some(mut stage) = Stage::set().await else { return };
    let script = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/nowhere'); }";
    let run = stage.run(Asked { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_told(&run, "no_success", "invalid");
    assert_told(&run, "too_short", "suspect");
    let script = "import http from 'k6/http'; import { check } from 'k6';
        export default function () { const path = __ITER % 3 ? '/hash' : '/nowhere';
        check(http.get(__ENV.BASE_URL + path), { 'it is there': (r) => r.status === 200 }); }";
    let run = stage.run(Asked { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_told(&run, "requests_failed", "invalid");
    assert_told(&run, "checks_failed", "invalid");
}

#[tokio::test]
async fn a_rate_that_can_not_be_reached_is_told() {
    let Some(mut stage) = Stage::set().await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { http.get(__ENV.BASE_URL + '/hash'); sleep(0.2); }";
    let load = json!({"kind": "rate", "rate": 50, "duration_s": 3.0, "max_vus": 2});
    let (id, job) = stage.job(Asked { script, ..ORDINARY }, Some(load)).await;
    let run = stage.done(&id, &job, std::future::pending()).await;
    assert_told(&run, "iterations_dropped", "suspect");
}

#[tokio::test]
async fn connections_that_are_made_anew_for_each_request_are_told() {
    let Some(mut stage) = Stage::set().await else { return };
    // Somebody takes the connection and waits before the server gets it.
    let script = "import http from 'k6/http';
        export const options = { noConnectionReuse: true, dns: { ttl: '0' }, batchPerHost: 1 };
        export default function () {
            const url = __ENV.BASE_URL + '/hash'; http.batch([url, url, url, url, url, url, url, url]); }";
    let run = stage.run(Asked { script, ..ORDINARY }).await;
    let told = codes(&run);
    let summary = stage.user.get(&format!("/api/v1/runs/{}/summary", text(&run["id"]))).await.ok().json();
    let mean = |metric: &str| summary["metrics"][metric]["avg"].as_f64().expect("a mean");
    let (blocked, duration) = (mean("http_req_blocked"), mean("http_req_duration"));
    // Whether it is more than half is the machine's; that the verdict says so then is ours.
    assert_eq!(told.iter().any(|code| code == "generator_blocked"), blocked > duration, "{blocked} {duration}");
}

#[tokio::test]
async fn a_k6_that_pushes_nothing_leaves_its_summary_and_is_told() {
    let Some(mut stage) = Stage::set().await else { return };
    let k6 = Tools::find().expect("found before").k6;
    let path = stage.bench.work_folder.with_file_name("k6");
    let shell = format!(
        "#!/bin/sh\nfor word; do shift; [ \"$word\" = --out ] && continue; \
         [ \"$word\" = experimental-prometheus-rw ] && continue; set -- \"$@\" \"$word\"; done\nexec {} \"$@\"\n",
        k6.display()
    );
    std::fs::write(&path, shell).expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    let folder = k6.parent().expect("a folder");
    stage.bench.engine = K6::find(Some(&path)).await.expect("k6").with_folder(folder);
    let run = stage.run(ORDINARY).await;
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
    assert_told(&run, "series_incomplete", "suspect");
}

#[tokio::test]
async fn a_size_that_nothing_enforces_and_cores_that_are_shared_are_told() {
    let Some(mut stage) = Stage::set().await else { return };
    stage.bench.sandbox = Sandbox::none(&format!("verdicts none {}", std::process::id()));
    let run = stage.run(ORDINARY).await;
    assert!(codes(&run).iter().any(|code| code == "size_not_enforced"), "{run}");
}
