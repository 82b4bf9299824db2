//! The figures of a run. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::metrics::counters::PerRequest;

/// The measured figures of a run. Unknown figures are null.
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
    /// Length of the load without setup and teardown, seconds; of the test if only that is known.
    pub measured_s: Option<f64>,
    /// CPU time of the target per request in the measured phase, ms.
    #[serde(default)]
    pub cpu_ms_per_request: Option<f64>,
    /// Peak memory of the target in the measured phase, bytes.
    #[serde(default)]
    pub target_memory_bytes: Option<u64>,
    /// Share of the measured phase in which the target was CPU throttled, 0 to 1.
    #[serde(default)]
    pub throttled_share: Option<f64>,
    /// Time from starting the target's process to its first verified response, milliseconds.
    #[serde(default)]
    pub startup_ms: Option<f64>,
    /// Memory of the target after the idle wait, before any load, bytes.
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
}
