//! Series of runs with the installed k6.

use brewbench_agent::run::execute;
use brewbench_wire::histogram::Histogram;
use brewbench_wire::job::Job;
use brewbench_wire::outcome::{Conditions, Ended, Outcome};
use brewbench_wire::run_spec::RunSpec;
use brewbench_wire::series::{Gaps, Second, Series, Usage, Window};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, is_on_disk, job, scenario, vus};

/// One request in ten has an unexpected status; one page in a thousand has a unique URL; a threshold uses a system tag.
const SCRIPT: &str = "
    import http from 'k6/http';
    import { check, group } from 'k6';
    export const options = { thresholds: { 'http_req_duration{status:200}': ['max>0'] } };
    export default function () {
        const responseCallback = http.expectedStatuses(__ITER % 10 === 0 ? 404 : 200);
        const page = __ITER % 1000 === 0 ? __ITER : 0;
        group('pages', () => {
            check(http.get(`${__ENV.BASE_URL}/${page}`, { responseCallback }), { ok: r => r.status === 200 });
        });
    }";

async fn run(bench: &Bench, job: &Job) -> (Outcome, Series) {
    let outcome = execute::run(job, &bench.work, &CancellationToken::new(), |_| {}).await;
    bench.assert_clean(job.run);
    let series = outcome.series.as_ref().expect("a series").unpack().expect("unpacked");
    (outcome, series)
}

fn metric(outcome: &Outcome, name: &str) -> Value {
    let summary: Value = serde_json::from_str(outcome.summary.as_deref().expect("a summary")).expect("JSON");
    summary["metrics"][name].clone()
}

fn assert_agree(histogram: &Histogram, summary: &Value) {
    for (field, share) in [("med", 0.5), ("p(90)", 0.9), ("p(99)", 0.99), ("p(99.9)", 0.999), ("max", 1.0)] {
        let exact = summary[field].as_f64().expect(field);
        let found = histogram.quantile(share).expect(field);
        let hair = exact * 1e-9;
        assert!(found.low - hair <= exact && exact <= found.high + hair, "{field}: {exact} in {found:?}");
    }
}

#[tokio::test]
async fn the_series_of_a_run_agrees_with_its_summary() {
    let Some(bench) = Bench::new("series").await else { return };
    bench.offer("good", "");
    let job = Job {
        scenario: scenario(SCRIPT),
        spec: RunSpec { load: Some(vus(2, 3000)), warm_up_s: Some(1.0), ..job("good").spec },
        ..job("good")
    };
    let (outcome, series) = run(&bench, &job).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let Window { seconds, usage, gaps, .. } = series.measured.expect("a measured phase");
    assert_eq!(Gaps { missing_seconds: 0, doubled_seconds: 0, ..gaps }, Gaps::default());

    let used = outcome.conditions.core_use.expect("core usage");
    assert!(used.elapsed_us > 1_000_000 && used.target_us > 0 && used.generator_us > 0, "{used:?}");
    // Ticks and control groups differ by some hundredths of a second.
    assert!(used.busy_us + 300_000 > used.target_us + used.generator_us, "{used:?}");
    let network = outcome.conditions.network.clone().expect("network usage");
    assert_eq!((network.interface, network.peak_bits), (None, None), "the load stays within the machine");
    assert!(network.segments.is_some_and(|segments| segments > 0) && network.retransmitted.is_some());

    let requests: u64 = seconds.iter().map(Second::requests).sum();
    assert_eq!(requests, metric(&outcome, "http_reqs")["count"]);
    let failed: u64 = seconds.iter().map(|second| second.failed.total()).sum();
    assert_eq!(failed, metric(&outcome, "http_req_failed")["passes"].as_u64().expect("failures"));
    let succeeded: Histogram = seconds.iter().map(|second| &second.succeeded).sum();
    assert_agree(&succeeded, &metric(&outcome, "http_req_duration{expected_response:true}"));
    let all: Histogram = seconds.iter().flat_map(|second| [&second.succeeded, &second.failed]).sum();
    assert_agree(&all, &metric(&outcome, "http_req_duration"));
    assert!(seconds.iter().any(|second| second.vus == Some(2)), "{seconds:?}");

    let ok = metric(&outcome, "http_req_duration{status:200}");
    assert_eq!(ok["count"], requests, "the threshold keeps the tag: {ok}");
    let checks = metric(&outcome, "checks");
    assert_eq!(checks["passes"], requests, "{checks}");

    let cpu = |value: fn(&Usage) -> Option<u64>| usage.iter().filter_map(value).sum::<u64>();
    assert!(usage.len() >= 4, "{usage:?}");
    assert!(cpu(|usage| usage.target.cpu_us) > 0 && cpu(|usage| usage.generator.cpu_us) > 0, "{usage:?}");
    assert!(usage.iter().any(|usage| usage.target.threads >= Some(1) && usage.target.open_files >= Some(3)));
    assert!(usage.iter().any(|usage| usage.target.memory_bytes > Some(0)));
    assert!(usage.is_sorted_by_key(|usage| usage.at_ms));

    let warm_up = series.warm_up.expect("a warm-up");
    assert!(warm_up.seconds.iter().map(Second::requests).sum::<u64>() > 0, "{warm_up:?}");
    let size = outcome.series.expect("a series").as_bytes().len();
    assert!(size < 8 << 10, "{size} bytes for four seconds");
}

