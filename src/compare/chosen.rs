//! The runs and options of a comparison, read from its URL.

use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Error, Result},
        ids::{ExperimentId, RunId, listed},
    },
    compare::{address::Address, metric::Metric, min_effect::MinEffect, selection::By},
    metrics,
};

/// Maximum number of runs in a comparison.
pub const MAX_RUNS: usize = 500;

/// The runs to compare and the options, as query parameters.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Chosen {
    /// Ids of runs, separated by commas or as repeated `runs`.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Ids of experiments whose runs are added, separated by commas or as repeated `experiments`.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// Names of baselines whose runs are added, separated by commas or as repeated `baselines`.
    #[serde(default)]
    pub baselines: Vec<String>,
    /// The target that differences are relative to: `name` or `name@version`. Default: the first by name.
    pub baseline: Option<String>,
    /// What to compare by: `target` (name and version, the default), `size`, `load`, `agent`, `label`, or
    /// `run` for two runs side by side, without a decision.
    #[serde(default)]
    pub by: By,
    /// Minimum effect in percent by metric: `rps:2,p99_ms:5`. Default: 1 %, for failed requests 0.1 points.
    #[serde(alias = "least")]
    pub min_effect: Option<String>,
    /// Compares runs despite confounders, such as different agents, machines or load generators.
    #[serde(default, alias = "confounders")]
    pub allow_confounders: bool,
    /// Primary metric, which is tested first: `rps`, `p50_ms`, `p99_ms`, `error_rate`, `cpu_ms` or `memory`.
    /// Default: `rps`, for an open model `p99_ms`, for duets beside other programs `cpu_ms`.
    pub primary: Option<String>,
    /// Metric of the matrix, e.g. `received_per_s`. Default: throughput and p99. Only for the page.
    pub matrix: Option<String>,
    /// Setting with time-series charts, from 1. Default: the first with a time series. Only for the page.
    pub setting: Option<usize>,
}

pub(crate) fn named_metric(key: &str) -> Result<Metric> {
    let known = || metrics::compared().map(Metric::key).collect::<Vec<_>>().join(", ");
    let found = metrics::compared().find(|metric| metric.key() == key);
    found.ok_or_else(|| Error::Invalid(format!("matrix: unknown metric {key:?}; use one of {}", known())))
}

/// Options of a comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Key or target of the baseline; the first subject if there is none of that name.
    pub baseline: Option<String>,
    /// What to compare by.
    pub by: By,
    /// The smallest difference that matters.
    pub min_effect: MinEffect,
    /// Whether to compare despite confounders.
    pub allow_confounders: bool,
    /// The metric that is tested first, if not the default.
    pub primary: Option<Metric>,
    /// The metric of the matrix, if not the default.
    pub matrix: Option<Metric>,
    /// The setting with time-series charts, from 1, if not the first that has any.
    pub setting: Option<usize>,
    /// The page of the comparison, if it is not that of its runs.
    pub address: Option<Address>,
}

impl Options {
    /// Returns the URL of a page that compares despite confounders.
    pub(crate) fn despite_confounders(&self, address: &Address) -> String {
        address.with(Self { allow_confounders: true, ..self.clone() }.parameters())
    }

    /// The options that are not the default, as query parameters.
    pub(crate) fn parameters(&self) -> Vec<(&'static str, String)> {
        let min_effect = self.min_effect.text();
        [
            self.baseline.clone().map(|key| ("baseline", key)),
            (self.by != By::default()).then(|| ("by", self.by.key().to_owned())),
            (!min_effect.is_empty()).then_some(("min_effect", min_effect)),
            self.primary.map(|metric| ("primary", metric.key().to_owned())),
            self.matrix.map(|metric| ("matrix", metric.key().to_owned())),
            self.setting.map(|number| ("setting", number.to_string())),
            self.allow_confounders.then(|| ("allow_confounders", "true".to_owned())),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

impl Chosen {
    /// The ids, each once, in the order given.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        listed(&self.runs)
    }

    /// The experiment, if nothing else is chosen.
    pub(crate) fn experiment(&self) -> Option<ExperimentId> {
        let [experiment] = &listed::<ExperimentId>(&self.experiments)[..] else { return None };
        (self.runs.is_empty() && self.baselines.is_empty()).then(|| experiment.clone())
    }

    /// Returns the page that compares these runs, which were chosen.
    pub(crate) fn address(&self, ids: &[RunId]) -> Address {
        self.experiment().map_or_else(|| Address::of_runs(ids), |id| Address::of_experiment(&id))
    }

    pub(crate) fn options(&self) -> Result<Options> {
        let min_effect = self.min_effect.as_deref().unwrap_or_default().parse();
        let primary = self.primary.as_deref().filter(|key| !key.is_empty()).map(Metric::judged).transpose();
        Ok(Options {
            baseline: self.baseline.clone().filter(|key| !key.is_empty()),
            by: self.by,
            min_effect: min_effect.map_err(|fault: String| Error::Invalid(format!("min_effect: {fault}")))?,
            allow_confounders: self.allow_confounders,
            primary: primary.map_err(|fault| Error::Invalid(format!("primary: {fault}")))?,
            matrix: self.matrix.as_deref().filter(|key| !key.is_empty()).map(named_metric).transpose()?,
            setting: self.setting,
            address: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_split_at_commas_and_deduplicated() {
        let chosen = Chosen {
            runs: vec!["a, b".to_owned(), "c".to_owned(), "a,".to_owned()],
            baseline: Some(String::new()),
            ..Chosen::default()
        };
        assert_eq!(chosen.ids(), ["a", "b", "c"].map(|id| RunId::from(id.to_owned())));
        assert_eq!(chosen.options().expect("options").baseline, None);
    }
}
