//! Real summaries of k6, added up.

use brewbench_agent::{
    reports::{
        read, summary,
        summary::{Kind, Summary},
    },
    series::histogram::Histogram,
};

use crate::distributed::merge_summaries::{Latencies, summed};

fn fixture(name: &str) -> Summary {
    let path = format!("{}/tests/fixtures/k6/{name}.json", env!("CARGO_MANIFEST_DIR"));
    read::parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
}

/// So many requests of 1 to 1.09 ms.
fn some(count: u64) -> Histogram {
    Histogram::new(3, 0, count * 1_000_000, [(-79, count)]).expect("a histogram")
}

fn sum(parts: &[Summary], latencies: &Latencies) -> Summary {
    let text = summed(parts, latencies);
    read::parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

fn whole(parts: &[Summary]) -> Latencies {
    let of = |value: &dyn Fn(&Summary) -> u64| parts.iter().map(value).sum::<u64>();
    let failed = of(&|part| part.figures().failed.unwrap_or(0));
    Latencies { succeeded: some(of(&|part| part.figures().requests) - failed), failed: some(failed) }
}

#[test]
fn counts_of_real_summaries_add_up_exactly() {
    for names in [
        ["summary-export-v1.8.1", "summary-export-v1.8.1"],
        ["summary-export-v1.8.1", "summary-export-hash-v1.8.1"],
        ["handle-summary-v1.8.1", "summary-export-odd-v1.8.1"],
        ["handle-summary-odd-v1.8.1", "summary-export-target-down-v1.8.1"],
    ] {
        let parts = names.map(fixture);
        let sum = sum(&parts, &whole(&parts));
        let (of, [a, b]) = (sum.figures(), parts.each_ref().map(Summary::figures));
        let added = |a: Option<u64>, b: Option<u64>| a.map_or(b, |a| Some(a + b.unwrap_or(0)));
        assert_eq!(of.requests, a.requests + b.requests, "{names:?}");
        assert_eq!(of.failed, added(a.failed, b.failed), "{names:?}");
        assert_eq!(of.iterations, added(a.iterations, b.iterations), "{names:?}");
        assert_eq!(of.dropped_iterations, added(a.dropped_iterations, b.dropped_iterations), "{names:?}");
        assert_eq!(of.checks_passed, added(a.checks_passed, b.checks_passed), "{names:?}");
        assert_eq!(of.checks_failed, added(a.checks_failed, b.checks_failed), "{names:?}");
        assert_eq!(of.data_received_bytes, added(a.data_received_bytes, b.data_received_bytes), "{names:?}");
        assert_eq!(of.vus_max, added(a.vus_max, b.vus_max), "{names:?}");
        assert!((of.measured_ms - a.measured_ms.max(b.measured_ms)).abs() < 1e-6, "the longest time: {names:?}");
        assert!(of.rps <= a.rps + b.rps + 1e-9, "nothing looks faster than it was: {names:?}");
        // What one of them does not tell is not known of both.
        let least = a.latency.min_ms.zip(b.latency.min_ms).map(|(a, b)| a.min(b));
        let greatest = a.latency.max_ms.zip(b.latency.max_ms).map(|(a, b)| a.max(b));
        assert_eq!((of.latency.min_ms, of.latency.max_ms), (least, greatest), "{names:?}");
    }
}

#[test]
fn a_mean_is_weighted_and_what_cannot_be_added_is_not_there() {
    let parts = ["summary-export-hash-v1.8.1", "summary-export-v1.8.1"].map(fixture);
    let sum = sum(&parts, &whole(&parts));
    let of = |summary: &Summary, name: &str, value: &str| {
        summary.metrics.get(name).and_then(|m| m.values.get(value).copied())
    };
    for name in ["http_req_duration", "iteration_duration"] {
        let both = parts.each_ref().map(|part| {
            let (count, avg) = (of(part, name, "count"), of(part, name, "avg"));
            (count.expect("a count"), avg.expect("a mean"))
        });
        let mean =
            both.iter().map(|(count, avg)| count * avg).sum::<f64>() / both.iter().map(|(count, _)| count).sum::<f64>();
        assert!((of(&sum, name, "avg").expect("a mean") - mean).abs() < 1e-9, "{name}");
    }
    for (name, metric) in &sum.metrics {
        assert!(metric.thresholds.is_empty(), "{name}: each k6 judges its own part");
        let has_percentiles = metric.values.contains_key("med") || metric.values.contains_key("p(99)");
        let from_histograms =
            name.starts_with("http_req_duration") && (name.len() == 17 || name.ends_with("{expected_response:true}"));
        assert!(!has_percentiles || from_histograms, "{name}");
        assert!(metric.kind != Kind::Gauge || name.starts_with("vus"), "{name}");
    }
}

#[test]
fn percentiles_come_from_histograms_that_are_whole_and_from_no_others() {
    let parts = ["summary-export-hash-v1.8.1", "summary-export-hash-v1.8.1"].map(fixture);
    let full = whole(&parts);
    let figures = sum(&parts, &full).figures();
    let p50 = figures.latency.p50_ms.expect("a median");
    assert!((1.0..1.1).contains(&p50) && figures.latency.p999_ms.is_some(), "{figures:?}");
    let lacking = Latencies { succeeded: some(full.succeeded.total() - 1), failed: Histogram::default() };
    let figures = sum(&parts, &lacking).figures();
    assert_eq!((figures.latency.p50_ms, figures.latency.p99_ms, figures.ok_latency.p50_ms), (None, None, None));
    assert!(figures.latency.avg_ms.is_some() && figures.latency.max_ms.is_some());
}

#[test]
fn checks_and_groups_of_the_same_path_are_one() {
    let parts = ["handle-summary-v1.8.1", "handle-summary-v1.8.1"].map(fixture);
    let sum = sum(&parts, &whole(&parts));
    let tell = |group: &summary::Group| -> Vec<(String, u64, u64)> {
        let mut all = vec![group];
        let mut told = Vec::new();
        while let Some(group) = all.pop() {
            told.extend(group.checks.iter().map(|check| (check.path.clone(), check.passes, check.fails)));
            all.extend(&group.groups);
        }
        told.sort();
        told
    };
    let twice: Vec<_> = tell(&parts[0].root).into_iter().map(|(path, yes, no)| (path, 2 * yes, 2 * no)).collect();
    assert!(!twice.is_empty());
    assert_eq!(tell(&sum.root), twice);
}

#[test]
fn a_part_without_requests_adds_nothing_and_hides_nothing() {
    let parts = ["summary-export-zero-requests-v1.8.1", "summary-export-hash-v1.8.1"].map(fixture);
    let sum = sum(&parts, &whole(&parts)).figures();
    let alone = parts[1].figures();
    assert_eq!((sum.requests, sum.failed, sum.latency.min_ms), (alone.requests, alone.failed, alone.latency.min_ms));
}
