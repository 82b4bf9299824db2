//! Tests of what comparisons are fed: metrics that some runs lack, sides that never met, zeros and rounded values.

use super::*;
use crate::{
    compare::{
        chosen::Options,
        comparison_context::ComparisonContext,
        selection::By,
        stat::Stat,
        statistics::{Decision, Leader},
        testing::{faster, figured, run},
        trust::TrustLevel,
        view::Comparison,
    },
    web::series_style::Marks,
};

/// A run with a little noise of its own.
fn noisy(target: &str, repetition: u32, factor: f64) -> Run {
    let noise = f64::from((repetition * 7 + u32::from(target.as_bytes()[0])) % 11) / 1_000.0;
    faster(run(target, repetition), factor * (1.0 + noise))
}

fn compared(runs: Vec<Run>, by: By) -> Comparison {
    let options = Options { by, ..Options::default() };
    Comparison::by(runs, &Marks::default(), &options, &ComparisonContext::default())
}

fn stat(comparison: &Comparison, metric: Metric) -> &Stat {
    comparison.rows[0].cells[1].stat(metric)
}

fn decision(comparison: &Comparison, metric: Metric) -> Option<Decision> {
    stat(comparison, metric).decision
}

/// Without enough requests for a p99.
fn short(run: Run) -> Run {
    figured(run, |figures| figures.requests = Some(900))
}

#[test]
fn metrics_that_are_known_in_different_blocks_are_compared_each_in_its_own() {
    let with_p99_in = |target: &str, blocks: &[u32], repetitions: u32| -> Vec<Run> {
        let of = |n: u32| if blocks.contains(&n) { noisy(target, n, 1.0) } else { short(noisy(target, n, 1.0)) };
        (1..=repetitions).map(of).collect()
    };
    let few = compared([with_p99_in("a", &[1], 2), with_p99_in("b", &[2], 2)].concat(), By::Target);
    assert_eq!(decision(&few, Metric::P99Ms), Some(Decision::NotInTurn));
    let mut runs = [with_p99_in("a", &[1, 2, 3, 4], 8), with_p99_in("b", &[5, 6, 7, 8], 8)].concat();
    for run in &mut runs {
        run.figures.rps = Some(500.0);
        if run.spec.target == "b" {
            run.figures.cpu_ms_per_request = run.figures.cpu_ms_per_request.map(|cpu| cpu * 3.0);
        }
    }
    let comparison = compared(runs, By::Target);
    assert_eq!(decision(&comparison, Metric::CpuMs), Some(Decision::Worse), "threefold in 8 of 8 runs");
    assert_eq!(decision(&comparison, Metric::Rps), Some(Decision::NoDifference));
    assert_eq!(decision(&comparison, Metric::P99Ms), Some(Decision::NotInTurn));
}

/// Equal programs on a machine that changes from one time to the other.
#[test]
fn runs_that_share_no_block_are_not_measured_in_turn() {
    let of = |target: &str, blocks: std::ops::RangeInclusive<u32>, level: f64| -> Vec<Run> {
        blocks.map(|n| noisy(target, n, level)).collect()
    };
    let undecided = |runs: Vec<Run>, by: By| {
        let comparison = compared(runs, by);
        assert_eq!(decision(&comparison, Metric::Rps), Some(Decision::NotInTurn), "{:?}", comparison.answer);
        assert_ne!(comparison.answer.trust.level, TrustLevel::Reliable, "{:?}", comparison.answer.trust);
    };
    undecided([of("a", 1..=6, 1.0), of("b", 7..=12, 0.9)].concat(), By::Target);
    let version = |run: Run, version: &str| Run { version: Some(version.to_owned()), ..run };
    let added = |run: Run| Run { started_at_ms: run.started_at_ms.map(|at| at + 86_400_000), ..version(run, "2") };
    let old = of("a", 1..=5, 1.0).into_iter().map(|run| version(run, "1"));
    undecided(old.chain(of("a", 6..=10, 0.97).into_iter().map(added)).collect(), By::Target);
    let labelled = |run: Run| Run {
        labels: vec![if run.repetition <= 6 { "before" } else { "after" }.to_owned()],
        figures: faster(run.clone(), 1.0 - 0.01 * f64::from(run.repetition)).figures,
        ..run
    };
    undecided(of("a", 1..=12, 1.0).into_iter().map(labelled).collect(), By::Label);
}

#[test]
fn machines_that_take_blocks_in_turn_are_compared() {
    let on = |n: u32| {
        let (agent, factor) = if n.is_multiple_of(2) { ("rack", 1.2) } else { ("desk", 1.0) };
        Run { agent: Some(agent.to_owned()), ..noisy("a", n, factor) }
    };
    let comparison = compared((1..=12).map(on).collect(), By::Agent);
    assert_eq!(decision(&comparison, Metric::Rps), Some(Decision::Better), "{:?}", comparison.answer);
}

