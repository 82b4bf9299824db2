//! `brewbench restore`

use std::path::PathBuf;

use brewbench::{
    maintenance::restore::{Restored, restore},
    web::format::plural,
};
use clap::Args;

use super::files;

/// Replace the database of a data folder with a backup. Stop the folder's server first.
#[derive(Debug, Args)]
pub struct Restore {
    /// The backup
    file: PathBuf,
    /// The data folder; its current database is kept under another name
    #[arg(long, env = "BREWBENCH_DATA")]
    data: PathBuf,
}

impl Restore {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { file, data } = self;
        files::regular(&file)?;
        let Restored { aside, runs, faults } = restore(&file, &data).await?;
        let runs = plural(usize::try_from(runs).unwrap_or_default(), "run");
        eprintln!("restored {runs} from {} into {}", file.display(), data.display());
        if let Some(aside) = aside {
            eprintln!("the previous database is kept as {}", aside.display());
        }
        for fault in faults {
            eprintln!("problem in the backup: {fault}");
        }
        Ok(())
    }
}
