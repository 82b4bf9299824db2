//! `brewbench demo`: server, agent and a finished comparison in one process, without configuration. Published results
//! are imported first, so that there is something to look at while the demo measures.

mod containers;
mod sample;

use std::{iter, net::SocketAddr, path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use brewbench::{
    app::{
        config::Config,
        db::Db,
        ids::{ExperimentId, joined},
        local_admin,
        server::Server,
        signals,
        state::Events,
    },
    auth::caller::Caller,
    catalog::{
        self,
        model::{MachineSize, SizeList, size_name},
    },
    experiments::{model::ExperimentWithRuns, plan::Plan},
    fleet::model::{About, AgentList},
    runs::{load::LoadBody, model::Run},
};
use brewbench_agent::connection::daemon::Options;
use brewbench_io::client::Client;
use brewbench_wire::{engine::EngineKind, scenarios};
use clap::Args;
use serde::Serialize;
use tokio::time::{Duration, timeout};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use crate::{agent::Tools, compare, duration, exit_code::judge_runs, progress, serve::with_agent};

const AGENT: &str = "local";
const DEFAULT_TARGETS: [&str; 2] = ["rust-hyper", "go-nethttp"];
const DEFAULT_PORT: u16 = 8377;
/// Longest time for the agent to find its tools and connect.
const AGENT_START: Duration = Duration::from_secs(30);

/// Try brewbench: server, agent and a finished comparison in one process.
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Demo {
    /// Name of a target; repeatable [default: rust-hyper and go-nethttp]
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Then compare rust-hyper with itself in a container [default: without --target, if there is a container engine]
    #[arg(long)]
    containers: bool,
    /// Name of a machine size, or its short form, like 2/4GiB; repeatable [default: the smallest that can be
    /// loaded to its limit]
    #[arg(long = "size", value_name = "SIZE")]
    sizes: Vec<String>,
    /// Name of a scenario
    #[arg(long, default_value = "hash")]
    scenario: String,
    /// Virtual users
    #[arg(long, default_value_t = 10)]
    vus: u32,
    /// Measured time of each run
    #[arg(long, default_value = "6s", value_parser = duration::seconds)]
    duration: f64,
    /// Warm-up before each run
    #[arg(long, default_value = "2s", value_parser = duration::seconds)]
    warm_up: f64,
    /// Runs of each target at each size
    #[arg(long, default_value_t = 8)]
    repeat: u32,
    /// Folder of the database
    #[arg(long, env = "BREWBENCH_DATA", default_value = "data")]
    data: PathBuf,
    /// Address to listen on [default: 127.0.0.1:8377; a free port with --once]
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Exit when the comparison is finished, instead of serving until Ctrl-C
    #[arg(long)]
    once: bool,
    /// Print the runs as one JSON document on stdout
    #[arg(long)]
    json: bool,
    /// Also print the logs of server and agent
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    tools: Tools,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct Document {
    #[serde(flatten)]
    measured: FinishedExperiment,
    /// The same of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    container: Option<FinishedExperiment>,
}

/// An experiment that has ended.
#[derive(Debug, Serialize)]
struct FinishedExperiment {
    /// Id of the experiment.
    experiment: ExperimentId,
    /// Its page.
    url: String,
    /// All its runs.
    runs: Vec<Run>,
}

impl Demo {
    /// Returns the level of the logs: they would hide the progress.
    pub fn log_level(&self) -> LevelFilter {
        if self.verbose { LevelFilter::INFO } else { LevelFilter::WARN }
    }

    /// Runs the demo.
    pub async fn run(self) -> anyhow::Result<ExitCode> {
        let port = if self.once { 0 } else { DEFAULT_PORT };
        let listen = self.listen.unwrap_or_else(|| SocketAddr::from(([127, 0, 0, 1], port)));
        let shutdown = signals::end();
        let server = Server::start(Config::new(listen, &self.data), CancellationToken::new()).await?;
        let token = local_admin::demo_token(&server.state.db).await?;
        let key = local_admin::local_agent_key(&server.state.db, AGENT).await?;
        let invite = if self.once { None } else { Some(local_admin::link(&server.state).await?) };
        let state = self.data.join("agent");
        let mut options = self.tools.clone().hurried().profiling().options(server.local_url(), Some(key), state)?;
        let has_container = self.offer_container(&mut options).await?;
        let client = Client::new(&server.local_url(), Some(token.clone()))?;
        let (events, db) = (server.state.events.clone(), server.state.db.clone());
        let site = server.state.public_url.clone();
        if let Some(link) = invite {
            eprintln!("dashboard: {site}\nregister:  {link}");
            eprintln!("commands:  export BREWBENCH_URL={site} BREWBENCH_TOKEN={token}");
        }
        let serving = tokio::spawn(with_agent(server, options, shutdown.clone()));

        let outcome = tokio::select! {
            outcome = self.measure(has_container, &client, events, &db) => outcome,
            () = shutdown.cancelled() => Err(anyhow::anyhow!("stopped")),
        };
        if outcome.is_err() || self.once {
            shutdown.cancel();
        } else {
            eprintln!("serving {site} until Ctrl-C");
        }
        // An error of the server or agent is the cause of one of the demo: report it first.
        serving.await.context("the server task failed")??;
        outcome
    }

    /// Returns the load generator: for bundled scenarios the native one, which is not the bottleneck on a small machine.
    fn engine(&self) -> EngineKind {
        let is_bundled = scenarios::bundled().iter().any(|scenario| scenario.name == self.scenario);
        if is_bundled { EngineKind::Native } else { EngineKind::K6 }
    }

    /// Returns whether the agent also offers a container.
    async fn offer_container(&self, options: &mut Options) -> anyhow::Result<bool> {
        let is_wanted = self.containers || self.targets.is_empty();
        Ok(is_wanted && containers::offer(options, &self.data.join("targets"), self.containers).await?)
    }

    async fn measure(&self, has_container: bool, client: &Client, events: Events, db: &Db) -> anyhow::Result<ExitCode> {
        let about = agent(client, events).await?;
        // After the agent has connected, so that its targets get the first colours.
        if !self.once {
            sample::import(client).await?;
        }
        let sizes = if self.sizes.is_empty() {
            vec![default_size(client, db, &about, self.engine()).await?]
        } else {
            self.sizes.clone()
        };
        let targets =
            if self.targets.is_empty() { DEFAULT_TARGETS.map(str::to_owned).to_vec() } else { self.targets.clone() };
        let measured = self.experiment(client, targets, sizes.clone()).await?;
        // An experiment of its own: with a container in it, the first one would compare different kinds.
        let container = if has_container {
            Some(self.experiment(client, containers::TARGETS.map(str::to_owned).to_vec(), sizes).await?)
        } else {
            None
        };
        let runs: Vec<Run> = iter::once(&measured).chain(&container).flat_map(|one| one.runs.clone()).collect();
        if self.json {
            println!("{}", serde_json::to_string(&Document { measured, container })?);
        }
        Ok(judge_runs(&runs))
    }

    /// Measures targets against each other, and prints the comparison.
    async fn experiment(
        &self,
        client: &Client,
        targets: Vec<String>,
        sizes: Vec<String>,
    ) -> anyhow::Result<FinishedExperiment> {
        let plan = Plan {
            name: Some(format!("demo: {}", targets.join(" and "))),
            targets,
            sizes,
            scenario: self.scenario.clone(),
            loads: vec![LoadBody::Vus { vus: self.vus, duration_s: self.duration }.try_into()?],
            warm_up_s: Some(self.warm_up),
            repetitions: self.repeat,
            agent: Some(AGENT.to_owned()),
            engine: Some(self.engine()),
            ..Plan::default()
        };
        let created: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
        let left =
            created.progress.remaining_s.map_or(String::new(), |left| format!(", about {}", duration::text(left)));
        eprintln!("measuring {}: {} runs{left}", plan.targets.join(" and "), created.runs.len());
        let ended = progress::wait(client, &created.experiment.id).await?;
        if !self.json {
            let ids: Vec<_> = ended.runs.iter().map(|run| run.id.clone()).collect();
            println!("\n{}", compare::text(&compare::fetch(client, &[("runs", joined(&ids))]).await?));
            if !self.once {
                println!("comparison: {}", ended.url);
            }
        }
        Ok(FinishedExperiment { experiment: ended.experiment.id, url: ended.url, runs: ended.runs })
    }
}

/// Waits until the agent has connected. Returns its description of the machine.
async fn agent(client: &Client, events: Events) -> anyhow::Result<About> {
    let connected = async {
        let mut joined = events.agents();
        loop {
            let list: AgentList = client.get("api/v1/agents").await?;
            let found = list.agents.into_iter().find(|agent| agent.connected && agent.name == AGENT);
            if let Some(about) = found.and_then(|agent| agent.about) {
                return anyhow::Ok(about);
            }
            joined.changed().await?;
        }
    };
    timeout(AGENT_START, connected).await.context("the agent did not connect within 30 s")?
}

/// Cores for the load generator per core of the target. For `hash`, k6 needs twice the CPU time of a bundled target:
/// 0.13 ms a request, against 0.06 to 0.07 ms. With fewer cores targets would wait for it and look equally fast.
fn cores_per_core(engine: EngineKind) -> f64 {
    match engine {
        EngineKind::K6 => 3.0,
        // A sixth of the time of k6.
        EngineKind::Native | EngineKind::Wrk => 0.5,
    }
}

/// The size that is added on a machine too small for the stored ones.
const SMALL: (f64, u64) = (0.25, 256 << 20);

/// Returns the smallest size that a load generator can load to its limit on this machine. Adds one if there is none.
async fn default_size(client: &Client, db: &Db, about: &About, engine: EngineKind) -> anyhow::Result<String> {
    let sizes: SizeList = client.get("api/v1/sizes").await?;
    // Counts physical cores: a hyperthread is less than a core, and the target does not share its cores.
    let cores = about.physical_cores.unwrap_or(about.cores);
    let fit = sizes.sizes.into_iter().filter(|size| leaves_room(size, cores, about.memory_bytes, engine));
    if let Some(smallest) = fit.min_by(|a, b| a.vcpus.total_cmp(&b.vcpus)) {
        return Ok(smallest.name);
    }
    let (vcpus, memory_bytes) = SMALL;
    let size = MachineSize { name: size_name(vcpus, memory_bytes, 1), vcpus, memory_bytes, replicas: 1 };
    if !leaves_room(&size, cores, about.memory_bytes, engine) {
        bail!("no machine size fits this machine; set --size, or add a size with `brewbench size new`")
    }
    let added = catalog::api::store_size(db, size, &Caller::owner()).await;
    Ok(added.with_context(|| format!("cannot add a size of {vcpus} vCPU"))?.name)
}

/// Whether a load generator has enough cores beside a target of this size. On a single core, every size passes.
fn leaves_room(size: &MachineSize, cores: u32, memory_bytes: u64, engine: EngineKind) -> bool {
    let rest = f64::from(cores) - size.vcpus.ceil();
    size.memory_bytes <= memory_bytes && (cores <= 1 || size.vcpus * cores_per_core(engine) <= rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_generator_gets_the_cores_that_it_needs() {
        let fits_with = |engine, cores, vcpus| {
            let size = MachineSize { name: String::new(), vcpus, memory_bytes: 1 << 30, replicas: 1 };
            leaves_room(&size, cores, 8 << 30, engine)
        };
        let fits = |cores, vcpus| fits_with(EngineKind::K6, cores, vcpus);
        assert!(fits(2, 0.25) && !fits(2, 0.5) && !fits(2, 1.0));
        assert!(fits(4, 1.0) && !fits(4, 2.0));
        assert!(fits(8, 2.0) && fits(1, 1.0));
        let fits = |cores, vcpus| fits_with(EngineKind::Native, cores, vcpus);
        assert!(fits(2, 1.0) && !fits(2, 2.0) && fits(4, 2.0));
    }
}
