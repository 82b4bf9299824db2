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

/// Fewest characters of a shortened id: a mistyped name must not become a run.
const FEWEST: usize = 8;

/// Finds the full id of a run from its last characters, as lists show it.
pub async fn full_id(connection: &Connection, id: &str) -> anyhow::Result<RunId> {
    run_of(connection, id).await?.with_context(|| none("runs", id))
}

/// Finds the full id of an experiment from its last characters, or of the newest one from `last`.
pub async fn experiment_id(connection: &Connection, id: &str) -> anyhow::Result<ExperimentId> {
    experiment_of(connection, id).await?.with_context(|| none("experiments", id))
}

/// Finds the full id of an experiment or a run.
pub async fn id_of_either(connection: &Connection, id: &str) -> anyhow::Result<String> {
    match (experiment_of(connection, id).await?, run_of(connection, id).await?) {
        (Some(experiment), None) => Ok(experiment.to_string()),
        (None, Some(run)) => Ok(run.to_string()),
        (None, None) => bail!(none("experiments and runs", id)),
        (Some(_), Some(_)) => bail!(several("experiments and runs", id)),
    }
}

async fn run_of(connection: &Connection, id: &str) -> anyhow::Result<Option<RunId>> {
    if id.len() == 36 {
        return Ok(Some(id.to_owned().into()));
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    only("runs", id, list.runs.into_iter().map(|run| run.id), RunId::as_str)
}

async fn experiment_of(connection: &Connection, id: &str) -> anyhow::Result<Option<ExperimentId>> {
    if id.len() == 36 {
        return Ok(Some(id.to_owned().into()));
    }
    let limit = if id == LAST { "1" } else { "200" };
    let request = connection.client.request(Method::GET, "api/v1/experiments").query(&[("limit", limit)]);
    let list: ExperimentList = connection.client.json(request).await?;
    let mut known = list.experiments.into_iter().map(|info| info.experiment.id);
    if id == LAST {
        return known.next().context("there is no experiment yet").map(Some);
    }
    only("experiments", id, known, ExperimentId::as_str)
}

/// Returns the only id that ends so.
fn only<I>(what: &str, end: &str, ids: impl Iterator<Item = I>, text: fn(&I) -> &str) -> anyhow::Result<Option<I>> {
    if end.len() < FEWEST {
        return Ok(None);
    }
    let mut found = ids.filter(|id| text(id).ends_with(end));
    match (found.next(), found.next()) {
        (found, None) => Ok(found),
        _ => bail!(several(what, end)),
    }
}

fn none(what: &str, end: &str) -> String {
    if end.len() < FEWEST {
        return format!("{end:?} is no id: give at least its last {FEWEST} characters");
    }
    format!("none of the newest {what} has an id that ends with {end:?}; give the full id")
}

fn several(what: &str, end: &str) -> String {
    format!("several {what} have ids that end with {end:?}; give more characters")
}
