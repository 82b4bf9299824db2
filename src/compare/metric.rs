//! The figures that a comparison shows of every cell, in the order of its columns.

use brewbench_agent::wire::load::Load;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::statistics::{Better, Spread};
use crate::{
    runs::{Run, queries::cells::PastRun},
    web::format::{self, Figure},
};

/// One column. Latency is that of all requests, failed ones included.
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
    /// Greatest latency, ms.
    MaxMs,
    /// Failed requests as a share of all, 0 to 1.
    ErrorRate,
    /// CPU time of the target for a request, ms.
    CpuMs,
    /// The most memory that the target used, bytes.
    Memory,
    /// Bytes received per second.
    ReceivedPerS,
}

impl Metric {
    /// All, in order.
    pub const ALL: [Self; 12] = [
        Self::Rps,
        Self::AvgMs,
        Self::P50Ms,
        Self::P90Ms,
        Self::P95Ms,
        Self::P99Ms,
        Self::P999Ms,
        Self::MaxMs,
        Self::ErrorRate,
        Self::CpuMs,
        Self::Memory,
        Self::ReceivedPerS,
    ];

    /// Those of the latency chart.
    pub const LATENCY: [Self; 7] =
        [Self::AvgMs, Self::P50Ms, Self::P90Ms, Self::P95Ms, Self::P99Ms, Self::P999Ms, Self::MaxMs];

    /// Those that are judged. The others follow from the same requests: judging them too would only make it harder to
    /// be sure of any.
    pub const JUDGED: [Self; 6] = [Self::Rps, Self::P50Ms, Self::P99Ms, Self::ErrorRate, Self::CpuMs, Self::Memory];

