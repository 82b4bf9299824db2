//! The rows of the history: single runs, and the runs of an experiment by cell. Pure.

use std::collections::HashMap;

use brewbench_statistics::spread;

use crate::{
    app::ids::{ExperimentId, RunId, joined},
    metrics::Metric,
    runs::{
        column::Column,
        model::{Run, RunSize},
        pages::row::ListedRun,
        store::groups::MAX_OF_ONE,
    },
    web::{
        badge::{self, Badge},
        format::{self, Figure, plural},
        series_style::Marks,
    },
};

/// More runs are not selected at once, because their ids would not fit an address.
const MAX_SELECTED: usize = 100;

/// Runs that are listed together.
#[derive(Debug)]
pub struct RunGroup {
    /// The experiment; none for runs without one, and in a flat list.
    pub head: Option<GroupHead>,
    /// The rows.
    pub rows: Vec<HistoryRow>,
}

/// The experiment of a group.
#[derive(Debug)]
pub struct GroupHead {
    /// Its id.
    pub id: ExperimentId,
    /// Its name.
    pub name: String,
    /// The number of its runs in words.
    pub count: String,
    /// Whether each run has a row.
    pub is_open: bool,
}

/// A row: one run, or all repetitions of a cell.
#[derive(Debug)]
pub struct HistoryRow {
    /// The newest run first.
    runs: Vec<ListedRun>,
    /// Whether it summarizes its runs.
    pub is_summary: bool,
    /// Whether its runs have rows of their own, too.
    is_open: bool,
}

impl RunGroup {
    /// Lists runs one by one.
    pub fn flat(runs: Vec<Run>, marks: &Marks) -> Self {
        Self { head: None, rows: runs.into_iter().map(|run| HistoryRow::single(run, marks)).collect() }
    }

    /// Groups runs by experiment, in the order of their first runs; experiments in `open` list each run, too.
    pub fn by_experiment(
        runs: Vec<Run>,
        names: &HashMap<ExperimentId, String>,
        open: &[ExperimentId],
        marks: &Marks,
    ) -> Vec<Self> {
        let mut groups: Vec<(Option<ExperimentId>, Vec<Run>)> = Vec::new();
        for run in runs {
            match groups.last_mut() {
                Some((id, runs)) if id.is_some() && *id == run.experiment => runs.push(run),
                _ => groups.push((run.experiment.clone(), vec![run])),
            }
        }
        let group = |(id, runs): (Option<ExperimentId>, Vec<Run>)| match id {
            None => Self::flat(runs, marks),
            Some(id) => {
                let (is_open, more) = (open.contains(&id), if runs.len() == MAX_OF_ONE { "newest " } else { "" });
                let count = format!("{more}{}", plural(runs.len(), "run"));
                let name = names.get(&id).cloned().unwrap_or_else(|| "Experiment".to_owned());
                Self { head: Some(GroupHead { id, name, count, is_open }), rows: by_cell(runs, is_open, marks) }
            }
        };
        groups.into_iter().map(group).collect()
    }
}

/// Returns a row for each cell, smaller sizes first; each is followed by its runs if they are shown.
fn by_cell(runs: Vec<Run>, is_open: bool, marks: &Marks) -> Vec<HistoryRow> {
    let mut cells: Vec<Vec<Run>> = Vec::new();
    for run in runs {
        let is_same = |of: &Run| (&of.version, &of.agent, &of.spec) == (&run.version, &run.agent, &run.spec);
        match cells.iter_mut().find(|runs| is_same(&runs[0])) {
            Some(runs) => runs.push(run),
            None => cells.push(vec![run]),
        }
    }
    let size = |run: &Run| run.spec.size.as_ref().map_or(0.0, RunSize::total_vcpus);
    cells.sort_by(|a, b| size(&a[0]).total_cmp(&size(&b[0])).then_with(|| a[0].spec.target.cmp(&b[0].spec.target)));
    let rows = |runs: Vec<Run>| {
        let single = if is_open && runs.len() > 1 { runs.clone() } else { Vec::new() };
        let cell = HistoryRow {
            is_summary: runs.len() > 1,
            is_open: !single.is_empty(),
            runs: runs.into_iter().map(|run| ListedRun::new(run, marks)).collect(),
        };
        [cell].into_iter().chain(single.into_iter().map(|run| HistoryRow::single(run, marks)))
    };
    cells.into_iter().flat_map(rows).collect()
}

impl HistoryRow {
    fn single(run: Run, marks: &Marks) -> Self {
        Self { runs: vec![ListedRun::new(run, marks)], is_summary: false, is_open: false }
    }

