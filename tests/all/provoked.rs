//! Each verdict reason provoked: the agent's own code, a real k6, a real target, and the server.
//!
//! Other load on the machine affects verdicts. So reasons about the host are printed and allowed everywhere, and no
//! test requires a reason that a slow or noisy machine could hide. Runs are sequential, so that they do not disturb
//! each other.

use std::{
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use brewbench_agent::{
    engine::{Wrk, k6::K6, native::Native},
    host::idle_wait::IdleWait,
    run::{context::RunContext, execute},
    sandbox::{CGROUP_ROOT, Sandbox},
};
use brewbench_cli::program::GENERATE;
use brewbench_testing::{public_copy, public_folder, skip};
use brewbench_wire::{Phase, job::Job, messages::TargetOffer, outcome::Ended, target::Identity};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, Notify};
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    program::Tools,
    submit::{plan_with, submit, text},
};

/// Lock of the machine.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// So small that k6 is not limited on the other one of two cores.
pub const SMALL: &str = "0.1 vCPU / 64 MiB";

/// Requests one path and checks nothing.
const SCRIPT: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// A server, a user who submits, and an agent that executes runs with the agent's own code.
pub struct Bench {
    pub app: App,
    pub user: Actor,
    agent: Agent,
    pub context: RunContext,
    /// Notified when k6 starts to measure.
    pub measuring: Notify,
    /// The program `$0` of a target.
    pub server: PathBuf,
    _folder: tempfile::TempDir,
    _machine: MutexGuard<'static, ()>,
}

/// A run to submit; [`ORDINARY`] is a run without any provoked reason.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The shell command that starts the target; `$0` is the bundled server, `$1` its address.
    pub target: &'a str,
    pub size: &'a str,
    pub script: &'a str,
    pub vus: u32,
    pub duration_s: f64,
    pub warm_up_s: f64,
    /// Seconds until the target must be ready.
    pub ready_s: u32,
}

pub const ORDINARY: Request = Request {
    target: "exec $0 --listen $1",
    size: SMALL,
    script: SCRIPT,
    vus: 4,
    duration_s: 3.0,
    warm_up_s: 0.3,
    ready_s: 30,
};

impl Bench {
    /// Returns none and prints the reason if k6, the targets or control groups are missing.
    pub async fn start() -> Option<Self> {
        let machine = MACHINE.lock().await;
        let tools = Tools::find()?;
        let sandbox = Sandbox::detect(Path::new(CGROUP_ROOT), &format!("verdicts {}", std::process::id()));
        if sandbox.mechanisms().cpu.as_str() == "none" || sandbox.mechanisms().memory.as_str() == "none" {
            skip("CPU and memory cannot be limited on this machine");
            return None;
        }
        let folder = public_folder();
        let (targets, work_folder) = (folder.path().join("targets"), folder.path().join("work"));
        for folder in [&targets, &work_folder] {
            std::fs::create_dir(folder).expect("a folder");
        }
        let k6 = K6::find(Some(&tools.k6)).await.expect("k6");
        let context = RunContext::new(sandbox, k6, targets, work_folder);
        let idle_wait = IdleWait { longest: Duration::ZERO, ..context.idle_wait };
        let mut context = RunContext { idle_wait, ..context };
        let program = env!("CARGO_BIN_EXE_brewbench").into();
        context.engines.native = Some(Native { program, arguments: vec![GENERATE.to_owned()] });
        context.engines.wrk = Wrk::find().await;
        // The provoked load also slows down the simulated agent, which runs in this thread.
        let app = App::with(|config| (config.silence, config.lease) = (PATIENCE, PATIENCE)).await;
        let size = json!({"name": SMALL, "vcpus": 0.1, "memory_bytes": 64 << 20});
        app.admin().await.post("/api/v1/sizes", &size).await.ok();
        let offer = TargetOffer {
            name: "it".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            identity: Identity::Process { sha256: "ab".repeat(32), code: None },
            anywhere: false,
            profile: None,
            compiles_at_run_time: false,
            revisions: Vec::new(),
        };
        let agent = Agent::start_with(&app, "rack", |hello| {
            hello.targets = vec![offer];
            hello.any_scenario = true;
            hello.engines = context.engines.offers();
        })
        .await;
        Some(Self {
            user: app.user().await,
            app,
            agent,
            context,
            measuring: Notify::new(),
            server: public_copy(&tools.targets.join("bin/rust-hyper"), folder.path()),
            _folder: folder,
            _machine: machine,
        })
    }

    /// Submits a run; returns its id and its job.
    pub async fn job(&mut self, request: Request<'_>, load: Option<Value>) -> (String, Job) {
        let scenario = json!({"name": "provoked", "script": request.script});
        self.user.post("/api/v1/scenarios", &scenario).await.ok();
        self.job_of("provoked", request, load).await
    }

