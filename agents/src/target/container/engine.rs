//! The container engine of this machine: Docker, or Podman with Docker's API.

use std::collections::{BTreeSet, HashMap};
use std::env;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bollard::errors::Error;
use bollard::models::SystemVersion;
use bollard::query_parameters::{ListContainersOptionsBuilder, RemoveContainerOptionsBuilder};
use bollard::{API_DEFAULT_VERSION, Docker};
use nix::unistd::{AccessFlags, access};
use tokio::time::{sleep, timeout};

use super::{image, podman};
use crate::sandbox::{self, CGROUP_ROOT};

/// Label of a container with the agent's name on this machine.
pub const AGENT_LABEL: &str = "brewbench.agent";
/// Label of a container with its run.
pub const RUN_LABEL: &str = "brewbench.run";

/// Maximum time for the response to any request but a pull. The engine may be starting other containers.
const PATIENCE: Duration = Duration::from_mins(1);

/// Maximum time of a later attempt to remove what was left: an idle agent waits for it. On a busy machine, shorter attempts
/// would all be given up before the engine has answered.
const LATER: Duration = Duration::from_secs(20);

/// Maximum time for the first response: to name its version, Podman starts programs.
const HELLO: Duration = Duration::from_secs(10);

/// How long the engine may take to finish a request of an agent that was killed.
const UNFINISHED: Duration = Duration::from_mins(1);

/// How long a run waits for an engine that may be restarting, and how often it tries.
const RESTART: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_millis(250);

/// Where an agent's container engine is, or why it has none.
#[derive(Clone, Debug)]
pub struct Containers {
    agent: String,
    socket: Result<PathBuf, NoEngine>,
    /// Whether a container may be left that could not be removed.
    has_leftovers: Arc<AtomicBool>,
    /// Until when the engine may still create what a killed process of this agent has requested.
    unfinished_until: Option<Instant>,
}

/// Why an agent uses no container engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoEngine {
    /// There is none.
    #[error(
        "no container engine found: install Docker or Podman and start its service, or name its socket with \
         --container-engine"
    )]
    None,
    /// There are several.
    #[error("several container engines found ({0}): choose one with --container-engine")]
    Several(String),
}

impl Containers {
    /// Uses the socket that the agent's owner named, or else the only one on this machine. `agent` marks the
    /// containers.
    pub fn find(named: Option<&Path>, agent: &str) -> Self {
        let socket = match named {
            Some(socket) => Ok(without_scheme(socket)),
            None => the_only_one(candidates(|name| env::var(name).ok())),
        };
        Self { agent: agent.to_owned(), socket, has_leftovers: Arc::default(), unfinished_until: None }
    }

    /// Uses none.
    pub fn none() -> Self {
        let socket = Err(NoEngine::None);
        Self { agent: String::new(), socket, has_leftovers: Arc::default(), unfinished_until: None }
    }

    /// Expects containers after the first sweep: an earlier process of this agent was killed during a run, and an
    /// engine finishes a request whose sender is gone.
    #[must_use]
    pub fn with_unfinished_requests(self) -> Self {
        Self { unfinished_until: Some(Instant::now() + UNFINISHED), ..self }
    }

    /// Returns the engine's socket.
    pub fn socket(&self) -> Result<&Path, &NoEngine> {
        self.socket.as_deref()
    }

    /// Returns the engine's socket, or one of several, if this process may use it.
    pub fn usable_socket(&self) -> Option<PathBuf> {
        let all = candidates(|name| env::var(name).ok()).into_iter().chain(self.socket().ok().map(Path::to_owned));
        all.into_iter().find(|socket| access(socket, AccessFlags::R_OK | AccessFlags::W_OK).is_ok())
    }