    /// The runs of the row.
    pub fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter().map(|line| &line.run)
    }

    /// Its newest run.
    pub fn line(&self) -> &ListedRun {
        &self.runs[0]
    }

    /// Its id on the page.
    pub fn id(&self) -> String {
        format!("{}-{}", if self.is_summary { "cell" } else { "run" }, self.line().run.id)
    }

    /// What its checkbox selects; none if each run has a checkbox, or there are too many.
    pub fn selection(&self) -> Option<String> {
        let ids: Vec<_> = self.runs().map(|run| run.id.clone()).collect();
        (!self.is_open && ids.len() <= MAX_SELECTED).then(|| joined(&ids))
    }

    /// Whether its checkbox is ticked: all of its runs are.
    pub fn is_ticked(&self, ticked: &[RunId]) -> bool {
        self.selection().is_some() && self.runs().all(|run| ticked.contains(&run.id))
    }

    /// The number of selected runs.
    pub fn count(&self) -> usize {
        self.runs.len()
    }

    /// The accessible name of its checkbox.
    pub fn select_label(&self) -> String {
        let Run { spec, repetition, .. } = &self.line().run;
        if self.is_summary {
            format!("Select {} of {}", plural(self.count(), "run"), spec.target)
        } else {
            format!("Select {}, repetition {repetition}", spec.target)
        }
    }

    /// Whether it has a result.
    pub fn has_result(&self) -> bool {
        self.runs().any(Run::has_result)
    }

    /// Badges of verdicts or phases, with the number of each if it summarizes runs.
    pub fn states(&self) -> Vec<Badge> {
        if !self.is_summary {
            return vec![self.line().state()];
        }
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for run in self.runs() {
            let word = run.verdict.map_or_else(|| run.phase.as_str(), |verdict| verdict.as_str());
            match counts.iter_mut().find(|(known, _)| *known == word) {
                Some((_, count)) => *count += 1,
                None => counts.push((word, 1)),
            }
        }
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut badges: Vec<Badge> = counts.iter().map(|(word, count)| badge::verdicts(count, word)).collect();
        if self.line().run.spec.profiled
            && let Some(last) = badges.pop()
        {
            badges.push(last.and("profiled"));
        }
        badges
    }

    /// Its value in a numeric column: the median of the runs with a result, or how many there are.
    pub fn figure(&self, column: &Column) -> Option<Figure> {
        match *column {
            _ if !self.is_summary => column.figure(&self.line().run),
            Column::Repetition => Some(format::count(Some(self.runs.len() as u64))),
            Column::Figure(metric) => Some(metric.figure(self.spread(metric).map(|spread| spread.median))),
            _ => None,
        }
    }

    /// How far the throughput of its runs spreads: `± 1.2 %`.
    pub fn deviation(&self, column: &Column) -> Option<String> {
        let metric = Metric::Rps;
        let spread = self.spread(metric).filter(|_| self.is_summary && *column == Column::Figure(metric))?;
        (spread.count > 1).then(|| format!("±\u{a0}{}", format::percent(spread.deviation).text()))
    }

    fn spread(&self, metric: Metric) -> Option<brewbench_statistics::Spread> {
        spread(self.runs().filter(|run| run.has_result()).filter_map(|run| (metric.def().get)(&run.figures)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::{
        testing::{failed, figured, finished, judged},
        verdict::Verdict,
    };

    fn of(experiment: &ExperimentId, run: Run) -> Run {
        Run { experiment: Some(experiment.clone()), ..run }
    }

    #[test]
    fn repetitions_of_a_cell_share_a_row_with_their_median_and_verdicts() {
        let id = ExperimentId::from("hash".to_owned());
        let rps = |run, rps| figured(run, |figures| figures.rps = Some(rps));
        let runs = vec![
            of(&id, rps(finished("servy", 3), 900.0)),
            of(&id, rps(judged(finished("servy", 2), Verdict::Suspect, "why"), 1_000.0)),
            of(&id, rps(judged(finished("servy", 1), Verdict::Invalid, "why"), 1.0)),
            of(&id, rps(finished("gosherve", 1), 1_100.0)),
            Run { experiment: None, ..failed("servy", "failed", "it died") },
        ];
        let names = [(id.clone(), "servers".to_owned())].into();
        let groups = RunGroup::by_experiment(runs.clone(), &names, &[], &Marks::default());
        let [group, single] = groups.as_slice() else { panic!("two groups: {groups:?}") };
        let head = group.head.as_ref().expect("an experiment");
        assert_eq!((head.name.as_str(), head.count.as_str(), head.is_open), ("servers", "4 runs", false));
        let [other, servy] = group.rows.as_slice() else { panic!("two cells: {group:?}") };
        assert!(!other.is_summary && servy.is_summary && single.head.is_none() && single.rows.len() == 1);
        assert_eq!(servy.figure(&Column::Figure(Metric::Rps)).expect("a median").text(), "950.0");
        assert_eq!(servy.figure(&Column::Repetition).expect("a number").text(), "3");
        assert!(servy.deviation(&Column::Figure(Metric::Rps)).is_some_and(|text| text.ends_with('%')));
        assert_eq!(servy.deviation(&Column::Figure(Metric::P99Ms)), None);
        assert_eq!(servy.states().len(), 3);
        assert_eq!(servy.selection().expect("few").split(',').count(), 3);

        let open = RunGroup::by_experiment(runs, &names, &[id], &Marks::default());
        assert_eq!(open[0].rows.iter().map(HistoryRow::count).collect::<Vec<_>>(), [1, 3, 1, 1, 1]);
    }
}
