//! How far an experiment is and how long it will still take. Pure.

use std::collections::HashSet;

use brewbench_agent::wire::Phase;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    experiments::model::Experiment,
    runs::{
        load,
        model::Run,
        progress::{describe, left_s, whole_s},
    },
};

/// How far an experiment is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Progress {
    /// How it stands.
    pub standing: Standing,
    /// Runs in all, so far; one that was done again and its repetition count once.
    pub total: usize,
    /// Runs that have ended.
    pub ended: usize,
    /// Runs that ended without figures.
    pub without_figures: usize,
    /// What is being done now, e.g. `go-nethttp · 1 vCPU / 256 MiB · repetition 2 · measuring`.
    pub now: Option<String>,
    /// Seconds left of the runs that there are, if they can be told.
    pub left_s: Option<f64>,
    /// Share of the time that has passed, 0 to 1.
    pub share: f64,
}

/// Whether an experiment goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// Runs wait, are done, or are decided upon.
    UnderWay,
    /// No run is begun until somebody resumes it.
    Paused,
    /// All runs have ended, and there will be no more unless somebody adds some.
    Over,
}

impl Progress {
    /// Whether nothing will follow of itself.
    pub fn is_over(&self) -> bool {
        self.standing == Standing::Over
    }
}

/// How far an experiment with these runs is at a time.
pub fn progress(experiment: &Experiment, runs: &[Run], now_ms: i64) -> Progress {
    let counted: Vec<&Run> = counted(runs).collect();
    let ended = counted.iter().filter(|run| run.has_ended()).count();
    let without_figures = counted.iter().filter(|run| run.has_ended() && run.phase != Phase::Finished).count();
    let active = counted.iter().find(|run| !run.has_ended() && run.phase != Phase::Queued);
    let times: Vec<_> = counted.iter().map(|run| left_s(run, &counted, now_ms)).collect();
    let left_s: Option<f64> = times.into_iter().sum();
    let whole: Option<f64> = counted.iter().map(|run| whole_s(run, &counted)).sum();
    let all_ended = ended == counted.len();
    let share = match (left_s, whole) {
        _ if counted.is_empty() || all_ended => 1.0,
        (Some(left), Some(whole)) if whole > 0.0 => (1.0 - left / whole).clamp(0.0, 1.0),
        _ => ended as f64 / counted.len() as f64,
    };
    let standing = match experiment {
        Experiment { is_open: false, .. } if all_ended => Standing::Over,
        Experiment { paused_at_ms: Some(_), .. } => Standing::Paused,
        _ => Standing::UnderWay,
    };
    let several = experiment.plan.loads.len() > 1 || experiment.plan.knee.is_some();
    let now = active.map(|run| match &run.load {
        Some(load) if several => format!("{} · {}", describe(run), load::words(load)),
        _ => describe(run),
    });
    Progress { standing, total: counted.len(), ended, without_figures, now, left_s, share }
}

/// The runs that stand for their repetitions: a run that is done again stands for nothing any more.
pub fn counted(runs: &[Run]) -> impl Iterator<Item = &Run> {
    let again: HashSet<&RunId> = runs.iter().filter_map(|run| run.retry_of.as_ref()).collect();
    runs.iter().filter(move |run| !again.contains(&run.id))
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
    fn a_run_that_was_done_again_counts_once() {
        let lost = failed("servy", "failed", "the port was taken");
        let again = Run { id: "again".to_owned().into(), retry_of: Some(lost.id.clone()), ..finished("servy", 1) };
        let told = progress(&experiment("night", plan()), &[lost, again], 0);
        assert_eq!((told.total, told.ended, told.without_figures, told.standing), (1, 1, 0, Standing::Over));
    }

    #[test]
    fn it_is_over_once_all_runs_have_ended_and_none_will_follow() {
        let (fixed, runs) = (experiment("night", plan()), [finished("servy", 1)]);
        assert!(progress(&fixed, &runs, 0).is_over());
        let open = Experiment { is_open: true, ..fixed.clone() };
        assert_eq!(progress(&open, &runs, 0).standing, Standing::UnderWay);
        let paused = Experiment { paused_at_ms: Some(1), ..fixed };
        assert_eq!(progress(&paused, &[queued("servy")], 0).standing, Standing::Paused);
        assert!(progress(&paused, &runs, 0).is_over(), "there is nothing to resume");
    }

    #[test]
    fn under_several_loads_it_says_which_one_is_on() {
        let sweep = Plan { loads: vec![vus(10, 10.0), vus(20, 10.0)], ..plan() };
        let now = progress(&experiment("night", sweep), &[measuring("servy")], 0).now.expect("a run");
        assert!(now.ends_with("measuring · 10\u{a0}VUs"), "{now}");
    }
}
