//! Targets: found in manifests, started in their group, known to serve.

mod answer;
mod fingerprint;
pub mod manifest;
mod ready;

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use answer::Known;
pub use fingerprint::Fingerprints;
pub use manifest::{Manifest, ManifestError, Sandbox};
pub(crate) use ready::{Server, client as direct_client, server_of};

use crate::run::failure::Failure;
use crate::sandbox::Group;
use crate::sandbox::cage::Cage;
use crate::sandbox::process::{Plan, Process, describe, find_program, last_lines};
use crate::wire::messages::TargetOffer;
use crate::wire::offer::{MOST_TARGETS, target_fault};
use crate::wire::outcome::Cause;

/// What an agent can start from a folder of manifests, and why the rest can't be.
pub fn offers(folder: &Path, fingerprints: &Fingerprints) -> (Vec<TargetOffer>, Vec<ManifestError>) {
    let (manifests, mut errors) = manifest::load(folder);
    let mut offers = Vec::new();
    for manifest in manifests {
        match manifest.fingerprint(fingerprints) {
            Ok(sha256) => {
                let anywhere = manifest.listens_anywhere();
                let Manifest { name, version, description, .. } = manifest;
                let offer = TargetOffer { name, version, description, sha256, anywhere };
                match target_fault(&offer) {
                    None => offers.push(offer),
                    Some(message) => errors.push(ManifestError { file: folder.join(offer.name), message }),
                }
            }
            Err(message) => errors.push(ManifestError { file: folder.join(manifest.name), message }),
        }
    }
    for offer in offers.drain(offers.len().min(MOST_TARGETS)..) {
        let message = format!("an agent offers at most {MOST_TARGETS} targets");
        errors.push(ManifestError { file: folder.join(offer.name), message });
    }
    (offers, errors)
}

impl Manifest {
    /// The program's file. Relative to the manifest's folder, except for a bare name, which comes from `PATH`.
    pub fn program(&self) -> Result<PathBuf, String> {
        let name = Path::new(self.command.first().map_or("", String::as_str));
        let path = if name.components().count() > 1 { self.folder.join(name) } else { name.to_owned() };
        find_program(&path).ok_or_else(|| format!("command: there is no program {}", path.display()))
    }

    /// SHA-256 in hex of the program's file.
    pub fn fingerprint(&self, fingerprints: &Fingerprints) -> Result<String, String> {
        let program = self.program()?;
        fingerprints.of(&program).map_err(|error| format!("command: can't read {}: {error}", program.display()))
    }

    /// Whether it can be told to listen elsewhere than on loopback.
    pub fn listens_anywhere(&self) -> bool {
        self.command.iter().chain(self.env.values()).any(|text| text.contains(manifest::HOST))
    }

    /// The files and folders outside its own that the command names: its owner means it to read them.
    fn named(&self) -> Vec<PathBuf> {
        self.command.iter().skip(1).map(PathBuf::from).filter(|path| path.is_absolute() && path.exists()).collect()
    }

    fn plan(&self, at: SocketAddr, cores: &[usize], home: &Path) -> Result<Plan, String> {
        if !at.ip().is_loopback() && !self.listens_anywhere() {
            let host = manifest::HOST;
            return Err(format!(
                "command: neither it nor env says {host}, so it can't be told to listen on {}",
                at.ip()
            ));
        }
        let host = match at.ip() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let fill = |text: &String| text.replace(manifest::PORT, &at.port().to_string()).replace(manifest::HOST, &host);
        let environment: BTreeMap<_, _> = self.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        let program = self.program()?;
        let Sandbox { read, write } = &self.sandbox;
        Ok(Plan {
            cage: Cage::target(&program, &self.folder, home).widened(&self.named(), &[]).widened(read, write),
            program,
            arguments: self.command.iter().skip(1).map(fill).collect(),
            environment,
            folder: self.folder.clone(),
            cores: cores.to_vec(),
        })
    }
}

/// Why a target does not serve.
#[derive(Debug)]
enum Fault {
    /// Somebody else has the port.
    PortTaken(String),
    /// It ended.
    Died(String),
    /// Anything else.
    Other(String),
}

/// A target that serves.
#[derive(Debug)]
pub struct Serving {
    /// Where.
    pub base_url: String,
    /// What it answers.
    pub known: Known,
    /// From starting its process to its first verified answer.
    pub startup: Duration,
}

/// Starts a target on an address of this machine and awaits that it serves. The process is left in `slot`, also when it
/// failed or this is given up, so that the caller can stop it and read its log.
pub async fn start(
    manifest: &Manifest,
    address: IpAddr,
    place: (&Group, &[usize]),
    home: &Path,
    slot: &mut Option<Process>,
) -> Result<Serving, Failure> {
    let (group, _) = place;
    let attempt = start_on(free_port(address), manifest, place, home, slot).await;
    let attempt = match attempt {
        // Between choosing a port and listening on it somebody else may have been faster.
        Err(Fault::PortTaken(_)) => {
            let killed = group.kill().await.map_err(|error| format!("target {}: {error}", manifest.name));
            killed.map_err(Failure::by(Cause::Other))?;
            start_on(free_port(address), manifest, place, home, slot).await
        }
        attempt => attempt,
    };
    attempt.map_err(|fault| {
        let (reason, cause) = match fault {
            Fault::PortTaken(reason) | Fault::Other(reason) => (reason, Cause::TargetNotReady),
            Fault::Died(reason) => (reason, death(group)),
        };
        Failure { reason: format!("target {}: {reason}", manifest.name), cause }
    })
}

