//! Decides what a knee search measures next, given what it has measured so far. Pure.
//!
//! It measures both ends of the range first, then bisects between the highest rate that held and the lowest that did
//! not, by the majority of their runs, until the two are close enough. Between them the capacity of the target varies
//! from run to run, so that neither rate is the knee. A logistic curve through all outcomes ([`Fit`]) says at which rate
//! half of the runs hold, and an interval that contains it in 95 % of searches. The search then measures where the curve
//! is least certain, until the interval is narrow or its runs are used up.

use std::collections::BTreeMap;

use super::fit::Fit;

/// A search that needs more runs than this does not converge, because its results vary too much.
pub const MAX_RUNS: usize = 150;

/// Number of disturbed runs of one rate that are measured again.
const DISTURBED: usize = 5;

/// Runs that measure the interval, as a multiple of those that confirm a rate.
const RUNS_OF_INTERVAL: usize = 8;

/// Range, precision and confirmation of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The lowest rate, iterations per second.
    pub from: u32,
    /// The highest rate.
    pub to: u32,
    /// Maximum distance of the ends of the interval from the knee, as a share of it.
    pub precision: f64,
    /// Number of runs that confirm a rate. Twice as many must be near the knee.
    pub confirm: usize,
    /// Number of runs of one rate that may be inconclusive.
    pub spare: usize,
}

/// The outcome of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// Iterations per second.
    pub rate: u32,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of a run for its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The objective held.
    Held,
    /// The objective did not hold.
    Missed,
    /// The generator did not reach the rate, or was itself slow.
    Saturated,
    /// The objective did not hold, but something around the run disturbed it.
    Disturbed,
    /// Inconclusive: the run failed for another reason.
    Inconclusive,
}

/// The outcomes of all runs of one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Runs in which the objective held.
    pub held: usize,
    /// Runs in which it did not.
    pub missed: usize,
    /// Runs in which the generator was at its limit.
    pub saturated: usize,
    /// Disturbed runs.
    pub disturbed: usize,
    /// Inconclusive runs.
    pub inconclusive: usize,
}

impl Tally {
    /// Counts a run.
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Held => &mut self.held,
            Outcome::Missed => &mut self.missed,
            Outcome::Saturated => &mut self.saturated,
            Outcome::Disturbed => &mut self.disturbed,
            Outcome::Inconclusive => &mut self.inconclusive,
        } += 1;
    }

    /// Counts the conclusive runs.
    pub fn conclusive(&self) -> usize {
        self.held + self.missed + self.saturated
    }

    /// Returns the outcome of the majority, if any run is conclusive. Half of the runs is not enough for `Held`.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.conclusive() {
            0 => None,
            conclusive if 2 * self.held > conclusive => Some(Outcome::Held),
            _ if self.saturated > self.missed => Some(Outcome::Saturated),
            _ => Some(Outcome::Missed),
        }
    }
}

/// The next step of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure these rates, each this many times.
    Measure(Vec<(u32, usize)>),
    /// The search has ended.
    End(End),
}

/// How a search ended. Rates are iterations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The knee is within the range.
    Knee(Fit),
    /// It holds at the highest rate.
    AboveRange,
    /// It does not hold at the lowest rate.
    BelowRange,
    /// The generator was at its limit before the target.
    Saturated {
        /// The rate at which it was.
        rate: u32,
        /// The highest rate at which the objective held.
        held: Option<u32>,
    },
    /// Too many runs of a rate were inconclusive.
    NoFigures {
        /// The rate.
        rate: u32,
    },
    /// The search did not converge within [`MAX_RUNS`].
    Unsteady,
}

/// Returns the next step after these runs, all of which have ended.
pub fn next(rules: &Rules, trials: &[Trial]) -> Step {
    let tallies = tallies(trials);
    let tally = |rate: u32| tallies.get(&rate).copied().unwrap_or_default();
    let is_hopeless = |tally: &Tally| tally.inconclusive > rules.spare || tally.disturbed > DISTURBED.max(rules.spare);
    if let Some((&rate, _)) = tallies.iter().find(|(_, tally)| is_hopeless(tally)) {
        return Step::End(End::NoFigures { rate });
    }
    if trials.len() >= MAX_RUNS {
        return Step::End(End::Unsteady);
    }
    let ends: Vec<_> = [rules.from, rules.to].into_iter().filter(|rate| tally(*rate).conclusive() == 0).collect();
    if !ends.is_empty() {
        return Step::Measure(ends.into_iter().map(|rate| (rate, 1)).collect());
    }
    let (low, high) = bracket(&tallies);
    let is_saturated = high.is_some_and(|rate| tally(rate).outcome() == Some(Outcome::Saturated));
    match (low, high) {
        (Some(low), Some(high)) if !is_saturated => near_knee(rules, &tallies, low, high),
        (Some(low), Some(high)) if !rules.is_narrow(low, high) => Step::Measure(vec![(middle(low, high), 1)]),
        _ => confirm(rules, &tallies, low, high),
    }
}

