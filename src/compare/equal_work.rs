//! Whether two cells did equal work; otherwise their speed is not comparable. Pure.
//!
//! Bytes are compared without the headers of the responses, where the agent counted them: the body is the work, the
//! headers are the target's own. A redirect in each iteration, an empty body, an error page with status 200 or a
//! connection closed after each response all change the speed, as does a request that is not read. So requests, bytes
//! both ways, statuses, checks, new connections and protocols per iteration
//! must be equal. Numbers may differ by the `Tolerance`, or by the scatter of the repetitions if that is greater. Facts
//! that are unknown on one side are not compared.

mod sent;

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::load::Load;

use super::{
    cell::Row,
    notes::{doubt, info, listed},
    selection::Subject,
};
use crate::{
    compare::{
        comparability::Environments, comparison_context::ComparisonContext, note::Note, work_difference::WorkDifference,
    },
    differences::{AcceptedDifference, WorkFact},
    metrics::work::mix,
    runs::model::Run,
    web::format,
};

/// Tolerance for requests per iteration, as a share of the larger value.
const REQUESTS: f64 = 0.01;
/// Tolerance for bytes per request, as a share of the larger value.
const BYTES: f64 = 0.02;
/// Tolerance for shares, from 0 to 1.
const SHARES: f64 = 0.01;

/// Factor from the median absolute deviation to the standard deviation of a normal distribution.
const MAD_TO_DEVIATION: f64 = 1.4826;
/// Deviations of single repetitions within which two cells count as equal.
const DEVIATIONS: f64 = 3.0;

/// Differences that a user would have to accept to compare two targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDifference {
    /// Names of the targets.
    pub targets: [String; 2],
    /// The scenario.
    pub scenario: Option<String>,
    /// The facts in which their work differs.
    pub facts: BTreeSet<WorkFact>,
}

impl OpenDifference {
    /// The facts as a form field.
    pub fn form_value(&self) -> String {
        self.facts.iter().map(|fact| fact.as_str()).collect::<Vec<_>>().join(",")
    }

    /// The facts for a sentence.
    pub fn titles(&self) -> String {
        self.facts.iter().map(|fact| fact.title().to_lowercase()).collect::<Vec<_>>().join(", ")
    }
}

/// Returns the differences that are not accepted, by pair of targets and scenario.
pub fn open_differences(rows: &[Row]) -> Vec<OpenDifference> {
    let mut open: BTreeMap<([String; 2], Option<String>), BTreeSet<WorkFact>> = BTreeMap::new();
    for row in rows {
        for difference in row.work.iter().filter(|difference| difference.accepted.is_none()) {
            let mut targets = difference.targets.clone();
            targets.sort();
            open.entry((targets, row.setting.scenario.clone())).or_default().insert(difference.fact);
        }
    }
    open.into_iter().map(|((targets, scenario), facts)| OpenDifference { targets, scenario, facts }).collect()
}

/// Runs of one cell and their name in messages.
#[derive(Clone, Copy, Debug)]
pub struct NamedRuns<'a> {
    /// E.g. `servy`, or `baseline`.
    pub name: &'a str,
    /// The runs that count.
    pub runs: &'a [&'a Run],
}

/// How far two values may differ and still count as equal.
#[derive(Clone, Copy, Debug)]
enum Tolerance {
    /// A share of the larger value.
    Relative(f64),
    /// An absolute amount.
    Absolute(f64),
}

/// Returns all differences in work between the cells of a row.
pub fn different_work(row: &Row, subjects: &[Subject], known: &ComparisonContext) -> Vec<WorkDifference> {
    let cells: Vec<(usize, &str, Vec<&Run>)> = row
        .compared_indexes()
        .map(|place| {
            let cell = &row.cells[place];
            (place, subjects[cell.subject].label.as_str(), cell.counting().collect())
        })
        .collect();
    let mut all = Vec::new();
    for (number, (one, name, runs)) in cells.iter().enumerate() {
        for (other, other_name, others) in &cells[number + 1..] {
            let found = between([NamedRuns { name, runs }, NamedRuns { name: other_name, runs: others }], known);
            all.extend(found.into_iter().map(|difference| WorkDifference { cells: [*one, *other], ..difference }));
        }
    }
    all
}

