//! Tests of equal work and of comparisons with different work.

use super::*;
use crate::{
    compare::{
        chosen::Options,
        comparison_context::ComparisonContext,
        metric::Metric,
        statistics::{Decision, Leader},
        testing::{faster, figured, repeated, run},
        view::Comparison,
    },
    metrics::work::RunWork,
    results::environment::facts::RunEnvironment,
    web::series_style::Marks,
};

#[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
fn counts(all: &[(&str, u64)]) -> Option<BTreeMap<String, u64>> {
    Some(all.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect())
}

/// 10,000 requests of 1,200 bytes each from 10 virtual users.
fn with_work(run: Run) -> Run {
    let work = RunWork {
        requests_per_iteration: Some(1.0),
        bytes_per_request: Some(1_200.0),
        statuses: counts(&[("200", 10_000)]),
        protocols: counts(&[("HTTP/1.1", 10_000)]),
        ..RunWork::default()
    };
    let work = work.with_connections(Some(10), Some(10), Some(10_000));
    figured(run, |figures| {
        figures.requests = Some(10_000);
        (figures.work, figures.checks_passed, figures.checks_failed) = (work, Some(10_000), Some(0));
    })
}

fn side(change: impl Fn(&mut Run)) -> Vec<Run> {
    (1..=5)
        .map(|n| with_work(run("servy", n)))
        .map(|mut run| {
            change(&mut run);
            run
        })
        .collect()
}

fn connected(run: &mut Run, least: u64, most: u64) {
    run.figures.work = run.figures.work.clone().with_connections(Some(least), Some(most), run.figures.requests);
}

fn differences(one: &[Run], other: &[Run]) -> Vec<String> {
    let (one, other): (Vec<&Run>, Vec<&Run>) = (one.iter().collect(), other.iter().collect());
    let sides = [NamedRuns { name: "servy", runs: &one[..] }, NamedRuns { name: "gosherve", runs: &other }];
    let all = between(sides, &ComparisonContext::default());
    all.into_iter().map(|difference| difference.text.replace('\u{a0}', " ")).collect()
}

#[test]
fn equal_work_is_equal() {
    assert_eq!(differences(&side(|_| {}), &side(|_| {})), Vec::<String>::new());
}

#[test]
fn every_difference_is_named_with_both_values() {
    let plain = side(|_| {});
    for (other, expected) in [
        (
            side(|run| run.figures.work.requests_per_iteration = Some(2.0)),
            "Requests per iteration differ: servy 1.00, gosherve 2.00",
        ),
        (
            side(|run| run.figures.work.bytes_per_request = Some(12.0)),
            "Response bytes per request differ: servy 1,200 B, gosherve 12.00 B",
        ),
        (
            side(|run| run.figures.work.statuses = counts(&[("304", 10_000)])),
            "Statuses differ: servy 200, gosherve 304",
        ),
        (side(|run| run.figures.checks_failed = Some(5_000)), "Checks passed differ: servy 100 %, gosherve 66.7 %"),
        (
            side(|run| connected(run, 10_000, 10_000)),
            "New connections differ: servy for 0 % of the requests, gosherve for 99.9 % of the requests",
        ),
        (
            side(|run| run.figures.work.protocols = counts(&[("HTTP/2.0", 9)])),
            "Protocols differ: servy HTTP/1.1, gosherve HTTP/2.0",
        ),
    ] {
        assert_eq!(differences(&plain, &other), [expected]);
    }
}

#[test]
fn differences_up_to_the_tolerance_are_equal() {
    let plain = side(|_| {});
    let requests = |value| side(move |run| run.figures.work.requests_per_iteration = Some(value));
    assert_eq!((differences(&plain, &requests(1.0099)).len(), differences(&plain, &requests(1.0102)).len()), (0, 1));
    let bytes = |value| side(move |run| run.figures.work.bytes_per_request = Some(value));
    assert_eq!((differences(&plain, &bytes(1_177.0)).len(), differences(&plain, &bytes(1_175.0)).len()), (0, 1));
    let moved = |count| side(move |run| run.figures.work.statuses = counts(&[("200", 10_000 - count), ("302", count)]));
    assert_eq!((differences(&plain, &moved(99)).len(), differences(&plain, &moved(101)).len()), (0, 1));
}

