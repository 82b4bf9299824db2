//! Exit codes of commands that wait for runs.

use std::process::ExitCode;

use brewbench::{
    experiments::{
        knee::history::{Search, State},
        model::ExperimentWithRuns,
        progress::counted,
    },
    runs::{model::Run as RunData, verdict::Verdict},
};
use brewbench_wire::Phase;

use crate::table;

/// Returns success if each repetition of an experiment is valid or suspect. A knee search succeeds if it says where the
/// knee is or that it is outside of the range: runs are expected to fail above the knee.
pub fn judge(experiment: &ExperimentWithRuns) -> ExitCode {
    let Some(searches) = &experiment.searches else { return judge_runs(&experiment.runs) };
    let coded = searches.iter().filter_map(|search| Some((search, code_of(search.state)?)));
    let bad: Vec<(&Search, u8)> = coded.collect();
    for (search, _) in &bad {
        eprintln!("{}, {}: {}", search.target, search.size, table::plain(&search.sentences()));
    }
    // A search without usable runs says less than one that is undecided.
    let worst = bad.iter().map(|(_, code)| *code).min();
    worst.map_or(ExitCode::SUCCESS, ExitCode::from)
}

/// Returns the exit code of a search that does not say where the knee is.
fn code_of(state: State) -> Option<u8> {
    match state {
        State::Found | State::AboveRange | State::BelowRange | State::Searching => None,
        State::Saturated | State::Suspect | State::Contradictory | State::Unsteady => Some(UNDECIDED),
        State::NoFigures | State::Cancelled => Some(RUNS_NOT_USABLE),
    }
}

/// Does the same for runs without their experiment.
pub fn judge_runs(runs: &[RunData]) -> ExitCode {
    let bad: Vec<_> = counted(runs).filter(|run| !run.has_result()).collect();
    for run in &bad {
        let why = run.error.clone().or_else(|| run.because().map(|reason| reason.text.clone()));
        let word = if run.phase == Phase::Finished {
            run.verdict.map_or("finished", Verdict::as_str)
        } else {
            run.phase.as_str()
        };
        eprintln!(
            "{} (repetition {}) {word}: {}",
            run.spec.target,
            run.repetition,
            table::plain(&why.unwrap_or_default())
        );
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(RUNS_NOT_USABLE) }
}

/// The exit code when the runs of a knee search do not allow to say where the knee is.
pub const UNDECIDED: u8 = 4;

/// The exit code when a run failed, was lost or is invalid.
pub const RUNS_NOT_USABLE: u8 = 3;
