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

/// How a command that waited for an experiment ends: well, if each repetition has figures that count. A search for the
/// knee has what it needs once it has come to an end of its own: that runs fail above the knee is what it looks for.
pub fn judge(whole: &ExperimentWithRuns) -> ExitCode {
    let Some(searches) = &whole.searches else { return judge_runs(&whole.runs) };
    let vain = |search: &&Search| matches!(search.state, State::NoFigures | State::Unsteady | State::Cancelled);
    let bad: Vec<_> = searches.iter().filter(vain).collect();
    for Search { target, size, told, .. } in &bad {
        eprintln!("{target}, {size}: {}", table::plain(told));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_WELL) }
}

/// The same for runs of which no more is known.
pub fn judge_runs(runs: &[RunData]) -> ExitCode {
    let bad: Vec<_> = counted(runs).filter(|run| !run.counts()).collect();
    for run in &bad {
        let why = run.error.clone().or_else(|| run.because().map(|reason| reason.text.clone()));
        let word = if run.phase == Phase::Finished {
            run.verdict.map_or("finished", Verdict::as_str)
        } else {
            run.phase.as_str()
        };
        eprintln!("{} (repetition {}) {word}: {}", run.target, run.repetition, table::plain(&why.unwrap_or_default()));
    }
    if bad.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(NOT_ALL_WELL) }
}

/// What waiting commands end with when runs did not come to figures that count.
pub const NOT_ALL_WELL: u8 = 3;
