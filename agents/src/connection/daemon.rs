//! The agent's main loop: prepares the machine, keeps the connection, runs the jobs, uploads the results.
//!
//! [`crate::connection::session`] decides what to do next; this module carries it out.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use uuid::Uuid;

use crate::connection::clear::{CleanupResult, clear};
use crate::connection::files::Files;
use crate::connection::key::Keys;
use crate::connection::link::{Condition, Link, LinkEvent};
pub use crate::connection::options::{CGROUPS, Options};
use crate::connection::session::{Accepts, Effect, Input, Session};
use crate::connection::spool::Spool;
use crate::connection::uploader::Uploader;
use crate::connection::{link, state_folder};

use brewbench_io::client::Client;
use brewbench_wire::engine::EngineOffer;
use brewbench_wire::job::{Job, Role};
use brewbench_wire::messages::{AgentMessage, Finding, Gate, Hello, Machine, TargetOffer};
use brewbench_wire::outcome::Outcome;
use brewbench_wire::scenario::Scenario;
use brewbench_wire::{PROTOCOL, RunId, now_ms};

use crate::engine::{Engines, K6, NoK6, Wrk, inspection};
use crate::generators::Generators;
use crate::host::cpu_tuning::CpuTuning;
use crate::host::{cpu_tuning, disk, machine};
use crate::run::barrier::{Gates, Opening};
use crate::run::context::RunContext;
use crate::run::{duet, execute};
use crate::sandbox::Sandbox;
use crate::target::{Fingerprints, Offered};

/// How long a stopping agent tries to upload its last results; they are on its disk in any case.
const LAST_DELIVERY: Duration = Duration::from_secs(5);

/// How often an idle agent reads its manifests again. A change counts after two equal readings.
const REREAD: Duration = Duration::from_secs(2);

/// Runs until `shutdown`; then hands back the current run and leaves nothing behind.
pub async fn run(options: Options, shutdown: CancellationToken) -> anyhow::Result<()> {
    let _lock = lock(&options.state).await?;
    cpu_tuning::log_restored(&cpu_tuning::restore(&options.state));
    let cleared = clear(&options).await?;
    let engines = match engines(&options).await {
        Ok(engines) => engines,
        Err(fault) => {
            tokio::select! {
                announced = Box::pin(announce(&options, &cleared.sandbox, &fault)) => {
                    // The agent's own error is the one to show.
                    let _ = announced.inspect_err(|cause| tracing::debug!(%cause, "failed to notify the server"));
                }
                () = shutdown.cancelled() => {}
            }
            return Err(fault.into());
        }
    };
    let work_folder = cleared.work_folder.clone();
    let (context, hello, offered) = prepare(&options, cleared, engines)?;
    let spool = Spool::open(options.state.join("spool")).context("the spool can't be opened")?;
    let keys = Keys::open(&options.state, options.key.as_deref())?;
    let client = Client::with_trust(&options.server, Some(keys.current().await), &options.trust)?;
    tokio::select! {
        settled = keys.settle(&client) => settled?,
        () = shutdown.cancelled() => return Ok(()),
    }
    let uploader = Uploader::new(client.clone(), spool.clone());
    let (condition, watched) = watch::channel(Condition::default());
    let ((targets, offers), live) = (watch::channel(offered.targets()), context.live.clone());
    let link =
        Link { client: client.clone(), hello, targets: offers, uploader: uploader.clone(), condition: watched, live };

    // Nothing can be sent before the first connection.
    let (end, outbox) = (CancellationToken::new(), mpsc::unbounded_channel().0);
    let (hear, events) = mpsc::unbounded_channel();
    let linked = link.spawn_thread(hear, end.clone()).context("failed to start a thread for the connection")?;
    let delivered = tokio::spawn(uploader.clone().run(end.clone()));
    let (report, reports) = mpsc::unbounded_channel();
    let daemon = Daemon {
        session: Session::new(options.accepts),
        context: Arc::new(context),
        spool,
        uploader,
        outbox,
        files: Files::new(client.clone(), &options.state),
        state: options.state,
        condition,
        report,
        keys: Arc::new(keys),
        client,
        job: None,
        opened: watch::Sender::default(),
        inspection: None,
        offered: Arc::new(Mutex::new(offered)),
        targets,
    };
    let result = daemon.live(events, reports, shutdown).await;
    let _ = fs::remove_dir(work_folder);
    end.cancel();
    let _ = timeout(LAST_DELIVERY, async { tokio::join!(linked, delivered) }).await;
    result
}

