//! The time series of a run as JSON, CSV and charts have it. Pure.

#[cfg(test)]
pub mod tests;

use brewbench_agent::{
    series::histogram::{Histogram, quantile::Quantile},
    wire::series::{Consumption, Host, Lacks, Second, Series, Stretch, Usage},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    results::{evidence::Evidence, verdict::usage::throttled_share},
    runs::model::Run,
};

/// The series of one run. All times count from the beginning of the first stretch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SeriesBody {
    /// The run.
    #[schema(value_type = String)]
    pub run: RunId,
    /// When the first stretch began, by the agent's clock (of several agents by the server's), unix ms.
    pub start_ms: Option<i64>,
    /// The warm-up, where there was one.
    pub warm_up: Option<StretchBody>,
    /// What counts.
    pub measured: Option<StretchBody>,
}

/// Warm-up or measurement.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StretchBody {
    /// When it began, seconds.
    pub from_s: f64,
    /// What the load did.
    pub seconds: Vec<SecondBody>,
    /// What was used meanwhile.
    pub usage: Vec<UsageBody>,
    /// What is known to be missing; all 0 in an ordinary run.
    pub lacks: LacksBody,
    /// Latencies of all its successful requests.
    pub succeeded: LatencyBody,
    /// Latencies of all its failed requests.
    pub failed: LatencyBody,
}

/// What the load did in about a second.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SecondBody {
    /// Its end, seconds.
    pub at_s: f64,
    /// How long it was, seconds.
    pub length_s: f64,
    /// Requests that ended.
    pub requests: u64,
    /// Requests per second.
    pub rps: Option<f64>,
    /// Failed requests per second.
    pub failed_rps: Option<f64>,
    /// Iterations that ended.
    pub iterations: u64,
    /// Iterations that could not begin in time.
    pub dropped_iterations: u64,
    /// Received by k6.
    pub received_bytes: u64,
    /// Sent by k6.
    pub sent_bytes: u64,
    /// Virtual users at its end.
    pub vus: Option<u64>,
    /// Latencies of the requests that succeeded.
    pub succeeded: LatencyBody,
    /// Latencies of the requests that failed.
    pub failed: LatencyBody,
}

/// How long requests took, ms. Percentiles are null where there was no request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct LatencyBody {
    /// How many requests.
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
    /// The longest.
    pub max_ms: Option<f64>,
    /// For each bucket that is not empty its upper edge in ms and how many requests are in it, ascending.
    #[schema(value_type = Vec<Vec<f64>>)]
    pub buckets: Vec<(f64, u64)>,
}

/// What was used since the sample before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct UsageBody {
    /// When the sample was taken, seconds; may lie a little before the stretch.
    pub at_s: f64,
    /// Since the sample before, seconds; null for the first of a stretch, which has levels only.
    pub length_s: Option<f64>,
    /// By the target's processes.
    pub target: SideBody,
    /// By k6.
    pub generator: SideBody,
    /// By everything on the machine.
    pub host: HostBody,
}

/// What one side of a run used; null where the machine does not tell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct SideBody {
    /// CPU, cores.
    pub cores: Option<f64>,
    /// The share of the time in which its quota held it back, 0 to 1; null where it is not known on how many cores it ran.
    pub throttled: Option<f64>,
    /// Memory in use, without what the kernel can take back at once.
    pub memory_bytes: Option<u64>,
    /// The highest memory use so far.
    pub peak_memory_bytes: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Open files, sockets among them.
    pub open_files: Option<u64>,
}

/// What the whole machine did. CPU in cores, null in the first sample.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct HostBody {
    /// In programs.
    pub user_cores: Option<f64>,
    /// In the kernel.
    pub system_cores: Option<f64>,
    /// Taken by the hypervisor for somebody else.
    pub steal_cores: Option<f64>,
    /// Idle while something waited for a disk.
    pub iowait_cores: Option<f64>,
    /// Load average over a minute.
    pub load: f64,
    /// Received by all network interfaces but loopback, bytes a second.
    pub received_rate: Option<f64>,
    /// Sent, bytes a second.
    pub sent_rate: Option<f64>,
}

/// How many cores each side of a run had, over which the kernel adds up throttled time; none where that is not known.
#[derive(Clone, Copy, Debug, Default)]
pub struct SideCores {
    target: Option<f64>,
    generator: Option<f64>,
}

impl SideCores {
    /// Of a run; before it has ended nobody knows what k6 was given.
    pub fn of(run: &Run, evidence: Option<&Evidence>) -> Self {
        let count = |cores: &[usize]| Some(cores.len() as f64).filter(|count| *count > 0.0);
        let asked = run.size.as_ref().map(|size| size.vcpus.ceil());
        Self {
            target: evidence.and_then(|evidence| count(&evidence.cores.target)).or(asked),
            generator: evidence.and_then(|evidence| count(&evidence.cores.generator)),
        }
    }
}

