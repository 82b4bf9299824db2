//! Change points in simulated histories with known changes: false alarms, precision and recall by pattern.
//!
//! The patterns are those of the literature on change point detection for benchmarks: Daly, Brown, Ingo, O'Leary and
//! Bradford, "The use of change point detection to identify software performance regressions in a continuous
//! integration system", ICPE 2020 (steps, outliers, noise that clusters and has several modes), and Fleming,
//! Kołaczkowski et al., "Hunter: using change point detection to hunt for performance regressions", ICPE 2023 (steps of
//! known place and size in noise, changes that return, gradual ones). Offsets of days are those of Bulej, Horký and
//! Tůma, "Initial experiments with Duet benchmarking", ICPE 2020, and others: runs of one day resemble each other more
//! than those of two. Levels and noise are factors, so both are added on the log scale.
//!
//! A finding within one point of a true change is correct. Both ends of an episode are changes.

use std::{fmt::Write, ops::RangeInclusive};

use anyhow::Context;
use brewbench::{
    compare::metric::Metric,
    runs::model::Run,
    trends::history::{changes, points},
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use serde_json::json;

/// Experiments per history.
const EXPERIMENTS: usize = 40;

/// Runs per experiment.
const RUNS: usize = 5;

/// Standard deviation of the logarithm of a run within its experiment.
const NOISE: f64 = 0.01;

/// Distance from a true change within which a finding is correct.
const TOLERANCE: usize = 1;

/// A kind of history.
struct Pattern {
    name: &'static str,
    /// The logarithms of the experiments' levels.
    levels: fn(&mut StdRng) -> Vec<f64>,
    /// The true changes; anywhere within a range is correct.
    truth: &'static [RangeInclusive<usize>],
    grouping: Grouping,
}

/// Whether the runs belong to experiments.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grouping {
    Experiments,
    SingleRuns,
}

/// Findings in many histories of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Name of the pattern.
    pub name: &'static str,
    /// Number of histories.
    pub histories: usize,
    /// The share of histories with a finding that is not a true change.
    pub false_alarms: f64,
    /// The share of findings that are true changes; none without findings.
    pub precision: Option<f64>,
    /// The share of true changes that were found; none without true changes.
    pub recall: Option<f64>,
}

/// Histories without changes, histories with changes, and runs without experiments.
const PATTERNS: [Pattern; 15] = [
    Pattern { name: "flat", levels: |_| flat(), truth: &[], grouping: Grouping::Experiments },
    Pattern {
        name: "day offset 1 %",
        levels: |random| offsets(random, 0.01),
        truth: &[],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "day offset 3 %",
        levels: |random| offsets(random, 0.03),
        truth: &[],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "day offset 3 %, autocorrelation 0.3",
        levels: autocorrelated,
        truth: &[],
        grouping: Grouping::Experiments,
    },
    Pattern { name: "bimodal, 4 % apart", levels: bimodal, truth: &[], grouping: Grouping::Experiments },
    Pattern {
        name: "one outlier of −20 %",
        levels: |_| shifted(20..=20, -0.2),
        truth: &[],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "step of −2 %",
        levels: |_| shifted(20..=39, -0.02),
        truth: &[20..=20],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "step of −5 %",
        levels: |_| shifted(20..=39, -0.05),
        truth: &[20..=20],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "step of −5 %, day offset 1 %",
        levels: |random| sum(&shifted(20..=39, -0.05), &offsets(random, 0.01)),
        truth: &[20..=20],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "step of −10 %, day offset 3 %",
        levels: |random| sum(&shifted(20..=39, -0.1), &offsets(random, 0.03)),
        truth: &[20..=20],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "step of −5 %, 5 experiments ago",
        levels: |_| shifted(35..=39, -0.05),
        truth: &[35..=35],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "spike: −5 % for 4 experiments",
        levels: |_| shifted(20..=23, -0.05),
        truth: &[20..=20, 24..=24],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "ramp: −10 % over 10 experiments",
        levels: |_| ramp(15..=25, -0.1),
        truth: &[15..=25],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "drift: −5 % over all",
        levels: |_| ramp(0..=39, -0.05),
        truth: &[1..=39],
        grouping: Grouping::Experiments,
    },
    Pattern {
        name: "day offset 3 %, runs without experiments",
        levels: |random| offsets(random, 0.03),
        truth: &[],
        grouping: Grouping::SingleRuns,
    },
];

