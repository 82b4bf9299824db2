//! What a run counts is its load: requests are equal to those that the target counted, to the request, and rates are
//! over the time of the load, whatever `setup()`, `teardown()` and waits of iterations do. With a real k6.

use brewbench_agent::run::execute;
use brewbench_testing::Counter;
use brewbench_wire::job::Job;
use brewbench_wire::load::{Form, Load, Open, Stage};
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use brewbench_wire::reports::read::parse;
use brewbench_wire::reports::summary::{Figures, Summary};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::series::{Second, Window};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, scenario, vus};

const IMPORTS: &str = "import http from 'k6/http'; import { check, group, sleep } from 'k6'; import exec from 'k6/execution';\n\
                       const get = (path) => http.get(`${__ENV.BASE_URL}${path}`);\n";

/// A finished run.
struct Done {
    target: Counter,
    outcome: Outcome,
    summary: Summary,
    figures: Figures,
    window: Window,
}

async fn run_on(target: &Counter, script: &str, load: Load) -> Option<Outcome> {
    let bench = Bench::new(&format!("alone {}", target.base.rsplit(':').next().unwrap_or_default())).await?;
    let manifest = format!(
        "name = \"counter\"\nversion = \"1\"\n[url]\nbase = \"{}\"\n[ready]\npath = \"/\"\ntimeout_s = 5\n",
        target.base
    );
    std::fs::write(bench.work.targets.join("counter.toml"), manifest).expect("a manifest");
    let script = scenario(&format!("{IMPORTS}{script}"));
    let job = Job {
        scenario: script,
        spec: RunSpec { warm_up_s: Some(0.0), load: Some(load), ..job("counter").spec },
        ..job("counter")
    };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    Some(outcome)
}

/// Runs a script, and checks what holds for every one: requests of the load are those that the target counted.
async fn run(script: &str, load: Load) -> Option<Done> {
    let target = Counter::start();
    let outcome = run_on(&target, script, load).await?;
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
    let summary = parse(outcome.summary.as_deref().expect("a summary").as_bytes()).expect("k6's own");
    let figures = summary.figures_over(outcome.conditions.load_time);
    let window = outcome.series.as_ref().and_then(|packed| packed.unpack().ok()?.measured).expect("a series");
    let counted = target.count("/load");
    assert_eq!(figures.requests, counted, "{script}");
    assert_eq!(figures.failed, Some(target.count("/load/bad")), "{script}");
    let in_series: u64 = window.seconds.iter().map(Second::requests).sum();
    assert_eq!(in_series, counted, "{script}");
    let statuses = outcome.work.statuses.as_ref().expect("statuses");
    assert_eq!(statuses.values().sum::<u64>(), counted, "{statuses:?}");
    assert!(outcome.work.new_connections.is_some_and(|opened| opened <= counted), "{:?}", outcome.work);
    assert!(summary.metrics.keys().all(|name| !name.contains("brewbench")), "{:?}", summary.metrics.keys());
    Some(Done { target, outcome, summary, figures, window })
}

impl Done {
    /// Asserts the time of the load, by the definition: at least this, and at most a report of k6 more.
    fn lasted(&self, at_least_ms: f64, at_most_ms: f64) {
        let ms = self.figures.measured_ms;
        println!("{ms} ms; by k6 {:.1} ms", self.summary.figures().measured_ms);
        assert!((at_least_ms..=at_most_ms).contains(&ms), "{ms} ms: {:?}", self.outcome.conditions.load_time);
        let time = self.outcome.conditions.load_time.expect("a time");
        let rate = (self.figures.requests - time.late_requests) as f64 / ms * 1e3;
        assert!((self.figures.rps - rate).abs() < 1e-9);
    }
}

fn rate(rate: u32, duration_ms: u64, max_vus: u32) -> Load {
    Load::Open(Open::new(Form::Constant { level: rate, duration_ms }, Some(max_vus)).expect("a load"))
}

/// Margin for the start of iterations, and for messages of k6, on a busy machine.
const SLACK_MS: f64 = 900.0;

