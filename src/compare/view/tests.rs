//! Tests of comparisons.

use super::*;
use crate::{
    compare::{
        statistics::Decision,
        testing::{failed, faster, judged, repeated, run, sized},
    },
    runs::verdict::Verdict,
};

fn two() -> Vec<Run> {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
    runs
}

#[test]
fn winners_are_marked_and_differences_are_relative_to_the_baseline() {
    let comparison = Comparison::new(two(), &Marks::default(), None);
    assert_eq!(comparison.title, "servy against gosherve");
    let [slow, fast] = comparison.rows[0].cells.as_slice() else { panic!("two cells") };
    assert_eq!(slow.stat(Metric::Rps).effect, None);
    let rps = fast.stat(Metric::Rps);
    assert!(rps.best && !slow.stat(Metric::Rps).best);
    assert_eq!((rps.change().text(), rps.decision), ("+25.0\u{a0}%", Some(Decision::Better)));
    assert_eq!(fast.stat(Metric::P99Ms).change().text(), "−20.0\u{a0}%");
    assert_eq!(rps.meaning(), "faster than the baseline (+24.4\u{a0}% to +25.6\u{a0}%)");
    assert!(!fast.stat(Metric::ReceivedPerS).best, "received bytes are not judged");
}

#[test]
fn another_baseline_inverts_the_differences() {
    let comparison = Comparison::new(two(), &Marks::default(), Some("servy"));
    assert_eq!(comparison.title, "gosherve against servy");
    assert_eq!(comparison.rows[0].cells[0].stat(Metric::Rps).change().text(), "−20.0\u{a0}%");
    assert_eq!(Comparison::new(two(), &Marks::default(), Some("nobody")).baseline.as_deref(), Some("gosherve@1.0"));
}

#[test]
fn invalid_and_failed_runs_never_enter_and_never_win() {
    let mut runs = repeated(|n| run("gosherve", n));
    runs.extend(repeated(|n| judged(faster(run("down", n), 50.0), Verdict::Invalid, "all requests failed")));
    runs.push(failed(run("gosherve", 4), "the target died"));
    let comparison = Comparison::new(runs, &Marks::default(), Some("gosherve"));
    let [down, good] = comparison.rows[0].cells.as_slice() else { panic!("two cells") };
    assert_eq!((down.counts.invalid, down.stat(Metric::Rps).spread.clone()), (6, None));
    assert_eq!((good.counts.valid, good.counts.failed), (6, 1));
    assert!(comparison.rows[0].cells.iter().flat_map(|cell| &cell.stats).all(|stat| !stat.best));
    let why: Vec<_> = comparison.excluded.iter().map(|excluded| excluded.reason.as_str()).collect();
    assert_eq!(why, [vec!["all requests failed"; 6], vec!["the target died"]].concat());
}

#[test]
fn one_repetition_shows_figures_and_decides_nothing() {
    let comparison = Comparison::new(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)], &Marks::default(), None);
    let servy = comparison.rows[0].cells[1].stat(Metric::Rps);
    assert_eq!((servy.figure().text(), servy.decision, servy.best), ("20,000", Some(Decision::TooFew), false));
}

#[test]
fn several_sizes_make_a_matrix_with_gaps() {
    let mut runs = repeated(|n| sized("gosherve", n, 1.0));
    runs.extend(repeated(|n| sized("gosherve", n, 4.0)));
    runs.extend(repeated(|n| faster(sized("servy", n, 4.0), 1.2)));
    let comparison = Comparison::new(runs, &Marks::default(), None);
    let matrices = comparison.matrices();
    assert_eq!(matrices.len(), 2);
    let [small, full] = matrices[0].lines.as_slice() else { panic!("two sizes") };
    assert_eq!((small.label.as_str(), small.best.as_str()), ("1 vCPU / 2 GiB", "alone"));
    assert!(small.stats[0].is_some() && small.stats[1].is_none());
    assert!(full.stats[1].as_ref().is_some_and(|stat| stat.best));
    assert_eq!(full.best, "servy");
}

#[test]
fn the_list_of_repetitions_is_limited() {
    let mut runs: Vec<Run> = (1..=400).map(|n| sized("gosherve", n, 1.0)).collect();
    runs.extend((1..=400).map(|n| failed(sized("servy", n, 4.0), "no")));
    runs.push(sized("servy", 1, 16.0));
    let comparison = Comparison::new(runs, &Marks::default(), None);
    let counts: Vec<usize> = comparison.repetitions().iter().map(|(_, runs)| runs.len()).collect();
    assert_eq!((counts, comparison.unlisted(comparison.run_count())), (vec![400, 100], 301));
    assert_eq!((comparison.listed_excluded().len(), comparison.unlisted(400)), (400, 0));
}

#[test]
fn json_keeps_everything_but_the_charts() {
    let comparison = Comparison::new(vec![run("gosherve", 1), faster(run("servy", 1), 2.0)], &Marks::default(), None);
    let text = serde_json::to_string(&comparison).expect("it serialises");
    let back: Comparison = serde_json::from_str(&text).expect("it deserialises");
    assert!(!comparison.charts.is_empty());
    let address = Address::default();
    assert_eq!(back, Comparison { charts: Vec::new(), differences: None, address, ..comparison });
}

#[test]
fn metrics_are_in_declaration_order() {
    for (place, metric) in crate::metrics::compared().enumerate() {
        assert_eq!(metric as usize, place);
    }
}

#[test]
fn two_runs_that_do_not_meet_in_a_setting_are_shown_side_by_side() {
    let picked = |runs: Vec<Run>| {
        let options = Options { by: By::default().of_picked(&runs), ..Options::default() };
        Comparison::by(runs, &Marks::default(), &options, &ComparisonContext::default())
    };
    let sizes = picked(vec![sized("servy", 1, 1.0), sized("servy", 1, 4.0)]);
    let labels: Vec<_> = sizes.subjects.iter().map(|subject| subject.label.as_str()).collect();
    assert_eq!((labels, sizes.rows.len()), (vec!["1 vCPU / 2 GiB", "4 vCPU / 8 GiB"], 1));
    assert_eq!(sizes.answer.line(), "One run each: no verdict");
    let again = picked(vec![run("servy", 1), faster(run("servy", 2), 1.2)]);
    assert_eq!((again.subjects.len(), again.subjects[1].label.as_str()), (2, "servy repetition 2"));
    assert!(again.rows[0].cells.iter().flat_map(|cell| &cell.stats).all(|stat| !stat.best));
    let same = picked(vec![run("servy", 1), Run { id: "another-abcdef".to_owned().into(), ..run("servy", 1) }]);
    assert!(same.subjects.iter().any(|subject| subject.label == "servy …abcdef"), "{:?}", same.subjects);
    let other = picked(vec![sized("servy", 1, 1.0), sized("gosherve", 1, 4.0)]);
    assert_eq!((other.by, other.rows.len(), other.subjects.len()), (By::Run, 1, 2));
}
