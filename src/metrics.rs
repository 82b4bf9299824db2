//! The registry of metrics: every figure of a run that has a unit. Pure.
//!
//! Lists, sorting, comparisons, gate rules, objectives, trends and exports read it, so a metric is defined only here.

pub mod counters;
pub mod definition;
mod figures;
mod shown;
mod text;
pub mod work;

pub use figures::Figures;
#[cfg(test)]
pub(crate) use figures::tests::all_known;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::metrics::definition::{Better, MetricDef, Role, Unit};

/// A metric, by its place in the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Requests per second of the measured phase.
    Rps,
    /// Mean latency, ms.
    AvgMs,
    /// Median latency, ms.
    P50Ms,
    /// 90th percentile, ms.
    P90Ms,
    /// 95th percentile, ms.
    P95Ms,
    /// 99th percentile, ms.
    P99Ms,
    /// 99.9th percentile, ms.
    P999Ms,
    /// Maximum latency, ms.
    MaxMs,
    /// Failed requests as a share of all requests, 0 to 1.
    ErrorRate,
    /// CPU time of the target per request, ms.
    CpuMs,
    /// Peak of the memory that the target held, bytes.
    Memory,
    /// Peak of the target's working set, bytes.
    WorkingSet,
    /// Bytes received per second.
    ReceivedPerS,
    /// Context switches per request because threads of the target waited.
    VoluntarySwitches,
    /// Context switches per request because other threads were given the processor.
    InvoluntarySwitches,
    /// Page faults per request.
    PageFaults,
    /// Instructions per request.
    Instructions,
    /// Processor cycles per request.
    Cycles,
    /// Misses of the last-level cache per request.
    CacheMisses,
    /// Mispredicted branches per request.
    BranchMisses,
    /// Share of the measured phase in which the target was CPU throttled, 0 to 1.
    ThrottledShare,
    /// Time from starting the target's process to its first verified response, milliseconds.
    Startup,
    /// Memory that the target held after the idle wait, before any load, bytes.
    IdleMemory,
    /// Peak of the target's file cache, bytes.
    FileCache,
    /// Requests in the measured phase.
    Requests,
    /// Failed requests.
    Failed,
    /// Minimum latency, ms.
    MinMs,
    /// 95th percentile of the time from the end of sending to the first byte of the response, ms.
    TtfbP95Ms,
    /// Length of the measured phase, seconds.
    MeasuredS,
}

/// The template of most definitions: a latency that is listed and compared.
const LATENCY: MetricDef = MetricDef {
    metric: Metric::AvgMs,
    key: "",
    list_key: None,
    head: "",
    name: "",
    title: "",
    unit: Unit::Ms,
    better: Some(Better::Lower),
    is_latency: true,
    is_recorded: false,
    role: Role::Compared,
    min_requests: None,
    sql: "",
    index: None,
    get: |_| None,
};

