//! The target kind `container`: an image, started by the machine's container engine.
//!
//! The engine is asked to start and to stop it; what it does is watched in the kernel, as for programs: its limits and
//! its usage in its control group, its exit by its first process. So a result survives the engine's death.

mod build;
mod engine;
mod exit;
mod facts;
mod image;
mod plan;
mod podman;

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::time::{Duration, Instant};

use bollard::container::LogOutput;
use bollard::errors::Error;
use bollard::models::ContainerState;
use bollard::query_parameters::{
    CreateContainerOptions, CreateContainerOptionsBuilder, LogsOptionsBuilder, StartContainerOptions,
    StopContainerOptions,
};
pub use build::ImageBuild;
pub use engine::{Containers, NoEngine};
use engine::{Engine, describe_error};
use exit::{FirstProcess, oom_kills};
pub use facts::name_of;
use futures_util::StreamExt;
use plan::Plan;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::manifest::{Container, Network};
use brewbench_wire::outcome::Cause;

use super::answer::ReferenceResponse;
use super::manifest::Manifest;
use super::ready::{self, Endpoint, Server, server_of};
use super::serving::{Ended, Serving};
use crate::host::process_snapshot::Snapshot;
use crate::run::failure::Failure;
use crate::sandbox::process::{LOG_BYTES, last_lines};
use crate::sandbox::{Sandbox, Watch};

/// Lines of output to read.
const LOG_LINES: &str = "2000";

/// How long an engine may take to notice that a container has exited.
const CLEANUP: Duration = Duration::from_secs(5);

/// Maximum time to read the output of a container.
const LOG_WAIT: Duration = Duration::from_secs(10);

/// What is known before a container is started.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The manifest's part.
    pub container: Container,
    /// The engine to use.
    pub containers: Containers,
    /// Finds its control group.
    pub sandbox: Sandbox,
    /// Its limits.
    pub size: Size,
    /// The CPUs it may use; empty for all.
    pub cores: Vec<usize>,
    /// The run.
    pub run: RunId,
}

/// A container, before it is started, while it runs, or after it has ended.
#[derive(Debug)]
pub struct ContainerTarget {
    prepared: Prepared,
    /// The request to create it, which goes on if the start is cancelled: only its response says what to remove.
    creating: Option<(Engine, JoinHandle<Result<String, String>>)>,
    /// Once it is created.
    created: Option<Created>,
    /// Once it runs.
    process: Option<Process>,
}

#[derive(Debug)]
struct Created {
    engine: Engine,
    id: String,
}

/// Its view in the kernel.
#[derive(Debug)]
struct Process {
    first: FirstProcess,
    watch: Watch,
}

impl ContainerTarget {
    /// Prepares a container to be started.
    pub fn new(prepared: Prepared) -> Self {
        Self { prepared, creating: None, created: None, process: None }
    }

    /// Pulls its image if necessary, starts it, and waits until it serves. It can be stopped and its log read even if
    /// this fails or is cancelled. `progress` is called with sentences.
    pub async fn start(
        &mut self,
        manifest: &Manifest,
        address: IpAddr,
        progress: impl Fn(String),
    ) -> Result<Serving, Failure> {
        let other = Failure::by(Cause::Other);
        let engine = self.prepared.containers.connect_patiently(&progress).await.map_err(other)?;
        let swept = engine.sweep().await.map_err(other)?;
        if !swept.is_empty() {
            tracing::warn!(containers = ?swept, "removed containers of earlier runs");
        }
        let not_ready = Failure::by(Cause::TargetNotReady);
        let image = image::find(&engine, &self.prepared.container, progress).await.map_err(not_ready)?;
        let at = self.choose_address(address).map_err(not_ready)?;
        self.create(&engine, &image.id, at).await.map_err(not_ready)?;
        let begun = Instant::now();
        let Some(pid) = self.launch().await.map_err(not_ready)? else {
            return Err(self.exit_report("before it was ready").await);
        };
        let known = self.serves(manifest, at).await?;
        let facts = facts::facts(&engine, &self.prepared.container, &image, pid).await;
        let enforced = self.process.as_ref().map(|process| process.watch.confirmed(&self.prepared.size));
        let startup = known.verified_at().duration_since(begun);
        Ok(Serving { startup: Some(startup), facts, enforced, image_id: Some(image.id), ..Serving::of(known) })
    }

