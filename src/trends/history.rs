//! A cell's runs as a history: points, spans of one version, changes and their annotations. Pure.

use std::{
    cmp::Reverse,
    collections::{HashMap, hash_map::Entry},
};

use super::shifts::{Shift, shifts};
use crate::{
    app::ids::RunId,
    compare::{
        metric::Metric,
        statistics::{Better, spread},
    },
    runs::{model::Run, verdict::Verdict},
    trends::{
        model::{Annotation, Change, MAX_POINTS, Point, Return, RunPoint, Span},
        store::AnnotatedChange,
    },
};

/// The number of points that an annotated change may move by as more runs arrive.
const MAX_MOVE: usize = 3;

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

/// Returns the changes with their annotations, including annotated changes that are no longer found.
///
/// Detection ignores annotations, so no annotation can make another change appear or disappear.
pub fn changes(points: &[Point], metric: Metric, annotated: &[AnnotatedChange]) -> Vec<Change> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let shifts = shifts(&values);
    let annotations = matched(points, &shifts, annotated);
    let mut all: Vec<Change> =
        shifts.iter().zip(&annotations).map(|(shift, annotated)| detected(points, metric, shift, *annotated)).collect();
    let is_matched =
        |one: &AnnotatedChange| annotations.iter().flatten().any(|other| other.annotation.run == one.annotation.run);
    all.extend(
        annotated
            .iter()
            .filter(|annotated| !is_matched(annotated))
            .map(|annotated| only_annotated(points, metric, annotated)),
    );
    all.sort_by(|a, b| (a.at_ms, &a.run).cmp(&(b.at_ms, &b.run)));
    all
}

/// Returns a change that is found in the current history.
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
        improved: improved(metric, shift.after > shift.before),
        found: true,
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
        annotation: Some(annotated.annotation.clone()),
        bisect: None,
    }
}

fn improved(metric: Metric, rise: bool) -> Option<bool> {
    metric.better().map(|better| (better == Better::Higher) == rise)
}

