//! Arguments that select runs.

use anyhow::{Context, bail};
use brewbench::{
    app::ids::{ExperimentId, RunId},
    experiments::model::ExperimentList,
    runs::model::RunList,
};
use clap::Args;
use reqwest::Method;

use crate::{common::Common, connection::Connection};

/// Arguments of commands on one run.
#[derive(Debug, Args)]
pub struct OneRun {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The run's id, or its last characters
    pub(crate) id: String,
}

/// Arguments of commands on several runs.
#[derive(Debug, Args)]
pub struct ManyRuns {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Run ids, or their last characters
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
}

/// The newest experiment.
const LAST: &str = "last";

/// Finds the full id of a run from its last characters, as lists show it.
pub async fn full_id(connection: &Connection, id: &str) -> anyhow::Result<RunId> {
    if id.len() == 36 {
        return Ok(id.to_owned().into());
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    let found = list.runs.into_iter().map(|run| run.id).filter(|known| known.as_str().ends_with(id));
    only("runs", id, found)
}

/// Finds the full id of an experiment from its last characters, or of the newest one from `last`.
pub async fn experiment_id(connection: &Connection, id: &str) -> anyhow::Result<ExperimentId> {
    if id.len() == 36 {
        return Ok(id.to_owned().into());
    }
    let limit = if id == LAST { "1" } else { "200" };
    let request = connection.client.request(Method::GET, "api/v1/experiments").query(&[("limit", limit)]);
    let list: ExperimentList = connection.client.json(request).await?;
    let mut known = list.experiments.into_iter().map(|info| info.experiment.id);
    if id == LAST {
        return known.next().context("there is no experiment yet");
    }
    only("experiments", id, known.filter(|known| known.as_str().ends_with(id)))
}

/// Returns the only id that was found.
fn only<I>(what: &str, id: &str, mut found: impl Iterator<Item = I>) -> anyhow::Result<I> {
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("none of the newest {what} has an id that ends with {id:?}; give the full id"),
        (Some(_), Some(_)) => bail!("several {what} have ids that end with {id:?}; give more characters"),
    }
}
