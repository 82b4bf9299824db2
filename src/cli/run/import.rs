//! `brewbench run import`

use std::{fs, path::PathBuf};

use anyhow::Context;
use clap::Args;
use reqwest::Method;

use crate::{
    cli::{Common, table},
    runs::RunList,
};

/// `run import`
#[derive(Debug, Args)]
pub struct Import {
    #[command(flatten)]
    common: Common,
    /// Files with handleSummary data, --summary-export or the machine-readable summary
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Name of the target [default: the file's name without its ending]
    #[arg(long)]
    target: Option<String>,
    /// The target's version
    #[arg(long)]
    target_version: Option<String>,
    /// The machine size that it had
    #[arg(long)]
    size: Option<String>,
    /// What was run
    #[arg(long)]
    scenario: Option<String>,
}

impl Import {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, files, target, target_version, size, scenario } = self;
        let connection = common.connect()?;
        let mut runs = Vec::new();
        for (index, file) in files.iter().enumerate() {
            let bytes = fs::read(file).with_context(|| format!("{} can't be read", file.display()))?;
            let stem = || file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            // Several files for one named target are its repetitions.
            let repetition = if target.is_some() { index + 1 } else { 1 };
            let mut query =
                vec![("target", target.clone().unwrap_or_else(stem)), ("repetition", repetition.to_string())];
            for (name, value) in [("version", &target_version), ("size", &size), ("scenario", &scenario)] {
                query.extend(value.clone().map(|value| (name, value)));
            }
            let request = connection.client.request(Method::POST, "api/v1/runs/import").query(&query).body(bytes);
            let sent = connection.client.json::<RunList>(request).await;
            runs.extend(sent.with_context(|| format!("{} was not imported", file.display()))?.runs);
        }
        common.print(&RunList { runs }, |list| table::runs(&list.runs))
    }
}