    /// Submits a run of a stored scenario; returns its id and its job.
    pub async fn job_of(&mut self, scenario: &str, request: Request<'_>, load: Option<Value>) -> (String, Job) {
        let usual = json!({"kind": "vus", "vus": request.vus, "duration_s": request.duration_s});
        self.job_with(scenario, request, &json!({"load": load.unwrap_or(usual)})).await
    }

    /// Submits a run of a stored scenario with these fields of the plan; returns its id and its job.
    async fn job_with(&mut self, scenario: &str, request: Request<'_>, fields: &Value) -> (String, Job) {
        let manifest = format!(
            "name = \"it\"\nversion = \"1\"\ncommand = [\"sh\", \"-c\", {:?}, \"{}\", \"127.0.0.1:{{port}}\"]\n\
             identity = [\"it.toml\"]\n[ready]\npath = \"/health\"\ntimeout_s = {}\n[verify]\npath = \"/hash\"\nstatus = 200\n",
            request.target,
            self.server.display(),
            request.ready_s
        );
        std::fs::write(self.context.targets.join("it.toml"), manifest).expect("a manifest");
        let mut plan = json!({"targets": ["it"], "sizes": [request.size], "scenario": scenario,
            "load": {"kind": "vus", "vus": request.vus, "duration_s": request.duration_s},
            "warm_up_s": request.warm_up_s, "retries": 0});
        plan.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        let id = submit(&self.user, &plan_with(&plan)).await.1.remove(0);
        (id, self.agent.job().await)
    }

    /// Executes a run of a stored scenario with these fields of the plan; returns it.
    pub async fn run_of(&mut self, scenario: &str, request: Request<'_>, fields: &Value) -> Value {
        let (id, job) = self.job_with(scenario, request, fields).await;
        self.execute(&id, &job, std::future::pending()).await
    }

