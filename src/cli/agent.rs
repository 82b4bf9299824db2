//! `brewbench agent` and `brewbench agent doctor`, and what `serve --local-agent` and `demo` share with them.

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use brewbench_agent::{
    connection::{
        client::Trust,
        daemon,
        daemon::{CGROUPS, Options},
        session::Accepts,
    },
    doctor::{self, Rank, Sign},
    host::{cpu_tuning::SYSFS, idle_wait::Quiet},
    run::address_policy::Reach,
    sandbox::cage::{support, support::Landlock},
};
use clap::{Args, Subcommand};
use url::Url;

use super::{
    duration,
    table::{hanging, plain},
};
use crate::{
    app::{logs::Log, signals},
    cli::common::TrustFlags,
};

/// Starts the agent of this machine.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Agent {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    #[command(flatten)]
    place: Place,
}

/// What else there is to do with an agent.
#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Look whether this machine is fit for an agent: what is in the way, and what to do about it. Ends with 1 if no run
    /// could be done
    Doctor(Doctor),
}

/// Looks at this machine.
#[derive(Debug, Args)]
struct Doctor {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Where an agent lives and whom it works for.
#[derive(Debug, Args)]
struct Place {
    /// The server's address
    #[arg(long, env = "BREWBENCH_SERVER", required = true)]
    server: Option<Url>,
    /// The one-time key that `brewbench agent-key new NAME` printed: needed at the first start, at which the agent makes
    /// itself a key of its own
    #[arg(long, env = "BREWBENCH_AGENT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// The folder of its results on their way and of its runs
    #[arg(long, env = "BREWBENCH_STATE", default_value = "/var/lib/brewbench-agent")]
    state: PathBuf,
    /// How the log is written
    #[arg(long, env = "BREWBENCH_LOG", value_enum, default_value_t)]
    log: Log,
    #[command(flatten)]
    trust: TrustFlags,
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
    #[command(flatten)]
    scenarios: Scenarios,
    /// CPU time that others may use when a load begins, cores
    #[arg(long, value_name = "CORES", env = "BREWBENCH_QUIET_LIMIT", default_value_t = Quiet::default().limit_cores,
        value_parser = cores)]
    quiet_limit: f64,
    /// How long a run waits for that at most, 0s for not at all [default: 10s, in the demo 1s]
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_QUIET_WAIT", value_parser = duration::seconds)]
    quiet_wait: Option<f64>,
    /// Governor `performance` and no turbo while a run lasts; afterwards everything is as it was, also if the agent is
    /// killed
    #[arg(long)]
    steady_cpu: bool,
    /// Let targets listen on this address of the machine in runs whose load comes from other agents [default: no such runs]
    #[arg(long, value_name = "ADDRESS", env = "BREWBENCH_LOAD_ADDRESS", value_parser = load_address)]
    load_address: Option<IpAddr>,
    /// Load targets of other agents at any address, and not only at private ones
    #[arg(long)]
    load_anywhere: bool,
    /// Where devices are shown
    #[arg(long, hide = true, default_value = SYSFS)]
    sysfs: PathBuf,
}

/// Whose scripts an agent runs.
#[derive(Clone, Copy, Debug, Args)]
struct Scenarios {
    /// Run scripts that did not come with brewbench, too
    #[arg(long)]
    any_scenario: bool,
    /// Run them also where the kernel can't keep them from the agent's files
    #[arg(long, requires = "any_scenario")]
    unsafe_scenarios: bool,
}

impl Scenarios {
    fn accepts(self, state: &Path) -> anyhow::Result<Accepts> {
        if !self.any_scenario {
            return Ok(Accepts::BundledScenarios);
        }
        match support::what_scripts_could_do(Landlock::here(), state) {
            Some(why) if !self.unsafe_scenarios => {
                bail!("--any-scenario: {why}; --unsafe-scenarios runs them anyway")
            }
            _ => Ok(Accepts::AnyScenario),
        }
    }
}

/// A number of cores from text.
fn cores(text: &str) -> Result<f64, String> {
    let cores: f64 = text.parse().map_err(|_| "write it as 0.25 or 2".to_owned())?;
    if cores.is_finite() && cores > 0.0 { Ok(cores) } else { Err("it must be more than 0".to_owned()) }
}

