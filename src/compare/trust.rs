//! How far to rely on a comparison: one rule for pages, lists, reports and commands. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    note::{self, Note},
    selection::By,
};
use crate::{
    runs::{model::Run, verdict::Reason, verdict::Verdict},
    web::{card::Tone, format::plural},
};

/// How far to rely on a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// The level.
    pub level: Level,
    /// Why, in a sentence or two.
    pub text: String,
}

/// How far to rely on a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// There is no result to rely on.
    Unknown,
    /// Nothing casts doubt on it.
    Reliable,
    /// Something may have changed the result.
    Doubtful,
    /// Most of its runs are suspect.
    Unreliable,
}

impl Level {
    /// The word that begins the line.
    pub fn title(self) -> &'static str {
        match self {
            Self::Unknown => "No result",
            Self::Reliable => "Reliable",
            Self::Doubtful => "Read with care",
            Self::Unreliable => "Not reliable",
        }
    }

    /// Its colour.
    pub fn tone(self) -> Tone {
        match self {
            Self::Unknown => Tone::Plain,
            Self::Reliable => Tone::Good,
            Self::Doubtful | Self::Unreliable => Tone::Doubtful,
        }
    }
}

impl Trust {
    /// The tone of a difference: what nobody should rely on is neither good nor bad news, on any page.
    pub fn tone(&self, tone: Tone) -> Tone {
        let is_news = matches!(tone, Tone::Good | Tone::Bad);
        if is_news && self.level == Level::Unreliable { Tone::Doubtful } else { tone }
    }

    /// Judges a comparison by its runs and the notes on it.
    pub fn new(rows: &[Row], notes: &[Note]) -> Self {
        let counts = |of: fn(&Cell) -> usize| rows.iter().flat_map(|row| &row.cells).map(of).sum::<usize>();
        let (counting, suspect) = (counts(|cell| cell.counts.counting()), counts(|cell| cell.counts.suspect));
        let doubts: Vec<&str> =
            notes.iter().filter(|note| note.level == note::Level::Doubt).map(|note| note.title.as_str()).collect();
        let is_mostly_suspect = suspect * 2 > counting;
        let level = match counting {
            0 => Level::Unknown,
            _ if rows.iter().any(|row| row.setting.by == By::Run) => Level::Unknown,
            _ if is_mostly_suspect => Level::Unreliable,
            _ if suspect > 0 || !doubts.is_empty() => Level::Doubtful,
            _ => Level::Reliable,
        };
        let text = match level {
            Level::Unknown => String::new(),
            Level::Unreliable => disturbed(rows, suspect, counting),
            Level::Doubtful if suspect > 0 => {
                let others = doubts.iter().map(|title| format!(" {title}"));
                disturbed(rows, suspect, counting) + &others.collect::<String>()
            }
            Level::Doubtful => doubts.join(" "),
            Level::Reliable => sound(rows, counting),
        };
        Self { level, text }
    }
}

/// `16 valid runs, measured in turn, equal work.`
fn sound(rows: &[Row], counting: usize) -> String {
    let mut parts = vec![plural(counting, "valid run")];
    let is_compared = rows.iter().any(|row| row.compared_cells().count() > 1);
    let is_apart = rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.stats).any(|stat| stat.apart.is_some());
    if is_compared {
        parts.push(if is_apart { "of different experiments" } else { "measured in turn" }.to_owned());
        parts.push(if rows.iter().all(|row| row.work.is_empty()) { "equal work" } else { "accepted work" }.to_owned());
    }
    format!("{}.", parts.join(", "))
}

/// `12 of 16 runs are suspect: other programs used 1.7 of 2 cores.` Names the worst value of the most frequent reason.
fn disturbed(rows: &[Row], suspect: usize, counting: usize) -> String {
    let runs = || rows.iter().flat_map(|row| &row.cells).flat_map(Cell::counting);
    let count = match suspect {
        1 if counting == 1 => "The only run is suspect".to_owned(),
        all if all == counting => format!("All {} are suspect", plural(all, "run")),
        1 => format!("1 of {} is suspect", plural(counting, "run")),
        some => format!("{some} of {} are suspect", plural(counting, "run")),
    };
    match worst(runs()) {
        Some(reason) => format!("{count}: {}.", reason.text),
        None => format!("{count}."),
    }
}

/// The reason that most suspect runs have, of the run in which it is furthest beyond its limit.
fn worst<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<&'a Reason> {
    let mut by_code: BTreeMap<&str, Vec<&Reason>> = BTreeMap::new();
    for run in runs.filter(|run| run.verdict == Some(Verdict::Suspect)) {
        for reason in run.reasons.iter().filter(|reason| !reason.is_note()) {
            by_code.entry(&reason.code).or_default().push(reason);
        }
    }
    let most = by_code.into_values().max_by_key(Vec::len)?;
    let beyond = |reason: &&Reason| match (reason.observed, reason.limit) {
        (Some(observed), Some(limit)) => (observed - limit).abs(),
        _ => 0.0,
    };
    most.into_iter().max_by(|one, other| beyond(one).total_cmp(&beyond(other)))
}
