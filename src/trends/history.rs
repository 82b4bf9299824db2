//! A cell's runs as a history: points, spans of one version, changes and what was said of them. Pure.

use std::cmp::Reverse;

use super::{
    Change, Judgement, Point, Span,
    queries::Judged,
    statistics::{self, Shift},
};
use crate::{
    compare::{
        metric::Metric,
        statistics::{Better, spread},
    },
    runs::{Run, Verdict},
};

/// By so many runs the place of a change may move as more history comes and still be the one that was judged.
const SAME: usize = 3;

/// The figures of runs that count, by the time of their beginning. An invalid run has no place among them.
pub fn points(runs: &[Run], metric: Metric) -> Vec<Point> {
    let point = |run: &Run| {
        Some(Point {
            run: run.id.clone(),
            at_ms: run.started_at_ms.unwrap_or(run.queued_at_ms),
            version: run.version.clone(),
            value: metric.of(run).filter(|value| value.is_finite())?,
            verdict: run.verdict?,
        })
    };
    let mut points: Vec<Point> = runs.iter().filter(|run| run.counts()).filter_map(point).collect();
    points.sort_by(|a, b| place(a).cmp(&place(b)));
    points
}

/// Where a run stands in a history; what is queued together came in the order of ids.
fn place(point: &Point) -> (i64, &str) {
    (point.at_ms, &point.run)
}

/// Runs of one version one after another.
pub fn spans(points: &[Point]) -> Vec<Span> {
    let mut first = 0;
    points
        .chunk_by(|one, next| one.version == next.version)
        .filter_map(|chunk| {
            let start = first;
            first += chunk.len();
            let spread = spread(chunk.iter().map(|point| point.value))?;
            Some(Span {
                version: chunk.first()?.version.clone(),
                first: start,
                runs: chunk.len(),
                suspect: chunk.iter().filter(|point| point.verdict == Verdict::Suspect).count(),
                median: spread.median,
                low: spread.low,
                high: spread.high,
                from_ms: chunk.first()?.at_ms,
                to_ms: chunk.last()?.at_ms,
            })
        })
        .collect()
}

/// The changes that are found, each with what was said of it, and those that were judged and are found no more.
///
/// What is found does not depend on what was said: so no judgement can make another change come or go.
pub fn changes(points: &[Point], metric: Metric, judged: &[Judged]) -> Vec<Change> {
    let values: Vec<f64> = points.iter().map(|point| point.value).collect();
    let shifts = statistics::changes(&values);
    let said = matched(points, &shifts, judged);
    let found = shifts.iter().zip(&said).map(|(shift, said)| {
        let point = &points[shift.at];
        Change {
            run: point.run.clone(),
            at: Some(shift.at),
            at_ms: point.at_ms,
            version: point.version.clone(),
            version_before: points[shift.at - 1].version.clone(),
            medians: Some([shift.before, shift.after]),
            ratio: shift.ratio(),
            improved: improved(metric, shift.after > shift.before),
            found: true,
            judgement: said.map(|judged| judged.judgement.clone()),
        }
    });
    let mut all: Vec<Change> = found.collect();
    for judged in
        judged.iter().filter(|judged| !said.iter().flatten().any(|other| other.judgement.run == judged.judgement.run))
    {
        let at = standing(points, judged);
        let version = |place: Option<usize>| points.get(place?)?.version.clone();
        all.push(Change {
            run: judged.judgement.run.clone(),
            at,
            at_ms: judged.run_at_ms,
            version: version(at),
            version_before: version(at.and_then(|at| at.checked_sub(1))),
            medians: None,
            ratio: judged.ratio,
            improved: improved(metric, judged.rise),
            found: false,
            judgement: Some(judged.judgement.clone()),
        });
    }
    all.sort_by(|a, b| (a.at_ms, &a.run).cmp(&(b.at_ms, &b.run)));
    all
}

fn improved(metric: Metric, rise: bool) -> Option<bool> {
    metric.better().map(|better| (better == Better::Higher) == rise)
}

/// For each change the judgement on it: one of the same direction whose first run stands at most [`SAME`] runs away, the
/// nearest first; each judgement is of one change.
fn matched<'a>(points: &[Point], shifts: &[Shift], judged: &'a [Judged]) -> Vec<Option<&'a Judged>> {
    let mut pairs: Vec<(usize, usize, usize)> = Vec::new();
    for (number, judged) in judged.iter().enumerate() {
        let Some(at) = standing(points, judged) else { continue };
        for (place, shift) in shifts.iter().enumerate() {
            let away = shift.at.abs_diff(at);
            if away <= SAME && (shift.after > shift.before) == judged.rise {
                pairs.push((away, place, number));
            }
        }
    }
    // Of two that are as near the newer judgement holds.
    pairs.sort_by_key(|(away, place, number)| (*away, *place, Reverse(judged[*number].judgement.at_ms)));
    let (mut said, mut taken) = (vec![None; shifts.len()], vec![false; judged.len()]);
    for (_, place, number) in pairs {
        if said[place].is_none() && !taken[number] {
            (said[place], taken[number]) = (Some(&judged[number]), true);
        }
    }
    said
}

/// The place of the run that a judgement names, or of the next one where it was deleted; none for one that is older than
/// all that are looked at.
fn standing(points: &[Point], judged: &Judged) -> Option<usize> {
    let run = judged.judgement.run.as_str();
    let key = (judged.run_at_ms, run);
    let at = points.partition_point(|point| place(point) < key);
    let is_there = points.get(at).is_some_and(|point| point.run == run);
    (is_there || at > 0 && at < points.len()).then_some(at)
}

