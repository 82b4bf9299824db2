//! Metrics in comparisons: wording, differences and which runs are judged. [`crate::metrics`] defines the metrics.

use brewbench_wire::load::Load;

use super::statistics::{self, Better, Spread};
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
    /// The metrics of the latency chart.
    pub const LATENCY: [Self; 7] =
        [Self::AvgMs, Self::P50Ms, Self::P90Ms, Self::P95Ms, Self::P99Ms, Self::P999Ms, Self::MaxMs];

    /// Head of a column, with the unit if the cells have none.
    pub fn head(self) -> &'static str {
        self.def().head
    }

    /// Short name for axes and sentences.
    pub fn name(self) -> &'static str {
        self.def().name
    }

    /// Whether it is a share, whose differences are given in points.
    pub fn is_share(self) -> bool {
        self.def().unit == Unit::Share
    }

    /// Whether a mean over several runs is meaningful; the mean of percentiles is not.
    pub fn has_mean(self) -> bool {
        self.min_requests().is_none() && self != Self::MaxMs
    }

    /// Whether it is judged or only shown.
    pub fn is_judged(self) -> bool {
        self.def().role == Role::Judged
    }

    /// Whether the agent recorded it outside the summary.
    pub fn is_recorded(self) -> bool {
        self.def().is_recorded
    }

    /// Unit and direction.
    pub fn unit(self) -> String {
        let unit = match self.def().unit {
            Unit::RequestsPerS => "requests/s",
            Unit::Share => "share of the requests",
            Unit::Bytes => "at most",
            Unit::BytesPerS => "per second",
            Unit::Ms => "ms",
            Unit::Seconds => "s",
            Unit::Count => "in all",
            Unit::PerRequest => "per request",
        };
        match self.better() {
            Some(Better::Higher) => format!("{unit}, higher is better"),
            Some(Better::Lower) => format!("{unit}, lower is better"),
            None => unit.to_owned(),
        }
    }

    /// Title of a chart or a table.
    pub fn title(self) -> &'static str {
        self.def().title
    }

    /// Which direction is better; none if neither is.
    pub fn better(self) -> Option<Better> {
        self.def().better
    }

    /// Returns the word for a difference: faster or slower, for amounts more or less.
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

    /// Formats a difference: `−5.0 %`, for shares `+0.30 points`.
    pub fn difference(self, by: Option<f64>) -> Figure {
        if self.is_share() { format::points(by) } else { format::change(by) }
    }

    /// Formats the interval of a difference: `−5.0 % to −3.1 %`.
    pub fn interval(self, [low, high]: [f64; 2]) -> String {
        if !self.is_share() {
            return format::interval(low, high);
        }
        let [low, high] = [low, high].map(|end| format::points(Some(end)));
        format!("{} to {}", low.text(), high.text())
    }

    /// Formats the size of a difference: `2.4 %`, for shares `0.30 points`.
    pub fn amount(self, by: f64) -> String {
        let text = if self.is_share() { format::points(Some(by)) } else { format::percent(Some(by)) };
        text.text().trim_start_matches('+').to_owned()
    }

    /// Describes a minimum detectable effect. A percentage means little from twofold on.
    pub fn detectable(self, mde: f64) -> String {
        let fold = mde + 1.0;
        match self.is_share() || fold < 2.0 {
            true => format!("a difference below {} could have been missed", self.amount(mde)),
            false if fold < 9.95 => format!("the scatter hides differences below {fold:.1}-fold"),
            false => format!("the scatter hides differences below {fold:.0}-fold"),
        }
    }

    /// The value that represents several runs: the median, for shares the mean.
    ///
    /// The median of a share hides what happens in less than half of the runs.
    pub fn middle(self, spread: &Spread) -> f64 {
        if self.is_share() { spread.mean } else { spread.median }
    }

    /// The value that represents these values; none if there are none.
    pub fn middle_of(self, values: Vec<f64>) -> Option<f64> {
        statistics::spread(values).map(|spread| self.middle(&spread))
    }

    /// Value in a run.
    pub fn value_in(self, run: &Run) -> Option<f64> {
        (self.def().get)(&run.figures)
    }

    /// Minimum number of requests of a run to be judged.
    pub fn min_requests(self) -> Option<u64> {
        self.def().min_requests
    }

    /// Whether a run has too few requests to be judged.
    pub fn has_too_few_requests(self, run: &Run) -> bool {
        self.min_requests().is_some_and(|fewest| run.figures.requests.is_none_or(|requests| requests < fewest))
    }

    /// Value in a run if it may be judged; the shown value is [`Metric::value_in`].
    pub fn judged_value(self, run: &Run) -> Option<f64> {
        self.value_in(run).filter(|_| !self.has_too_few_requests(run))
    }

    /// Describes that some of these runs have too few requests; none if all have enough.
    pub fn too_few_requests<'a>(self, runs: impl Iterator<Item = &'a Run>) -> Option<String> {
        let few = runs.filter(|run| self.value_in(run).is_some() && self.has_too_few_requests(run));
        let counts: Vec<u64> = few.map(|run| run.figures.requests.unwrap_or(0)).collect();
        Some(format!(
            "{} needs at least {} requests per run; {} fewer (minimum {})",
            self.name(),
            format::count(self.min_requests()).text(),
            if counts.len() == 1 { "1 run has".to_owned() } else { format!("{} runs have", counts.len()) },
            format::count(counts.iter().min().copied()).text(),
        ))
        .filter(|_| !counts.is_empty())
    }

    /// Value in a past run; none for a metric that comparisons do not show.
    pub fn of_past(self, run: &PastRun) -> Option<f64> {
        run.figures.get(self as usize).copied().flatten()
    }

    /// The primary metric of these runs: throughput, or p99 if the load fixes the throughput. For duets beside other
    /// programs it is CPU time, of which those take the least.
    pub fn primary<'a>(runs: impl IntoIterator<Item = &'a Run>) -> Self {
        let (mut open, mut all, mut disturbed, mut is_duet) = (0, 0, 0, true);
        for run in runs {
            all += usize::from(run.spec.load.is_some());
            open += usize::from(matches!(run.spec.load, Some(Load::Open(_))));
            is_duet &= run.spec.duet;
            disturbed += usize::from(run.is_beside_others());
        }
        if is_duet && 2 * disturbed > all {
            Self::CpuMs
        } else if all > 0 && open == all {
            Self::P99Ms
        } else {
            Self::Rps
        }
    }

    /// Returns the judged metric with this key.
    pub fn judged(name: &str) -> Result<Self, String> {
        metrics::judged().find(|metric| metric.key() == name).ok_or_else(|| {
            let known: Vec<_> = metrics::judged().map(Self::key).collect();
            format!("{name:?} is not a judged metric; use one of {}", known.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_primary_for_duets_beside_other_programs() {
        let run = |is_duet: bool, code: Option<&str>| {
            let mut run = crate::runs::testing::finished("servy", 1);
            run.spec.duet = is_duet;
            run.reasons = code.map(|code| crate::runs::verdict::Reason::note(code, "x")).into_iter().collect();
            run
        };
        let of = |runs: &[Run]| Metric::primary(runs);
        let disturbed = || run(true, Some("host_disturbed"));
        assert_eq!(of(&[disturbed(), disturbed(), run(true, None)]), Metric::CpuMs);
        assert_eq!(of(&[disturbed(), run(true, None)]), Metric::Rps, "not most of them");
        assert_eq!(of(&[run(false, Some("host_disturbed"))]), Metric::Rps, "no duet");
        assert_eq!(of(&[run(true, Some("too_short"))]), Metric::Rps);
    }

    #[test]
    fn a_percentile_is_judged_only_from_enough_requests() {
        use crate::compare::testing::{figured, run};
        let with = |requests| figured(run("servy", 1), |figures| figures.requests = requests);
        for (metric, fewest) in [(Metric::P50Ms, 20), (Metric::P99Ms, 1_000), (Metric::P999Ms, 10_000)] {
            assert_eq!(metric.judged_value(&with(Some(fewest - 1))), None, "{metric:?}");
            assert_eq!(metric.judged_value(&with(None)), None, "{metric:?}");
            assert_eq!(metric.judged_value(&with(Some(fewest))), metric.value_in(&with(None)), "{metric:?}");
        }
        assert!(Metric::Rps.judged_value(&with(Some(1))).is_some());
        let runs = [with(Some(40)), with(Some(5_000))];
        let text = Metric::P99Ms.too_few_requests(runs.iter()).expect("a sentence");
        assert_eq!(text, "p99 needs at least 1,000 requests per run; 1 run has fewer (minimum 40)");
        assert_eq!(Metric::P50Ms.too_few_requests(runs.iter()), None);
    }

    #[test]
    fn effects_that_nobody_could_miss_are_described_in_words() {
        let text = |mde| Metric::Rps.detectable(mde).replace('\u{a0}', " ");
        assert_eq!(text(0.024), "a difference below 2.40 % could have been missed");
        assert_eq!(text(0.99), "a difference below 99 % could have been missed");
        assert_eq!(text(2.85), "the scatter hides differences below 3.9-fold");
        assert_eq!(text(241.61), "the scatter hides differences below 243-fold");
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
