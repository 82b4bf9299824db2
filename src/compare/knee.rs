//! The knee of a sweep: between which loads a target's throughput stops rising. Pure.
//!
//! The knee is the lowest load at which the throughput is within 5 % of that of the best load. The loads of a target are
//! cells of one experiment, measured in the same blocks, so the tests of the page compare them: each pair of loads is
//! asked whether one of them reaches 95 % of the other. All questions of a target are corrected together. A load that
//! is found to be below 95 % of another one is not the knee. The first other one is the lowest load that can be the
//! knee. The highest is the first that is found to be above 95 % of all others, or else the last that is not found to
//! be below. So the knee lies in this range in 95 % of sweeps, whatever the noise.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    basis::{Basis, basis},
    cell::Cell,
    metric::Metric,
    statistics::{self, Question},
};
use crate::{compare::comparison_context::ComparisonContext, runs::model::Run, web::format};

/// Share below the maximum throughput that still counts as the maximum.
const KNEE: f64 = 0.05;

/// Maximum number of loads that are compared with each other: the questions grow with its square.
const MAX_LOADS: usize = 20;

/// Reasons of a verdict for which the load generator was the bottleneck.
const OF_GENERATOR: [&str; 4] = ["generator_busy", "generator_throttled", "generator_blocked", "iterations_dropped"];

/// The knee of one target of a sweep.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TargetKnee {
    /// Index of the subject, from 0.
    pub subject: usize,
    /// Unit of the loads: `virtual users` or `iterations/s`.
    pub unit: String,
    /// Where it is.
    pub knee: SweepKnee,
}

/// Where more load no longer increases the throughput of a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum SweepKnee {
    /// At one of the measured loads from `from` to `to`.
    Between {
        /// The lowest load that can be the knee.
        from: u32,
        /// The highest load that can be the knee; the same if only one can.
        to: u32,
    },
    /// Throughput still rises at the highest load: it is found to be higher than at all lower ones.
    Beyond {
        /// The highest load with runs that count.
        highest: u32,
        /// A higher load at which no run counts; null if there is none.
        failed: Option<u32>,
    },
    /// Too few repetitions to place it.
    TooFew,
    /// The loads were not measured in turn.
    NotInTurn,
    /// More loads than are compared with each other.
    TooManyLoads,
    /// The load generator was the bottleneck before the target was.
    Generator,
    /// All runs at a load that matters are suspect.
    Suspect {
        /// The load.
        load: u32,
        /// The first reason.
        why: String,
    },
}

/// What the questions about two loads found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// The first is below 95 % of the second.
    Below,
    /// It is above.
    Above,
    /// Neither, with enough repetitions.
    Nothing,
    /// Too few repetitions to find anything.
    TooFew,
    /// Not measured in turn.
    Apart,
}

impl SweepKnee {
    /// Places the knee by the cells of a target, in the order of their loads; `failed` is a higher load at which no run
    /// counts.
    pub fn place(points: &[(u32, &Cell)], failed: Option<u32>, known: &ComparisonContext) -> Self {
        if points.len() > MAX_LOADS {
            return Self::TooManyLoads;
        }
        let found = compare(points, known);
        let places = 0..points.len();
        let others = |one: usize| places.clone().filter(move |other| *other != one).map(move |other| (one, other));
        let is_below = |one: usize| others(one).any(|pair| found(pair) == Found::Below);
        let from = places.clone().find(|one| !is_below(*one)).unwrap_or(0);
        let is_best = |one: &usize| others(*one).all(|pair| found(pair) == Found::Above);
        let last = || places.clone().rev().find(|one| !is_below(*one));
        let to = (from..points.len()).find(is_best).or_else(last).unwrap_or(from);
        let has = |wanted: Found| places.clone().flat_map(others).any(|pair| found(pair) == wanted);
        let load = |place: usize| points[place].0;
        if points[from..].iter().any(|(_, cell)| is_generator_bound(cell)) {
            Self::Generator
        } else if let Some((load, why)) = points[from..].iter().find_map(|(load, cell)| Some((*load, suspect(cell)?))) {
            Self::Suspect { load, why }
        } else if from + 1 == points.len() {
            Self::Beyond { highest: load(from), failed }
        } else if from > 0 || to + 1 < points.len() || !(has(Found::TooFew) || has(Found::Apart)) {
            Self::Between { from: load(from), to: load(to) }
        } else if has(Found::Apart) {
            Self::NotInTurn
        } else {
            Self::TooFew
        }
    }

