//! The time series of a run for JSON, CSV and charts. Pure.

#[cfg(test)]
pub mod tests;

use brewbench_wire::{
    histogram::{Histogram, quantile::Quantile},
    series::{Consumption, Gaps, Host, Second, Series, Usage, Window},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    results::{evidence::Evidence, verdict::usage::throttled_share},
    runs::model::Run,
};

/// The time series of a run. All times count from the start of its first part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesBody {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// When the first part started, unix ms: by the agent's clock, for a distributed run by the server's.
    pub start_ms: Option<i64>,
    /// The warm-up, if there was one.
    pub warm_up: Option<WindowBody>,
    /// The measurement.
    pub measured: Option<WindowBody>,
}

/// Warm-up or measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WindowBody {
    /// When it started, seconds.
    pub from_s: f64,
    /// Load and latencies per second.
    pub seconds: Vec<SecondBody>,
    /// Samples of resource use.
    pub usage: Vec<UsageBody>,
    /// Known gaps; all 0 in an ordinary run.
    pub gaps: GapsBody,
    /// Latencies of all its successful requests.
    pub succeeded: LatencyBody,
    /// Latencies of all its failed requests.
    pub failed: LatencyBody,
}

/// Load and latencies of about a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecondBody {
    /// Its end, seconds.
    pub at_s: f64,
    /// Its length, seconds.
    pub length_s: f64,
    /// Completed requests.
    pub requests: u64,
    /// Requests per second.
    pub rps: Option<f64>,
    /// Failed requests per second.
    pub failed_rps: Option<f64>,
    /// Completed iterations.
    pub iterations: u64,
    /// Iterations that could not start in time.
    pub dropped_iterations: u64,
    /// Bytes that k6 received.
    pub received_bytes: u64,
    /// Bytes that k6 sent.
    pub sent_bytes: u64,
    /// Virtual users at its end.
    pub vus: Option<u64>,
    /// Latencies of the requests that succeeded.
    pub succeeded: LatencyBody,
    /// Latencies of the requests that failed.
    pub failed: LatencyBody,
}

/// Latency distribution, ms. Percentiles are null without requests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBody {
    /// Number of requests.
    pub count: u64,
    /// Their mean.
    pub mean_ms: Option<f64>,
    /// Median.
    pub p50_ms: Option<f64>,
    /// 90th percentile.
    pub p90_ms: Option<f64>,
    /// 95th percentile.
    pub p95_ms: Option<f64>,
    /// 99th percentile.
    pub p99_ms: Option<f64>,
    /// 99.9th percentile.
    pub p999_ms: Option<f64>,
    /// Maximum.
    pub max_ms: Option<f64>,
    /// Upper bound in ms and number of requests of each bucket that is not empty, ascending.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub buckets: Vec<(f64, u64)>,
}

/// Resource use since the previous sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageBody {
    /// When the sample was taken, seconds; may be shortly before the part.
    pub at_s: f64,
    /// Time since the previous sample, seconds; null for the first of a part, which has levels only.
    pub length_s: Option<f64>,
    /// Used by the target's processes.
    pub target: SideBody,
    /// Used by k6.
    pub generator: SideBody,
    /// Used by everything on the machine.
    pub host: HostBody,
}

/// Resource use of the target or the load generator; null if the machine does not report it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SideBody {
    /// CPU use, cores.
    pub cores: Option<f64>,
    /// Share of the time for which its quota throttled it, 0 to 1; null if its number of cores is unknown.
    pub throttled: Option<f64>,
    /// Working set: memory in use with the file cache that was used recently.
    pub memory_bytes: Option<u64>,
    /// Memory held, without file cache; null before protocol 26.
    #[serde(default)]
    pub held_memory_bytes: Option<u64>,
    /// File cache; null before protocol 26.
    #[serde(default)]
    pub file_cache_bytes: Option<u64>,
    /// Peak memory use so far, file cache included.
    pub peak_memory_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Open files, including sockets.
    pub open_files: Option<u64>,
}

/// Resource use of the machine. CPU in cores; null in the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostBody {
    /// User mode.
    pub user_cores: Option<f64>,
    /// Kernel mode.
    pub system_cores: Option<f64>,
    /// Given to other virtual machines by the hypervisor.
    pub steal_cores: Option<f64>,
    /// Idle while waiting for a disk.
    pub iowait_cores: Option<f64>,
    /// One-minute load average.
    pub load: f64,
    /// Received by all network interfaces except loopback, bytes per second.
    pub received_rate: Option<f64>,
    /// Sent by these interfaces, bytes per second.
    pub sent_rate: Option<f64>,
}