#[tokio::test]
async fn a_script_with_thousands_of_pages_has_a_complete_series() {
    let Some(bench) = Bench::new("series-pages").await else { return };
    bench.offer("good", "");
    let pages = "import http from 'k6/http';
        export default function () { http.get(`${__ENV.BASE_URL}/${__VU}/${__ITER}`); }";
    let job = Job {
        scenario: scenario(pages),
        spec: RunSpec { load: Some(vus(2, 2000)), warm_up_s: Some(0.0), ..job("good").spec },
        ..job("good")
    };
    let (outcome, series) = run(&bench, &job).await;
    let Window { seconds, gaps, .. } = series.measured.expect("a measured phase");
    assert_eq!(seconds.iter().map(Second::requests).sum::<u64>(), metric(&outcome, "http_reqs")["count"]);
    assert_eq!(gaps.dropped_values, 0);
}

#[tokio::test]
async fn without_control_groups_processes_are_sampled() {
    let Some(bench) = Bench::unlimited("series-plain").await else { return };
    bench.offer("good", "");
    let (_, series) = run(&bench, &job("good")).await;
    let usage = series.measured.expect("a measured phase").usage;
    let is_complete = |usage: &Usage| {
        let target = usage.target;
        target.held_memory_bytes > Some(0) && target.cpu_us.is_some() && target.throttled_us.is_none()
    };
    assert!(usage.iter().any(is_complete), "{usage:?}");
}

#[tokio::test]
async fn the_file_cache_of_a_target_is_not_memory_that_it_holds() {
    const FILE: u64 = 32 << 20;
    let Some(bench) = Bench::new("series-files").await.filter(Bench::limits_memory) else { return };
    if !is_on_disk(&bench.work.work_folder) {
        return;
    }
    bench.offer("filing", "");
    let (outcome, series) = run(&bench, &job("filing")).await;
    assert_eq!(outcome.ended, Ended::Finished, "{outcome:?}");
    let usage = series.measured.expect("a measured phase").usage;
    let target = usage.last().expect("a sample").target;
    assert!(target.file_cache_bytes >= Some(FILE) && target.memory_bytes > Some(FILE), "{target:?}");
    for held in usage.iter().map(|usage| usage.target.held_memory_bytes) {
        assert!(held > Some(0) && held < Some(FILE / 4), "{usage:?}");
    }
    let Conditions { idle_held_memory_bytes: held, idle_memory_bytes: working_set, .. } = outcome.conditions;
    assert!(held > Some(0) && held < Some(FILE / 4) && working_set > Some(0), "{held:?} {working_set:?}");
}

#[tokio::test]
async fn a_failed_run_has_the_series_up_to_the_failure() {
    let Some(bench) = Bench::new("series-death").await else { return };
    bench.offer("mortal", "");
    let job = Job {
        spec: RunSpec { load: Some(vus(1, 60_000)), warm_up_s: Some(0.0), ..job("mortal").spec },
        ..job("mortal")
    };
    let (outcome, series) = run(&bench, &job).await;
    assert!(matches!(outcome.ended, Ended::Failed { .. }), "{outcome:?}");
    let measured = series.measured.expect("a measured phase");
    assert_eq!((measured.gaps.unfinished, series.warm_up), (1, None));
    assert!(!measured.usage.is_empty());
}

#[tokio::test]
async fn a_script_without_requests_has_a_summary_and_an_empty_series() {
    let Some(bench) = Bench::new("series-idle").await else { return };
    bench.offer("good", "");
    let idle = "import { sleep } from 'k6'; export default function () { sleep(0.1); }";
    let job =
        Job { scenario: scenario(idle), spec: RunSpec { warm_up_s: Some(0.0), ..job("good").spec }, ..job("good") };
    let (outcome, series) = run(&bench, &job).await;
    assert!(outcome.summary.is_some(), "{outcome:?}");
    let seconds = series.measured.expect("a measured phase").seconds;
    assert_eq!(seconds.iter().map(Second::requests).sum::<u64>(), 0);
    let iterations: u64 = seconds.iter().map(|second| second.iterations).sum();
    assert_eq!(iterations, metric(&outcome, "iterations")["count"]);
}
