//! Alerts, their events and rules. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::alerts::rules::Thresholds;

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
    pub fn describe(self) -> &'static str {
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
    pub rule: Thresholds,
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

/// A webhook: a URL that events are sent to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Id of the webhook.
    pub id: i64,
    /// URL that events are sent to.
    pub url: String,
    /// Subscribed events.
    pub events: Vec<Event>,
    /// Who added it.
    pub created_by: String,
    /// When it was added, unix ms.
    pub created_at_ms: i64,
    /// False if no events are sent, because the user who added it is no longer an administrator.
    #[serde(default = "yes")]
    pub is_active: bool,
    /// The latest delivery; null if there was none in the last week.
    pub last: Option<Delivery>,
}

/// The default, because older servers omit the field.
fn yes() -> bool {
    true
}

/// All webhooks, without their secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    /// Oldest first.
    pub webhooks: Vec<Webhook>,
}

/// A webhook to add.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// URL that events are sent to.
    pub url: String,
    /// Subscribed events; all if empty.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// An added webhook with its secret.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CreatedWebhook {
    /// The webhook.
    pub webhook: Webhook,
    /// The signing secret. It is shown only once.
    pub secret: String,
}

impl std::fmt::Debug for CreatedWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Omits the secret, because debug output may be logged.
        f.debug_struct("CreatedWebhook").field("webhook", &self.webhook.id).finish_non_exhaustive()
    }
}

/// The delivery of an event to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// The event's id in the header `webhook-id`, the same for each attempt.
    pub id: String,
    /// The event.
    pub event: String,
    /// When it happened, unix ms.
    pub created_at_ms: i64,
    /// Its state.
    pub state: DeliveryState,
    /// Number of attempts.
    pub attempts: u32,
    /// When the next attempt is due, unix ms; null once it is delivered or given up.
    pub next_at_ms: Option<i64>,
    /// When the last attempt ended, unix ms.
    pub last_at_ms: Option<i64>,
    /// HTTP status of the last response; null if there was none.
    pub status: Option<u16>,
    /// Error of the last attempt: the beginning of the response, or why there was none.
    pub error: Option<String>,
}

/// The state of a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It waits for an attempt.
    Waiting,
    /// The receiver accepted it.
    Delivered,
    /// All attempts failed.
    GivenUp,
}

impl DeliveryState {
    /// Returns the text for pages and tables.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given up",
        }
    }
}

/// The deliveries of a webhook in the last week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    /// Newest first; at most 100.
    pub deliveries: Vec<Delivery>,
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// When it ended, unix ms.
    pub at_ms: i64,
    /// The HTTP status of the response.
    pub status: Option<u16>,
    /// Why the attempt failed.
    pub fault: Option<String>,
}
