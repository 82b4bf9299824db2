//! A server and an agent as users run them: separate processes that can be killed and restarted.

use std::{
    fs::{File, OpenOptions},
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail, ensure};
use brewbench::{
    app::{ids::ExperimentId, local_admin},
    auth::{
        model::Scope,
        users::{CreatedSecret, NewToken},
    },
    catalog::model::MachineSize,
    experiments::{model::ExperimentWithRuns, plan::Plan},
    fleet::model::{AgentList, NewAgentKey},
    runs::load::LoadBody,
};
use brewbench_io::client::{Client, Plain, Trust};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// The measured target.
const TARGET: &str = "rust-hyper";
/// Name of the agent.
pub const AGENT: &str = "rack";
const SIZE: &str = "0.5 vCPU / 256 MiB";

/// How long a process may take to start on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The program and its manifests.
#[derive(Clone, Debug)]
pub struct Programs {
    brewbench: PathBuf,
    manifests: PathBuf,
    /// Replaces the one in `PATH`.
    k6: Option<PathBuf>,
    /// Socket of the container engine.
    engine: Option<PathBuf>,
}

impl Programs {
    /// Finds the program in the parent folder of the manifests.
    pub fn beside(manifests: &Path) -> anyhow::Result<Self> {
        let manifests = manifests.canonicalize().with_context(|| format!("{} does not exist", manifests.display()))?;
        let brewbench = manifests.with_file_name("brewbench");
        ensure!(brewbench.is_file(), "{} does not exist", brewbench.display());
        Ok(Self { brewbench, manifests, k6: None, engine: None })
    }

    /// Uses another k6.
    pub fn with_k6(self, k6: PathBuf) -> Self {
        Self { k6: Some(k6), ..self }
    }

    /// Uses other manifests, with containers of this engine.
    pub fn with_engine(self, manifests: &Path, engine: PathBuf) -> Self {
        Self { manifests: manifests.to_owned(), engine: Some(engine), ..self }
    }

    /// Returns the folder of the manifests.
    pub fn manifests(&self) -> &Path {
        &self.manifests
    }

    /// Returns the path of the program.
    pub fn brewbench(&self) -> &Path {
        &self.brewbench
    }
}

/// Where server and agent run.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// Both on this machine.
    Here,
    /// The server at an address reachable from another network namespace, the agent in the namespace of this process.
    Apart(Ipv4Addr, u32),
}

/// A server with one agent.
#[derive(Debug)]
pub struct World {
    /// A client with an admin token.
    pub client: Client,
    /// The server's process.
    server: Child,
    agent: Child,
    programs: Programs,
    place: Place,
    address: SocketAddr,
    token: String,
    folder: TempDir,
}

/// The server or the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// `brewbench serve`.
    Server,
    /// `brewbench agent`.
    Agent,
}