/// Cores of target and load generator, over which the kernel sums throttled time; None if unknown.
#[derive(Clone, Copy, Debug, Default)]
pub struct SideCores {
    target: Option<f64>,
    generator: Option<f64>,
}

impl SideCores {
    /// Returns the cores of a run; those of k6 are unknown until the run has ended.
    pub fn new(run: &Run, evidence: Option<&Evidence>) -> Self {
        let count = |cores: &[usize]| Some(cores.len() as f64).filter(|count| *count > 0.0);
        let requested = run.spec.size.as_ref().map(|size| size.total_vcpus().ceil());
        Self {
            target: evidence.and_then(|evidence| count(&evidence.cores.target)).or(requested),
            generator: evidence.and_then(|evidence| count(&evidence.cores.generator)),
        }
    }
}

/// Known gaps of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GapsBody {
    /// Seconds without a report of k6; their counts are in the following second.
    pub missing_seconds: u64,
    /// Reports of k6 that came too early; their counts are in the previous second.
    pub doubled_seconds: u64,
    /// Times that k6's counters went backwards.
    pub restarts: u64,
    /// Reports of k6 that could not be parsed.
    pub damaged: u64,
    /// Values left out because the script has too many different tags.
    pub dropped_values: u64,
    /// 1 if k6 did not confirm the end of its reports.
    pub unfinished: u64,
}

impl SeriesBody {
    /// Converts the series of a run.
    pub fn new(run: &RunId, series: &Series, cores: SideCores) -> Self {
        let start_ms = start_ms(series);
        let window = |window: &Option<Window>| {
            window
                .as_ref()
                .map(|window| WindowBody::new(window, offset_ms(window, start_ms.unwrap_or_default()), cores))
        };
        Self { run: run.clone(), start_ms, warm_up: window(&series.warm_up), measured: window(&series.measured) }
    }

    /// Returns warm-up and measurement, as far as they exist.
    pub fn windows(&self) -> impl Iterator<Item = &WindowBody> {
        self.warm_up.iter().chain(&self.measured)
    }
}

/// Returns when the first part of a series started, by the agent's clock, unix ms.
pub fn start_ms(series: &Series) -> Option<i64> {
    series.warm_up.as_ref().or(series.measured.as_ref()).map(|window| window.start_ms)
}

/// Returns how long after the start of a series one of its parts started, ms.
pub fn offset_ms(window: &Window, start_ms: i64) -> i64 {
    window.start_ms.saturating_sub(start_ms)
}

impl WindowBody {
    fn new(window: &Window, offset_ms: i64, cores: SideCores) -> Self {
        let Window { start_ms: _, seconds, usage, gaps } = window;
        let (succeeded, failed) = latencies(window);
        Self {
            from_s: in_seconds(offset_ms),
            seconds: seconds_after(offset_ms, 0, seconds),
            usage: usage_after(offset_ms, None, usage, cores),
            gaps: (*gaps).into(),
            succeeded: (&succeeded).into(),
            failed: (&failed).into(),
        }
    }
}

/// Returns the latencies of all successful and of all failed requests of a part.
pub fn latencies(window: &Window) -> (Histogram, Histogram) {
    let mut sums = (Histogram::default(), Histogram::default());
    for second in &window.seconds {
        sums.0.add(&second.succeeded);
        sums.1.add(&second.failed);
    }
    sums
}

/// Merges neighbouring points until each part has at most `most`, for display.
#[must_use]
pub fn limit_points(series: Series, most: usize) -> Series {
    let limit = |window: Window| {
        let Window { seconds, usage, .. } = &window;
        let seconds = merge_chunks(seconds, most, Second::add);
        let usage = merge_chunks(usage, most, Usage::add);
        Window { seconds, usage, ..window }
    };
    Series { warm_up: series.warm_up.map(limit), measured: series.measured.map(limit) }
}

pub(crate) fn merge_chunks<T: Clone>(points: &[T], most: usize, add: fn(&mut T, T)) -> Vec<T> {
    let chunk_len = points.len().div_ceil(most).max(1);
    let chunks = points.chunks(chunk_len);
    chunks
        .filter_map(|chunk| {
            chunk.iter().cloned().reduce(|mut sum, next| {
                add(&mut sum, next);
                sum
            })
        })
        .collect()
}

/// Converts seconds that follow one ending at `before_ms`; their part started `offset_ms` after the series.
pub fn seconds_after(offset_ms: i64, before_ms: u32, seconds: &[Second]) -> Vec<SecondBody> {
    let befores = std::iter::once(before_ms).chain(seconds.iter().map(|second| second.until_ms));
    seconds.iter().zip(befores).map(|(second, before)| SecondBody::new(second, offset_ms, before)).collect()
}

