//! The result of an experiment in a line of a list.

use crate::{
    app::{error::Result, state::AppState},
    compare::{cell::Row, chosen::Options, finding::Finding, metric::Metric, stat::Stat, view::Comparison},
    experiments::{model::Experiment, pages::load_comparison, progress::Progress},
    runs::model::Run,
    web::{
        card::{Card, Tone},
        interval_plot::IntervalPlot,
    },
};

/// The metrics of a line.
const METRICS: [Metric; 3] = [Metric::Rps, Metric::P99Ms, Metric::CpuMs];

/// What an experiment shows first.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The challenger of a pair, otherwise the label of the card.
    pub about: String,
    /// What the differences compare: `rust-hyper against go-nethttp`, and where, if there are several settings.
    pub sides: String,
    /// The first card that compares something.
    pub card: Card,
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
    fn new(stat: &Stat) -> Self {
        let tone = stat.tone();
        let plot = stat.effect.map(|effect| IntervalPlot {
            change: effect.change(),
            interval: effect.interval(),
            tone,
            wanted: None,
        });
        let text = Finding::new(stat, "the baseline").map_or_else(|| "unknown".to_owned(), |finding| finding.short);
        Self { plot, text, tone, meaning: stat.meaning() }
    }
}

/// Returns what an experiment shows first; none without any result.
pub(crate) fn answer(comparison: Comparison) -> Option<Answer> {
    let challenger = comparison.pair().filter(|_| comparison.rows.len() == 1).map(|(one, _)| one.label.clone());
    let sides = comparison.pair().map(|(one, other)| format!("{} against {}", one.label, other.label));
    let is_single = comparison.rows.len() == 1;
    // With several settings, each has a card.
    let first = comparison.rows.iter().position(|row| row.compared_cells().count() > 1).unwrap_or(0);
    let place = if comparison.cards.len() > first && comparison.rows.len() > 1 { first } else { 0 };
    let differences = comparison.rows.get(first).and_then(|row| differences(&comparison, row));
    let card = comparison.cards.into_iter().nth(place)?;
    let sides = match sides {
        Some(sides) if is_single => sides,
        Some(sides) => format!("{}: {sides}", card.label),
        None => card.label.clone(),
    };
    Some(Answer { sides, about: challenger.unwrap_or_else(|| card.label.clone()), card, differences })
}

fn differences(comparison: &Comparison, row: &Row) -> Option<[Difference; METRICS.len()]> {
    let is_baseline = |subject: usize| comparison.baseline.as_deref() == Some(&comparison.subjects[subject].key);
    let cell = row.compared_cells().find(|cell| !is_baseline(cell.subject))?;
    row.compared_cells()
        .any(|cell| is_baseline(cell.subject))
        .then(|| METRICS.map(|metric| Difference::new(cell.stat(metric))))
}

pub(crate) async fn load_answer(
    state: &AppState,
    experiment: &Experiment,
    progress: &Progress,
    runs: &[Run],
) -> Result<Option<Answer>> {
    let targets: Vec<&str> = experiment.plan.targets.iter().map(String::as_str).collect();
    let marks = crate::catalog::store::marks(&state.db.read, &targets).await?;
    Ok(load_comparison(state, progress, runs, &marks, Options::default()).await?.and_then(answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{runs::testing::finished, web::series_style::Marks};

    #[test]
    fn a_difference_that_is_not_decided_is_not_called_none() {
        let comparison = Comparison::new(vec![finished("gosherve", 1), finished("servy", 1)], &Marks::default(), None);
        let [rps, ..] = answer(comparison).and_then(|answer| answer.differences).expect("two cells");
        assert_eq!(rps.tone, Tone::Plain);
        assert_ne!(rps.text, "no difference found");
    }
}
