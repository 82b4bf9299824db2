//! What a real k6 reports about its load besides its metrics.

use brewbench_agent::run::execute;
use brewbench_wire::job::Job;
use brewbench_wire::load::Load;
use brewbench_wire::load_record::LoadRecord;
use brewbench_wire::outcome::{Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, scenario, vus};

async fn run(bench: &Bench, script: &str, load: Load) -> (Outcome, LoadRecord) {
    bench.offer("good", "");
    let job = Job {
        scenario: scenario(script),
        spec: RunSpec { load: Some(load), warm_up_s: Some(0.0), ..job("good").spec },
        ..job("good")
    };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
    let record = outcome.conditions.load_record.clone().expect("a record");
    (outcome, record)
}

fn count(outcome: &Outcome, metric: &str) -> u64 {
    let summary: serde_json::Value =
        serde_json::from_str(outcome.summary.as_deref().expect("a summary")).expect("JSON");
    summary["metrics"][metric]["count"].as_u64().unwrap_or(0)
}

#[tokio::test]
async fn setup_load_and_teardown_are_timed_and_debug_messages_are_not_shown() {
    let Some(bench) = Bench::unlimited("times").await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export function setup() { sleep(1.2); }
        export function teardown() { sleep(0.7); }
        export default function () { http.get(__ENV.BASE_URL); sleep(0.05);
            if (__ITER === 0) { console.log('hello'); console.debug('quiet'); } }";
    let (outcome, record) = run(&bench, script, vus(2, 1_000)).await;
    let LoadRecord { setup_ms, regular_ms, load_ms, teardown_ms, .. } = record;
    // Far lower bounds only: a line that arrives late moves both of its neighbours.
    let [setup, regular, load, teardown] = [setup_ms, regular_ms, load_ms, teardown_ms].map(|ms| ms.expect("a time"));
    assert!(setup >= 600 && regular >= 500 && load >= regular && teardown >= 300, "{record:?}");
    let measuring = outcome.times.windows(2).find(|pair| pair[0].phase.as_str() == "measuring").expect("a phase");
    let start = record.load_start_ms.expect("a start");
    assert!((measuring[0].at_ms + 600..measuring[1].at_ms).contains(&start), "{record:?} {measuring:?}");
    assert_eq!((record.interrupted_iterations, record.cut_short), (Some(0), None));
    assert_eq!((record.exceptions.map(|all| all.count), record.errors.map(|all| all.count)), (Some(0), Some(0)));
    let log = &outcome.generator_log;
    assert!(log.contains("hello") && log.contains("http_req_duration"), "{log}");
    for noise in ["level=debug", "running (", "interrupted iterations", "execution: local", "____", "[ 100% ]"] {
        assert!(!log.contains(noise), "{noise}: {log}");
    }
    assert!(log.starts_with("time="), "no empty lines at the start: {log}");
}

#[tokio::test]
async fn exceptions_are_counted_exactly_with_their_place() {
    let Some(bench) = Bench::unlimited("exceptions").await else { return };
    let script = "import http from 'k6/http';
        export default function () { http.get(__ENV.BASE_URL);
            if (__ITER % 4 === 0) { throw new Error('basket ' + __ITER + ' is empty'); } }";
    let own = format!("export const options = {{ vus: 1, iterations: 40 }};\n{script}");
    let (outcome, record) = run(&bench, &own, Load::Script).await;
    let exceptions = record.exceptions.expect("exceptions");
    assert_eq!((exceptions.count, count(&outcome, "iterations")), (10, 40));
    let first = exceptions.first().expect("a message");
    assert_eq!((first.text.as_str(), first.count), ("Error: basket 0 is empty (script.js:4:43)", 10));
}