    /// Chooses where it is reachable.
    fn choose_address(&self, address: IpAddr) -> Result<SocketAddr, String> {
        let Container { port, network, .. } = self.prepared.container;
        let port = if network == Network::Host { port.unwrap_or(0) } else { 0 };
        let free = TcpListener::bind((address, port)).and_then(|listener| listener.local_addr());
        free.map_err(|error| match port {
            0 => format!("no free port: {error}"),
            port => format!("container.port: {port} is not free on this machine: {error}"),
        })
    }

    async fn create(&mut self, engine: &Engine, image: &str, at: SocketAddr) -> Result<(), String> {
        let Prepared { container, size, cores, run, .. } = &self.prepared;
        let is_podman = engine.is_podman();
        let plan = Plan { container, image, at, size, cores, agent: &engine.agent, run: *run, is_podman };
        let name = format!("brewbench-{run}");
        let options: CreateContainerOptions = CreateContainerOptionsBuilder::default().name(&name).build();
        let (docker, request) = (engine.docker.clone(), plan.request()?);
        let creating = tokio::spawn(async move {
            let created = docker.create_container(Some(options), request).await;
            created
                .map(|created| created.id)
                .map_err(|error| format!("can't create the container: {}", describe_error(&error)))
        });
        self.creating = Some((engine.clone(), creating));
        self.created().await
    }

    /// Waits until it is created.
    async fn created(&mut self) -> Result<(), String> {
        if let Some((engine, creating)) = &mut self.creating {
            let id = creating.await.map_err(|error| format!("can't create the container: {error}")).flatten();
            let engine = engine.clone();
            self.creating = None;
            self.created = Some(Created { engine, id: id? });
        }
        Ok(())
    }

    /// Starts it; returns its first process, if that still runs.
    async fn launch(&mut self) -> Result<Option<i32>, String> {
        let Some(Created { engine, id }) = &self.created else { return Err("it was not created".to_owned()) };
        let started = engine.docker.start_container(id, None::<StartContainerOptions>).await;
        started.map_err(|error| format!("can't start the container: {}", podman::explain(describe_error(&error))))?;
        let state = state(engine, id).await?;
        let pid = state.pid.and_then(|pid| i32::try_from(pid).ok()).filter(|pid| *pid > 0);
        let seen = pid.and_then(|pid| {
            let first = FirstProcess::watch(pid).ok()?;
            let watch = self.prepared.sandbox.container(pid, id)?;
            Some((pid, first, watch))
        });
        let Some((pid, first, watch)) = seen else {
            if state.running == Some(true) && ended(engine, id).await?.running == Some(true) {
                return Err("the container's processes can't be seen: its engine must run on this machine, not in a \
                            virtual machine, and the agent must see all processes and control groups"
                    .to_owned());
            }
            return Ok(None);
        };
        self.process = Some(Process { first, watch });
        Ok(Some(pid))
    }

    async fn serves(&mut self, manifest: &Manifest, at: SocketAddr) -> Result<ReferenceResponse, Failure> {
        let not_ready = Failure::by(Cause::TargetNotReady);
        let Some(process) = &self.process else { return Err(not_ready("it was not started".to_owned())) };
        let watch = (self.prepared.container.network == Network::Host).then_some(&process.watch);
        let answered = tokio::select! {
            biased;
            () = process.first.wait() => None,
            answered = answers(at, manifest, watch) => Some(answered),
        };
        match answered {
            Some(known) => known.map_err(not_ready),
            None => Err(self.exit_report("before it was ready").await),
        }
    }

    /// Waits until it has exited; forever if it was not started.
    pub async fn wait(&mut self) {
        match &self.process {
            Some(process) => process.first.wait().await,
            None => std::future::pending().await,
        }
    }

