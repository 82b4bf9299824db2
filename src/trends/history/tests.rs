//! Tests of points, spans, changes and annotations.

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
fn a_change_is_new_until_later_points_support_it() {
    let all = runs(&[(12, 100.0), (12, 90.0)]);
    let support = |count: usize| found(&all[..count], &[]).first().map(|change| change.support);
    let first = (12..24).find(|count| support(*count).is_some()).expect("a change");
    let [new, next, later] = [0, 1, 2].map(|more| support(first + more));
    assert_eq!((new, next, later), (Some(Support::New), Some(Support::New), Some(Support::LaterPoints)));
    let change = found(&all[..first], &[]).remove(0);
    assert!(change.is_new() && !change.is_open() && !change.is_lost());
    let confirmed = found(&all[..first], &[annotated(&change, ChangeStatus::Confirmed)]).remove(0);
    assert!(!confirmed.is_new() && !confirmed.is_open(), "a user has confirmed it");
}

#[test]
fn both_versions_in_the_same_blocks_support_a_new_change() {
    let old = runs(&[(12, 100.0)]);
    let both = |version: usize, level: f64| {
        (1..=5_u32).map(move |block| {
            let id = format!("both-{version}-{block}");
            let at = 12_000 + 10 * usize::try_from(block).expect("few") + version;
            let value = level * (1.0 + 0.001 * f64::from(block));
            Run { repetition: block, interleaved: true, ..run(&id, "both", version, value, at) }
        })
    };
    let after = |number: usize| run(&format!("after-{number}"), &format!("a{number}"), 1, 90.2, 13_000 + number);
    let all = |other: f64| -> Vec<Run> {
        let measured = both(0, 100.0).chain(both(1, other));
        old.iter().cloned().chain(measured).chain([after(1), after(2)]).collect()
    };
    assert_eq!(found(&all(90.0), &[]).remove(0).support, Support::SameBlocks);
    let apart = all(90.0).into_iter().map(|run| Run { interleaved: false, ..run }).collect::<Vec<_>>();
    assert_eq!(found(&apart, &[]).remove(0).support, Support::New);
}

#[test]
fn a_change_that_later_points_do_not_show_is_lost_and_not_listed_twice() {
    let all = runs(&[(24, 100.0), (3, 97.0), (12, 100.0)]);
    let change = found(&all[..29], &[]).remove(0);
    let lost = found(&all[..30], &[]);
    assert!(lost.len() == 1 && lost[0].is_lost() && !lost[0].found && lost[0].run == change.run, "{lost:?}");
    let annotated = found(&all[..30], &[annotated(&change, ChangeStatus::Confirmed)]);
    assert!(annotated.len() == 1 && !annotated[0].is_lost() && !annotated[0].found, "{annotated:?}");
    assert!(found(&all[..32], &[]).is_empty());
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
            assert_eq!(changes[0].annotation.as_ref().map(|annotation| annotation.status), Some(status), "{more} more");
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
    let shape: Vec<_> =
        points.iter().map(|point| (point.experiment.as_ref().map(ExperimentId::as_str), point.runs.len())).collect();
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
    assert_eq!((change.run.as_str(), change.experiment.as_ref().map(ExperimentId::as_str)), ("0012-0", Some("e12")));
    // Annotations of earlier versions name a run in the middle of an experiment.
    let mut annotated = annotated(&change, ChangeStatus::Confirmed);
    (annotated.annotation.run, annotated.run_at_ms) = ("0013-1".to_owned().into(), 13_100);
    let is_annotated =
        |all: &[Run], annotated: &AnnotatedChange| found(all, std::slice::from_ref(annotated))[0].annotation.is_some();
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
