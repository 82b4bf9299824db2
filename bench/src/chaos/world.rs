//! A server and an agent as people run them: the program in processes of their own, killed and started anew.

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
        people::{MadeSecret, NewToken},
    },
    catalog::model::MachineSize,
    experiments::{model::ExperimentWithRuns, plan::Plan},
    fleet::model::{AgentList, NewAgentKey},
    runs::load::LoadBody,
};
use brewbench_agent::connection::client::{Client, Plain, Trust};
use serde_json::json;
use tempfile::TempDir;
use tokio::process::{Child, Command};

/// What is measured again and again.
const TARGET: &str = "rust-hyper";
/// The agent of a world.
pub const AGENT: &str = "rack";
const SIZE: &str = "0.5 vCPU / 256 MiB";

/// How long a process may take to be there on a busy machine.
const PATIENCE: Duration = Duration::from_mins(1);

/// The program and its manifests.
#[derive(Clone, Debug)]
pub struct Programs {
    brewbench: PathBuf,
    manifests: PathBuf,
    /// Instead of the one in `PATH`.
    k6: Option<PathBuf>,
}

impl Programs {
    /// The program lies beside the folder of its manifests.
    pub fn beside(manifests: &Path) -> anyhow::Result<Self> {
        let manifests = manifests.canonicalize().with_context(|| format!("{} is not there", manifests.display()))?;
        let brewbench = manifests.with_file_name("brewbench");
        ensure!(brewbench.is_file(), "{} is not there", brewbench.display());
        Ok(Self { brewbench, manifests, k6: None })
    }

    /// With another k6.
    pub fn with_k6(self, k6: PathBuf) -> Self {
        Self { k6: Some(k6), ..self }
    }

    /// The program itself.
    pub fn brewbench(&self) -> &Path {
        &self.brewbench
    }
}

/// Where both sides stand.
#[derive(Clone, Copy, Debug)]
pub enum Place {
    /// On this machine.
    Here,
    /// The server at an address that another network namespace reaches, the agent in the namespace of this process.
    Apart(Ipv4Addr, u32),
}

/// A server with one agent.
#[derive(Debug)]
pub struct World {
    /// May do everything.
    pub client: Client,
    /// Killed with [`World::kill`].
    server: Child,
    agent: Child,
    programs: Programs,
    place: Place,
    address: SocketAddr,
    token: String,
    folder: TempDir,
}

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// `brewbench serve`.
    Server,
    /// `brewbench agent`.
    Agent,
}

