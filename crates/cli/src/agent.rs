//! `brewbench agent` and its subcommands, and the agent flags of `serve --local-agent` and `demo`.

mod restore;

use std::{
    net::IpAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context, bail};
use brewbench::app::{logs::Log, signals};
use brewbench_agent::{
    connection::{
        daemon::{self, CGROUPS, Options},
        session::Accepts,
    },
    doctor::{self, Finding, Rank},
    engine::native::Native,
    host::{cpu_tuning::SYSFS, idle_wait::IdleWait},
    run::address_policy::AddressPolicy,
    sandbox::cage::support::{self, Landlock},
};
use brewbench_io::client::Trust;
use brewbench_wire::profile::ProfileSource;
use clap::{Args, Subcommand};
use url::Url;

use super::{
    duration,
    table::{hanging, plain},
};
use crate::{common::TrustFlags, program::GENERATE};

/// Start the agent on this machine.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Agent {
    #[command(subcommand)]
    command: Option<AgentCommand>,
    #[command(flatten)]
    place: AgentSetup,
}

/// Subcommands of `agent`.
#[derive(Debug, Subcommand)]
enum AgentCommand {
    /// Check whether this machine can be an agent, and suggest fixes. Without --server, checks only the machine. Exits
    /// with 1 if it cannot run anything
    Doctor(Box<Doctor>),
    /// Restore the CPU settings of an agent with --cpu-tuning that was killed
    Restore(restore::Restore),
}

/// Checks this machine.
#[derive(Debug, Args)]
struct Doctor {
    #[command(flatten)]
    place: AgentSetup,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The agent's server, state folder and tools.
#[derive(Debug, Args)]
struct AgentSetup {
    /// The server's address
    #[arg(long, env = "BREWBENCH_SERVER")]
    server: Option<Url>,
    /// One-time key printed by `brewbench agent-key new NAME`. Needed on the first start only: the agent replaces it
    /// with a key of its own
    #[arg(long, env = "BREWBENCH_AGENT_KEY", hide_env_values = true)]
    key: Option<String>,
    /// Folder for the agent's key and results that are not uploaded yet
    #[arg(long, env = "BREWBENCH_STATE", default_value = "/var/lib/brewbench-agent")]
    state: PathBuf,
    /// Log format
    #[arg(long, env = "BREWBENCH_LOG", value_enum, default_value_t)]
    log: Log,
    #[command(flatten)]
    trust: TrustFlags,
    #[command(flatten)]
    tools: Tools,
}

/// Flags of every agent, including one in the server's process.
#[derive(Clone, Debug, Args)]
pub struct Tools {
    /// Folder of the target manifests (*.toml) [default: targets/ beside this program]
    #[arg(long, env = "BREWBENCH_MANIFESTS")]
    manifests: Option<PathBuf>,
    /// Path to k6 [default: k6 in PATH; without one, only request lists run]
    #[arg(long, env = "BREWBENCH_K6")]
    k6: Option<PathBuf>,
    #[command(flatten)]
    scenarios: Scenarios,
    /// CPU cores that other processes may use when a load starts
    #[arg(long, value_name = "CORES", env = "BREWBENCH_IDLE_LIMIT", default_value_t = IdleWait::default().limit_cores,
        value_parser = cores)]
    idle_limit: f64,
    /// Longest wait for other processes to fall below that limit; 0s disables it [default: 10s, in the demo 1s]
    #[arg(long, value_name = "DURATION", env = "BREWBENCH_IDLE_TIMEOUT", value_parser = duration::seconds)]
    idle_timeout: Option<f64>,
    /// Set the `performance` governor and disable turbo during a run. Both are restored afterwards, even if the agent
    /// is killed
    #[arg(long, env = "BREWBENCH_CPU_TUNING")]
    cpu_tuning: bool,
    /// Address of this machine that targets listen on in distributed runs, where other agents generate the load
    /// [default: no distributed runs]
    #[arg(long, value_name = "ADDRESS", env = "BREWBENCH_LOAD_ADDRESS", value_parser = load_address)]
    load_address: Option<IpAddr>,
    /// Load targets of other agents at any address, not only at private ones
    #[arg(long, env = "BREWBENCH_ALLOW_ANY_ADDRESS")]
    allow_any_address: bool,
    /// Socket of the container engine, Docker or Podman, that starts targets with `[container]` [default: the only one
    /// found on this machine]
    #[arg(long, value_name = "SOCKET", env = "BREWBENCH_CONTAINER_ENGINE")]
    container_engine: Option<PathBuf>,
    /// Profilers that may attach to targets: pprof, perf, command, comma-separated [default: none]
    #[arg(long, value_name = "LIST", env = "BREWBENCH_PROFILERS", value_delimiter = ',')]
    profilers: Vec<ProfileSource>,
    /// Run targets with `[kubernetes]` in the cluster of this Pod, or of KUBECONFIG
    #[arg(long, env = "BREWBENCH_KUBERNETES")]
    kubernetes: bool,
    /// Namespace of these targets [default: that of the service account, or of the kubeconfig's context]
    #[arg(long, value_name = "NAMESPACE", env = "BREWBENCH_NAMESPACE", requires = "kubernetes")]
    namespace: Option<String>,
    /// File that allows load from Pods of the cluster, and describes them (TOML) [default: no such load]
    #[arg(long, value_name = "FILE", env = "BREWBENCH_GENERATORS", requires = "kubernetes")]
    generators: Option<PathBuf>,
    /// Where sysfs is mounted
    #[arg(long, hide = true, default_value = SYSFS)]
    sysfs: PathBuf,
}

