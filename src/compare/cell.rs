//! The figures of a comparison: rows of comparable cells. Pure.

use brewbench_wire::Phase;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    metric::Metric,
    selection::Group,
    statistics::{self, Leader, Noise},
};
use crate::{
    compare::{comparability::Confounder, setting::Setting, stat::Stat, work_difference::WorkDifference},
    metrics,
    runs::{model::Run, verdict::Verdict},
};

/// All cells of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Row {
    /// The setting that the cells share.
    pub setting: Setting,
    /// By subject.
    pub cells: Vec<Cell>,
    /// Differences between the runs besides what is compared.
    #[serde(default)]
    pub confounders: Vec<Confounder>,
    /// Differences in the work of its cells.
    #[serde(default)]
    pub work: Vec<WorkDifference>,
    /// The leader in each judged metric.
    pub leaders: BTreeMap<Metric, Leader>,
    /// The cells that none is better than, by metric without a leader.
    #[serde(default)]
    pub ahead: BTreeMap<Metric, Vec<usize>>,
    /// By how much each leader is ahead of its closest rival.
    #[serde(default)]
    pub leads: BTreeMap<Metric, Lead>,
}

/// The lead of one cell of a row over its closest rival in a metric.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Lead {
    /// Index of the rival, from 0.
    pub over: usize,
    /// Estimated difference from the rival's value, as a share; for shares in points.
    pub by: f64,
}

/// One subject in one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Cell {
    /// Index of the subject, from 0.
    pub subject: usize,
    /// All its repetitions, including those that don't count.
    pub runs: Vec<Run>,
    /// Number of runs by phase and verdict.
    pub counts: RunCounts,
    /// One per metric, in order; the spreads are null if no run counts.
    pub stats: Vec<Stat>,
    /// Noise of its metrics in earlier experiments, where known.
    #[serde(default)]
    pub noise: BTreeMap<Metric, Noise>,
}

/// Number of runs of a cell by phase and verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunCounts {
    /// Finished and valid.
    pub valid: usize,
    /// Finished and suspect: used with a warning.
    pub suspect: usize,
    /// Finished and invalid: not used.
    pub invalid: usize,
    /// Failed: not used.
    pub failed: usize,
    /// Cancelled: not used.
    pub cancelled: usize,
    /// Lost: not used.
    pub lost: usize,
    /// Queued or running.
    pub unfinished: usize,
}

impl Row {
    /// The cells with at least one run that counts.
    pub fn compared_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(|cell| cell.counts.counting() > 0)
    }

    /// The indexes of the cells with at least one run that counts.
    pub fn compared_indexes(&self) -> impl Iterator<Item = usize> {
        (0..self.cells.len()).filter(|place| self.cells[*place].counts.counting() > 0)
    }

    /// The cells that lead in a metric together, and those than which one of them is better; none if no cell is.
    pub fn tied_leaders(&self, metric: Metric) -> Option<(Vec<usize>, Vec<usize>)> {
        let ahead = self.ahead.get(&metric)?;
        let behind: Vec<usize> = self.compared_indexes().filter(|place| !ahead.contains(place)).collect();
        (!behind.is_empty()).then(|| (ahead.clone(), behind))
    }

    /// The leader in a metric; none in a metric that is not judged.
    pub fn leader(&self, metric: Metric) -> Leader {
        self.leaders.get(&metric).copied().unwrap_or(Leader::Unclear)
    }
}

impl Cell {
    /// The runs that count.
    pub fn counting(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().filter(|run| run.counts())
    }

    /// Whether any of its runs has ended in any phase.
    pub fn has_ended(&self) -> bool {
        self.runs.iter().any(Run::has_ended)
    }

    /// The values of a metric of all runs that count and have it.
    pub fn values(&self, metric: Metric) -> Vec<f64> {
        self.counting().filter_map(|run| metric.value_in(run)).collect()
    }

    /// The figure of one metric.
    pub fn stat(&self, metric: Metric) -> &Stat {
        // Declared in the order of `metrics::compared`, which `stats` follows.
        &self.stats[metric as usize]
    }
}

impl RunCounts {
    /// Number of runs that count.
    pub fn counting(&self) -> usize {
        self.valid + self.suspect
    }

    /// The counts above zero, each with the name of its badge.
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

    fn count(runs: &[Run]) -> Self {
        let mut counts = Self::default();
        for run in runs.iter().filter(|run| !run.spec.profiled) {
            let place = match (run.phase, run.verdict) {
                (Phase::Finished, Some(Verdict::Valid)) => &mut counts.valid,
                (Phase::Finished, Some(Verdict::Suspect)) => &mut counts.suspect,
                (Phase::Finished, _) => &mut counts.invalid,
                (Phase::Failed, _) => &mut counts.failed,
                (Phase::Cancelled, _) => &mut counts.cancelled,
                (Phase::Lost, _) => &mut counts.lost,
                _ => &mut counts.unfinished,
            };
            *place += 1;
        }
        counts
    }
}

/// Groups the runs into rows of cells, without judging them.
pub fn rows(settings: Vec<Setting>, groups: Vec<Group>) -> Vec<Row> {
    let row = |setting| Row {
        setting,
        cells: Vec::new(),
        confounders: Vec::new(),
        work: Vec::new(),
        leaders: BTreeMap::new(),
        ahead: BTreeMap::new(),
        leads: BTreeMap::new(),
    };
    let mut rows: Vec<Row> = settings.into_iter().map(row).collect();
    for Group { subject, setting, runs } in groups {
        let (counts, stats) = (RunCounts::count(&runs), stats(&runs));
        rows[setting].cells.push(Cell { subject, counts, stats, runs, noise: BTreeMap::new() });
    }
    rows
}

fn stats(runs: &[Run]) -> Vec<Stat> {
    let stat = |metric: Metric| {
        let counting = || runs.iter().filter(|run| run.counts() && metric.value_in(run).is_some());
        let spread = statistics::spread(counting().filter_map(|run| metric.value_in(run)));
        let suspect = counting().any(|run| run.verdict == Some(Verdict::Suspect));
        Stat::alone(metric, spread, suspect)
    };
    metrics::compared().map(stat).collect()
}