    /// Connects to the engine. The error is a sentence.
    pub async fn connect(&self) -> Result<Engine, String> {
        let socket = self.socket().map_err(ToString::to_string)?;
        let at = socket.display();
        let silent = |error: &dyn std::fmt::Display| format!("the container engine at {at} does not respond: {error}");
        let docker = Docker::connect_with_unix(&socket.to_string_lossy(), PATIENCE.as_secs(), API_DEFAULT_VERSION);
        let docker = docker.map_err(|error| silent(&describe_error(&error)))?;
        let hello = async {
            let docker = docker.negotiate_version().await?;
            docker.version().await.map(|version| Engine {
                docker,
                version,
                agent: self.agent.clone(),
                socket: socket.to_owned(),
            })
        };
        match timeout(HELLO, hello).await {
            Ok(answered) => answered.map_err(|error| silent(&describe_error(&error))),
            Err(_) => Err(silent(&format!("no answer within {} s", HELLO.as_secs()))),
        }
    }

    /// Connects to the engine, which may be restarting. `progress` is called with a sentence while this waits.
    pub async fn connect_patiently(&self, progress: impl Fn(String)) -> Result<Engine, String> {
        let deadline = Instant::now() + RESTART;
        loop {
            match self.connect().await {
                Err(fault) if self.socket.is_ok() && Instant::now() < deadline => progress(format!("Waiting: {fault}")),
                connected => return connected,
            }
            sleep(RETRY).await;
        }
    }

    /// Removes the containers of this agent that an earlier run, or an earlier process, has left; returns their names.
    /// Without an engine there are none.
    pub async fn sweep(&self) -> Result<Vec<String>, String> {
        if self.socket.is_err() {
            return Ok(Vec::new());
        }
        let sweeping = async { self.connect().await?.sweep().await };
        let swept = sweeping.await;
        self.has_leftovers.store(swept.is_err(), Ordering::Relaxed);
        swept
    }

    /// Makes an image of the files of an archive. The error is a sentence.
    pub async fn import(&self, name: &str, archive: Vec<u8>) -> Result<(), String> {
        image::import(&self.connect().await?, name, archive).await
    }

    /// Sweeps if a container could not be removed earlier, or may have been created since. Only while no run is in
    /// progress.
    pub async fn sweep_again(&self) {
        let has_unfinished = self.unfinished_until.is_some_and(|until| Instant::now() < until);
        if !has_unfinished && !self.has_leftovers.load(Ordering::Relaxed) {
            return;
        }
        match timeout(LATER, self.sweep()).await {
            Ok(Ok(swept)) if swept.is_empty() => {}
            Ok(Ok(swept)) => tracing::info!(containers = ?swept, "removed containers that were left"),
            Ok(Err(fault)) => tracing::debug!(fault, "containers that were left remain"),
            Err(_) => tracing::debug!("containers that were left remain: no answer within {} s", LATER.as_secs()),
        }
    }

    /// Remembers that a container could not be removed.
    pub(super) fn remember_leftovers(&self) {
        self.has_leftovers.store(true, Ordering::Relaxed);
    }
}

/// A connected engine.
#[derive(Clone, Debug)]
pub struct Engine {
    pub docker: Docker,
    pub version: SystemVersion,
    pub agent: String,
    socket: PathBuf,
}

impl Engine {
    /// Whether it is Podman, which differs from Docker in a few places.
    pub fn is_podman(&self) -> bool {
        let components = self.version.components.iter().flatten();
        components.into_iter().any(|component| component.name.starts_with("Podman"))
    }

    /// Removes all containers of this agent; returns their names, or ids.
    pub async fn sweep(&self) -> Result<Vec<String>, String> {
        let mut removed = Vec::new();
        for (id, name) in self.own().await? {
            self.remove(&id).await?;
            removed.push(name.unwrap_or(id));
        }
        Ok(removed)
    }

    /// Lists the containers of this agent: ids, and names if known.
    async fn own(&self) -> Result<Vec<(String, Option<String>)>, String> {
        let label = format!("{AGENT_LABEL}={}", self.agent);
        let filters = HashMap::from([("label", vec![label.clone()])]);
        let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
        let found = match self.docker.list_containers(Some(options)).await {
            Ok(found) => found,
            Err(error) if self.is_podman() => {
                let ids = podman::ids(&self.socket, &label).await;
                let ids = ids.map_err(|fault| format!("can't list containers: {}; {fault}", describe_error(&error)))?;
                return Ok(ids.into_iter().map(|id| (id, None)).collect());
            }
            Err(error) => return Err(format!("can't list containers: {}", describe_error(&error))),
        };
        let name = |names: Option<Vec<String>>| Some(names?.first()?.trim_start_matches('/').to_owned());
        Ok(found.into_iter().filter_map(|container| Some((container.id?, name(container.names)))).collect())
    }

