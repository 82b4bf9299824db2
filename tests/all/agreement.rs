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
    /// Noise of each run, and what is special about it.
    runs: Vec<(f64, Fate)>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Counts,
    Invalid,
    Missing,
    /// With too few requests for a p99.
    Short,
    /// With a CPU time and a median of zero.
    Zero,
}

/// How the runs of a world were made and read.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Usual,
    /// Latencies are printed as whole milliseconds.
    Rounded,
    /// The first target gets a new version with the second half of the repetitions, a day later.
    Versioned,
    /// The first half of one target's runs is valid, and the second half of the others'.
    Halves,
}

fn target(repetitions: usize) -> impl Strategy<Value = Target> {
    let fate = prop_oneof![
        16 => Just(Fate::Counts), 2 => Just(Fate::Invalid), 2 => Just(Fate::Missing), 3 => Just(Fate::Short),
        1 => Just(Fate::Zero)
    ];
    let runs = prop::collection::vec((-1.0..1.0_f64, fate), repetitions);
    let factor = prop_oneof![Just(1.0), 0.5..2.0_f64, 0.97..1.03_f64];
    (factor, runs).prop_map(|(factor, runs)| Target { factor, runs })
}

/// Experiments of two to forty targets; each has the speed of its day, a drift, and leaves out some targets.
#[derive(Clone, Debug)]
struct World {
    targets: Vec<Vec<Target>>,
    days: Vec<(f64, f64)>,
    noise: f64,
    kind: Kind,
}

fn world() -> impl Strategy<Value = World> {
    let sizes = prop_oneof![40 => (2..5_usize, 1..4_usize, 3..9_usize), 1 => (5..41_usize, 1..2_usize, 4..6_usize)];
    sizes.prop_flat_map(|(targets, days, repetitions)| {
        let targets = prop::collection::vec(prop::collection::vec(target(repetitions), targets), days);
        let days = prop::collection::vec((0.7..1.4_f64, -0.3..0.3_f64), days);
        let noise = prop_oneof![Just(0.0), 0.001..0.1_f64];
        let kinds = [Kind::Usual, Kind::Rounded, Kind::Versioned, Kind::Halves];
        (targets, days, noise, prop::sample::select(kinds.to_vec())).prop_map(|(targets, days, noise, kind)| World {
            targets,
            days,
            noise,
            kind,
        })
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
                    let is_late = 2 * repetition >= target.runs.len();
                    let is_lost = self.kind == Kind::Halves && is_late == (place == 0);
                    let fate = if is_lost { Fate::Invalid } else { *fate };
                    let run = || self.kind.made(run(day, place, repetition, factor, fate), place == 0 && is_late);
                    runs.extend((fate != Fate::Missing).then(run));
                }
            }
        }
        runs
    }
}

impl Kind {
    /// Returns a run of this kind; `is_later` says that it may be of another version.
    fn made(self, mut run: Run, is_later: bool) -> Run {
        match self {
            Self::Usual | Self::Halves => {}
            Self::Rounded => {
                for (metric, value) in
                    [(Metric::P50Ms, &mut run.figures.p50_ms), (Metric::P99Ms, &mut run.figures.p99_ms)]
                {
                    *value = value.map(f64::round);
                    run.figures.resolution.insert(metric, 0.5);
                }
            }
            Self::Versioned => {
                run.version = Some(if is_later { "2" } else { "1" }.to_owned());
                run.started_at_ms = run.started_at_ms.map(|at| at + if is_later { 86_400_000 } else { 0 });
            }
        }
        run
    }
}

fn name_of(place: usize) -> String {
    ["a", "b", "c", "d"].get(place).map_or_else(|| format!("t{place}"), |name| (*name).to_owned())
}

