//! What an engine is asked to create: a container with the limits of a machine size. Mostly pure.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};

use bollard::models::{ContainerCreateBody, HostConfig, HostConfigLogConfig, PortBinding, ResourcesUlimits};
use brewbench_wire::RunId;
use brewbench_wire::job::Size;
use brewbench_wire::manifest::{Container, HOST, Mount, Network, PORT};
use rustix::process::{Resource, getrlimit};

use super::engine::{AGENT_LABEL, RUN_LABEL};
use crate::sandbox::MAX_PIDS;

/// How much output an engine keeps; the agent reads the end of it.
const LOG_SIZE: &str = "1m";

/// What is decided for one run.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    /// The manifest's part.
    pub container: &'a Container,
    /// Id of the image, so that a tag can't move in between.
    pub image: &'a str,
    /// Where it shall be reachable on this machine.
    pub at: SocketAddr,
    /// Its limits.
    pub size: &'a Size,
    /// The CPUs it may use; empty for all.
    pub cores: &'a [usize],
    /// The agent's name on this machine.
    pub agent: &'a str,
    /// The run.
    pub run: RunId,
    /// Whether the engine is Podman.
    pub is_podman: bool,
}

impl Plan<'_> {
    /// Returns the request. Fails with a sentence if the seccomp profile can't be read, or the container can't listen
    /// where it should.
    pub fn request(&self) -> Result<ContainerCreateBody, String> {
        let Self { container, image, at, agent, run, .. } = self;
        if !at.ip().is_loopback() && !container.listens_anywhere() {
            let host = HOST;
            return Err(format!(
                "container: {host} is missing in command and env, so the target can't listen on {}",
                at.ip()
            ));
        }
        let env: Vec<_> = container.env.iter().map(|(name, value)| format!("{name}={}", self.fill(value))).collect();
        let command: Vec<_> = container.command.iter().map(|word| self.fill(word)).collect();
        let labels = [(AGENT_LABEL, (*agent).to_owned()), (RUN_LABEL, run.to_string())];
        Ok(ContainerCreateBody {
            image: Some((*image).to_owned()),
            cmd: (!command.is_empty()).then_some(command),
            env: Some(env),
            user: container.user.clone(),
            labels: Some(labels.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
            exposed_ports: self.is_bridged().then(|| vec![self.published()]),
            host_config: Some(self.host_config()?),
            ..ContainerCreateBody::default()
        })
    }

    fn host_config(&self) -> Result<HostConfig, String> {
        let Self { container, at, size, cores, .. } = self;
        let memory = i64::try_from(size.memory_bytes).unwrap_or(i64::MAX);
        let cores: Vec<_> = cores.iter().map(usize::to_string).collect();
        let publish = || {
            let here = PortBinding { host_ip: Some(at.ip().to_string()), host_port: Some(at.port().to_string()) };
            HashMap::from([(self.published(), Some(vec![here]))])
        };
        let mount = |Mount { source, target }: &Mount| format!("{}:{target}:ro", source.display());
        Ok(HostConfig {
            nano_cpus: Some(nano_cpus(size.vcpus)),
            cpuset_cpus: (!cores.is_empty()).then(|| cores.join(",")),
            memory: Some(memory),
            // Memory and swap together: no swap.
            memory_swap: Some(memory),
            pids_limit: i64::try_from(MAX_PIDS).ok(),
            ulimits: Some(limits()),
            binds: (!container.mounts.is_empty()).then(|| container.mounts.iter().map(mount).collect()),
            network_mode: Some(container.network.to_string()),
            port_bindings: self.is_bridged().then(publish),
            security_opt: Some(self.security()?),
            log_config: Some(HostConfigLogConfig {
                typ: Some("json-file".to_owned()),
                config: Some(HashMap::from([("max-size".to_owned(), LOG_SIZE.to_owned())])),
            }),
            ..HostConfig::default()
        })
    }

    /// A program must not gain privileges that the container did not start with.
    fn security(&self) -> Result<Vec<String>, String> {
        let seccomp = match self.container.seccomp.as_deref() {
            None | Some("default") => None,
            Some("unconfined") => Some("unconfined".to_owned()),
            // Podman reads the file itself, Docker wants its content.
            Some(path) if self.is_podman => Some(path.to_owned()),
            Some(path) => {
                Some(fs::read_to_string(path).map_err(|error| format!("container.seccomp: {path}: {error}"))?)
            }
        };
        let seccomp = seccomp.map(|profile| format!("seccomp={profile}"));
        Ok(["no-new-privileges".to_owned()].into_iter().chain(seccomp).collect())
    }

    fn is_bridged(&self) -> bool {
        self.container.network == Network::Bridge
    }

    /// Returns the port inside the container, in the engine's notation.
    fn published(&self) -> String {
        format!("{}/tcp", self.container.port.unwrap_or(self.at.port()))
    }

    fn fill(&self, text: &str) -> String {
        let host = match self.at.ip() {
            // Behind a bridge, a container has an address of its own.
            _ if self.is_bridged() => "0.0.0.0".to_owned(),
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        text.replace(PORT, &self.at.port().to_string()).replace(HOST, &host)
    }
}

#[expect(clippy::cast_possible_truncation, reason = "cores are far below 2^30")]
fn nano_cpus(vcpus: f64) -> i64 {
    (vcpus * 1e9).round() as i64
}

/// The limits that a program of this agent has, so that a container has no other. Engines need both of them: one that
/// is not named becomes more than an engine without privileges may set.
fn limits() -> Vec<ResourcesUlimits> {
    let files = getrlimit(Resource::Nofile);
    let number = |limit: Option<u64>| limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(1 << 20);
    let processes = getrlimit(Resource::Nproc).maximum.map_or(MAX_PIDS, |most| most.min(MAX_PIDS));
    let limit = |name: &str, soft: Option<u64>, hard: Option<u64>| ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(number(soft)),
        hard: Some(number(hard)),
    };
    vec![limit("nofile", files.current, files.maximum), limit("nproc", Some(processes), Some(processes))]
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn request(container: &str, at: SocketAddr) -> Result<ContainerCreateBody, String> {
        let container: Container = toml::from_str(container).expect("a container");
        let size = Size { name: "s".to_owned(), vcpus: 0.3, memory_bytes: 64 << 20, replicas: 1 };
        let plan = Plan {
            container: &container,
            image: "sha256:ab",
            at,
            size: &size,
            cores: &[1, 3],
            agent: "a",
            run: RunId::now(),
            is_podman: true,
        };
        plan.request()
    }

    #[test]
    fn a_container_has_the_limits_of_its_size_and_no_swap() {
        let here = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
        let asked = request("image = \"x\"\ncommand = [\"--at\", \"{host}:{port}\"]\nenv = { A = \"{port}\" }", here);
        let asked = asked.expect("a request");
        assert_eq!(asked.cmd, Some(vec!["--at".to_owned(), "127.0.0.1:4000".to_owned()]));
        assert_eq!(asked.env, Some(vec!["A=4000".to_owned()]));
        assert_eq!(asked.image.as_deref(), Some("sha256:ab"), "not the tag");
        let host = asked.host_config.expect("a configuration");
        assert_eq!((host.nano_cpus, host.cpuset_cpus.as_deref()), (Some(300_000_000), Some("1,3")));
        assert_eq!((host.memory, host.memory_swap), (Some(64 << 20), Some(64 << 20)));
        assert_eq!((host.network_mode.as_deref(), host.port_bindings), (Some("host"), None));
        assert_eq!((host.privileged, host.cap_add, host.binds), (None, None, None));
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".to_owned()]));
        assert_eq!(host.ulimits.map(|limits| limits.len()), Some(2));
    }

    #[test]
    fn a_bridged_container_publishes_its_port_on_the_address_of_the_load() {
        let there = SocketAddr::from(([10, 0, 0, 5], 4000));
        let text = "image = \"x\"\nport = 80\nnetwork = \"bridge\"\nseccomp = \"unconfined\"\n\
            mounts = [{ source = \"/data\", target = \"/srv\" }]";
        let host = request(text, there).expect("a request").host_config.expect("a configuration");
        let ports = host.port_bindings.expect("ports");
        let bound = &ports["80/tcp"].as_ref().expect("a port")[0];
        assert_eq!((bound.host_ip.as_deref(), bound.host_port.as_deref()), (Some("10.0.0.5"), Some("4000")));
        assert_eq!(host.binds, Some(vec!["/data:/srv:ro".to_owned()]));
        assert_eq!(host.security_opt.expect("options")[1], "seccomp=unconfined");
        let fault = request("image = \"x\"\nport = 80", there).expect_err("a fault");
        assert!(fault.contains("{host}"), "{fault}");
    }
}