/// Returns the differences in work between two sides; none if a side has no runs.
pub fn between(sides: [NamedRuns<'_>; 2], known: &ComparisonContext) -> Vec<WorkDifference> {
    let [Some(one), Some(other)] = sides.map(|side| side.runs.first().copied()) else { return Vec::new() };
    let difference = |fact: WorkFact| {
        let both = sides.map(|side| side.runs);
        let values =
            differ(fact, both).filter(|_| fact != WorkFact::Bytes || !have_equal_bodies(both, &known.environments))?;
        let described: Vec<String> =
            sides.iter().zip(&values).map(|(side, value)| format!("{} {value}", side.name)).collect();
        let covers = |accepted: &&AcceptedDifference| {
            accepted.covers([&one.spec.target, &other.spec.target], one.spec.scenario.as_deref(), fact)
        };
        Some(WorkDifference {
            fact,
            targets: [one.spec.target.clone(), other.spec.target.clone()],
            cells: [0, 1],
            values,
            text: format!("{} differ: {}", fact.title(), described.join(", ")),
            runs: [one.id.clone(), other.id.clone()],
            accepted: known.accepted.iter().find(covers).cloned(),
        })
    };
    WorkFact::ALL.into_iter().filter_map(difference).collect()
}

impl Row {
    /// Whether its cells did equal work as far as known, or users have accepted all differences.
    pub fn has_equal_work(&self) -> bool {
        self.work.iter().all(|difference| difference.accepted.is_some())
    }

    /// Whether two cells may be compared: no confounders unless allowed, and equal work.
    pub fn are_comparable(&self, cells: [usize; 2], allow_confounders: bool) -> bool {
        let did_equal_work = !self.work.iter().any(|one| one.accepted.is_none() && are_both(one.cells, cells));
        (!self.is_confounded(cells) || allow_confounders) && did_equal_work
    }

    /// Whether more than the target differs between two cells.
    pub fn is_confounded(&self, cells: [usize; 2]) -> bool {
        self.confounders.iter().any(|one| are_both(one.cells, cells))
    }

    /// Returns the largest group of cells that may be compared with one of them; of equal groups that of the baseline.
    pub fn comparable_rivals(&self, base: usize, allow_confounders: bool) -> Vec<usize> {
        let group = |one: usize| -> Vec<usize> {
            let is_in = |other: &usize| one == *other || self.are_comparable([one, *other], allow_confounders);
            self.compared_indexes().filter(is_in).collect()
        };
        let rank = |one: &usize| (group(*one).len(), self.cells[*one].subject == base);
        self.compared_indexes().max_by_key(rank).map(group).unwrap_or_default()
    }
}

fn are_both(one: [usize; 2], other: [usize; 2]) -> bool {
    one == other || one == [other[1], other[0]]
}

/// Returns notes on differences in work, those that are not accepted first.
pub fn notes(subjects: &[Subject], rows: &[Row]) -> Vec<Note> {
    let why = "Targets that did different work are not compared until a user accepts the difference.";
    let open = differences(subjects, rows, false);
    let open = (!open.is_empty()).then(|| doubt("Different work.", format!("{}. {why}", listed(open.into_iter()))));
    let accepted = differences(subjects, rows, true);
    let accepted =
        (!accepted.is_empty()).then(|| info("Different work, accepted.", format!("{}.", listed(accepted.into_iter()))));
    open.into_iter().chain(accepted).collect()
}

/// Describes each fact that differs by its values, each with the targets that have it.
fn differences(subjects: &[Subject], rows: &[Row], is_accepted: bool) -> BTreeSet<String> {
    let mut texts = BTreeSet::new();
    for row in rows {
        for fact in WorkFact::ALL {
            let is_it = |one: &&WorkDifference| one.fact == fact && one.accepted.is_some() == is_accepted;
            let mut by_value: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            let mut notes = BTreeSet::new();
            for one in row.work.iter().filter(is_it) {
                for (cell, value) in one.cells.iter().zip(&one.values) {
                    let subject = row.cells.get(*cell).and_then(|cell| subjects.get(cell.subject));
                    by_value.entry(value).or_default().extend(subject.map(|subject| subject.label.as_str()));
                }
                notes.extend(one.accepted.as_ref().map(|it| match it.accepted_by.as_str() {
                    "" => format!(" (accepted: {})", it.note),
                    user => format!(" (accepted by {user}: {})", it.note),
                }));
            }
            let names = |names: &BTreeSet<&str>| listed(names.iter().map(|name| (*name).to_owned()));
            let values: Vec<String> = by_value.iter().map(|(value, them)| format!("{} {value}", names(them))).collect();
            let notes: String = notes.into_iter().collect();
            texts.extend((!values.is_empty()).then(|| format!("{}: {}{notes}", fact.title(), values.join(", "))));
        }
    }
    texts
}

/// Returns both values as text if they differ by more than the tolerance.
fn differ(fact: WorkFact, sides: [&[&Run]; 2]) -> Option<[String; 2]> {
    let number = |value: f64, unit: &str| format!("{}{unit}", format::number(Some(value)).text());
    let percent = |value: f64| format::percent(Some(value)).text().to_owned();
    match fact {
        WorkFact::Requests => {
            let values = numbers(sides, Tolerance::Relative(REQUESTS), |run| run.figures.work.requests_per_iteration)?;
            Some(values.map(|value| number(value, "")))
        }
        WorkFact::Bytes => {
            let values = numbers(sides, Tolerance::Relative(BYTES), |run| run.figures.work.bytes_per_request)?;
            Some(values.map(|value| number(value, "\u{a0}B")))
        }
        WorkFact::Sent => sent::differ(sides).map(|values| values.map(|value| number(value, "\u{a0}B"))),
        WorkFact::Checks => numbers(sides, Tolerance::Absolute(SHARES), checks_passed).map(|both| both.map(percent)),
        WorkFact::Connections => connections(sides),
        WorkFact::Statuses => mixes(sides, |run| run.figures.work.statuses.as_ref()),
        WorkFact::Protocols => mixes(sides, |run| run.figures.work.protocols.as_ref()),
    }
}

/// Whether the responses differ in their headers only: without them, their bytes are equal.
fn have_equal_bodies(sides: [&[&Run]; 2], environments: &Environments) -> bool {
    let body = |run: &Run| Some(run.figures.work.bytes_per_request? - head_bytes(run, environments)?);
    let is_known = sides.iter().all(|runs| runs.iter().all(|run| body(run).is_some()));
    let most = sides.iter().copied().flatten().filter_map(|run| run.figures.work.bytes_per_request).fold(0.0, f64::max);
    is_known && numbers(sides, Tolerance::Absolute(BYTES * most), body).is_none()
}

/// Returns the bytes of the headers of a response, as the run's agent counted them.
fn head_bytes(run: &Run, environments: &Environments) -> Option<f64> {
    environments.get(&run.id)?.conditions.response_head_bytes.map(|bytes| bytes as f64)
}

/// Returns a note on targets whose responses differ in their headers only.
pub fn headers(subjects: &[Subject], rows: &[Row], environments: &Environments) -> Option<Note> {
    let mut heads: BTreeMap<&str, f64> = BTreeMap::new();
    for row in rows {
        let cells: Vec<(usize, Vec<&Run>)> =
            row.compared_indexes().map(|place| (place, row.cells[place].counting().collect())).collect();
        for (number, (one, runs)) in cells.iter().enumerate() {
            for (other, others) in &cells[number + 1..] {
                let both = [runs.as_slice(), others.as_slice()];
                if differ(WorkFact::Bytes, both).is_some() && have_equal_bodies(both, environments) {
                    for place in [*one, *other] {
                        let cell = &row.cells[place];
                        let all: Vec<f64> = cell.counting().filter_map(|run| head_bytes(run, environments)).collect();
                        heads.extend(median(&all).map(|bytes| (subjects[cell.subject].label.as_str(), bytes)));
                    }
                }
            }
        }
    }
    let text = |(name, bytes): (&&str, &f64)| format!("{name} {bytes}\u{a0}B");
    let all = listed(heads.iter().map(text));
    let why = "Without them the responses are equal, so these targets are compared.";
    (!heads.is_empty()).then(|| info("Response headers differ.", format!("{all} per response. {why}")))
}

fn checks_passed(run: &Run) -> Option<f64> {
    let (passed, failed) = (run.figures.checks_passed?, run.figures.checks_failed?);
    let all = passed.saturating_add(failed);
    (all > 0).then(|| passed as f64 / all as f64)
}

/// Minimum and maximum share of the requests that reopened a connection.
///
/// The first connection of each virtual user is not the target's choice, and would be a smaller share of a fast target.
fn reconnected(run: &Run) -> Option<[f64; 2]> {
    let bounds = [run.figures.work.min_new_connections?, run.figures.work.max_new_connections?];
    let requests = run.figures.requests.filter(|requests| *requests > 0)?;
    let users = match &run.spec.load {
        Some(Load::Closed(closed)) => closed.vus().peak(),
        Some(Load::Open(open)) => open.max_vus(),
        Some(Load::Script) | None => run.spec.vus.unwrap_or(0),
    };
    Some(bounds.map(|new| new.saturating_sub(users.into()) as f64 / requests as f64))
}

/// Returns both ranges as text if even their nearest bounds differ by more than the tolerance.
fn connections(sides: [&[&Run]; 2]) -> Option<[String; 2]> {
    let [Some(one), Some(other)] = sides.map(|runs| {
        let bounds: Vec<[f64; 2]> = runs.iter().filter_map(|run| reconnected(run)).collect();
        let end = |end: usize| bounds.iter().map(|bounds| bounds[end]).collect::<Vec<f64>>();
        let (least, most) = (median(&end(0))?, median(&end(1))?);
        Some((least, most, scatter(&end(0), least).max(scatter(&end(1), most))))
    }) else {
        return None;
    };
    let apart = (one.0 - other.1).max(other.0 - one.1);
    let describe = |(least, most, _): (f64, f64, f64)| {
        let [least, most] = [least, most].map(|share| format::percent(Some(share)).text().to_owned());
        if least == most {
            format!("for {least} of the requests")
        } else {
            format!("for {least} to {most} of the requests")
        }
    };
    (apart > SHARES.max(one.2).max(other.2)).then(|| [describe(one), describe(other)])
}

/// Returns the medians of both sides if they differ.
fn numbers(sides: [&[&Run]; 2], tolerance: Tolerance, of: impl Fn(&Run) -> Option<f64>) -> Option<[f64; 2]> {
    let [one, other] = sides.map(|runs| runs.iter().filter_map(|run| of(run)).collect::<Vec<f64>>());
    let (a, b) = (median(&one)?, median(&other)?);
    let own = match tolerance {
        Tolerance::Relative(share) => share * a.abs().max(b.abs()),
        Tolerance::Absolute(amount) => amount,
    };
    let scatter = scatter(&one, a).max(scatter(&other, b));
    ((a - b).abs() > own.max(scatter)).then_some([a, b])
}

/// Returns the shares of both sides as text if their distributions differ.
fn mixes<'a>(sides: [&[&'a Run]; 2], of: impl Fn(&'a Run) -> Option<&'a BTreeMap<String, u64>>) -> Option<[String; 2]> {
    let [one, other] = sides.map(|runs| runs.iter().filter_map(|run| of(run)).collect::<Vec<_>>());
    let (all_one, all_other) = (sum(&one)?, sum(&other)?);
    let scatter = |runs: &[&BTreeMap<String, u64>], all: &BTreeMap<String, u64>| {
        let apart: Vec<f64> = runs.iter().map(|run| distance(run, all)).collect();
        DEVIATIONS * median(&apart).unwrap_or(0.0)
    };
    let tolerated = SHARES.max(scatter(&one, &all_one)).max(scatter(&other, &all_other));
    (distance(&all_one, &all_other) > tolerated).then(|| [mix(&all_one), mix(&all_other)])
}