/// All metrics in the order of [`Metric`]. Compared metrics come first, in the order of their columns.
pub const METRICS: [MetricDef; 29] = [
    MetricDef {
        metric: Metric::Rps,
        key: "rps",
        list_key: Some("rps"),
        head: "requests/s",
        name: "throughput",
        title: "Throughput",
        is_latency: false,
        unit: Unit::RequestsPerS,
        better: Some(Better::Higher),
        role: Role::Judged,
        sql: "rps",
        index: Some("run_by_rps"),
        get: |figures| figures.rps,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::AvgMs,
        key: "avg_ms",
        list_key: Some("avg"),
        head: "avg ms",
        name: "avg",
        title: "Latency avg",
        sql: "avg_ms",
        index: Some("run_by_avg"),
        get: |figures| figures.avg_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::P50Ms,
        key: "p50_ms",
        list_key: Some("p50"),
        head: "p50 ms",
        name: "p50",
        title: "Latency p50",
        role: Role::Judged,
        min_requests: Some(20),
        sql: "p50_ms",
        index: Some("run_by_p50"),
        get: |figures| figures.p50_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::P90Ms,
        key: "p90_ms",
        list_key: Some("p90"),
        head: "p90 ms",
        name: "p90",
        title: "Latency p90",
        min_requests: Some(100),
        sql: "p90_ms",
        index: Some("run_by_p90"),
        get: |figures| figures.p90_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::P95Ms,
        key: "p95_ms",
        list_key: Some("p95"),
        head: "p95 ms",
        name: "p95",
        title: "Latency p95",
        min_requests: Some(200),
        sql: "p95_ms",
        index: Some("run_by_p95"),
        get: |figures| figures.p95_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::P99Ms,
        key: "p99_ms",
        list_key: Some("p99"),
        head: "p99 ms",
        name: "p99",
        title: "Latency p99",
        role: Role::Judged,
        min_requests: Some(1_000),
        sql: "p99_ms",
        index: Some("run_by_p99"),
        get: |figures| figures.p99_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::P999Ms,
        key: "p999_ms",
        list_key: Some("p999"),
        head: "p99.9 ms",
        name: "p99.9",
        title: "Latency p99.9",
        min_requests: Some(10_000),
        sql: "p999_ms",
        index: Some("run_by_p999"),
        get: |figures| figures.p999_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::MaxMs,
        key: "max_ms",
        list_key: Some("max"),
        head: "max ms",
        name: "max",
        title: "Latency max",
        sql: "max_ms",
        index: Some("run_by_max"),
        get: |figures| figures.max_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::ErrorRate,
        key: "error_rate",
        list_key: Some("error_rate"),
        head: "failed",
        name: "failed requests",
        title: "Failed requests",
        is_latency: false,
        unit: Unit::Share,
        role: Role::Judged,
        sql: "error_rate",
        index: Some("run_by_error_rate"),
        get: |figures| figures.error_rate,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::CpuMs,
        key: "cpu_ms",
        list_key: Some("cpu"),
        head: "CPU ms",
        name: "CPU time per request",
        title: "CPU time per request",
        is_latency: false,
        is_recorded: true,
        role: Role::Judged,
        sql: "cpu_ms_per_request",
        index: Some("run_by_cpu"),
        get: |figures| figures.cpu_ms_per_request,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::Memory,
        key: "memory",
        list_key: Some("memory"),
        head: "memory",
        name: "memory",
        title: "Memory of the target",
        is_latency: false,
        is_recorded: true,
        unit: Unit::Bytes,
        role: Role::Judged,
        sql: "held_memory_bytes",
        index: Some("run_by_held_memory"),
        get: |figures| figures.held_memory_bytes.map(|bytes| bytes as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::WorkingSet,
        key: "working_set",
        list_key: Some("working_set"),
        head: "working set",
        name: "working set",
        title: "Working set of the target",
        is_latency: false,
        is_recorded: true,
        unit: Unit::Bytes,
        // It depends on how often files are used, and is all that runs before protocol 26 and other sources know.
        role: Role::Compared,
        sql: "target_memory_bytes",
        index: Some("run_by_memory"),
        get: |figures| figures.target_memory_bytes.map(|bytes| bytes as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::ReceivedPerS,
        key: "received_per_s",
        list_key: Some("received"),
        head: "received",
        name: "received",
        title: "Data received",
        is_latency: false,
        unit: Unit::BytesPerS,
        // It follows from the responses.
        better: None,
        sql: "received_per_s",
        index: Some("run_by_received"),
        get: |figures| figures.received_per_s,
        ..LATENCY
    },
    counters::METRICS[0],
    counters::METRICS[1],
    counters::METRICS[2],
    counters::METRICS[3],
    counters::METRICS[4],
    counters::METRICS[5],
    counters::METRICS[6],
    MetricDef {
        metric: Metric::ThrottledShare,
        key: "throttled_share",
        list_key: Some("throttled"),
        head: "throttled",
        name: "CPU throttled",
        title: "CPU throttled",
        unit: Unit::Share,
        is_latency: false,
        is_recorded: true,
        // It explains latencies, which already include its cost.
        role: Role::Listed,
        sql: "(figures ->> 'throttled_share')",
        get: |figures| figures.throttled_share,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::Startup,
        key: "startup",
        list_key: Some("startup"),
        head: "start-up",
        name: "Start-up time",
        title: "Start-up time",
        is_latency: false,
        is_recorded: true,
        role: Role::Listed,
        sql: "(figures ->> 'startup_ms')",
        get: |figures| figures.startup_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::IdleMemory,
        key: "idle_memory",
        list_key: Some("idle_memory"),
        head: "idle memory",
        name: "Idle memory",
        title: "Idle memory",
        unit: Unit::Bytes,
        is_latency: false,
        is_recorded: true,
        role: Role::Listed,
        sql: "(figures ->> 'idle_held_memory_bytes')",
        get: |figures| figures.idle_held_memory_bytes.map(|bytes| bytes as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::FileCache,
        key: "file_cache",
        list_key: Some("file_cache"),
        head: "file cache",
        name: "file cache",
        title: "File cache of the target",
        unit: Unit::Bytes,
        // The kernel keeps files as long as nothing else needs the memory.
        better: None,
        is_latency: false,
        is_recorded: true,
        role: Role::Listed,
        sql: "(figures ->> 'file_cache_bytes')",
        get: |figures| figures.file_cache_bytes.map(|bytes| bytes as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::Requests,
        key: "requests",
        list_key: Some("requests"),
        head: "requests",
        name: "requests",
        title: "Requests",
        is_latency: false,
        unit: Unit::Count,
        better: Some(Better::Higher),
        role: Role::Listed,
        sql: "(figures ->> 'requests')",
        get: |figures| figures.requests.map(|count| count as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::Failed,
        key: "failed",
        list_key: Some("failed"),
        head: "failed requests",
        name: "failed",
        title: "Failed requests",
        is_latency: false,
        unit: Unit::Count,
        role: Role::Listed,
        sql: "(figures ->> 'failed')",
        get: |figures| figures.failed.map(|count| count as f64),
        ..LATENCY
    },
    MetricDef {
        metric: Metric::MinMs,
        key: "min_ms",
        list_key: Some("min"),
        head: "min ms",
        name: "min",
        title: "Latency min",
        role: Role::Listed,
        sql: "(figures ->> 'min_ms')",
        get: |figures| figures.min_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::TtfbP95Ms,
        key: "ttfb_p95_ms",
        list_key: Some("ttfb_p95"),
        head: "TTFB p95 ms",
        name: "time to first byte p95",
        title: "Time to first byte p95",
        is_latency: false,
        // Part of the latency, so it explains one that differs.
        role: Role::Listed,
        sql: "(figures ->> 'ttfb_p95_ms')",
        get: |figures| figures.ttfb_p95_ms,
        ..LATENCY
    },
    MetricDef {
        metric: Metric::MeasuredS,
        key: "measured_s",
        list_key: Some("measured"),
        head: "measured s",
        name: "measured time",
        title: "Measured time",
        is_latency: false,
        unit: Unit::Seconds,
        better: None,
        role: Role::Listed,
        sql: "(figures ->> 'measured_s')",
        get: |figures| figures.measured_s,
        ..LATENCY
    },
];

/// Returns the metrics that comparisons show, in the order of their columns.
pub fn compared() -> impl Iterator<Item = Metric> {
    METRICS.iter().filter(|def| def.role >= Role::Compared).map(|def| def.metric)
}

/// Returns the metrics that comparisons judge.
pub fn judged() -> impl Iterator<Item = Metric> {
    METRICS.iter().filter(|def| def.role == Role::Judged).map(|def| def.metric)
}

#[cfg(test)]
mod tests;
