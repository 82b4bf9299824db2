//! `brewbench agent`, and what `serve --local-agent` and `demo` share with it.

use std::path::PathBuf;

use anyhow::Context;
use brewbench_agent::{
    daemon::{self, CGROUPS, Options},
    session::Accepts,
};
use clap::Args;
use url::Url;

use crate::signal;

/// Starts the agent of this machine.
#[derive(Debug, Args)]
pub struct Agent {
    /// The server's address; for https the CAs of this machine are trusted, or those in the file that `SSL_CERT_FILE` names
    #[arg(long, env = "BREWBENCH_SERVER")]
    server: Url,
    /// The key that `brewbench agent-key new NAME` printed
    #[arg(long, env = "BREWBENCH_AGENT_KEY", hide_env_values = true)]
    key: String,
    /// The folder of its results on their way and of its runs
    #[arg(long, env = "BREWBENCH_STATE", default_value = "/var/lib/brewbench-agent")]
    state: PathBuf,
    #[command(flatten)]
    tools: Tools,
}

/// What an agent works with, wherever it lives.
#[derive(Clone, Debug, Args)]
pub struct Tools {
    /// The folder of the target manifests (*.toml) [default: targets/ beside this program]
    #[arg(long, env = "BREWBENCH_MANIFESTS")]
    manifests: Option<PathBuf>,
    /// k6 [default: the one in PATH]
    #[arg(long, env = "BREWBENCH_K6")]
    k6: Option<PathBuf>,
    /// Run scripts that did not come with brewbench, too
    #[arg(long)]
    any_scenario: bool,
}

impl Tools {
    /// Everything that an agent is told.
    pub fn options(self, server: Url, key: String, state: PathBuf) -> anyhow::Result<Options> {
        let Self { manifests, k6, any_scenario } = self;
        let beside = || -> anyhow::Result<PathBuf> {
            let program = std::env::current_exe().context("this program's own place is not known")?;
            Ok(program.with_file_name("targets"))
        };
        let targets = manifests.map_or_else(beside, Ok)?;
        let accepts = if any_scenario { Accepts::AnyScenario } else { Accepts::BundledScenarios };
        Ok(Options { server, key, state, targets, k6, accepts, cgroups: CGROUPS.into() })
    }
}

impl Agent {
    /// Lives until it is told to end.
    pub async fn run(self) -> anyhow::Result<()> {
        let Self { server, key, state, tools } = self;
        daemon::run(tools.options(server, key, state)?, signal::end()).await
    }
}
