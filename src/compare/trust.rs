//! How far to rely on a comparison: one rule for pages, lists, reports and commands. Pure.

use std::{cmp::Reverse, collections::BTreeMap};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    note::{Level, Note},
    provenance,
    selection::By,
    statistics::Decision,
};
use crate::{
    runs::verdict::{Reason, Verdict},
    web::{card::Tone, format::plural},
};

/// How far to rely on a comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trust {
    /// The level.
    pub level: TrustLevel,
    /// Why, in a sentence or two.
    pub text: String,
    /// Codes of the reasons why runs are suspect, the most frequent first.
    #[serde(default)]
    pub codes: Vec<String>,
}

/// How far to rely on a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum TrustLevel {
    /// There is no result to rely on.
    Unknown,
    /// Nothing casts doubt on it.
    Reliable,
    /// Nothing casts doubt on it, but runs were imported: nobody here saw them.
    Imported,
    /// Something may have changed the result.
    Doubtful,
    /// Most runs of a side are suspect.
    Unreliable,
}

impl TrustLevel {
    /// The word that begins the line.
    pub fn title(self) -> &'static str {
        match self {
            Self::Unknown => "No result",
            Self::Reliable => "Reliable",
            Self::Imported => "Imported",
            Self::Doubtful => "Read with care",
            Self::Unreliable => "Not reliable",
        }
    }

    /// Its colour.
    pub fn tone(self) -> Tone {
        match self {
            Self::Unknown | Self::Imported => Tone::Plain,
            Self::Reliable => Tone::Good,
            Self::Doubtful | Self::Unreliable => Tone::Doubtful,
        }
    }
}

impl Trust {
    /// The tone of a difference: what nobody should rely on is neither good nor bad news, on any page.
    pub fn tone(&self, tone: Tone) -> Tone {
        let is_news = matches!(tone, Tone::Good | Tone::Bad);
        if is_news && self.level == TrustLevel::Unreliable { Tone::Doubtful } else { tone }
    }

    /// Judges a comparison by its runs and the notes on it.
    pub fn new(rows: &[Row], notes: &[Note]) -> Self {
        let counts = |of: fn(&Cell) -> usize| rows.iter().flat_map(|row| &row.cells).map(of).sum::<usize>();
        let (counting, suspect) = (counts(|cell| cell.counts.counting()), counts(|cell| cell.counts.suspect));
        let doubts: Vec<&str> =
            notes.iter().filter(|note| note.level == Level::Doubt).map(|note| note.title.as_str()).collect();
        // One disturbed side is enough to find a difference that is none.
        let is_mostly_suspect =
            rows.iter().flat_map(|row| &row.cells).any(|cell| cell.counts.suspect * 2 > cell.counts.counting());
        let runs = rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.runs);
        let imported = provenance::sentence(runs.filter(|run| counting == 0 || run.counts()));
        let level = match counting {
            0 => TrustLevel::Unknown,
            _ if rows.iter().any(|row| row.setting.by == By::Run) => TrustLevel::Unknown,
            _ if is_mostly_suspect => TrustLevel::Unreliable,
            _ if suspect > 0 || !doubts.is_empty() => TrustLevel::Doubtful,
            _ if imported.is_some() => TrustLevel::Imported,
            _ if rows.iter().all(has_too_little_data) => TrustLevel::Unknown,
            _ => TrustLevel::Reliable,
        };
        let why = match level {
            TrustLevel::Unknown | TrustLevel::Imported => String::new(),
            TrustLevel::Unreliable => disturbed(rows, suspect, counting),
            TrustLevel::Doubtful if suspect > 0 => {
                let others = doubts.iter().map(|title| format!(" {title}"));
                disturbed(rows, suspect, counting) + &others.collect::<String>()
            }
            TrustLevel::Doubtful => doubts.join(" "),
            TrustLevel::Reliable => sound(rows, counting),
        };
        let text = [why, imported.unwrap_or_default()].into_iter().filter(|text| !text.is_empty());
        let text = text.collect::<Vec<_>>().join(" ");
        let codes = suspicions(rows).into_iter().map(|reasons| reasons[0].code.clone()).collect();
        Self { level, text, codes }
    }
}