/// Returns the next step if the objective holds at the lower rate and not at the higher.
fn near_knee(rules: &Rules, tallies: &BTreeMap<u32, Tally>, low: u32, high: u32) -> Step {
    let between = || Step::Measure(vec![(middle(low, high), 1)]);
    let Some(fit) = Fit::new(rules, tallies) else { return between() };
    let conclusive = |rates: std::ops::RangeInclusive<f64>| -> usize {
        let counted = tallies.iter().filter(|(rate, _)| rates.contains(&f64::from(**rate)));
        counted.map(|(_, tally)| tally.conclusive()).sum()
    };
    let margin = 1.0 + 2.0 * rules.precision;
    let near = conclusive(f64::from(fit.low) / margin..=f64::from(fit.high) * margin);
    let is_measured = rules.is_interval_narrow(&fit) && near >= 2 * rules.confirm;
    if is_measured || conclusive(0.0..=f64::INFINITY) >= rules.most_runs() {
        return Step::End(End::Knee(fit));
    }
    if !rules.is_narrow(low, high) && !rules.is_interval_coarse(&fit) {
        return between();
    }
    Step::Measure(fit.informative.map(|rate| (rate, 1)).to_vec())
}

/// Returns the next step if one of the two rates is missing, or the generator is at its limit at the higher.
fn confirm(rules: &Rules, tallies: &BTreeMap<u32, Tally>, low: Option<u32>, high: Option<u32>) -> Step {
    let tally = |rate: u32| tallies.get(&rate).copied().unwrap_or_default();
    let unconfirmed: Vec<_> = [low, high]
        .into_iter()
        .flatten()
        .map(|rate| (rate, rules.confirm.saturating_sub(tally(rate).conclusive())))
        .filter(|(_, missing)| *missing > 0)
        .collect();
    if !unconfirmed.is_empty() {
        return Step::Measure(unconfirmed);
    }
    Step::End(match (low, high) {
        (held, Some(rate)) if tally(rate).outcome() == Some(Outcome::Saturated) => End::Saturated { rate, held },
        (None, _) => End::BelowRange,
        (Some(_), _) => End::AboveRange,
    })
}

impl Rules {
    fn is_narrow(&self, low: u32, high: u32) -> bool {
        high - low <= 1 || f64::from(high) <= f64::from(low) * (1.0 + self.precision)
    }

    /// Whether both ends of the interval are close enough to the knee, or no rate is left between them.
    fn is_interval_narrow(&self, fit: &Fit) -> bool {
        fit.high - fit.low <= 2 || fit.width <= (1.0 + self.precision).powi(2)
    }

    /// Whether the curve already knows better than the majorities where to measure.
    fn is_interval_coarse(&self, fit: &Fit) -> bool {
        fit.width <= (1.0 + self.precision).powi(4)
    }

    /// Returns the usual number of runs of a search whose rates have consistent outcomes.
    pub fn usual_runs(&self) -> usize {
        self.bisections() + (2 * self.confirm).max(RUNS_OF_INTERVAL)
    }

    /// Returns the number of conclusive runs after which a search ends, however wide the interval.
    pub fn most_runs(&self) -> usize {
        self.bisections() + RUNS_OF_INTERVAL * self.confirm.max(3)
    }

    /// Returns the number of runs until two rates around the knee are close enough.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number above 0")]
    fn bisections(&self) -> usize {
        // The number of ranges of the requested precision between both ends.
        let fit = (f64::from(self.to) / f64::from(self.from.max(1))).ln() / self.precision.ln_1p();
        // One more because rounding may make one half wider.
        2 + fit.log2().ceil().max(0.0) as usize + 1
    }
}

/// Tallies the outcomes of each rate.
pub fn tallies(trials: &[Trial]) -> BTreeMap<u32, Tally> {
    let mut tallies: BTreeMap<u32, Tally> = BTreeMap::new();
    for Trial { rate, outcome } in trials {
        tallies.entry(*rate).or_default().count(*outcome);
    }
    tallies
}

