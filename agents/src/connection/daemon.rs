//! The agent's life: prepares the machine, keeps the connection, does the jobs, brings the results home.
//!
//! What to do next is decided in [`crate::connection::session`]; this carries it out.

use std::fs::{self, File};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use sha2::{Digest, Sha256};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::connection::client::{Client, Trust};
use crate::connection::key::Keys;
use crate::connection::link::{Heard, Link};
use crate::connection::session::{Accepts, Effect, Input, Session};
use crate::connection::spool::Spool;
use crate::connection::uploader::Courier;
use crate::connection::{link, lock, state_folder};

use crate::engine::{Engine, NoEngine, inspection};
use crate::host::cpu_tuning::Steady;
use crate::host::idle_wait::Quiet;
use crate::host::{cleanup, cpu_tuning, machine};
use crate::run::address_policy::Reach;
use crate::run::barrier::{Gates, Opening};
use crate::run::execute;
use crate::run::execute::Workbench;
use crate::sandbox::Sandbox;
use crate::target;
use crate::target::Fingerprints;
use crate::wire::engine::EngineOffer;
use crate::wire::job::{Job, Role, Scenario, hex};
use crate::wire::messages::{AgentMessage, Finding, Gate, Hello, Machine};
use crate::wire::outcome::Outcome;
use crate::wire::{PROTOCOL, RunId, now_ms};

/// How long an ending agent tries to bring its last results home; they are on its disk in any case.
const LAST_DELIVERY: Duration = Duration::from_secs(5);

/// What an agent is told at its start.
#[derive(Clone)]
pub struct Options {
    /// The server's address, http or https.
    pub server: reqwest::Url,
    /// Whom it takes for the server.
    pub trust: Trust,
    /// The key that the server's owner made for it; none where the state folder has one from an earlier start.
    pub key: Option<String>,
    /// The folder of its spool and of its runs.
    pub state: PathBuf,
    /// The folder of its manifests.
    pub targets: PathBuf,
    /// k6, if it is not in `PATH`.
    pub engine: Option<PathBuf>,
    /// Whose scripts it runs.
    pub accepts: Accepts,
    /// Where control groups are mounted.
    pub cgroups: PathBuf,
    /// When the machine is quiet enough for a measurement.
    pub quiet: Quiet,
    /// The folder that devices are shown in, [`cpu_tuning::SYSFS`], if its processors are made steady for the time of a run.
    pub steady: Option<PathBuf>,
    /// Where targets listen for load from other machines; none where they don't.
    pub load_address: Option<IpAddr>,
    /// Whom it loads where another agent runs the target.
    pub reach: Reach,
}

/// Where control groups are mounted on every usual Linux.
pub const CGROUPS: &str = "/sys/fs/cgroup";

/// Lives until told to end; then hands back what it works on and leaves nothing behind.
pub async fn run(options: Options, shutdown: CancellationToken) -> anyhow::Result<()> {
    let _lock = lock(&options.state).await?;
    cpu_tuning::report(&cpu_tuning::restore(&options.state));
    let cleared = clear(&options).await?;
    let engine = match Engine::find(options.engine.as_deref()).await {
        Ok(engine) => engine,
        Err(fault) => {
            tokio::select! {
                announced = Box::pin(announce(&options, &cleared.sandbox, &fault)) => {
                    // The agent's own error is the one to show.
                    let _ = announced.inspect_err(|cause| tracing::debug!(%cause, "the server does not know why"));
                }
                () = shutdown.cancelled() => {}
            }
            return Err(fault.into());
        }
    };
    let (bench, hello) = prepare(&options, cleared, engine)?;
    let spool = Spool::open(options.state.join("spool")).context("the spool can't be opened")?;
    let keys = Keys::open(&options.state, options.key.as_deref())?;
    let client = Client::trusting(&options.server, Some(keys.current().await), &options.trust)?;
    tokio::select! {
        settled = keys.settle(&client) => settled?,
        () = shutdown.cancelled() => return Ok(()),
    }
    let courier = Courier::new(client.clone(), spool.clone());
    let (running, watched) = watch::channel(None);
    let (client_of_link, courier_of_link, live) = (client.clone(), courier.clone(), bench.live.clone());
    let link = Link { client: client_of_link, hello, courier: courier_of_link, running: watched, live };

    let end = CancellationToken::new();
    // Until the first connection there is nobody to say anything to.
    let outbox = mpsc::unbounded_channel().0;
    let (hear, heard) = mpsc::unbounded_channel();
    let linked = link.keep_apart(hear, end.clone()).context("there can be no thread for the connection")?;
    let delivered = tokio::spawn(courier.clone().run(end.clone()));
    let (report, reports) = mpsc::unbounded_channel();
    let daemon = Daemon {
        session: Session::new(options.accepts),
        bench: Arc::new(bench),
        spool,
        courier,
        outbox,
        running,
        report,
        keys: Arc::new(keys),
        client,
        job: None,
        opened: watch::Sender::default(),
        inspection: None,
    };
    let lived = daemon.live(heard, reports, shutdown).await;
    end.cancel();
    let _ = timeout(LAST_DELIVERY, async { tokio::join!(linked, delivered) }).await;
    lived
}

