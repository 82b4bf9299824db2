//! A cell's runs as a history: points, spans of one version, changes and their annotations. Pure.

use std::{
    cmp::Reverse,
    collections::{HashMap, hash_map::Entry},
};

use super::shifts::{Looks, Shift, looks};
use crate::{
    app::ids::RunId,
    compare::{
        metric::Metric,
        statistics::{Better, spread},
    },
    runs::{model::Run, verdict::Verdict},
    trends::{
        in_turn,
        model::{Annotation, Change, MAX_POINTS, Point, Return, RunPoint, Span, Support},
        store::AnnotatedChange,
    },
};

/// Returns the newest points of valid runs in order of time. An experiment's runs of one version are one point.
pub fn points(runs: &[Run], metric: Metric) -> Vec<Point> {
    let mut known: Vec<(&Run, RunPoint)> =
        runs.iter().filter(|run| run.counts()).filter_map(|run| Some((run, run_point(run, metric)?))).collect();
    known.sort_by(|(_, a), (_, b)| sort_key(a).cmp(&sort_key(b)));
    let (mut points, mut places) = (Vec::<Point>::new(), HashMap::new());
    for (run, run_point) in known {
        if let Some(experiment) = &run.experiment {
            match places.entry((experiment, &run.version)) {
                Entry::Occupied(entry) => {
                    let place: usize = *entry.get();
                    points[place].runs.push(run_point);
                    continue;
                }
                Entry::Vacant(entry) => _ = entry.insert(points.len()),
            }
        }
        let (experiment, version) = (run.experiment.clone(), run.version.clone());
        points.push(Point {
            experiment,
            at_ms: run_point.at_ms,
            version,
            value: run_point.value,
            runs: vec![run_point],
        });
    }
    for point in &mut points {
        let median = spread(point.runs.iter().map(|run| run.value)).map(|spread| spread.median);
        point.value = median.unwrap_or(point.value);
    }
    points.split_off(points.len().saturating_sub(MAX_POINTS))
}

fn run_point(run: &Run, metric: Metric) -> Option<RunPoint> {
    Some(RunPoint {
        run: run.id.clone(),
        at_ms: run.started_at_ms.unwrap_or(run.queued_at_ms),
        value: metric.value_in(run).filter(|value| value.is_finite())?,
        verdict: run.verdict?,
        block: run.interleaved.then_some(run.repetition),
    })
}

/// Returns the sort key of a run. Runs that were queued together are sorted by id.
fn sort_key(run: &RunPoint) -> (i64, &RunId) {
    (run.at_ms, &run.run)
}

/// Removes the runs of the oldest experiment, which may be incomplete.
pub fn without_cut_experiment(mut runs: Vec<Run>) -> Vec<Run> {
    let oldest = runs.first().and_then(|run| run.experiment.clone());
    if oldest.is_some() && runs.iter().any(|run| run.experiment != oldest) {
        runs.retain(|run| run.experiment != oldest);
    }
    runs
}

/// Groups consecutive points of one version.
pub fn spans(points: &[Point]) -> Vec<Span> {
    let mut first = 0;
    points
        .chunk_by(|one, next| one.version == next.version)
        .filter_map(|chunk| {
            let start = first;
            first += chunk.len();
            let spread = spread(chunk.iter().map(|point| point.value))?;
            let runs = || chunk.iter().flat_map(|point| &point.runs);
            Some(Span {
                version: chunk.first()?.version.clone(),
                first: start,
                points: chunk.len(),
                runs: runs().count(),
                suspect: runs().filter(|run| run.verdict == Verdict::Suspect).count(),
                median: spread.median,
                low: spread.low,
                high: spread.high,
                from_ms: chunk.first()?.at_ms,
                to_ms: runs().map(|run| run.at_ms).max()?,
            })
        })
        .collect()
}

/// Returns the changes with their annotations, including those that were found before the last points and annotated
/// ones that are no longer found.
///
/// Detection ignores annotations, so no annotation can make another change appear or disappear.
pub fn changes(points: &[Point], metric: Metric, annotated: &[AnnotatedChange]) -> Vec<Change> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let Looks { found, lost } = looks(&values);
    let shifts: Vec<Shift> = found.iter().map(|(shift, _)| *shift).collect();
    let annotations = matched(points, &shifts, annotated);
    let is_matched =
        |one: &AnnotatedChange| annotations.iter().flatten().any(|other| other.annotation.run == one.annotation.run);
    let gone: Vec<&AnnotatedChange> = annotated.iter().filter(|annotated| !is_matched(annotated)).collect();
    let is_gone = |shift: &Shift| {
        gone.iter().any(|one| locate(points, one).is_some_and(|at| shift.distance(at, one.rise).is_some()))
    };
    let mut all: Vec<Change> = lost
        .iter()
        .filter(|shift| !is_gone(shift))
        .map(|shift| Change { found: false, support: Support::Lost, ..detected(points, metric, shift, None) })
        .collect();
    for ((shift, is_supported), annotation) in found.iter().zip(&annotations) {
        let change = detected(points, metric, shift, *annotation);
        let support = if in_turn::confirms(points, &change) {
            Support::SameBlocks
        } else if *is_supported {
            Support::LaterPoints
        } else {
            Support::New
        };
        all.push(Change { support, ..change });
    }
    all.extend(gone.iter().map(|annotated| only_annotated(points, metric, annotated)));
    all.sort_by(|a, b| (a.at_ms, &a.run).cmp(&(b.at_ms, &b.run)));
    all
}