fn run(day: usize, place: usize, repetition: usize, factor: f64, fate: Fate) -> Run {
    let name = name_of(place);
    let requests = if fate == Fate::Short { 900 } else { 100_000 };
    let present = if fate == Fate::Zero { 0.0 } else { 1.0 };
    let verdict = if fate == Fate::Invalid { "invalid" } else { "valid" };
    let at = 1_700_000_000_000_i64 + 86_400_000 * i64::try_from(day).expect("few days");
    let run = json!({
        "id": format!("{day}-{name}-{repetition}"), "experiment": format!("day-{day}"), "labels": [],
        "origin": "agent", "interleaved": true, "target": name, "version": null,
        "size": {"name": "1 vCPU", "vcpus": 1.0, "memory_bytes": 1_u64 << 30, "replicas": 1},
        "scenario": "hash", "scenario_sha256": "00", "parameters": {},
        "load": {"kind": "vus", "vus": 10, "duration_s": 10.0}, "vus": 10, "repetition": repetition + 1,
        "phase": "finished", "verdict": verdict, "reasons": [], "agent": "rack", "generators": [],
        "requests": requests, "failed": 0, "error_rate": if place == 1 { 0.0001 * factor } else { 0.0 },
        "rps": 10_000.0 * factor, "p50_ms": present * 4.0 / factor, "p99_ms": 16.0 / factor,
        "cpu_ms_per_request": present * 0.1 * factor.sqrt(), "held_memory_bytes": 30_000_000,
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

/// What a sentence says is what the table beside it shows, and never says that there is no difference if one was found.
fn sentences_agree(comparison: &Comparison) {
    let [row] = comparison.rows.as_slice() else { return };
    let found = |metric: Metric| {
        row.compared_cells().any(|cell| cell.stat(metric).decision.is_some_and(Decision::is_difference))
    };
    let primary = comparison.asked.primary;
    for headline in &comparison.answer.headlines {
        let line = headline.line();
        let is_of_all = comparison.answer.headlines.len() == 1;
        assert!(!(line.starts_with("No difference found") && is_of_all && found(primary)), "{line}");
        assert!(!headline.is_decided || is_of_all || found(primary), "{line}");
        let same = headline.details.split("No difference found in ").nth(1).and_then(|rest| rest.split('.').next());
        for metric in
            metrics::judged().filter(|metric| *metric != primary && is_of_all && comparison.subjects.len() == 2)
        {
            let is_named = same.is_some_and(|same| same.split([',', ' ']).any(|word| word == metric.name()));
            assert!(!(is_named && found(metric)), "{metric:?}: {headline:?}");
        }
    }
    for stat in row.compared_cells().flat_map(|cell| &cell.stats) {
        let is_shown = stat.effect.is_some() || stat.points.is_some() || stat.has_no_ratio();
        if stat.decision == Some(Decision::NoDifference) {
            // Without an estimate nothing is known of a difference, unless the test asked for one.
            assert!(is_shown || stat.p.is_some_and(|p| p > 0.05), "{stat:?}");
        }
        if let (true, Some(by)) = (stat.decision.is_some_and(Decision::is_difference), stat.rounding) {
            assert!(stat.effect.is_none_or(|effect| effect.is_clear()), "decided within ±{by}: {stat:?}");
        }
    }
}

/// Runs that share no block were not measured in turn, whatever experiment they are in.
fn strangers_are_apart(world: &World, comparison: &Comparison) {
    if world.kind == Kind::Halves && world.targets.len() == 1 {
        for stat in comparison.rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.stats) {
            let is_named = stat.decision.is_some_and(Decision::is_difference) && stat.compared.is_some();
            let is_of_first = comparison.baseline.as_deref() == Some("a");
            assert!(!(is_named && is_of_first), "{stat:?}");
        }
    }
}

/// Without noise, a difference that is found has the direction of the true one.
fn truth_agrees(world: &World, comparison: &Comparison) {
    let factor = |cell: &Cell| {
        let name = comparison.subjects[cell.subject].target.as_str();
        let place = (0..world.targets[0].len()).find(|place| name_of(*place) == name)?;
        Some(world.targets[0][place].factor)
    };
    for row in comparison.rows.iter().filter(|_| world.noise == 0.0) {
        let Some(base) = base_of(comparison, row).and_then(factor) else { continue };
        for cell in row.compared_cells() {
            let stat = cell.stat(Metric::Rps);
            if let (Some(Decision::Better | Decision::Worse), Some(own), Some(by)) =
                (stat.decision, factor(cell), stat.by())
            {
                assert!((own > base) == (by > 0.0) && (own - base).abs() > f64::EPSILON, "{own} {base}: {stat:?}");
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
        // Without a ratio to the closest rival there is no lead to name.
        let Some(lead) = row.leads.get(&metric) else { continue };
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
        let amount = sentence::of(stat).0;
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
        sentences_agree(&comparison);
        strangers_are_apart(world, &comparison);
        truth_agrees(world, &comparison);
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
    everything_agrees(&World { targets: targets.to_vec(), days, noise: 0.0, kind: Kind::Usual });
}

proptest! {
    // 256 worlds, or as many as `PROPTEST_CASES` says.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn everything_that_shows_a_comparison_agrees(world in world()) {
        prop_assume!(!world.runs().is_empty());
        everything_agrees(&world);
    }
}