#[test]
fn the_scatter_of_the_repetitions_is_tolerated_and_an_outlier_is_not() {
    let bytes = |run: &mut Run, factors: [f64; 5]| {
        run.figures.work.bytes_per_request = Some(1_200.0 * factors[run.repetition as usize - 1]);
    };
    let scattered = side(|run| bytes(run, [0.9, 0.95, 1.0, 1.05, 1.1]));
    let near = side(|run| run.figures.work.bytes_per_request = Some(1_300.0));
    assert_eq!(differences(&scattered, &near), Vec::<String>::new());
    let one_wrong = side(|run| bytes(run, [1.0, 1.0, 1.0, 1.0, 0.1]));
    assert_eq!(differences(&one_wrong, &near).len(), 1);
}

#[test]
fn the_first_connection_of_each_user_is_no_difference() {
    let short = side(|run| run.figures.requests = Some(40));
    assert_eq!(differences(&side(|_| {}), &short), Vec::<String>::new());
}

#[test]
fn bounds_of_a_summary_differ_only_if_they_do_not_overlap() {
    let few = side(|run| connected(run, 1, 500));
    assert_eq!(differences(&side(|_| {}), &few), Vec::<String>::new());
    let all = differences(&few, &side(|run| connected(run, 10_000, 10_000)));
    assert_eq!(
        all,
        ["New connections differ: servy for 0 % to 4.90 % of the requests, gosherve for 99.9 % of the requests"]
    );
}

#[test]
fn facts_unknown_on_one_side_are_not_compared() {
    let unknown = side(|run| run.figures.work = RunWork::default());
    assert_eq!(
        differences(&side(|run| run.figures.work.requests_per_iteration = Some(7.0)), &unknown),
        Vec::<String>::new()
    );
}

fn compared(accepted: Vec<AcceptedDifference>, allow_confounders: bool) -> Comparison {
    let mut runs: Vec<Run> = repeated(|n| with_work(run("gosherve", n)));
    runs.extend(repeated(|n| {
        let mut run = with_work(faster(run("servy", n), 1.25));
        run.figures.work.bytes_per_request = Some(12.0);
        run
    }));
    let known = ComparisonContext { accepted, ..ComparisonContext::default() };
    let options = Options { allow_confounders, ..Options::default() };
    Comparison::by(runs, &Marks::default(), &options, &known)
}

fn accepted(fact: WorkFact) -> AcceptedDifference {
    AcceptedDifference {
        id: 7,
        targets: ["gosherve".to_owned(), "servy".to_owned()],
        scenario: None,
        facts: [fact].into(),
        note: "other headers".to_owned(),
        accepted_by: "ada".to_owned(),
        accepted_at_ms: 0,
    }
}

