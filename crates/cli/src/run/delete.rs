//! `brewbench run delete`, `run undelete` and `run cancel`

use anyhow::bail;
use brewbench::runs::model::RunList;
use clap::Args;
use reqwest::Method;

use crate::{
    connection::encoded,
    run::which::{ManyRuns, full_id},
    table,
};

/// Delete runs.
#[derive(Debug, Args)]
pub struct Delete {
    #[command(flatten)]
    many: ManyRuns,
    /// Skip the confirmation
    #[arg(long)]
    yes: bool,
}

impl Delete {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { many: ManyRuns { common, ids }, yes } = self;
        let connection = common.connect()?;
        if !yes {
            eprint!(
                "Delete {} runs and their results? `run undelete` restores them within 10 minutes. [y/N] ",
                ids.len()
            );
            let mut answer = String::new();
            std::io::stdin().read_line(&mut answer)?;
            if !matches!(answer.trim(), "y" | "Y" | "yes") {
                bail!("not confirmed; nothing was deleted");
            }
        }
        for id in &ids {
            let id = full_id(&connection, id).await?;
            connection.client.delete(&format!("api/v1/runs/{id}")).await?;
            eprintln!("deleted {id}");
        }
        Ok(())
    }
}

impl ManyRuns {
    /// Cancels the runs.
    pub async fn cancel(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let mut runs = Vec::new();
        for id in &self.ids {
            let id = full_id(&connection, id).await?;
            let request = connection.client.request(Method::POST, &format!("api/v1/runs/{id}/cancel"));
            let list: RunList = connection.client.json(request).await?;
            runs.extend(list.runs);
        }
        self.common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }

    /// Restores the deleted runs.
    pub async fn undelete(self) -> anyhow::Result<()> {
        let connection = self.common.connect()?;
        let mut runs = Vec::new();
        for id in &self.ids {
            let list: RunList = connection.client.post(&format!("api/v1/runs/{}/undelete", encoded(id)), &()).await?;
            runs.extend(list.runs);
        }
        self.common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }
}