/// Returns the highest rate that held below the lowest one that did not, and that lowest one.
fn bracket(tallies: &BTreeMap<u32, Tally>) -> (Option<u32>, Option<u32>) {
    let known = || tallies.iter().filter_map(|(rate, tally)| Some((*rate, tally.outcome()?)));
    let high = known().find(|(_, outcome)| *outcome != Outcome::Held).map(|(rate, _)| rate);
    let below = known().take_while(|(rate, _)| high.is_none_or(|high| *rate < high));
    (below.last().map(|(rate, _)| rate), high)
}

/// Returns the geometric mean of two rates, rounded to three significant digits if that is still between them.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between two rates")]
fn middle(low: u32, high: u32) -> u32 {
    let exact = (f64::from(low.max(1)) * f64::from(high)).sqrt();
    let round = rounded(exact, f64::round);
    if (low + 1..high).contains(&round) { round } else { (exact.round() as u32).clamp(low + 1, high - 1) }
}

/// Rounds a rate to three significant digits.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates are at most a million")]
pub(super) fn rounded(rate: f64, round: fn(f64) -> f64) -> u32 {
    let unit = 10_f64.powf((rate.log10().floor() - 2.0).max(0.0));
    // Rounding errors are not worth a digit.
    (round((rate / unit * 1e6).round() / 1e6) * unit) as u32
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng};

    use super::*;

    const RULES: Rules = Rules { from: 1_000, to: 20_000, precision: 0.05, confirm: 3, spare: 1 };

    /// Runs a whole search against a simulated target.
    fn search(rules: Rules, mut target: impl FnMut(u32) -> Outcome) -> (End, Vec<Trial>) {
        let mut trials = Vec::new();
        loop {
            match next(&rules, &trials) {
                Step::End(end) => return (end, trials),
                Step::Measure(rates) => {
                    assert!(!rates.is_empty());
                    for (rate, times) in rates {
                        assert!((rules.from..=rules.to).contains(&rate) && times > 0);
                        trials.extend((0..times).map(|_| Trial { rate, outcome: target(rate) }));
                    }
                }
            }
        }
    }

    fn breaks_at(knee: u32) -> impl FnMut(u32) -> Outcome {
        move |rate| if rate <= knee { Outcome::Held } else { Outcome::Missed }
    }

    #[test]
    fn an_exact_knee_is_found_within_a_narrow_interval() {
        for knee in [1_000, 1_001, 4_444, 12_345, 19_999] {
            let (end, trials) = search(RULES, breaks_at(knee));
            let End::Knee(Fit { rate, low, high, contradiction: None, .. }) = end else { panic!("{end:?}") };
            assert!(low <= knee && knee <= high && f64::from(high) <= f64::from(low) * 1.12, "{knee}: {end:?}");
            assert!((f64::from(rate) / f64::from(knee) - 1.0).abs() < 0.03, "{knee}: {end:?}");
            assert!(trials.len() <= RULES.usual_runs() + 4, "{} > {}", trials.len(), RULES.usual_runs());
        }
    }

    #[test]
    fn a_search_starts_at_both_ends_and_bisects() {
        let (_, trials) = search(RULES, breaks_at(4_000));
        let rates: Vec<_> = trials.iter().map(|trial| trial.rate).collect();
        assert_eq!(rates[..5], [1_000, 20_000, 4_470, 2_110, 3_070]);
    }

    #[test]
    fn a_knee_outside_the_range_is_reported() {
        let (end, trials) = search(RULES, breaks_at(50_000));
        assert_eq!((end, trials.len()), (End::AboveRange, 4), "{trials:?}");
        let (end, trials) = search(RULES, breaks_at(10));
        assert_eq!(end, End::BelowRange);
        assert_eq!(tallies(&trials)[&1_000].missed, 3, "confirmed");
    }

    #[test]
    fn a_saturated_generator_is_no_knee() {
        let saturates = |rate| if rate <= 6_000 { Outcome::Held } else { Outcome::Saturated };
        let (end, _) = search(RULES, saturates);
        let End::Saturated { rate, held: Some(held) } = end else { panic!("{end:?}") };
        assert!(held <= 6_000 && rate > 6_000 && rate < 6_500, "{end:?}");
        assert_eq!(search(RULES, |_| Outcome::Saturated).0, End::Saturated { rate: 1_000, held: None });
        // If the target reaches its limit first, there is a knee.
        let both = |rate| match rate {
            0..=3_000 => Outcome::Held,
            3_001..=9_000 => Outcome::Missed,
            _ => Outcome::Saturated,
        };
        assert!(matches!(search(RULES, both).0, End::Knee(Fit { rate: 2_850..=3_150, .. })));
    }

    #[test]
    fn inconclusive_runs_are_repeated_a_limited_number_of_times() {
        let mut first = true;
        let once = |rate| {
            if std::mem::take(&mut first) { Outcome::Inconclusive } else { breaks_at(4_000)(rate) }
        };
        assert!(matches!(search(RULES, once).0, End::Knee(_)));
        assert_eq!(search(RULES, |_| Outcome::Inconclusive).0, End::NoFigures { rate: 1_000 });
    }

    #[test]
    fn disturbed_runs_are_measured_again_and_end_a_search_only_if_there_are_many() {
        let mut disturbed = 0;
        let often = |rate| {
            disturbed += 1;
            if disturbed % 2 == 0 && rate > 4_000 { Outcome::Disturbed } else { breaks_at(4_000)(rate) }
        };
        let (end, trials) = search(RULES, often);
        assert!(matches!(end, End::Knee(Fit { low: ..=4_000, high: 4_000.., .. })), "{end:?}");
        assert!(trials.iter().filter(|trial| trial.outcome == Outcome::Disturbed).count() > 2);
        assert_eq!(search(RULES, |_| Outcome::Disturbed).0, End::NoFigures { rate: 1_000 });
    }

    /// A target whose capacity varies from run to run.
    struct Target {
        capacity: f64,
        /// Standard deviation of the logarithm of its capacity.
        variation: f64,
        /// Share of the runs that are disturbed and lose 30 %.
        disturbed: f64,
        /// Whether the verdict notices it.
        noticed: bool,
    }

    impl Target {
        fn run(&self, rate: u32, random: &mut StdRng) -> Outcome {
            let (one, two): (f64, f64) = (random.random(), random.random());
            let normal = (-2.0 * one.max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * two).cos();
            let is_disturbed = random.random::<f64>() < self.disturbed;
            let capacity = self.capacity * (self.variation * normal).exp() * if is_disturbed { 0.7 } else { 1.0 };
            match f64::from(rate) <= capacity {
                true => Outcome::Held,
                false if is_disturbed && self.noticed => Outcome::Disturbed,
                false => Outcome::Missed,
            }
        }
    }

    #[test]
    fn the_interval_holds_the_knee_in_nine_of_ten_searches_at_least() {
        let quiet = |variation| (variation, 0.0, true);
        for (place, (variation, disturbed, noticed)) in
            (0..).zip([quiet(0.03), quiet(0.08), (0.03, 0.2, true), (0.03, 0.05, false)])
        {
            let mut random = StdRng::seed_from_u64(100 + place);
            let (mut covers, mut runs, mut bias) = (0, 0, 0.0);
            for _ in 0..SEARCHES {
                let capacity = 2_000.0 * 7.5_f64.powf(random.random::<f64>());
                let target = Target { capacity, variation, disturbed, noticed };
                let (end, trials) = search(RULES, |rate| target.run(rate, &mut random));
                let End::Knee(Fit { rate, low, high, .. }) = end else { panic!("{end:?}") };
                covers += usize::from(f64::from(low) <= capacity && capacity <= f64::from(high));
                runs += trials.len();
                bias += (f64::from(rate) / capacity).ln() / SEARCHES as f64;
            }
            let mean_runs = runs as f64 / SEARCHES as f64;
            assert!(covers * 100 >= SEARCHES * 90, "variation {variation}: {covers} of {SEARCHES}");
            assert!(mean_runs < 36.0 && bias.abs() < 0.01, "variation {variation}: {mean_runs} runs, bias {bias}");
        }
    }

    /// Number of searches per kind of target: enough to tell 95 from 90 %.
    const SEARCHES: usize = 80;

    #[test]
    fn every_search_ends() {
        let mut random = StdRng::seed_from_u64(2);
        for _ in 0..300 {
            let rules = Rules {
                from: random.random_range(1..100),
                to: random.random_range(100..1_000_000),
                precision: random.random_range(0.001..0.5),
                confirm: random.random_range(1..9),
                spare: random.random_range(0..3),
            };
            use Outcome::{Disturbed, Held, Inconclusive, Missed, Saturated};
            let outcomes = [Held, Missed, Saturated, Disturbed, Inconclusive];
            let (_, trials) = search(rules, |_| outcomes[random.random_range(0..5)]);
            assert!(trials.len() < MAX_RUNS + 20);
        }
    }
}
