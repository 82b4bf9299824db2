//! A program that the agent starts: in its group, until it serves, and until it is gone.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use brewbench_wire::outcome::Cause;

use super::last_words;
use crate::host::process_snapshot::Snapshot;
use crate::run::failure::Failure;
use crate::sandbox::process::{Process, describe};
use crate::sandbox::{Group, Watch};
use crate::target::answer::ReferenceResponse;
use crate::target::manifest::Manifest;
use crate::target::manifest::Program;
use crate::target::ready::{self, Endpoint, Server, server_of};
use crate::target::serving::{Ended, Serving};

/// Another process may take the chosen port before the target listens on it.
const ATTEMPTS: usize = 2;

/// How long the exit of a program may take that has closed its port.
const EXIT: Duration = Duration::from_millis(500);

/// A program with its group, before it is started, while it runs, or after it has ended.
#[derive(Debug)]
pub struct ProcessTarget {
    program: Program,
    /// Enforces its machine size.
    group: Group,
    /// The CPUs it may use.
    cores: Vec<usize>,
    /// Folder for its temporary files.
    home: PathBuf,
    /// How long the first try of a request may take, if a connection may be accepted and forgotten.
    first_try: Option<Duration>,
    /// Where it serves, if that is not on this machine.
    elsewhere: Option<SocketAddr>,
    /// `None` before the start.
    process: Option<Process>,
}

/// Why a program does not serve.
#[derive(Debug)]
enum Fault {
    /// Another process uses the port.
    PortTaken(String),
    /// It exited.
    Died(String),
    /// Anything else.
    Other(String),
}

impl ProcessTarget {
    /// Prepares a program to be started in its group.
    pub fn new(program: Program, group: Group, cores: Vec<usize>, home: PathBuf) -> Self {
        Self { program, group, cores, home, first_try: None, elsewhere: None, process: None }
    }

    /// Repeats requests for readiness that take longer than this at first, and a little longer each time.
    #[must_use]
    pub fn retried(self, first_try: Duration) -> Self {
        Self { first_try: Some(first_try), ..self }
    }

    /// Expects it to serve at this address, which is not one of this machine.
    #[must_use]
    pub fn serving_at(self, elsewhere: Option<SocketAddr>) -> Self {
        Self { elsewhere, ..self }
    }

    /// Replaces the program before the start.
    pub fn set_program(&mut self, program: Program) {
        self.program = program;
    }

    /// Starts it on an address of this machine and waits until it serves. It can be stopped and its log read even if
    /// this fails or is cancelled.
    pub async fn start(&mut self, manifest: &Manifest, address: IpAddr) -> Result<Serving, Failure> {
        let mut attempts = 1;
        let attempt = loop {
            match self.start_on(manifest, free_port(address)).await {
                Err(Fault::PortTaken(_)) if attempts < ATTEMPTS => attempts += 1,
                attempt => break attempt,
            }
            self.group.kill().await.map_err(|error| Failure::by(Cause::Other)(error.to_string()))?;
        };
        attempt.map_err(|fault| {
            let (reason, cause) = match fault {
                Fault::PortTaken(reason) | Fault::Other(reason) => (reason, Cause::TargetNotReady),
                Fault::Died(reason) => (reason, self.cause_of_death()),
            };
            Failure { reason, cause }
        })
    }

    async fn start_on(&mut self, manifest: &Manifest, at: io::Result<SocketAddr>) -> Result<Serving, Fault> {
        let at = at.map_err(|error| Fault::Other(format!("no free port: {error}")))?;
        let plan = self.program.plan(at, &self.cores, &self.home).map_err(Fault::Other)?;
        let spawned = Instant::now();
        let started = Process::start(&plan, &self.group);
        let started =
            started.map_err(|error| Fault::Other(format!("can't start {}: {error}", plan.program.display())))?;
        let process = self.process.insert(started);
        let (watch, first_try, elsewhere) = (self.group.watch(), self.first_try, self.elsewhere);
        let serving = async {
            match elsewhere {
                Some(guest) => serves_elsewhere(guest, manifest, first_try).await,
                None => serves(at, manifest, &watch, first_try).await,
            }
        };
        let answered = tokio::select! {
            biased;
            _ = process.wait() => {
                Err(Fault::Died(format!("exited before it was ready: {}", self.describe_exit().await)))
            }
            answered = serving => answered.map_err(Fault::Other),
        };
        let answered = match answered {
            Err(Fault::Other(reason)) => Err(self.exited_instead(at).await.unwrap_or(Fault::Other(reason))),
            other => other,
        };
        let known = answered.map_err(|fault| match (server_of(at, &self.group.watch()), fault) {
            (Server::Other, Fault::PortTaken(reason) | Fault::Died(reason) | Fault::Other(reason)) => {
                Fault::PortTaken(format!("port {} is served by another process; {reason}", at.port()))
            }
            (Server::Target | Server::None, fault) => fault,
        })?;
        let startup = known.verified_at().duration_since(spawned);
        Ok(Serving { startup: Some(startup), ..Serving::of(known) })
    }

    /// Returns how it exited while a response of it was expected: that says more than what the request saw.
    async fn exited_instead(&mut self, at: SocketAddr) -> Option<Fault> {
        if server_of(at, &self.group.watch()) != Server::None {
            return None;
        }
        let process = self.process.as_mut()?;
        // Its port is closed a moment before its status is known.
        tokio::time::timeout(EXIT, process.wait()).await.ok()?.ok()?;
        Some(Fault::Died(format!("exited before it was ready: {}", self.describe_exit().await)))
    }