fn with_p50(target: &str, p50_ms: f64, half_width: f64) -> Vec<Run> {
    let of = |n: u32| {
        figured(noisy(target, n, 1.0), |figures| {
            figures.p50_ms = Some(p50_ms);
            figures.resolution.extend((half_width > 0.0).then_some((Metric::P50Ms, half_width)));
        })
    };
    (1..=8).map(of).collect()
}

#[test]
fn a_zero_leaves_no_ratio_but_a_difference() {
    let comparison = compared([with_p50("a", 0.0, 0.0), with_p50("b", 1.0, 0.0)].concat(), By::Target);
    let p50 = stat(&comparison, Metric::P50Ms);
    assert_eq!((p50.decision, p50.effect), (Some(Decision::Worse), None));
    assert_eq!((p50.value, p50.change().text()), (Some(1.0), "slower"));
    assert_eq!(p50.meaning(), "slower than the baseline; no ratio, as a value is 0");
    let details = &comparison.answer.headlines[0].details;
    assert!(details.contains("p50 slower") && !details.contains("found in p50"), "{details}");
    // One run of sixteen without CPU time.
    let mut runs: Vec<Run> = (1..=8).flat_map(|n| [noisy("a", n, 1.0), noisy("b", n, 1.0)]).collect();
    for run in &mut runs {
        let cpu = 0.1 * if run.spec.target == "b" { 0.77 } else { 1.0 } + f64::from(run.repetition) / 1e5;
        run.figures.cpu_ms_per_request = Some(if run.id.as_str() == runs_id("b", 3) { 0.0 } else { cpu });
    }
    let comparison = compared(runs, By::Target);
    assert_eq!(decision(&comparison, Metric::CpuMs), Some(Decision::Better));
}

fn runs_id(target: &str, repetition: u32) -> String {
    run(target, repetition).id.to_string()
}

#[test]
fn nothing_is_decided_within_the_rounding_of_values() {
    // 2.4 and 2.6 ms, printed as whole milliseconds.
    let comparison = compared([with_p50("a", 2.0, 0.5), with_p50("b", 3.0, 0.5)].concat(), By::Target);
    let p50 = stat(&comparison, Metric::P50Ms);
    assert_eq!(p50.decision, Some(Decision::TooCoarse));
    let (low, high) = p50.effect.and_then(|effect| effect.interval()).expect("an interval");
    assert!(low.abs() < 1e-9 && (high - 4.0 / 3.0).abs() < 1e-9, "{low} {high}");
    let details = &comparison.answer.headlines[0].details;
    assert!(details.contains("Too coarse to compare: p50 (±\u{a0}0.5\u{a0}ms)"), "{details}");
    assert!(comparison.notes.iter().any(|note| note.title == "Values are rounded:"), "{:?}", comparison.notes);
    // Two zeros of a whole millisecond and one are the same as far as anybody knows; five are not.
    let at_zero = compared([with_p50("a", 0.0, 0.5), with_p50("b", 1.0, 0.5)].concat(), By::Target);
    assert_eq!(decision(&at_zero, Metric::P50Ms), Some(Decision::TooCoarse));
    let far = compared([with_p50("a", 0.0, 0.5), with_p50("b", 5.0, 0.5)].concat(), By::Target);
    assert_eq!(decision(&far, Metric::P50Ms), Some(Decision::Worse));
    let same = compared([with_p50("a", 2.0, 0.5), with_p50("b", 2.0, 0.5)].concat(), By::Target);
    let p50 = stat(&same, Metric::P50Ms);
    assert_eq!(p50.decision, Some(Decision::NoDifference));
    assert!(p50.detectable.is_some_and(|hidden| hidden > 0.6), "2.5 and 1.5 ms look the same: {p50:?}");
}

#[test]
fn too_little_data_counts_the_blocks_that_a_pair_shares() {
    let of = |target: &str, blocks: std::ops::RangeInclusive<u32>| -> Vec<Run> {
        blocks.map(|n| noisy(target, n, 1.0)).collect()
    };
    let comparison = compared([of("a", 1..=7), of("b", 6..=12), of("c", 1..=12)].concat(), By::Target);
    assert_eq!(comparison.rows[0].leader(Metric::Rps), Leader::TooFew(2));
    let details = &comparison.answer.headlines[0].details;
    assert!(details.starts_with("Two targets have only 2 repetitions in common."), "{details}");
}
