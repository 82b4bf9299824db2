//! A knee search as a plan has it. Pure.

use brewbench_agent::wire::{
    Phase,
    load::{Fault, Form, Load, Open},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    experiments::{
        knee::{
            objective::Objective,
            search::{Outcome, Rules},
        },
        plan::Plan,
    },
    runs::{load::constant, model::Run, verdict::Verdict},
};

/// How far the two rates around the knee may be apart, unless said.
pub const USUAL_PRECISION: f64 = 0.05;

/// Between which rates a knee is searched for, and what is to hold below it. Of each target at each size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// What must hold, e.g. `p99<50ms, failures<0.1%`: figures are avg, p50, p90, p95, p99, p99.9, max and failures.
    #[schema(value_type = String)]
    pub objective: Objective,
    /// The lowest rate, iterations per second.
    pub from: u32,
    /// The highest rate, iterations per second.
    pub to: u32,
    /// How long each rate is kept, 1 s to a day.
    pub duration_s: f64,
    /// How far the rates around the knee may be apart, as a share of the lower one: 0.001 to 0.5.
    #[serde(default = "usual_precision")]
    pub precision: f64,
    /// Virtual users that keep a rate up; a tenth of it, 10 to 1,000, if absent.
    #[serde(default)]
    pub max_vus: Option<u32>,
}

pub(crate) fn usual_precision() -> f64 {
    USUAL_PRECISION
}

impl Knee {
    /// What is wrong with it, as a sentence.
    pub fn fault(&self) -> Option<String> {
        if self.from >= self.to {
            return Some(format!("it leads from {} to {}: write the lower one first", self.from, self.to));
        }
        if !(0.001..=0.5).contains(&self.precision) {
            return Some("the precision is between 0.1% and 50%".to_owned());
        }
        [self.from, self.to].into_iter().find_map(|rate| self.load(rate).err()).map(|fault| fault.to_string())
    }

    /// The load of one rate.
    pub fn load(&self, rate: u32) -> Result<Load, Fault> {
        Open::new(constant(rate, self.duration_s)?, self.max_vus).map(Load::Open)
    }

    /// By which rules it is searched for within a plan.
    pub fn rules(&self, plan: &Plan) -> Rules {
        let count = |count: u32| usize::try_from(count).unwrap_or(usize::MAX);
        Rules {
            from: self.from,
            to: self.to,
            precision: self.precision,
            confirm: count(plan.repetitions).max(1),
            spare: count(plan.retries),
        }
    }
}

/// The rate of a run, where it is constant.
pub fn rate_of(run: &Run) -> Option<u32> {
    match run.load.as_ref()? {
        Load::Open(open) => match open.rate().form() {
            Form::Constant { level, .. } => Some(*level),
            Form::Stages(_) => None,
        },
        Load::Closed(_) | Load::Script => None,
    }
}

/// Reasons for which a run that fails says that its target can't bear the rate.
pub(crate) const OVERLOAD: [&str; 6] =
    ["requests_failed", "no_success", "checks_failed", "target_died", "target_restarted", "oom_killed"];
/// Reasons for which what is slow may be the generator.
const BOUND: [&str; 2] = ["generator_busy", "generator_throttled"];
/// Reasons for which the rate was not what it should be.
const LESS: [&str; 2] = ["iterations_dropped", "rate_not_kept"];

/// What a run that has ended says of its rate.
///
/// A latency that is too long while k6 itself was short of CPU is k6's; one that is short enough at less than the rate
/// says nothing of the rate. In both cases the generator was at its limit. Iterations that were dropped while latencies
/// were too long were dropped because of the target.
pub fn judge(run: &Run, objective: &Objective) -> Outcome {
    let has = |codes: &[&str]| run.reasons.iter().any(|reason| codes.contains(&reason.code.as_str()));
    let invalid = run.verdict == Some(Verdict::Invalid);
    if run.phase != Phase::Finished || invalid {
        return if invalid && has(&OVERLOAD) { Outcome::Missed } else { Outcome::Nothing };
    }
    match objective.holds(run) {
        None => Outcome::Nothing,
        Some(true) if has(&LESS) => Outcome::Saturated,
        Some(true) => Outcome::Held,
        Some(false) if has(&BOUND) => Outcome::Saturated,
        Some(false) => Outcome::Missed,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::runs::{
        load::tests::rate,
        testing::{failed, figured, finished},
        verdict::Reason,
    };

    /// A search between 1,000 and 20,000.
    pub fn knee() -> Knee {
        Knee {
            objective: "p99<50ms, failures<0.1%".parse().expect("an objective"),
            from: 1_000,
            to: 20_000,
            duration_s: 10.0,
            precision: USUAL_PRECISION,
            max_vus: None,
        }
    }

    /// A run at a rate with this p99.
    pub fn at(target: &str, level: u32, p99_ms: f64) -> Run {
        let id = format!("{target}-{level}-{p99_ms}").into();
        let run = Run { id, load: Some(rate(level, 10.0)), ..finished(target, 1) };
        figured(run, |figures| figures.p99_ms = Some(p99_ms))
    }

    fn because(run: Run, verdict: Verdict, code: &str) -> Run {
        let reason =
            Reason { code: code.to_owned(), verdict, text: code.to_owned(), seen: None, limit: None, unit: None };
        Run { verdict: Some(verdict), reasons: vec![reason], ..run }
    }

    #[test]
    fn a_run_says_whether_the_objective_held_and_whose_fault_it_is_if_not() {
        let (fine, slow) = (at("servy", 2_000, 16.0), at("servy", 2_000, 80.0));
        let (suspect, invalid) = (Verdict::Suspect, Verdict::Invalid);
        for (run, outcome) in [
            (fine.clone(), Outcome::Held),
            (slow.clone(), Outcome::Missed),
            (because(fine.clone(), suspect, "host_disturbed"), Outcome::Held),
            (because(fine.clone(), suspect, "generator_busy"), Outcome::Held),
            (because(slow.clone(), suspect, "generator_busy"), Outcome::Saturated),
            (because(slow.clone(), suspect, "iterations_dropped"), Outcome::Missed),
            (because(fine.clone(), suspect, "rate_not_kept"), Outcome::Saturated),
            (because(fine.clone(), invalid, "requests_failed"), Outcome::Missed),
            (because(fine.clone(), invalid, "response_changed"), Outcome::Nothing),
            (because(failed("servy", "failed", "x"), invalid, "target_died"), Outcome::Missed),
            (failed("servy", "failed", "the port was taken"), Outcome::Nothing),
            (failed("servy", "lost", "silent"), Outcome::Nothing),
            (figured(fine, |figures| figures.p99_ms = None), Outcome::Nothing),
        ] {
            assert_eq!(judge(&run, &knee().objective), outcome, "{:?} {:?}", run.phase, run.reasons);
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        assert_eq!(knee().fault(), None);
        for (knee, sentence) in [
            (Knee { from: 5, to: 5, ..knee() }, "it leads from 5 to 5: write the lower one first"),
            (Knee { from: 0, ..knee() }, "rate: between 1 and 1000000"),
            (Knee { to: 2_000_000, ..knee() }, "rate: between 1 and 1000000"),
            (Knee { duration_s: 0.1, ..knee() }, "duration: between 1 and 86400 seconds"),
            (Knee { precision: 0.0, ..knee() }, "the precision is between 0.1% and 50%"),
            (Knee { max_vus: Some(0), ..knee() }, "max_vus: between 1 and 100000"),
        ] {
            assert_eq!(knee.fault().as_deref(), Some(sentence));
        }
    }
}
