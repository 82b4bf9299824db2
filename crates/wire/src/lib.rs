//! What server, agents and commands exchange, and what is stored of it: plain data, and its parsing. No I/O.
//!
//! - [`job`], [`load`], [`outcome`], [`messages`], [`series`], [`profile`], …: what crosses the wire.
//! - [`manifest`]: the manifest of a target as its file.
//! - [`reports`]: reads the reports of load generators.
//! - [`histogram`]: latencies that can be added and subtracted, and their percentiles.
//! - [`scenario`]: a script with its files; [`scenarios`]: those that are bundled. [`sanitize`]: makes foreign text safe to print.
//!
//! Units: times are unix milliseconds in UTC, durations are milliseconds, memory is bytes, CPU is cores.

pub mod counters;
pub mod duet;
pub mod engine;
pub mod histogram;
pub mod job;
pub mod key;
pub mod load;
pub mod load_record;
pub mod load_time;
pub mod manifest;
pub mod messages;
pub mod name;
pub mod offer;
pub mod outcome;
pub mod profile;
pub mod reports;
pub mod run_spec;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
pub mod sanitize;
pub mod scenario;
pub mod scenarios;
pub mod series;
pub mod target;
pub mod traffic;
pub mod variables;
pub mod work_done;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// Version of the protocol in [`messages`], sent in the first message of both sides.
pub const PROTOCOL: u32 = 26;

/// Explains why an agent and a server with these protocols are incompatible, and which side to upgrade; `None` if they
/// are the same.
pub fn version_mismatch(agent: u32, server: u32) -> Option<String> {
    let older = match agent.cmp(&server) {
        Ordering::Equal => return None,
        Ordering::Less => "agent",
        Ordering::Greater => "server",
    };
    Some(format!("this agent uses protocol {agent}, this server {server}: upgrade the {older}"))
}

/// Identifies a run; a version 7 UUID, so ids sort by creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub uuid::Uuid);

impl RunId {
    /// Creates an id that sorts after all earlier ones of this process.
    pub fn now() -> Self {
        Self(uuid::Uuid::now_v7())
    }
}

impl std::fmt::Display for RunId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl std::str::FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The phase of a run, in the order a run enters them. The last four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for an agent.
    Queued,
    /// Assigned to an agent.
    Leased,
    /// The agent prepares the sandbox and starts the target.
    Preparing,
    /// The load generator runs; its results are discarded.
    WarmingUp,
    /// The load generator runs; its results count.
    Measuring,
    /// The target is stopped and the results are collected.
    Collecting,
    /// The results are stored.
    Finished,
    /// The run ended without results, with a reason.
    Failed,
    /// Cancelled by a user.
    Cancelled,
    /// The connection to its agent was lost.
    Lost,
}

impl Phase {
    /// All phases, in the order a run enters them.
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Leased,
        Self::Preparing,
        Self::WarmingUp,
        Self::Measuring,
        Self::Collecting,
        Self::Finished,
        Self::Failed,
        Self::Cancelled,
        Self::Lost,
    ];

    /// Returns the name used in columns, JSON and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Leased => "leased",
            Self::Preparing => "preparing",
            Self::WarmingUp => "warming_up",
            Self::Measuring => "measuring",
            Self::Collecting => "collecting",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Lost => "lost",
        }
    }

    /// Returns the display name: `warming up`.
    pub fn describe(self) -> String {
        self.as_str().replace('_', " ")
    }

    /// Whether an agent works on the run.
    pub fn is_held(self) -> bool {
        self != Self::Queued && !self.is_final()
    }

    /// Whether the run has ended.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled | Self::Lost)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is not a phase.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a phase of a run")]
pub struct UnknownPhase(pub String);

impl std::str::FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text).ok_or_else(|| UnknownPhase(text.to_owned()))
    }
}

/// Returns the current time, unix milliseconds.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_mismatch_names_the_side_to_upgrade() {
        assert_eq!(version_mismatch(3, 3), None);
        let older = version_mismatch(3, 4);
        assert_eq!(older.as_deref(), Some("this agent uses protocol 3, this server 4: upgrade the agent"));
        assert!(version_mismatch(u32::MAX, 4).is_some_and(|sentence| sentence.ends_with("upgrade the server")));
    }
}
