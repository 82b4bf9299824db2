//! The figures of a run. Pure.

use std::collections::BTreeMap;

use brewbench_wire::reports::summary;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::metrics::{Metric, counters::PerRequest, work::RunWork};

/// The measured figures of a run. Unknown figures are null.
///
/// The column `run.figures` has them as the API shows them, without those that are unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// Requests in the measured phase.
    pub requests: Option<u64>,
    /// Requests that k6 counted as failed.
    pub failed: Option<u64>,
    /// `failed` ÷ `requests`.
    pub error_rate: Option<f64>,
    /// Requests per second of the measured phase.
    pub rps: Option<f64>,
    /// Mean latency of all requests, ms.
    pub avg_ms: Option<f64>,
    /// Minimum latency, ms.
    pub min_ms: Option<f64>,
    /// Median latency, ms.
    pub p50_ms: Option<f64>,
    /// 90th percentile, ms.
    pub p90_ms: Option<f64>,
    /// 95th percentile, ms.
    pub p95_ms: Option<f64>,
    /// 99th percentile, ms.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile, ms.
    pub p999_ms: Option<f64>,
    /// Maximum latency, ms.
    pub max_ms: Option<f64>,
    /// 95th percentile of the time from the end of sending to the first byte of the response, ms.
    #[serde(default)]
    pub ttfb_p95_ms: Option<f64>,
    /// Length of the load without setup and teardown, seconds; of the test if only that is known.
    pub measured_s: Option<f64>,
    /// CPU time of the target per request in the measured phase, ms.
    #[serde(default)]
    pub cpu_ms_per_request: Option<f64>,
    /// Peak of the memory that the target held in the measured phase, without file cache, bytes; null before protocol 26.
    #[serde(default)]
    pub held_memory_bytes: Option<u64>,
    /// Peak of the target's file cache, bytes; null before protocol 26.
    #[serde(default)]
    pub file_cache_bytes: Option<u64>,
    /// Peak of the target's working set, bytes: memory in use, with recently used file cache.
    #[serde(default)]
    pub target_memory_bytes: Option<u64>,
    /// Share of the measured phase in which the target was CPU throttled, 0 to 1.
    #[serde(default)]
    pub throttled_share: Option<f64>,
    /// Time from starting the target's process to its first verified response, milliseconds.
    #[serde(default)]
    pub startup_ms: Option<f64>,
    /// Memory that the target held after the idle wait, before any load, bytes; null before protocol 26.
    #[serde(default)]
    pub idle_held_memory_bytes: Option<u64>,
    /// Working set of the target after the idle wait, before any load, bytes.
    #[serde(default)]
    pub idle_memory_bytes: Option<u64>,
    /// Bytes received in the measured phase.
    pub data_received_bytes: Option<f64>,
    /// Bytes sent in the measured phase.
    pub data_sent_bytes: Option<f64>,
    /// Bytes received per second of the measured phase; taken verbatim from text summaries.
    #[serde(default)]
    pub received_per_s: Option<f64>,
    /// What the kernel and the processor counted for the target.
    #[serde(flatten)]
    pub counters: PerRequest,
    /// Completed iterations of the script.
    pub iterations: Option<u64>,
    /// Iterations that k6 did not start in time.
    pub dropped_iterations: Option<u64>,
    /// Properties of its requests.
    #[serde(default)]
    pub work: RunWork,
    /// Passed checks.
    pub checks_passed: Option<u64>,
    /// Failed checks.
    pub checks_failed: Option<u64>,
    /// Number of thresholds in the script whose metrics have samples.
    pub thresholds: Option<u32>,
    /// Number of crossed thresholds; null if unknown for some, as may be with several load generators.
    pub thresholds_failed: Option<u32>,
    /// Actual length of an automatic warm-up, seconds.
    #[serde(default)]
    pub warmed_up_s: Option<f64>,
    /// Whether the target was steady at the end of an automatic warm-up.
    #[serde(default)]
    pub warm_up_steady: Option<bool>,
    /// How far a rounded metric may be from the value that was measured, in its unit: half of its last printed digit, or its
    /// place in the bucket of a histogram. Only metrics for which that is more than a thousandth of the value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resolution: BTreeMap<Metric, f64>,
}

impl From<&summary::Figures> for Figures {
    /// Takes what the summary of the load generator has.
    fn from(summary: &summary::Figures) -> Self {
        let (requests, latency) = (Some(summary.requests), &summary.latency);
        let bytes = |figure: Option<u64>| figure.map(|bytes| bytes as f64);
        let (received, sent) = (bytes(summary.data_received_bytes), bytes(summary.data_sent_bytes));
        let (least, most) = summary.new_connections.map(|bounds| (bounds.least, bounds.most)).unzip();
        let measured_s = summary.measured_ms / 1_000.0;
        Self {
            requests,
            failed: summary.failed,
            error_rate: summary.failed.filter(|_| summary.requests > 0).map(|n| n as f64 / summary.requests as f64),
            rps: Some(summary.rps),
            avg_ms: latency.avg_ms,
            min_ms: latency.min_ms,
            p50_ms: latency.p50_ms,
            p90_ms: latency.p90_ms,
            p95_ms: latency.p95_ms,
            p99_ms: latency.p99_ms,
            p999_ms: latency.p999_ms,
            max_ms: latency.max_ms,
            ttfb_p95_ms: summary.ttfb_p95_ms,
            measured_s: Some(measured_s),
            data_received_bytes: received,
            data_sent_bytes: sent,
            received_per_s: summary
                .received_per_s
                .or_else(|| received.filter(|_| measured_s > 0.0).map(|bytes| bytes / measured_s)),
            iterations: summary.iterations,
            dropped_iterations: summary.dropped_iterations,
            work: RunWork::new(requests, summary.iterations, received)
                .with_sent(sent, requests)
                .with_connections(least, most, requests),
            checks_passed: summary.checks_passed,
            checks_failed: summary.checks_failed,
            thresholds: summary.thresholds,
            thresholds_failed: summary.thresholds_failed,
            resolution: resolution(summary.resolution),
            ..Self::default()
        }
    }
}