#[tokio::test]
async fn a_flood_of_output_is_read_to_its_end() {
    let Some(bench) = Bench::unlimited("flood").await else { return };
    let script = "const wide = 'x'.repeat(100000);
        export const options = { vus: 2, iterations: 20000 };
        export default function () { if (__ITER % 1000 === 0) { console.log(wide); }
            console.error('level=error executor=a scenario=s source=stacktrace'); null.x; }";
    let (_, record) = run(&bench, script, Load::Script).await;
    let exceptions = record.exceptions.expect("exceptions");
    assert_eq!((exceptions.count, exceptions.commonest.len()), (20_000, 1));
    assert!(record.load_ms.is_some() && record.interrupted_iterations == Some(0), "the end was read");
}

#[tokio::test]
async fn requests_without_a_response_are_counted_by_their_error() {
    let Some(bench) = Bench::unlimited("errors").await else { return };
    let script = "import http from 'k6/http';
        export const options = { vus: 1, iterations: 5 };
        export default function () { http.get(__ENV.BASE_URL); http.get('http://127.0.0.1:1/' + __ITER); }";
    let (_, record) = run(&bench, script, Load::Script).await;
    let errors = record.errors.expect("errors");
    assert_eq!(errors.count, 5, "{errors:?}");
    assert_eq!(errors.commonest.len(), 1, "{errors:?}");
}

#[tokio::test]
async fn interrupted_iterations_are_counted() {
    let Some(bench) = Bench::unlimited("interrupted").await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { scenarios: { a:
            { executor: 'constant-vus', vus: 3, duration: '1s', gracefulStop: '0s' } } };
        export default function () { http.get(__ENV.BASE_URL); sleep(60); }";
    let (_, record) = run(&bench, script, Load::Script).await;
    assert_eq!(record.interrupted_iterations, Some(3), "{record:?}");
}

#[tokio::test]
async fn a_load_cut_short_says_by_what() {
    let Some(bench) = Bench::unlimited("cut").await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { thresholds: { http_req_duration: [
            { threshold: 'p(95)<0.0001', abortOnFail: true, delayAbortEval: '1s' }], checks: ['rate>=0'] } };
        export default function () { http.get(__ENV.BASE_URL); sleep(0.05); }";
    let (_, record) = run(&bench, script, vus(2, 60_000)).await;
    assert_eq!(record.cut_short.as_deref(), Some("its threshold http_req_duration p(95)<0.0001 was crossed"));
    assert!(record.load_ms.is_some_and(|ms| ms < 60_000), "{record:?}");

    let script = "import http from 'k6/http'; import exec from 'k6/execution';
        export default function () { http.get(__ENV.BASE_URL); if (__ITER === 3) exec.test.abort('no more items'); }";
    for warm_up_s in [0.0, 5.0] {
        let job = Job {
            scenario: scenario(script),
            spec: RunSpec { load: Some(vus(1, 60_000)), warm_up_s: Some(warm_up_s), ..job("good").spec },
            ..job("good")
        };
        let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
        assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
        let why = outcome.conditions.load_record.and_then(|record| record.cut_short).expect("a reason");
        assert!(why.starts_with("the script aborted it: no more items (script.js:2:"), "{why}");
    }
}

#[tokio::test]
async fn a_scripts_own_limit_of_requests_is_reported() {
    let Some(bench) = Bench::unlimited("limit").await else { return };
    let script = |options: &str| {
        format!(
            "import http from 'k6/http'; export const options = {{ {options} }};
             export default function () {{ http.get(__ENV.BASE_URL); }}"
        )
    };
    let (_, record) = run(&bench, &script("rps: 20"), vus(1, 1_000)).await;
    assert_eq!(record.rps_limit, Some(20.0));
    let (_, record) = run(&bench, &script("rps: 20, vus: 1, iterations: 3"), Load::Script).await;
    assert_eq!(record.rps_limit, Some(20.0));
    let (_, record) = run(&bench, &script("tags: { unit: 'rps' }"), vus(1, 1_000)).await;
    assert_eq!(record.rps_limit, None);
}
