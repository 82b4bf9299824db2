//! Decides what a knee search measures next, given what it has measured so far. Pure.
//!
//! It measures both ends of the range first, then bisects between the highest rate that held and the lowest that did
//! not, by the majority of their runs, until the two are close enough. Between them the capacity of the target varies
//! from run to run, so that neither rate is the knee. A logistic curve through all outcomes ([`Fit`]) says at which
//! rate half of the runs hold, and an interval that contains it in 95 % of searches. The search then measures where the
//! curve is least certain, until the interval is narrow or its runs are used up.

use std::collections::BTreeMap;

use super::fit::Fit;

/// A search that needs more runs than this does not converge, because its results vary too much.
pub const MAX_RUNS: usize = 150;

/// Number of suspect runs of one rate that are measured again, besides one for each conclusive run.
const SUSPECT: usize = 5;

/// How many more runs of a rate must agree than disagree. Then a rate that holds in three of four runs is mistaken for
/// one that holds in one of four in 4 % of the searches (Wald 1945, "Sequential Tests of Statistical Hypotheses").
const LEAD: usize = 3;

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
    /// Requested number of runs that confirm a rate. Twice as many must be near the knee.
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
    /// The run is suspect for another reason than its rate.
    Suspect,
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
    /// Suspect runs, which decide nothing.
    pub suspect: usize,
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
            Outcome::Suspect => &mut self.suspect,
            Outcome::Inconclusive => &mut self.inconclusive,
        } += 1;
    }

    /// Counts the conclusive runs.
    pub fn conclusive(&self) -> usize {
        self.held + self.missed + self.saturated
    }

    /// Returns how many more conclusive runs agree with the majority than disagree.
    pub fn lead(&self) -> usize {
        self.held.abs_diff(self.missed + self.saturated)
    }

    /// Whether chance hardly explains the majority.
    pub fn is_sure(&self) -> bool {
        self.lead() >= LEAD
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
    /// Too many runs of a rate were suspect.
    Suspect {
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
    let is_hopeless = |tally: &Tally| tally.suspect > SUSPECT.max(rules.spare) + tally.conclusive();
    if let Some((&rate, _)) = tallies.iter().find(|(_, tally)| is_hopeless(tally)) {
        return Step::End(End::Suspect { rate });
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

/// Returns the knee of a search that was closed before its interval was narrow, if both rates around it were confirmed.
///
/// Earlier versions ended all their searches so.
pub fn knee_so_far(rules: &Rules, trials: &[Trial]) -> Option<Fit> {
    let tallies = tallies(trials);
    let (Some(low), Some(high)) = bracket(&tallies) else { return None };
    let is_confirmed = |rate: u32| tallies.get(&rate).is_some_and(|tally| tally.conclusive() >= rules.confirm);
    let is_missed = tallies.get(&high)?.outcome() == Some(Outcome::Missed);
    let is_found = rules.is_narrow(low, high) && is_confirmed(low) && is_confirmed(high) && is_missed;
    if is_found { Fit::new(rules, &tallies) } else { None }
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
    let is_measured = rules.is_interval_narrow(&fit) && near >= 2 * rules.confirming();
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
        .map(|rate| (rate, rules.confirming().saturating_sub(tally(rate).lead())))
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

    /// Returns by how many runs a majority must lead to be confirmed.
    pub fn confirming(&self) -> usize {
        self.confirm.max(LEAD)
    }

    /// Returns the usual number of runs of a search whose rates have consistent outcomes.
    pub fn usual_runs(&self) -> usize {
        self.bisections() + (2 * self.confirming()).max(RUNS_OF_INTERVAL)
    }

    /// Returns the number of conclusive runs after which a search ends, however wide the interval.
    pub fn most_runs(&self) -> usize {
        self.bisections() + RUNS_OF_INTERVAL * self.confirming()
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
mod tests;
