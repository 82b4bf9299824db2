//! Readiness probes: `httpGet` and `tcpSocket`.

use std::{
    net::Ipv4Addr,
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
    task::JoinHandle,
};

/// Probes a container until dropped.
#[derive(Debug)]
pub struct Prober {
    ready: Arc<AtomicBool>,
    task: Option<JoinHandle<()>>,
}

impl Prober {
    /// Starts to probe a container, which is ready at once if it has no probe.
    pub fn start(container: &Container, address: Ipv4Addr) -> Self {
        let Some(probe) = container.readiness_probe.clone() else {
            return Self { ready: Arc::new(AtomicBool::new(true)), task: None };
        };
        let ready = Arc::new(AtomicBool::new(false));
        let task = tokio::spawn(run(probe, container.clone(), address, Arc::clone(&ready)));
        Self { ready, task: Some(task) }
    }

    /// Whether the container is ready.
    pub fn is_ready(&self) -> bool {
        self.ready.load(Ordering::Relaxed)
    }
}

impl Drop for Prober {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

async fn run(probe: Probe, container: Container, address: Ipv4Addr, ready: Arc<AtomicBool>) {
    let seconds = |value: Option<i32>, default: u64| {
        Duration::from_secs(value.and_then(|value| u64::try_from(value).ok()).unwrap_or(default))
    };
    let count = |value: Option<i32>, default: i32| value.unwrap_or(default).max(1);
    let (period, timeout) = (seconds(probe.period_seconds, 10), seconds(probe.timeout_seconds, 1));
    let (mut successes, mut failures) = (0, 0);
    tokio::time::sleep(seconds(probe.initial_delay_seconds, 0)).await;
    loop {
        if tokio::time::timeout(timeout, check(&probe, &container, address)).await.unwrap_or(false) {
            (successes, failures) = (successes + 1, 0);
        } else {
            (successes, failures) = (0, failures + 1);
        }
        if successes >= count(probe.success_threshold, 1) {
            ready.store(true, Ordering::Relaxed);
        } else if failures >= count(probe.failure_threshold, 3) {
            ready.store(false, Ordering::Relaxed);
        }
        // A kubelet, too, probes more often until a container is ready for the first time.
        let is_starting = !ready.load(Ordering::Relaxed);
        tokio::time::sleep(if is_starting { period.min(Duration::from_millis(200)) } else { period }).await;
    }
}

/// Whether one probe succeeds. What this kubelet can't do fails.
async fn check(probe: &Probe, container: &Container, address: Ipv4Addr) -> bool {
    if let Some(http) = &probe.http_get {
        let Some(port) = number(&http.port, container) else { return false };
        return get(address, port, http.path.as_deref().unwrap_or("/")).await.unwrap_or(false);
    }
    let port = probe.tcp_socket.as_ref().and_then(|tcp| number(&tcp.port, container));
    match port {
        Some(port) => TcpStream::connect((address, port)).await.is_ok(),
        None => false,
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

/// Returns the number of a port, which may be the name of one of the container's.
fn number(port: &IntOrString, container: &Container) -> Option<u16> {
    match port {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(name) => {
            let port = container.ports.iter().flatten().find(|port| port.name.as_ref() == Some(name))?;
            u16::try_from(port.container_port).ok()
        }
    }
}