/// Two agents on one folder would take each other's runs for leftovers.
async fn lock(state: &Path) -> anyhow::Result<File> {
    state_folder::make_private(state)?;
    match lock::take(state).await.with_context(|| format!("{} can't be written", state.display()))? {
        Some(file) => Ok(file),
        None => {
            bail!("the state folder {} is in use by another agent; give this one its own with --state", state.display())
        }
    }
}

/// A machine on which nothing of an earlier life of this agent is left.
struct Cleared {
    sandbox: Sandbox,
    work_folder: PathBuf,
}

async fn clear(options: &Options) -> anyhow::Result<Cleared> {
    let sandbox = Sandbox::detect(&options.cgroups, &name_on_machine(&options.state)?);
    let work_folder = options.state.join("work");
    fs::create_dir_all(&work_folder).with_context(|| format!("{} can't be made", work_folder.display()))?;
    let left = cleanup::remove(&sandbox, &work_folder).await;
    if !left.is_empty() {
        tracing::warn!(?left, "removed what an earlier life of this agent left");
    }
    Ok(Cleared { sandbox, work_folder })
}

/// Finds the targets, and says what this machine can do.
fn prepare(options: &Options, cleared: Cleared, engine: Engine) -> anyhow::Result<(Workbench, Hello)> {
    let Cleared { sandbox, work_folder } = cleared;
    let fingerprints = Arc::new(Fingerprints::default());
    let (targets, faults) = target::offers(&options.targets, &fingerprints);
    for fault in &faults {
        tracing::error!(%fault, "a target is left out");
    }
    if targets.is_empty() {
        bail!("there is no target to offer in {}: put manifests (*.toml) there", options.targets.display());
    }
    let machine = machine::facts(&sandbox);
    warn_of_missing_limits(&machine);
    let hello = Hello { targets, ..hello(options, machine, engine.offer()) };
    let steady = options.steady.as_ref().map(|steady| Steady::new(steady, &options.state)).transpose();
    let steady = steady.map_err(anyhow::Error::msg)?;
    let bench = Workbench::new(sandbox, engine, options.targets.clone(), work_folder);
    let Options { quiet, load_address, reach, .. } = *options;
    Ok((Workbench { fingerprints, quiet, steady, load_address, reach, ..bench }, hello))
}

/// An introduction without targets.
fn hello(options: &Options, machine: Machine, engine: EngineOffer) -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now_ms: 0,
        machine,
        targets: Vec::new(),
        any_scenario: options.accepts == Accepts::AnyScenario,
        running: None,
        holds: Vec::new(),
        life: Some(Uuid::new_v4()),
        load_address: options.load_address,
        engines: vec![engine],
    }
}

