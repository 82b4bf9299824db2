//! The result of an experiment in a line of a list.

use crate::{
    app::{error::Result, state::AppState},
    compare::{
        answer::Answer, cell::Row, chosen::Options, finding::Finding, metric::Metric, stat::Stat, trust::Trust,
        view::Comparison,
    },
    experiments::{model::Experiment, pages::load_comparison, progress::Progress},
    runs::model::Run,
    web::{card::Tone, interval_plot::IntervalPlot},
};

/// The metrics of a line.
const METRICS: [Metric; 3] = [Metric::Rps, Metric::P99Ms, Metric::CpuMs];

/// The result of an experiment in a list.
#[derive(Clone, Debug)]
pub struct ListedResult {
    /// The result in sentences.
    pub answer: Answer,
    /// Differences of the first challenger from the baseline, if there is one: throughput, p99 and CPU time.
    pub differences: Option<[Difference; METRICS.len()]>,
}

/// The difference in one metric.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Estimate and interval; none if unknown.
    pub plot: Option<IntervalPlot>,
    /// `+28.3 %`, or why no difference is named.
    pub text: String,
    /// The colour.
    pub tone: Tone,
    /// The difference in words.
    pub meaning: String,
}

impl Difference {
    fn new(stat: &Stat, trust: &Trust) -> Self {
        let tone = trust.tone(stat.tone());
        let plot = stat.plot(tone);
        let text = Finding::new(stat, "the baseline").map_or_else(|| "unknown".to_owned(), |finding| finding.short);
        Self { plot, text, tone, meaning: stat.meaning() }
    }
}

/// Returns the result of an experiment.
pub(crate) fn outcome(comparison: Comparison) -> ListedResult {
    // With several settings, that of the first that compares something.
    let row = comparison.rows.iter().find(|row| row.compared_cells().count() > 1);
    let differences = row.and_then(|row| differences(&comparison, row));
    ListedResult { answer: comparison.answer, differences }
}

fn differences(comparison: &Comparison, row: &Row) -> Option<[Difference; METRICS.len()]> {
    let is_baseline = |subject: usize| comparison.baseline.as_deref() == Some(&comparison.subjects[subject].key);
    let cell = row.compared_cells().find(|cell| !is_baseline(cell.subject))?;
    row.compared_cells()
        .any(|cell| is_baseline(cell.subject))
        .then(|| METRICS.map(|metric| Difference::new(cell.stat(metric), &comparison.answer.trust)))
}

pub(crate) async fn load_outcome(
    state: &AppState,
    experiment: &Experiment,
    progress: &Progress,
    runs: &[Run],
) -> Result<Option<ListedResult>> {
    let targets: Vec<&str> = experiment.plan.targets.iter().map(String::as_str).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    Ok(load_comparison(state, progress, runs, &marks, Options::default()).await?.map(outcome))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{runs::testing::finished, web::series_style::Marks};

    #[test]
    fn a_difference_that_is_not_decided_is_not_called_none() {
        let comparison = Comparison::new(vec![finished("gosherve", 1), finished("servy", 1)], &Marks::default(), None);
        let [rps, ..] = outcome(comparison).differences.expect("two cells");
        assert_eq!(rps.tone, Tone::Plain);
        assert_ne!(rps.text, "no difference found");
    }
}