/// The scripts that an agent runs.
#[derive(Clone, Copy, Debug, Args)]
struct Scenarios {
    /// Also run scripts that are not bundled with brewbench
    #[arg(long, env = "BREWBENCH_ANY_SCENARIO")]
    any_scenario: bool,
    /// Run them even if the kernel cannot keep them away from the agent's files
    #[arg(long, env = "BREWBENCH_UNSAFE_SCENARIOS", requires = "any_scenario")]
    unsafe_scenarios: bool,
}

impl Scenarios {
    fn accepts(self, state: &Path) -> anyhow::Result<Accepts> {
        if !self.any_scenario {
            return Ok(Accepts::BundledScenarios);
        }
        match support::script_risk(Landlock::detect(), state) {
            Some(why) if !self.unsafe_scenarios => {
                bail!("--any-scenario: {why}; --unsafe-scenarios runs them anyway")
            }
            _ => Ok(Accepts::AnyScenario),
        }
    }
}

/// Parses a number of cores.
fn cores(text: &str) -> Result<f64, String> {
    let cores: f64 = text.parse().map_err(|_| "write it as 0.25 or 2".to_owned())?;
    if cores.is_finite() && cores > 0.0 { Ok(cores) } else { Err("must be greater than 0".to_owned()) }
}

/// Parses the address at which other agents reach this machine.
fn load_address(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|_| "write an address of this machine, such as 10.0.0.5".to_owned())?;
    if address.is_unspecified() || address.is_multicast() {
        return Err("write the one address at which other agents reach this machine".to_owned());
    }
    Ok(address)
}

impl Tools {
    /// Returns the agent's options.
    pub fn options(self, server: Url, key: Option<String>, state: PathBuf) -> anyhow::Result<Options> {
        let Self { manifests, k6, scenarios, idle_limit, idle_timeout, cpu_tuning, .. } = self;
        let Self {
            load_address,
            allow_any_address,
            container_engine,
            mut profilers,
            kubernetes,
            namespace,
            generators,
            ..
        } = self;
        let sysfs = self.sysfs;
        profilers.sort_unstable();
        profilers.dedup();
        let beside = || -> anyhow::Result<PathBuf> {
            let program = std::env::current_exe().context("the path of this program is unknown")?;
            Ok(program.with_file_name("targets"))
        };
        let targets = manifests.map_or_else(beside, Ok)?;
        let accepts = scenarios.accepts(&state)?;
        let longest = idle_timeout.map_or(IdleWait::default().longest, Duration::from_secs_f64);
        let idle_wait = IdleWait { limit_cores: idle_limit, longest };
        let steady = cpu_tuning.then_some(sysfs);
        // Enough for a server on this machine; `Place::options` sets the trust for a remote one.
        let trust = Trust::default();
        let reach = if allow_any_address { AddressPolicy::Anywhere } else { AddressPolicy::Private };
        let cgroups = CGROUPS.into();
        Ok(Options {
            server,
            trust,
            key,
            state,
            targets,
            engine: k6,
            native: Some(native()?),
            accepts,
            cgroups,
            idle_wait,
            cpu_tuning: steady,
            load_address,
            reach,
            container_engine,
            profilers,
            kubernetes,
            namespace,
            generators,
        })
    }

