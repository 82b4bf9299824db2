//! The knee by a logistic curve through all conclusive runs, with its interval. Pure.

use std::collections::BTreeMap;

use brewbench_statistics::logistic::{self, Contradiction, Outcomes, Prior, Threshold};

use super::search::{Rules, Tally, rounded};

/// Scale of the curve: the capacity varies from run to run by 0.5 to 50 %. A more precise search assumes less.
const SCALES: [f64; 2] = [0.003, 0.3];

/// Least scale as a share of the precision.
const MIN_SCALE: f64 = 0.06;

/// The knee: the highest rate at which the objective holds in at least half of the runs. Iterations per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fit {
    /// The knee.
    pub rate: u32,
    /// Lower end of its 95 % interval.
    pub low: u32,
    /// Upper end.
    pub high: u32,
    /// The upper end divided by the lower, without rounding.
    pub width: f64,
    /// Two rates at which more runs say most.
    pub informative: [u32; 2],
    /// Runs on the wrong sides of the interval, if they are more than the curve explains.
    pub contradiction: Option<Contradiction>,
}

impl Fit {
    /// Fits the outcomes of a search. None if its range has one rate only.
    pub fn new(Rules { from, to, precision, .. }: &Rules, tallies: &BTreeMap<u32, Tally>) -> Option<Self> {
        let outcomes = |(rate, tally): (&u32, &Tally)| {
            let Tally { held, missed, .. } = *tally;
            Outcomes { level: f64::from(*rate).ln(), held, missed }
        };
        let outcomes: Vec<Outcomes> = tallies.iter().map(outcomes).collect();
        let prior = Prior {
            range: [*from, *to].map(|rate| f64::from(rate).ln()),
            scales: [SCALES[0].min(precision * MIN_SCALE), SCALES[1]],
        };
        let threshold = logistic::threshold(&outcomes, &prior)?;
        let rate = |level: f64, round: fn(f64) -> f64| rounded(level.exp(), round).clamp(*from, *to);
        let Threshold { estimate, low, high, informative, .. } = threshold;
        Some(Self {
            rate: rate(estimate, f64::floor),
            low: rate(low, f64::floor),
            high: rate(high, f64::ceil),
            width: (high - low).exp(),
            informative: informative.map(|level| rate(level, f64::round)),
            contradiction: logistic::contradiction(&outcomes, &threshold),
        })
    }
}

/// Describes runs on the wrong sides of the interval in one sentence.
pub fn describe(Contradiction { missed_below, held_above }: Contradiction) -> String {
    let ((missed, below), (held, above)) = (missed_below, held_above);
    format!(
        "the outcome changes more than once as the rate rises: the objective was missed in {missed} of \
         {below} runs below the interval and held in {held} of {above} above it"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules = Rules { from: 1_000, to: 20_000, precision: 0.05, confirm: 3, spare: 1 };

    fn fit(rules: &Rules, outcomes: &[(u32, usize, usize)]) -> Fit {
        let tally = |(rate, held, missed): &(u32, usize, usize)| {
            (*rate, Tally { held: *held, missed: *missed, ..Tally::default() })
        };
        Fit::new(rules, &outcomes.iter().map(tally).collect()).expect("a range")
    }

    #[test]
    fn a_knee_is_rounded_down_and_its_interval_outwards() {
        let Fit { rate, low, high, .. } = fit(&RULES, &[(1_000, 1, 0), (4_700, 9, 0), (4_800, 0, 9), (20_000, 0, 1)]);
        assert!(
            low < rate && rate < high && [rate, low, high].iter().all(|rate| rate % 10 == 0),
            "{low} {rate} {high}"
        );
        let small = Rules { from: 1, to: 50, ..RULES };
        let Fit { rate, low, high, .. } = fit(&small, &[(1, 1, 0), (7, 9, 0), (8, 0, 9), (50, 0, 1)]);
        assert!(rate == 7 && low <= 7 && high >= 8, "{low} {rate} {high}");
    }

    #[test]
    fn runs_that_contradict_the_knee_are_described() {
        let consistent = fit(&RULES, &[(1_000, 3, 0), (4_700, 5, 0), (4_900, 0, 5), (20_000, 0, 1)]);
        assert_eq!(consistent.contradiction, None);
        let odd = fit(&RULES, &[(1_000, 3, 2), (3_000, 2, 2), (4_700, 8, 0), (4_900, 0, 8), (20_000, 0, 1)]);
        let sentence = describe(odd.contradiction.expect("four missed below"));
        assert!(
            sentence.ends_with("missed in 4 of 17 runs below the interval and held in 0 of 9 above it"),
            "{sentence}"
        );
    }
}
