//! TCP traffic of the measured load, as the kernel's sockets show it.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Most addresses that are reported; a script that loads more of them is found by the first ones.
pub const MAX_PEERS: usize = 16;

/// The longest address of a target: the longest name of a host, and a port.
const MAX_TARGET: usize = 262;

/// Traffic of the load, from its first complete second to its last. Sockets are looked at about once a second: what a
/// connection did between the last look and its end is not included.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// The target's address, as in its base URL: `127.0.0.1:40123`.
    pub target: String,
    /// How often the sockets were looked at.
    pub looks: u32,
    /// How long the time between these looks was, milliseconds.
    pub elapsed_ms: u64,
    /// The addresses that the load generator exchanged bytes with, most bytes first; `None` if its sockets are not
    /// known.
    pub peers: Option<Vec<Peer>>,
    /// Segments on the connections between load generator and target, as far as their ends are on this machine.
    pub segments: Segments,
    /// The target's ends of these connections, summed over all looks; 0 if they are not on this machine.
    pub ends: u64,
    /// Those at which the kernel held back the last part of a response until the others were acknowledged.
    pub held_back: u64,
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
    /// In how many looks there was one that had not existed before.
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

impl Traffic {
    /// Bounds what an unmodified agent does not exceed.
    #[must_use]
    pub fn checked(self) -> Self {
        let peers = self.peers.map(|peers| peers.into_iter().take(MAX_PEERS).collect());
        Self { target: self.target.chars().take(MAX_TARGET).collect(), peers, ..self }
    }
}

impl Segments {
    /// Returns how many were sent again because they were lost.
    pub fn lost(&self) -> u64 {
        self.retransmitted.saturating_sub(self.spurious)
    }

    /// Adds others.
    pub fn add(&mut self, other: Self) {
        self.sent = self.sent.saturating_add(other.sent);
        self.retransmitted = self.retransmitted.saturating_add(other.retransmitted);
        self.spurious = self.spurious.saturating_add(other.spurious);
    }
}
