//! Runs in progress on the page of their experiment, each with its last seconds. Template: `experiments/_current.html`.

use brewbench_wire::Phase;

use crate::{
    experiments::{model::Experiment, plan::Plan, progress::counted},
    live::{
        chart::{LiveChart, charts},
        feed::LiveFeed,
    },
    runs::{load, model::Run, pages::row::RunProgress},
    web::series_style::Marks,
};

/// Seconds in the charts.
const SECONDS: usize = 120;

/// Maximum number of runs that are shown at the same time.
const MAX_SHOWN: usize = 4;

/// A run in progress.
#[derive(Clone, Debug)]
pub struct Current {
    /// The run with its progress.
    pub progress: RunProgress,
    /// `2 vCPU / 4 GiB · repetition 2 of 4`.
    pub about: String,
    /// Throughput and latency of its last seconds.
    pub charts: [LiveChart; 2],
}

/// Returns the runs in progress of an experiment.
pub fn currents(experiment: &Experiment, runs: &[Run], marks: &Marks, feed: &LiveFeed, now_ms: i64) -> Vec<Current> {
    let all: Vec<&Run> = counted(runs).collect();
    let active = all.iter().filter(|run| !run.has_ended() && run.phase != Phase::Queued);
    let last = all.iter().map(|run| run.repetition).max().unwrap_or(0);
    let current = |run: &&&Run| {
        let seconds = run.id.to_wire().map(|id| feed.recent(id, SECONDS)).unwrap_or_default();
        let progress = RunProgress::new(Run::clone(run), marks, &all, now_ms);
        let charts = charts(run, progress.line.mark, &seconds);
        Current { progress, about: describe_run(run, &experiment.plan, last), charts }
    };
    active.take(MAX_SHOWN).map(|run| current(&run)).collect()
}

/// Describes a run among the others of its plan. `last` is the last repetition so far.
fn describe_run(run: &Run, plan: &Plan, last: u32) -> String {
    let size = run.spec.size.as_ref().map(|size| size.name.clone());
    let several = plan.loads.len() > 1 || plan.knee.is_some();
    let load = load::describe_with(&run.spec, load::describe).filter(|_| several);
    let repetition = match (&plan.knee, plan.stopping_rule) {
        (Some(_), _) => format!("repetition {}", run.repetition),
        (None, Some(until)) => format!("repetition {} of at most {}", run.repetition, until.at_most),
        (None, None) => format!("repetition {} of {}", run.repetition, plan.repetitions.max(last)),
    };
    let agent = run.agent.as_ref().map(|agent| format!("on {agent}"));
    [size, load, Some(repetition), agent].into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::{
            describe::tests::{experiment, plan, queued},
            stopping_rule::StoppingRule,
        },
        runs::{
            load::tests::vus,
            testing::{finished, measuring},
        },
    };

    fn abouts(plan: Plan, runs: &[Run]) -> Vec<String> {
        let feed = LiveFeed::default();
        let currents = currents(&experiment("night", plan), runs, &Marks::default(), &feed, 0);
        currents.into_iter().map(|current| current.about.replace('\u{a0}', " ")).collect()
    }

    #[test]
    fn only_runs_in_progress_are_shown_with_their_place_in_the_plan() {
        let runs = [finished("servy", 1), measuring("servy"), queued("gosherve")];
        let about = abouts(plan(), &runs);
        assert_eq!(about.len(), 1);
        assert!(about[0].contains("repetition 3 of 3"), "{about:?}");
        let until = Some(StoppingRule { narrower_than: 0.02, at_most: 20 });
        let about = abouts(Plan { stopping_rule: until, loads: vec![vus(10, 10.0), vus(20, 10.0)], ..plan() }, &runs);
        assert!(about[0].contains("10 VUs · repetition 3 of at most 20"), "{about:?}");
        assert!(abouts(plan(), &runs[..1]).is_empty());
    }
}