/// Finds the load generators. Without a k6 the others work; one that is named, or that can't be used, is an error.
async fn engines(options: &Options) -> Result<Engines, NoK6> {
    let native = options.native.clone();
    let k6 = match K6::find(options.engine.as_deref()).await {
        Err(fault @ NoK6::Missing(_)) if options.engine.is_none() && native.is_some() => {
            tracing::warn!("{fault}; until then only scenarios with a request list run here");
            None
        }
        found => Some(found?),
    };
    Ok(Engines { k6, native, wrk: Wrk::find().await })
}

/// Locks the state folder: of two agents in one folder, each would delete the runs of the other.
async fn lock(state: &Path) -> anyhow::Result<File> {
    state_folder::make_private(state)?;
    match brewbench_io::lock::take(state).await.with_context(|| format!("failed to write to {}", state.display()))? {
        Some(file) => Ok(file),
        None => {
            bail!("the state folder {} is in use by another agent; choose another with --state", state.display())
        }
    }
}

/// Finds the targets, and describes this machine for `Hello`.
fn prepare(
    options: &Options,
    cleared: CleanupResult,
    engines: Engines,
) -> anyhow::Result<(RunContext, Hello, Offered)> {
    let CleanupResult { sandbox, containers, cluster, work_folder } = cleared;
    let fingerprints = Arc::new(Fingerprints::default());
    let (fingerprinting, profilers) = (Arc::clone(&fingerprints), options.profilers.clone());
    let has_cluster = cluster.is_some();
    let offered =
        Offered::read(options.targets.clone(), fingerprinting, containers.clone(), has_cluster, profilers.clone());
    let machine = machine::facts(&sandbox);
    if machine::enforces_sizes(has_cluster, &offered.targets()) {
        machine::warn_of_missing_limits(&machine);
    }
    let generators = options.generators.as_deref().map(|file| Generators::load(file, &engines.k6()?.offer().version));
    let generators = generators.transpose().map_err(anyhow::Error::msg).context("--generators")?;
    let hello =
        Hello { generators: generators.as_ref().map(Generators::offer), ..hello(options, machine, engines.offers()) };
    let cpu_tuning = options.cpu_tuning.as_ref().map(|sysfs| CpuTuning::new(sysfs, &options.state)).transpose();
    let cpu_tuning = cpu_tuning.map_err(anyhow::Error::msg)?;
    let context = RunContext::new(sandbox, engines, options.targets.clone(), work_folder);
    let Options { idle_wait, load_address, reach, .. } = *options;
    let context = RunContext { fingerprints, containers, cluster, generators, idle_wait, cpu_tuning, ..context };
    let context = RunContext { load_address, reach, profilers, ..context };
    Ok((context, hello, offered))
}

/// Returns a `Hello` without targets.
fn hello(options: &Options, machine: Machine, engines: Vec<EngineOffer>) -> Hello {
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
        generators: None,
        engines,
    }
}

/// Reports to the server why an agent with an unsupported k6 does not start, so that the agent's page shows it. Without
/// a k6 there is nothing to show.
async fn announce(options: &Options, sandbox: &Sandbox, fault: &NoK6) -> anyhow::Result<()> {
    let Some(engine) = fault.offer() else { return Ok(()) };
    let keys = Keys::open(&options.state, options.key.as_deref())?;
    let client = Client::with_trust(&options.server, Some(keys.current().await), &options.trust)?;
    keys.settle(&client).await?;
    let holds = Spool::open(options.state.join("spool"))?.waiting()?;
    let hello = Hello { holds, ..hello(options, machine::facts(sandbox), vec![engine]) };
    link::announce(&client, hello).await.map_err(anyhow::Error::msg)
}

/// What the current job reports.
enum Report {
    Phase(RunId, brewbench_wire::Phase),
    At(RunId, Gate, Option<String>),
    /// The job of a run, with the outcomes of all its runs.
    Over(RunId, Vec<Outcome>),
    Inspected(Uuid, Finding),
}

