//! `brewbench backup`

use std::path::PathBuf;

use anyhow::bail;
use brewbench::{
    maintenance::backup::{self, Draft, IfExists},
    web::format,
};
use clap::Args;
use reqwest::Method;
use serde::Serialize;

use crate::common::Common;

/// Copy a server's database into a file.
#[derive(Debug, Args)]
pub struct Backup {
    #[command(flatten)]
    common: Common,
    /// The file to write; it appears under this name only once it is complete and on disk
    file: PathBuf,
    /// The data folder of a server on this machine; needs no login and no running server
    #[arg(long)]
    data: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// The written backup.
#[derive(Debug, Serialize)]
struct Written {
    /// Path of the backup.
    file: PathBuf,
    /// Its size.
    bytes: u64,
}

impl Backup {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { common, file, data, force } = self;
        let if_exists = if force { IfExists::Replace } else { IfExists::Refuse };
        let bytes = match data {
            Some(data) => backup::of_folder(&data, &file, if_exists).await?,
            None => download(&common, Draft::beside(&file, if_exists)?).await?,
        };
        common.print(&Written { file, bytes }, |written| {
            format!("{}: {}\n", written.file.display(), format::bytes(Some(written.bytes as f64)).text())
        })
    }
}

async fn download(common: &Common, mut draft: Draft) -> anyhow::Result<u64> {
    let client = common.connect()?.client;
    let mut response = client.send(client.request(Method::GET, "api/v1/backup")).await?;
    let (expected, mut received) = (response.content_length(), 0);
    while let Some(chunk) = response.chunk().await? {
        received += chunk.len() as u64;
        draft.write(&chunk)?;
    }
    if let Some(expected) = expected.filter(|expected| *expected != received) {
        bail!("the download ended early ({received} of {expected} bytes), so no file was written; try again");
    }
    Ok(draft.finish()?)
}
