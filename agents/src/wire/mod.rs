//! Everything that crosses the wire between server, agent and client: plain data, no behaviour beyond parsing.
//!
//! Units: times are unix milliseconds in UTC, durations are milliseconds, memory is bytes, CPU is cores.

pub mod engine;
pub mod job;
pub mod load;
pub mod messages;
pub mod name;
pub mod offer;
pub mod outcome;
pub mod series;
pub mod work_done;

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

/// The version of the conversation in [`messages`], sent in the first message of both sides.
pub const PROTOCOL: u32 = 7;

/// Why an agent and a server of these protocols can't work together: a sentence that says which side to upgrade. None where
/// both use the same protocol.
pub fn version_mismatch(agent: u32, server: u32) -> Option<String> {
    let older = match agent.cmp(&server) {
        Ordering::Equal => return None,
        Ordering::Less => "agent",
        Ordering::Greater => "server",
    };
    Some(format!("this agent uses protocol {agent}, this server {server}: upgrade the {older}"))
}

/// Names one run for ever; version 7 UUIDs, so ids sort by the time of submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub uuid::Uuid);

impl RunId {
    /// A new id that sorts behind all earlier ones of this process.
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

/// Where a run stands. The last four are final.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Waits for an agent.
    Queued,
    /// An agent was told to do it.
    Leased,
    /// The agent sets up the sandbox and starts the target.
    Preparing,
    /// The load generator runs; its figures are discarded.
    WarmingUp,
    /// The load generator runs; its figures count.
    Measuring,
    /// The target is stopped and the results are gathered.
    Collecting,
    /// The results are stored.
    Finished,
    /// It ended without results; the run says why.
    Failed,
    /// Somebody asked for its end.
    Cancelled,
    /// Its agent fell silent.
    Lost,
}

impl Phase {
    /// All phases, in the order in which a run goes through them.
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

    /// The word for columns, JSON and commands.
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

    /// The same as people read it: `warming up`.
    pub fn words(self) -> String {
        self.as_str().replace('_', " ")
    }

    /// Whether the run has ended, well or badly.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Finished | Self::Failed | Self::Cancelled | Self::Lost)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text is no phase.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no phase of a run")]
pub struct UnknownPhase(pub String);

impl std::str::FromStr for Phase {
    type Err = UnknownPhase;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|phase| phase.as_str() == text).ok_or_else(|| UnknownPhase(text.to_owned()))
    }
}

/// Now, in unix milliseconds.
pub fn now_ms() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_mismatch_says_which_side_to_upgrade() {
        assert_eq!(version_mismatch(3, 3), None);
        let older = version_mismatch(3, 4);
        assert_eq!(older.as_deref(), Some("this agent uses protocol 3, this server 4: upgrade the agent"));
        assert!(version_mismatch(u32::MAX, 4).is_some_and(|sentence| sentence.ends_with("upgrade the server")));
    }
}
