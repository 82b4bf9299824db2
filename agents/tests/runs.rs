//! Complete runs with a real k6: their results, their failures, and that they leave nothing behind.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::time::{Duration, Instant};

use brewbench_agent::engine::inspection::inspect;
use brewbench_agent::host::idle_wait::IdleWait;
use brewbench_agent::run::execute;
use brewbench_agent::sandbox::ProgramRole;
use brewbench_agent::sandbox::cage::user;
use brewbench_wire::job::{Job, Size};
use brewbench_wire::load::{Closed, Form, Load, Open, Stage};
use brewbench_wire::messages::Finding;
use brewbench_wire::outcome::{Cause, Conditions, Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::target::TargetKind;
use brewbench_wire::{Phase, RunId, now_ms};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, processes_with, scenario, vus};

async fn run(bench: &Bench, job: &Job) -> Outcome {
    let outcome = execute::run(job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    outcome
}

/// Runs a long job on a target that misbehaves, and returns why it failed.
async fn failure(bench: &Bench, manner: &str, tables: &str, cause: Cause) -> (String, Outcome) {
    bench.offer(manner, tables);
    let job = Job { spec: RunSpec { load: Some(vus(1, 600_000)), ..job(manner).spec }, ..job(manner) };
    let outcome = run(bench, &job).await;
    match outcome.ended.clone() {
        Ended::Failed { reason, cause: reported } => {
            assert_eq!(reported, cause, "{reason}");
            (reason, outcome)
        }
        ended => panic!("{manner} ended as {ended:?}: {}", outcome.generator_log),
    }
}

fn requests(outcome: &Outcome) -> u64 {
    count(outcome, "http_reqs").expect("a count")
}

/// Returns a counter of the summary; k6 omits those that never counted.
fn count(outcome: &Outcome, metric: &str) -> Option<u64> {
    let summary = outcome.summary.as_deref().expect("a summary");
    let summary: serde_json::Value = serde_json::from_str(summary).expect("JSON");
    summary["metrics"][metric]["count"].as_u64()
}

#[tokio::test]
async fn a_run_enters_all_phases_and_returns_everything() {
    let Some(bench) = Bench::new("whole").await else { return };
    bench.offer("good", "[verify]\npath = \"/x\"\ncontains = \"ell\"");
    let (job, phases) = (job("good"), RefCell::new(Vec::new()));
    let started = Instant::now();
    let outcome =
        execute::run(&job, &bench.work, &CancellationToken::new(), |phase| phases.borrow_mut().push(phase)).await;
    println!("overhead: {} ms", started.elapsed().as_millis() - 1200);
    bench.assert_clean(job.run);

    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let expected = [Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting];
    assert_eq!(*phases.borrow(), expected);
    let times: Vec<Phase> = outcome.times.iter().map(|time| time.phase).collect();
    assert_eq!(times, [&expected[..], &[Phase::Finished]].concat());
    assert!(outcome.times.is_sorted_by_key(|time| time.at_ms) && outcome.sent_at_ms <= now_ms());
    assert!(requests(&outcome) > 0);
    for statistic in ["p(99)", "p(99.9)", "count"] {
        assert!(outcome.summary.as_deref().is_some_and(|text| text.contains(statistic)), "{statistic}");
    }
    assert!(outcome.target_log.starts_with("unruly is good\n"), "{}", outcome.target_log);
    assert!(outcome.generator_log.contains("http_req_duration"), "{}", outcome.generator_log);
    let identity = outcome.target.as_ref().expect("an identity");
    assert_eq!((identity.kind(), identity.text().len()), (TargetKind::Process, "code:".len() + 64));
    assert_eq!(outcome.target_version, "1");
    for name in ["kernel.release", "k6.version", "target.command", "target.env.PATH", "target.sha256"] {
        assert!(outcome.environment.contains_key(name), "{name}: {:?}", outcome.environment);
    }
    let conditions = &outcome.conditions;
    assert_eq!((conditions.processes, conditions.processes_gone), (Some(1), Some(0)), "{conditions:?}");
    assert_eq!(conditions.response_change.as_deref(), Some(""));
    assert!(conditions.clock_jump_ms.is_some() && conditions.idle_wait.is_none(), "{conditions:?}");
    assert!(conditions.idle_memory_bytes.is_some_and(|bytes| bytes > 0), "{conditions:?}");
    let counters = conditions.counters.as_ref().expect("counters");
    // The unruly target serves each connection in a thread of its own, whose counts go with it.
    let lost = counters.missing.iter().any(|reason| reason.starts_with("context switches: threads that exited"));
    assert!(counters.voluntary_switches.is_some() != lost && counters.page_faults.is_some(), "{counters:?}");
    assert!(counters.instructions.is_some_and(|count| count > 0) || !counters.missing.is_empty(), "{counters:?}");
    let startup = conditions.startup_ms.expect("a start-up time");
    let preparing = (outcome.times[1].at_ms - outcome.times[0].at_ms) as f64;
    assert!(startup > 0.0 && startup <= preparing + 1.0, "{startup} of {preparing} ms");

    assert_eq!(outcome.enforced, bench.work.sandbox.mechanisms());
    if outcome.enforced.cpu.as_str() != "none" {
        let observed = outcome.observed.expect("observations");
        assert!(observed.cpu_us.is_some_and(|used| used > 0), "{observed:?}");
    }
    if bench.limits_memory() {
        let observed = outcome.observed.expect("observations");
        assert!(observed.peak_memory_bytes.is_some_and(|peak| peak > 0 && peak <= 64 << 20), "{observed:?}");
        assert_eq!(observed.oom_kills, Some(0));
    }
}

#[tokio::test]
async fn a_run_without_control_groups_works_and_reports_it() {
    let Some(bench) = Bench::unlimited("none").await else { return };
    bench.offer("parent", "");
    let outcome = run(&bench, &job("parent")).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!((outcome.enforced.cpu.as_str(), outcome.enforced.memory.as_str()), ("none", "none"));
    assert_eq!(outcome.observed, None);
}

#[tokio::test]
async fn a_child_that_ignores_sigterm_in_its_own_session_is_killed_with_the_target() {
    let Some(bench) = Bench::new("parent").await else { return };
    bench.offer("parent", "");
    let outcome = run(&bench, &job("parent")).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(outcome.target_log.contains("unruly is deaf"), "the child ran: {}", outcome.target_log);
}

#[tokio::test]
async fn a_target_that_refuses_sigterm_is_killed() {
    let Some(bench) = Bench::new("stubborn").await else { return };
    bench.offer("stubborn", "");
    let outcome = run(&bench, &job("stubborn")).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
}

#[tokio::test]
async fn a_target_that_never_listens_is_a_failure() {
    let Some(bench) = Bench::new("deaf").await else { return };
    let (reason, outcome) = failure(&bench, "deaf", "timeout_s = 0.3", Cause::TargetNotReady).await;
    let expected = "target deaf: no response to GET / with status 200 within 0.3 s: connections are refused; \
        raise ready.timeout_s if it starts slowly";
    assert_eq!(reason, expected);
    assert!(outcome.target_log.contains("unruly is deaf"));
    assert_eq!(outcome.enforced, bench.work.sandbox.mechanisms());
}

#[tokio::test]
async fn a_target_that_exits_at_its_start_is_a_failure_with_its_last_output() {
    let Some(bench) = Bench::new("dead").await else { return };
    let (reason, _) = failure(&bench, "dead", "", Cause::TargetDied).await;
    let expected = "target dead: exited before it was ready: exit status 3; \
                     last output: unruly is dead | no reason to live";
    assert_eq!(reason, expected);
}

#[tokio::test]
async fn failures_are_counted_each_second_whatever_system_tags_a_script_chooses() {
    let Some(bench) = Bench::new("tags").await else { return };
    bench.offer("breaking", "");
    let script = "import http from 'k6/http'; export const options = { systemTags: ['method'] };\n\
                  export default function () { http.get(`${__ENV.BASE_URL}/`); }";
    let outcome = run(
        &bench,
        &Job {
            scenario: scenario(script),
            spec: RunSpec { warm_up_s: Some(0.0), ..job("breaking").spec },
            ..job("breaking")
        },
    )
    .await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let series = outcome.series.expect("a series").unpack().expect("a series");
    let failed: u64 = series.measured.expect("a window").seconds.iter().map(|second| second.failed.total()).sum();
    assert!(failed > 0, "all requests after the first ones fail");
}

#[tokio::test]
async fn a_target_that_exits_after_its_first_answer_is_a_failure_with_its_last_output() {
    let Some(bench) = Bench::new("brief").await else { return };
    let (reason, _) = failure(&bench, "brief", "", Cause::TargetDied).await;
    let expected = "target brief: exited before it was ready: exit status 6; \
                     last output: unruly is brief | one answer is enough";
    assert_eq!(reason, expected);
}

#[tokio::test]
async fn a_target_that_goes_into_the_background_is_a_failure_with_the_remedy() {
    let Some(bench) = Bench::new("daemon").await else { return };
    let (reason, _) = failure(&bench, "daemon", "", Cause::TargetDied).await;
    assert!(reason.contains("exited before it was ready: exit status 0; last output: unruly is"), "{reason}");
    assert!(reason.ends_with("; if it went into the background, keep it in the foreground"), "{reason}");
}

#[tokio::test]
async fn a_target_that_exits_during_the_load_ends_the_run_at_once() {
    let Some(bench) = Bench::new("mortal").await else { return };
    bench.offer("mortal", "");
    let load = vus(1, 600_000);
    let outcome = run(
        &bench,
        &Job { spec: RunSpec { load: Some(load), warm_up_s: Some(0.0), ..job("mortal").spec }, ..job("mortal") },
    )
    .await;
    let Ended::Failed { reason, cause: Cause::TargetDied } = outcome.ended else { panic!("{:?}", outcome.ended) };
    let expected = "target mortal exited during the measurement: exit status 4; \
                     last output: unruly is mortal | enough of this";
    assert_eq!(reason, expected);
    assert_eq!(outcome.summary, None);
}

#[tokio::test]
async fn a_target_that_answers_500_is_never_ready() {
    let Some(bench) = Bench::new("broken").await else { return };
    let (reason, _) = failure(&bench, "broken", "timeout_s = 0.3", Cause::TargetNotReady).await;
    assert!(reason.ends_with("within 0.3 s: last status 500"), "{reason}");
}

#[tokio::test]
async fn a_response_that_differs_from_the_manifest_is_a_failure() {
    let Some(bench) = Bench::new("verify").await else { return };
    let tables = "[verify]\npath = \"/hash\"\ncontains = \"hash\"";
    let (reason, _) = failure(&bench, "good", tables, Cause::TargetNotReady).await;
    let expected = "target good: the body of GET /hash does not contain \"hash\"; it starts with \"hello\"";
    assert_eq!(reason, expected);
}

/// Takes the first `times` ports of a `beaten` target before it can listen on them. Returns the taken ports, in order,
/// at `end`.
async fn take_ports(folder: &Path, times: usize, end: &CancellationToken) -> Vec<TcpListener> {
    let mut taken = Vec::new();
    let mut answered = BTreeSet::new();
    while !end.is_cancelled() {
        let names = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.file_name());
        let ports: BTreeSet<u16> =
            names.filter_map(|name| name.to_str()?.strip_prefix("asked-")?.parse().ok()).collect();
        for port in ports.difference(&answered) {
            if taken.len() < times {
                taken.push(TcpListener::bind(("127.0.0.1", *port)).expect("a free port"));
            }
            std::fs::write(folder.join(format!("answered-{port}")), "").expect("a file");
        }
        answered.extend(ports);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    taken
}

async fn run_without_port(bench: &Bench, times: usize) -> (Outcome, Vec<TcpListener>) {
    bench.offer("beaten", "[sandbox]\nwrite = [\".\"]");
    user::give(&bench.work.targets, ProgramRole::Target).expect("a folder of the target");
    let (job, end) = (job("beaten"), CancellationToken::new());
    let run = async {
        let outcome = run(bench, &job).await;
        end.cancel();
        outcome
    };
    tokio::join!(run, take_ports(&bench.work.targets, times, &end))
}

#[tokio::test]
async fn a_target_that_loses_its_port_gets_another_one() {
    let Some(bench) = Bench::new("port").await else { return };
    let (outcome, taken) = run_without_port(&bench, 1).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(taken.len(), 1);
    assert!(requests(&outcome) > 0);
}

#[tokio::test]
async fn a_target_that_loses_every_port_fails_with_the_reason() {
    let Some(bench) = Bench::new("ports").await else { return };
    let (outcome, taken) = run_without_port(&bench, 9).await;
    let Ended::Failed { reason, .. } = &outcome.ended else { panic!("{outcome:?}") };
    let [_, second] = taken.as_slice() else { panic!("{taken:?}: expected two attempts") };
    let port = second.local_addr().expect("bound").port();
    assert!(reason.starts_with(&format!("target beaten: port {port} is served by another process; ")), "{reason}");
}

#[tokio::test]
async fn a_target_that_runs_out_of_memory_is_reported() {
    let Some(bench) = Bench::new("memory").await.filter(Bench::limits_memory) else { return };
    let (reason, outcome) = failure(&bench, "hungry-at-start", "", Cause::TargetOutOfMemory).await;
    assert!(reason.contains("exited before it was ready: OOM-killed"), "{reason}");
    assert!(outcome.observed.and_then(|observed| observed.oom_kills).is_some_and(|kills| kills > 0));
    let (reason, _) = failure(&bench, "hungry", "", Cause::TargetOutOfMemory).await;
    assert!(reason.starts_with("target hungry exited ") && reason.contains("OOM-killed"), "{reason}");
}

#[tokio::test]
async fn a_worker_replaced_during_the_measurement_is_detected() {
    for bench in [Bench::new("restarting").await, Bench::unlimited("restarting too").await] {
        let Some(bench) = bench else { return };
        bench.offer("restarting", "");
        let outcome =
            run(&bench, &Job { spec: RunSpec { warm_up_s: Some(0.0), ..job("restarting").spec }, ..job("restarting") })
                .await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        assert_eq!((outcome.conditions.processes, outcome.conditions.processes_gone), (Some(2), Some(1)));
    }
}

#[tokio::test]
async fn a_response_that_differs_after_the_load_is_described() {
    const VERIFY: &str = "[verify]\npath = \"/\"\ncontains = \"hello\"";
    let Some(bench) = Bench::new("fickle").await else { return };
    // Kept in what the manifest verifies and in type and length, a text may change.
    let cases = [
        (
            "fickle",
            "",
            "",
            Some("the body of GET / has 5 bytes and starts with \"sorry\", not 5 bytes that start with \"hello\""),
        ),
        ("fickle", VERIFY, "the body of GET / does not contain \"hello\"; it starts with \"sorry\"", None),
        (
            "excusing",
            "",
            "the body of GET / has 27 bytes and starts with \"sorry, the database is gone\", not 5 bytes that start with \
             \"hello\"",
            None,
        ),
        ("breaking", "", "GET / returned status 500, expected 200", None),
        ("various", "", "", None),
        ("good", VERIFY, "", Some("")),
    ];
    // At most 50 requests in the warm-up, which is long enough to detect time-dependent responses, then 150 more.
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { vus: 1, iterations: 150 };
        export default function () { http.get(__ENV.BASE_URL); sleep(0.022); }";
    for (manner, tables, of_kind, of_text) in cases {
        bench.offer(manner, tables);
        let slow = Job {
            scenario: scenario(script),
            spec: RunSpec { load: Some(Load::Script), warm_up_s: Some(1.1), ..job(manner).spec },
            ..job(manner)
        };
        let outcome = run(&bench, &slow).await;
        assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
        let Conditions { response_change, response_text_change, .. } = outcome.conditions;
        assert_eq!((response_change.as_deref(), response_text_change.as_deref()), (Some(of_kind), of_text), "{manner}");
    }
}

#[tokio::test]
async fn a_busy_machine_is_reported_and_the_run_continues() {
    let Some(mut bench) = Bench::new("neighbour").await else { return };
    bench.offer("good", "");
    bench.work.idle_wait = IdleWait { limit_cores: 0.05, longest: Duration::from_millis(300) };
    let mut command = std::process::Command::new("sh");
    let mut neighbour = command.args(["-c", "while :; do :; done"]).spawn().expect("a shell");
    let outcome = run(&bench, &job("good")).await;
    neighbour.kill().and_then(|()| neighbour.wait()).expect("an exit status");
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let idle_wait = outcome.conditions.idle_wait.expect("an idle wait");
    assert!(!idle_wait.idle && idle_wait.waited_ms >= 300 && idle_wait.busy_cores > 0.05, "{idle_wait:?}");
}

#[tokio::test]
async fn a_size_that_the_machine_does_not_have_is_refused() {
    let Some(bench) = Bench::new("size").await else { return };
    bench.offer("good", "");
    for (vcpus, memory_bytes, word) in [(4096.0, 1 << 20, "4096 vCPUs"), (1.0, 1 << 60, "MiB"), (f64::NAN, 1, "vCPUs")]
    {
        let mut job = job("good");
        job.spec.size = job.spec.size.map(|size| Size { vcpus, memory_bytes, ..size });
        let Ended::Failed { reason, cause: Cause::Other } = run(&bench, &job).await.ended else { panic!("it ran") };
        assert!(reason.starts_with("the size ") && reason.contains(word), "{reason}");
    }
}

#[tokio::test]
async fn an_unknown_target_is_refused_and_broken_manifests_are_named() {
    let Some(bench) = Bench::new("unknown").await else { return };
    std::fs::write(bench.work.targets.join("odd.toml"), "nam = 1").expect("a file");
    let Ended::Failed { reason, .. } = run(&bench, &job("odd")).await.ended else { panic!("it ran") };
    assert!(reason.contains("no target \"odd\"") && reason.contains("odd.toml: "), "{reason}");
}

#[tokio::test]
async fn options_thresholds_files_and_parameters_of_a_script_are_used() {
    let Some(bench) = Bench::new("options").await else { return };
    bench.offer("good", "");
    let script = "import http from 'k6/http';
        const paths = JSON.parse(open('./paths.json'));
        export const options = {
            scenarios: { only: { executor: 'shared-iterations', vus: 2, iterations: 7, exec: 'visit', maxDuration: '9s' } },
            thresholds: { http_reqs: ['count<1'] },
        };
        export function visit() { http.get(`${__ENV.BASE_URL}${paths[0]}?${__ENV.WHAT}${__ENV.MORE}${__ENV.PATH}`); }
        export function handleSummary(data) {
            return { stdout: 'own summary ' + __ENV.WHAT + __ENV.MORE + __ENV.PATH, 'left.txt': 'x' };
        }";
    let mut job =
        Job { spec: RunSpec { load: Some(Load::Script), warm_up_s: Some(0.0), ..job("good").spec }, ..job("good") };
    job.scenario = scenario(script).with_file("paths.json", "[\"/a\"]");
    job.scenario = job.scenario.with_default("WHAT", "default ").with_default("MORE", "more ");
    job.spec.parameters = [("WHAT".to_owned(), "given ".to_owned())].into();
    let outcome = run(&bench, &job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert_eq!(requests(&outcome), 7);
    assert!(outcome.generator_log.contains("own summary given more undefined"), "{}", outcome.generator_log);
}

#[tokio::test]
async fn the_warm_up_of_a_scripts_own_load_is_cut_short() {
    let Some(bench) = Bench::new("warm").await else { return };
    bench.offer("good", "");
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { vus: 1, duration: '1s' };
        export default function () { http.get(__ENV.BASE_URL); sleep(0.4); }";
    let mut job = Job { spec: RunSpec { load: Some(Load::Script), ..job("good").spec }, ..job("good") };
    job.scenario = scenario(script);
    let started = Instant::now();
    let outcome = run(&bench, &job).await;
    println!("1 s of a script's own load after 0.2 s of warm-up took {} ms", started.elapsed().as_millis());
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!((1..=4).contains(&requests(&outcome)), "{}", requests(&outcome));
}

#[tokio::test]
async fn a_rate_in_stages_starts_the_iterations_of_its_shape() {
    let Some(bench) = Bench::new("stages").await else { return };
    bench.offer("good", "");
    let stages = [(1_000, 20), (1_000, 20), (0, 10), (500, 10)];
    let stages = stages.map(|(duration_ms, target)| Stage { duration_ms, target }).to_vec();
    let load = Load::Open(Open::new(Form::Stages(stages), None).expect("a load"));
    assert_eq!(load.iterations(), Some(35.0));
    let outcome = run(&bench, &Job { spec: RunSpec { load: Some(load), ..job("good").spec }, ..job("good") }).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let (done, dropped) = (count(&outcome, "iterations").expect("a count"), count(&outcome, "dropped_iterations"));
    assert!(done <= 36, "{done}");
    // k6 rounds by one iteration.
    assert!((34..=36).contains(&(done + dropped.unwrap_or(0))), "{done} done, {dropped:?} dropped");
    assert_eq!(requests(&outcome), done);
}

#[tokio::test]
async fn iterations_without_a_free_virtual_user_are_dropped() {
    let Some(bench) = Bench::new("dropped-iterations").await else { return };
    bench.offer("good", "");
    let form = Form::Constant { level: 20, duration_ms: 1_000 };
    let load = Load::Open(Open::new(form, Some(1)).expect("a load"));
    let mut job = Job { spec: RunSpec { load: Some(load), warm_up_s: Some(0.0), ..job("good").spec }, ..job("good") };
    job.scenario = scenario(
        "import http from 'k6/http'; import { sleep } from 'k6';
        export default function () { http.get(__ENV.BASE_URL); sleep(0.4); }",
    );
    let outcome = run(&bench, &job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let (done, dropped) = (count(&outcome, "iterations").expect("a count"), count(&outcome, "dropped_iterations"));
    assert!((1..=3).contains(&done), "{done}");
    assert!((20..=21).contains(&(done + dropped.expect("some"))), "{done} done, {dropped:?} dropped");
}

#[tokio::test]
async fn a_load_replaces_only_the_load_of_a_script() {
    let Some(bench) = Bench::new("kept").await else { return };
    bench.offer("good", "");
    let script = "import http from 'k6/http'; import exec from 'k6/execution';
        export const options = {
            scenarios: { own: { executor: 'shared-iterations', vus: 1, iterations: 1, exec: 'other', maxDuration: '9s' } },
            thresholds: { http_reqs: ['count<1'] },
        };
        export function setup() { return { word: 'from setup' }; }
        export function other(data) {
            http.get(__ENV.BASE_URL);
            if (data.word !== 'from setup') exec.test.abort('no setup');
            if (exec.instance.vusActive > 2) exec.test.abort('too many');
        }
        export function teardown(data) { console.log(`torn down ${data.word}`); }
        export function handleSummary(data) {
            return { stdout: 'crossed: ' + !data.metrics.http_reqs.thresholds['count<1'].ok };
        }";
    let stages = [(500, 2), (500, 0)].map(|(duration_ms, target)| Stage { duration_ms, target }).to_vec();
    let load = Load::Closed(Closed::new(Form::Stages(stages)).expect("a load"));
    let mut job = Job { spec: RunSpec { load: Some(load), ..job("good").spec }, ..job("good") };
    job.scenario = scenario(script);
    let outcome = run(&bench, &job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    assert!(requests(&outcome) > 1, "{outcome:?}");
    for words in ["torn down from setup", "crossed: true"] {
        assert!(outcome.generator_log.contains(words), "{words}: {}", outcome.generator_log);
    }
}

#[tokio::test]
async fn scripts_rejected_by_k6_are_failures_with_its_message() {
    let Some(bench) = Bench::new("scripts").await else { return };
    bench.offer("good", "");
    let cases = [
        ("export default function () {", Load::Script, "k6 failed: the script threw an exception (exit status 107): "),
        ("export function other() {}", vus(1, 1000), "function 'default' not found in exports"),
        ("import x from 'k6/x/y'; export default () => {}", vus(1, 1000), "k6/x/y"),
    ];
    for (script, load, words) in cases {
        let mut job =
            Job { spec: RunSpec { load: Some(load), warm_up_s: Some(0.0), ..job("good").spec }, ..job("good") };
        job.scenario = scenario(script);
        let ended = run(&bench, &job).await.ended;
        let Ended::Failed { reason, cause: Cause::Script } = ended else { panic!("{script}: {ended:?}") };
        assert!(reason.contains(words), "{script}: {reason}");
    }
}

#[tokio::test]
async fn k6_inspects_a_script_and_reports_errors() {
    let Some(bench) = Bench::new("looks").await else { return };
    let good = "const paths = JSON.parse(open('./paths.json'));
        export const options = { scenarios: { a: { executor: 'per-vu-iterations', exec: 'visit', vus: paths.length } } };
        if (__ENV.WHAT !== 'default') throw new Error('no parameter');
        if (__ENV.PATH || __ENV.HOME) throw new Error('the environment of the agent');
        export function visit() {}";
    let cases = [
        (good, ""),
        ("export default function () {", "Unexpected end of input"),
        ("export const options = { scenarios: { a: { executor: 'loud' } } }; export default () => {}", "'loud'"),
        ("export function other() {}", "function 'default' not found in exports"),
        ("import x from 'k6/x/y'; export default () => {}", "k6/x/y"),
        (
            "export const options = { duration: `${__ENV.D}`, vus: 1 }; export default () => {}",
            "; set D: the script reads it in its options",
        ),
    ];
    for (script, words) in cases {
        let scenario = scenario(script).with_file("paths.json", "[1, 2]").with_default("WHAT", "default");
        let id = RunId::now();
        match inspect(id.0, &scenario, &bench.work, &CancellationToken::new()).await {
            Finding::Valid(_) => assert_eq!(words, "", "{script}"),
            Finding::Invalid { message } => {
                assert!(!words.is_empty() && message.contains(words), "{script}: {message}");
            }
            Finding::Declined { reason } => panic!("{reason}"),
        }
        bench.assert_clean(id);
    }
}

#[tokio::test]
async fn the_inspection_of_an_endless_script_is_cancelled_at_once() {
    let Some(bench) = Bench::new("endless").await else { return };
    let (id, scenario, cancel) = (RunId::now(), scenario("while (true);"), CancellationToken::new());
    let inspecting = inspect(id.0, &scenario, &bench.work, &cancel);
    let cancelling = async {
        while processes_with(&id.to_string()).is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (finding, ()) = tokio::join!(inspecting, cancelling);
    assert!(matches!(finding, Finding::Declined { .. }), "{finding:?}");
    bench.assert_clean(id);
}

#[tokio::test]
async fn cancelling_ends_a_run_in_every_phase() {
    let Some(bench) = Bench::new("cancel").await else { return };
    bench.offer("good", "");
    bench.offer("stubborn", "");
    bench.offer("deaf", "timeout_s = 600");
    bench.offer("exhausted", "");
    let cases = [
        ("deaf", Phase::Preparing),
        ("stubborn", Phase::WarmingUp),
        ("good", Phase::Measuring),
        ("exhausted", Phase::Collecting),
    ];
    for (target, at) in cases {
        let length_ms = if at == Phase::Collecting { 1_000 } else { 600_000 };
        let mut job = Job { spec: RunSpec { load: Some(vus(1, length_ms)), ..job(target).spec }, ..job(target) };
        if at == Phase::WarmingUp {
            job.spec.warm_up_s = Some(600.0);
        }
        let cancel = CancellationToken::new();
        let (entered, mut phases) = tokio::sync::mpsc::unbounded_channel();
        let work = execute::run(&job, &bench.work, &cancel, |phase| entered.send(phase).expect("a listener"));
        let cancelled = async {
            while phases.recv().await != Some(at) {}
            while processes_with(&job.run.to_string()).is_empty() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            cancel.cancel();
            Instant::now()
        };
        tokio::pin!(work);
        let cancelled = tokio::select! {
            outcome = &mut work => panic!("{at:?} was never cancelled: {outcome:?}"),
            cancelled = cancelled => cancelled,
        };
        let outcome = work.await;
        println!("cancelled {at:?} within {} ms", cancelled.elapsed().as_millis());
        bench.assert_clean(job.run);
        assert_eq!(outcome.ended, Ended::Cancelled);
        assert!(at == Phase::Preparing || outcome.target_log.contains("unruly is"), "{at:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn a_dropped_run_leaves_nothing_behind() {
    let Some(bench) = Bench::new("dropped").await else { return };
    bench.offer("parent", "");
    let job = Job {
        spec: RunSpec { load: Some(vus(1, 600_000)), warm_up_s: Some(0.0), ..job("parent").spec },
        ..job("parent")
    };
    let (entered, mut phases) = tokio::sync::mpsc::unbounded_channel();
    let cancel = CancellationToken::new();
    tokio::select! {
        outcome = execute::run(&job, &bench.work, &cancel, |phase| entered.send(phase).expect("a listener")) => {
            panic!("{outcome:?}")
        }
        () = async { while phases.recv().await != Some(Phase::Measuring) {} } => {}
    }
    bench.assert_clean(job.run);
}
