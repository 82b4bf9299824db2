//! `brewbench restore`

use std::path::PathBuf;

use clap::Args;

use super::files;
use crate::{
    maintenance::restore::{Restored, restore},
    web::format::plural,
};

/// Puts a backup in the place of a data folder's database. The server of the folder must not run.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup
    file: PathBuf,
    /// The data folder; what is there is kept under another name
    #[arg(long, env = "BREWBENCH_DATA")]
    data: PathBuf,
}

impl Restore {
    /// Does what was asked for.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { file, data } = self;
        files::regular(&file)?;
        let Restored { aside, runs, faults } = restore(&file, &data).await?;
        let runs = plural(usize::try_from(runs).unwrap_or_default(), "run");
        eprintln!("{} has the {runs} of {} now", data.display(), file.display());
        if let Some(aside) = aside {
            eprintln!("what was there before is {}", aside.display());
        }
        for fault in faults {
            eprintln!("not as it should be: {fault}");
        }
        Ok(())
    }
}
