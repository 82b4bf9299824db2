//! What comparisons do with a metric: words, differences, who may be judged. What a metric is stands in [`crate::metrics`].

use brewbench_agent::wire::load::Load;

use super::statistics::{Better, Spread};
pub use crate::metrics::Metric;
use crate::{
    metrics::{
        self,
        definition::{Role, Unit},
    },
    runs::{model::Run, store::cells::PastRun},
    web::format::{self, Figure},
};

impl Metric {
    /// Those of the latency chart.
    pub const LATENCY: [Self; 7] =
        [Self::AvgMs, Self::P50Ms, Self::P90Ms, Self::P95Ms, Self::P99Ms, Self::P999Ms, Self::MaxMs];

    /// A column's head, with the unit where the cells have none.
    pub fn head(self) -> &'static str {
        self.def().head
    }

    /// The short name on a chart's axis and in a sentence.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// Whether it is a share, whose differences are told in points.
    pub fn is_share(self) -> bool {
        self.def().unit == Unit::Share
    }

    /// Whether a mean over several runs means anything; that of percentiles does not.
    pub fn has_mean(self) -> bool {
        self.min_requests().is_none() && self != Self::MaxMs
    }

    /// Whether it is judged, or only shown.
    pub fn is_judged(self) -> bool {
        self.def().role == Role::Judged
    }

    /// Whether it comes from what an agent recorded beside the summary.
    pub fn is_recorded(self) -> bool {
        self.def().is_recorded
    }

    /// Its unit, and which way is better.
    pub fn unit(self) -> String {
        let unit = match self.def().unit {
            Unit::RequestsPerS => "requests/s",
            Unit::Share => "share of the requests",
            Unit::Bytes => "at most",
            Unit::BytesPerS => "per second",
            Unit::Ms => "ms",
            Unit::Seconds => "s",
            Unit::Count => "in all",
        };
        match self.better() {
            Some(Better::Higher) => format!("{unit}, higher is better"),
            Some(Better::Lower) => format!("{unit}, lower is better"),
            None => unit.to_owned(),
        }
    }

    /// The name at the head of a chart or a table.
    pub fn title(self) -> &'static str {
        self.def().title
    }

    /// Which way is better; none where neither is.
    pub fn better(self) -> Option<Better> {
        self.def().better
    }

    /// The word for a difference: throughput and latency are faster or slower, amounts more or less.
    pub fn word(self, change: f64) -> &'static str {
        if change == 0.0 {
            return "the same";
        }
        let is_speed = self == Self::Rps || self.def().is_latency;
        match (is_speed, (change > 0.0) == (self.better() == Some(Better::Higher))) {
            (true, true) => "faster",
            (true, false) => "slower",
            (false, _) if change > 0.0 => "more",
            (false, _) => "less",
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
        (self.def().get)(&run.figures)
    }

    /// The fewest requests of a run for which it is judged.
    pub fn min_requests(self) -> Option<u64> {
        self.def().min_requests
    }

    /// Whether a run has too few requests for it to be judged.
    pub fn has_too_few_requests(self, run: &Run) -> bool {
        self.min_requests().is_some_and(|fewest| run.figures.requests.is_none_or(|requests| requests < fewest))
    }

    /// The figure of a run where it may be judged; what is shown is [`Metric::of`].
    pub fn judged_value(self, run: &Run) -> Option<f64> {
        self.of(run).filter(|_| !self.has_too_few_requests(run))
    }

    /// That some of these runs have too few requests for it, in a sentence; none where all have enough.
    pub fn too_few_requests<'a>(self, runs: impl Iterator<Item = &'a Run>) -> Option<String> {
        let few = runs.filter(|run| self.of(run).is_some() && self.has_too_few_requests(run));
        let counts: Vec<u64> = few.map(|run| run.figures.requests.unwrap_or(0)).collect();
        Some(format!(
            "{} is judged from {} requests a run on; {} fewer, the least {}",
            self.name(),
            format::count(self.min_requests()).text(),
            if counts.len() == 1 { "1 run has".to_owned() } else { format!("{} runs have", counts.len()) },
            format::count(counts.iter().min().copied()).text(),
        ))
        .filter(|_| !counts.is_empty())
    }

    /// The figure of a run of the past; none of a metric that comparisons do not show.
    pub fn of_past(self, run: &PastRun) -> Option<f64> {
        run.figures.get(self as usize).copied().flatten()
    }

    /// The metric that a comparison of these runs tests first: throughput; where the load fixes that, p99.
    pub fn primary<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let mut loads = runs.into_iter().filter_map(|run| run.load.as_ref()).peekable();
        let is_open = loads.peek().is_some() && loads.all(|load| matches!(load, Load::Open(_)));
        if is_open { Self::P99Ms } else { Self::Rps }
    }

    /// The metric of this name, of those that are judged.
    pub fn judged(name: &str) -> Result<Self, String> {
        metrics::judged().find(|metric| metric.key() == name).ok_or_else(|| {
            let known: Vec<_> = metrics::judged().map(Self::key).collect();
            format!("{name:?} is not a judged metric; there are {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentile_is_judged_only_from_enough_requests() {
        use crate::compare::testing::{figured, run};
        let with = |requests| figured(run("servy", 1), |figures| figures.requests = requests);
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