#[test]
fn different_work_has_no_winner_until_that_difference_is_accepted() {
    for allow_confounders in [false, true] {
        let comparison = compared(Vec::new(), allow_confounders);
        let row = &comparison.rows[0];
        assert_eq!((row.leader(Metric::Rps), row.cells[1].stat(Metric::Rps).best), (Leader::NotComparable, false));
        assert_eq!(row.cells[1].stat(Metric::Rps).decision, Some(Decision::NotComparable));
        assert!(comparison.with_confounders.is_none(), "there is nothing to override");
        let note = comparison.notes.iter().find(|note| note.title == "Different work.").expect("a note");
        assert!(
            note.text.contains("Response bytes per request: gosherve 1,200\u{a0}B, servy 12.00\u{a0}B."),
            "{}",
            note.text
        );
    }
    let other = compared(vec![accepted(WorkFact::Statuses)], false);
    assert_eq!(other.rows[0].leader(Metric::Rps), Leader::NotComparable);
    let judged = compared(vec![accepted(WorkFact::Bytes)], false);
    assert_eq!(judged.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
    let note = judged.notes.iter().find(|note| note.title == "Different work, accepted.").expect("a note");
    assert!(note.text.contains("ada: other headers"), "{}", note.text);
}

/// Two targets that answer the same body with heads of their own sizes, and one with another body.
fn with_heads(heads: &[(&str, f64, Option<u64>)]) -> Comparison {
    let mut known = ComparisonContext::default();
    let mut runs = Vec::new();
    for (place, (target, bytes, head)) in heads.iter().enumerate() {
        let own = repeated(|n| {
            let mut run = with_work(faster(run(target, n), 1.0 + 0.2 * place as f64));
            run.figures.work.bytes_per_request = Some(*bytes);
            run
        });
        for run in &own {
            let mut environment = RunEnvironment::new(run, None);
            environment.conditions.response_head_bytes = *head;
            known.environments.insert(run.id.clone(), environment);
        }
        runs.extend(own);
    }
    Comparison::by(runs, &Marks::default(), &Options::default(), &known)
}

#[test]
fn bodies_decide_and_headers_are_a_note() {
    let facts = |comparison: &Comparison| {
        let work = comparison.rows[0].work.iter();
        work.map(|one| (one.fact, one.targets.clone())).collect::<Vec<_>>()
    };
    let title = |comparison: &Comparison| {
        comparison.notes.iter().find(|note| note.title == "Response headers differ.").map(|note| note.text.clone())
    };
    let equal = with_heads(&[("go-own", 192.0, Some(117)), ("rust-axum", 183.0, Some(108))]);
    assert_eq!(facts(&equal), []);
    assert_eq!(equal.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
    let expected = "go-own 117\u{a0}B and rust-axum 108\u{a0}B per response. Without them the responses are equal, so \
                    these targets are compared.";
    assert_eq!(title(&equal).as_deref(), Some(expected));
    // An empty body with the longer head, and a head that nobody counted.
    let empty = with_heads(&[("full", 183.0, Some(108)), ("hollow", 117.0, Some(117))]);
    assert_eq!((facts(&empty).len(), title(&empty)), (1, None));
    let unknown = with_heads(&[("go-own", 192.0, Some(117)), ("rust-axum", 183.0, None)]);
    assert_eq!((facts(&unknown).len(), title(&unknown)), (1, None));
    // Of four targets, one differs, and it is the first by name: the other pairs are compared.
    let four = with_heads(&[
        ("a-hollow", 117.0, Some(117)),
        ("go-nethttp", 232.0, Some(157)),
        ("go-own", 192.0, Some(117)),
        ("rust-hyper", 232.0, Some(157)),
    ]);
    let pairs = facts(&four);
    assert!(pairs.len() == 3 && pairs.iter().all(|(_, targets)| targets[0] == "a-hollow"), "{pairs:?}");
    assert_eq!(four.rows[0].leader(Metric::Rps), Leader::Of(3));
}

#[test]
fn a_target_with_other_work_does_not_keep_the_others_from_being_compared() {
    let mut runs = repeated(|n| with_work(run("a", n)));
    runs.extend(repeated(|n| with_work(faster(run("b", n), 1.2))));
    runs.extend(repeated(|n| {
        let mut run = with_work(faster(run("c", n), 3.0));
        run.figures.work.bytes_per_request = Some(12.0);
        run
    }));
    let of = |baseline: Option<&str>| Comparison::new(runs.clone(), &Marks::default(), baseline);
    for baseline in [None, Some("a"), Some("b")] {
        let comparison = of(baseline);
        let row = &comparison.rows[0];
        assert_eq!(row.leader(Metric::Rps), Leader::Of(1), "with the baseline {baseline:?}");
        assert_eq!(row.cells[2].stat(Metric::Rps).decision, Some(Decision::NotComparable));
        assert_eq!(row.cells[2].stat(Metric::Rps).change().text(), "–", "no difference to quote");
        let sentence = comparison.answer.line();
        assert!(sentence.starts_with('b') && sentence.contains("20.0\u{a0}% faster than a"), "{sentence}");
    }
    let other = of(Some("c"));
    assert_eq!(other.rows[0].leader(Metric::Rps), Leader::NotComparable, "nothing compares with the chosen baseline");
    let note = of(None).notes.into_iter().find(|note| note.title == "Different work.").expect("a note");
    let once = "Response bytes per request: a and b 1,200\u{a0}B, c 12.00\u{a0}B. ";
    assert!(note.text.starts_with(once), "{}", note.text);
}

#[test]
fn requests_that_are_not_read_are_different_work_and_headers_are_not() {
    let sent = |bytes: f64| side(move |run| run.figures.work.sent_bytes_per_request = Some(bytes));
    let unread = differences(&sent(4_194_500.0), &sent(4_000_000.0));
    assert_eq!(unread, ["Request bytes per request differ: servy 4,194,000 B, gosherve 4,000,000 B"]);
    assert_eq!(differences(&sent(90.0), &sent(160.0)), Vec::<String>::new(), "a cookie, or a longer name");
    assert_eq!(differences(&sent(4_194_500.0), &sent(4_150_000.0)), Vec::<String>::new());
    assert_eq!(differences(&sent(4_194_500.0), &side(|_| {})), Vec::<String>::new(), "unknown on one side");
}
