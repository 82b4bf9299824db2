//! Sentence, table, chart, matrix, gate, JSON, Markdown, CSV and command line never disagree about a comparison.

use brewbench::{
    compare::{
        cell::{Cell, Row},
        comparison_context::ComparisonContext,
        metric::Metric,
        sentence,
        statistics::{Better, Decision, Leader},
        view::Comparison,
    },
    gate::{
        cells,
        decide::{Question, decide},
        model::Outcome,
        obstacle::Suspect,
        rule::Rule,
    },
    metrics, reports,
    runs::model::Run,
    web::series_style::Marks,
};
use proptest::prelude::*;
use serde_json::json;

/// One target of a random experiment.
#[derive(Clone, Debug)]
struct Target {
    factor: f64,
    /// Noise of each run, and whether it is missing or invalid.
    runs: Vec<(f64, Fate)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Counts,
    Invalid,
    Missing,
}

fn target(repetitions: usize) -> impl Strategy<Value = Target> {
    let fate = prop_oneof![8 => Just(Fate::Counts), 1 => Just(Fate::Invalid), 1 => Just(Fate::Missing)];
    let runs = prop::collection::vec((-1.0..1.0_f64, fate), repetitions);
    let factor = prop_oneof![Just(1.0), 0.5..2.0_f64, 0.97..1.03_f64];
    (factor, runs).prop_map(|(factor, runs)| Target { factor, runs })
}

/// Experiments of two to four targets; each has the speed of its day, a drift, and leaves out some targets.
#[derive(Clone, Debug)]
struct World {
    targets: Vec<Vec<Target>>,
    days: Vec<(f64, f64)>,
    noise: f64,
}

fn world() -> impl Strategy<Value = World> {
    (2..5_usize, 1..3_usize, 3..9_usize).prop_flat_map(|(targets, days, repetitions)| {
        let targets = prop::collection::vec(prop::collection::vec(target(repetitions), targets), days);
        let days = prop::collection::vec((0.7..1.4_f64, -0.3..0.3_f64), days);
        let noise = prop_oneof![Just(0.0), 0.001..0.1_f64];
        (targets, days, noise).prop_map(|(targets, days, noise)| World { targets, days, noise })
    })
}

impl World {
    fn runs(&self) -> Vec<Run> {
        let mut runs = Vec::new();
        for (day, (targets, (speed, drift))) in self.targets.iter().zip(&self.days).enumerate() {
            // The second day leaves out the first target, so that not all were measured in turn.
            for (place, target) in targets.iter().enumerate().filter(|(place, _)| day == 0 || *place > 0) {
                for (repetition, (noise, fate)) in target.runs.iter().enumerate() {
                    let moves = 1.0 + drift * repetition as f64 / target.runs.len() as f64;
                    let factor = self.targets[0][place].factor * speed * moves * (1.0 + self.noise * noise);
                    runs.extend((*fate != Fate::Missing).then(|| run(day, place, repetition, factor, *fate)));
                }
            }
        }
        runs
    }
}

fn run(day: usize, place: usize, repetition: usize, factor: f64, fate: Fate) -> Run {
    let name = ["a", "b", "c", "d"][place];
    let verdict = if fate == Fate::Invalid { "invalid" } else { "valid" };
    let at = 1_700_000_000_000_i64 + 86_400_000 * i64::try_from(day).expect("few days");
    let run = json!({
        "id": format!("{day}-{name}-{repetition}"), "experiment": format!("day-{day}"), "labels": [],
        "origin": "agent", "interleaved": true, "target": name, "version": null,
        "size": {"name": "1 vCPU", "vcpus": 1.0, "memory_bytes": 1_u64 << 30, "replicas": 1},
        "scenario": "hash", "scenario_sha256": "00", "parameters": {},
        "load": {"kind": "vus", "vus": 10, "duration_s": 10.0}, "vus": 10, "repetition": repetition + 1,
        "phase": "finished", "verdict": verdict, "reasons": [], "agent": "rack", "generators": [],
        "requests": 100_000, "failed": 0, "error_rate": if place == 1 { 0.0001 * factor } else { 0.0 },
        "rps": 10_000.0 * factor, "p50_ms": 4.0 / factor, "p99_ms": 16.0 / factor,
        "cpu_ms_per_request": 0.1 * factor.sqrt(), "target_memory_bytes": 30_000_000,
        "created_by": "test", "queued_at_ms": at, "phase_at_ms": at, "started_at_ms": at,
    });
    serde_json::from_value(run).expect("a run")
}