    /// What JSON, addresses and commands call it.
    pub fn key(self) -> &'static str {
        match self {
            Self::Rps => "rps",
            Self::AvgMs => "avg_ms",
            Self::P50Ms => "p50_ms",
            Self::P90Ms => "p90_ms",
            Self::P95Ms => "p95_ms",
            Self::P99Ms => "p99_ms",
            Self::P999Ms => "p999_ms",
            Self::MaxMs => "max_ms",
            Self::ErrorRate => "error_rate",
            Self::CpuMs => "cpu_ms",
            Self::Memory => "memory",
            Self::ReceivedPerS => "received_per_s",
        }
    }

    /// A column's head, with the unit where the cells have none.
    pub fn head(self) -> &'static str {
        match self {
            Self::Rps => "requests/s",
            Self::AvgMs => "avg ms",
            Self::P50Ms => "p50 ms",
            Self::P90Ms => "p90 ms",
            Self::P95Ms => "p95 ms",
            Self::P99Ms => "p99 ms",
            Self::P999Ms => "p99.9 ms",
            Self::MaxMs => "max ms",
            Self::ErrorRate => "failed",
            Self::CpuMs => "CPU ms",
            Self::Memory => "memory",
            Self::ReceivedPerS => "received",
        }
    }

    /// The short name on a chart's axis and in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rps => "throughput",
            Self::AvgMs => "avg",
            Self::P50Ms => "p50",
            Self::P90Ms => "p90",
            Self::P95Ms => "p95",
            Self::P99Ms => "p99",
            Self::P999Ms => "p99.9",
            Self::MaxMs => "max",
            Self::ErrorRate => "failed requests",
            Self::CpuMs => "CPU time a request",
            Self::Memory => "memory",
            Self::ReceivedPerS => "received",
        }
    }

    /// Whether it is a share, whose differences are told in points.
    pub fn is_share(self) -> bool {
        self == Self::ErrorRate
    }

    /// Whether a mean over several runs means anything; that of percentiles does not.
    pub fn has_mean(self) -> bool {
        !matches!(self, Self::P50Ms | Self::P90Ms | Self::P95Ms | Self::P99Ms | Self::P999Ms | Self::MaxMs)
    }

    /// Whether it is judged, or only shown.
    pub fn is_judged(self) -> bool {
        Self::JUDGED.contains(&self)
    }

    /// Whether it comes from what an agent recorded beside the summary.
    pub fn is_recorded(self) -> bool {
        matches!(self, Self::CpuMs | Self::Memory)
    }

    /// Its unit, and which way is better.
    pub fn unit(self) -> String {
        let unit = match self {
            Self::Rps => "requests/s",
            Self::ErrorRate => "share of the requests",
            Self::Memory => "at most",
            Self::ReceivedPerS => "per second",
            _ => "ms",
        };
        match self.better() {
            Some(Better::Higher) => format!("{unit}, higher is better"),
            Some(Better::Lower) => format!("{unit}, lower is better"),
            None => unit.to_owned(),
        }
    }

    /// The name at the head of a chart or a table.
    pub fn title(self) -> String {
        match self {
            Self::Rps => "Throughput".to_owned(),
            Self::ErrorRate => "Failed requests".to_owned(),
            Self::CpuMs => "CPU time a request".to_owned(),
            Self::Memory => "Memory of the target".to_owned(),
            Self::ReceivedPerS => "Data received".to_owned(),
            latency => format!("Latency {}", latency.name()),
        }
    }

    /// Which way is better; the bytes received follow from the answers and are neither.
    pub fn better(self) -> Option<Better> {
        match self {
            Self::Rps => Some(Better::Higher),
            Self::ReceivedPerS => None,
            _ => Some(Better::Lower),
        }
    }

    /// The word for a difference: throughput and latency are faster or slower, amounts more or less.
    pub fn word(self, change: f64) -> &'static str {
        if change == 0.0 {
            return "the same";
        }
        match (self, change > 0.0) {
            (Self::ErrorRate | Self::CpuMs | Self::Memory | Self::ReceivedPerS, true) => "more",
            (Self::ErrorRate | Self::CpuMs | Self::Memory | Self::ReceivedPerS, false) => "less",
            (Self::Rps, up) => {
                if up {
                    "faster"
                } else {
                    "slower"
                }
            }
            (_, up) => {
                if up {
                    "slower"
                } else {
                    "faster"
                }
            }
        }
    }

    /// A difference in words: `−5.0 %`, or `+0.30 points` of a share.
    pub fn difference(self, by: Option<f64>) -> Figure {
        if self.is_share() { format::points(by) } else { format::change(by) }
    }

    /// The size of a difference in words: `2.4 %`, or `0.30 points` of a share.
    pub fn amount(self, by: f64) -> String {
        let text = if self.is_share() { format::points(Some(by)) } else { format::percent(Some(by)) };
        text.text().trim_start_matches('+').to_owned()
    }

    /// What stands for several runs: the median, or the mean of a share, of which a median hides what happens in less than
    /// half of them.
    pub fn middle(self, spread: &Spread) -> f64 {
        if self.is_share() { spread.mean } else { spread.median }
    }

    /// The figure of one run.
    pub fn of(self, run: &Run) -> Option<f64> {
        match self {
            Self::Rps => run.rps,
            Self::AvgMs => run.avg_ms,
            Self::P50Ms => run.p50_ms,
            Self::P90Ms => run.p90_ms,
            Self::P95Ms => run.p95_ms,
            Self::P99Ms => run.p99_ms,
            Self::P999Ms => run.p999_ms,
            Self::MaxMs => run.max_ms,
            Self::ErrorRate => run.error_rate,
            Self::CpuMs => run.cpu_ms_per_request,
            Self::Memory => run.target_memory_bytes.map(|bytes| bytes as f64),
            Self::ReceivedPerS => run.received_per_s,
        }
    }

    /// The fewest requests of a run for which it is judged: ten beyond the percentile, so 10/(1 − p). With fewer, the
    /// figure is that of a handful of requests. None for what is no percentile.
    pub fn min_requests(self) -> Option<u64> {
        match self {
            Self::P50Ms => Some(20),
            Self::P90Ms => Some(100),
            Self::P95Ms => Some(200),
            Self::P99Ms => Some(1_000),
            Self::P999Ms => Some(10_000),
            _ => None,
        }
    }

    /// Whether a run has too few requests for it to be judged.
    pub fn has_too_few_requests(self, run: &Run) -> bool {
        self.min_requests().is_some_and(|fewest| run.requests.is_none_or(|requests| requests < fewest))
    }

    /// The figure of a run where it may be judged; what is shown is [`Metric::of`].
    pub fn judged_value(self, run: &Run) -> Option<f64> {
        self.of(run).filter(|_| !self.has_too_few_requests(run))
    }

    /// That some of these runs have too few requests for it, in a sentence; none where all have enough.
    pub fn too_few_requests<'a>(self, runs: impl Iterator<Item = &'a Run>) -> Option<String> {
        let few = runs.filter(|run| self.of(run).is_some() && self.has_too_few_requests(run));
        let counts: Vec<u64> = few.map(|run| run.requests.unwrap_or(0)).collect();
        Some(format!(
            "{} is judged from {} requests a run on; {} fewer, the least {}",
            self.name(),
            format::count(self.min_requests()).text(),
            if counts.len() == 1 { "1 run has".to_owned() } else { format!("{} runs have", counts.len()) },
            format::count(counts.iter().min().copied()).text(),
        ))
        .filter(|_| !counts.is_empty())
    }

    /// The figure of a run of the past.
    pub fn of_past(self, run: &PastRun) -> Option<f64> {
        match self {
            Self::Rps => run.rps,
            Self::AvgMs => run.avg_ms,
            Self::P50Ms => run.p50_ms,
            Self::P90Ms => run.p90_ms,
            Self::P95Ms => run.p95_ms,
            Self::P99Ms => run.p99_ms,
            Self::P999Ms => run.p999_ms,
            Self::MaxMs => run.max_ms,
            Self::ErrorRate => run.error_rate,
            Self::CpuMs => run.cpu_ms,
            Self::Memory => run.memory_bytes,
            Self::ReceivedPerS => run.received_per_s,
        }
    }

    /// The metric that a comparison of these runs tests first: throughput; where the load fixes that, p99.
    pub fn primary<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut loads = runs.into_iter().filter_map(|run| run.load.as_ref()).peekable();
        let is_open = loads.peek().is_some() && loads.all(|load| matches!(load, Load::Open(_)));
        if is_open { Self::P99Ms } else { Self::Rps }
    }

    /// The metric of this name, of those that are judged.
    pub fn judged(name: &str) -> Result<Self, String> {
        Self::JUDGED.into_iter().find(|metric| metric.key() == name).ok_or_else(|| {
            let known: Vec<_> = Self::JUDGED.iter().map(|metric| metric.key()).collect();
            format!("{name:?} is not a judged metric; there are {}", known.join(", "))
        })
    }

    /// The figure as a table's cell.
    pub fn figure(self, value: Option<f64>) -> Figure {
        match self {
            Self::ErrorRate => format::percent(value),
            Self::Memory => format::bytes(value),
            Self::ReceivedPerS => format::rate(value),
            _ => format::number(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_is_called_alike_everywhere() {
        for metric in Metric::ALL {
            assert_eq!(serde_json::to_value(metric).expect("a word"), metric.key());
        }
    }

    #[test]
    fn a_percentile_is_judged_only_from_enough_requests() {
        use crate::compare::made_up::run;
        let with = |requests| Run { requests, ..run("servy", 1) };
        for (metric, fewest) in [(Metric::P50Ms, 20), (Metric::P99Ms, 1_000), (Metric::P999Ms, 10_000)] {
            assert_eq!(metric.judged_value(&with(Some(fewest - 1))), None, "{metric:?}");
            assert_eq!(metric.judged_value(&with(None)), None, "{metric:?}");
            assert_eq!(metric.judged_value(&with(Some(fewest))), metric.of(&with(None)), "{metric:?}");
        }
        assert!(Metric::Rps.judged_value(&with(Some(1))).is_some());
        let runs = [with(Some(40)), with(Some(5_000))];
        let told = Metric::P99Ms.too_few_requests(runs.iter()).expect("a sentence");
        assert_eq!(told, "p99 is judged from 1,000 requests a run on; 1 run has fewer, the least 40");
        assert_eq!(Metric::P50Ms.too_few_requests(runs.iter()), None);
    }

    #[test]
    fn more_throughput_and_less_latency_are_faster() {
        assert_eq!(Metric::Rps.word(0.2), "faster");
        assert_eq!(Metric::Rps.word(-0.2), "slower");
        assert_eq!(Metric::P99Ms.word(0.2), "slower");
        assert_eq!(Metric::P99Ms.word(-0.2), "faster");
        assert_eq!(Metric::ErrorRate.word(0.2), "more");
        assert_eq!(Metric::ReceivedPerS.word(-0.2), "less");
    }
}
