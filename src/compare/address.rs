//! The address of the page of a comparison. Pure.

use url::form_urlencoded;

use crate::{
    app::ids::{ExperimentId, RunId, joined},
    web::address::segment,
};

/// The page of a comparison: its path, and the parameters that select its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Address {
    /// Path of the page.
    pub path: String,
    /// Query parameters without the options.
    pub selection: Vec<(&'static str, String)>,
}

impl Address {
    /// The page of an experiment, which needs no parameters.
    pub fn of_experiment(id: &ExperimentId) -> Self {
        Self { path: format!("/experiments/{}", segment(id.as_str())), selection: Vec::new() }
    }

    /// The page of runs of any origin.
    pub fn of_runs(ids: &[RunId]) -> Self {
        Self { path: "/compare".to_owned(), selection: vec![("runs", joined(ids))] }
    }

    /// Returns the URL of the scripts' own metrics with options.
    pub fn script_metrics<N: AsRef<str>, V: AsRef<str>>(&self, options: impl IntoIterator<Item = (N, V)>) -> String {
        let selection = match self.path.strip_prefix("/experiments/") {
            Some(id) => vec![("experiments", id.to_owned())],
            None => self.selection.clone(),
        };
        Self { path: "/compare/metrics".to_owned(), selection }.with(options)
    }

    /// Returns the URL with options.
    pub fn with<N: AsRef<str>, V: AsRef<str>>(&self, options: impl IntoIterator<Item = (N, V)>) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.selection).extend_pairs(options);
        match query.finish() {
            query if query.is_empty() => self.path.clone(),
            query => format!("{}?{query}", self.path),
        }
    }
}