/// Matches changes with annotations, each with at most one. An annotation matches a change of the same direction at
/// most [`MAX_MOVE`] points away, the nearest first. An annotation of the return of an episode applies to the episode.
fn matched<'a>(
    points: &[Point],
    shifts: &[Shift],
    annotated: &'a [AnnotatedChange],
) -> Vec<Option<&'a AnnotatedChange>> {
    let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
    for (number, annotated) in annotated.iter().enumerate() {
        let Some(at) = locate(points, annotated) else { continue };
        for (place, shift) in shifts.iter().enumerate() {
            let rise = shift.after > shift.before;
            let candidate = if rise == annotated.rise { Some(shift.at) } else { shift.returned };
            let away = candidate.map(|candidate| candidate.abs_diff(at)).filter(|away| *away <= MAX_MOVE);
            pairs.extend(away.map(|away| (away, place, number)));
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
mod tests {
    use super::*;
    use crate::{
        app::ids::ExperimentId,
        runs::testing::{figured, finished, judged as verdict},
        trends::model::ChangeStatus,
    };

    /// Experiments of one run each, with a version for each level and a fixed wobble.
    fn runs(levels: &[(usize, f64)]) -> Vec<Run> {
        let mut runs = Vec::new();
        for (version, (count, level)) in levels.iter().enumerate() {
            for _ in 0..*count {
                let place = runs.len();
                let wobble = 1.0 + 0.004 * ((place * 7919 % 13) as f64 - 6.0) / 6.0;
                runs.push(run(&format!("{place:04}"), &format!("e{place}"), version, level * wobble, place * 1_000));
            }
        }
        runs
    }

    fn run(id: &str, experiment: &str, version: usize, rps: f64, at: usize) -> Run {
        Run {
            id: id.to_owned().into(),
            experiment: Some(experiment.to_owned().into()),
            version: Some(format!("{version}")),
            queued_at_ms: i64::try_from(at).expect("few"),
            started_at_ms: None,
            ..figured(finished("servy", 1), |figures| figures.rps = Some(rps))
        }
    }

    /// The same with three runs per experiment, whose median has the level.
    fn in_threes(levels: &[(usize, f64)]) -> Vec<Run> {
        let three = |one: Run| {
            [0.98, 1.0, 1.03].into_iter().enumerate().map(move |(place, factor)| Run {
                id: format!("{}-{place}", one.id).into(),
                queued_at_ms: one.queued_at_ms + 100 * i64::try_from(place).expect("few"),
                ..figured(one.clone(), |figures| figures.rps = figures.rps.map(|rps| rps * factor))
            })
        };
        runs(levels).into_iter().flat_map(three).collect()
    }

    fn found(runs: &[Run], annotated: &[AnnotatedChange]) -> Vec<Change> {
        changes(&points(runs, Metric::Rps), Metric::Rps, annotated)
    }

    fn annotated(change: &Change, status: ChangeStatus) -> AnnotatedChange {
        let (run, by) = (change.run.clone(), "ada".to_owned());
        AnnotatedChange::new(change, Annotation { run, status, note: None, by, at_ms: 1 })
    }

    #[test]
    fn invalid_runs_are_excluded_and_suspect_runs_are_marked() {
        let mut all = runs(&[(6, 100.0)]);
        all[2] = verdict(all[2].clone(), Verdict::Invalid, "all failed");
        all[3] = verdict(all[3].clone(), Verdict::Suspect, "shared cores");
        let points = points(&all, Metric::Rps);
        assert_eq!((points.len(), points[2].runs[0].verdict), (5, Verdict::Suspect));
        assert_eq!(spans(&points)[0].suspect, 1);
    }

    #[test]
    fn consecutive_versions_are_spans() {
        let spans = spans(&points(&runs(&[(4, 100.0), (5, 90.0)]), Metric::Rps));
        let [one, other] = spans.as_slice() else { panic!("two") };
        assert_eq!((one.first, one.points, other.first, other.points), (0, 4, 4, 5));
        assert!(one.median > 99.0 && other.median < 91.0);
    }

    #[test]
    fn a_change_has_its_versions_and_its_direction() {
        let all = runs(&[(12, 100.0), (12, 90.0), (12, 99.0)]);
        let [worse, better] = found(&all, &[]).try_into().expect("two changes");
        assert_eq!(
            (worse.run.as_str(), worse.previous_version.as_deref(), worse.version.as_deref()),
            ("0012", Some("0"), Some("1"))
        );
        assert_eq!((worse.improved, better.improved), (Some(false), Some(true)));
        let latency = changes(&points(&all, Metric::Rps), Metric::P99Ms, &[]);
        assert_eq!(latency[0].improved, Some(true), "less latency is better");
    }

    #[test]
    fn an_annotation_stays_with_its_change_as_more_runs_arrive() {
        let levels = [(12, 100.0), (12, 90.0), (30, 99.0)];
        let first = found(&runs(&[(12, 100.0), (4, 90.0)]), &[]);
        for status in [ChangeStatus::Confirmed, ChangeStatus::Dismissed] {
            let annotated = [annotated(&first[0], status)];
            for more in 4..40 {
                let all = runs(&levels)[..12 + more].to_vec();
                let changes = found(&all, &annotated);
                assert_eq!(
                    changes[0].annotation.as_ref().map(|annotation| annotation.status),
                    Some(status),
                    "{more} more"
                );
                let open = changes.iter().filter(|change| change.annotation.is_none()).count();
                assert!(open <= 1 && changes.len() <= 2, "{more} more: {changes:?}");
                assert_eq!(changes.iter().filter(|change| change.found && change.annotation.is_some()).count(), 1);
            }
        }
    }

    #[test]
    fn an_annotation_of_one_change_does_not_affect_others() {
        let all = runs(&[(12, 100.0), (12, 90.0), (12, 99.0), (12, 80.0)]);
        let before = found(&all, &[]);
        assert_eq!(before.len(), 3);
        for place in 0..3 {
            for status in [ChangeStatus::Confirmed, ChangeStatus::Dismissed] {
                let after = found(&all, &[annotated(&before[place], status)]);
                let runs = |changes: &[Change]| changes.iter().map(|change| change.run.clone()).collect::<Vec<_>>();
                assert_eq!(runs(&after), runs(&before));
                assert_eq!(after.iter().filter(|change| change.annotation.is_some()).count(), 1);
            }
        }
    }

    #[test]
    fn an_annotation_survives_the_deletion_of_its_run() {
        let mut all = runs(&[(12, 100.0), (12, 90.0)]);
        let annotated = [annotated(&found(&all, &[])[0], ChangeStatus::Dismissed)];
        all.remove(12);
        let changes = found(&all, &annotated);
        assert_eq!((changes.len(), changes[0].annotation.is_some(), changes[0].run.as_str()), (1, true, "0013"));
        // An annotation whose change is no longer found can still be read and withdrawn.
        let calm = found(&runs(&[(30, 100.0)]), &annotated);
        assert_eq!((calm.len(), calm[0].found, calm[0].medians), (1, false, None));
    }

    #[test]
    fn an_annotation_of_a_fall_does_not_apply_to_a_rise_next_to_it() {
        let all = runs(&[(12, 100.0), (12, 90.0)]);
        let mut annotated = annotated(&found(&all, &[])[0], ChangeStatus::Dismissed);
        annotated.rise = true;
        let changes = found(&all, &[annotated]);
        assert_eq!(changes.iter().filter(|change| change.found && change.annotation.is_none()).count(), 1);
    }

    #[test]
    fn an_experiment_is_one_point_with_the_median_of_its_runs() {
        let mut all = in_threes(&[(3, 100.0)]);
        all[8].version = Some("other".to_owned());
        all.extend(["a", "b"].map(|id| Run { experiment: None, ..run(id, "", 0, 50.0, 9_000) }));
        let points = points(&all, Metric::Rps);
        let shape: Vec<_> = points
            .iter()
            .map(|point| (point.experiment.as_ref().map(ExperimentId::as_str), point.runs.len()))
            .collect();
        assert_eq!(shape, [(Some("e0"), 3), (Some("e1"), 3), (Some("e2"), 2), (Some("e2"), 1), (None, 1), (None, 1)]);
        assert_eq!((points[0].value, points[0].at_ms), (points[0].runs[1].value, 0));
        let spans = spans(&points);
        let first = &spans[0];
        assert_eq!((spans.len(), first.points, first.runs, first.from_ms, first.to_ms), (3, 3, 8, 0, 2_100));
    }

    #[test]
    fn only_the_newest_complete_points_are_searched() {
        let mut all = in_threes(&[(MAX_POINTS + 5, 100.0)]);
        let newest = points(&all, Metric::Rps);
        assert_eq!((newest.len(), newest[0].experiment.as_ref().map(ExperimentId::as_str)), (MAX_POINTS, Some("e5")));
        all.remove(0);
        let complete = without_cut_experiment(all);
        assert_eq!(complete[0].experiment.as_ref().map(ExperimentId::as_str), Some("e1"));
        assert_eq!(without_cut_experiment(complete[..3].to_vec()).len(), 3, "a single experiment is kept");
    }

    #[test]
    fn an_annotation_of_any_run_of_an_experiment_applies_to_its_point() {
        let mut all = in_threes(&[(12, 100.0), (12, 90.0)]);
        let change = found(&all, &[]).remove(0);
        assert_eq!(
            (change.run.as_str(), change.experiment.as_ref().map(ExperimentId::as_str)),
            ("0012-0", Some("e12"))
        );
        // Annotations of earlier versions name a run in the middle of an experiment.
        let mut annotated = annotated(&change, ChangeStatus::Confirmed);
        (annotated.annotation.run, annotated.run_at_ms) = ("0013-1".to_owned().into(), 13_100);
        let is_annotated = |all: &[Run], annotated: &AnnotatedChange| {
            found(all, std::slice::from_ref(annotated))[0].annotation.is_some()
        };
        assert!(is_annotated(&all, &annotated));
        assert_eq!(locate(&points(&all, Metric::Rps), &annotated), Some(13));
        all.retain(|run| run.id.as_str() != "0013-1");
        assert_eq!(locate(&points(&all, Metric::Rps), &annotated), Some(13), "its experiment still exists");
        all.retain(|run| run.experiment.as_ref().map(ExperimentId::as_str) != Some("e13"));
        assert_eq!(locate(&points(&all, Metric::Rps), &annotated), Some(13), "the next one, which was the 14th");
        assert!(is_annotated(&all, &annotated));
        annotated.run_at_ms = -1;
        assert_eq!(locate(&points(&all, Metric::Rps), &annotated), None);
    }

    #[test]
    fn an_episode_is_one_change_if_either_end_was_annotated() {
        let all = runs(&[(12, 100.0), (5, 90.0), (12, 100.0)]);
        let [episode] = found(&all, &[]).try_into().expect("one change");
        let end = episode.returned.clone().expect("a return");
        assert_eq!((episode.at, end.at, end.run.as_str()), (Some(12), 17, "0017"));
        assert!(found(&all, &[annotated(&episode, ChangeStatus::Dismissed)])[0].annotation.is_some());
        let mut annotated = annotated(&episode, ChangeStatus::Dismissed);
        (annotated.annotation.run, annotated.run_at_ms, annotated.rise) = (end.run, end.at_ms, true);
        let changes = found(&all, &[annotated]);
        assert_eq!((changes.len(), changes[0].annotation.is_some()), (1, true));
    }
}