/// One address, of which others know that it is this machine.
fn load_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| "write an address of this machine, such as 10.0.0.5".to_owned())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err("name the one address that the other agents reach this machine at".to_owned());
    }
    Ok(address)
}

impl Tools {
    /// Everything that an agent is told.
    pub fn options(self, server: Url, key: Option<String>, state: PathBuf) -> anyhow::Result<Options> {
        let Self { manifests, k6, scenarios, quiet_limit, quiet_wait, steady_cpu, .. } = self;
        let Self { load_address, load_anywhere, sysfs, .. } = self;
        let beside = || -> anyhow::Result<PathBuf> {
            let program = std::env::current_exe().context("this program's own place is not known")?;
            Ok(program.with_file_name("targets"))
        };
        let targets = manifests.map_or_else(beside, Ok)?;
        let accepts = scenarios.accepts(&state)?;
        let longest = quiet_wait.map_or(Quiet::default().longest, Duration::from_secs_f64);
        let quiet = Quiet { limit_cores: quiet_limit, longest };
        let steady = steady_cpu.then_some(sysfs);
        // Of a server within this machine; who dials further says whom to trust.
        let trust = Trust::default();
        let reach = if load_anywhere { Reach::Anywhere } else { Reach::Private };
        let cgroups = CGROUPS.into();
        Ok(Options {
            server,
            trust,
            key,
            state,
            targets,
            engine: k6,
            accepts,
            cgroups,
            quiet,
            steady,
            load_address,
            reach,
        })
    }

    /// For somebody who sits and waits: a machine that is not quiet is waited for no longer than a second, unless it was
    /// said how long.
    #[must_use]
    pub fn hurried(self) -> Self {
        Self { quiet_wait: self.quiet_wait.or(Some(1.0)), ..self }
    }
}

impl Place {
    fn options(self) -> anyhow::Result<Options> {
        let Self { server, key, state, trust, log: _, tools } = self;
        let options = tools.options(server.context("which server? Name it with --server")?, key, state)?;
        Ok(Options { trust: trust.into(), ..options })
    }
}

impl Agent {
    /// How the log is to be written.
    pub fn log(&self) -> Log {
        self.place.log
    }

    /// Lives until it is told to end, or looks whether it could.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(AgentCommand::Doctor(doctor)) = self.command {
            return doctor.run().await;
        }
        daemon::run(self.place.options()?, signals::end()).await?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Doctor {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let signs = doctor::examine(&self.place.options()?).await;
        if self.json {
            println!("{}", serde_json::to_string_pretty(&signs)?);
        } else {
            print!("{}", told(&signs));
        }
        Ok(if doctor::worst(&signs) == Rank::Bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// A line for what was seen, and one for what to do.
fn told(signs: &[Sign]) -> String {
    const INDENT: usize = 26;
    let line = |sign: &Sign| {
        let seen = hanging(&plain(&sign.seen), INDENT);
        let remedy = sign
            .remedy
            .as_deref()
            .map_or(String::new(), |remedy| format!("{:INDENT$}{}\n", "", hanging(&format!("→ {remedy}"), INDENT)));
        format!("{:<9} {:<15} {seen}\n{remedy}", sign.rank.as_str(), sign.what)
    };
    let verdict = match doctor::worst(signs) {
        Rank::Good => "this machine is fit for an agent\n",
        Rank::Doubtful => "an agent can work here, but something will speak against its figures\n",
        Rank::Bad => "an agent can't work here yet\n",
    };
    signs.iter().map(line).chain([verdict.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_for_load_is_one_that_others_reach() {
        assert_eq!(load_address("10.0.0.5"), Ok(IpAddr::from([10, 0, 0, 5])));
        for bad in ["", "eth0", "10.0.0.5:80", "0.0.0.0", "::", "224.0.0.1"] {
            assert!(load_address(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn cores_are_a_number_above_nothing() {
        assert_eq!(cores("0.25"), Ok(0.25));
        for bad in ["", "0", "-1", "nan", "inf", "some"] {
            assert!(cores(bad).is_err(), "{bad:?}");
        }
    }
}