impl World {
    /// Starts both and waits until the agent is connected.
    pub async fn start(programs: &Programs, place: Place) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let ip = match place {
            Place::Here => Ipv4Addr::LOCALHOST,
            Place::Apart(ip, _) => ip,
        };
        // The port must stay the same after a restart, so it is chosen here.
        let address = TcpListener::bind((ip, 0))?.local_addr()?;
        let server = serve(programs, folder.path(), address)?;
        let url: reqwest::Url = format!("http://{address}/").parse()?;
        let trust = Trust { plain: Plain::Anywhere, ..Trust::default() };
        wait_for_server(&Client::with_trust(&url, None, &trust)?).await?;
        let request =
            NewToken { name: "chaos".to_owned(), scope: Scope::Admin, expires_in_days: None, never_expires: false };
        let token = local_admin::token(&folder.path().join("data"), &request).await?.secret;
        let client = Client::with_trust(&url, Some(token.clone()), &trust)?;
        let size = json!({"name": SIZE, "vcpus": 0.5, "memory_bytes": 256 << 20});
        let _: MachineSize = client.post("api/v1/sizes", &size).await?;
        let key: CreatedSecret = client.post("api/v1/agent-keys", &NewAgentKey { name: AGENT.to_owned() }).await?;
        let agent = start_agent(programs, folder.path(), address, place, Some(&key.secret))?;
        let world = Self { client, server, agent, programs: programs.clone(), place, address, token, folder };
        world.until_connected().await?;
        Ok(world)
    }

    /// Returns the agent's state folder.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// Returns the state folder of another agent.
    pub fn state_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns the path of the program.
    pub fn program(&self) -> &Path {
        self.programs.brewbench()
    }

    /// Starts a backup of the database through the server.
    pub fn backup(&self, file: &Path) -> anyhow::Result<Child> {
        let mut command = Command::new(self.program());
        command.arg("backup").arg(file).env("BREWBENCH_URL", format!("http://{}", self.address));
        command.env("BREWBENCH_TOKEN", &self.token).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// Returns the server's log so far.
    pub fn server_log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("server.log"))?)
    }

    /// Kills one of them and waits for its end.
    pub async fn kill(&mut self, half: Half) -> anyhow::Result<()> {
        Ok(self.child(half).kill().await?)
    }

    /// Restarts one of them and returns when. A server responds when this returns.
    pub async fn restart(&mut self, half: Half) -> anyhow::Result<Instant> {
        let folder = self.folder.path();
        let child = match half {
            Half::Server => serve(&self.programs, folder, self.address)?,
            Half::Agent => start_agent(&self.programs, folder, self.address, self.place, None)?,
        };
        *self.child(half) = child;
        let back = Instant::now();
        if half == Half::Server {
            wait_for_server(&self.client).await?;
        }
        Ok(back)
    }

    /// Returns the process id of one of them.
    pub fn pid(&self, half: Half) -> anyhow::Result<u32> {
        let child = match half {
            Half::Server => &self.server,
            Half::Agent => &self.agent,
        };
        child.id().context("it has ended")
    }

    fn child(&mut self, half: Half) -> &mut Child {
        match half {
            Half::Server => &mut self.server,
            Half::Agent => &mut self.agent,
        }
    }

    /// Submits one cell with `repetitions` repetitions and two retries each.
    pub async fn submit(&self, repetitions: u32, warm_up_s: f64, duration_s: f64) -> anyhow::Result<ExperimentId> {
        self.submit_of(TARGET, SIZE, (repetitions, warm_up_s, duration_s)).await
    }

    /// Does the same for another target and size.
    pub async fn submit_of(
        &self,
        target: &str,
        size: &str,
        (repetitions, warm_up_s, duration_s): (u32, f64, f64),
    ) -> anyhow::Result<ExperimentId> {
        let plan = plan(repetitions, warm_up_s, duration_s)?;
        let plan = Plan { targets: vec![target.to_owned()], sizes: vec![size.to_owned()], ..plan };
        let created: ExperimentWithRuns = self.client.post("api/v1/experiments", &plan).await?;
        Ok(created.experiment.id)
    }

    /// Starts or restarts another agent beside the server whose targets accept load from other agents. Dropping the
    /// returned process kills it.
    pub async fn join(&self, name: &str, load_address: Ipv4Addr) -> anyhow::Result<Child> {
        let state = self.state_of(name);
        let mut command = Command::new(self.programs.brewbench());
        command.args(["agent", "--idle-timeout", "0s", "--insecure-http", "--load-address", &load_address.to_string()]);
        command.args(["--server", &format!("http://{}", self.address), "--manifests"]).arg(&self.programs.manifests);
        command.arg("--state").arg(&state);
        if !state.exists() {
            let key: CreatedSecret =
                self.client.post("api/v1/agent-keys", &NewAgentKey { name: name.to_owned() }).await?;
            command.env("BREWBENCH_AGENT_KEY", &key.secret);
        }
        let agent = spawn(command, &self.folder.path().join(format!("{name}.log")))?;
        self.wait_for_agent(name).await?;
        Ok(agent)
    }

    /// Submits one distributed run without retries: the target on one agent, the load from another.
    pub async fn submit_distributed(
        &self,
        host: &str,
        generator: &str,
        duration_s: f64,
    ) -> anyhow::Result<ExperimentId> {
        let apart =
            Plan { agent: Some(host.to_owned()), generators: vec![generator.to_owned()], ..plan(1, 0.5, duration_s)? };
        let created: ExperimentWithRuns = self.client.post("api/v1/experiments", &Plan { retries: 0, ..apart }).await?;
        Ok(created.experiment.id)
    }

    /// Returns an experiment in its current state.
    pub async fn experiment_with_runs(&self, experiment: &ExperimentId) -> anyhow::Result<ExperimentWithRuns> {
        Ok(self.client.get(&format!("api/v1/experiments/{experiment}")).await?)
    }

    /// Waits until the agent is connected.
    pub async fn until_connected(&self) -> anyhow::Result<()> {
        self.wait_for_agent(AGENT).await
    }

    async fn wait_for_agent(&self, name: &str) -> anyhow::Result<()> {
        let started = Instant::now();
        while started.elapsed() < PATIENCE {
            let list: AgentList = self.client.get("api/v1/agents").await?;
            if list.agents.iter().any(|agent| agent.name == name && agent.connected) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the agent {name} did not connect; see {}", self.folder.path().display())
    }
}