impl World {
    /// Starts both; the agent has dialled in.
    pub async fn start(programs: &Programs, place: Place) -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let ip = match place {
            Place::Here => Ipv4Addr::LOCALHOST,
            Place::Apart(ip, _) => ip,
        };
        // Kept from one life of the server to the next, so it must be known before.
        let address = TcpListener::bind((ip, 0))?.local_addr()?;
        let server = serve(programs, folder.path(), address)?;
        let url: reqwest::Url = format!("http://{address}/").parse()?;
        let trust = Trust { plain: Plain::Anywhere, ..Trust::default() };
        answers(&Client::trusting(&url, None, &trust)?).await?;
        let asked = NewToken { name: "chaos".to_owned(), scope: Scope::Admin, expires_in_days: None };
        let token = local_admin::token(&folder.path().join("data"), &asked).await?.secret;
        let client = Client::trusting(&url, Some(token.clone()), &trust)?;
        let size = json!({"name": SIZE, "vcpus": 0.5, "memory_bytes": 256 << 20});
        let _: MachineSize = client.post("api/v1/sizes", &size).await?;
        let key: MadeSecret = client.post("api/v1/agent-keys", &NewAgentKey { name: AGENT.to_owned() }).await?;
        let agent = work(programs, folder.path(), address, place, Some(&key.secret))?;
        let world = Self { client, server, agent, programs: programs.clone(), place, address, token, folder };
        world.until_connected().await?;
        Ok(world)
    }

    /// The agent's state folder.
    pub fn state(&self) -> PathBuf {
        self.folder.path().join("agent")
    }

    /// The state folder of another agent.
    pub fn state_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program.
    pub fn program(&self) -> &Path {
        self.programs.brewbench()
    }

    /// Begins to copy the database into a file, through the server.
    pub fn backup(&self, file: &Path) -> anyhow::Result<Child> {
        let mut command = Command::new(self.program());
        command.arg("backup").arg(file).env("BREWBENCH_URL", format!("http://{}", self.address));
        command.env("BREWBENCH_TOKEN", &self.token).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command.kill_on_drop(true).spawn()?)
    }

    /// What the server has said so far.
    pub fn server_log(&self) -> anyhow::Result<String> {
        Ok(std::fs::read_to_string(self.folder.path().join("server.log"))?)
    }

    /// Kills one of them, by its own id, and sees it end.
    pub async fn kill(&mut self, half: Half) -> anyhow::Result<()> {
        Ok(self.child(half).kill().await?)
    }

    /// Starts one of them anew; gives when that was. A server answers when this returns.
    pub async fn start_anew(&mut self, half: Half) -> anyhow::Result<Instant> {
        let folder = self.folder.path();
        let child = match half {
            Half::Server => serve(&self.programs, folder, self.address)?,
            Half::Agent => work(&self.programs, folder, self.address, self.place, None)?,
        };
        *self.child(half) = child;
        let back = Instant::now();
        if half == Half::Server {
            answers(&self.client).await?;
        }
        Ok(back)
    }

    /// The process of one of them.
    pub fn pid(&self, half: Half) -> anyhow::Result<u32> {
        let child = match half {
            Half::Server => &self.server,
            Half::Agent => &self.agent,
        };
        child.id().context("it runs")
    }

    fn child(&mut self, half: Half) -> &mut Child {
        match half {
            Half::Server => &mut self.server,
            Half::Agent => &mut self.agent,
        }
    }

    /// Submits one cell with so many repetitions, each of which may be done again twice.
    pub async fn submit(&self, repetitions: u32, warm_up_s: f64, duration_s: f64) -> anyhow::Result<ExperimentId> {
        let plan = plan(repetitions, warm_up_s, duration_s)?;
        let made: ExperimentWithRuns = self.client.post("api/v1/experiments", &plan).await?;
        Ok(made.experiment.id)
    }

    /// Starts another agent, where the server is, whose targets take load from afar, or starts it anew; it ends when this
    /// is dropped.
    pub async fn join(&self, name: &str, load_address: Ipv4Addr) -> anyhow::Result<Child> {
        let state = self.state_of(name);
        let mut command = Command::new(self.programs.brewbench());
        command.args(["agent", "--quiet-wait", "0s", "--insecure-http", "--load-address", &load_address.to_string()]);
        command.args(["--server", &format!("http://{}", self.address), "--manifests"]).arg(&self.programs.manifests);
        command.arg("--state").arg(&state);
        if !state.exists() {
            let key: MadeSecret = self.client.post("api/v1/agent-keys", &NewAgentKey { name: name.to_owned() }).await?;
            command.env("BREWBENCH_AGENT_KEY", &key.secret);
        }
        let agent = spawn(command, &self.folder.path().join(format!("{name}.log")))?;
        self.until_there(name).await?;
        Ok(agent)
    }

    /// Submits one run of a target on one agent whose load comes from another; nothing is done again.
    pub async fn submit_from_afar(&self, host: &str, generator: &str, duration_s: f64) -> anyhow::Result<ExperimentId> {
        let apart =
            Plan { agent: Some(host.to_owned()), generators: vec![generator.to_owned()], ..plan(1, 0.5, duration_s)? };
        let made: ExperimentWithRuns = self.client.post("api/v1/experiments", &Plan { retries: 0, ..apart }).await?;
        Ok(made.experiment.id)
    }

    /// An experiment as it stands.
    pub async fn look(&self, experiment: &ExperimentId) -> anyhow::Result<ExperimentWithRuns> {
        Ok(self.client.get(&format!("api/v1/experiments/{experiment}")).await?)
    }

    /// Waits until the agent is there.
    pub async fn until_connected(&self) -> anyhow::Result<()> {
        self.until_there(AGENT).await
    }

    async fn until_there(&self, name: &str) -> anyhow::Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let list: AgentList = self.client.get("api/v1/agents").await?;
            if list.agents.iter().any(|agent| agent.name == name && agent.connected) {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bail!("the agent {name} did not dial in; see {}", self.folder.path().display())
    }
}

/// One cell with so many repetitions, each of which may be done again twice.
fn plan(repetitions: u32, warm_up_s: f64, duration_s: f64) -> anyhow::Result<Plan> {
    Ok(Plan {
        name: None,
        targets: vec![TARGET.to_owned()],
        against: None,
        sizes: vec![SIZE.to_owned()],
        scenario: "hash".to_owned(),
        parameters: std::collections::BTreeMap::new(),
        loads: vec![LoadBody::Vus { vus: 2, duration_s }.try_into()?],
        knee: None,
        warm_up_s,
        warm_up_auto: false,
        repetitions,
        until: None,
        retries: 2,
        seed: None,
        agent: None,
        agent_label: None,
        spread: false,
        generators: Vec::new(),
    })
}

async fn answers(client: &Client) -> anyhow::Result<()> {
    let begun = Instant::now();
    loop {
        match client.send(client.request(reqwest::Method::GET, "login")).await {
            Ok(_) => return Ok(()),
            Err(fault) if begun.elapsed() > PATIENCE => return Err(fault.into()),
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

fn serve(programs: &Programs, folder: &Path, address: SocketAddr) -> anyhow::Result<Child> {
    let mut command = Command::new(programs.brewbench());
    command.args(["serve", "--log", "json", "--listen", &address.to_string(), "--data"]).arg(folder.join("data"));
    spawn(command, &folder.join("server.log"))
}

fn work(
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
    command.args(["agent", "--log", "json", "--quiet-wait", "0s", "--server", &format!("http://{address}")]);
    command.arg("--state").arg(folder.join("agent")).arg("--manifests").arg(&programs.manifests);
    if address.ip() != IpAddr::V4(Ipv4Addr::LOCALHOST) {
        command.arg("--insecure-http");
    }
    if let Some(k6) = &programs.k6 {
        command.arg("--k6").arg(k6);
    }
    // A one-time key is said once: then the agent has one of its own.
    if let Some(key) = key {
        command.env("BREWBENCH_AGENT_KEY", key);
    }
    spawn(command, &folder.join("agent.log"))
}

/// Killed with this program's end, whatever that is.
fn spawn(mut command: Command, log: &Path) -> anyhow::Result<Child> {
    let file: File = OpenOptions::new().create(true).append(true).open(log)?;
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).kill_on_drop(true);
    Ok(command.spawn()?)
}
