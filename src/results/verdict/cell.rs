//! Checks that the runs of a cell were steady: no drift that repeats in each of them. Pure.
//!
//! One short run can't show whether it drifts. A warm-up repeats in each run, so the repetitions together can. What is
//! judged is the same as in [`steadiness`](super::steadiness): throughput under virtual users, the median latency at a
//! constant rate. A drift below the limit is ignored.

use brewbench_statistics::steadiness::{RepeatedDrift, repeated_drift};
use brewbench_wire::{load::Load, series::Series};

use super::{
    limits::{Limit, Limits},
    steadiness::{Aspect, Inner, inner},
};
use crate::runs::verdict::{Reason, Unit, Verdict};

/// Codes of the reasons that only the runs of a cell together can have.
const CODES: [&str; 2] = ["cell_not_steady", "cell_not_steady_p50"];

/// A drift that repeats in the runs of a cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellDrift {
    aspect: Aspect,
    drift: RepeatedDrift,
}

/// Whether a reason is one that the runs of a cell have together.
pub fn is_of_cell(reason: &Reason) -> bool {
    CODES.contains(&reason.code.as_str())
}

impl CellDrift {
    /// Finds the drift that repeats in runs under this load; none if they are steady or show too little.
    pub fn find(load: &Load, runs: &[Series]) -> Option<Self> {
        let aspect = Aspect::from_load(load)?;
        let runs: Vec<_> = runs.iter().map(inner).collect();
        // A point has as many seconds in each run.
        let seconds = runs.iter().map(Inner::seconds_per_point).collect::<Option<Vec<_>>>()?.into_iter().max()?;
        let points: Vec<Vec<f64>> =
            runs.iter().map(|inner| aspect.values(&inner.points(seconds))).collect::<Option<_>>()?;
        Some(Self { aspect, drift: repeated_drift(&points)? })
    }

    /// Returns the reason for the verdict on each run of the cell; none if the drift is below the limit.
    pub fn reason(&self, limits: &Limits) -> Option<Reason> {
        let Self { aspect, drift } = self;
        let (change, [code, code_p50]) = (drift.change(), CODES);
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