/// Returns the resolution of a summary by metric.
fn resolution(of: summary::Resolution) -> BTreeMap<Metric, f64> {
    let summary::Resolution { latency, .. } = of;
    let all = [
        (Metric::Rps, of.rps),
        (Metric::AvgMs, latency.avg_ms),
        (Metric::P50Ms, latency.p50_ms),
        (Metric::P90Ms, latency.p90_ms),
        (Metric::P95Ms, latency.p95_ms),
        (Metric::P99Ms, latency.p99_ms),
        (Metric::P999Ms, latency.p999_ms),
        (Metric::MaxMs, latency.max_ms),
        (Metric::ReceivedPerS, of.received_per_s),
        (Metric::MinMs, latency.min_ms),
        (Metric::TtfbP95Ms, of.ttfb_p95_ms),
        (Metric::MeasuredS, of.measured_ms.map(|ms| ms / 1e3)),
    ];
    all.into_iter().filter_map(|(metric, error)| Some((metric, error?))).collect()
}

impl Figures {
    /// Returns the known figures as JSON to store; None if all are unknown.
    pub fn to_stored(&self) -> serde_json::Result<Option<String>> {
        let mut figures = serde_json::to_value(self)?;
        let Value::Object(known) = &mut figures else { return Ok(None) };
        if let Some(Value::Object(work)) = known.get_mut("work") {
            work.retain(|_, figure| !figure.is_null());
        }
        known.retain(|_, figure| !figure.is_null() && figure.as_object().is_none_or(|inner| !inner.is_empty()));
        (!known.is_empty()).then(|| serde_json::to_string(known)).transpose()
    }

    /// Reads stored figures; all are unknown if nothing is stored.
    pub fn from_stored(stored: Option<&str>) -> serde_json::Result<Self> {
        stored.map_or_else(|| Ok(Self::default()), serde_json::from_str)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use serde_json::json;

    use super::*;

    /// Returns figures that are all known, and all different: whatever type each has, one of the values fits.
    pub fn all_known() -> Figures {
        let known =
            known(&serde_json::to_value(Figures::default()).expect("JSON"), &|name, value| json!({ name: value }));
        let figures: Figures = serde_json::from_value(known).expect("figures");
        Figures { resolution: [(Metric::P50Ms, 0.123_456_789_012_345_67)].into(), ..figures }
    }

    fn known(unknown: &Value, within: &dyn Fn(&str, Value) -> Value) -> Value {
        let all = unknown.as_object().expect("an object").iter().enumerate().map(|(place, (name, value))| {
            if value.is_object() {
                return (name.clone(), known(value, &|inner, value| within(name, json!({ inner: value }))));
            }
            // Numbers whose last bit a shorter text would lose, and counts that a float can't hold.
            let candidates = [
                json!((place + 1) as f64 * 0.123_456_789_012_345_67),
                json!(u64::MAX - place as u64),
                json!(place + 1),
                json!(true),
                json!({ "200": (1_u64 << 53) + 1 }),
            ];
            let is_read = |value: &Value| {
                let read: Option<Figures> = serde_json::from_value(within(name, value.clone())).ok();
                read.is_some_and(|figures| figures != Figures::default())
            };
            (name.clone(), candidates.into_iter().find(is_read).expect("a value of its type"))
        });
        all.collect()
    }

    #[test]
    fn every_figure_is_stored_and_read_into_its_own_field_to_the_last_bit() {
        let figures = all_known();
        let stored = figures.to_stored().expect("JSON").expect("figures");
        assert_eq!(Figures::from_stored(Some(&stored)).expect("figures"), figures);
        let stored: Value = serde_json::from_str(&stored).expect("JSON");
        assert_eq!(stored, serde_json::to_value(&figures).expect("JSON"), "nothing is left out or renamed");
        assert!(!stored.to_string().contains("null"), "{stored}");
    }

    #[test]
    fn what_is_not_known_is_absent_and_never_zero() {
        assert_eq!(Figures::default().to_stored().expect("JSON"), None);
        assert_eq!(Figures::from_stored(None).expect("figures"), Figures::default());
        let unknown =
            Figures { rps: Some(f64::NAN), p99_ms: Some(f64::INFINITY), failed: Some(0), ..Figures::default() };
        assert_eq!(unknown.to_stored().expect("JSON").as_deref(), Some(r#"{"failed":0}"#));
        let read = Figures::from_stored(Some(r#"{"failed":0,"of_a_later_version":1}"#)).expect("figures");
        assert_eq!(read, Figures { failed: Some(0), ..Figures::default() });
    }

    #[test]
    fn the_time_to_first_byte_is_that_of_the_summary() {
        let summary = include_bytes!("../../tests/fixtures/k6/summary-export-hash-v1.8.1.json");
        let summary = brewbench_wire::reports::read::parse(summary).expect("a summary").figures();
        assert_eq!(Figures::from(&summary).ttfb_p95_ms, Some(7.056_265_099_999_999));
    }
}