fn flat() -> Vec<f64> {
    vec![0.0; EXPERIMENTS]
}

fn offsets(random: &mut StdRng, deviation: f64) -> Vec<f64> {
    flat().iter().map(|_| deviation * normal(random)).collect()
}

fn autocorrelated(random: &mut StdRng) -> Vec<f64> {
    const RHO: f64 = 0.3;
    let mut offset = normal(random);
    let mut next = || {
        offset = RHO * offset + (1.0 - RHO * RHO).sqrt() * normal(random);
        0.03 * offset
    };
    flat().iter().map(|_| next()).collect()
}

fn bimodal(random: &mut StdRng) -> Vec<f64> {
    flat().iter().map(|_| if random.random() { 0.04 } else { 0.0 }).collect()
}

fn shifted(range: RangeInclusive<usize>, share: f64) -> Vec<f64> {
    (0..EXPERIMENTS).map(|place| if range.contains(&place) { share.ln_1p() } else { 0.0 }).collect()
}

/// Returns a linear change over a range, with constant levels before and after it.
fn ramp(range: RangeInclusive<usize>, share: f64) -> Vec<f64> {
    let (from, to) = range.into_inner();
    let done = |place: usize| (place.clamp(from, to) - from) as f64 / (to - from) as f64;
    (0..EXPERIMENTS).map(|place| done(place) * share.ln_1p()).collect()
}

fn sum(one: &[f64], other: &[f64]) -> Vec<f64> {
    one.iter().zip(other).map(|(one, other)| one + other).collect()
}

/// Draws a standard normal number with the Box-Muller transform.
fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// Simulates `rounds` histories of each pattern.
pub fn table(rounds: usize, seed: u64) -> anyhow::Result<Vec<Row>> {
    let fixture = fixture()?;
    let mut random = StdRng::seed_from_u64(seed);
    Ok(PATTERNS.iter().map(|pattern| row(pattern, rounds, &fixture, &mut random)).collect())
}

fn row(pattern: &Pattern, rounds: usize, fixture: &Run, random: &mut StdRng) -> Row {
    let (mut alarmed, mut found, mut correct, mut recalled) = (0, 0, 0, 0);
    for _ in 0..rounds {
        let places = findings(&history(pattern, fixture, random), pattern.grouping);
        let is_near = |truth: &RangeInclusive<usize>, place: &usize| {
            (truth.start().saturating_sub(TOLERANCE)..=truth.end() + TOLERANCE).contains(place)
        };
        let hits = places.iter().filter(|place| pattern.truth.iter().any(|truth| is_near(truth, place))).count();
        alarmed += usize::from(hits < places.len());
        found += places.len();
        correct += hits;
        recalled += pattern.truth.iter().filter(|truth| places.iter().any(|place| is_near(truth, place))).count();
    }
    let share = |part: usize, total: usize| (total > 0).then(|| part as f64 / total as f64);
    Row {
        name: pattern.name,
        histories: rounds,
        false_alarms: share(alarmed, rounds).unwrap_or(0.0),
        precision: share(correct, found),
        recall: share(recalled, rounds * pattern.truth.len()),
    }
}

/// Returns the changes that the trend page would show, as indices of experiments.
fn findings(runs: &[Run], grouping: Grouping) -> Vec<usize> {
    let per_point = if grouping == Grouping::Experiments { 1 } else { RUNS };
    let found = changes(&points(runs, Metric::Rps), Metric::Rps, &[]);
    let ends = found.iter().flat_map(|change| [change.at, change.returned.as_ref().map(|end| end.at)]);
    ends.flatten().map(|at| at / per_point).collect()
}