    /// Kills and removes a container with its anonymous volumes, and what the engine has forgotten of it. One that is
    /// gone already is no error.
    pub async fn remove(&self, id: &str) -> Result<(), String> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.docker.remove_container(id, Some(options)).await {
            Ok(()) | Err(Error::DockerResponseServerError { status_code: 404, .. }) => {}
            Err(error) => return Err(format!("can't remove container {id}: {}", describe_error(&error))),
        }
        let cleared = sandbox::clear_container(Path::new(CGROUP_ROOT), id).await;
        cleared.map_err(|error| format!("can't remove what is left of container {id}: {error}"))
    }
}

/// Describes an error without the words of the library.
pub fn describe_error(error: &Error) -> String {
    match error {
        Error::DockerResponseServerError { message, .. } => message.trim().to_owned(),
        Error::DockerStreamError { error } => error.trim().to_owned(),
        Error::SocketNotFoundError(path) => format!("there is no socket {path}"),
        Error::RequestTimeoutError => format!("no answer within {} s", PATIENCE.as_secs()),
        other => brewbench_io::client::innermost(other),
    }
}

fn without_scheme(socket: &Path) -> PathBuf {
    let text = socket.to_string_lossy();
    text.strip_prefix("unix://").map_or_else(|| socket.to_owned(), PathBuf::from)
}

/// Returns the sockets where engines listen: those that the environment names, or else the usual places.
fn candidates(variable: impl Fn(&str) -> Option<String>) -> Vec<PathBuf> {
    let named = ["DOCKER_HOST", "CONTAINER_HOST"].into_iter().filter_map(&variable).filter(|host| !host.is_empty());
    let named: Vec<PathBuf> = named.map(|host| without_scheme(Path::new(&host))).collect();
    if !named.is_empty() {
        return named;
    }
    let own = variable("XDG_RUNTIME_DIR")
        .into_iter()
        .flat_map(|own| ["docker.sock", "podman/podman.sock"].map(|name| Path::new(&own).join(name)));
    let system = ["/run/docker.sock", "/run/podman/podman.sock"].map(PathBuf::from);
    system.into_iter().chain(own).filter(|path| path.exists()).collect()
}

fn the_only_one(found: Vec<PathBuf>) -> Result<PathBuf, NoEngine> {
    let found: BTreeSet<PathBuf> = found.into_iter().map(|path| path.canonicalize().unwrap_or(path)).collect();
    let names: Vec<_> = found.iter().map(|path| path.display().to_string()).collect();
    match found.into_iter().collect::<Vec<_>>() {
        none if none.is_empty() => Err(NoEngine::None),
        mut one if one.len() == 1 => Ok(one.remove(0)),
        _ => Err(NoEngine::Several(names.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_the_engine() {
        let environment = |name: &str| match name {
            "DOCKER_HOST" => Some("unix:///somewhere/docker.sock".to_owned()),
            "XDG_RUNTIME_DIR" => Some("/nowhere".to_owned()),
            _ => None,
        };
        assert_eq!(candidates(environment), [Path::new("/somewhere/docker.sock")]);
    }

    #[test]
    fn an_engine_is_used_only_if_it_is_the_only_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let [one, other, link] = ["a", "b", "c"].map(|name| folder.path().join(name));
        for file in [&one, &other] {
            std::fs::write(file, "").expect("a file");
        }
        std::os::unix::fs::symlink(&one, &link).expect("a link");
        let one = one.canonicalize().expect("a path");
        assert_eq!(the_only_one(vec![one.clone(), link]), Ok(one.clone()));
        assert!(matches!(the_only_one(vec![one, other]), Err(NoEngine::Several(_))));
        assert_eq!(the_only_one(Vec::new()), Err(NoEngine::None));
    }
}
