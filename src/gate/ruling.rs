//! The ruling of one rule on one cell: fine, regression or cannot say. Pure.

use super::rule::Rule;
use crate::{
    compare::{
        basis::Basis,
        metric::Metric,
        statistics::{Estimate, Question, power},
    },
    gate::model::Outcome,
};

/// The outcome of a rule on a cell, with its reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Ruling {
    /// The outcome.
    pub outcome: Outcome,
    /// The reason, in a sentence.
    pub reason: String,
    /// The confidence interval of the difference.
    pub interval: Option<[f64; 2]>,
    /// Repetitions per side that would probably decide; none if more would not help.
    pub needed: Option<usize>,
}

impl Ruling {
    /// Creates a ruling that cannot say.
    pub fn cannot_say(reason: String) -> Self {
        Self { outcome: Outcome::CannotSay, reason, interval: None, needed: None }
    }
}

/// Applies a rule. `alpha` is the error rate of this look and sets the level of the confidence interval.
pub fn rule_on(rule: &Rule, basis: &Basis, answer: Option<Question>, alpha: f64) -> Ruling {
    let metric = rule.metric;
    if let Some(why) = basis.too_little_past() {
        return Ruling::cannot_say(format!(
            "not measured in turn, and {}; measure both again in one experiment",
            why.because()
        ));
    }
    let (Estimate::Change(change), Some(answer)) = (basis.estimate(metric, alpha, 0.0), answer) else {
        return Ruling::cannot_say("a value is zero, so the ratio is undefined".to_owned());
    };
    let interval = interval(basis, metric, alpha);
    let amount = |by: f64| metric.difference(Some(by)).text().to_owned();
    let range = interval.map_or_else(String::new, |ends| format!(" ({})", metric.interval(ends)));
    let (by, limit) = (format!("{}{range}", amount(change.by)), rule.limit());
    let ruling = |outcome, reason| Ruling { outcome, reason, interval, needed: None };
    let is_beyond = |ends: [f64; 2]| ends.into_iter().all(|end| rule.is_crossed_by(end));
    let is_crossed = answer.is_rejected() && rule.is_crossed_by(change.by);
    if is_crossed && interval.is_none_or(is_beyond) {
        return ruling(Outcome::Regression, format!("{by} is significantly beyond {limit}"));
    }
    let is_within = interval.is_some_and(|ends| !ends.into_iter().any(|end| rule.is_crossed_by(end)));
    if is_within {
        return ruling(Outcome::Fine, format!("{by} is within {limit}"));
    }
    let needed = if is_crossed { None } else { needed(rule, basis, change.by, interval, &answer) };
    let is_worse = interval.is_some_and(|ends| ends.into_iter().all(|end| rule.is_worse(end)));
    let worse = if is_worse { "worse, but " } else { "" };
    let why = match (interval, rule.is_crossed_by(change.by)) {
        _ if is_crossed => format!("{by} may be within {limit}: the values are rounded"),
        (None, _) => "too few repetitions for a confidence interval".to_owned(),
        (Some(_), true) => format!("{by} is {worse}not significantly beyond {limit}"),
        (Some(_), false) if is_worse => format!("{by} is worse, and a change beyond {limit} is not ruled out"),
        (Some(_), false) => format!("{by} does not rule out a change beyond {limit}"),
    };
    let hint = match needed {
        _ if is_crossed => String::new(),
        Some(needed) => format!("; about {needed} repetitions per side would decide"),
        None if !basis.is_in_turn() => "; measure both in one experiment to see smaller differences".to_owned(),
        None => format!("; more than {} repetitions per side would be needed", power::MAX_REPETITIONS),
    };
    Ruling { outcome: Outcome::CannotSay, reason: why + &hint, interval, needed }
}

fn interval(basis: &Basis, metric: Metric, level: f64) -> Option<[f64; 2]> {
    if metric.is_share() {
        return basis.points_interval(level);
    }
    basis.effect(metric, level)?.interval().map(|(low, high)| [low, high])
}

/// Estimates the repetitions per side that would decide. Intervals narrow with the square root of the repetitions,
/// until the end in doubt reaches the limit.
fn needed(rule: &Rule, basis: &Basis, by: f64, interval: Option<[f64; 2]>, answer: &Question) -> Option<usize> {
    basis.is_in_turn().then_some(())?;
    let [base, new] = basis.counts();
    let now = base.min(new);
    let fewest = power::fewest(answer.level, basis.order())?.max(now + 1);
    let Some(ends) = interval else { return Some(fewest) };
    let is_beyond = rule.is_crossed_by(by);
    let in_doubt = ends.into_iter().filter(|end| rule.is_crossed_by(*end) != is_beyond);
    let width = in_doubt.map(|end| (end - by).abs()).fold(0.0, f64::max);
    let room = rule.room(by);
    if room <= 0.0 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; a float cast saturates")]
    let needed = (now as f64 * (width / room).powi(2)).ceil() as usize;
    // Blocks come in pairs.
    let needed = needed.max(fewest).next_multiple_of(2);
    (needed <= power::MAX_REPETITIONS).then_some(needed)
}