impl Judged {
    /// What somebody says of a change.
    pub fn of(change: &Change, judgement: Judgement) -> Self {
        Self { run_at_ms: change.at_ms, rise: change.ratio > 1.0, ratio: change.ratio, judgement }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        runs::made_up::{finished, judged as verdict},
        trends::Ruling,
    };

    /// Runs at levels, with a fixed wobble, a version a level.
    fn runs(levels: &[(usize, f64)]) -> Vec<Run> {
        let mut runs = Vec::new();
        for (version, (count, level)) in levels.iter().enumerate() {
            for _ in 0..*count {
                let place = runs.len();
                let wobble = 1.0 + 0.004 * ((place * 7919 % 13) as f64 - 6.0) / 6.0;
                runs.push(Run {
                    id: format!("{place:04}"),
                    rps: Some(level * wobble),
                    version: Some(format!("{version}")),
                    queued_at_ms: i64::try_from(place).expect("few") * 1_000,
                    started_at_ms: None,
                    ..finished("servy", 1)
                });
            }
        }
        runs
    }

    fn of(runs: &[Run], judged: &[Judged]) -> Vec<Change> {
        changes(&points(runs, Metric::Rps), Metric::Rps, judged)
    }

    fn said(change: &Change, ruling: Ruling) -> Judged {
        Judged::of(change, Judgement { run: change.run.clone(), ruling, note: None, by: "ada".to_owned(), at_ms: 1 })
    }

    #[test]
    fn what_is_invalid_never_enters_and_what_is_suspect_is_marked() {
        let mut all = runs(&[(6, 100.0)]);
        all[2] = verdict(all[2].clone(), Verdict::Invalid, "all failed");
        all[3] = verdict(all[3].clone(), Verdict::Suspect, "shared cores");
        let points = points(&all, Metric::Rps);
        assert_eq!((points.len(), points[2].verdict), (5, Verdict::Suspect));
        assert_eq!(spans(&points)[0].suspect, 1);
    }

    #[test]
    fn versions_that_follow_each_other_are_spans() {
        let spans = spans(&points(&runs(&[(4, 100.0), (5, 90.0)]), Metric::Rps));
        let [one, other] = spans.as_slice() else { panic!("two") };
        assert_eq!((one.first, one.runs, other.first, other.runs), (0, 4, 4, 5));
        assert!(one.median > 99.0 && other.median < 91.0);
    }

    #[test]
    fn a_change_knows_its_versions_and_whether_it_is_for_the_better() {
        let all = runs(&[(12, 100.0), (12, 90.0), (12, 99.0)]);
        let [worse, better] = of(&all, &[]).try_into().expect("two changes");
        assert_eq!(
            (worse.run.as_str(), worse.version_before.as_deref(), worse.version.as_deref()),
            ("0012", Some("0"), Some("1"))
        );
        assert_eq!((worse.improved, better.improved), (Some(false), Some(true)));
        let latency = changes(&points(&all, Metric::Rps), Metric::P99Ms, &[]);
        assert_eq!(latency[0].improved, Some(true), "less latency is better");
    }

    #[test]
    fn a_judgement_stays_with_its_change_as_more_history_comes() {
        let whole = [(12, 100.0), (12, 90.0), (30, 99.0)];
        let first = of(&runs(&[(12, 100.0), (4, 90.0)]), &[]);
        for ruling in [Ruling::Confirmed, Ruling::Dismissed] {
            let judged = [said(&first[0], ruling)];
            for more in 4..40 {
                let all = runs(&whole)[..12 + more].to_vec();
                let changes = of(&all, &judged);
                assert_eq!(
                    changes[0].judgement.as_ref().map(|judgement| judgement.ruling),
                    Some(ruling),
                    "{more} more"
                );
                let open = changes.iter().filter(|change| change.judgement.is_none()).count();
                assert!(open <= 1 && changes.len() <= 2, "{more} more: {changes:?}");
                assert_eq!(changes.iter().filter(|change| change.found && change.judgement.is_some()).count(), 1);
            }
        }
    }

    #[test]
    fn what_is_said_of_one_change_makes_no_other_come_or_go() {
        let all = runs(&[(12, 100.0), (12, 90.0), (12, 99.0), (12, 80.0)]);
        let before = of(&all, &[]);
        assert_eq!(before.len(), 3);
        for place in 0..3 {
            for ruling in [Ruling::Confirmed, Ruling::Dismissed] {
                let after = of(&all, &[said(&before[place], ruling)]);
                let runs = |changes: &[Change]| changes.iter().map(|change| change.run.clone()).collect::<Vec<_>>();
                assert_eq!(runs(&after), runs(&before));
                assert_eq!(after.iter().filter(|change| change.judgement.is_some()).count(), 1);
            }
        }
    }

    #[test]
    fn a_judgement_outlives_the_run_that_it_names() {
        let mut all = runs(&[(12, 100.0), (12, 90.0)]);
        let judged = [said(&of(&all, &[])[0], Ruling::Dismissed)];
        all.remove(12);
        let changes = of(&all, &judged);
        assert_eq!((changes.len(), changes[0].judgement.is_some(), changes[0].run.as_str()), (1, true, "0013"));
        // Once nothing is found any more it is still there, to be looked up or taken back.
        let calm = of(&runs(&[(30, 100.0)]), &judged);
        assert_eq!((calm.len(), calm[0].found, calm[0].medians), (1, false, None));
    }

    #[test]
    fn a_judgement_on_a_fall_says_nothing_of_a_rise_beside_it() {
        let all = runs(&[(12, 100.0), (12, 90.0)]);
        let mut judged = said(&of(&all, &[])[0], Ruling::Dismissed);
        judged.rise = true;
        let changes = of(&all, &[judged]);
        assert_eq!(changes.iter().filter(|change| change.found && change.judgement.is_none()).count(), 1);
    }
}