/// Returns a change that is found in the current history, as a new one.
fn detected(points: &[Point], metric: Metric, shift: &Shift, annotated: Option<&AnnotatedChange>) -> Change {
    let point = &points[shift.at];
    let returned = |at: usize| Return { at, run: points[at].first_run().clone(), at_ms: points[at].at_ms };
    Change {
        run: point.first_run().clone(),
        experiment: point.experiment.clone(),
        at: Some(shift.at),
        at_ms: point.at_ms,
        version: point.version.clone(),
        previous_version: points[shift.at - 1].version.clone(),
        returned: shift.returned.map(returned),
        medians: Some([shift.before, shift.after]),
        ratio: shift.ratio(),
        improved: improved(metric, shift.is_rise()),
        found: true,
        support: Support::New,
        annotation: annotated.map(|annotated| annotated.annotation.clone()),
        bisect: None,
    }
}

/// Returns an annotated change that is no longer found.
fn only_annotated(points: &[Point], metric: Metric, annotated: &AnnotatedChange) -> Change {
    let at = locate(points, annotated);
    let point = |place: Option<usize>| points.get(place?);
    let version = |place| point(place).and_then(|point| point.version.clone());
    Change {
        run: annotated.annotation.run.clone(),
        experiment: point(at).and_then(|point| point.experiment.clone()),
        at,
        at_ms: annotated.run_at_ms,
        version: version(at),
        previous_version: version(at.and_then(|at| at.checked_sub(1))),
        returned: None,
        medians: None,
        ratio: annotated.ratio,
        improved: improved(metric, annotated.rise),
        found: false,
        support: Support::Lost,
        annotation: Some(annotated.annotation.clone()),
        bisect: None,
    }
}

fn improved(metric: Metric, rise: bool) -> Option<bool> {
    metric.better().map(|better| (better == Better::Higher) == rise)
}

/// Matches changes with annotations, each with at most one. An annotation matches a change of the same direction at
/// most `MAX_MOVE` points away, the nearest first. An annotation of the return of an episode applies to the episode.
fn matched<'a>(
    points: &[Point],
    shifts: &[Shift],
    annotated: &'a [AnnotatedChange],
) -> Vec<Option<&'a AnnotatedChange>> {
    let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
    for (number, annotated) in annotated.iter().enumerate() {
        let Some(at) = locate(points, annotated) else { continue };
        for (place, shift) in shifts.iter().enumerate() {
            pairs.extend(shift.distance(at, annotated.rise).map(|away| (away, place, number)));
        }
    }
    // Of two annotations at the same distance, the newer one applies.
    pairs.sort_by_key(|(away, place, number)| (*away, *place, Reverse(annotated[*number].annotation.at_ms)));
    let (mut matched, mut used) = (vec![None; shifts.len()], vec![false; annotated.len()]);
    for (_, place, number) in pairs {
        if matched[place].is_none() && !used[number] {
            (matched[place], used[number]) = (Some(&annotated[number]), true);
        }
    }
    matched
}

/// Returns the index of the point that contains the run of an annotation. If that run was deleted, returns the point
/// during which it began or the next one; none for a run older than all points.
fn locate(points: &[Point], annotated: &AnnotatedChange) -> Option<usize> {
    let run = &annotated.annotation.run;
    if let Some(at) = points.iter().position(|point| point.has(run)) {
        return Some(at);
    }
    let began = annotated.run_at_ms;
    let next = points.partition_point(|point| (point.at_ms, point.first_run()) < (began, run));
    let before = next.checked_sub(1)?;
    let is_during = points[before].runs.iter().any(|other| other.at_ms > began);
    if is_during { Some(before) } else { (next < points.len()).then_some(next) }
}

impl Point {
    /// Returns the id of its oldest run.
    fn first_run(&self) -> &RunId {
        &self.runs[0].run
    }

    /// Whether it contains a run.
    pub fn has(&self, run: &RunId) -> bool {
        self.runs.iter().any(|other| other.run == *run)
    }
}

impl AnnotatedChange {
    /// Combines a change with its annotation.
    pub fn new(change: &Change, annotation: Annotation) -> Self {
        Self { run_at_ms: change.at_ms, rise: change.ratio > 1.0, ratio: change.ratio, annotation }
    }
}

#[cfg(test)]
mod tests;