#[tokio::test]
async fn requests_and_time_of_setup_and_teardown_are_not_of_the_load() {
    let script = "export async function setup() {\n  \
                    for (let i = 0; i < 7; i += 1) check(await http.asyncRequest('GET', `${__ENV.BASE_URL}/setup`), { seeded: () => false });\n  \
                    sleep(2);\n  return 5;\n}\n\
                  export default function (five) { group('setup', () => check(get('/load'), { ok: () => five === 5 })); sleep(0.05); }\n\
                  export function teardown() { get('/teardown'); sleep(2); }";
    let Some(done) = run(script, vus(2, 2_000)).await else { return };
    assert_eq!((done.target.count("/setup"), done.target.count("/teardown")), (7, 1));
    done.lasted(2_000.0, 2_000.0 + SLACK_MS);
    assert_eq!(done.figures.checks_failed, Some(0), "setup's checks are not of the load");
    assert_eq!(done.figures.checks_passed, Some(done.figures.requests));
    assert_eq!(done.figures.iterations, Some(done.figures.requests));
    let length_ms = done.window.seconds.last().map_or(0, |second| second.until_ms);
    assert!(length_ms < 4_000, "{length_ms} ms: no second of setup or teardown");
    let first = &done.window.seconds[0];
    assert!(first.requests() > 0, "the series starts with the load: {:?}", done.window.seconds);
    let usage = &done.window.usage;
    assert!(usage.len() >= 2 && usage[1].at_ms > 0 && usage[0].at_ms <= 1_000, "{usage:?}");
    let count = done.summary.metrics["http_reqs"].values["count"];
    assert!((count - done.figures.requests as f64).abs() < 0.5, "{count}: {:?}", done.figures);
}

#[tokio::test]
async fn waits_of_iterations_are_not_of_the_load() {
    // One iteration per virtual user, which is interrupted half a minute after the regular end.
    let script = "export const options = { scenarios: { slow: { executor: 'constant-vus', vus: 2, duration: '3s', gracefulStop: '1s' } } };\n\
                  export default function () { get('/load'); sleep(60); }";
    let Some(done) = run(script, Load::Script).await else { return };
    assert_eq!(done.figures.requests, 2);
    done.lasted(3_000.0 - SLACK_MS, 3_000.0 + SLACK_MS);
    // The last iterations end two seconds after the load.
    let Some(done) = run("export default function () { get('/load'); sleep(2); }", rate(20, 2_000, 60)).await else {
        return;
    };
    done.lasted(2_000.0, 2_000.0 + SLACK_MS);
    assert!((19.0..=21.0).contains(&done.figures.rps) || done.figures.requests < 40, "{:?}", done.figures);
}

#[tokio::test]
async fn requests_after_the_load_count_but_not_for_the_rate() {
    let script = "export default function () { get('/load/first'); sleep(4); get('/load/last'); }";
    let Some(done) = run(script, vus(2, 1_000)).await else { return };
    let time = done.outcome.conditions.load_time.expect("a time");
    assert_eq!((done.figures.requests, time.late_requests), (4, 2), "{time:?}");
    done.lasted(1_000.0, 3_000.0);
}

