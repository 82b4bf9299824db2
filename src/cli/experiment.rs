//! `brewbench experiment …`

use std::process::ExitCode;

use clap::Subcommand;

use super::{Common, compare, duration, table};
use crate::experiments::ExperimentWithRuns;

/// Commands about experiments.
#[derive(Debug, Subcommand)]
pub enum Experiment {
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
        let Self::Show { common, id } = self;
        let connection = common.connect()?;
        let whole: ExperimentWithRuns = connection.client.get(&format!("api/v1/experiments/{id}")).await?;
        let ids: Vec<_> = whole.runs.iter().map(|run| run.id.clone()).collect();
        let comparison = compare::fetch(&connection.client, &ids).await?;
        common.print(&whole, |whole| {
            let progress = &whole.progress;
            let left = progress.left_s.filter(|left| *left > 0.0);
            let left = left.map_or(String::new(), |left| format!(", {} left", duration::text(left)));
            let name = table::plain(&whole.experiment.name);
            let head = format!("{name}\n{} of {} runs ended{left}\n{}\n\n", progress.ended, progress.total, whole.url);
            format!("{head}{}\n{}", table::runs(&whole.runs), compare::text(&comparison))
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
