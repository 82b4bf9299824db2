//! A k6 that has created its virtual users and is paused: started with `--paused` and a REST interface on a loopback
//! port. The pause does not affect its metrics.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::sandbox::Watch;
use crate::target::{Server, direct_client, server_of};

/// Poll interval of the REST interface.
const POLL: Duration = Duration::from_millis(20);
/// Timeout for creating thousands of virtual users.
const MAX_START: Duration = Duration::from_mins(5);
/// k6's status "paused before the run": everything is ready.
const PAUSED_BEFORE_RUN: u32 = 4;
/// Timeout of a request to k6.
const ANSWER: Duration = Duration::from_secs(5);

/// The REST interface of a paused k6.
#[derive(Debug)]
pub struct Paused {
    at: SocketAddr,
}

#[derive(Deserialize)]
struct Status {
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    attributes: Attributes,
}

#[derive(Deserialize)]
struct Attributes {
    status: u32,
    paused: bool,
}

impl Paused {
    /// Chooses a free port.
    pub fn choose() -> io::Result<Self> {
        Ok(Self { at: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()? })
    }

    /// Uses a k6 on another machine.
    pub fn at(at: SocketAddr) -> Self {
        Self { at }
    }

    /// Whether all virtual users are created and k6 waits. Fails with a sentence if it does not answer.
    pub async fn is_ready(&self) -> Result<bool, String> {
        let Attributes { status, paused } = self.status().await?;
        Ok(status == PAUSED_BEFORE_RUN && paused)
    }

    /// Whether the load has started. Fails with a sentence if k6 does not answer.
    pub async fn has_started(&self) -> Result<bool, String> {
        self.status().await.map(|Attributes { paused, .. }| !paused)
    }

    /// Returns the value of `--address`.
    pub(super) fn address(&self) -> String {
        self.at.to_string()
    }

    /// Waits until all virtual users are created. Fails with a sentence.
    pub async fn wait(&self, group: &Watch) -> Result<(), String> {
        let deadline = Instant::now() + MAX_START;
        while Instant::now() < deadline {
            if let Ok(Attributes { status: PAUSED_BEFORE_RUN, paused: true }) = self.status().await {
                return match server_of(self.at, group) {
                    Server::Target => Ok(()),
                    Server::Other | Server::None => Err(format!("another process uses port {}", self.at.port())),
                };
            }
            sleep(POLL).await;
        }
        Err(format!("k6 did not create its virtual users within {} s", MAX_START.as_secs()))
    }

    /// Resumes k6. Fails with a sentence.
    pub async fn resume(&self) -> Result<(), String> {
        let body = r#"{"data":{"type":"status","id":"default","attributes":{"paused":false}}}"#;
        let request = direct_client()?.patch(self.url()).timeout(ANSWER).body(body);
        let answer = request.send().await.map_err(|error| format!("failed to resume k6: {error}"))?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("failed to resume k6: {}", answer.status())) }
    }

    async fn status(&self) -> Result<Attributes, String> {
        let answer =
            direct_client()?.get(self.url()).timeout(ANSWER).send().await.map_err(|error| error.to_string())?;
        let text = answer.text().await.map_err(|error| error.to_string())?;
        let status: Status = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        Ok(status.data.attributes)
    }

    fn url(&self) -> String {
        format!("http://{}/v1/status", self.at)
    }
}
