//! `brewbench export site`

use std::{fs, path::PathBuf};

use anyhow::Context;
use brewbench::{compare::view::Comparison, reports::site};
use clap::{Args, Subcommand};
use reqwest::Method;

use crate::{common::ServerFlags, run::which::experiment_id};

/// Export results for others.
#[derive(Debug, Subcommand)]
pub enum Export {
    /// Write the comparisons of experiments as a website of files, without the names of agents
    Site(Site),
}

/// Write the comparisons of experiments as a website of files, without the names of agents.
#[derive(Debug, Args)]
pub struct Site {
    #[command(flatten)]
    server: ServerFlags,
    /// Folder for `index.html` and a file for each experiment; other files in it stay
    folder: PathBuf,
    /// An experiment, `last` for the newest; repeatable, in the order of the list
    #[arg(long, value_name = "ID", required = true)]
    experiment: Vec<String>,
    /// Title of the website
    #[arg(long, default_value = "Benchmarks")]
    title: String,
}

impl Export {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self::Site(Site { server, folder, experiment, title }) = self;
        let connection = server.connect()?;
        let request = |id: &str, format| {
            let query = [("experiments", id), ("format", format), ("anonymous", "true")];
            connection.client.request(Method::GET, "api/v1/report").query(&query)
        };
        let mut files = Vec::new();
        let mut reports = Vec::new();
        for id in experiment {
            let id = experiment_id(&connection, &id).await?.to_string();
            let comparison: Comparison = connection.client.json(request(&id, "json")).await?;
            let page = connection.client.send(request(&id, "html")).await?.text().await?;
            files.push((format!("{id}.html"), page));
            reports.push((format!("{id}.html"), comparison));
        }
        files.push((
            "index.html".to_owned(),
            site::index(&title, &reports).map_err(|fault| anyhow::anyhow!("{fault}"))?,
        ));
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        for (name, text) in files {
            let file = folder.join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
        }
        eprintln!("wrote {}", folder.join("index.html").display());
        Ok(())
    }
}
