//! Whether both versions of a change were measured in turn in one experiment, and differ there, too. Pure.

use crate::{
    app::ids::ExperimentId,
    compare::statistics::{ALPHA, Design, Observation, design, effect, rank_test},
    trends::model::{Change, Point},
};

/// Whether runs of both versions in the same blocks of an experiment differ in the direction of the change.
pub fn confirms(points: &[Point], change: &Change) -> bool {
    let (Some(before), Some(after)) = (change.previous_version.as_deref(), change.version.as_deref()) else {
        return false;
    };
    if before == after {
        return false;
    }
    let Design::InTurn { strata, .. } = design(&measured(points, before), &measured(points, after)) else {
        return false;
    };
    let is_found = rank_test(&strata).is_some_and(|test| test.p <= ALPHA);
    is_found && effect(&strata, ALPHA).is_some_and(|effect| (effect.ratio > 1.0) == (change.ratio > 1.0))
}

/// Returns the runs of a version that were measured in turn with others.
fn measured<'a>(points: &'a [Point], version: &str) -> Vec<Observation<'a>> {
    let own = points.iter().filter(|point| point.version.as_deref() == Some(version));
    let of_point = |point: &'a Point| {
        let experiment = point.experiment.as_ref().map(ExperimentId::as_str);
        point.runs.iter().filter_map(move |run| {
            let (block, value) = (run.block?, run.value);
            Some(Observation { experiment, block, agent: None, at_ms: None, interleaved: true, paired: false, value })
        })
    };
    own.flat_map(of_point).collect()
}
