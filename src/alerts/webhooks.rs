//! Webhooks: adding, removing and testing them, and the messages sent to them.

use brewbench_agent::wire::now_ms;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{address, deliver, sign};
use crate::{
    alerts::model::Event,
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{audit::action::Action, caller::Caller, proven::Proven},
};

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
    pub fn words(self) -> &'static str {
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

/// An event as it is sent, the same for every webhook.
#[derive(Clone, Debug)]
pub struct Message {
    /// Id of the event.
    pub id: String,
    /// What happened.
    pub event: Event,
    /// When it happened, unix ms.
    pub at_ms: i64,
    /// The JSON body.
    pub body: String,
}

impl Message {
    /// Creates a message; `data` depends on the event.
    pub fn new(event: Event, at_ms: i64, data: &Value) -> Self {
        let id = format!("msg_{}", Uuid::now_v7().simple());
        let body = json!({"id": id, "event": event.as_str(), "at_ms": at_ms, "data": data}).to_string();
        Self { id, event, at_ms, body }
    }
}

/// Adds a webhook and returns it with its secret, which is not readable later.
pub async fn add(state: &AppState, caller: &Proven<Caller>, request: NewWebhook) -> Result<CreatedWebhook> {
    let url = address::checked(&request.url, &state.config.webhooks_to);
    let url = url.map_err(|fault| Error::Invalid(format!("url: {fault}")))?;
    let mut events = if request.events.is_empty() { Event::ALL.to_vec() } else { request.events };
    events.sort_unstable();
    events.dedup();
    if events.contains(&Event::Test) {
        return Err(Error::Invalid("events: test cannot be selected, because every webhook gets it".to_owned()));
    }
    let secret = sign::new_secret();
    let (url, created_by, created_at_ms) = (url.to_string(), caller.name.clone(), now_ms());
    let webhook = Webhook { id: 0, url, events, created_by, created_at_ms, is_active: true, last: None };
    let words: Vec<_> = webhook.events.iter().map(|event| event.as_str()).collect();
    let act = caller.does(Action::WebhookAdded, &origin(&webhook)).with(json!({"events": words.join(", ")}));
    let id = crate::alerts::store::webhooks::insert(
        &state.db.write,
        &webhook,
        &state.secrets_key.encrypt(&secret),
        caller.user_id.as_deref(),
        &act,
    )
    .await?;
    Ok(CreatedWebhook { webhook: Webhook { id, ..webhook }, secret })
}

/// Returns the webhook with this id.
pub async fn found(state: &AppState, id: &str) -> Result<Webhook> {
    let missing = || Error::NotFound(format!("webhook {id:?}"));
    let number: i64 = id.parse().map_err(|_| missing())?;
    let all = crate::alerts::store::webhooks::all(&state.db.read).await?;
    all.into_iter().find(|webhook| webhook.id == number).ok_or_else(missing)
}

/// Removes a webhook and its pending deliveries.
pub async fn remove(state: &AppState, caller: &Caller, webhook: &Webhook) -> Result<()> {
    let act = caller.does(Action::WebhookRemoved, &origin(webhook)).with(json!({"id": webhook.id}));
    if crate::alerts::store::webhooks::remove(&state.db.write, webhook.id, &act).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("webhook {}", webhook.id)))
    }
}

/// Sends a test event once, now, and returns the delivery.
pub async fn send_test(state: &AppState, caller: &Caller, webhook: &Webhook) -> Result<Delivery> {
    if !webhook.is_active {
        return Err(Error::Conflict(format!(
            "{} added this webhook and is no longer an administrator, so no events are sent; remove the webhook and add it again",
            webhook.created_by
        )));
    }
    let message = Message::new(Event::Test, now_ms(), &json!({"by": caller.name, "url": state.public_url.as_str()}));
    let due = crate::alerts::store::webhooks::insert_one(&state.db.write, webhook.id, &message).await?;
    deliver::send_once(state, &due).await?;
    let all = crate::alerts::store::webhooks::deliveries(&state.db.read, webhook.id, 100).await?;
    let sent = all.into_iter().find(|delivery| delivery.id == message.id);
    sent.ok_or_else(|| Error::NotFound(format!("webhook {}", webhook.id)))
}

/// Returns the origin of a webhook's URL for logs: its path may contain a secret.
pub fn origin(webhook: &Webhook) -> String {
    webhook.url.parse::<Url>().map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_contains_id_event_time_and_data() {
        let message = Message::new(Event::AgentDisconnected, 5, &json!({"agent": "rack"}));
        let body: Value = serde_json::from_str(&message.body).expect("JSON");
        assert_eq!(
            body,
            json!({"id": message.id, "event": "agent.disconnected", "at_ms": 5, "data": {"agent": "rack"}})
        );
        assert!(message.id.starts_with("msg_") && !message.id.contains(['-', '.']), "{}", message.id);
    }

    #[test]
    fn events_round_trip_as_text() {
        for event in Event::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
            assert_eq!(serde_json::to_value(event).expect("JSON"), event.as_str());
        }
        assert!("test".parse::<Event>().is_err());
    }
}