/// What a stretch is known to lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacksBody {
    /// Seconds for which k6 told nothing; what happened in them is in the one that follows.
    pub missing_seconds: u64,
    /// What k6 told too early; it is in the second before.
    pub doubled_seconds: u64,
    /// Times that k6's counters went backwards.
    pub restarts: u64,
    /// What k6 told and could not be understood.
    pub damaged: u64,
    /// What was left out because the script has too many different tags.
    pub left_out: u64,
    /// 1 when k6 did not say that it had told everything.
    pub unfinished: u64,
}

impl SeriesBody {
    /// The series of a run in words of the API.
    pub fn new(run: &RunId, series: &Series, cores: SideCores) -> Self {
        let start_ms = start_ms(series);
        let stretch = |stretch: &Option<Stretch>| {
            stretch
                .as_ref()
                .map(|stretch| StretchBody::new(stretch, offset_ms(stretch, start_ms.unwrap_or_default()), cores))
        };
        Self { run: run.clone(), start_ms, warm_up: stretch(&series.warm_up), measured: stretch(&series.measured) }
    }

    /// Warm-up and measurement, as far as they are there.
    pub fn stretches(&self) -> impl Iterator<Item = &StretchBody> {
        self.warm_up.iter().chain(&self.measured)
    }
}

/// When the first stretch of a series began, by the agent's clock, unix ms.
pub fn start_ms(series: &Series) -> Option<i64> {
    series.warm_up.as_ref().or(series.measured.as_ref()).map(|stretch| stretch.start_ms)
}

/// How long after the start of a series one of its stretches began, ms.
pub fn offset_ms(stretch: &Stretch, start_ms: i64) -> i64 {
    stretch.start_ms.saturating_sub(start_ms)
}

impl StretchBody {
    fn new(stretch: &Stretch, offset_ms: i64, cores: SideCores) -> Self {
        let Stretch { start_ms: _, seconds, usage, lacks } = stretch;
        let (succeeded, failed) = latencies(stretch);
        Self {
            from_s: in_seconds(offset_ms),
            seconds: seconds_after(offset_ms, 0, seconds),
            usage: usage_after(offset_ms, None, usage, cores),
            lacks: (*lacks).into(),
            succeeded: (&succeeded).into(),
            failed: (&failed).into(),
        }
    }
}

/// Latencies of all successful and of all failed requests of a stretch.
pub fn latencies(stretch: &Stretch) -> (Histogram, Histogram) {
    let mut sums = (Histogram::default(), Histogram::default());
    for second in &stretch.seconds {
        sums.0.add(&second.succeeded);
        sums.1.add(&second.failed);
    }
    sums
}

/// The same in fewer points, as many of them added up as it takes: what a screen has no room for.
#[must_use]
pub fn thinned(series: Series, most: usize) -> Series {
    let thin = |stretch: Stretch| {
        let Stretch { seconds, usage, .. } = &stretch;
        let seconds = added(seconds, most, Second::add);
        let usage = added(usage, most, Usage::add);
        Stretch { seconds, usage, ..stretch }
    };
    Series { warm_up: series.warm_up.map(thin), measured: series.measured.map(thin) }
}

pub(crate) fn added<T: Clone>(points: &[T], most: usize, add: fn(&mut T, T)) -> Vec<T> {
    let together = points.len().div_ceil(most).max(1);
    let chunks = points.chunks(together);
    chunks
        .filter_map(|chunk| {
            chunk.iter().cloned().reduce(|mut sum, next| {
                add(&mut sum, next);
                sum
            })
        })
        .collect()
}

/// Seconds that follow one which ended at `before_ms` of its stretch, which began `offset_ms` after the series.
pub fn seconds_after(offset_ms: i64, before_ms: u32, seconds: &[Second]) -> Vec<SecondBody> {
    let befores = std::iter::once(before_ms).chain(seconds.iter().map(|second| second.until_ms));
    seconds.iter().zip(befores).map(|(second, before)| SecondBody::new(second, offset_ms, before)).collect()
}

/// Samples that follow one of `before_ms` of their stretch, if they do.
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
        let Consumption { cpu_us, throttled_us, memory_bytes, peak_memory_bytes, threads, open_files } = *side;
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
            peak_memory_bytes,
            threads,
            open_files,
        }
    }
}

/// How many observations each bucket has, by its upper bound in ms.
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

impl From<Lacks> for LacksBody {
    fn from(lacks: Lacks) -> Self {
        let Lacks { missing_seconds, doubled_seconds, restarts, damaged, left_out, unfinished } = lacks;
        Self { missing_seconds, doubled_seconds, restarts, damaged, left_out, unfinished }
    }
}

pub(crate) fn in_seconds(ms: i64) -> f64 {
    ms as f64 / 1e3
}

/// A count by time; nothing where no time passed.
pub(crate) fn per(count: f64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| rounded(count / seconds))
}

/// To a ten-thousandth: of milliseconds, requests a second and cores nobody can tell more.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}
