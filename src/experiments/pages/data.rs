//! The data of an experiment's page, and its comparison.

use std::sync::Arc;

use url::form_urlencoded;

use super::so_far::SoFar;
use crate::{
    app::{error::Result, ids::ExperimentId, state::AppState},
    auth::model::Scope,
    compare::{
        address::Address,
        chosen::{Chosen, Options},
        load,
        rendered::Rendered,
        view::Comparison,
    },
    experiments::{
        lookup,
        model::ExperimentWithRuns,
        progress::{Progress, counted},
    },
    live::feed::LiveFeed,
    runs::model::Run,
    web::series_style::Marks,
};

/// The data of an experiment's page.
pub struct PageData {
    /// The experiment with its runs.
    pub full: ExperimentWithRuns,
    /// The differences so far.
    pub so_far: Option<SoFar>,
    /// The marks of its targets.
    pub marks: Marks,
    /// What agents report of runs in progress.
    pub feed: LiveFeed,
    /// How it is compared.
    pub options: Options,
    /// What the user may do.
    pub scope: Scope,
}

impl PageData {
    /// Reads an experiment for a user.
    pub async fn read(state: &AppState, id: &ExperimentId, chosen: Chosen, scope: Scope) -> Result<Self> {
        let full = lookup::find_with_runs(state, id).await?;
        let marks = marks(state, &full).await?;
        let options = Options { address: Some(Address::of_experiment(id)), ..chosen.options()? };
        Ok(Self::new(full, marks, state.memory(), options, scope))
    }

    /// Creates it from what was read.
    pub fn new(full: ExperimentWithRuns, marks: Marks, feed: LiveFeed, options: Options, scope: Scope) -> Self {
        let mut data = Self { so_far: None, full, marks, feed, options, scope };
        data.compare_pairs();
        data
    }

    /// Reads what has changed in the database.
    pub async fn refresh(&mut self, state: &AppState) -> Result<()> {
        self.full = lookup::find_with_runs(state, &self.full.experiment.id).await?;
        self.compare_pairs();
        Ok(())
    }

    fn compare_pairs(&mut self) {
        let ExperimentWithRuns { experiment, progress, narrowing, power, runs, .. } = &self.full;
        let (baseline, is_over) = (self.options.baseline.as_deref(), progress.is_over());
        let (narrowing, power) = (narrowing.as_ref(), power.as_ref());
        self.so_far = SoFar::new(&experiment.plan, runs, narrowing, power, baseline, &self.marks, is_over);
    }

    /// Compares the runs so far; once the experiment is over, the comparison is cached and has time series.
    pub async fn comparison(&self, state: &AppState) -> Result<Option<Arc<Rendered>>> {
        let ExperimentWithRuns { progress, runs, .. } = &self.full;
        if progress.is_over() && !runs.is_empty() {
            return load::page_if_any(state, &self.query()).await;
        }
        let comparison = load_comparison(state, progress, runs, &self.marks, self.options.clone()).await?;
        Ok(comparison.map(|comparison| Arc::new(comparison.into())))
    }

    /// Returns the comparison's query outside the page of the experiment.
    pub fn query(&self) -> String {
        form_urlencoded::Serializer::new(String::new())
            .append_pair("experiments", self.full.experiment.id.as_str())
            .extend_pairs(self.options.parameters())
            .finish()
    }
}

/// Compares the runs of an experiment so far; `None` while there are no results.
pub async fn load_comparison(
    state: &AppState,
    progress: &Progress,
    runs: &[Run],
    marks: &Marks,
    options: Options,
) -> Result<Option<Comparison>> {
    let compared: Vec<Run> = counted(runs).cloned().collect();
    if !progress.is_over() && !compared.iter().any(Run::counts) {
        return Ok(None);
    }
    load::from_runs(state, compared, marks.clone(), options).await.map(Some)
}

/// Returns the marks of the targets in its plan, so that colours do not change as results arrive.
async fn marks(state: &AppState, full: &ExperimentWithRuns) -> Result<Marks> {
    let targets: Vec<&str> = full.experiment.plan.targets.iter().map(String::as_str).collect();
    Ok(crate::catalog::store::marks(&state.db.read, &targets).await?)
}
