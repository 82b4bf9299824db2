//! What keeps a gate from deciding about a cell: runs that have not ended, do not count, or are too few. Pure.

use brewbench_agent::wire::Phase;

use super::cells::Cell;
use crate::{
    runs::{model::Run, verdict::Verdict},
    web::format::plural,
};

/// Fewer repetitions on a side say nothing.
pub const FEWEST: usize = 4;

/// Which runs a gate uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Suspect {
    /// Valid ones only.
    #[default]
    Excluded,
    /// Suspect ones, too.
    Accepted,
}

impl Suspect {
    /// The runs of a side that are used.
    pub fn usable(self, runs: &[Run]) -> Vec<&Run> {
        let is_used = |run: &&Run| run.counts() && (self == Self::Accepted || run.verdict == Some(Verdict::Valid));
        runs.iter().filter(is_used).collect()
    }
}

/// Why a cell can't be judged at all.
pub fn obstacle(cell: &Cell, suspect: Suspect) -> Option<String> {
    if cell.baseline.is_empty() {
        return Some("the baseline has no runs of this size, scenario and load".to_owned());
    }
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    sides.into_iter().find_map(|(role, runs)| {
        let waiting = runs.iter().filter(|run| !run.has_ended()).count();
        if waiting > 0 {
            return Some(format!("{} of the {role} not finished", plural(waiting, "run")));
        }
        if !runs.iter().any(Run::counts) {
            return Some(format!("no run of the {role} counts: {}", why(&runs[0])));
        }
        few(role, runs, suspect)
    })
}

fn few(role: &str, runs: &[Run], suspect: Suspect) -> Option<String> {
    let usable = suspect.usable(runs).len();
    let excluded = Suspect::Accepted.usable(runs).len() - usable;
    let hint = match excluded {
        0 => String::new(),
        count => format!("; {} excluded, --accept-suspect counts them", plural(count, "suspect run")),
    };
    (usable < FEWEST).then(|| format!("too few repetitions: the {role} has {usable} of at least {FEWEST}{hint}"))
}

/// What keeps a candidate from being fine: runs that failed. Those that are left may be the ones that went well by luck;
/// where even they are worse, that is a regression.
pub fn failed(cell: &Cell) -> Option<String> {
    let failed: Vec<&Run> = cell.candidate.iter().filter(|run| has_failed(run, &cell.candidate)).collect();
    let runs = plural(failed.len(), "run");
    Some(format!("{runs} of the candidate without results that count, the first: {}", why(failed.first()?)))
}

/// Whether a run ended without results that count, nobody cancelled it, and no retry of it has some.
fn has_failed(run: &Run, all: &[Run]) -> bool {
    let mut last = run;
    while let Some(again) = all.iter().find(|other| other.retry_of.as_ref() == Some(&last.id)) {
        last = again;
    }
    !last.counts() && last.phase != Phase::Cancelled
}

fn why(run: &Run) -> String {
    let reason = run.reasons.iter().find(|reason| reason.verdict == Verdict::Invalid).map(|reason| &reason.text);
    run.error.as_ref().or(reason).cloned().unwrap_or_else(|| run.phase.to_string())
}

/// Which runs were used or excluded, where that is worth knowing.
pub fn notes(cell: &Cell, suspect: Suspect) -> Vec<String> {
    let sides = [("baseline", &cell.baseline), ("candidate", &cell.candidate)];
    let mut notes = Vec::new();
    for (role, runs) in sides {
        let count = runs.iter().filter(|run| run.counts() && run.verdict == Some(Verdict::Suspect)).count();
        if count > 0 {
            let what = if suspect == Suspect::Accepted { "used" } else { "excluded" };
            notes.push(format!("{}: {} of the {role} {what}", cell.name, plural(count, "suspect run")));
        }
        let out: Vec<&Run> = runs.iter().filter(|run| run.has_ended() && !run.counts()).collect();
        if let Some(first) = out.first() {
            let excluded = plural(out.len(), "run");
            notes.push(format!("{}: {excluded} of the {role} excluded, the first: {}", cell.name, why(first)));
        }
    }
    notes
}