fn base_of<'a>(comparison: &Comparison, row: &'a Row) -> Option<&'a Cell> {
    row.cells.iter().find(|cell| comparison.baseline.as_ref() == Some(&comparison.subjects[cell.subject].key))
}

/// The figures of a table differ exactly as the differences beside them say.
fn figures_agree(comparison: &Comparison, row: &Row) {
    let Some(base) = base_of(comparison, row) else { return };
    for metric in metrics::compared() {
        let shown = base.stat(metric).value;
        for stat in row.compared_cells().filter(|cell| cell.subject != base.subject).map(|cell| cell.stat(metric)) {
            let (Some(value), Some(shown), Some(by)) = (stat.value, shown, stat.by()) else { continue };
            if metric.is_share() {
                assert!((value - shown - by).abs() < 1e-12 || value == 0.0, "{metric:?}: {value} {shown} {by}");
            } else {
                assert!((value / shown - 1.0 - by).abs() < 1e-9, "{metric:?}: {value} {shown} {by}");
            }
            if stat.decision.is_some_and(Decision::is_difference) {
                let is_better = (by > 0.0) == (metric.better() == Some(Better::Higher));
                assert_eq!(is_better, stat.decision == Some(Decision::Better), "{metric:?} {by}");
            }
            if let (Some(Decision::NoDifference), Some((low, high))) =
                (stat.decision, stat.effect.and_then(|it| it.interval()))
            {
                assert!(low <= 0.0 && 0.0 <= high, "{metric:?}: no difference beside {low} to {high}");
            }
        }
    }
}

/// The leader is better than the baseline, marked as the best, and named by the matrix.
fn leaders_agree(comparison: &Comparison, row: &Row) {
    for metric in metrics::judged() {
        let best: Vec<usize> = (0..row.cells.len()).filter(|place| row.cells[*place].stat(metric).best).collect();
        let Leader::Of(place) = row.leader(metric) else {
            assert_eq!(best, Vec::<usize>::new(), "{metric:?}");
            continue;
        };
        assert_eq!(best, [place], "{metric:?}");
        let subject = &comparison.subjects[row.cells[place].subject];
        for (other, cell) in row.cells.iter().enumerate() {
            let expected = if other == place { Decision::Better } else { Decision::Worse };
            if let Some(decision) = cell.stat(metric).decision
                && (other == place || comparison.is_baseline(subject))
            {
                assert_eq!(decision, expected, "{metric:?}");
            }
        }
        let lead = row.leads[&metric];
        assert_eq!(lead.by > 0.0, metric.better() == Some(Better::Higher), "{metric:?} {lead:?}");
    }
}

fn texts_agree(comparison: &Comparison) {
    let [markdown, cli] = [reports::markdown::text(comparison), brewbench_cli::compare::text(comparison)];
    let csv = reports::csv::text(comparison);
    let row = &comparison.rows[0];
    for headline in &comparison.answer.headlines {
        let line = headline.line();
        assert!(cli.replace("\n  ", " ").contains(&line) && markdown.contains(&line), "{line}");
    }
    if let ([headline], Some((challenger, _))) = (comparison.answer.headlines.as_slice(), comparison.pair())
        && comparison.rows.len() == 1
        && row.compared_cells().count() == 2
    {
        let is_challenger = |cell: &&Cell| comparison.subjects[cell.subject].key == challenger.key;
        let stat = row.cells.iter().find(is_challenger).expect("a cell").stat(comparison.asked.primary);
        let named = stat.decision.is_some_and(Decision::is_difference);
        assert_eq!(named, headline.is_decided, "{headline:?}");
        let amount = stat.by().map(|by| sentence::difference(stat.metric, by).0).unwrap_or_default();
        assert!(!named || headline.sentence.to_string().contains(&amount), "{amount}: {headline:?}");
    }
    for cell in &row.cells {
        let stat = cell.stat(Metric::Rps);
        if let Some(value) = stat.value {
            assert!(csv.contains(&format!(",{value},")), "{value} in {csv}");
            let bold = format!("**{}**", stat.figure().text());
            assert_eq!(stat.best, markdown.contains(&bold), "{bold} in {markdown}");
        }
    }
}

