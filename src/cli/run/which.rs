//! Flags that name runs.

use anyhow::bail;
use clap::Args;
use reqwest::Method;

use crate::{
    app::ids::RunId,
    cli::{common::Common, connection::Connection},
    runs::model::RunList,
};

/// A command about one run.
#[derive(Debug, Args)]
pub struct One {
    #[command(flatten)]
    pub(crate) common: Common,
    /// The run's id, or the end of it
    pub(crate) id: String,
}

/// A command about several runs.
#[derive(Debug, Args)]
pub struct Many {
    #[command(flatten)]
    pub(crate) common: Common,
    /// Ids of runs, or the ends of them
    #[arg(required = true)]
    pub(crate) ids: Vec<String>,
}

/// The full id of a run from its end, as lists show it.
pub async fn full_id(connection: &Connection, id: &str) -> anyhow::Result<RunId> {
    if id.len() == 36 {
        return Ok(id.to_owned().into());
    }
    let request = connection.client.request(Method::GET, "api/v1/runs").query(&[("limit", "1000")]);
    let list: RunList = connection.client.json(request).await?;
    let mut found = list.runs.into_iter().filter(|run| run.id.as_str().ends_with(id)).map(|run| run.id);
    match (found.next(), found.next()) {
        (Some(id), None) => Ok(id),
        (None, _) => bail!("no run of the last 1000 has an id that ends with {id:?}"),
        (Some(_), Some(_)) => bail!("several runs have ids that end with {id:?}; give more of it"),
    }
}
