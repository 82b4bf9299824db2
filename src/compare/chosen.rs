//! Which runs a comparison is of, and with which options: read from an address.

use serde::Deserialize;
use url::form_urlencoded;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Error, Result},
        ids::{RunId, joined, listed},
    },
    compare::{metric::Metric, min_effect::MinEffect, selection::By},
    metrics,
};

/// More runs than this are no comparison that anybody reads.
pub const MOST_RUNS: usize = 500;

/// Which runs to compare, as an address says it.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Chosen {
    /// Ids of runs, separated by commas or one `runs` each.
    #[serde(default)]
    pub runs: Vec<String>,
    /// Ids of experiments, whose runs are meant as well; separated by commas or one `experiments` each.
    #[serde(default)]
    pub experiments: Vec<String>,
    /// Names of baselines, whose runs are meant as well; separated by commas or one `baselines` each.
    #[serde(default)]
    pub baselines: Vec<String>,
    /// The target that differences are relative to: `name` or `name@version`. The first by name if not given.
    pub baseline: Option<String>,
    /// What is compared: `target` in its versions unless said otherwise, `size`, `load`, `agent` or `label`.
    #[serde(default)]
    pub by: By,
    /// The minimum effect: the smallest difference that matters, percent by metric: `rps:2,p99_ms:5`. One percent if not
    /// given; of failed requests 0.1 points of their share.
    #[serde(alias = "least")]
    pub min_effect: Option<String>,
    /// Compares runs that differ in more than the target, too: agents or machines, load generators, what enforced the size.
    #[serde(default, alias = "unlike")]
    pub allow_confounders: bool,
    /// The metric that is tested first: `rps`, `p50_ms`, `p99_ms`, `error_rate`, `cpu_ms` or `memory`. Throughput if not
    /// given; p99 where the load is a rate.
    pub primary: Option<String>,
    /// Whose matrix is shown: `rps`, `p99_ms`, `received_per_s` … Those of throughput and p99 if not given. For the page.
    pub matrix: Option<String>,
    /// Which setting's runs are shown second by second, from 1; the first with any series if not given. For the page.
    pub setting: Option<usize>,
}

pub(crate) fn named_metric(key: &str) -> Result<Metric> {
    let known = || metrics::compared().map(Metric::key).collect::<Vec<_>>().join(", ");
    let found = metrics::compared().find(|metric| metric.key() == key);
    found.ok_or_else(|| Error::Invalid(format!("matrix: there is no {key:?}; there are {}", known())))
}

/// How runs are compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Options {
    /// Key or target that differences are relative to; the first if there is none of that name.
    pub baseline: Option<String>,
    /// What is compared.
    pub by: By,
    /// From where on a difference matters.
    pub min_effect: MinEffect,
    /// Runs that differ in more than what is compared are compared, too.
    pub allow_confounders: bool,
    /// The metric that is tested first, where it is not the default.
    pub primary: Option<Metric>,
    /// Whose matrix is shown.
    pub matrix: Option<Metric>,
}

impl Options {
    /// The address of a comparison of these runs in spite of confounders.
    pub(crate) fn with_confounders(&self, ids: &[RunId]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("runs", &joined(ids));
        query.extend_pairs(self.baseline.iter().map(|key| ("baseline", key)));
        let min_effect = self.min_effect.text();
        query.extend_pairs(Some(&min_effect).filter(|text| !text.is_empty()).map(|text| ("min_effect", text)));
        query.extend_pairs(self.primary.map(|metric| ("primary", metric.key())));
        query.extend_pairs((self.by != By::default()).then(|| ("by", self.by.key())));
        query.append_pair("allow_confounders", "true");
        format!("/compare?{}", query.finish())
    }
}

impl Chosen {
    /// The ids, each once, in the order given.
    pub(crate) fn ids(&self) -> Vec<RunId> {
        listed(&self.runs)
    }

    /// What the address says of the runs.
    pub(crate) fn kept(&self, ids: &[RunId]) -> Vec<(String, String)> {
        let mut kept = vec![("runs".to_owned(), joined(ids))];
        kept.extend(self.allow_confounders.then(|| ("allow_confounders".to_owned(), "true".to_owned())));
        kept
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_come_by_commas_or_one_by_one_and_count_once() {
        let chosen = Chosen {
            runs: vec!["a, b".to_owned(), "c".to_owned(), "a,".to_owned()],
            baseline: Some(String::new()),
            ..Chosen::default()
        };
        assert_eq!(chosen.ids(), ["a", "b", "c"].map(|id| RunId::from(id.to_owned())));
        assert_eq!(chosen.options().expect("options").baseline, None);
    }
}
