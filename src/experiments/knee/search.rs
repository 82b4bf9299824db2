//! The search for the knee, one step at a time: what has been measured goes in, what to measure next comes out. Pure.
//!
//! Both ends of the range first; then the rate between the highest that held and the lowest that did not, until the two
//! are close enough. Then both are measured again and again, until as many runs as asked for say of each what it is: of
//! those the majority counts. If one turns out to be otherwise, the search goes on from there.

use std::collections::BTreeMap;

/// A search that has needed so many runs does not come to an end: what it measures is not steady enough.
pub const MOST_RUNS: usize = 150;

/// What is searched for, and how well it is to be known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The lowest rate, iterations per second.
    pub from: u32,
    /// The highest rate.
    pub to: u32,
    /// How far the two rates around the knee may be apart, as a share of the lower one.
    pub precision: f64,
    /// Runs that confirm a rate.
    pub confirm: usize,
    /// Runs of one rate that may come to nothing.
    pub spare: usize,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Iterations per second.
    pub rate: u32,
    /// What came of it.
    pub outcome: Outcome,
}

/// What a run says of its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The objective held.
    Held,
    /// It did not.
    Missed,
    /// The generator did not make the rate, or was itself what was slow.
    Saturated,
    /// Nothing: it failed for another reason.
    Nothing,
}

/// What the runs of one rate say together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// In how many the objective held.
    pub held: usize,
    /// In how many it did not.
    pub missed: usize,
    /// In how many the generator was at its limit.
    pub saturated: usize,
    /// How many said nothing.
    pub nothing: usize,
}

impl Tally {
    /// Counts a run.
    pub fn count(&mut self, outcome: Outcome) {
        *match outcome {
            Outcome::Held => &mut self.held,
            Outcome::Missed => &mut self.missed,
            Outcome::Saturated => &mut self.saturated,
            Outcome::Nothing => &mut self.nothing,
        } += 1;
    }

    /// Runs that say something.
    pub fn said(&self) -> usize {
        self.held + self.missed + self.saturated
    }

    /// What most of them say; none if there are none. Half of them is no majority for what is claimed.
    pub fn outcome(&self) -> Option<Outcome> {
        match self.said() {
            0 => None,
            said if 2 * self.held > said => Some(Outcome::Held),
            _ if self.saturated > self.missed => Some(Outcome::Saturated),
            _ => Some(Outcome::Missed),
        }
    }
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Measure these rates, each so many times.
    Measure(Vec<(u32, usize)>),
    /// Nothing any more.
    End(End),
}

/// How a search ended. Rates are iterations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The objective holds at one rate and not at the next one.
    Knee {
        /// The highest rate at which it holds.
        rate: u32,
        /// Where it does not hold any more.
        above: u32,
    },
    /// It holds at the highest rate.
    AboveRange,
    /// It does not hold at the lowest rate.
    BelowRange,
    /// The generator was at its limit before the target.
    Saturated {
        /// Where it was.
        rate: u32,
        /// The highest rate at which the objective was seen to hold.
        held: Option<u32>,
    },
    /// Too many runs of a rate came to nothing.
    NoFigures {
        /// Of which.
        rate: u32,
    },
    /// So much was measured, and still one rate says another thing each time.
    Unsteady,
}

/// What follows from the runs so far, all of which have ended.
pub fn next(rules: &Rules, tried: &[Tried]) -> Step {
    let tallies = tallies(tried);
    let tally = |rate: u32| tallies.get(&rate).copied().unwrap_or_default();
    if let Some((&rate, _)) = tallies.iter().find(|(_, tally)| tally.nothing > rules.spare) {
        return Step::End(End::NoFigures { rate });
    }
    if tried.len() >= MOST_RUNS {
        return Step::End(End::Unsteady);
    }
    let ends: Vec<_> = [rules.from, rules.to].into_iter().filter(|rate| tally(*rate).said() == 0).collect();
    if !ends.is_empty() {
        return Step::Measure(ends.into_iter().map(|rate| (rate, 1)).collect());
    }
    let (low, high) = bracket(&tallies);
    let unconfirmed: Vec<_> = [low, high]
        .into_iter()
        .flatten()
        .map(|rate| (rate, rules.confirm.saturating_sub(tally(rate).said())))
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

    /// The most runs that a search needs if no rate says now this and now that.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number above 0")]
    pub fn usual_runs(&self) -> usize {
        // So many of the narrow ranges fit between both ends, in proportion.
        let fit = (f64::from(self.to) / f64::from(self.from.max(1))).ln() / self.precision.ln_1p();
        // One more where rounding makes a half the wider one.
        let halvings = fit.log2().ceil().max(0.0) as usize + 1;
        2 + halvings + 2 * self.confirm.saturating_sub(1)
    }
}

/// What the runs of each rate say together.
pub fn tallies(tried: &[Tried]) -> BTreeMap<u32, Tally> {
    let mut tallies: BTreeMap<u32, Tally> = BTreeMap::new();
    for Tried { rate, outcome } in tried {
        tallies.entry(*rate).or_default().count(*outcome);
    }
    tallies
}

