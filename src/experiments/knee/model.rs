//! A knee search in a plan. Pure.

use brewbench_wire::{
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
    runs::{
        model::Run,
        verdict::{Reason, Verdict},
    },
};

/// The default precision.
pub const DEFAULT_PRECISION: f64 = 0.05;

/// A search for the highest rate at which an objective holds, for each target at each size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Knee {
    /// What must hold, e.g. `p99<50ms, failures<0.1%`. Metrics: avg, p50, p90, p95, p99, p99.9, max and failures.
    #[schema(value_type = String)]
    pub objective: Objective,
    /// The lowest rate, iterations per second.
    pub from: u32,
    /// The highest rate, iterations per second.
    pub to: u32,
    /// How long each rate is measured, 1 s to a day.
    pub duration_s: f64,
    /// Maximum distance of the ends of the knee's 95 % interval from the knee, as a share of it: 0.001 to 0.5. A search
    /// of results that vary much ends with a wider interval.
    #[serde(default = "default_precision")]
    pub precision: f64,
    /// Maximum number of virtual users. Default: a tenth of the rate, between 10 and 1,000.
    #[serde(default)]
    pub max_vus: Option<u32>,
}

pub(crate) fn default_precision() -> f64 {
    DEFAULT_PRECISION
}

impl Knee {
    /// Returns what is wrong with it, as a sentence.
    pub fn fault(&self) -> Option<String> {
        if self.from >= self.to {
            return Some(format!("{}..{} is not a range: write the lower rate first", self.from, self.to));
        }
        if !(0.001..=0.5).contains(&self.precision) {
            return Some("the precision must be between 0.1% and 50%".to_owned());
        }
        [self.from, self.to].into_iter().find_map(|rate| self.load(rate).err()).map(|fault| fault.to_string())
    }

    /// Returns the load of one rate.
    pub fn load(&self, rate: u32) -> Result<Load, Fault> {
        Open::new(Form::constant(rate, self.duration_s)?, self.max_vus).map(Load::Open)
    }

