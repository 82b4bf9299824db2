//! `brewbench agent restore`

use std::path::PathBuf;

use anyhow::Context;
use brewbench_agent::host::cpu_tuning::{self, Restored};
use clap::Args;

/// Restore the CPU settings that an agent with --cpu-tuning changed.
#[derive(Debug, Args)]
pub struct Restore {
    /// The agent's state folder
    #[arg(long, env = "BREWBENCH_STATE", default_value = "/var/lib/brewbench-agent")]
    state: PathBuf,
}

impl Restore {
    /// Restores the settings and prints each one.
    pub fn run(self) -> anyhow::Result<()> {
        let Self { state } = self;
        let Restored { back, left_alone } = cpu_tuning::restore(&state)
            .with_context(|| format!("some CPU settings recorded in {} were not restored", state.display()))?;
        for path in &back {
            eprintln!("restored {}", path.display());
        }
        for path in &left_alone {
            eprintln!("left unchanged, because it was set to another value since: {}", path.display());
        }
        if back.is_empty() && left_alone.is_empty() {
            eprintln!("nothing to restore");
        }
        Ok(())
    }
}