/// The lowest rate at which it did not hold, and the highest below at which it did.
fn bracket(tallies: &BTreeMap<u32, Tally>) -> (Option<u32>, Option<u32>) {
    let known = || tallies.iter().filter_map(|(rate, tally)| Some((*rate, tally.outcome()?)));
    let high = known().find(|(_, outcome)| *outcome != Outcome::Held).map(|(rate, _)| rate);
    let below = known().take_while(|(rate, _)| high.is_none_or(|high| *rate < high));
    (below.last().map(|(rate, _)| rate), high)
}

/// Between two rates in proportion, with three digits that say something where there is room.
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

    /// Searches as far as it goes with a target that answers like this.
    fn search(rules: Rules, mut target: impl FnMut(u32) -> Outcome) -> (End, Vec<Tried>) {
        let mut tried = Vec::new();
        loop {
            match next(&rules, &tried) {
                Step::End(end) => return (end, tried),
                Step::Measure(rates) => {
                    assert!(!rates.is_empty());
                    for (rate, times) in rates {
                        assert!((rules.from..=rules.to).contains(&rate) && times > 0);
                        tried.extend((0..times).map(|_| Tried { rate, outcome: target(rate) }));
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
            let (end, tried) = search(RULES, breaks_at(knee));
            let End::Knee { rate, above } = end else { panic!("{end:?}") };
            assert!(rate <= knee && knee < above && f64::from(above) <= f64::from(rate) * 1.05, "{knee}: {end:?}");
            let tallies = tallies(&tried);
            assert_eq!((tallies[&rate].held, tallies[&above].missed), (3, 3));
            assert!(tried.len() <= RULES.usual_runs(), "{} > {}", tried.len(), RULES.usual_runs());
        }
    }

    #[test]
    fn the_path_begins_at_the_ends_and_halves_what_is_between() {
        let (_, tried) = search(RULES, breaks_at(4_000));
        let rates: Vec<_> = tried.iter().map(|tried| tried.rate).collect();
        assert_eq!(rates[..5], [1_000, 20_000, 4_470, 2_110, 3_070]);
    }

    #[test]
    fn a_knee_outside_of_the_range_is_told_as_that() {
        let (end, tried) = search(RULES, breaks_at(50_000));
        assert_eq!((end, tried.len()), (End::AboveRange, 4), "{tried:?}");
        let (end, tried) = search(RULES, breaks_at(10));
        assert_eq!(end, End::BelowRange);
        assert_eq!(tallies(&tried)[&1_000].missed, 3, "confirmed");
    }

    #[test]
    fn a_generator_that_is_at_its_limit_first_is_no_knee() {
        let saturates = |rate| if rate <= 6_000 { Outcome::Held } else { Outcome::Saturated };
        let (end, _) = search(RULES, saturates);
        let End::Saturated { rate, held: Some(held) } = end else { panic!("{end:?}") };
        assert!(held <= 6_000 && rate > 6_000 && rate < 6_500, "{end:?}");
        assert_eq!(search(RULES, |_| Outcome::Saturated).0, End::Saturated { rate: 1_000, held: None });
        // Where the target gives way first, it is one.
        let both = |rate| match rate {
            0..=3_000 => Outcome::Held,
            3_001..=9_000 => Outcome::Missed,
            _ => Outcome::Saturated,
        };
        assert!(matches!(search(RULES, both).0, End::Knee { rate: 2_800..=3_000, .. }));
    }

    #[test]
    fn runs_that_come_to_nothing_are_done_again_a_few_times_only() {
        let mut first = true;
        let once = |rate| {
            if std::mem::take(&mut first) { Outcome::Nothing } else { breaks_at(4_000)(rate) }
        };
        assert!(matches!(search(RULES, once).0, End::Knee { .. }));
        assert_eq!(search(RULES, |_| Outcome::Nothing).0, End::NoFigures { rate: 1_000 });
    }

    #[test]
    fn one_run_that_lies_does_not_move_the_knee() {
        // Every first run of a rate says the opposite with one chance of ten.
        let mut random = StdRng::seed_from_u64(1);
        let mut found = 0;
        for _ in 0..200 {
            let noisy = |rate| {
                let honest = rate <= 5_000;
                let lies = random.random::<f64>() < 0.1;
                if honest == lies { Outcome::Missed } else { Outcome::Held }
            };
            let (end, tried) = search(Rules { confirm: 5, ..RULES }, noisy);
            assert!(tried.len() < MOST_RUNS);
            if matches!(end, End::Knee { rate: 4_700..=5_000, .. }) {
                found += 1;
            }
        }
        assert!(found >= 150, "{found} of 200");
    }

    #[test]
    fn it_ends_whatever_is_said() {
        let mut random = StdRng::seed_from_u64(2);
        for _ in 0..300 {
            let rules = Rules {
                from: random.random_range(1..100),
                to: random.random_range(100..1_000_000),
                precision: random.random_range(0.001..0.5),
                confirm: random.random_range(1..9),
                spare: random.random_range(0..3),
            };
            let outcomes = [Outcome::Held, Outcome::Missed, Outcome::Saturated, Outcome::Nothing];
            let (_, tried) = search(rules, |_| outcomes[random.random_range(0..4)]);
            assert!(tried.len() < MOST_RUNS + 20);
        }
    }
}
