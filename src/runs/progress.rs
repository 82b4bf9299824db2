//! Progress and remaining time of a run. Pure.

use brewbench_wire::Phase;

use crate::runs::model::Run;

/// Assumed overhead beside warm-up and measurement, until runs have ended: two starts of k6 and one of the target.
const OVERHEAD_S: f64 = 1.5;

/// Describes a run in one line.
pub fn describe(run: &Run) -> String {
    let size = run.spec.size.as_ref().map_or(String::new(), |size| format!(" · {}", size.name));
    let phase = run.phase.describe();
    format!("{}{size} · repetition {} · {phase}", run.spec.target, run.repetition)
}

/// How long runs of an experiment take. Many runs share one, which looks at all of them once.
#[derive(Clone, Copy, Debug)]
pub struct Typical(Option<f64>);

impl Typical {
    /// Takes the median duration of the finished runs.
    pub fn from_runs(runs: &[&Run]) -> Self {
        let finished = runs.iter().filter(|run| run.phase == Phase::Finished);
        let took_s = |run: &&Run| Some((run.finished_at_ms? - run.started_at_ms?) as f64 / 1_000.0);
        let mut durations: Vec<_> = finished.filter_map(took_s).collect();
        durations.sort_by(f64::total_cmp);
        Self(durations.get(durations.len() / 2).copied())
    }

    /// Total time of a run, in seconds: as long as the others take, or as planned.
    pub fn total_s(self, run: &Run) -> Option<f64> {
        self.0.or_else(|| Some(planned_s(run.spec.duration_s?, run.longest_warm_up_s()?)))
    }

    /// Remaining time of a run, in seconds.
    pub fn remaining_s(self, run: &Run, now_ms: i64) -> Option<f64> {
        if run.has_ended() {
            return Some(0.0);
        }
        let total = self.total_s(run)?;
        let started = run.started_at_ms.filter(|_| run.phase != Phase::Queued);
        Some(started.map_or(total, |started| (total - (now_ms - started) as f64 / 1_000.0).max(0.0)))
    }
}

/// Total time of a run, in seconds: the median of other runs of its experiment, or as planned.
pub fn total_s(run: &Run, others: &[&Run]) -> Option<f64> {
    Typical::from_runs(others).total_s(run)
}

/// Planned duration of a run, in seconds, for a plan without finished runs.
pub fn planned_s(duration_s: f64, warm_up_s: f64) -> f64 {
    duration_s + warm_up_s + OVERHEAD_S
}

/// Remaining time of a run, in seconds.
pub fn remaining_s(run: &Run, others: &[&Run], now_ms: i64) -> Option<f64> {
    Typical::from_runs(others).remaining_s(run, now_ms)
}

/// Completed share of a run's time, 0 to 1.
pub fn share(run: &Run, others: &[&Run], now_ms: i64) -> Option<f64> {
    let (total, left) = (total_s(run, others)?, remaining_s(run, others, now_ms)?);
    (total > 0.0).then(|| (1.0 - left / total).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::{finished, measuring};

    #[test]
    fn a_run_takes_as_long_as_others_or_as_planned() {
        let now = measuring("servy");
        let started = now.started_at_ms.expect("it has started");
        assert_eq!(remaining_s(&now, &[], started + 3_500), Some(10.0));
        let (one, other) = (finished("servy", 1), finished("servy", 2));
        assert_eq!(remaining_s(&now, &[&one, &other], started + 9_000), Some(9.0));
        assert_eq!(share(&now, &[&one, &other], started + 9_000), Some(0.5));
    }

    #[test]
    fn an_overdue_run_has_no_time_left_and_one_without_a_plan_an_unknown_time() {
        let mut now = measuring("servy");
        let started = now.started_at_ms.expect("it has started");
        assert_eq!(
            (remaining_s(&now, &[], started + 60_000), share(&now, &[], started + 60_000)),
            (Some(0.0), Some(1.0))
        );
        now.spec.duration_s = None;
        assert_eq!((remaining_s(&now, &[], started), share(&now, &[], started)), (None, None));
        assert_eq!(remaining_s(&finished("servy", 1), &[], started), Some(0.0));
    }
}
