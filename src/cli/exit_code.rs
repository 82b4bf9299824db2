//! Exit codes of commands that wait for runs.

use std::process::ExitCode;

use brewbench_agent::wire::Phase;

use crate::{
    cli::table,
    experiments::{
        knee::history::{Search, State},
        model::ExperimentWithRuns,
        progress::counted,
    },
    runs::{model::Run as RunData, verdict::Verdict},
};

/// Returns success if each repetition of an experiment is valid or suspect. A knee search succeeds once it has
/// concluded: runs are expected to fail above the knee.
pub fn judge(experiment: &ExperimentWithRuns) -> ExitCode {
    let Some(searches) = &experiment.searches else { return judge_runs(&experiment.runs) };
    let failed = |search: &&Search| matches!(search.state, State::NoFigures | State::Unsteady | State::Cancelled);
    let bad: Vec<_> = searches.iter().filter(failed).collect();
    for Search { target, size, description, .. } in &bad {
        eprintln!("{target}, {size}: {}", table::plain(description));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(RUNS_NOT_USABLE) }
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
        eprintln!("{} (repetition {}) {word}: {}", run.target, run.repetition, table::plain(&why.unwrap_or_default()));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(RUNS_NOT_USABLE) }
}

/// The exit code when a run failed, was lost or is invalid.
pub const RUNS_NOT_USABLE: u8 = 3;