    /// Returns the rules of the search within a plan.
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

/// Returns the rate of a run, if it is constant.
pub fn rate_of(run: &Run) -> Option<u32> {
    match run.spec.load.as_ref()? {
        Load::Open(open) => match open.rate().form() {
            Form::Constant { level, .. } => Some(*level),
            Form::Stages(_) => None,
        },
        Load::Closed(_) | Load::Script => None,
    }
}

/// Reasons of invalid runs that mean that the target can't sustain the rate.
pub(crate) const OVERLOAD: [&str; 6] =
    ["requests_failed", "no_success", "checks_failed", "target_died", "target_restarted", "oom_killed"];
/// Reasons that mean that the generator may have been the bottleneck: it adds its own delays to latencies.
const GENERATOR_BOUND: [&str; 3] = ["generator_busy", "generator_throttled", "generator_delayed"];
/// Reasons that neither target nor rate cause: surroundings and setup, which make any run miss its objective.
const NOT_OF_RATE: [&str; 9] = [
    "host_disturbed",
    "host_steal",
    "not_quiet_before",
    "clock_jumped",
    "too_short",
    "size_not_enforced",
    "emulated",
    "shared_cores",
    "shared_physical_core",
];
/// Reasons that the rate causes and that make no latency look better than it was.
const OF_RATE: [&str; 8] = [
    "requests_failed",
    "checks_failed",
    "iterations_interrupted",
    "target_restarted",
    "not_steady",
    "not_steady_p50",
    "cell_not_steady",
    "cell_not_steady_p50",
];
/// Reasons that mean that the rate was lower than requested.
const RATE_MISSED: [&str; 2] = ["iterations_dropped", "rate_not_kept"];

/// Returns the outcome of an ended run for its rate.
///
/// A latency above the limit counts against k6, not the target, if k6 itself was short of CPU. A latency within the
/// limit proves nothing if the rate was not reached. In both cases the generator was saturated. Iterations that were
/// dropped while latencies exceeded the limit were dropped because of the target.
///
/// A run that is suspect for another reason than its rate decides nothing. Nor does one that met the objective: if
/// those counted and the others did not, disturbances would raise the knee.
pub fn judge(run: &Run, objective: &Objective) -> Outcome {
    let is_one_of = |reason: &Reason, codes: &[&str]| codes.contains(&reason.code.as_str());
    let grave = || run.reasons.iter().filter(|reason| !reason.is_note());
    let has = |codes: &[&str]| grave().any(|reason| is_one_of(reason, codes));
    let is_explained =
        |reason: &Reason| [&OF_RATE[..], &GENERATOR_BOUND, &RATE_MISSED].iter().any(|codes| is_one_of(reason, codes));
    let invalid = run.verdict == Some(Verdict::Invalid);
    if run.phase != Phase::Finished || invalid {
        return if invalid && has(&OVERLOAD) { Outcome::Missed } else { Outcome::Inconclusive };
    }
    match objective.holds(run) {
        None => Outcome::Inconclusive,
        Some(_) if has(&NOT_OF_RATE) => Outcome::Suspect,
        Some(true) if has(&RATE_MISSED) => Outcome::Saturated,
        Some(true) if !grave().all(is_explained) => Outcome::Suspect,
        Some(true) => Outcome::Held,
        Some(false) if has(&GENERATOR_BOUND) => Outcome::Saturated,
        Some(false) => Outcome::Missed,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::runs::{
        load::tests::rate,
        model::RunSpec,
        testing::{failed, figured, finished},
    };

    /// Returns a search between 1,000 and 20,000 iterations per second.
    pub fn knee() -> Knee {
        Knee {
            objective: "p99<50ms, failures<0.1%".parse().expect("an objective"),
            from: 1_000,
            to: 20_000,
            duration_s: 10.0,
            precision: DEFAULT_PRECISION,
            max_vus: None,
        }
    }

    /// Returns a run at a rate with this p99.
    pub fn at(target: &str, level: u32, p99_ms: f64) -> Run {
        let id = format!("{target}-{level}-{p99_ms}").into();
        let run = Run {
            id,
            spec: RunSpec { load: Some(rate(level, 10.0)), ..finished(target, 1).spec },
            ..finished(target, 1)
        };
        figured(run, |figures| figures.p99_ms = Some(p99_ms))
    }

    fn with_reason(run: Run, verdict: Verdict, code: &str) -> Run {
        let reason =
            Reason { code: code.to_owned(), verdict, text: code.to_owned(), observed: None, limit: None, unit: None };
        Run { verdict: Some(verdict), reasons: vec![reason], ..run }
    }

    #[test]
    fn the_outcome_of_a_run_tells_target_from_generator_limits() {
        let (fine, slow) = (at("servy", 2_000, 16.0), at("servy", 2_000, 80.0));
        let (suspect, invalid) = (Verdict::Suspect, Verdict::Invalid);
        for (run, outcome) in vec![
            (fine.clone(), Outcome::Held),
            (slow.clone(), Outcome::Missed),
            (with_reason(fine.clone(), suspect, "host_disturbed"), Outcome::Suspect),
            (with_reason(slow.clone(), suspect, "host_disturbed"), Outcome::Suspect),
            (with_reason(slow.clone(), Verdict::Valid, "host_disturbed"), Outcome::Missed),
            (with_reason(slow.clone(), suspect, "host_steal"), Outcome::Suspect),
            (with_reason(slow.clone(), suspect, "not_quiet_before"), Outcome::Suspect),
            (with_reason(fine.clone(), suspect, "emulated"), Outcome::Suspect),
            (with_reason(fine.clone(), suspect, "generator_blocked"), Outcome::Suspect),
            (with_reason(slow.clone(), suspect, "generator_blocked"), Outcome::Missed),
            (with_reason(fine.clone(), suspect, "not_steady"), Outcome::Held),
            (with_reason(slow.clone(), suspect, "not_steady"), Outcome::Missed),
            (with_reason(fine.clone(), suspect, "generator_busy"), Outcome::Held),
            (with_reason(slow.clone(), suspect, "generator_busy"), Outcome::Saturated),
            (with_reason(slow.clone(), suspect, "iterations_dropped"), Outcome::Missed),
            (with_reason(fine.clone(), suspect, "rate_not_kept"), Outcome::Saturated),
            (with_reason(fine.clone(), invalid, "requests_failed"), Outcome::Missed),
            (with_reason(fine.clone(), invalid, "response_changed"), Outcome::Inconclusive),
            (with_reason(failed("servy", "failed", "x"), invalid, "target_died"), Outcome::Missed),
            (failed("servy", "failed", "the port was taken"), Outcome::Inconclusive),
            (failed("servy", "lost", "silent"), Outcome::Inconclusive),
            (figured(fine, |figures| figures.p99_ms = None), Outcome::Inconclusive),
        ] {
            assert_eq!(judge(&run, &knee().objective), outcome, "{:?} {:?}", run.phase, run.reasons);
        }
    }

    #[test]
    fn faults_of_a_search_are_described() {
        assert_eq!(knee().fault(), None);
        for (knee, sentence) in [
            (Knee { from: 5, to: 5, ..knee() }, "5..5 is not a range: write the lower rate first"),
            (Knee { from: 0, ..knee() }, "rate: between 1 and 1000000"),
            (Knee { to: 2_000_000, ..knee() }, "rate: between 1 and 1000000"),
            (Knee { duration_s: 0.1, ..knee() }, "duration: between 1 and 86400 seconds"),
            (Knee { precision: 0.0, ..knee() }, "the precision must be between 0.1% and 50%"),
            (Knee { max_vus: Some(0), ..knee() }, "max_vus: between 1 and 100000"),
        ] {
            assert_eq!(knee.fault().as_deref(), Some(sentence));
        }
    }
}
