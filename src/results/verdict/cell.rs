//! Checks that the runs of a cell were steady: no drift that repeats in each of them. Pure.
//!
//! One short run can't show whether it drifts. A warm-up repeats in each run, so the repetitions together can. What is
//! judged is the same as in [`steadiness`](super::steadiness): throughput under virtual users, the median latency at a
//! constant rate. A drift below the limit is ignored.
//!
//! Runs that can show no drift are not steady either: a cell whose seconds scatter too much has a note, and
//! [`are_too_short`] knows which runs are never judged, whatever they measured.

use brewbench_statistics::steadiness::{MAX_HIDDEN, Obstacle, RepeatedDrift, Steadiness, can_show, steadiness};
use brewbench_wire::{load::Load, series::Series};

use super::{
    limits::{Limit, Limits},
    steadiness::{ALONE_S, Aspect, ENDS_S, Inner, inner},
};
use crate::runs::{
    model::{Origin, Run},
    verdict::{Reason, Unit, Verdict},
};

/// Codes of the reasons that only the runs of a cell together can have.
const CODES: [&str; 3] = ["cell_not_steady", "cell_not_steady_p50", TOO_NOISY];

/// Code of the note on runs whose seconds scatter too much.
pub const TOO_NOISY: &str = "steadiness_unknown";

/// What the runs of a cell show together, unless they are steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellDrift {
    aspect: Aspect,
    /// The drift that repeats in them; none if their seconds scatter so much that a large one would be missed.
    drift: Option<RepeatedDrift>,
}

/// Whether the runs of a cell are too short to show a drift, together or alone; false for those that are not judged at
/// all: imports, distributed runs, and loads that are not constant.
pub fn are_too_short(runs: &[&Run]) -> bool {
    let is_judged = |run: &&Run| {
        run.origin == Origin::Agent
            && run.spec.generators.is_empty()
            && run.spec.cluster_generators == 0
            && run.spec.load.as_ref().is_some_and(|load| Aspect::from_load(load).is_some())
    };
    let seconds: Option<Vec<f64>> = runs.iter().map(|run| run.spec.duration_s.filter(|_| is_judged(run))).collect();
    let Some(shortest) = seconds.and_then(|seconds| seconds.into_iter().reduce(f64::min)) else { return false };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "seconds of a run")]
    let points = (shortest - ENDS_S).max(0.0) as usize;
    shortest < ALONE_S && !can_show(runs.len(), points)
}

/// Whether a reason is one that the runs of a cell have together.
pub fn is_of_cell(reason: &Reason) -> bool {
    CODES.contains(&reason.code.as_str())
}

impl CellDrift {
    /// Finds the drift that repeats in runs under this load; none if they are steady or too short.
    pub fn find(load: &Load, runs: &[Series]) -> Option<Self> {
        let aspect = Aspect::from_load(load)?;
        let runs: Vec<_> = runs.iter().map(inner).collect();
        // A point has as many seconds in each run.
        let seconds = runs.iter().map(Inner::seconds_per_point).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let points: Vec<Vec<f64>> =
            runs.iter().map(|inner| aspect.values(&inner.points(seconds))).collect::<Option<_>>()?;
        match steadiness(&points) {
            Steadiness::Drifts(drift) => Some(Self { aspect, drift: Some(drift) }),
            Steadiness::NotJudged(Obstacle::TooNoisy) => Some(Self { aspect, drift: None }),
            Steadiness::Steady | Steadiness::NotJudged(Obstacle::TooShort) => None,
        }
    }

    /// Returns the reason for the verdict on each run of the cell, or the note; none if the drift is below the limit.
    pub fn reason(&self, limits: &Limits) -> Option<Reason> {
        let Self { aspect, drift } = self;
        let Some(drift) = drift else {
            let text = format!(
                "steadiness not judged: {} scatters so much that a drift of {} would have been missed",
                aspect.what(),
                Unit::Share.text(MAX_HIDDEN)
            );
            return Some(Reason::note(TOO_NOISY, text));
        };
        let (change, [code, code_p50, _]) = (drift.change(), CODES);
        let (code, limit) = match aspect {
            Aspect::Rate => (code, Limit::NotSteadyRate),
            Aspect::Median => (code_p50, Limit::NotSteadyP50),
        };
        let limit = limits.get(limit);
        if change.abs() <= limit {
            return None;
        }
        let verb = if change > 0.0 { "rises" } else { "falls" };
        let (size, first, last) = (Unit::Share.text(change.abs()), aspect.level(drift.first), aspect.level(drift.last));
        let RepeatedDrift { agreeing, repetitions, .. } = drift;
        let mut text = format!(
            "not steady: {} {verb} by {size} during the measured phase, in {agreeing} of {repetitions} runs of this cell, on \
             average from {first} to {last}",
            aspect.what()
        );
        if aspect.is_warm_up(change) {
            text.push_str("; warm up longer");
        }
        Some(Reason::new(code, Verdict::Suspect, text).with(change.abs(), limit, Unit::Share))
    }
}