/// Converts samples that follow one taken at `before_ms` of their part, if there is one.
pub fn usage_after(offset_ms: i64, before_ms: Option<i32>, usage: &[Usage], cores: SideCores) -> Vec<UsageBody> {
    let befores = std::iter::once(before_ms).chain(usage.iter().map(|sample| Some(sample.at_ms)));
    usage.iter().zip(befores).map(|(sample, before)| UsageBody::new(sample, offset_ms, before, cores)).collect()
}

impl SecondBody {
    fn new(second: &Second, offset_ms: i64, before_ms: u32) -> Self {
        let length_s = in_seconds(second.until_ms.saturating_sub(before_ms).into());
        Self {
            at_s: in_seconds(offset_ms.saturating_add(second.until_ms.into())),
            length_s,
            requests: second.requests(),
            rps: per(second.requests() as f64, length_s),
            failed_rps: per(second.failed.total() as f64, length_s),
            iterations: second.iterations,
            dropped_iterations: second.dropped_iterations,
            received_bytes: second.received_bytes,
            sent_bytes: second.sent_bytes,
            vus: second.vus,
            succeeded: (&second.succeeded).into(),
            failed: (&second.failed).into(),
        }
    }
}

impl UsageBody {
    fn new(usage: &Usage, offset_ms: i64, before_ms: Option<i32>, sides: SideCores) -> Self {
        let length_s = before_ms.map(|before| in_seconds(i64::from(usage.at_ms) - i64::from(before)));
        let Host { user_us, system_us, steal_us, iowait_us, load_milli, received_bytes, sent_bytes } = usage.host;
        let cores = |us: u64| per(us as f64 / 1e6, length_s?);
        let rate = |bytes: u64| per(bytes as f64, length_s?);
        Self {
            at_s: in_seconds(offset_ms.saturating_add(usage.at_ms.into())),
            length_s,
            target: SideBody::new(&usage.target, length_s, sides.target),
            generator: SideBody::new(&usage.generator, length_s, sides.generator),
            host: HostBody {
                user_cores: cores(user_us),
                system_cores: cores(system_us),
                steal_cores: cores(steal_us),
                iowait_cores: cores(iowait_us),
                load: load_milli as f64 / 1e3,
                received_rate: rate(received_bytes),
                sent_rate: rate(sent_bytes),
            },
        }
    }
}

impl SideBody {
    fn new(side: &Consumption, length_s: Option<f64>, cores: Option<f64>) -> Self {
        let Consumption { cpu_us, throttled_us, memory_bytes, peak_memory_bytes, threads, open_files, .. } = *side;
        let share = |us: Option<u64>| per(us? as f64 / 1e6, length_s?);
        let throttled = |us: u64| match (us, cores) {
            (0, _) => length_s.map(|_| 0.0),
            (us, Some(cores)) => length_s.map(|length| rounded(throttled_share(us as f64 / 1e6, length, cores))),
            (_, None) => None,
        };
        Self {
            cores: share(cpu_us),
            throttled: throttled_us.and_then(throttled),
            memory_bytes,
            held_memory_bytes: side.held_memory_bytes,
            file_cache_bytes: side.file_cache_bytes,
            peak_memory_bytes,
            threads,
            open_files,
        }
    }
}

/// Returns the upper bound in ms and the count of each bucket.
pub fn buckets_ms(histogram: &Histogram) -> impl Iterator<Item = (f64, u64)> {
    let zero = (histogram.zero() > 0).then_some((0.0, histogram.zero()));
    zero.into_iter().chain(histogram.buckets().map(|(index, count)| (rounded(histogram.bounds_ms(index).1), count)))
}

impl From<&Histogram> for LatencyBody {
    fn from(histogram: &Histogram) -> Self {
        let estimate = |quantile: Option<Quantile>| quantile.map(|quantile| rounded(quantile.estimate));
        let at = |q| estimate(histogram.quantile(q));
        Self {
            count: histogram.total(),
            mean_ms: histogram.mean_ms().map(rounded),
            p50_ms: at(0.5),
            p90_ms: at(0.9),
            p95_ms: at(0.95),
            p99_ms: at(0.99),
            p999_ms: at(0.999),
            max_ms: estimate(histogram.max()),
            buckets: buckets_ms(histogram).collect(),
        }
    }
}

impl From<Gaps> for GapsBody {
    fn from(gaps: Gaps) -> Self {
        let Gaps { missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished } = gaps;
        Self { missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished }
    }
}

pub(crate) fn in_seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

/// Returns a rate; None if no time passed.
pub(crate) fn per(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| rounded(count / seconds))
}

/// Rounds to four decimals: more are noise for milliseconds, rates and cores.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