    /// Executes a job while another future runs, and reports its outcome; returns the run.
    pub async fn execute(&self, id: &str, job: &Job, concurrent: impl Future<Output = ()>) -> Value {
        let end = CancellationToken::new();
        let execution = async {
            let outcome = execute::run(job, &self.context, &end, |phase| {
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
        let mut execution = Box::pin(execution);
        let outcome = tokio::select! {
            outcome = &mut execution => outcome,
            () = concurrent => execution.await,
        };
        self.agent.end(outcome).await;
        self.user.run(id).await
    }

    /// Submits a run and executes it; returns it.
    pub async fn run(&mut self, request: Request<'_>) -> Value {
        let (id, job) = self.job(request, None).await;
        self.execute(&id, &job, std::future::pending()).await
    }
}

pub fn codes(run: &Value) -> Vec<String> {
    let reasons = run["reasons"].as_array().expect("reasons");
    for reason in reasons {
        println!("{}: {}", text(&reason["code"]), text(&reason["text"]));
    }
    reasons.iter().map(|reason| text(&reason["code"])).collect()
}

/// Asserts that the run has this reason, with its value and limit.
#[track_caller]
pub fn assert_reason(run: &Value, code: &str, verdict: &str) {
    assert!(codes(run).iter().any(|known| known == code), "{code}: {run}");
    let reason = run["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == code);
    let reason = reason.expect("just found");
    assert_eq!(reason["verdict"], verdict, "{reason}");
    assert!(reason["observed"].is_number() && reason["limit"].is_number() && reason["unit"].is_string(), "{reason}");
}

/// Returns the sentence of a reason.
#[track_caller]
pub fn sentence(run: &Value, code: &str) -> String {
    let reasons = run["reasons"].as_array().expect("reasons");
    let reason = reasons.iter().find(|reason| reason["code"] == code);
    text(&reason.unwrap_or_else(|| panic!("{code}: {run}"))["text"])
}

/// Whether a reason is about the host, which other load on the machine may cause.
fn is_of_the_host(code: &str) -> bool {
    matches!(code, "host_disturbed" | "host_steal" | "not_quiet_before")
}

#[tokio::test]
async fn ten_ordinary_runs_are_valid_unless_the_host_disturbs_them() {
    let Some(mut bench) = Bench::start().await else { return };
    for number in 1..=10 {
        let run = bench.run(ORDINARY).await;
        let found = codes(&run);
        println!("ordinary run {number}: {} at {} requests/s", run["verdict"], run["rps"]);
        assert_eq!(run["phase"], "finished", "{run}");
        // A busy machine also delays k6's reports.
        let is_disturbed = found.iter().any(|code| is_of_the_host(code));
        let is_excused = |code: &String| is_of_the_host(code) || is_disturbed && code == "series_incomplete";
        assert!(found.iter().all(is_excused), "{found:?}");
        assert_eq!(run["verdict"] == "valid", found.is_empty(), "{run}");
    }
}

#[tokio::test]
async fn a_generator_that_is_the_bottleneck_makes_the_run_suspect() {
    let Some(mut bench) = Bench::start().await else { return };
    // An iteration costs k6 more than the target, which has a full core.
    let script = "import http from 'k6/http'; export default function () {
        const answer = http.get(__ENV.BASE_URL + '/hash'); let sum = 0;
        for (let n = 0; n < 20000; n++) { sum += n; } if (!answer || sum < 0) throw 1; }";
    let run = bench.run(Request { script, size: "1/256MiB", vus: 1, ..ORDINARY }).await;
    // Its only virtual user computes most of the time instead of sending requests.
    assert_reason(&run, "generator_held_back", "suspect");
    let found = codes(&run);
    // On one core, k6 shares it with the target; next to other load, k6 does not get all of its core.
    assert!(
        found.iter().any(|code| code == "generator_busy" || code == "shared_cores" || is_of_the_host(code)),
        "{found:?}"
    );
    assert_eq!(run["verdict"], "suspect");
}

/// The file that limits the CPU time of a run's k6, and a quota for it that is too small on any machine.
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
async fn a_generator_throttled_by_a_quota_makes_the_run_suspect() {
    let Some(mut bench) = Bench::start().await else { return };
    let (id, job) = bench.job(Request { size: "1/256MiB", ..ORDINARY }, None).await;
    let throttle = async {
        bench.measuring.notified().await;
        loop {
            if let Some((file, quota)) = quota_of(&id)
                && std::fs::write(file, quota).is_ok()
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let run = bench.execute(&id, &job, throttle).await;
    assert_reason(&run, "generator_throttled", "suspect");
}

/// Busy loops, one for each core.
struct Neighbours(Vec<Child>);

impl Neighbours {
    fn start() -> Self {
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
async fn noisy_neighbours_make_the_run_suspect() {
    let Some(mut bench) = Bench::start().await else { return };
    let neighbours = Neighbours::start();
    let run = bench.run(ORDINARY).await;
    drop(neighbours);
    assert_reason(&run, "host_disturbed", "suspect");
}

#[tokio::test]
async fn a_target_that_exceeds_its_memory_is_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    let target = "(sleep 1; tail /dev/zero) & exec $0 --listen $1";
    let run = bench.run(Request { target, size: "1/256MiB", ..ORDINARY }).await;
    // The kernel may kill the process that allocates or the server itself.
    assert_eq!(run["verdict"], "invalid", "{run}");
    assert!(codes(&run).iter().any(|code| code == "oom_killed" || code == "target_died"));
}

/// The shells of a run's target.
fn workers_of(run: &str) -> Vec<i32> {
    processes_of(run, "while [ ! -e gone ]")
}

/// The processes of a run's target that listen.
pub fn servers_of(run: &str) -> Vec<i32> {
    processes_of(run, "rust-hyper\0--listen")
}

/// The processes of a run whose command contains a text.
pub fn processes_of(run: &str, words: &str) -> Vec<i32> {
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
async fn a_killed_target_has_its_own_reason() {
    let Some(mut bench) = Bench::start().await else { return };
    let (id, job) = bench.job(Request { duration_s: 60.0, ..ORDINARY }, None).await;
    let kill_all = async {
        bench.measuring.notified().await;
        for pid in servers_of(&id) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    };
    let run = bench.execute(&id, &job, kill_all).await;
    assert_eq!(run["phase"], "failed", "{run}");
    assert!(text(&run["error"]).contains("exited"), "{run}");
    assert_eq!((&run["verdict"], codes(&run)), (&json!("invalid"), vec!["target_died".to_owned()]));
}

#[tokio::test]
async fn a_target_that_never_gets_ready_has_its_own_reason() {
    let Some(mut bench) = Bench::start().await else { return };
    let run = bench.run(Request { target: "sleep 600", ready_s: 2, ..ORDINARY }).await;
    assert_eq!((&run["verdict"], codes(&run)), (&json!("invalid"), vec!["target_not_ready".to_owned()]));
}

#[tokio::test]
async fn a_target_that_loses_a_process_makes_the_run_suspect() {
    let Some(mut bench) = Bench::start().await else { return };
    // A worker that ends once the load has started, however long that takes.
    let target = "(while [ ! -e gone ]; do sleep 0.1; done) & exec $0 --listen $1";
    let (id, job) = bench.job(Request { target, ..ORDINARY }, None).await;
    let kill_all = async {
        bench.measuring.notified().await;
        // Any moment within its three seconds will do.
        tokio::time::sleep(Duration::from_secs(1)).await;
        for pid in workers_of(&id) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
        }
    };
    let run = bench.execute(&id, &job, kill_all).await;
    assert_reason(&run, "target_restarted", "suspect");
}

#[tokio::test]
async fn a_target_that_responds_with_errors_is_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/nowhere'); }";
    let run = bench.run(Request { script, duration_s: 1.0, warm_up_s: 0.0, ..ORDINARY }).await;
    assert_reason(&run, "no_success", "invalid");
    assert!(sentence(&run, "no_success").starts_with("every response was 404: all "), "{run}");
    assert_reason(&run, "too_short", "suspect");
    let named = "import http from 'k6/http'; export default function () {
        http.get(__ENV.BASE_URL + '/nowhere', { tags: { name: '/nowhere' } }); }";
    let run = bench.run(Request { script: named, duration_s: 1.0, warm_up_s: 0.0, ..ORDINARY }).await;
    assert!(sentence(&run, "no_success").starts_with("every response was 404 (GET /nowhere): all "), "{run}");
    let run = bench.run(Request { script: named, warm_up_s: 2.0, ..ORDINARY }).await;
    assert_eq!((&run["verdict"], codes(&run)), (&json!("invalid"), vec!["no_success".to_owned()]));
    assert_eq!(sentence(&run, "no_success"), "every response of the warm-up was 404 (GET /nowhere)", "{run}");
    assert_eq!((&run["phase"], &run["requests"]), (&json!("failed"), &Value::Null), "no measurement: {run}");
    let script = "import http from 'k6/http'; import { check } from 'k6';
        export default function () { const path = __ITER % 3 ? '/hash' : '/nowhere';
        check(http.get(__ENV.BASE_URL + path), { 'it is there': (r) => r.status === 200 }); }";
    let run = bench.run(Request { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_reason(&run, "requests_failed", "invalid");
    assert!(sentence(&run, "requests_failed").ends_with("; most often 404"), "{run}");
    assert_reason(&run, "checks_failed", "invalid");
    assert!(sentence(&run, "checks_failed").contains("“it is there” failed "), "{run}");
}

#[tokio::test]
async fn an_unreachable_rate_makes_the_run_suspect() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { http.get(__ENV.BASE_URL + '/hash'); sleep(0.2); }";
    let load = json!({"kind": "rate", "rate": 50, "duration_s": 3.0, "max_vus": 2});
    let (id, job) = bench.job(Request { script, ..ORDINARY }, Some(load)).await;
    let run = bench.execute(&id, &job, std::future::pending()).await;
    assert_reason(&run, "iterations_dropped", "suspect");
}

#[tokio::test]
async fn a_new_connection_for_each_request_is_reported_if_it_dominates() {
    let Some(mut bench) = Bench::start().await else { return };
    // Each request opens a connection and waits for it.
    let script = "import http from 'k6/http';
        export const options = { noConnectionReuse: true, dns: { ttl: '0' }, batchPerHost: 1 };
        export default function () {
            const url = __ENV.BASE_URL + '/hash'; http.batch([url, url, url, url, url, url, url, url]); }";
    let run = bench.run(Request { script, ..ORDINARY }).await;
    let found = codes(&run);
    let summary = bench.user.get(&format!("/api/v1/runs/{}/summary", text(&run["id"]))).await.ok().json();
    let mean = |metric: &str| summary["metrics"][metric]["avg"].as_f64().expect("a mean");
    let (blocked, duration) = (mean("http_req_blocked"), mean("http_req_duration"));
    // Whether requests are blocked longer than they take depends on the machine; the verdict must match.
    assert_eq!(found.iter().any(|code| code == "generator_blocked"), blocked > duration, "{blocked} {duration}");
}

#[tokio::test]
async fn a_k6_that_pushes_no_samples_makes_the_series_incomplete() {
    let Some(mut bench) = Bench::start().await else { return };
    let path = bench.context.work_folder.with_file_name("k6");
    // A wrapper may start a program beside it.
    let k6 = path.with_file_name("unwrapped-k6");
    std::fs::copy(Tools::find().expect("found before").k6, &k6).expect("a copy");
    let shell = format!(
        "#!/bin/sh\nfor word; do shift; [ \"$word\" = --out ] && continue; \
         [ \"$word\" = experimental-prometheus-rw ] && continue; set -- \"$@\" \"$word\"; done\nexec {} \"$@\"\n",
        k6.display()
    );
    std::fs::write(&path, shell).expect("a file");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("executable");
    bench.context.engines.k6 = Some(K6::find(Some(&path)).await.expect("k6"));
    let run = bench.run(ORDINARY).await;
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
    assert_reason(&run, "series_incomplete", "suspect");
}

#[tokio::test]
async fn an_unenforced_size_is_reported() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.context.sandbox = Sandbox::none(&format!("verdicts none {}", std::process::id()));
    let run = bench.run(ORDINARY).await;
    assert!(codes(&run).iter().any(|code| code == "size_not_enforced"), "{run}");
}
