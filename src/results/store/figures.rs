//! Metrics of a summary as columns of `run`.

use brewbench_agent::reports::summary::Figures;

/// Columns of `run` for metrics; unknown values are null. Signed, because SQLite has no unsigned integers.
#[derive(Clone, Debug, Default)]
pub(super) struct FigureColumns {
    pub requests: Option<i64>,
    pub failed: Option<i64>,
    pub rps: Option<f64>,
    pub measured_ms: Option<f64>,
    pub avg_ms: Option<f64>,
    pub min_ms: Option<f64>,
    pub p50_ms: Option<f64>,
    pub p90_ms: Option<f64>,
    pub p95_ms: Option<f64>,
    pub p99_ms: Option<f64>,
    pub p999_ms: Option<f64>,
    pub max_ms: Option<f64>,
    pub data_received_bytes: Option<f64>,
    pub data_sent_bytes: Option<f64>,
    pub received_per_s: Option<f64>,
    pub iterations: Option<i64>,
    pub dropped_iterations: Option<i64>,
    pub checks_passed: Option<i64>,
    pub checks_failed: Option<i64>,
    pub min_new_connections: Option<i64>,
    pub max_new_connections: Option<i64>,
    pub thresholds: Option<u32>,
    pub thresholds_failed: Option<u32>,
}

impl From<&Figures> for FigureColumns {
    fn from(figures: &Figures) -> Self {
        let count = |figure: Option<u64>| figure.map(u64::cast_signed);
        let bytes = |figure: Option<u64>| figure.map(|bytes| bytes as f64);
        let latency = &figures.latency;
        Self {
            requests: Some(figures.requests.cast_signed()),
            failed: count(figures.failed),
            rps: Some(figures.rps),
            measured_ms: Some(figures.measured_ms),
            avg_ms: latency.avg_ms,
            min_ms: latency.min_ms,
            p50_ms: latency.p50_ms,
            p90_ms: latency.p90_ms,
            p95_ms: latency.p95_ms,
            p99_ms: latency.p99_ms,
            p999_ms: latency.p999_ms,
            max_ms: latency.max_ms,
            data_received_bytes: bytes(figures.data_received_bytes),
            data_sent_bytes: bytes(figures.data_sent_bytes),
            received_per_s: figures.received_per_s,
            iterations: count(figures.iterations),
            dropped_iterations: count(figures.dropped_iterations),
            checks_passed: count(figures.checks_passed),
            checks_failed: count(figures.checks_failed),
            min_new_connections: figures.new_connections.map(|bounds| bounds.least.cast_signed()),
            max_new_connections: figures.new_connections.map(|bounds| bounds.most.cast_signed()),
            thresholds: figures.thresholds,
            thresholds_failed: figures.thresholds_failed,
        }
    }
}
