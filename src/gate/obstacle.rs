//! What prevents a decision about a cell: unfinished runs, invalid runs, too few repetitions. Pure.

use brewbench_wire::Phase;

use super::cells::GateCell;
use crate::{
    runs::{model::Run, verdict::Verdict},
    web::format::plural,
};

/// Minimum number of repetitions per side.
pub const MIN_REPETITIONS: usize = 4;

/// Whether a gate uses suspect runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspect {
    /// Uses valid runs only.
    #[default]
    Excluded,
    /// Uses valid and suspect runs.
    Accepted,
}

impl Suspect {
    /// Returns the runs of a side that are used.
    pub fn usable(self, runs: &[Run]) -> Vec<&Run> {
        let is_used = |run: &&Run| run.counts() && (self == Self::Accepted || run.verdict == Some(Verdict::Valid));
        runs.iter().filter(is_used).collect()
    }
}

/// Returns why a cell can't be judged.
pub fn obstacle(cell: &GateCell, suspect: Suspect) -> Option<String> {
    if cell.baseline.is_empty() {
        return Some("the baseline has no runs of this size, scenario and load".to_owned());
    }
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    sides.into_iter().find_map(|(role, runs)| {
        let unfinished = runs.iter().filter(|run| !run.has_ended()).count();
        if unfinished > 0 {
            return Some(format!("{} of the {role} not finished", plural(unfinished, "run")));
        }
        if !runs.iter().any(Run::counts) {
            return Some(format!("the {role} has no valid run: {}", why(&runs[0])));
        }
        too_few(role, runs, suspect)
    })
}

fn too_few(role: &str, runs: &[Run], suspect: Suspect) -> Option<String> {
    let usable = suspect.usable(runs).len();
    let excluded = Suspect::Accepted.usable(runs).len() - usable;
    let hint = match excluded {
        0 => String::new(),
        count => format!("; {} excluded{}", plural(count, "suspect run"), why_suspect(runs)),
    };
    (usable < MIN_REPETITIONS)
        .then(|| format!("too few repetitions: the {role} has {usable} of at least {MIN_REPETITIONS}{hint}"))
}

/// Returns the first reason for which a run is suspect, after a colon.
fn why_suspect(runs: &[Run]) -> String {
    let reasons = runs.iter().flat_map(|run| &run.reasons);
    let first = reasons.into_iter().find(|reason| reason.verdict == Verdict::Suspect);
    first.map_or_else(String::new, |reason| format!(": {}", reason.text))
}

/// Describes failed runs, which keep a candidate from passing: the remaining runs may be the lucky ones. If even those
/// are worse, that is still a regression.
pub fn failed(cell: &GateCell) -> Option<String> {
    let failed: Vec<&Run> = cell.candidate.iter().filter(|run| has_failed(run, &cell.candidate)).collect();
    let runs = plural(failed.len(), "run");
    Some(format!("{runs} of the candidate without valid results, the first: {}", why(failed.first()?)))
}

/// Whether a run ended without valid results, was not cancelled, and no retry of it has valid results.
fn has_failed(run: &Run, all: &[Run]) -> bool {
    let mut last = run;
    while let Some(retry) = all.iter().find(|other| other.retry_of.as_ref() == Some(&last.id)) {
        last = retry;
    }
    !last.counts() && last.phase != Phase::Cancelled
}

fn why(run: &Run) -> String {
    let reason = run.reasons.iter().find(|reason| reason.verdict == Verdict::Invalid).map(|reason| &reason.text);
    run.error.as_ref().or(reason).cloned().unwrap_or_else(|| run.phase.to_string())
}

/// Describes suspect runs that were used or excluded, and excluded runs.
pub fn notes(cell: &GateCell, suspect: Suspect) -> Vec<String> {
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    let mut notes = Vec::new();
    for (role, runs) in sides {
        let count = runs.iter().filter(|run| run.counts() && run.verdict == Some(Verdict::Suspect)).count();
        if count > 0 {
            let what = if suspect == Suspect::Accepted { "used" } else { "excluded" };
            notes.push(format!("{}: {} of the {role} {what}", cell.name, plural(count, "suspect run")));
        }
        let excluded: Vec<&Run> = runs.iter().filter(|run| run.has_ended() && !run.counts()).collect();
        if let Some(first) = excluded.first() {
            let excluded = plural(excluded.len(), "run");
            notes.push(format!("{}: {excluded} of the {role} excluded, the first: {}", cell.name, why(first)));
        }
    }
    notes
}
