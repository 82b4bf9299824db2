//! `brewbench check`

use std::{path::PathBuf, process::ExitCode};

use brewbench::{
    maintenance::integrity_check::{self, Findings},
    web::format::plural,
};
use clap::Args;

use super::table::plain;

/// Check the database of a data folder. Its server may keep running.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes:\n  0  no problems found\n  1  problems found, or the database cannot be read")]
pub struct Check {
    /// The data folder
    #[arg(long, env = "BREWBENCH_DATA")]
    data: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Check {
    /// Runs the command.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let Self { data, json } = self;
        let found = integrity_check::of_folder(&data).await?;
        if json {
            println!("{}", serde_json::to_string_pretty(&found)?);
        } else {
            print!("{}", text(&found));
        }
        Ok(if found.is_well() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}

fn text(found: &Findings) -> String {
    let Findings { file, migration, runs, blobs, unfit, faults } = found;
    let mut lines: Vec<String> = unfit.iter().map(|why| format!("unusable: {}", plain(why))).collect();
    lines.extend(faults.iter().map(|fault| plain(fault)));
    if lines.is_empty() {
        let (runs, migration) = (plural(usize::try_from(*runs).unwrap_or_default(), "run"), migration.unwrap_or(0));
        lines.push(format!("ok: {runs}, {} checked, migration {migration}", plural(*blobs, "record")));
    }
    let file = file.display();
    lines.iter().flat_map(|line| [format!("{file}: {line}"), "\n".to_owned()]).collect()
}
