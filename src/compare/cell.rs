//! The figures of a comparison: rows of cells that may be held against each other. Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    metric::Metric,
    selection::Group,
    statistics::{self, Decision, Lead, Noise},
};
use crate::{
    compare::{comparability::Unlike, setting::Setting, stat::Stat, work_difference::WorkDifference},
    metrics,
    runs::{model::Run, verdict::Verdict},
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
    /// What should have been alike and was not.
    #[serde(default)]
    pub unlike: Vec<Unlike>,
    /// In what the work of its cells differs.
    #[serde(default)]
    pub work: Vec<WorkDifference>,
    /// Who leads in each metric that is judged.
    pub leads: BTreeMap<Metric, Lead>,
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
    /// What earlier experiments say of its figures, where they say something.
    #[serde(default)]
    pub noise: BTreeMap<Metric, Noise>,
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

impl Row {
    /// The cells that have runs that count.
    pub fn rivals(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.tally.counting() > 0)
    }

    /// Who leads in a metric; nobody in one that is not judged.
    pub fn lead(&self, metric: Metric) -> Lead {
        self.leads.get(&metric).copied().unwrap_or(Lead::Unclear)
    }
}

impl Cell {
    /// The runs whose figures are used.
    pub fn counting(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts())
    }

    /// Whether any of its runs has ended, with figures or without.
    pub fn has_ended(&self) -> bool {
        self.runs.iter().any(Run::has_ended)
    }

    /// A figure of each run that counts and has it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.counting().filter_map(|run| metric.of(run)).collect()
    }

    /// The same where it may be judged.
    pub fn judged_values(&self, metric: Metric) -> Vec<f64> {
        self.counting().filter_map(|run| metric.judged_value(run)).collect()
    }

    /// One of its figures.
    pub fn stat(&self, metric: Metric) -> &Stat {
        // Declared in the order of `metrics::compared`, which `stats` follows.
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
    /// What stands for its repetitions.
    pub fn middle(&self) -> Option<f64> {
        self.spread.as_ref().map(|spread| self.metric.middle(spread))
    }

    /// The same for a cell of the table.
    pub fn figure(&self) -> Figure {
        self.metric.figure(self.middle())
    }

    /// By how much it differs from the baseline: as a share of the baseline's, of shares their difference. Empty where
    /// there is nothing to say.
    pub fn by(&self) -> Option<f64> {
        let points = self.points.filter(|points| *points != 0.0 || self.middle() != Some(0.0));
        self.effect.map(|effect| effect.change()).or(points)
    }

    /// The difference to the baseline: `+28.3 %`, `+0.30 points`.
    pub fn change(&self) -> Figure {
        self.metric.difference(self.by())
    }

    /// Where the difference probably lies: `+26.1 % to +30.2 %`; empty where that is not known.
    pub fn interval(&self) -> String {
        let interval = self.effect.and_then(|effect| effect.interval());
        interval.map_or_else(String::new, |(low, high)| {
            let end = |share| format::change(Some(share));
            format!("{} to {}", end(low).text(), end(high).text())
        })
    }

    /// What the difference means: `faster`, whether that is sure, and within what.
    pub fn meaning(&self) -> String {
        let word = self.by().map_or("", |by| self.metric.word(by));
        let within = self.interval();
        let within = if within.is_empty() { within } else { format!(", {within}") };
        match self.decision {
            Some(Decision::NoDifference) => match self.hidden() {
                Some(margin) => format!("within the moves between experiments, {margin}{within}"),
                None => format!("no difference to the baseline found{within}"),
            },
            Some(Decision::TooFew) => format!("{word} than the baseline, too few repetitions to say so{within}"),
            Some(Decision::NotInTurn) => format!("{word} than the baseline, not measured in turn: cannot say"),
            Some(Decision::NotComparable) => format!("{word} than the baseline, not comparable{within}"),
            Some(Decision::Better | Decision::Worse) => format!("{word} than the baseline{within}"),
            None => format!("{word} than the baseline, not judged{within}"),
        }
    }

    /// How far the cell moves between experiments, where that is what hides the difference.
    pub fn hidden(&self) -> Option<String> {
        let margin = self.apart?.margin?;
        let is_within = self.effect.map_or(self.points, |effect| Some(effect.change()))?.abs() <= margin;
        (self.decision == Some(Decision::NoDifference) && is_within).then(|| self.metric.amount(margin))
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
        match self.decision {
            Some(Decision::Better) => Tone::Good,
            Some(Decision::Worse) => Tone::Bad,
            _ => Tone::Plain,
        }
    }
}

/// Puts the runs into rows of cells. Nothing is judged yet.
pub fn rows(settings: Vec<Setting>, groups: Vec<Group>) -> Vec<Row> {
    let row =
        |setting| Row { setting, cells: Vec::new(), unlike: Vec::new(), work: Vec::new(), leads: BTreeMap::new() };
    let mut rows: Vec<Row> = settings.into_iter().map(row).collect();
    for Group { subject, setting, runs } in groups {
        let (tally, stats) = (Tally::of(&runs), stats(&runs));
        rows[setting].cells.push(Cell { subject, tally, stats, runs, noise: BTreeMap::new() });
    }
    rows
}

fn stats(runs: &[Run]) -> Vec<Stat> {
    let stat = |metric: Metric| {
        let counting = || runs.iter().filter(|run| run.counts() && metric.of(run).is_some());
        let spread = statistics::spread(counting().filter_map(|run| metric.of(run)));
        let suspect = counting().any(|run| run.verdict == Some(Verdict::Suspect));
        let (effect, points, p, detectable, apart, decision) = (None, None, None, None, None, None);
        Stat { metric, spread, effect, points, p, detectable, apart, decision, best: false, suspect }
    };
    metrics::compared().map(stat).collect()
}
