//! The script's own metrics of a comparison, by name: custom ones, and those of protocols besides HTTP. They have no
//! direction, so nothing is called better; each difference has an interval. Pure.

use std::collections::BTreeMap;

use brewbench_statistics::{Effect, Stratum, effect, spread};
use brewbench_wire::reports::{
    builtin,
    summary::{Contains, Kind, Metric, Summary},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::RunId,
    compare::{cell::Row, view::Comparison},
    web::format,
};

/// The most metrics of a setting.
const MAX_METRICS: usize = 100;

/// Error probability of all intervals of a setting together.
const ALPHA: f64 = 0.05;

/// Metrics of protocols besides HTTP.
const PROTOCOLS: [&str; 3] = ["ws_", "grpc_", "browser_"];

/// The metrics of the scripts of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScriptMetrics {
    /// By setting.
    pub rows: Vec<RowMetrics>,
}

/// The metrics of the runs of one setting.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RowMetrics {
    /// What the setting is called.
    pub setting: String,
    /// The confidence level of each interval: corrected for their number, so that all hold together with 95 %.
    pub level: f64,
    /// By name.
    pub metrics: Vec<ScriptMetric>,
}

/// One statistic of one metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ScriptMetric {
    /// The name in the script: any text.
    pub name: String,
    /// What of it: `p50`, `p95`, `per second`, `share` or `value`.
    pub statistic: String,
    /// `ms`, `bytes`, or empty.
    pub unit: String,
    /// By subject; those without the metric are missing.
    pub cells: Vec<MetricCell>,
}

/// The values of one subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MetricCell {
    /// Index of the subject, from 0.
    pub subject: usize,
    /// Its name.
    pub label: String,
    /// Median of its runs.
    pub median: f64,
    /// The lowest value of a run.
    pub min: f64,
    /// The highest value of a run.
    pub max: f64,
    /// Runs with the metric.
    pub runs: usize,
    /// Ratio to the baseline; null for the baseline, with values that are not positive, or if the rows may not be
    /// compared.
    pub effect: Option<Effect>,
}

impl ScriptMetrics {
    /// Whether no run has such metrics.
    pub fn is_empty(&self) -> bool {
        self.rows.iter().all(|row| row.metrics.is_empty())
    }
}

impl RowMetrics {
    /// Returns the confidence level as text.
    pub fn level_text(&self) -> String {
        format::percent(Some(self.level)).text().to_owned()
    }
}

impl ScriptMetric {
    /// Returns a value as text.
    pub fn text(&self, value: &f64) -> String {
        let figure = if self.unit == "bytes" { format::bytes(Some(*value)) } else { format::number(Some(*value)) };
        figure.text().to_owned()
    }
}

impl MetricCell {
    /// Returns the difference from the baseline with its interval, as text.
    pub fn difference(&self) -> Option<String> {
        let effect = self.effect?;
        let percent = |share: f64| format!("{:+.1} %", share * 100.0).replace('-', "\u{2212}");
        let interval = effect.interval().map(|(low, high)| format!(" ({} to {})", percent(low), percent(high)));
        Some(format!("{}{}", percent(effect.change()), interval.unwrap_or_else(|| " (too few runs)".to_owned())))
    }
}

/// Returns the metrics of a comparison with these summaries.
pub fn script_metrics(comparison: &Comparison, summaries: &BTreeMap<RunId, Summary>) -> ScriptMetrics {
    ScriptMetrics { rows: comparison.rows.iter().map(|row| of_row(comparison, row, summaries)).collect() }
}

type Key = (String, &'static str, &'static str);

fn of_row(comparison: &Comparison, row: &Row, summaries: &BTreeMap<RunId, Summary>) -> RowMetrics {
    let mut values: BTreeMap<Key, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    for cell in &row.cells {
        let summaries = cell.runs.iter().filter(|run| run.counts()).filter_map(|run| summaries.get(&run.id));
        // Other tools have no scripts with metrics.
        let summaries = summaries.filter(|summary| summary.stated.is_none());
        for (name, metric) in summaries.flat_map(|summary| &summary.metrics).filter(|(name, _)| is_of_script(name)) {
            for (statistic, unit, value) in statistics(metric) {
                let of_metric = values.entry((name.clone(), statistic, unit)).or_default();
                of_metric.entry(cell.subject).or_default().push(value);
            }
        }
    }
    let questions = values.values().map(|cells| cells.len().saturating_sub(1)).sum::<usize>().max(1);
    let level = ALPHA / questions as f64;
    let base = comparison.subjects.iter().position(|subject| comparison.is_baseline(subject)).unwrap_or(0);
    // What was not measured alike has no difference.
    let is_rival =
        |subject: usize| subject != base && row.are_comparable([base, subject], comparison.options.allow_confounders);
    let metrics = values.into_iter().take(MAX_METRICS).map(|((name, statistic, unit), cells)| {
        let of_base = cells.get(&base).cloned();
        let cells = cells.into_iter().filter_map(|(subject, values)| {
            let spread = spread(values.iter().copied())?;
            let stratum = of_base.clone().filter(|_| is_rival(subject)).map(|base| Stratum { base, other: values });
            Some(MetricCell {
                subject,
                label: comparison.subjects.get(subject)?.label.clone(),
                median: spread.median,
                min: spread.min,
                max: spread.max,
                runs: spread.count,
                effect: stratum.and_then(|stratum| effect(&[stratum], level)),
            })
        });
        ScriptMetric { name, statistic: statistic.to_owned(), unit: unit.to_owned(), cells: cells.collect() }
    });
    RowMetrics { setting: row.setting.label.clone(), level: 1.0 - level, metrics: metrics.collect() }
}

