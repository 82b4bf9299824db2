//! Merging of real k6 summaries.

use brewbench_wire::{
    histogram::Histogram,
    reports::{
        read,
        summary::{self, Kind, Summary},
    },
};

use crate::distributed::merge_summaries::{Latencies, summed};

fn fixture(name: &str) -> Summary {
    let path = format!("{}/tests/fixtures/k6/{name}.json", env!("CARGO_MANIFEST_DIR"));
    read::parse(&std::fs::read(path).expect("a fixture")).expect("k6's own")
}

/// A histogram of `count` requests of 1 to 1.09 ms.
fn requests(count: u64) -> Histogram {
    Histogram::new(3, 0, count * 1_000_000, [(-79, count)]).expect("a histogram")
}

fn sum(parts: &[Summary], latencies: &Latencies) -> Summary {
    let longest_ms = parts.iter().map(|part| part.figures().measured_ms).fold(0.0, f64::max);
    let text = summed(parts, longest_ms, latencies);
    read::parse(text.as_bytes()).unwrap_or_else(|fault| panic!("{fault}: {text}"))
}

fn complete(parts: &[Summary]) -> Latencies {
    let total = |value: &dyn Fn(&Summary) -> u64| parts.iter().map(value).sum::<u64>();
    let failed = total(&|part| part.figures().failed.unwrap_or(0));
    Latencies { succeeded: requests(total(&|part| part.figures().requests) - failed), failed: requests(failed) }
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
        let sum = sum(&parts, &complete(&parts));
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
        // A value that one part lacks is unknown for the sum.
        let min = a.latency.min_ms.zip(b.latency.min_ms).map(|(a, b)| a.min(b));
        let max = a.latency.max_ms.zip(b.latency.max_ms).map(|(a, b)| a.max(b));
        assert_eq!((of.latency.min_ms, of.latency.max_ms), (min, max), "{names:?}");
    }
}

#[test]
fn a_mean_is_weighted_and_values_that_cannot_be_added_are_omitted() {
    let parts = ["summary-export-hash-v1.8.1", "summary-export-v1.8.1"].map(fixture);
    let sum = sum(&parts, &complete(&parts));
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
fn percentiles_come_from_complete_histograms_only() {
    let parts = ["summary-export-hash-v1.8.1", "summary-export-hash-v1.8.1"].map(fixture);
    let full = complete(&parts);
    let figures = sum(&parts, &full).figures();
    let p50 = figures.latency.p50_ms.expect("a median");
    assert!((1.0..1.1).contains(&p50) && figures.latency.p999_ms.is_some(), "{figures:?}");
    let incomplete = Latencies { succeeded: requests(full.succeeded.total() - 1), failed: Histogram::default() };
    let figures = sum(&parts, &incomplete).figures();
    assert_eq!((figures.latency.p50_ms, figures.latency.p99_ms, figures.ok_latency.p50_ms), (None, None, None));
    assert!(figures.latency.avg_ms.is_some() && figures.latency.max_ms.is_some());
}

#[test]
fn checks_and_groups_of_the_same_path_are_merged() {
    let parts = ["handle-summary-v1.8.1", "handle-summary-v1.8.1"].map(fixture);
    let sum = sum(&parts, &complete(&parts));
    let checks = |group: &summary::Group| -> Vec<(String, u64, u64)> {
        let mut all = vec![group];
        let mut checks = Vec::new();
        while let Some(group) = all.pop() {
            checks.extend(group.checks.iter().map(|check| (check.path.clone(), check.passes, check.fails)));
            all.extend(&group.groups);
        }
        checks.sort();
        checks
    };
    let twice: Vec<_> = checks(&parts[0].root).into_iter().map(|(path, yes, no)| (path, 2 * yes, 2 * no)).collect();
    assert!(!twice.is_empty());
    assert_eq!(checks(&sum.root), twice);
}

#[test]
fn a_part_without_requests_adds_nothing_and_hides_nothing() {
    let parts = ["summary-export-zero-requests-v1.8.1", "summary-export-hash-v1.8.1"].map(fixture);
    let sum = sum(&parts, &complete(&parts)).figures();
    let alone = parts[1].figures();
    assert_eq!((sum.requests, sum.failed, sum.latency.min_ms), (alone.requests, alone.failed, alone.latency.min_ms));
}