    /// The lowest and the highest load that can be the knee; none if it is unknown.
    pub fn range(&self) -> Option<(u32, u32)> {
        match self {
            Self::Between { from, to } => Some((*from, *to)),
            Self::Beyond { highest, .. } => Some((*highest, u32::MAX)),
            Self::TooFew | Self::NotInTurn | Self::TooManyLoads | Self::Generator | Self::Suspect { .. } => None,
        }
    }

    /// Whether it is found to be at a lower load than another one.
    pub fn is_before(&self, other: &Self) -> bool {
        self.range().zip(other.range()).is_some_and(|((_, to), (from, _))| to < from)
    }

    /// Describes it after the name of the target: `knee between 16 and 32 virtual users`.
    pub fn describe(&self, unit: &str) -> String {
        let count = |load: &u32| format::count(Some(u64::from(*load))).text().to_owned();
        match self {
            Self::Between { from, to } if from == to => format!("knee at {} {unit}", count(from)),
            Self::Between { from, to } => format!("knee between {} and {} {unit}", count(from), count(to)),
            Self::Beyond { failed: Some(load), .. } => format!("no knee, no run counts at {} {unit}", count(load)),
            Self::Beyond { .. } => "no knee, throughput still rises at the highest load".to_owned(),
            Self::TooFew => "too few repetitions to place the knee".to_owned(),
            Self::NotInTurn => "knee unknown, its loads were not measured in turn".to_owned(),
            Self::TooManyLoads => format!("knee not placed, at most {MAX_LOADS} loads are compared with each other"),
            Self::Generator => "no knee, the load generator was the bottleneck before the target".to_owned(),
            Self::Suspect { load, why } => format!("undecided, all runs at {} {unit} are suspect: {why}", count(load)),
        }
    }
}

/// Asks whether each load reaches 95 % of each other one. The result is of the first load of a pair.
fn compare(points: &[(u32, &Cell)], known: &ComparisonContext) -> impl Fn((usize, usize)) -> Found {
    let count = points.len();
    let runs: Vec<Vec<&Run>> = points.iter().map(|(_, cell)| cell.counting().collect()).collect();
    let basis_of = |pair: usize| {
        let (one, other) = (pair / count, pair % count);
        (one != other).then(|| basis(&runs[other], &runs[one], Metric::Rps, &known.history))?
    };
    let all: Vec<Option<Basis>> = (0..count * count).map(basis_of).collect();
    let test = |(pair, basis): (usize, &Option<Basis>)| {
        Some((pair, basis.as_ref()?.test_of_limit(pair, false, Metric::Rps, -KNEE)?))
    };
    let (pairs, tests): (Vec<usize>, Vec<_>) = all.iter().enumerate().filter_map(test).unzip();
    let repetitions = runs.iter().flatten().map(|run| run.repetition).max().unwrap_or(0);
    let mut found = vec![Found::Apart; count * count];
    let questions = statistics::correct(&tests, known.looks.alpha(repetitions as usize, false));
    for (pair, question) in pairs.into_iter().zip(questions) {
        found[pair] = all[pair].as_ref().map_or(Found::Apart, |basis| answer(basis, question));
    }
    move |(one, other)| found[one * count + other]
}

fn answer(basis: &Basis, question: Question) -> Found {
    let ratio = basis.effect(Metric::Rps, question.level).map(|effect| effect.ratio);
    match ratio.filter(|_| question.is_rejected()) {
        Some(ratio) if ratio < 1.0 - KNEE => Found::Below,
        Some(_) => Found::Above,
        None if question.can_be_answered => Found::Nothing,
        None => Found::TooFew,
    }
}

/// Whether the load generator was the bottleneck in any repetition.
fn is_generator_bound(cell: &Cell) -> bool {
    cell.runs.iter().flat_map(|run| &run.reasons).any(|reason| OF_GENERATOR.contains(&reason.code.as_str()))
}

/// Returns why all runs of a cell that count are suspect; none if any is valid.
fn suspect(cell: &Cell) -> Option<String> {
    let first = cell.counting().next().filter(|_| cell.counts.valid == 0)?;
    first.because().map(|reason| reason.text.clone())
}