/// Adds up the counts by value; none if there are none.
fn sum(all: &[&BTreeMap<String, u64>]) -> Option<BTreeMap<String, u64>> {
    let mut sum: BTreeMap<String, u64> = BTreeMap::new();
    for (value, count) in all.iter().copied().flatten() {
        let total = sum.entry(value.clone()).or_default();
        *total = total.saturating_add(*count);
    }
    Some(sum).filter(|sum| !sum.is_empty())
}

/// The total variation distance of two distributions, from 0 to 1.
fn distance(one: &BTreeMap<String, u64>, other: &BTreeMap<String, u64>) -> f64 {
    let total = |counts: &BTreeMap<String, u64>| counts.values().map(|count| *count as f64).sum::<f64>().max(1.0);
    let share = |counts: &BTreeMap<String, u64>, value: &str| {
        counts.get(value).map_or(0.0, |count| *count as f64) / total(counts)
    };
    let only_other = other.keys().filter(|value| !one.contains_key(*value));
    one.keys().chain(only_other).map(|value| (share(one, value) - share(other, value)).abs()).sum::<f64>() / 2.0
}

/// Tolerated deviation from the median, robust against an outlier (Rousseeuw & Croux 1993).
fn scatter(values: &[f64], middle: f64) -> f64 {
    let deviations: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    DEVIATIONS * MAD_TO_DEVIATION * median(&deviations).unwrap_or(0.0)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { f64::midpoint(sorted[sorted.len() / 2 - 1], upper) })
}

#[cfg(test)]
mod tests;
