//! Arguments that select runs.

use anyhow::bail;
use brewbench::{app::ids::RunId, runs::model::RunList};
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

/// Finds the full id of a run from its last characters, as lists show it.
pub async fn full_id(connection: &Connection, id: &str) -> anyhow::Result<RunId> {
    if id.len() == 36 {
        return Ok(id.to_owned().into());
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    let mut found = list.runs.into_iter().filter(|run| run.id.as_str().ends_with(id)).map(|run| run.id);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("none of the last 1000 runs has an id that ends with {id:?}; give the full id"),
        (Some(_), Some(_)) => bail!("several runs have ids that end with {id:?}; give more characters"),
    }
}
