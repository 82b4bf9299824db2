//! The progress of an experiment and its remaining time. Pure.

use std::collections::HashSet;

use brewbench_wire::Phase;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    experiments::model::Experiment,
    runs::{
        load,
        model::Run,
        progress::{Typical, describe},
    },
};

/// Progress of an experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// State of the experiment.
    pub state: ExperimentState,
    /// Number of runs so far; a run and its retries count once.
    pub total: usize,
    /// Number of runs that have ended.
    pub ended: usize,
    /// Number of runs that ended without results.
    pub without_results: usize,
    /// The run in progress, e.g. `go-nethttp · 1 vCPU / 256 MiB · repetition 2 · measuring`.
    pub now: Option<String>,
    /// Estimated seconds left for the current runs, if known.
    pub remaining_s: Option<f64>,
    /// Elapsed share of the total time, 0 to 1.
    pub share: f64,
}

/// State of an experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ExperimentState {
    /// Runs are waiting or in progress, or the next runs are being decided.
    InProgress,
    /// No run starts until a user resumes it.
    Paused,
    /// All runs have ended; only a user can add more.
    Finished,
}

impl Progress {
    /// Whether the experiment is over.
    pub fn is_over(&self) -> bool {
        self.state == ExperimentState::Finished
    }
}

/// Computes the progress of an experiment at a time.
pub fn progress(experiment: &Experiment, runs: &[Run], now_ms: i64) -> Progress {
    let counted: Vec<&Run> = counted(runs).collect();
    let ended = counted.iter().filter(|run| run.has_ended()).count();
    let without_results = counted.iter().filter(|run| run.has_ended() && run.phase != Phase::Finished).count();
    let active = counted.iter().find(|run| !run.has_ended() && run.phase != Phase::Queued);
    let typical = Typical::from_runs(&counted);
    let remaining_s: Option<f64> = counted.iter().map(|run| typical.remaining_s(run, now_ms)).sum();
    let total_s: Option<f64> = counted.iter().map(|run| typical.total_s(run)).sum();
    let all_ended = ended == counted.len();
    let share = match (remaining_s, total_s) {
        _ if counted.is_empty() || all_ended => 1.0,
        (Some(left), Some(total)) if total > 0.0 => (1.0 - left / total).clamp(0.0, 1.0),
        _ => ended as f64 / counted.len() as f64,
    };
    let state = match experiment {
        Experiment { is_open: false, .. } if all_ended => ExperimentState::Finished,
        Experiment { paused_at_ms: Some(_), .. } => ExperimentState::Paused,
        _ => ExperimentState::InProgress,
    };
    let several = experiment.plan.loads.len() > 1 || experiment.plan.knee.is_some();
    let now = active.map(|run| match load::describe_with(&run.spec, load::describe) {
        Some(load) if several => format!("{} · {load}", describe(run)),
        _ => describe(run),
    });
    Progress { state, total: counted.len(), ended, without_results, now, remaining_s, share }
}

/// Returns the runs without those that were retried, so that each repetition counts once.
pub fn counted(runs: &[Run]) -> impl Iterator<Item = &Run> {
    let retried: HashSet<&RunId> = runs.iter().filter_map(|run| run.retry_of.as_ref()).collect();
    runs.iter().filter(move |run| !retried.contains(&run.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::{
            describe::tests::{experiment, plan, queued},
            plan::Plan,
        },
        runs::{
            load::tests::vus,
            testing::{failed, finished, measuring},
        },
    };

    #[test]
    fn a_retried_run_counts_once() {
        let lost = failed("servy", "failed", "the port was taken");
        let again = Run { id: "again".to_owned().into(), retry_of: Some(lost.id.clone()), ..finished("servy", 1) };
        let progress = progress(&experiment("night", plan()), &[lost, again], 0);
        let counts = (progress.total, progress.ended, progress.without_results);
        assert_eq!((counts, progress.state), ((1, 1, 0), ExperimentState::Finished));
    }

    #[test]
    fn an_experiment_is_over_when_all_runs_have_ended_and_none_will_follow() {
        let (fixed, runs) = (experiment("night", plan()), [finished("servy", 1)]);
        assert!(progress(&fixed, &runs, 0).is_over());
        let open = Experiment { is_open: true, ..fixed.clone() };
        assert_eq!(progress(&open, &runs, 0).state, ExperimentState::InProgress);
        let paused = Experiment { paused_at_ms: Some(1), ..fixed };
        assert_eq!(progress(&paused, &[queued("servy")], 0).state, ExperimentState::Paused);
        assert!(progress(&paused, &runs, 0).is_over(), "there is nothing to resume");
    }

    #[test]
    fn the_run_in_progress_names_its_load_if_there_are_several() {
        let sweep = Plan { loads: vec![vus(10, 10.0), vus(20, 10.0)], ..plan() };
        let now = progress(&experiment("night", sweep), &[measuring("servy")], 0).now.expect("a run");
        assert!(now.ends_with("measuring · 10\u{a0}VUs"), "{now}");
    }
}