    /// Lets an endpoint and perf profile targets unless `--profilers` is set: the demo shows what there is.
    #[must_use]
    pub fn profiling(self) -> Self {
        if self.profilers.is_empty() {
            return Self { profilers: vec![ProfileSource::Pprof, ProfileSource::Perf], ..self };
        }
        self
    }

    /// Waits at most one second for an idle machine unless `--idle-timeout` is set, because a user is watching.
    #[must_use]
    pub fn hurried(self) -> Self {
        Self { idle_timeout: self.idle_timeout.or(Some(1.0)), ..self }
    }
}

/// Returns this program as the native load generator.
fn native() -> anyhow::Result<Native> {
    let program = std::env::current_exe().context("the path of this program is unknown")?;
    Ok(Native { program, arguments: vec![GENERATE.to_owned()] })
}

impl AgentSetup {
    fn options(self) -> anyhow::Result<Options> {
        let Self { server, key, state, trust, log: _, tools } = self;
        let options = tools.options(server.context("no server given; set --server")?, key, state)?;
        Ok(Options { trust: trust.into(), ..options })
    }

    /// Returns the options for checks of the machine alone.
    fn without_server(self) -> anyhow::Result<Options> {
        Self { server: Some(Url::parse("http://localhost")?), ..self }.options()
    }
}

impl Agent {
    /// Returns the log format.
    pub fn log(&self) -> Log {
        self.place.log
    }

    /// Runs the agent until a signal ends it, or the doctor.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        match self.command {
            Some(AgentCommand::Doctor(doctor)) => return doctor.run().await,
            Some(AgentCommand::Restore(restore)) => restore.run()?,
            None => daemon::run(self.place.options()?, signals::end()).await?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl Doctor {
    async fn run(self) -> anyhow::Result<ExitCode> {
        let findings = match self.place.server {
            Some(_) => doctor::examine(&self.place.options()?).await,
            None => doctor::examine_machine(&self.place.without_server()?).await,
        };
        if self.json {
            println!("{}", serde_json::to_string_pretty(&findings)?);
        } else {
            print!("{}", describe(&findings));
        }
        Ok(if doctor::worst(&findings) == Rank::Bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

/// Returns the findings about a machine and a conclusion.
fn describe(findings: &[Finding]) -> String {
    let verdict = match doctor::worst(findings) {
        Rank::Good => "this machine is ready to be an agent\n",
        Rank::Doubtful => "this machine can be an agent, but its results will carry warnings\n",
        Rank::Bad => "this machine cannot be an agent yet\n",
    };
    format_findings(findings) + verdict
}

/// Returns each finding followed by its remedy.
pub(super) fn format_findings(findings: &[Finding]) -> String {
    const INDENT: usize = 26;
    let line = |finding: &Finding| {
        let observed = hanging(&plain(&finding.observed), INDENT);
        let remedy = finding
            .remedy
            .as_deref()
            .map_or(String::new(), |remedy| format!("{:INDENT$}{}\n", "", hanging(&format!("→ {remedy}"), INDENT)));
        format!("{:<9} {:<15} {observed}\n{remedy}", finding.rank.as_str(), finding.check)
    };
    findings.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_address_must_be_reachable_by_other_agents() {
        assert_eq!(load_address("10.0.0.5"), Ok(IpAddr::from([10, 0, 0, 5])));
        for bad in ["", "eth0", "10.0.0.5:80", "0.0.0.0", "::", "224.0.0.1"] {
            assert!(load_address(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn cores_must_be_a_positive_number() {
        assert_eq!(cores("0.25"), Ok(0.25));
        for bad in ["", "0", "-1", "nan", "inf", "some"] {
            assert!(cores(bad).is_err(), "{bad:?}");
        }
    }
}