    /// Whether it was started and has exited.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_ref().is_some_and(|process| process.first.has_exited())
    }

    /// Describes why it exited while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let state = match &self.created {
            Some(Created { engine, id }) => ended(engine, id).await,
            None => Err("it was not created".to_owned()),
        };
        let killed = self.created.as_ref().map_or(0, |created| oom_kills(&created.id));
        let is_memory = killed > 0 || state.as_ref().is_ok_and(|state| state.oom_killed == Some(true));
        let exit = match state {
            Ok(state) => self.describe_exit(&state, is_memory).await,
            Err(fault) => format!("its engine does not know why: {fault}"),
        };
        let cause = if is_memory { Cause::TargetOutOfMemory } else { Cause::TargetDied };
        Failure { reason: format!("exited {when}: {exit}"), cause }
    }

    async fn describe_exit(&self, state: &ContainerState, is_memory: bool) -> String {
        let status = match state.exit_code {
            _ if is_memory => "OOM-killed".to_owned(),
            Some(code @ 129..) => format!("exit status {code} (signal {})", code - 128),
            Some(0) => "exit status 0; a server in a container must stay in the foreground".to_owned(),
            Some(code) => format!("exit status {code}"),
            None => "unknown status".to_owned(),
        };
        match last_lines(&self.log().await) {
            lines if lines.is_empty() => format!("{status}; no output"),
            lines => format!("{status}; last output: {lines}"),
        }
    }

    /// Returns a handle to sample its CPU time, memory and processes; `None` before it runs.
    pub fn watch(&self) -> Option<Watch> {
        self.process.as_ref().map(|process| process.watch.clone())
    }

    /// Returns a snapshot of its processes.
    pub fn processes(&self) -> Snapshot {
        self.process.as_ref().map(|process| Snapshot::take(process.watch.processes())).unwrap_or_default()
    }

    /// Stops it, killing it after `grace`, and removes it. If its engine does not respond, its processes are killed,
    /// and the rest of it is removed by the next [sweep](Containers::sweep).
    pub async fn stop(mut self, grace: Duration) -> Ended {
        // The group is gone with its last process.
        let mut ended = Ended { observed: self.watch().and_then(|watch| watch.observed()), ..Ended::default() };
        // If that failed, the start has reported why.
        let _ = self.created().await;
        let Some(Created { engine, id }) = &self.created else { return ended };
        if let Some(observed) = &mut ended.observed {
            observed.oom_kills = observed.oom_kills.max(Some(oom_kills(id)));
        }
        if !grace.is_zero() {
            let _ = timeout(grace, engine.docker.stop_container(id, None::<StopContainerOptions>)).await;
        }
        if let Some(process) = &self.process {
            ended.faults.extend(process.watch.kill().await.err());
        }
        ended.log = self.log().await;
        if let Err(fault) = engine.remove(id).await {
            self.prepared.containers.remember_leftovers();
            ended.faults.push(io::Error::other(fault));
        }
        ended
    }

    /// Returns the end of its output; empty if it has none, or its engine does not respond.
    async fn log(&self) -> String {
        let Some(Created { engine, id }) = &self.created else { return String::new() };
        let options = LogsOptionsBuilder::default().stdout(true).stderr(true).tail(LOG_LINES).build();
        let mut stream = engine.docker.logs(id, Some(options));
        let mut log = Vec::new();
        let reading = async {
            while let Some(Ok(part)) = stream.next().await {
                log.extend(LogOutput::into_bytes(part));
                log.drain(..log.len().saturating_sub(LOG_BYTES));
            }
        };
        // What was read until then is better than nothing.
        let _ = timeout(LOG_WAIT, reading).await;
        String::from_utf8_lossy(&log).into_owned()
    }
}

async fn answers(at: SocketAddr, manifest: &Manifest, watch: Option<&Watch>) -> Result<ReferenceResponse, String> {
    let endpoint = Endpoint::local(at)?;
    ready::answer(&endpoint, &manifest.ready).await?;
    // The listener of a published port belongs to the engine.
    if let Some(watch) = watch
        && server_of(at, watch) == Server::Other
    {
        return Err(format!("port {} is served by another process", at.port()));
    }
    ReferenceResponse::learn(endpoint, manifest).await
}

/// Returns the state of a container. Podman has one between the exit and its own cleanup that Docker, and so the
/// library, does not know: that passes.
async fn state(engine: &Engine, id: &str) -> Result<ContainerState, String> {
    let deadline = Instant::now() + CLEANUP;
    loop {
        match engine.docker.inspect_container(id, None).await {
            Ok(inspected) => return inspected.state.ok_or_else(|| "the engine reports no state".to_owned()),
            Err(Error::JsonDataError { .. }) if Instant::now() < deadline => sleep(Duration::from_millis(10)).await,
            Err(error) => return Err(describe_error(&error)),
        }
    }
}

/// Returns the state of a container whose first process has exited: its engine needs a moment to notice.
async fn ended(engine: &Engine, id: &str) -> Result<ContainerState, String> {
    let deadline = Instant::now() + CLEANUP;
    loop {
        let state = state(engine, id).await?;
        if state.running != Some(true) || Instant::now() > deadline {
            return Ok(state);
        }
        sleep(Duration::from_millis(10)).await;
    }
}
