//! The recorded run agrees with k6's own summary of it.

use brewbench_agent::engine::k6::remote_write::Push;
use brewbench_agent::series::collector::{Collector, Scope};
use brewbench_agent::series::messages::TimeSeries;
use brewbench_wire::histogram::Histogram;
use brewbench_wire::series::{Gaps, Packed, Second, Series, Window};
use serde_json::Value;

use super::{RECORDINGS, Recording};

fn window(recording: &Recording) -> Window {
    let pushes = recording.pushes();
    let mut collector = Collector::new(pushes[0].at_ms - 5000, Scope::All);
    for push in &pushes {
        collector.take(&push.body, push.at_ms);
    }
    collector.finish().0
}

fn metric(recording: &Recording, name: &str) -> Value {
    let summary: Value = serde_json::from_str(recording.summary).expect("JSON");
    summary["metrics"][name].clone()
}

fn sum(seconds: &[Second], value: impl Fn(&Second) -> u64) -> u64 {
    seconds.iter().map(value).sum()
}

#[test]
fn counts_equal_those_of_the_summary() {
    for recording in &RECORDINGS {
        check_counts(recording);
    }
}

fn check_counts(recording: &Recording) {
    let metric = |name| metric(recording, name);
    let Window { seconds, gaps, .. } = window(recording);
    let failures = metric("http_req_failed")["passes"].as_u64().expect("failures");
    assert_eq!(sum(&seconds, Second::requests), metric("http_reqs")["count"]);
    assert_eq!(sum(&seconds, |second| second.failed.total()), failures);
    assert_eq!(sum(&seconds, |second| second.iterations), metric("iterations")["count"]);
    assert_eq!(sum(&seconds, |second| second.dropped_iterations), metric("dropped_iterations")["count"]);
    assert_eq!(sum(&seconds, |second| second.received_bytes), metric("data_received")["count"]);
    assert_eq!(sum(&seconds, |second| second.sent_bytes), metric("data_sent")["count"]);
    assert_eq!(gaps, Gaps::default(), "k6 {}", recording.version);
}

#[test]
fn percentiles_equal_those_of_the_summary_within_a_bucket() {
    for recording in &RECORDINGS {
        check_percentiles(recording);
    }
}

fn check_percentiles(recording: &Recording) {
    let metric = |name| metric(recording, name);
    let seconds = window(recording).seconds;
    let succeeded: Histogram = seconds.iter().map(|second| &second.succeeded).sum();
    let all: Histogram = seconds.iter().flat_map(|second| [&second.succeeded, &second.failed]).sum();
    for (histogram, name) in [(all, "http_req_duration"), (succeeded, "http_req_duration{expected_response:true}")] {
        let shares = [("med", 0.5), ("p(90)", 0.9), ("p(95)", 0.95), ("p(99)", 0.99), ("p(99.9)", 0.999), ("max", 1.0)];
        for (field, share) in shares {
            let (exact, found) = (metric(name)[field].as_f64().expect(field), histogram.quantile(share).expect(field));
            assert!(found.low <= exact && exact <= found.high, "{field} of {name}: {exact} in {found:?}");
            assert!(found.high / found.low < 1.0906, "{found:?}");
        }
        let mean = histogram.mean_ms().expect("a mean");
        assert!((mean - metric(name)["avg"].as_f64().expect("a mean")).abs() < 1e-6, "{mean}");
    }
}

#[test]
fn seconds_are_one_second_long() {
    for recording in &RECORDINGS {
        check_seconds(&window(recording).seconds);
    }
}

fn check_seconds(seconds: &[Second]) {
    let ends: Vec<_> = seconds.iter().map(|second| second.until_ms).collect();
    assert_eq!(ends.len(), 5, "{ends:?}");
    assert!(ends.iter().zip(1..).take(4).all(|(&end, number)| u32::abs_diff(end, number * 1000) < 100), "{ends:?}");
    let vus: Vec<_> = seconds.iter().map(|second| second.vus).collect();
    assert_eq!(vus[0], None, "k6 reports VUs after the first second");
    assert!(vus[1..].iter().all(|vus| vus.is_some_and(|vus| vus <= 4)), "{vus:?}");
    let rates: Vec<_> = seconds.iter().map(Second::requests).collect();
    assert!(rates[1..4].iter().all(|rate| (200..400).contains(rate)), "{rates:?}");
}

#[test]
fn packing_a_recorded_run_is_compact_and_lossless() {
    for recording in &RECORDINGS {
        let series = Series { warm_up: None, measured: Some(window(recording)) };
        let packed = Packed::pack(&series);
        assert!(packed.as_bytes().len() < 2500, "{packed:?}");
        assert_eq!(packed.unpack(), Ok(series));
    }
}

#[test]
fn series_of_k6_2_2_have_an_additional_label() {
    for recording in &RECORDINGS {
        let pushes = recording.pushes();
        let series: Vec<_> = pushes
            .iter()
            .flat_map(|push| Push::unpack(&push.body).expect("a push").series().collect::<Vec<_>>())
            .collect::<Result<_, _>>()
            .expect("series");
        let labelled = |one: &&TimeSeries| one.labels.iter().any(|label| label.name == "k6_feature_native_histograms");
        let expected = if recording.version == "2.2.0" { series.len() } else { 0 };
        assert_eq!(series.iter().filter(labelled).count(), expected, "k6 {}", recording.version);
        assert!(series.len() > 100);
    }
}