/// Returns a plan of one cell with `repetitions` repetitions and two retries each.
fn plan(repetitions: u32, warm_up_s: f64, duration_s: f64) -> anyhow::Result<Plan> {
    Ok(Plan {
        targets: vec![TARGET.to_owned()],
        sizes: vec![SIZE.to_owned()],
        scenario: "hash".to_owned(),
        loads: vec![LoadBody::Vus { vus: 2, duration_s }.try_into()?],
        warm_up_s: Some(warm_up_s),
        repetitions,
        retries: 2,
        ..Plan::default()
    })
}

async fn wait_for_server(client: &Client) -> anyhow::Result<()> {
    let started = Instant::now();
    loop {
        match client.send(client.request(reqwest::Method::GET, "login")).await {
            Ok(_) => return Ok(()),
            Err(fault) if started.elapsed() > PATIENCE => return Err(fault.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn serve(programs: &Programs, folder: &Path, address: SocketAddr) -> anyhow::Result<Child> {
    let mut command = Command::new(programs.brewbench());
    command.args(["serve", "--log", "json", "--listen", &address.to_string(), "--data"]).arg(folder.join("data"));
    spawn(command, &folder.join("server.log"))
}

fn start_agent(
    programs: &Programs,
    folder: &Path,
    address: SocketAddr,
    place: Place,
    key: Option<&str>,
) -> anyhow::Result<Child> {
    let mut command = match place {
        Place::Here => Command::new(programs.brewbench()),
        Place::Apart(_, holder) => {
            let mut command = Command::new("nsenter");
            command.arg(format!("--net=/proc/{holder}/ns/net")).arg("--").arg(programs.brewbench());
            command
        }
    };
    command.args(["agent", "--log", "json", "--idle-timeout", "0s", "--server", &format!("http://{address}")]);
    command.arg("--state").arg(folder.join("agent")).arg("--manifests").arg(&programs.manifests);
    if address.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        command.arg("--insecure-http");
    }
    if let Some(k6) = &programs.k6 {
        command.arg("--k6").arg(k6);
    }
    if let Some(engine) = &programs.engine {
        command.arg("--container-engine").arg(engine);
    }
    // The one-time key is needed only once: then the agent has its own.
    if let Some(key) = key {
        command.env("BREWBENCH_AGENT_KEY", key);
    }
    spawn(command, &folder.join("agent.log"))
}

/// Starts a process that is killed when it is dropped.
fn spawn(mut command: Command, log: &Path) -> anyhow::Result<Child> {
    let file: File = OpenOptions::new().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).kill_on_drop(true);
    Ok(command.spawn()?)
}
