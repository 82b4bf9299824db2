//! Alerts, their events and rules. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alerts::rules::Rule;

/// An event that webhooks can receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum Event {
    /// An agent has been away for too long.
    #[serde(rename = "agent.disconnected")]
    AgentDisconnected,
    /// An away agent is connected again, or was disabled, revoked or removed.
    #[serde(rename = "agent.connected")]
    AgentConnected,
    /// Queued runs do not start.
    #[serde(rename = "queue.stalled")]
    QueueStalled,
    /// Queued runs start again.
    #[serde(rename = "queue.resumed")]
    QueueResumed,
    /// All runs of an experiment have finished.
    #[serde(rename = "experiment.finished")]
    ExperimentFinished,
    /// A test by a user. Every webhook gets it, so it cannot be selected.
    #[serde(rename = "test")]
    Test,
}

impl Event {
    /// The events that a webhook can subscribe to.
    pub const ALL: [Self; 5] = [
        Self::AgentDisconnected,
        Self::AgentConnected,
        Self::QueueStalled,
        Self::QueueResumed,
        Self::ExperimentFinished,
    ];

    /// Returns the text stored in the database and used in JSON and on pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentDisconnected => "agent.disconnected",
            Self::AgentConnected => "agent.connected",
            Self::QueueStalled => "queue.stalled",
            Self::QueueResumed => "queue.resumed",
            Self::ExperimentFinished => "experiment.finished",
            Self::Test => "test",
        }
    }

    /// Describes when the event happens.
    pub fn about(self) -> &'static str {
        match self {
            Self::AgentDisconnected => "an agent has been away for too long",
            Self::AgentConnected => "an away agent is back, disabled or removed",
            Self::QueueStalled => "queued runs do not start",
            Self::QueueResumed => "queued runs start again",
            Self::ExperimentFinished => "all runs of an experiment have finished",
            Self::Test => "a user tests the webhook",
        }
    }
}

impl std::str::FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not an event, use one of {names}"))
    }
}

/// The thresholds of alerts in effect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertRule {
    /// The thresholds.
    #[serde(flatten)]
    pub rule: Rule,
    /// When they were set, unix ms; null for the defaults.
    pub set_at_ms: Option<i64>,
    /// Who set them.
    pub set_by: Option<String>,
}

/// An active alert.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// `agent.disconnected`, `queue.stalled`, or what a check at the server's start found: `database.damaged`,
    /// `database.log_lost`.
    pub kind: String,
    /// The agent; null for an alert about the queue.
    pub agent: Option<String>,
    /// What is wrong.
    pub sentence: String,
    /// URL of the page with details.
    pub url: String,
    /// When it began, unix ms.
    pub since_ms: i64,
    /// When it was raised, unix ms.
    pub raised_at_ms: i64,
}

/// All active alerts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    /// Oldest first.
    pub alerts: Vec<Alert>,
}