/// Whether a metric is the script's own, in total.
fn is_of_script(name: &str) -> bool {
    let is_of_protocol = PROTOCOLS.iter().any(|prefix| name.starts_with(prefix));
    !name.contains('{') && (is_of_protocol || builtin::lookup(name).is_none())
}

/// Returns what is compared of a metric: statistics, units and values.
fn statistics(metric: &Metric) -> Vec<(&'static str, &'static str, f64)> {
    let unit = match metric.contains {
        Contains::Time => "ms",
        Contains::Data => "bytes",
        Contains::Default | Contains::Unknown => "",
    };
    let value = |name: &str| metric.values.get(name).copied();
    let is_empty = metric.values.get("count") == Some(&0.0);
    let all = match metric.kind {
        Kind::Trend if is_empty => vec![],
        Kind::Trend => vec![("p50", unit, value("med")), ("p95", unit, value("p(95)"))],
        Kind::Counter => vec![("per second", unit, value("rate"))],
        Kind::Rate => {
            let samples = value("passes").zip(value("fails")).map(|(passes, fails)| passes + fails);
            vec![("share", "", value("rate").filter(|_| samples != Some(0.0)))]
        }
        Kind::Gauge => vec![("value", unit, value("value"))],
    };
    all.into_iter().filter_map(|(statistic, unit, value)| Some((statistic, unit, value?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::testing::{repeated, run},
        web::series_style::Marks,
    };

    fn summary(checkout_ms: f64) -> Summary {
        let trend = serde_json::json!({"avg": 1.0, "med": checkout_ms, "p(95)": checkout_ms * 2.0, "count": 9});
        let duration = serde_json::json!({"avg": 1.0, "count": 9});
        let text = serde_json::json!({"metrics": {
            "checkout": trend, "baskets": {"count": 40, "rate": 8.0}, "http_reqs": {"count": 40, "rate": 8.0},
            "http_req_duration": duration, "checkout{kind:a}": trend}});
        brewbench_wire::reports::read::parse(text.to_string().as_bytes()).expect("a summary")
    }

    #[test]
    fn metrics_of_scripts_are_compared_by_name_with_corrected_intervals() {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| run("servy", n)));
        let mut summaries = BTreeMap::new();
        for (place, run) in runs.iter().enumerate() {
            let noise = 1.0 + (place % 5) as f64 / 1_000.0;
            let slower = if run.spec.target == "servy" { 2.0 } else { 1.0 };
            summaries.insert(run.id.clone(), summary(10.0 * noise * slower));
        }
        let comparison = Comparison::new(runs, &Marks::default(), None);
        let found = script_metrics(&comparison, &summaries);
        let [row] = found.rows.as_slice() else { panic!("one setting: {found:?}") };
        let names: Vec<_> = row.metrics.iter().map(|one| (one.name.as_str(), one.statistic.as_str())).collect();
        assert_eq!(names, [("baskets", "per second"), ("checkout", "p50"), ("checkout", "p95")]);
        assert!((row.level - (1.0 - 0.05 / 3.0)).abs() < 1e-9, "{}", row.level);
        let [base, other] = row.metrics[1].cells.as_slice() else { panic!("two cells") };
        assert_eq!((base.label.as_str(), base.effect), ("gosherve", None));
        let change = other.effect.expect("an effect").change();
        assert!((change - 1.0).abs() < 0.02, "{other:?}");
        assert!(other.difference().is_some_and(|text| text.starts_with("+100.")), "{other:?}");
        assert!(row.metrics[0].cells[1].effect.is_some_and(|effect| effect.change().abs() < 1e-9));
    }

    #[test]
    fn runs_that_do_not_count_and_missing_metrics_say_nothing() {
        let runs = repeated(|n| run("gosherve", n));
        let comparison = Comparison::new(runs, &Marks::default(), None);
        let found = script_metrics(&comparison, &BTreeMap::new());
        assert!(found.rows.iter().all(|row| row.metrics.is_empty()), "{found:?}");
    }
}