struct Daemon {
    session: Session,
    context: Arc<RunContext>,
    spool: Spool,
    uploader: Uploader,
    outbox: mpsc::UnboundedSender<AgentMessage>,
    /// Folder of the spool and the runs.
    state: PathBuf,
    condition: watch::Sender<Condition>,
    report: mpsc::UnboundedSender<Report>,
    keys: Arc<Keys>,
    files: Files,
    client: Client,
    job: Option<(CancellationToken, JoinHandle<()>)>,
    /// The gate of the current job that opened last.
    opened: watch::Sender<Option<Opening>>,
    inspection: Option<(CancellationToken, JoinHandle<()>)>,
    offered: Arc<Mutex<Offered>>,
    /// The targets, for the connection.
    targets: watch::Sender<Vec<TargetOffer>>,
}

impl Daemon {
    async fn live(
        mut self,
        mut events: mpsc::UnboundedReceiver<LinkEvent>,
        mut reports: mpsc::UnboundedReceiver<Report>,
        shutdown: CancellationToken,
    ) -> anyhow::Result<()> {
        let mut rejected = None;
        let mut stop_requested = false;
        let mut reread = interval(REREAD);
        reread.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while !self.session.is_over() {
            let (input, outcomes) = tokio::select! {
                Some(event) = events.recv() => match event {
                    LinkEvent::Connected(reply) => {
                        self.introduce(reply);
                        (Input::Connected, Vec::new())
                    }
                    LinkEvent::Message(message) => (Input::Server(message), Vec::new()),
                    LinkEvent::Rejected(reason) => {
                        rejected = Some(reason);
                        (Input::Shutdown, Vec::new())
                    }
                },
                Some(report) = reports.recv() => match report {
                    Report::Phase(run, phase) => (Input::Phase(run, phase), Vec::new()),
                    Report::At(run, gate, base_url) => (Input::At(run, gate, base_url), Vec::new()),
                    Report::Inspected(id, finding) => (Input::Inspected(id, finding), Vec::new()),
                    Report::Over(run, outcomes) => (Input::Over(run), outcomes),
                },
                () = shutdown.cancelled(), if !stop_requested => {
                    stop_requested = true;
                    (Input::Shutdown, Vec::new())
                }
                _ = reread.tick(), if self.session.is_idle() => {
                    self.context.containers.sweep_again().await;
                    self.reread_targets().await;
                    self.report_condition();
                    continue;
                }
            };
            self.report_condition();
            let effects = self.session.step(input);
            self.carry_out(effects, outcomes).await;
            self.report_condition();
        }
        rejected.map_or(Ok(()), |reason| Err(anyhow::anyhow!(reason)))
    }

    /// Reports the current run, and a full disk; once there is space, the agent takes runs again.
    fn report_condition(&mut self) {
        let (running, fault) =
            (self.session.all_running(), disk::fault([self.state.as_path(), &self.context.work_folder]));
        if fault.is_some() && self.condition.borrow().fault.is_none() {
            tracing::error!(fault, "this agent takes no runs");
        }
        self.session.set_fault(fault.clone());
        self.condition.send_replace(Condition { running, fault });
    }

    async fn carry_out(&mut self, effects: Vec<Effect>, outcomes: Vec<Outcome>) {
        let mut outcomes = outcomes;
        for effect in effects {
            match effect {
                Effect::Send(message) => self.send(message),
                Effect::Start(job) => self.start(job),
                Effect::Inspect(id, scenario) => self.inspect(id, scenario),
                Effect::StopInspecting => self.stop_inspecting().await,
                Effect::Stop => {
                    if let Some((cancel, _)) = &self.job {
                        cancel.cancel();
                    }
                }
                Effect::Keep(run) => {
                    // That with which the server started the job comes last: then the agent is free.
                    let mut runs: Vec<RunId> = outcomes.iter().map(|outcome| outcome.run).collect();
                    runs.sort_by_key(|own| *own == run);
                    outcomes.drain(..).for_each(|outcome| self.keep(outcome));
                    self.forget_job().await;
                    for run in runs {
                        self.send(AgentMessage::Done { run });
                    }
                }
                Effect::Forget => self.forget_job().await,
                Effect::Open(opening) => drop(self.opened.send_replace(Some(opening))),
                Effect::ReportClock { sent_ms } => self.send(AgentMessage::Clock { sent_ms, now_ms: now_ms() }),
                Effect::ChangeKey => self.change_key(),
            }
        }
    }

