//! `brewbench agent-restore`

use std::path::PathBuf;

use anyhow::Context;
use brewbench_agent::host::cpu_tuning::{self, Restored};
use clap::Args;

/// Puts back what an agent with --steady-cpu has changed.
#[derive(Debug, Args)]
pub struct AgentRestore {
    /// The agent's folder
    #[arg(long, env = "BREWBENCH_STATE", default_value = "/var/lib/brewbench-agent")]
    state: PathBuf,
}

impl AgentRestore {
    /// Puts it back, and says what it was.
    pub fn run(self) -> anyhow::Result<()> {
        let Self { state } = self;
        let Restored { back, left_alone } = cpu_tuning::restore(&state)
            .with_context(|| format!("what is noted in {} is not put back whole", state.display()))?;
        for path in &back {
            eprintln!("as it was before: {}", path.display());
        }
        for path in &left_alone {
            eprintln!("left as somebody else has set it: {}", path.display());
        }
        if back.is_empty() && left_alone.is_empty() {
            eprintln!("there was nothing to put back");
        }
        Ok(())
    }
}