#[tokio::test]
async fn a_scripts_own_load_is_separated_in_every_form() {
    let around = "export function setup() { get('/setup'); sleep(1); }\n\
                  export default function () { get(exec.vu.iterationInScenario % 5 ? '/load' : '/load/bad'); sleep(0.05); }\n\
                  export const other = () => { get(`/load/${__ENV.KIND}`); sleep(0.05); };\n\
                  export function teardown() { get('/teardown'); }\n";
    let forms = [
        ("{ vus: 2, duration: '1s' }", 1_000.0),
        ("{ vus: 2, iterations: 8 }", 0.0),
        ("{ stages: [{ duration: '1s', target: 3 }] }", 1_000.0),
        ("{}", 0.0),
        (
            "{ thresholds: { http_req_duration: ['p(95)<5000'], 'http_reqs{scenario:a}': ['count>0'] }, scenarios: {\n  \
               a: { executor: 'constant-arrival-rate', rate: 20, duration: '1s', preAllocatedVUs: 4, tags: { of: 'a' } },\n  \
               b: { executor: 'per-vu-iterations', vus: 2, iterations: 3, exec: 'other', env: { KIND: 'b' }, startTime: '500ms' } } }",
            1_000.0,
        ),
    ];
    for (options, at_least_ms) in forms {
        let Some(done) = run(&format!("export const options = {options};\n{around}"), Load::Script).await else {
            return;
        };
        assert_eq!((done.target.count("/setup"), done.target.count("/teardown")), (1, 1), "{options}");
        // The times of a script's own load are those at which k6's messages arrive.
        done.lasted((at_least_ms - SLACK_MS).max(0.0), at_least_ms + 1_000.0 + SLACK_MS);
        let expected = if options.contains("thresholds") { Some(2) } else { Some(0) };
        assert_eq!(done.figures.thresholds, expected, "{options}");
        assert_eq!(done.figures.iterations, Some(done.figures.requests), "{options}");
    }
}

#[tokio::test]
async fn an_ordinary_script_has_the_time_that_k6_reports() {
    let Some(done) = run("export default function () { get('/load'); }", vus(2, 2_000)).await else { return };
    let by_k6 = done.summary.figures();
    assert!((by_k6.measured_ms - done.figures.measured_ms).abs() < 100.0, "{by_k6:?} {:?}", done.figures);
    let stages = vec![Stage { duration_ms: 1_000, target: 3 }, Stage { duration_ms: 1_000, target: 0 }];
    let ramp = Load::Open(Open::new(Form::Stages(stages), Some(5)).expect("a load"));
    let Some(done) = run("export default function () { get('/load'); }", ramp).await else { return };
    done.lasted(2_000.0, 2_000.0 + SLACK_MS);
}

#[tokio::test]
async fn a_replaced_load_runs_the_scenario_of_the_script() {
    let script = "export const options = { scenarios: { spike: { executor: 'per-vu-iterations', exec: 'read', env: { SIZE: '100k' }, tags: { kind: 'x' } } },\n  \
                    thresholds: { 'http_reqs{scenario:spike,kind:x}': ['count>0'] } };\n\
                  const flows = { spike: () => get(`/load/${__ENV.SIZE}`) };\n\
                  export function read() { flows[exec.scenario.name](); sleep(0.05); }";
    let Some(done) = run(script, vus(1, 1_000)).await else { return };
    assert_eq!(done.target.count("/load/100k"), done.figures.requests);
    assert!(done.figures.requests > 1 && done.figures.thresholds_failed == Some(0), "{:?}", done.figures);
    let named = &done.summary.metrics["http_reqs{scenario:spike,kind:x}"];
    assert!((named.values["count"] - done.figures.requests as f64).abs() < 0.5, "{named:?}");
}

#[tokio::test]
async fn scenarios_that_differ_are_refused_before_the_target_is_loaded() {
    let script = "export const options = { scenarios: {\n  \
                    browse: { executor: 'constant-vus', vus: 1, duration: '1s' },\n  \
                    buy: { executor: 'constant-vus', vus: 1, duration: '1s', exec: 'buy' } } };\n\
                  export default function () { get('/load'); }\nexport function buy() { get('/load/buy'); }";
    let target = Counter::start();
    let Some(outcome) = run_on(&target, script, vus(1, 1_000)).await else { return };
    let Ended::Failed { reason, cause: Cause::Script } = outcome.ended else { panic!("{:?}", outcome.ended) };
    let expected =
        "the script has 2 scenarios that differ (browse, buy): choose one of them, or run it with its own load";
    assert_eq!(reason, expected);
    assert_eq!(target.count("/load"), 0);
    let Some(done) = run(script, Load::Script).await else { return };
    assert!(done.target.count("/load/buy") > 0 && done.figures.requests > done.target.count("/load/buy"));
}
