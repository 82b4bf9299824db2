//! The compare page on simulated runs: false alarms, coverage and power, within one experiment and across experiments.

use brewbench::{
    compare::{
        cell::Cell,
        chosen::Options,
        comparison_context::ComparisonContext,
        metric::Metric,
        stat::Stat,
        statistics::{ALPHA, Decision, Stratum, rank_test},
        view::Comparison,
    },
    runs::model::Run,
    web::series_style::Marks,
};
use rand::{Rng, rngs::StdRng};

use super::{
    noise::{Between, Within},
    tally::{Share, rounds},
    world::{BASE, OTHER, Plan, at_ms, experiment, history, of_size, only},
};

/// Results of simulated pages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pages {
    /// Pages that report any difference.
    pub any: Share,
    /// Comparisons that report a difference in throughput.
    pub throughput: Share,
    /// Comparisons that report a difference in throughput in the wrong direction.
    pub wrong: Share,
    /// Intervals of throughput that contain the true factor.
    pub covers: Share,
    /// Pages that cannot decide about throughput.
    pub cannot_say: Share,
    /// Pages on which a plain rank test of all runs, without strata and past, would report a difference.
    pub runs_alone: Share,
}

impl Pages {
    fn add(mut self, other: Self) -> Self {
        let Self { any, throughput, wrong, covers, cannot_say, runs_alone } = other;
        self.runs_alone = self.runs_alone.plus(runs_alone);
        self.any = self.any.plus(any);
        self.throughput = self.throughput.plus(throughput);
        self.wrong = self.wrong.plus(wrong);
        self.covers = self.covers.plus(covers);
        self.cannot_say = self.cannot_say.plus(cannot_say);
        self
    }

    fn from_comparison(comparison: &Comparison, factor: f64) -> Self {
        let mut pages = Self::default();
        let challengers = || challengers(comparison);
        let decisions = |metric: Metric| challengers().filter_map(move |cell| cell.stat(metric).decision);
        let is_difference = |metric: Metric| decisions(metric).any(Decision::is_difference);
        pages.any.count(brewbench::metrics::judged().any(is_difference));
        let wrong = if factor >= 1.0 { Decision::Worse } else { Decision::Better };
        for decision in decisions(Metric::Rps) {
            pages.throughput.count(decision.is_difference());
            pages.wrong.count(decision == wrong);
        }
        pages.cannot_say.count(decisions(Metric::Rps).all(|decision| decision == Decision::NotInTurn));
        for stat in challengers().map(|cell| cell.stat(Metric::Rps)) {
            if let Some((low, high)) = interval(stat) {
                pages.covers.count(low <= factor && factor <= high);
            }
        }
        pages
    }
}

/// Returns the cells of the other program.
fn challengers(comparison: &Comparison) -> impl Iterator<Item = &Cell> {
    let is_other = |cell: &&Cell| comparison.subjects[cell.subject].target == OTHER;
    comparison.rows.iter().flat_map(|row| &row.cells).filter(is_other)
}

/// Returns the first cell of the other program.
pub fn challenger(comparison: &Comparison) -> Option<&Cell> {
    challengers(comparison).next()
}

fn interval(stat: &Stat) -> Option<(f64, f64)> {
    let effect = stat.effect?;
    effect.low.zip(effect.high)
}

/// Returns the page of some runs, with or without a chosen baseline.
pub fn compare(runs: Vec<Run>, baseline: Option<&str>, known: &ComparisonContext) -> Comparison {
    let options = Options { baseline: baseline.map(ToOwned::to_owned), ..Options::default() };
    Comparison::by(runs, &Marks::default(), &options, known)
}

/// Returns whether a plain rank test of throughput over all runs of one size is significant.
fn runs_alone(base: &[Run], other: &[Run]) -> bool {
    let values = |runs: &[Run]| of_size(runs, 1).iter().filter_map(|run| run.figures.rps).collect();
    let test = rank_test(&[Stratum { base: values(base), other: values(other) }]);
    test.is_some_and(|test| test.p <= ALPHA)
}