/// Simulates the runs of one history.
fn history(pattern: &Pattern, fixture: &Run, random: &mut StdRng) -> Vec<Run> {
    let levels = (pattern.levels)(random);
    let mut runs = Vec::with_capacity(EXPERIMENTS * RUNS);
    for (experiment, level) in levels.iter().enumerate() {
        for _ in 0..RUNS {
            let mut run = Run {
                id: format!("{:06}", runs.len()).into(),
                experiment: (pattern.grouping == Grouping::Experiments).then(|| format!("{experiment:06}").into()),
                started_at_ms: i64::try_from(runs.len()).ok(),
                ..fixture.clone()
            };
            run.figures.rps = Some(10_000.0 * (level + NOISE * normal(random)).exp());
            runs.push(run);
        }
    }
    runs
}

/// Returns a valid run as a template.
pub fn fixture() -> anyhow::Result<Run> {
    let run = json!({
        "id": "", "labels": [], "origin": "agent", "target": "servy", "version": "1.0", "parameters": {}, "load": null,
        "repetition": 1, "phase": "finished", "verdict": "valid", "reasons": [], "created_by": "self-check",
        "queued_at_ms": 0, "phase_at_ms": 0,
    });
    serde_json::from_value(run).context("a run")
}

/// Formats the table for the documentation.
pub fn markdown(rows: &[Row]) -> String {
    let percent = |share: f64| format!("{:.1}", share * 100.0);
    let known = |share: Option<f64>| share.map_or_else(|| "–".to_owned(), percent);
    let mut text = format!(
        "| {EXPERIMENTS} experiments of {RUNS} runs, noise {} % | histories | false alarms, % of histories | precision, % | recall, % |\n\
         |---|---|---|---|---|\n",
        NOISE * 100.0
    );
    for Row { name, histories, false_alarms, precision, recall } in rows {
        let (precision, recall) = (known(*precision), known(*recall));
        let _ = writeln!(text, "| {name} | {histories} | {} | {precision} | {recall} |", percent(*false_alarms));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates one pattern.
    fn row_of(name: &str, rounds: usize) -> Row {
        let pattern = PATTERNS.iter().find(|pattern| pattern.name == name).expect("a pattern");
        row(pattern, rounds, &fixture().expect("a run"), &mut StdRng::seed_from_u64(1))
    }

    #[test]
    fn offsets_of_days_rarely_cause_false_alarms() {
        const ROUNDS: usize = 20;
        // 5 % plus three standard errors for that many histories.
        let most = 0.05 + 3.0 * (0.05 * 0.95 / ROUNDS as f64).sqrt();
        for name in ["day offset 1 %", "day offset 3 %, autocorrelation 0.3", "bimodal, 4 % apart"] {
            let row = row_of(name, ROUNDS);
            assert!(row.false_alarms <= most, "{row:?}");
        }
    }

    #[test]
    fn changes_of_every_shape_are_found() {
        for name in ["step of −5 %", "spike: −5 % for 4 experiments", "ramp: −10 % over 10 experiments"] {
            let row = row_of(name, 5);
            assert!(row.recall.is_some_and(|recall| recall >= 0.8) && row.precision.is_some(), "{row:?}");
        }
    }

    #[test]
    fn the_table_shows_dashes_for_undefined_shares() {
        let rows = [
            Row { name: "flat", histories: 10, false_alarms: 0.1, precision: Some(0.0), recall: None },
            Row { name: "step", histories: 10, false_alarms: 0.0, precision: Some(1.0), recall: Some(0.95) },
        ];
        let text = markdown(&rows);
        assert!(text.ends_with("| flat | 10 | 10.0 | 0.0 | – |\n| step | 10 | 0.0 | 100.0 | 95.0 |\n"), "{text}");
    }
}