    /// Waits until it has exited; forever if it was not started.
    pub async fn wait(&mut self) {
        match &mut self.process {
            Some(process) => drop(process.wait().await),
            None => std::future::pending().await,
        }
    }

    /// Whether it was started and has exited.
    pub fn has_ended(&mut self) -> bool {
        self.process.as_mut().is_some_and(|process| process.ended().is_some())
    }

    /// Describes why it exited while it was needed.
    pub async fn exit_report(&mut self, when: &str) -> Failure {
        let exit = self.describe_exit().await;
        Failure { reason: format!("exited {when}: {exit}"), cause: self.cause_of_death() }
    }

    /// Returns the end of its output so far.
    pub async fn log(&mut self) -> String {
        match &mut self.process {
            Some(process) => process.log().await,
            None => String::new(),
        }
    }

    /// Returns a handle to sample its CPU time, memory and processes.
    pub fn watch(&self) -> Watch {
        self.group.watch()
    }

    /// Returns a snapshot of its processes.
    pub fn processes(&self) -> Snapshot {
        Snapshot::take(self.group.processes())
    }

    /// Stops it, killing it after `grace`, and removes its group.
    pub async fn stop(mut self, grace: Duration) -> Ended {
        let mut ended = Ended::default();
        if let Some(mut process) = self.process.take() {
            ended.faults.extend(process.stop(grace, &self.group).await.err());
            ended.log = process.log().await;
        }
        ended.observed = self.group.observed();
        ended.faults.extend(self.group.clear().await.err());
        ended
    }

    /// Returns the cause to report for its exit.
    fn cause_of_death(&self) -> Cause {
        if self.was_killed_for_memory() { Cause::TargetOutOfMemory } else { Cause::TargetDied }
    }

    fn was_killed_for_memory(&self) -> bool {
        self.group.observed().and_then(|observed| observed.oom_kills).is_some_and(|kills| kills > 0)
    }

    /// Describes why it has exited, as the end of a sentence.
    async fn describe_exit(&mut self) -> String {
        let is_memory = self.was_killed_for_memory();
        let Some(process) = &mut self.process else { return "it was not started".to_owned() };
        let status = process.ended();
        let words = status.map_or_else(|| "unknown status".to_owned(), describe);
        let cause = if is_memory { "OOM-killed".to_owned() } else { words };
        format!("{cause}; {}", last_words::describe(status, &process.log().await))
    }
}

async fn serves(
    at: SocketAddr,
    manifest: &Manifest,
    group: &Watch,
    first_try: Option<Duration>,
) -> Result<ReferenceResponse, String> {
    let mut endpoint = Endpoint::local(at)?;
    endpoint.first_try = first_try;
    ready::answer(&endpoint, &manifest.ready).await?;
    match server_of(at, group) {
        Server::Target => {}
        Server::Other => return Err("the response came from another process".to_owned()),
        Server::None => return Err(format!("it answered, but nothing listens on port {}", at.port())),
    }
    ReferenceResponse::learn(endpoint, manifest).await
}

/// The same for an address that no process of this machine has.
async fn serves_elsewhere(
    at: SocketAddr,
    manifest: &Manifest,
    first_try: Option<Duration>,
) -> Result<ReferenceResponse, String> {
    let mut endpoint = Endpoint::remote(&format!("http://{at}"), ready::client()?);
    endpoint.first_try = first_try;
    ready::answer(&endpoint, &manifest.ready).await?;
    ReferenceResponse::learn(endpoint, manifest).await
}

/// Returns a free port. Another process may take it right after: see [`ATTEMPTS`].
fn free_port(address: IpAddr) -> io::Result<SocketAddr> {
    TcpListener::bind((address, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::Ipv4Addr;
    use std::sync::mpsc;

    use brewbench_wire::RunId;

    use super::super::tests::{manifest, program_of};
    use super::*;
    use crate::sandbox::{self, ProgramRole};

    /// Starts a server that does not belong to a run.
    fn foreign_server() -> u16 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("bound").port();
        let (ready, started) = mpsc::channel();
        std::thread::spawn(move || {
            ready.send(()).expect("a listener");
            for mut stream in listener.incoming().flatten() {
                let head = BufReader::new(stream.try_clone().expect("a copy")).lines().map_while(Result::ok);
                for _line in head.take_while(|line| !line.is_empty()) {}
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            }
        });
        started.recv().expect("a start");
        port
    }

    #[tokio::test]
    async fn a_response_of_another_process_is_not_accepted() {
        for script in ["sleep 600", "echo port taken; exit 1"] {
            let group =
                sandbox::Sandbox::none("foreign server").open(RunId::now(), ProgramRole::Target).expect("a group");
            let manifest = manifest(script);
            let mut target = ProcessTarget::new(program_of(manifest.clone()), group, Vec::new(), "/nowhere".into());
            let port = foreign_server();
            let fault = target.start_on(&manifest, Ok((Ipv4Addr::LOCALHOST, port).into())).await.expect_err("a fault");
            let Fault::PortTaken(reason) = fault else { panic!("{fault:?}") };
            assert!(reason.starts_with(&format!("port {port} is served by another process; ")), "{reason}");
            let ended = target.stop(Duration::ZERO).await;
            assert!(ended.faults.is_empty(), "{ended:?}");
        }
    }
}
