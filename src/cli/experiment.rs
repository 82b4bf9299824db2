//! `brewbench experiment …`

use std::process::ExitCode;

use clap::Subcommand;

use super::{
    Common, compare, duration,
    table::{self, Align, cut, table},
};
use crate::experiments::{ExperimentInfo, ExperimentList, ExperimentWithRuns, told::asked};

/// Commands about experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
    /// List experiments, newest first, each with its verdict in one line
    List {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// Only experiments submitted before this one
        #[arg(long, value_name = "ID")]
        before: Option<String>,
        /// At most so many
        #[arg(long, default_value_t = 20)]
        limit: u32,
    },
    /// Show an experiment: its progress, its runs and their comparison
    Show {
        /// Which server, and how to print
        #[command(flatten)]
        common: Common,
        /// The experiment's id
        id: String,
    },
}

impl Experiment {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::List { common, before, limit } => list(&common, before, limit).await?,
            Self::Show { common, id } => show(&common, &id).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn list(common: &Common, before: Option<String>, limit: u32) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let mut query = vec![("limit", limit.to_string())];
    query.extend(before.map(|id| ("before", id)));
    let request = connection.client.request(reqwest::Method::GET, "api/v1/experiments").query(&query);
    let list: ExperimentList = connection.client.json(request).await?;
    common.print(&list, |list| rows(&list.experiments))
}

fn rows(experiments: &[ExperimentInfo]) -> String {
    if experiments.is_empty() {
        return "no experiments yet; `brewbench run new` submits one\n".to_owned();
    }
    let head = [("id", Align::Left), ("name", Align::Left), ("runs", Align::Right), ("verdict", Align::Left)];
    let row = |info: &ExperimentInfo| {
        let ended = format!("{}/{}", info.progress.ended, info.progress.total);
        vec![info.experiment.id.clone(), cut(&info.experiment.name, 30), ended, cut(&info.verdict, 60)]
    };
    table(&head, &experiments.iter().map(row).collect::<Vec<_>>())
}

async fn show(common: &Common, id: &str) -> anyhow::Result<()> {
    let connection = common.connect()?;
    let whole: ExperimentWithRuns = connection.client.get(&format!("api/v1/experiments/{id}")).await?;
    let ids: Vec<_> = whole.runs.iter().map(|run| run.id.clone()).collect();
    let comparison = compare::fetch(&connection.client, &ids).await?;
    common.print(&whole, |whole| {
        let progress = &whole.progress;
        let left = progress.left_s.filter(|left| *left > 0.0);
        let left = left.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
        let name = table::plain(&whole.experiment.name);
        let asked = table::plain(&asked(&whole.experiment.plan).replace('\u{a0}', " "));
        let head =
            format!("{name}\n{asked}\n{} of {} runs ended{left}\n{}\n\n", progress.ended, progress.total, whole.url);
        format!("{head}{}\n{}", table::runs(&whole.runs), compare::text(&comparison))
    })
}