/// Tells the server why an agent that can't use its k6 does not start, so that the agent's page shows it. Only an
/// unsupported version is reported: without a k6 there is nothing to show.
async fn announce(options: &Options, sandbox: &Sandbox, fault: &NoEngine) -> anyhow::Result<()> {
    let Some(engine) = fault.offer() else { return Ok(()) };
    let keys = Keys::open(&options.state, options.key.as_deref())?;
    let client = Client::trusting(&options.server, Some(keys.current().await), &options.trust)?;
    keys.settle(&client).await?;
    let holds = Spool::open(options.state.join("spool"))?.waiting()?;
    let hello = Hello { holds, ..hello(options, machine::facts(sandbox), engine) };
    link::announce(&client, hello).await.map_err(anyhow::Error::msg)
}

fn warn_of_missing_limits(machine: &Machine) {
    use crate::wire::outcome::Mechanism::None;
    if machine.cpu == None || machine.memory == None {
        let (cpu, memory) = (machine.cpu.as_str(), machine.memory.as_str());
        tracing::warn!(cpu, memory, "machine sizes can't be enforced whole here; runs will be marked suspect");
    }
}

/// Agents on one machine are told apart by their state folders, from one life to the next.
fn name_on_machine(state: &Path) -> anyhow::Result<String> {
    let path = state.canonicalize().context("the state folder")?;
    Ok(hex(&Sha256::digest(path.as_os_str().as_bytes())[..6]))
}

/// What the job in work reports.
enum Report {
    Phase(RunId, crate::wire::Phase),
    At(RunId, Gate, Option<String>),
    Over(Box<Outcome>),
    Inspected(Uuid, Finding),
}

struct Daemon {
    session: Session,
    bench: Arc<Workbench>,
    spool: Spool,
    courier: Courier,
    outbox: mpsc::UnboundedSender<AgentMessage>,
    running: watch::Sender<Option<RunId>>,
    report: mpsc::UnboundedSender<Report>,
    keys: Arc<Keys>,
    client: Client,
    job: Option<(CancellationToken, JoinHandle<()>)>,
    /// The gate of the job in work that opened last.
    opened: watch::Sender<Option<Opening>>,
    inspection: Option<(CancellationToken, JoinHandle<()>)>,
}

impl Daemon {
    async fn live(
        mut self,
        mut heard: mpsc::UnboundedReceiver<Heard>,
        mut reports: mpsc::UnboundedReceiver<Report>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut unwanted = None;
        let mut asked_to_end = false;
        while !self.session.is_over() {
            let (input, outcome) = tokio::select! {
                Some(message) = heard.recv() => match message {
                    Heard::Dialled(asks) => {
                        self.introduce(asks);
                        (Input::Connected, None)
                    }
                    Heard::Said(message) => (Input::Server(message), None),
                    Heard::Unwanted(reason) => {
                        unwanted = Some(reason);
                        (Input::Shutdown, None)
                    }
                },
                Some(report) = reports.recv() => match report {
                    Report::Phase(run, phase) => (Input::Phase(run, phase), None),
                    Report::At(run, gate, base_url) => (Input::At(run, gate, base_url), None),
                    Report::Inspected(id, finding) => (Input::Inspected(id, finding), None),
                    Report::Over(outcome) => (Input::Over(outcome.run), Some(outcome)),
                },
                () = shutdown.cancelled(), if !asked_to_end => {
                    asked_to_end = true;
                    (Input::Shutdown, None)
                }
            };
            let effects = self.session.step(input);
            self.carry_out(effects, outcome).await;
            self.running.send_replace(self.session.running());
        }
        unwanted.map_or(Ok(()), |reason| Err(anyhow::anyhow!(reason)))
    }

