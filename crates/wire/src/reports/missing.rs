//! Lists the values that a summary lacks.

use crate::reports::summary::{Latency, Summary};

impl Summary {
    /// Returns the names of main metrics that are missing; they stay empty.
    pub fn missing(&self) -> Vec<&'static str> {
        let figures = self.figures();
        let Latency { avg_ms, min_ms, p50_ms, p90_ms, p95_ms, p99_ms, p999_ms, max_ms } = figures.latency;
        let all = [
            ("failed requests", figures.failed.is_some()),
            ("mean latency", avg_ms.is_some()),
            ("minimum latency", min_ms.is_some()),
            ("p50", p50_ms.is_some()),
            ("p90", p90_ms.is_some()),
            ("p95", p95_ms.is_some()),
            ("p99", p99_ms.is_some()),
            ("p99.9", p999_ms.is_some()),
            ("maximum latency", max_ms.is_some()),
            ("latency of successful requests", figures.ok_latency != Latency::default()),
            ("iterations", figures.iterations.is_some()),
            ("data received", figures.data_received_bytes.is_some()),
            ("data sent", figures.data_sent_bytes.is_some()),
            ("checks", figures.checks_passed.is_some()),
            ("thresholds", figures.thresholds.is_some()),
            ("tool version", self.k6_version.is_some()),
        ];
        all.into_iter().filter(|(_, is_present)| !is_present).map(|(what, _)| what).collect()
    }
}
