//! How far a run is and how long it still takes. Pure.

use brewbench_agent::wire::Phase;

use crate::runs::model::Run;

/// What a run takes besides warm-up and measurement, until some have been seen: two starts of k6 and one of a target.
const OVERHEAD_S: f64 = 1.5;

/// What a run is in one line.
pub fn describe(run: &Run) -> String {
    let size = run.size.as_ref().map_or(String::new(), |size| format!(" · {}", size.name));
    let phase = run.phase.words();
    format!("{}{size} · repetition {} · {phase}", run.target, run.repetition)
}

/// How long a run takes in all, in seconds: as long as others of the same plan did, else as planned.
pub fn whole_s(run: &Run, others: &[&Run]) -> Option<f64> {
    let mut seen: Vec<_> = others
        .iter()
        .filter(|other| other.phase == Phase::Finished)
        .filter_map(|other| Some((other.finished_at_ms? - other.started_at_ms?) as f64 / 1_000.0))
        .collect();
    seen.sort_by(f64::total_cmp);
    let planned = || Some(planned_s(run.duration_s?, run.longest_warm_up_s()?));
    seen.get(seen.len() / 2).copied().or_else(planned)
}

/// How long a run takes that was asked for like this and of which none have been seen, in seconds.
pub fn planned_s(duration_s: f64, warm_up_s: f64) -> f64 {
    duration_s + warm_up_s + OVERHEAD_S
}

/// How long a run still takes, in seconds.
pub fn left_s(run: &Run, others: &[&Run], now_ms: i64) -> Option<f64> {
    if run.has_ended() {
        return Some(0.0);
    }
    let whole = whole_s(run, others)?;
    let since = run.started_at_ms.filter(|_| run.phase != Phase::Queued);
    Some(since.map_or(whole, |since| (whole - (now_ms - since) as f64 / 1_000.0).max(0.0)))
}

/// The share of its time that a run has behind it, 0 to 1.
pub fn share(run: &Run, others: &[&Run], now_ms: i64) -> Option<f64> {
    let (whole, left) = (whole_s(run, others)?, left_s(run, others, now_ms)?);
    (whole > 0.0).then(|| (1.0 - left / whole).clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::{finished, measuring};

    #[test]
    fn a_run_takes_as_long_as_others_did_or_else_as_planned() {
        let now = measuring("servy");
        let began = now.started_at_ms.expect("it was begun");
        assert_eq!(left_s(&now, &[], began + 3_500), Some(10.0));
        let (one, other) = (finished("servy", 1), finished("servy", 2));
        assert_eq!(left_s(&now, &[&one, &other], began + 9_000), Some(9.0));
        assert_eq!(share(&now, &[&one, &other], began + 9_000), Some(0.5));
    }

    #[test]
    fn a_run_that_is_late_has_nothing_left_and_one_without_a_plan_is_not_known() {
        let mut now = measuring("servy");
        let began = now.started_at_ms.expect("it was begun");
        assert_eq!((left_s(&now, &[], began + 60_000), share(&now, &[], began + 60_000)), (Some(0.0), Some(1.0)));
        now.duration_s = None;
        assert_eq!((left_s(&now, &[], began), share(&now, &[], began)), (None, None));
        assert_eq!(left_s(&finished("servy", 1), &[], began), Some(0.0));
    }
}
