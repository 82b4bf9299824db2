//! `brewbench backup`

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use reqwest::Method;
use serde::Serialize;

use crate::{
    cli::common::Common,
    maintenance::backup::{self, Draft, IfThere},
    web::format,
};

/// Copies a server's database into a file.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    common: Common,
    /// What to write; it has this name only once it is whole and on disk
    file: PathBuf,
    /// The server's data folder on this machine: its owner needs no login, and no server need run
    #[arg(long)]
    data: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    force: bool,
}

/// What was made.
#[derive(Debug, Serialize)]
struct Made {
    /// The file.
    file: PathBuf,
    /// Its length.
    bytes: u64,
}

impl Backup {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, file, data, force } = self;
        let there = if force { IfThere::Replace } else { IfThere::Refuse };
        let bytes = match data {
            Some(data) => backup::of_folder(&data, &file, there).await?,
            None => download(&common, Draft::beside(&file, there)?).await?,
        };
        common.print(&Made { file, bytes }, |made| {
            format!("{}: {}\n", made.file.display(), format::bytes(Some(made.bytes as f64)).text())
        })
    }
}

async fn download(common: &Common, mut draft: Draft) -> anyhow::Result<u64> {
    let client = common.connect()?.client;
    let mut response = client.send(client.request(Method::GET, "api/v1/backup")).await?;
    let (whole, mut come) = (response.content_length(), 0);
    while let Some(chunk) = response.chunk().await? {
        come += chunk.len() as u64;
        draft.write(&chunk)?;
    }
    if let Some(whole) = whole.filter(|whole| *whole != come) {
        bail!("the backup broke off: {come} bytes of {whole} came, and nothing was kept");
    }
    Ok(draft.finish()?)
}
