//! Startup, readiness and liveness probes.

use std::{
    net::Ipv4Addr,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use k8s_openapi::{
    api::core::v1::{Container, Probe},
    apimachinery::pkg::util::intstr::IntOrString,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::Command,
    task::JoinHandle,
};

use super::launch::first_process;

/// Pause between probes of a container that is not ready yet. A kubelet, too, probes more often then.
const STARTING: Duration = Duration::from_millis(200);

/// Probes a container until dropped.
#[derive(Debug)]
pub struct Prober {
    verdict: Arc<Verdict>,
    task: JoinHandle<()>,
}

/// What the probes have found.
#[derive(Debug, Default)]
struct Verdict {
    started: AtomicBool,
    ready: AtomicBool,
    failed: AtomicBool,
}

/// What is probed: the process that waits for the container leads to its namespaces.
struct Target {
    container: Container,
    address: Ipv4Addr,
    waiter: u32,
}

impl Prober {
    /// Starts to probe a container. Without a probe it has started and is ready at once.
    pub fn start(container: &Container, address: Ipv4Addr, waiter: u32) -> Self {
        let verdict = Arc::<Verdict>::default();
        verdict.started.store(container.startup_probe.is_none(), Ordering::Relaxed);
        let has_none = container.startup_probe.is_none() && container.readiness_probe.is_none();
        verdict.ready.store(has_none, Ordering::Relaxed);
        let target = Target { container: container.clone(), address, waiter };
        let task = tokio::spawn(run(target, Arc::clone(&verdict)));
        Self { verdict, task }
    }

    /// Whether the startup probe has succeeded.
    pub fn has_started(&self) -> bool {
        self.verdict.started.load(Ordering::Relaxed)
    }

    /// Whether the container is ready.
    pub fn is_ready(&self) -> bool {
        self.verdict.ready.load(Ordering::Relaxed)
    }

    /// Whether the container is to be killed because of a probe; true once.
    pub fn take_failure(&self) -> bool {
        self.verdict.failed.swap(false, Ordering::Relaxed)
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn run(target: Target, verdict: Arc<Verdict>) {
    let Container { startup_probe, readiness_probe, liveness_probe, .. } = &target.container;
    if let Some(probe) = startup_probe {
        let mut has_started = false;
        let report = |success| {
            has_started = success;
            false
        };
        follow(probe, &target, Duration::MAX, report).await;
        if !has_started {
            verdict.failed.store(true, Ordering::Relaxed);
            return;
        }
        verdict.started.store(true, Ordering::Relaxed);
    }
    let readiness = async {
        match readiness_probe {
            Some(probe) => {
                let report = |success| {
                    verdict.ready.store(success, Ordering::Relaxed);
                    true
                };
                follow(probe, &target, STARTING, report).await;
            }
            None => verdict.ready.store(true, Ordering::Relaxed),
        }
    };
    let liveness = async {
        let Some(probe) = liveness_probe else { return };
        follow(probe, &target, Duration::MAX, |success| success).await;
        verdict.failed.store(true, Ordering::Relaxed);
    };
    tokio::join!(readiness, liveness);
}

/// Probes until `report` returns false.
///
/// It gets each success or failure that has happened often enough. Before the first success, the pause is `starting` at
/// most.
async fn follow(probe: &Probe, target: &Target, starting: Duration, mut report: impl FnMut(bool) -> bool) {
    let seconds = |value: Option<i32>, default: u64| {
        Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
    };
    let (period, timeout) = (seconds(probe.period_seconds, 10), seconds(probe.timeout_seconds, 1));
    let threshold = |value: Option<i32>, default| value.unwrap_or(default).max(1);
    let (needed, allowed) = (threshold(probe.success_threshold, 1), threshold(probe.failure_threshold, 3));
    let (mut successes, mut failures) = (0, 0);
    tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
    let mut is_starting = true;
    loop {
        if tokio::time::timeout(timeout, target.check(probe)).await.unwrap_or(false) {
            (successes, failures) = (successes + 1, 0);
        } else {
            (successes, failures) = (0, failures + 1);
        }
        is_starting &= successes < needed;
        let goes_on = match (successes >= needed, failures >= allowed) {
            (true, _) => report(true),
            (_, true) => report(false),
            _ => true,
        };
        if !goes_on {
            return;
        }
        tokio::time::sleep(if is_starting { period.min(starting) } else { period }).await;
    }
}

impl Target {
    /// Whether one probe succeeds. What this kubelet can't do fails.
    async fn check(&self, probe: &Probe) -> bool {
        if let Some(http) = &probe.http_get {
            let Some(port) = self.port(&http.port) else { return false };
            return get(self.address, port, http.path.as_deref().unwrap_or("/")).await.unwrap_or(false);
        }
        if let Some(tcp) = &probe.tcp_socket {
            let Some(port) = self.port(&tcp.port) else { return false };
            return TcpStream::connect((self.address, port)).await.is_ok();
        }
        let words = probe.exec.as_ref().and_then(|exec| exec.command.as_deref());
        self.execute(words.unwrap_or_default()).await
    }

    /// Whether a command succeeds in the namespaces of the container.
    async fn execute(&self, words: &[String]) -> bool {
        let Some(pid) = first_process(self.waiter) else { return false };
        let mut command = Command::new("nsenter");
        command.args(["--target", &pid.to_string(), "--mount", "--uts", "--ipc", "--net", "--pid", "--root", "--wd"]);
        command.arg("--").args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.kill_on_drop(true).status().await.is_ok_and(|status| status.success())
    }

    /// Returns the number of a port, which may be the name of one of the container's.
    fn port(&self, port: &IntOrString) -> Option<u16> {
        match port {
            IntOrString::Int(number) => u16::try_from(*number).ok(),
            IntOrString::String(name) => {
                let port = self.container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name))?;
                u16::try_from(port.container_port).ok()
            }
        }
    }
}

/// Whether the status of the response is a success or a redirect.
async fn get(address: Ipv4Addr, port: u16, path: &str) -> std::io::Result<bool> {
    let mut stream = BufReader::new(TcpStream::connect((address, port)).await?);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: {address}:{port}\r\nUser-Agent: kube-probe/1.36\r\nConnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let status = line.split(' ').nth(1).and_then(|status| status.parse::<u16>().ok());
    Ok(status.is_some_and(|status| (200..400).contains(&status)))
}