    /// Reads the manifests again. A job that arrives in the meantime starts afterwards.
    async fn reread_targets(&self) {
        let offered = Arc::clone(&self.offered);
        let reread = move || offered.lock().unwrap_or_else(PoisonError::into_inner).reread();
        if let Ok(Some(targets)) = tokio::task::spawn_blocking(reread).await {
            let names: Vec<&str> = targets.iter().map(|target| target.name.as_str()).collect();
            tracing::info!(targets = names.join(", "), "the targets have changed");
            self.targets.send_replace(targets);
        }
    }

    /// Sends the current state to a new connection, which gets all later messages.
    fn introduce(&mut self, reply: oneshot::Sender<link::State>) {
        let (running, (outbox, to_send)) = (self.session.running(), mpsc::unbounded_channel());
        let mut holds = self.spool.waiting().unwrap_or_default();
        holds.extend(self.session.all_running());
        self.outbox = outbox;
        let _ = reply.send(link::State { running, holds, outbox: to_send });
    }

    /// Sends a message. It may be lost with the connection; the next `Hello` reports the same.
    fn send(&self, message: AgentMessage) {
        let _ = self.outbox.send(message);
    }

    fn start(&mut self, job: Box<Job>) {
        let cancel = CancellationToken::new();
        let (context, report, stop) = (Arc::clone(&self.context), self.report.clone(), cancel.clone());
        // All log messages of the run carry its id.
        let span = tracing::info_span!("run", id = %job.run);
        self.opened.send_replace(None);
        let (files, mut job) = (self.files.clone(), job);
        let (run, at) = (job.run, self.report.clone());
        let on_gate = move |gate, base_url| drop(at.send(Report::At(run, gate, base_url)));
        let gates = Gates::new(on_gate, self.opened.subscribe());
        let work = async move {
            let on_phase = |phase| drop(report.send(Report::Phase(job.run, phase)));
            tracing::info!(
                target = job.spec.target,
                size = job.spec.size.as_ref().map(|size| &size.name),
                "run started"
            );
            files.complete(&mut job.scenario, &stop).await;
            let outcomes = match (job.role, job.of_partner()) {
                (_, Some(partner)) => {
                    let on_phase = |run, phase| drop(report.send(Report::Phase(run, phase)));
                    duet::run([&job, &partner], &context, &stop, on_phase).await.into()
                }
                (Role::Alone, None) => vec![execute::run(&job, &context, &stop, on_phase).await],
                (Role::Host | Role::Generator(_), None) => {
                    vec![execute::run_part(&job, &context, gates, &stop, on_phase).await]
                }
            };
            for outcome in &outcomes {
                tracing::info!(run = %outcome.run, ended = ?outcome.ended, "run ended");
            }
            let _ = report.send(Report::Over(job.run, outcomes));
        };
        self.job = Some((cancel, tokio::spawn(work.instrument(span))));
    }

    fn inspect(&mut self, id: Uuid, scenario: Box<Scenario>) {
        let cancel = CancellationToken::new();
        let (context, report, stop) = (Arc::clone(&self.context), self.report.clone(), cancel.clone());
        let (files, mut scenario) = (self.files.clone(), scenario);
        let done = tokio::spawn(async move {
            files.complete(&mut scenario, &stop).await;
            let finding = inspection::inspect(id, &scenario, &context, &stop).await;
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

    /// Changes the key in the background. If that fails, the server repeats the request at the next connection.
    fn change_key(&self) {
        let (keys, client) = (Arc::clone(&self.keys), self.client.clone());
        tokio::spawn(async move {
            if let Err(fault) = keys.change(&client).await {
                tracing::error!(%fault, "failed to change the agent's key; the old one stays");
            }
        });
    }

    async fn forget_job(&mut self) {
        if let Some((_, done)) = self.job.take() {
            let _ = done.await;
        }
    }

    /// Spools an outcome; in memory if the disk is full.
    fn keep(&self, outcome: Outcome) {
        let (run, spool) = (outcome.run, self.spool.folder().display());
        if let Err(fault) = self.spool.keep(outcome) {
            tracing::error!(%run, %spool, %fault, "failed to spool an outcome; it stays in memory");
        }
        self.uploader.wake();
    }
}
