//! Metrics of what the kernel and the processor counted for the target, per request. Pure.

use brewbench_wire::counters::Counters;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::metrics::{
    Figures, LATENCY, Metric,
    definition::{MetricDef, Unit},
};

/// Counts per request. Unknown ones are null.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct PerRequest {
    /// Context switches per request because threads of the target waited.
    pub voluntary_switches_per_request: Option<f64>,
    /// Context switches per request because other threads were given the processor.
    pub involuntary_switches_per_request: Option<f64>,
    /// Page faults per request.
    pub page_faults_per_request: Option<f64>,
    /// Instructions per request, in user and kernel mode.
    pub instructions_per_request: Option<f64>,
    /// Processor cycles per request, in user and kernel mode.
    pub cycles_per_request: Option<f64>,
    /// Misses of the last-level cache per request.
    pub cache_misses_per_request: Option<f64>,
    /// Mispredicted branches per request.
    pub branch_misses_per_request: Option<f64>,
}

impl PerRequest {
    /// Divides counts by the number of requests; unknown without any.
    pub fn new(counters: &Counters, requests: Option<u64>) -> Self {
        let requests = requests.filter(|requests| *requests > 0);
        let per = |count: Option<u64>| count.zip(requests).map(|(count, requests)| count as f64 / requests as f64);
        Self {
            voluntary_switches_per_request: per(counters.voluntary_switches),
            involuntary_switches_per_request: per(counters.involuntary_switches),
            page_faults_per_request: per(counters.page_faults),
            instructions_per_request: per(counters.instructions),
            cycles_per_request: per(counters.cycles),
            cache_misses_per_request: per(counters.cache_misses),
            branch_misses_per_request: per(counters.branch_misses),
        }
    }
}

/// The template of the definitions: compared, but never judged, because they explain the other metrics.
const COUNTER: MetricDef = MetricDef { unit: Unit::PerRequest, is_latency: false, is_recorded: true, ..LATENCY };

/// The metrics, in the order of [`Metric`].
pub(super) const METRICS: [MetricDef; 7] = [
    MetricDef {
        metric: Metric::VoluntarySwitches,
        key: "voluntary_switches",
        list_key: Some("voluntary_switches"),
        head: "voluntary switches/request",
        name: "voluntary context switches",
        title: "Voluntary context switches per request",
        sql: "(figures ->> 'voluntary_switches_per_request')",
        get: |figures| figures.counters.voluntary_switches_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::InvoluntarySwitches,
        key: "involuntary_switches",
        list_key: Some("involuntary_switches"),
        head: "involuntary switches/request",
        name: "involuntary context switches",
        title: "Involuntary context switches per request",
        sql: "(figures ->> 'involuntary_switches_per_request')",
        get: |figures| figures.counters.involuntary_switches_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::PageFaults,
        key: "page_faults",
        list_key: Some("page_faults"),
        head: "page faults/request",
        name: "page faults",
        title: "Page faults per request",
        sql: "(figures ->> 'page_faults_per_request')",
        get: |figures| figures.counters.page_faults_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::Instructions,
        key: "instructions",
        list_key: Some("instructions"),
        head: "instructions/request",
        name: "instructions",
        title: "Instructions per request",
        sql: "(figures ->> 'instructions_per_request')",
        get: |figures| figures.counters.instructions_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::Cycles,
        key: "cycles",
        list_key: Some("cycles"),
        head: "cycles/request",
        name: "processor cycles",
        title: "Processor cycles per request",
        sql: "(figures ->> 'cycles_per_request')",
        get: |figures| figures.counters.cycles_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::CacheMisses,
        key: "cache_misses",
        list_key: Some("cache_misses"),
        head: "cache misses/request",
        name: "cache misses",
        title: "Cache misses per request",
        sql: "(figures ->> 'cache_misses_per_request')",
        get: |figures| figures.counters.cache_misses_per_request,
        ..COUNTER
    },
    MetricDef {
        metric: Metric::BranchMisses,
        key: "branch_misses",
        list_key: Some("branch_misses"),
        head: "branch misses/request",
        name: "mispredicted branches",
        title: "Mispredicted branches per request",
        sql: "(figures ->> 'branch_misses_per_request')",
        get: |figures| figures.counters.branch_misses_per_request,
        ..COUNTER
    },
];

/// Returns the known counts of a run in words: `1.25 voluntary context switches per request`.
pub fn describe(figures: &Figures) -> Option<String> {
    let known = METRICS.iter().filter_map(|def| {
        let value = (def.get)(figures)?;
        Some(format!("{} {}", def.metric.figure(Some(value)).text(), def.name))
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("{} per request", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_count_or_no_requests_is_null_and_never_zero() {
        let counts = Counters { page_faults: Some(10), cycles: Some(0), ..Counters::default() };
        let per_request = PerRequest::new(&counts, Some(4));
        assert_eq!((per_request.page_faults_per_request, per_request.cycles_per_request), (Some(2.5), Some(0.0)));
        assert_eq!(per_request.instructions_per_request, None);
        assert_eq!(
            [PerRequest::new(&counts, Some(0)), PerRequest::new(&counts, None)],
            [PerRequest::default(), PerRequest::default()]
        );
        assert_eq!(serde_json::to_string(&counts).expect("JSON"), r#"{"page_faults":10,"cycles":0,"missing":[]}"#);
    }

    #[test]
    fn known_counts_are_described_and_unknown_ones_left_out() {
        let counts = Counters { voluntary_switches: Some(5), page_faults: Some(0), ..Counters::default() };
        let figures = Figures { counters: PerRequest::new(&counts, Some(4)), ..Figures::default() };
        assert_eq!(describe(&figures).as_deref(), Some("1.25 voluntary context switches, 0 page faults per request"));
        assert_eq!(describe(&Figures::default()), None);
    }

    #[test]
    fn every_metric_reads_the_count_of_its_key() {
        for (place, def) in METRICS.iter().enumerate() {
            let stored = format!("{{\"{}\": {}}}", def.key, (place + 1) * 10);
            let counts: Counters = serde_json::from_str(&stored).expect("a count");
            let figures = Figures { counters: PerRequest::new(&counts, Some(10)), ..Figures::default() };
            assert_eq!((def.get)(&figures), Some((place + 1) as f64), "{}", def.key);
        }
    }
}