fn charts_agree(comparison: &Comparison) {
    let row = &comparison.rows[0];
    let Some(chart) = comparison.charts.iter().find(|chart| chart.id == "throughput") else { return };
    let bars = chart.figure.0["data"].as_array().expect("traces").iter().filter(|trace| trace["type"] == "bar");
    let drawn: Vec<f64> = bars.filter_map(|bar| bar["x"][0].as_f64()).collect();
    let shown: Vec<f64> = row.compared_cells().filter_map(|cell| cell.stat(Metric::Rps).value).collect();
    assert_eq!(drawn, shown);
}

/// A gate of two targets never fails what the page calls better, and its numbers have the difference it states.
fn gate_agrees(comparison: &Comparison, runs: &[Run]) {
    if comparison.subjects.len() != 2 {
        return;
    }
    let side = |role, target: &str| cells::GateSide { role, runs: runs.to_vec(), target: Some(target.to_owned()) };
    let (base, other) = (side("baseline", "a"), side("candidate", "b"));
    let Ok(cells) = cells::cells(&base, &other) else { return };
    let rules: Vec<Rule> = ["rps<-1%", "p99>1%"].map(|rule| rule.parse().expect("a rule")).into();
    let known = ComparisonContext::default();
    let gate = decide(&Question {
        rules: &rules,
        accept: &[],
        suspect: Suspect::Excluded,
        primary: None,
        max_repeat: None,
        cells: &cells,
        known: &known,
    });
    for check in &gate.checks {
        if let (Some(base), Some(own), Some(change)) = (check.baseline, check.candidate, check.change) {
            assert!((own / base - 1.0 - change).abs() < 1e-9, "{check:?}");
        }
        let row = &comparison.rows[0];
        let stat = row.cells.last().map(|cell| cell.stat(check.metric));
        if check.outcome == Outcome::Regression {
            assert_ne!(stat.and_then(|stat| stat.decision), Some(Decision::Better), "{check:?}");
        }
    }
}

fn everything_agrees(world: &World) {
    let runs = world.runs();
    for baseline in [None, Some("b")] {
        let comparison = Comparison::new(runs.clone(), &Marks::default(), baseline);
        for row in &comparison.rows {
            figures_agree(&comparison, row);
            leaders_agree(&comparison, row);
        }
        texts_agree(&comparison);
        charts_agree(&comparison);
        let json = serde_json::to_string(&comparison).expect("JSON");
        let read: Comparison = serde_json::from_str(&json).expect("the same");
        assert_eq!(read.rows, comparison.rows);
        assert_eq!(read.answer, comparison.answer);
        gate_agrees(&comparison, &runs);
    }
}

/// Its throughputs differ without noise, which each pair alone would decide, but not all of them together.
#[test]
fn an_undecided_difference_has_an_interval_that_includes_none() {
    let target = |(factor, invalid): (f64, Option<usize>)| Target {
        factor,
        runs: (0..6).map(|n| (0.0, if Some(n) == invalid { Fate::Invalid } else { Fate::Counts })).collect(),
    };
    let first = [
        (1.0, Some(4)),
        (0.982_205_288_685_499_3, Some(1)),
        (0.984_024_827_527_060_1, Some(5)),
        (0.972_886_523_499_357_1, None),
    ];
    let second = [(1.0, None), (1.0, None), (1.0, None), (1.0, Some(5))];
    let targets = [first, second].map(|day| day.map(target).to_vec());
    let days = vec![(0.7, 0.108_768_317_154_952_54), (0.7, -0.071_293_005_831_873_48)];
    everything_agrees(&World { targets: targets.to_vec(), days, noise: 0.0 });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_that_shows_a_comparison_agrees(world in world()) {
        prop_assume!(!world.runs().is_empty());
        everything_agrees(&world);
    }
}
