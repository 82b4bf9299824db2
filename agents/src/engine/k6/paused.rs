//! A k6 that has made its virtual users and waits for the word: `--paused`, and its REST interface on a port of this
//! machine alone. What it waits is no part of its figures.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;

use serde::Deserialize;
use tokio::time::{Instant, sleep};

use crate::sandbox::Watch;
use crate::target::{Server, direct_client, server_of};

/// There is nothing to await but an answer, so k6 is asked this often.
const POLL: Duration = Duration::from_millis(20);
/// Making thousands of virtual users takes k6 its time.
const LONGEST: Duration = Duration::from_mins(5);
/// k6's own number for "paused before the run": everything is made.
const PAUSED_BEFORE_RUN: u32 = 4;
/// An answer of k6 takes no time to speak of.
const ANSWER: Duration = Duration::from_secs(5);

/// Where a paused k6 is told to go on.
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
    /// Chooses a port that nobody listens on now.
    pub fn choose() -> io::Result<Self> {
        Ok(Self { at: TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()? })
    }

    /// `--address`.
    pub(super) fn address(&self) -> String {
        self.at.to_string()
    }

    /// Waits until all virtual users are made and only the word is missing. Fails with a sentence.
    pub async fn wait(&self, group: &Watch) -> Result<(), String> {
        let deadline = Instant::now() + LONGEST;
        while Instant::now() < deadline {
            if let Ok(Attributes { status: PAUSED_BEFORE_RUN, paused: true }) = self.status().await {
                return match server_of(self.at, group) {
                    Server::Target => Ok(()),
                    Server::Stranger | Server::Nobody => {
                        Err(format!("another process has the port {}", self.at.port()))
                    }
                };
            }
            sleep(POLL).await;
        }
        Err(format!("k6 had not made its virtual users after {} s", LONGEST.as_secs()))
    }

    /// Lets it begin. Fails with a sentence.
    pub async fn resume(&self) -> Result<(), String> {
        let body = r#"{"data":{"type":"status","id":"default","attributes":{"paused":false}}}"#;
        let request = direct_client()?.patch(self.url()).timeout(ANSWER).body(body);
        let answer = request.send().await.map_err(|error| format!("k6 can't be told to begin: {error}"))?;
        if answer.status().is_success() { Ok(()) } else { Err(format!("k6 does not begin: {}", answer.status())) }
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