async fn start_on(
    at: io::Result<SocketAddr>,
    manifest: &Manifest,
    (group, cores): (&Group, &[usize]),
    home: &Path,
    slot: &mut Option<Process>,
) -> Result<Serving, Fault> {
    let at = at.map_err(|error| Fault::Other(format!("there is no free port: {error}")))?;
    let plan = manifest.plan(at, cores, home).map_err(Fault::Other)?;
    let spawned = Instant::now();
    let started = Process::start(&plan, group);
    let started = started.map_err(|error| Fault::Other(format!("can't start {}: {error}", plan.program.display())))?;
    let process = slot.insert(started);
    let answered = tokio::select! {
        biased;
        _ = process.wait() => {
            Err(Fault::Died(format!("it ended before it was ready: {}", obituary(process, group).await)))
        }
        answered = serves(at, manifest, group) => answered.map_err(Fault::Other),
    };
    let known = answered.map_err(|fault| match (server_of(at, group), fault) {
        (Server::Stranger, Fault::PortTaken(reason) | Fault::Died(reason) | Fault::Other(reason)) => {
            Fault::PortTaken(format!("port {} is served by another process; {reason}", at.port()))
        }
        (Server::Target | Server::Nobody, fault) => fault,
    })?;
    let startup = known.verified_at().duration_since(spawned);
    Ok(Serving { base_url: format!("http://{at}"), known, startup })
}

async fn serves(at: SocketAddr, manifest: &Manifest, group: &Group) -> Result<Known, String> {
    ready::answer(at, &manifest.ready).await?;
    match server_of(at, group) {
        Server::Target => {}
        Server::Stranger => return Err("the answer was not the target's".to_owned()),
        Server::Nobody => return Err(format!("it answered, but nobody listens on port {}", at.port())),
    }
    Known::learn(at, manifest).await
}

/// What it is about when a target has ended.
pub fn death(group: &Group) -> Cause {
    if was_killed_for_memory(group) { Cause::TargetOutOfMemory } else { Cause::TargetDied }
}

fn was_killed_for_memory(group: &Group) -> bool {
    group.observed().and_then(|seen| seen.oom_kills).is_some_and(|kills| kills > 0)
}

/// Why a target that has ended did, for the end of a sentence.
pub async fn obituary(process: &mut Process, group: &Group) -> String {
    let status = process.ended().map_or_else(|| "unknown status".to_owned(), describe);
    let cause = if was_killed_for_memory(group) { "killed: out of memory".to_owned() } else { status };
    match last_lines(&process.log().await) {
        lines if lines.is_empty() => format!("{cause}; it wrote nothing"),
        lines if DENIED.iter().any(|words| lines.contains(words)) => {
            format!("{cause}; its last lines: {lines}; what it may read and write is in [sandbox] of its manifest")
        }
        lines => format!("{cause}; its last lines: {lines}"),
    }
}

/// How programs say that they may not use a file.
const DENIED: [&str; 3] = ["ermission denied", "EACCES", "PermissionError"];

/// A port that nobody listens on now. Somebody may the next moment: see [`start`].
fn free_port(address: IpAddr) -> io::Result<SocketAddr> {
    TcpListener::bind((address, 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::net::Ipv4Addr;
    use std::sync::mpsc;

    use super::*;
    use crate::sandbox::{self, Side};
    use crate::wire::RunId;

    fn manifest(script: &str) -> Manifest {
        let text = format!(
            "name = \"x\"\nversion = \"1\"\ncommand = [\"sh\", \"-c\", {script:?}, \"{{port}}\"]\n\
             [ready]\npath = \"/\"\ntimeout_s = 600"
        );
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("x.toml"), text).expect("a file");
        manifest::load(folder.path()).0.remove(0).in_folder("/")
    }

    impl Manifest {
        fn in_folder(self, folder: &str) -> Self {
            Self { folder: folder.into(), ..self }
        }
    }

    /// A server that belongs to nobody's run.
    fn stranger() -> u16 {
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

    #[test]
    fn a_target_listens_elsewhere_only_where_its_manifest_says_how() {
        let (there, home) = (SocketAddr::from(([10, 0, 0, 5], 81)), Path::new("/nowhere"));
        let told = manifest("x").plan(there, &[], home).expect_err("it can't");
        assert!(told.contains("{host}"), "{told}");
        let able = manifest("serve {host}:{port}");
        assert!(able.listens_anywhere());
        assert_eq!(able.plan(there, &[], home).expect("a plan").arguments[1], "serve 10.0.0.5:81");
        let here = SocketAddr::from(([127, 0, 0, 1], 82));
        assert_eq!(able.plan(here, &[], home).expect("a plan").arguments[1], "serve 127.0.0.1:82");
        let six = SocketAddr::from((std::net::Ipv6Addr::LOCALHOST, 83));
        assert_eq!(able.plan(six, &[], home).expect("a plan").arguments[1], "serve [::1]:83");
    }

    #[tokio::test]
    async fn an_answer_of_another_process_is_not_the_target_s() {
        let group = sandbox::Sandbox::none("stranger").open(RunId::now(), Side::Target).expect("a group");
        for script in ["sleep 600", "echo port taken; exit 1"] {
            let port = stranger();
            let mut slot = None;
            let (at, home) = (Ok((Ipv4Addr::LOCALHOST, port).into()), Path::new("/nowhere"));
            let started = start_on(at, &manifest(script), (&group, &[]), home, &mut slot).await;
            let fault = started.expect_err("a fault");
            let Fault::PortTaken(reason) = fault else { panic!("{fault:?}") };
            assert!(reason.starts_with(&format!("port {port} is served by another process; ")), "{reason}");
            slot.expect("a process").stop(std::time::Duration::ZERO, &group).await.expect("a stop");
        }
    }
}
