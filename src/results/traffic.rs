//! TCP traffic of a run's load, as stored. Pure.

use std::net::SocketAddr;

use brewbench_agent::wire::traffic;
use serde::{Deserialize, Serialize};

/// The most addresses that are stored; an agent sends fewer.
const MOST_PEERS: usize = 32;
/// The longest address of a target: the longest name of a host, and a port.
const LONGEST_TARGET: usize = 262;

/// Traffic of the load during the measurement, as the kernel's sockets showed it about once a second.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// The target's address.
    pub target: String,
    /// How often the sockets were looked at.
    pub looks: u32,
    /// How long the time between these looks was, milliseconds.
    pub elapsed_ms: u64,
    /// The addresses that the load generator exchanged bytes with, most bytes first; None if unknown.
    pub peers: Option<Vec<Peer>>,
    /// Segments between load generator and target.
    pub segments: Segments,
}

/// An address that the load generator exchanged bytes with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Peer {
    /// The address.
    pub address: SocketAddr,
    /// Whether it is the target's.
    pub is_target: bool,
    /// Bytes in both directions.
    pub bytes: u64,
    /// Connections with traffic, summed over all looks.
    pub connections: u64,
    /// In how many looks there was a connection with traffic.
    pub looks: u32,
    /// In how many looks there was a new one.
    pub reconnects: u32,
}

/// Segments sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Segments {
    /// All of them.
    pub sent: u64,
    /// Those that were sent again.
    pub retransmitted: u64,
    /// Those of the latter that the other end already had.
    pub spurious: u64,
}

impl Segments {
    /// Returns how many were sent again because they were lost.
    pub fn lost(&self) -> u64 {
        self.retransmitted.saturating_sub(self.spurious)
    }
}

impl From<traffic::Traffic> for Traffic {
    fn from(reported: traffic::Traffic) -> Self {
        let traffic::Traffic { target, looks, elapsed_ms, peers, segments } = reported;
        let peers = peers.map(|peers| peers.into_iter().take(MOST_PEERS).map(Peer::from).collect());
        Self {
            target: target.chars().take(LONGEST_TARGET).collect(),
            looks,
            elapsed_ms,
            peers,
            segments: segments.into(),
        }
    }
}

impl From<traffic::Peer> for Peer {
    fn from(traffic::Peer { address, is_target, bytes, connections, looks, reconnects }: traffic::Peer) -> Self {
        Self { address, is_target, bytes, connections, looks, reconnects }
    }
}

impl From<traffic::Segments> for Segments {
    fn from(traffic::Segments { sent, retransmitted, spurious }: traffic::Segments) -> Self {
        Self { sent, retransmitted, spurious }
    }
}