    async fn carry_out(&mut self, effects: Vec<Effect>, outcome: Option<Box<Outcome>>) {
        let mut outcome = outcome;
        for effect in effects {
            match effect {
                Effect::Send(message) => self.say(message),
                Effect::Start(job) => self.start(job),
                Effect::Inspect(id, scenario) => self.inspect(id, scenario),
                Effect::StopInspecting => self.stop_inspecting().await,
                Effect::Stop => {
                    if let Some((cancel, _)) = &self.job {
                        cancel.cancel();
                    }
                }
                Effect::Keep(run) => {
                    if let Some(outcome) = outcome.take() {
                        self.keep(*outcome);
                    }
                    self.forget_job().await;
                    self.say(AgentMessage::Done { run });
                }
                Effect::Forget => self.forget_job().await,
                Effect::Open(opening) => drop(self.opened.send_replace(Some(opening))),
                Effect::TellClock { asked_ms } => self.say(AgentMessage::Clock { asked_ms, now_ms: now_ms() }),
                Effect::ChangeKey => self.change_key(),
            }
        }
    }

    /// Says where it stands. What it says from now on goes to who asked, and to nobody before.
    fn introduce(&mut self, asks: oneshot::Sender<link::Standing>) {
        let (running, (outbox, to_send)) = (self.session.running(), mpsc::unbounded_channel());
        let mut holds = self.spool.waiting().unwrap_or_default();
        holds.extend(running);
        self.outbox = outbox;
        let _ = asks.send(link::Standing { running, holds, outbox: to_send });
    }

    /// The connection may be gone; the next introduction says the same.
    fn say(&self, message: AgentMessage) {
        let _ = self.outbox.send(message);
    }

    fn start(&mut self, job: Box<Job>) {
        let cancel = CancellationToken::new();
        let (bench, report, stop) = (Arc::clone(&self.bench), self.report.clone(), cancel.clone());
        // Whatever is told of it carries its id.
        let span = tracing::info_span!("run", id = %job.run);
        self.opened.send_replace(None);
        let (run, at) = (job.run, self.report.clone());
        let say = move |gate, base_url| drop(at.send(Report::At(run, gate, base_url)));
        let gates = Gates::new(say, self.opened.subscribe());
        let work = async move {
            let on_phase = |phase| drop(report.send(Report::Phase(job.run, phase)));
            tracing::info!(target = job.target, size = job.size.name, "a run begins");
            let outcome = match job.role {
                Role::Alone => execute::run(&job, &bench, &stop, on_phase).await,
                Role::Host | Role::Generator(_) => execute::run_part(&job, &bench, gates, &stop, on_phase).await,
            };
            tracing::info!(ended = ?outcome.ended, "a run is over");
            let _ = report.send(Report::Over(Box::new(outcome)));
        };
        self.job = Some((cancel, tokio::spawn(work.instrument(span))));
    }

    fn inspect(&mut self, id: Uuid, scenario: Box<Scenario>) {
        let cancel = CancellationToken::new();
        let (bench, report, stop) = (Arc::clone(&self.bench), self.report.clone(), cancel.clone());
        let done = tokio::spawn(async move {
            let finding = inspection::inspect(id, &scenario, &bench, &stop).await;
            let _ = report.send(Report::Inspected(id, finding));
        });
        self.inspection = Some((cancel, done));
    }

    async fn stop_inspecting(&mut self) {
        if let Some((cancel, done)) = self.inspection.take() {
            cancel.cancel();
            let _ = done.await;
        }
    }

    /// The server asks again at the next connection if it comes to nothing.
    fn change_key(&self) {
        let (keys, client) = (Arc::clone(&self.keys), self.client.clone());
        tokio::spawn(async move {
            if let Err(fault) = keys.change(&client).await {
                tracing::error!(%fault, "the agent keeps its key");
            }
        });
    }

    async fn forget_job(&mut self) {
        if let Some((_, done)) = self.job.take() {
            let _ = done.await;
        }
    }

    /// Onto the disk; where that can't be, it is kept in memory and sent from there: a full disk must not cost the result.
    fn keep(&self, outcome: Outcome) {
        let (run, spool) = (outcome.run, self.spool.folder().display());
        if let Err(fault) = self.spool.keep(outcome) {
            tracing::error!(%run, %spool, %fault, "an outcome can't be spooled; it is kept in memory until it can");
        }
        self.courier.wake();
    }
}
