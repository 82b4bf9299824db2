//! `brewbench baseline …`

use brewbench::{
    baselines::model::{Baseline as BaselineData, BaselineList, BaselineRuns, BaselineWithRuns},
    web::format::plural,
};
use clap::Subcommand;
use reqwest::Method;

use super::table::{self, cut, left, plain, table};
use crate::{
    common::Common,
    connection::{Connection, encoded},
    run::which::{experiment_id, full_id},
};

/// Manage baselines.
#[derive(Debug, Subcommand)]
pub enum Baseline {
    /// Create a baseline, or replace the runs of an existing one
    #[command(alias = "set")]
    New {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The baseline's name
        name: String,
        /// Run ids, or their last characters
        #[arg(required_unless_present = "experiment")]
        ids: Vec<String>,
        /// Add the valid and suspect runs of this experiment; repeatable
        #[arg(long, value_name = "ID")]
        experiment: Vec<String>,
    },
    /// List baselines
    List {
        /// Server and output format
        #[command(flatten)]
        common: Common,
    },
    /// Show a baseline and its runs
    Show {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The baseline's name
        name: String,
    },
    /// Delete a baseline; its runs are kept
    #[command(alias = "remove")]
    Delete {
        /// Server and output format
        #[command(flatten)]
        common: Common,
        /// The baseline's name
        name: String,
    },
}

impl Baseline {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        match self {
            Self::New { common, name, ids, experiment } => {
                let connection = common.connect()?;
                let runs = full_ids(&connection, &ids).await?;
                let mut experiments = Vec::new();
                for id in experiment {
                    experiments.push(experiment_id(&connection, &id).await?.to_string());
                }
                let body = BaselineRuns { runs, experiments };
                let request = connection.client.request(Method::PUT, &path(&name)).json(&body);
                let set: BaselineData = connection.client.json(request).await?;
                common.print(&set, |set| format!("{}\n", summary(set)))
            }
            Self::List { common } => common.show("api/v1/baselines", |list: &BaselineList| rows(&list.baselines)).await,
            Self::Show { common, name } => {
                let found: BaselineWithRuns = common.connect()?.client.get(&path(&name)).await?;
                common.print(&found, |found| format!("{}\n{}", summary(&found.baseline), table::runs(&found.runs)))
            }
            Self::Delete { common, name } => {
                common.connect()?.client.delete(&path(&name)).await?;
                eprintln!("removed baseline {}", plain(&name));
                Ok(())
            }
        }
    }
}

fn path(name: &str) -> String {
    format!("api/v1/baselines/{}", encoded(name))
}

async fn full_ids(connection: &Connection, ids: &[String]) -> anyhow::Result<Vec<String>> {
    let mut full = Vec::new();
    for id in ids {
        full.push(full_id(connection, id).await?.to_string());
    }
    Ok(full)
}

fn summary(baseline: &BaselineData) -> String {
    let deleted = Some(baseline.gone.len()).filter(|deleted| *deleted > 0);
    let deleted = deleted.map_or_else(String::new, |deleted| format!(", {deleted} deleted since"));
    let (name, by) = (plain(&baseline.name), plain(&baseline.set_by));
    format!("{name}: {}{deleted}; set by {by}", plural(baseline.runs.len(), "run"))
}

fn rows(baselines: &[BaselineData]) -> String {
    if baselines.is_empty() {
        return "no baselines yet; create one with: brewbench baseline new main ID ID …\n".to_owned();
    }
    let head = ["name", ">runs", ">deleted", "set by", ">set"];
    let now = brewbench_wire::now_ms();
    let row = |baseline: &BaselineData| {
        vec![
            cut(&baseline.name, 30),
            baseline.runs.len().to_string(),
            baseline.gone.len().to_string(),
            cut(&baseline.set_by, 20),
            format!("{} ago", left(now - baseline.set_at_ms)),
        ]
    };
    table(&head, baselines, row)
}