/// Whether a row compares targets but could decide about none of them, so that nothing can be relied on.
fn has_too_little_data(row: &Row) -> bool {
    let decisions: Vec<Decision> =
        row.compared_cells().flat_map(|cell| &cell.stats).filter_map(|stat| stat.decision).collect();
    !decisions.is_empty() && decisions.iter().all(|one| matches!(one, Decision::TooFew | Decision::NotInTurn))
}

/// `16 valid runs, measured in turn, equal work.`
fn sound(rows: &[Row], counting: usize) -> String {
    let mut parts = vec![plural(counting, "valid run")];
    let is_compared = rows.iter().any(|row| row.compared_cells().count() > 1);
    let is_apart = rows.iter().flat_map(|row| &row.cells).flat_map(|cell| &cell.stats).any(|stat| stat.apart.is_some());
    if is_compared {
        let runs = || rows.iter().flat_map(|row| &row.cells).flat_map(Cell::counting);
        let disturbed = runs().filter(|run| run.is_beside_others()).count();
        let how = match (is_apart, runs().all(|run| run.spec.duet)) {
            (true, _) => "not measured in turn",
            (false, true) if 2 * disturbed > counting => {
                "measured in a duet beside other programs, which change the values of both, not the difference"
            }
            (false, true) => "measured in a duet",
            (false, false) => "measured in turn",
        };
        parts.push(how.to_owned());
        parts.push(
            if rows.iter().all(|row| row.work.is_empty()) { "equal work" } else { "accepted differences in work" }
                .to_owned(),
        );
    }
    format!("{}.", parts.join(", "))
}

/// `12 of 16 runs are suspect: other programs used 1.7 of 2 cores.` Names each reason once, the most frequent first.
fn disturbed(rows: &[Row], suspect: usize, counting: usize) -> String {
    let count = match suspect {
        1 if counting == 1 => "The only run is suspect".to_owned(),
        all if all == counting => format!("All {} are suspect", plural(all, "run")),
        1 => format!("1 of {} is suspect", plural(counting, "run")),
        some => format!("{some} of {} are suspect", plural(counting, "run")),
    };
    match worst(rows).as_slice() {
        [] => format!("{count}."),
        reasons => format!("{count}: {}.", reasons.join("; ")),
    }
}

/// The reasons of suspect runs by code, the most frequent first. No group is empty.
fn suspicions(rows: &[Row]) -> Vec<Vec<&Reason>> {
    let runs = rows.iter().flat_map(|row| &row.cells).flat_map(Cell::counting);
    let mut by_code: BTreeMap<&str, Vec<&Reason>> = BTreeMap::new();
    for run in runs.filter(|run| run.verdict == Some(Verdict::Suspect)) {
        for reason in run.reasons.iter().filter(|reason| !reason.is_note()) {
            by_code.entry(&reason.code).or_default().push(reason);
        }
    }
    let mut all: Vec<Vec<&Reason>> = by_code.into_values().collect();
    all.sort_by_key(|reasons| Reverse(reasons.len()));
    all
}

/// The reasons of suspect runs, each of the run in which it is furthest beyond its limit.
fn worst(rows: &[Row]) -> Vec<&str> {
    let beyond = |reason: &Reason| match (reason.observed, reason.limit) {
        (Some(observed), Some(limit)) => (observed - limit).abs(),
        _ => 0.0,
    };
    let furthest = suspicions(rows)
        .into_iter()
        .filter_map(|reasons| reasons.into_iter().max_by(|one, other| beyond(one).total_cmp(&beyond(other))));
    furthest.map(|reason| reason.text.as_str()).collect()
}
