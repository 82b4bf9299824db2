//! The figures of a comparison: rows of cells that may be held against each other. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    metric::Metric,
    selection::{Group, Setting},
    statistics::{self, Lead, Spread, Standing},
};
use crate::{
    runs::{Run, Verdict},
    web::{
        card::Tone,
        format::{self, Figure},
    },
};

/// All cells of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Row {
    /// What they share.
    pub setting: Setting,
    /// By subject.
    pub cells: Vec<Cell>,
}

/// One subject in one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cell {
    /// Place among the subjects, from 0.
    pub subject: usize,
    /// Its repetitions, those that don't count too.
    pub runs: Vec<Run>,
    /// How many there are of each kind.
    pub tally: Tally,
    /// One for each metric, in order; empty spreads when no run counts.
    pub stats: Vec<Stat>,
}

/// How many runs of a cell are what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Tally {
    /// Finished and valid.
    pub valid: usize,
    /// Finished and suspect: used, but marked.
    pub suspect: usize,
    /// Finished and invalid: not used.
    pub invalid: usize,
    /// Failed: not used.
    pub failed: usize,
    /// Cancelled: not used.
    pub cancelled: usize,
    /// Lost: not used.
    pub lost: usize,
    /// Not at an end yet.
    pub unfinished: usize,
}

/// One figure of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Stat {
    /// Which.
    pub metric: Metric,
    /// Over the repetitions that count; null when none has it.
    pub spread: Option<Spread>,
    /// The difference of the medians relative to the baseline's: 0.28 is 28 % more.
    pub change: Option<f64>,
    /// How it stands against the baseline.
    pub standing: Option<Standing>,
    /// Whether it is clearly better than every other cell of its row.
    pub best: bool,
    /// Whether figures of suspect runs are among those that it comes of.
    #[serde(default)]
    pub suspect: bool,
}

impl Row {
    /// The cells that have runs that count.
    pub fn rivals(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.tally.counting() > 0)
    }

    /// Who leads in a metric: the place is that among [`Row::rivals`].
    pub fn lead(&self, metric: Metric) -> Lead {
        let sides: Vec<_> = self.rivals().map(|cell| cell.stat(metric).spread.clone()).collect();
        metric.better().map_or(Lead::Unclear, |better| statistics::lead(&sides, better))
    }
}

impl Cell {
    /// The runs whose figures are used.
    pub fn counting(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts())
    }

    /// One of its figures.
    pub fn stat(&self, metric: Metric) -> &Stat {
        // Declared in the order of `Metric::ALL`, which `stats` follows.
        &self.stats[metric as usize]
    }
}

impl Tally {
    /// Runs whose figures are used.
    pub fn counting(&self) -> usize {
        self.valid + self.suspect
    }

    /// How many there are of each kind that there is, in words that have a pill.
    pub fn parts(&self) -> impl Iterator<Item = (usize, &'static str)> {
        let Self { valid, suspect, invalid, failed, cancelled, lost, unfinished } = *self;
        let all = [
            (valid, "valid"),
            (suspect, "suspect"),
            (invalid, "invalid"),
            (failed, "failed"),
            (cancelled, "cancelled"),
            (lost, "lost"),
            (unfinished, "unfinished"),
        ];
        all.into_iter().filter(|(count, _)| *count > 0)
    }

    fn of(runs: &[Run]) -> Self {
        let mut tally = Self::default();
        for run in runs {
            let place = match (run.phase.as_str(), run.verdict) {
                ("finished", Some(Verdict::Valid)) => &mut tally.valid,
                ("finished", Some(Verdict::Suspect)) => &mut tally.suspect,
                ("finished", _) => &mut tally.invalid,
                ("failed", _) => &mut tally.failed,
                ("cancelled", _) => &mut tally.cancelled,
                ("lost", _) => &mut tally.lost,
                _ => &mut tally.unfinished,
            };
            *place += 1;
        }
        tally
    }
}

impl Stat {
    /// The median for a cell of the table.
    pub fn figure(&self) -> Figure {
        self.metric.figure(self.spread.as_ref().map(|spread| spread.median))
    }

    /// The difference to the baseline: `+28.3 %`.
    pub fn change(&self) -> Figure {
        format::change(self.change)
    }

    /// What the difference means: `faster`, and whether that is clear.
    pub fn meaning(&self) -> String {
        let word = self.change.map_or("", |change| self.metric.word(change));
        match self.standing {
            Some(Standing::Unclear) => format!("{word} than the baseline, not clearly"),
            Some(Standing::TooFew) => format!("{word} than the baseline, too few repetitions"),
            _ => format!("{word} than the baseline"),
        }
    }

    /// From the least to the greatest: `12,010 to 12,100`.
    pub fn range(&self) -> String {
        match &self.spread {
            Some(spread) if spread.count > 1 => {
                let figure = |value| self.metric.figure(Some(value));
                format!("{} to {}", figure(spread.min).text(), figure(spread.max).text())
            }
            _ => String::new(),
        }
    }

    /// Better and worse have a colour only where they are clear.
    pub fn tone(&self) -> Tone {
        match self.standing {
            Some(Standing::Better) => Tone::Good,
            Some(Standing::Worse) => Tone::Bad,
            _ => Tone::Plain,
        }
    }
}

/// Fills the rows: every cell's figures, who is best, and how all stand against the baseline.
pub fn rows(settings: Vec<Setting>, groups: Vec<Group>, base: usize) -> Vec<Row> {
    let mut rows: Vec<Row> = settings.into_iter().map(|setting| Row { setting, cells: Vec::new() }).collect();
    for Group { subject, setting, runs } in groups {
        rows[setting].cells.push(Cell { subject, tally: Tally::of(&runs), stats: stats(&runs), runs });
    }
    for row in &mut rows {
        mark_best(row);
        relate(row, base);
    }
    rows
}

fn stats(runs: &[Run]) -> Vec<Stat> {
    let stat = |metric: Metric| {
        let counting = || runs.iter().filter(|run| run.counts() && metric.of(run).is_some());
        let values = counting().filter_map(|run| metric.of(run));
        let suspect = counting().any(|run| run.verdict == Some(Verdict::Suspect));
        Stat { metric, spread: statistics::spread(values), change: None, standing: None, best: false, suspect }
    };
    Metric::ALL.map(stat).into()
}

fn mark_best(row: &mut Row) {
    for metric in Metric::ALL {
        if let Lead::Of(place) = row.lead(metric) {
            let winner = row.cells.iter_mut().filter(|cell| cell.tally.counting() > 0).nth(place);
            if let Some(winner) = winner {
                winner.stats[metric as usize].best = true;
            }
        }
    }
}

/// Relates every cell to the baseline's cell in its row.
fn relate(row: &mut Row, base: usize) {
    let Some(baseline) = row.cells.iter().find(|cell| cell.subject == base).map(|cell| cell.stats.clone()) else {
        return;
    };
    for cell in row.cells.iter_mut().filter(|cell| cell.subject != base) {
        for (stat, against) in cell.stats.iter_mut().zip(&baseline) {
            if let (Some(spread), Some(against)) = (&stat.spread, &against.spread) {
                stat.change = statistics::change(spread, against);
                stat.standing = stat.metric.better().map(|better| statistics::stand(spread, against, better));
            }
        }
    }
}
