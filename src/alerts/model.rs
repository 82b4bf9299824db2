//! Alerts, their events and rules. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alerts::rules::Rule;

/// What webhooks are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub enum Event {
    /// An agent has been away too long.
    #[serde(rename = "agent.away")]
    AgentAway,
    /// It is not missed any more: it is back, or somebody disabled, revoked or forgot it.
    #[serde(rename = "agent.back")]
    AgentBack,
    /// Runs wait, and nobody begins them.
    #[serde(rename = "queue.standstill")]
    QueueStandstill,
    /// They don't any more.
    #[serde(rename = "queue.moving")]
    QueueMoving,
    /// All runs of an experiment have ended.
    #[serde(rename = "experiment.finished")]
    ExperimentFinished,
    /// Somebody tries a webhook; it can't be chosen, every webhook gets it.
    #[serde(rename = "test")]
    Test,
}

impl Event {
    /// Those that a webhook can be told.
    pub const ALL: [Self; 5] =
        [Self::AgentAway, Self::AgentBack, Self::QueueStandstill, Self::QueueMoving, Self::ExperimentFinished];

    /// The word for columns, JSON and pages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AgentAway => "agent.away",
            Self::AgentBack => "agent.back",
            Self::QueueStandstill => "queue.standstill",
            Self::QueueMoving => "queue.moving",
            Self::ExperimentFinished => "experiment.finished",
            Self::Test => "test",
        }
    }

    /// When it happens, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::AgentAway => "an agent has been away too long",
            Self::AgentBack => "it is not missed any more",
            Self::QueueStandstill => "runs wait, and nobody begins them",
            Self::QueueMoving => "they are begun again",
            Self::ExperimentFinished => "all runs of an experiment have ended",
            Self::Test => "somebody tries the webhook",
        }
    }
}

impl std::str::FromStr for Event {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|event| event.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is none of {words}"))
    }
}

/// The rule that holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertRule {
    /// From when on something is an alert.
    #[serde(flatten)]
    pub rule: Rule,
    /// When it was set, unix ms; null while it is the usual one.
    pub set_at_ms: Option<i64>,
    /// By whom.
    pub set_by: Option<String>,
}

/// Something that somebody should look at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Alert {
    /// `agent.away` or `queue.standstill`.
    pub kind: String,
    /// The agent; null where it is about the queue.
    pub agent: Option<String>,
    /// What is wrong.
    pub sentence: String,
    /// Where it can be looked at.
    pub url: String,
    /// When it began, unix ms.
    pub since_ms: i64,
    /// When it was raised, unix ms.
    pub raised_at_ms: i64,
}

/// All alerts that are raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AlertList {
    /// The oldest first.
    pub alerts: Vec<Alert>,
}