/// Simulates pages of two programs measured alternately in one experiment.
pub fn interleaved(plan: Plan, count: usize, seed: u64) -> Pages {
    let page = |random: &mut StdRng| {
        let runs = experiment("tonight", plan, at_ms(0, 0), 0.0, random);
        let alone = runs_alone(&only(runs.clone(), BASE), &only(runs.clone(), OTHER));
        let mut pages = Pages::from_comparison(&compare(runs, Some(BASE), &ComparisonContext::default()), plan.factor);
        pages.runs_alone.count(alone);
        pages
    };
    rounds(count, seed, page).into_iter().fold(Pages::default(), Pages::add)
}

/// A program in two versions, measured on two nights, with earlier experiments.
#[derive(Clone, Copy, Debug)]
pub struct Nights {
    /// Number of earlier experiments.
    pub past: usize,
    /// Nights from the baseline to the candidate.
    pub gap: usize,
    /// Experiments of the baseline's night and of the candidate's, an hour apart.
    pub together: usize,
    /// By how much the start of a night varies, in ms either way.
    pub shifted_ms: i64,
    /// How nights differ.
    pub between: Between,
    /// Repetitions of an experiment.
    pub repetitions: usize,
    /// Noise of the runs.
    pub within: Within,
    /// Machine sizes.
    pub sizes: usize,
    /// The true factor of the candidate's throughput.
    pub factor: f64,
}

impl Nights {
    /// Nights that differ by 3 %, with the shortest past that allows a decision.
    pub const USUAL: Self = Self {
        past: 2,
        gap: 1,
        together: 1,
        shifted_ms: 0,
        between: Between::Nights(0.03),
        repetitions: 5,
        within: Within::LogNormal,
        sizes: 1,
        factor: 1.0,
    };
}

/// Simulates the runs of both versions, baseline and candidate, and the known past.
pub fn two_nights(nights: Nights, random: &mut StdRng) -> (Vec<Run>, Vec<Run>, ComparisonContext) {
    let Nights { past, gap, together, shifted_ms, between, repetitions, within, sizes, factor } = nights;
    let all = past + gap + 1;
    let offsets = between.draw(all, random);
    let plan = |factor| Plan { sizes, repetitions, within, factor, ..Plan::USUAL };
    let mut night = |night: usize, experiments: usize, factor: f64| -> Vec<Run> {
        let shift = random.random_range(-shifted_ms..=shifted_ms);
        let one = |place: usize| {
            let name = format!("night-{night:03}-{place}");
            only(experiment(&name, plan(factor), at_ms(night, place) + shift, offsets[night], random), OTHER)
        };
        (0..experiments).flat_map(one).collect()
    };
    let mut nightly = Vec::new();
    for number in (0..past).chain(past + 1..past + gap) {
        nightly.extend(night(number, 1, 1.0));
    }
    let versioned = |runs: Vec<Run>, version: &str| -> Vec<Run> {
        runs.into_iter().map(|run| Run { version: Some(version.to_owned()), ..run }).collect()
    };
    let baseline = versioned(night(past, together, 1.0), "1");
    let candidate = versioned(night(past + gap, together, factor), "2");
    let history = (1..=sizes).flat_map(|size| history(&of_size(&baseline, size), &of_size(&nightly, size))).collect();
    (baseline, candidate, ComparisonContext { history, ..ComparisonContext::default() })
}

/// Simulates pages of two versions measured on two nights.
pub fn across(nights: Nights, count: usize, seed: u64) -> Pages {
    let page = |random: &mut StdRng| {
        let (baseline, candidate, known) = two_nights(nights, random);
        let alone = runs_alone(&baseline, &candidate);
        let comparison = compare([baseline, candidate].concat(), Some(&format!("{OTHER}@1")), &known);
        let mut pages = Pages::default();
        pages.runs_alone.count(alone);
        let stats: Vec<&Stat> = comparison
            .rows
            .iter()
            .flat_map(|row| &row.cells)
            .filter(|cell| comparison.subjects[cell.subject].version.as_deref() == Some("2"))
            .map(|cell| cell.stat(Metric::Rps))
            .collect();
        pages.any.count(stats.iter().any(|stat| stat.decision.is_some_and(Decision::is_difference)));
        pages.cannot_say.count(stats.iter().all(|stat| stat.decision == Some(Decision::NotInTurn)));
        for (low, high) in stats.iter().filter_map(|stat| interval(stat)) {
            pages.covers.count(low <= nights.factor && nights.factor <= high);
        }
        pages
    };
    rounds(count, seed, page).into_iter().fold(Pages::default(), Pages::add)
}
