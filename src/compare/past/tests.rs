//! Tests of comparisons between experiments.

use super::*;
use crate::{
    compare::{
        chosen::Options,
        comparison_context::ComparisonContext,
        stat::Stat,
        statistics::Decision,
        testing::{faster, repeated, run},
        view::Comparison,
    },
    web::series_style::Marks,
};

const DAY: i64 = 86_400_000;

fn runs_of_experiment(experiment: &str, day: i64, target: &str, factor: f64) -> Vec<Run> {
    let within = |run: Run| Run {
        experiment: Some(experiment.to_owned().into()),
        started_at_ms: run.started_at_ms.map(|at| at + day * DAY),
        ..faster(run, factor)
    };
    repeated(|n| within(run(target, n)))
}

/// Nightly experiments, every second one faster by a factor.
fn moving(runs: &[Run], nights: u32, by: f64) -> ComparisonContext {
    let today = runs[0].started_at_ms.expect("an agent's run");
    let past = |night: u32| {
        let level = if night.is_multiple_of(2) { 10_000.0 } else { 10_000.0 * (1.0 + by) };
        [0.99, 1.0, 1.01].map(|factor| PastRun {
            experiment: format!("past-{night}").into(),
            at_ms: Some(today - i64::from(night + 1) * DAY),
            figures: vec![Some(level * factor)],
        })
    };
    let past: Vec<PastRun> = (0..nights).flat_map(past).collect();
    let history = representatives(runs).into_keys().map(|cell| (cell, past.clone())).collect();
    ComparisonContext { history, ..ComparisonContext::default() }
}

fn two_days(factor: f64) -> Vec<Run> {
    [runs_of_experiment("monday", 0, "gosherve", 1.0), runs_of_experiment("tuesday", 1, "servy", factor)].concat()
}

fn compared(runs: Vec<Run>, known: &ComparisonContext) -> Comparison {
    Comparison::by(runs, &Marks::default(), &Options::default(), known)
}

fn throughput(runs: Vec<Run>, known: &ComparisonContext) -> Stat {
    compared(runs, known).rows[0].cells[1].stat(Metric::Rps).clone()
}

/// Several experiments of one night share its conditions: they are as good as one.
#[test]
fn experiments_of_one_night_count_once() {
    let hour = |experiment: &str, day: i64, hour: i64, target: &str, factor: f64| -> Vec<Run> {
        let later = |run: Run| Run { started_at_ms: run.started_at_ms.map(|at| at + hour * 3_600_000), ..run };
        runs_of_experiment(experiment, day, target, factor).into_iter().map(later).collect()
    };
    let side = |day: i64, target: &str, factor: f64| -> Vec<Run> {
        (0..4).flat_map(|at| hour(&format!("{target}-{at}"), day, at, target, factor)).collect()
    };
    let margin = |runs: Vec<Run>| {
        let known = moving(&runs, 9, 0.03);
        throughput(runs, &known).apart.and_then(|apart| apart.margin).expect("a margin")
    };
    let (once, often) = (margin(two_days(1.0)), margin([side(0, "gosherve", 1.0), side(1, "servy", 1.0)].concat()));
    assert!((once / often - 1.0).abs() < 0.2, "{once} {often}");
}

#[test]
fn without_a_past_experiments_of_two_days_are_inconclusive() {
    for known in [ComparisonContext::default(), moving(&two_days(1.04), 1, 0.0)] {
        let stat = throughput(two_days(1.04), &known);
        assert_eq!(
            (stat.decision, stat.effect.and_then(|effect| effect.interval())),
            (Some(Decision::NotInTurn), None)
        );
        assert_eq!(stat.apart.and_then(|apart| apart.because), Some(TooLittlePast::FewExperiments));
        let comparison = compared(two_days(1.04), &known);
        assert!(comparison.answer.line().starts_with("Too little data"));
        let note = comparison.notes.iter().find(|note| note.title.starts_with("Not measured in turn")).expect("a note");
        assert!(note.text.contains("Measure both again in one experiment"), "{}", note.text);
    }
}

#[test]
fn variation_between_experiments_is_no_difference() {
    let runs = two_days(1.04);
    let stat = throughput(runs.clone(), &moving(&runs, 12, 0.05));
    assert_eq!(stat.decision, Some(Decision::NoDifference));
    assert!(stat.hidden().is_some() && stat.apart.is_some_and(|apart| apart.interleaved < stat.detectable), "{stat:?}");
    let calm = throughput(runs.clone(), &moving(&runs, 12, 0.01));
    assert_eq!((calm.decision, calm.hidden()), (Some(Decision::Better), None));
    let (low, high) = calm.effect.and_then(|effect| effect.interval()).expect("an interval");
    assert!(low > 0.0 && low < 0.04 && high > 0.04, "{low} {high}");
}

#[test]
fn variation_between_experiments_cancels_within_one() {
    let runs =
        [runs_of_experiment("monday", 0, "gosherve", 1.0), runs_of_experiment("monday", 0, "servy", 1.04)].concat();
    let stat = throughput(runs.clone(), &moving(&runs, 12, 0.05));
    assert_eq!((stat.decision, stat.apart), (Some(Decision::Better), None));
}

#[test]
fn imports_are_compared_only_within_an_experiment_of_known_order() {
    let imported = |runs: Vec<Run>, interleaved: bool| -> Vec<Run> {
        let import = |run: Run| Run { origin: Origin::Import, started_at_ms: None, interleaved, ..run };
        runs.into_iter().map(import).collect()
    };
    let runs = two_days(1.3);
    let stat = throughput(imported(runs.clone(), true), &moving(&runs, 12, 0.01));
    assert_eq!(stat.apart.and_then(|apart| apart.because), Some(TooLittlePast::UnknownTime));
    let one = [runs_of_experiment("a", 0, "gosherve", 1.0), runs_of_experiment("a", 0, "servy", 1.3)].concat();
    assert_eq!(
        throughput(imported(one.clone(), false), &ComparisonContext::default()).decision,
        Some(Decision::NotInTurn)
    );
    assert_eq!(throughput(imported(one, true), &ComparisonContext::default()).decision, Some(Decision::Better));
}

#[test]
fn compared_experiments_are_not_part_of_the_past() {
    let runs = two_days(1.0);
    let past =
        |experiment: &str| PastRun { experiment: experiment.to_owned().into(), at_ms: None, figures: Vec::new() };
    let history = [("cell".to_owned(), vec![past("sunday"), past("monday")])].into();
    assert_eq!(without_experiments_of(&runs, history)["cell"], [past("sunday")]);
}

#[test]
fn the_page_shows_the_variation_between_experiments() {
    let runs = two_days(1.04);
    let known = moving(&runs, 12, 0.05);
    let comparison = compared(runs, &known);
    let title = "Not measured in turn with the baseline.";
    let note = comparison.notes.iter().find(|note| note.title == title).expect("a note");
    assert!(
        note.text.contains("servy alone moved by up to") && note.text.contains("measured in turn you would see"),
        "{}",
        note.text
    );
    assert!(comparison.answer.headlines[0].details.starts_with("Experiments vary by up to "));
    assert!(comparison.scatters()[0].1.iter().any(|line| line.noise.is_some()));
}

#[test]
fn runs_of_two_machines_share_no_past() {
    let mut runs = runs_of_experiment("monday", 0, "servy", 1.0);
    let known = moving(&runs, 12, 0.05);
    assert!(!noise_of(runs.iter(), &known.history).is_empty());
    runs[0].agent = Some("laptop".to_owned());
    assert!(noise_of(runs.iter(), &known.history).is_empty());
}
