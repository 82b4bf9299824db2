//! Decides what a knee search measures next, given what it has measured so far. Pure.
//!
//! It measures both ends of the range first, then bisects between the highest rate that held and the lowest that did
//! not, until the two are close enough. Then it repeats both until each has the requested number of runs, of which the
//! majority counts. If a majority changes, the search continues from there.

use std::collections::BTreeMap;

/// A search that needs more runs than this does not converge, because its results vary too much.
pub const MAX_RUNS: usize = 150;

/// Range, precision and confirmation of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The lowest rate, iterations per second.
    pub from: u32,
    /// The highest rate.
    pub to: u32,
    /// Maximum distance between the two rates around the knee, as a share of the lower one.
    pub precision: f64,
    /// Number of runs that confirm a rate.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The objective holds at one rate and not at the next.
    Knee {
        /// The highest rate at which it holds.
        rate: u32,
        /// The lowest rate at which it does not hold.
        above: u32,
    },
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
    if let Some((&rate, _)) = tallies.iter().find(|(_, tally)| tally.inconclusive > rules.spare) {
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
    let unconfirmed: Vec<_> = [low, high]
        .into_iter()
        .flatten()
        .map(|rate| (rate, rules.confirm.saturating_sub(tally(rate).conclusive())))
        .filter(|(_, missing)| *missing > 0)
        .collect();
    match (low, high) {
        (Some(low), Some(high)) if !rules.is_narrow(low, high) => {
            let between = middle(low, high);
            Step::Measure(vec![(between, 1)])
        }
        _ if !unconfirmed.is_empty() => Step::Measure(unconfirmed),
        (held, Some(rate)) if tally(rate).outcome() == Some(Outcome::Saturated) => {
            Step::End(End::Saturated { rate, held })
        }
        (Some(rate), Some(above)) => Step::End(End::Knee { rate, above }),
        (None, _) => Step::End(End::BelowRange),
        (Some(_), None) => Step::End(End::AboveRange),
    }
}

impl Rules {
    fn is_narrow(&self, low: u32, high: u32) -> bool {
        high - low <= 1 || f64::from(high) <= f64::from(low) * (1.0 + self.precision)
    }

    /// Returns the maximum number of runs of a search whose rates have consistent outcomes.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number above 0")]
    pub fn usual_runs(&self) -> usize {
        // The number of ranges of the requested precision between both ends.
        let fit = (f64::from(self.to) / f64::from(self.from.max(1))).ln() / self.precision.ln_1p();
        // One more because rounding may make one half wider.
        let halvings = fit.log2().ceil().max(0.0) as usize + 1;
        2 + halvings + 2 * self.confirm.saturating_sub(1)
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
    let unit = 10_f64.powf((exact.log10().floor() - 2.0).max(0.0));
    let [round, exact] = [(exact / unit).round() * unit, exact.round()].map(|rate| rate as u32);
    if (low + 1..high).contains(&round) { round } else { exact.clamp(low + 1, high - 1) }
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
    fn the_knee_is_found_between_two_rates_that_are_close_and_confirmed() {
        for knee in [1_000, 1_001, 4_444, 12_345, 19_999] {
            let (end, trials) = search(RULES, breaks_at(knee));
            let End::Knee { rate, above } = end else { panic!("{end:?}") };
            assert!(rate <= knee && knee < above && f64::from(above) <= f64::from(rate) * 1.05, "{knee}: {end:?}");
            let tallies = tallies(&trials);
            assert_eq!((tallies[&rate].held, tallies[&above].missed), (3, 3));
            assert!(trials.len() <= RULES.usual_runs(), "{} > {}", trials.len(), RULES.usual_runs());
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
        assert!(matches!(search(RULES, both).0, End::Knee { rate: 2_800..=3_000, .. }));
    }

    #[test]
    fn inconclusive_runs_are_repeated_a_limited_number_of_times() {
        let mut first = true;
        let once = |rate| {
            if std::mem::take(&mut first) { Outcome::Inconclusive } else { breaks_at(4_000)(rate) }
        };
        assert!(matches!(search(RULES, once).0, End::Knee { .. }));
        assert_eq!(search(RULES, |_| Outcome::Inconclusive).0, End::NoFigures { rate: 1_000 });
    }

    #[test]
    fn single_wrong_outcomes_do_not_move_the_knee() {
        // One run in ten has the opposite outcome.
        let mut random = StdRng::seed_from_u64(1);
        let mut found = 0;
        for _ in 0..200 {
            let noisy = |rate| {
                let holds = rate <= 5_000;
                let is_wrong = random.random::<f64>() < 0.1;
                if holds == is_wrong { Outcome::Missed } else { Outcome::Held }
            };
            let (end, trials) = search(Rules { confirm: 5, ..RULES }, noisy);
            assert!(trials.len() < MAX_RUNS);
            if matches!(end, End::Knee { rate: 4_700..=5_000, .. }) {
                found += 1;
            }
        }
        assert!(found >= 150, "{found} of 200");
    }

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
            let outcomes = [Outcome::Held, Outcome::Missed, Outcome::Saturated, Outcome::Inconclusive];
            let (_, trials) = search(rules, |_| outcomes[random.random_range(0..4)]);
            assert!(trials.len() < MAX_RUNS + 20);
        }
    }
}
