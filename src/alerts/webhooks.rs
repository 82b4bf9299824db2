//! Webhooks: who is told elsewhere, of what, and what became of it.

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
    auth::{audit::deed::Deed, caller::Caller},
};

/// More of them nobody looks after.
const MOST: usize = 50;

/// Where events are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Webhook {
    /// Counts up.
    pub id: i64,
    /// Where to.
    pub url: String,
    /// Which.
    pub events: Vec<Event>,
    /// Who added it.
    pub created_by: String,
    /// When, unix ms.
    pub created_at_ms: i64,
    /// False where it is sent nothing: whoever added it is no administrator any more.
    #[serde(default = "yes")]
    pub is_active: bool,
    /// What was sent last, or is to be; null where there was nothing within a week.
    pub last: Option<Delivery>,
}

/// Older servers do not say it.
fn yes() -> bool {
    true
}

/// All webhooks, without their secrets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct WebhookList {
    /// The first first.
    pub webhooks: Vec<Webhook>,
}

/// A webhook to be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Where events are to be sent.
    pub url: String,
    /// Which; all where none is named.
    #[serde(default)]
    pub events: Vec<Event>,
}

/// A webhook that was added.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct MadeWebhook {
    /// Itself.
    pub webhook: Webhook,
    /// What its events are signed with: shown this once.
    pub secret: String,
}

impl std::fmt::Debug for MadeWebhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the secret: this may end up in a log.
        f.debug_struct("MadeWebhook").field("webhook", &self.webhook.id).finish_non_exhaustive()
    }
}

/// One event for one webhook.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Delivery {
    /// The event's id, as the receiver gets it, each time the same.
    pub id: String,
    /// The event.
    pub event: String,
    /// When it happened, unix ms.
    pub created_at_ms: i64,
    /// How it stands.
    pub state: DeliveryState,
    /// How often it was sent.
    pub tries: u32,
    /// When it is sent next, unix ms; null once it was delivered or given up.
    pub next_at_ms: Option<i64>,
    /// When it was sent last, unix ms.
    pub last_at_ms: Option<i64>,
    /// What the receiver answered last; null where none came.
    pub status: Option<u16>,
    /// What was wrong last: the beginning of the answer, or why there was none.
    pub error: Option<String>,
}

/// How a delivery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// It is to be sent, also anew.
    Waiting,
    /// The receiver took it.
    Delivered,
    /// It is not sent any more.
    GivenUp,
}

impl DeliveryState {
    /// For pages and tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::GivenUp => "given up",
        }
    }
}

/// What was sent to a webhook within a week.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct DeliveryList {
    /// The last first; at most 100.
    pub deliveries: Vec<Delivery>,
}

/// An event as it is sent, the same to every webhook.
#[derive(Clone, Debug)]
pub struct Told {
    /// Names it.
    pub id: String,
    /// What happened.
    pub event: Event,
    /// When, unix ms.
    pub at_ms: i64,
    /// As JSON.
    pub body: String,
}

impl Told {
    /// Something happens; `data` says what in particular.
    pub fn new(event: Event, at_ms: i64, data: &Value) -> Self {
        let id = format!("msg_{}", Uuid::now_v7().simple());
        let body = json!({"id": id, "event": event.as_str(), "at_ms": at_ms, "data": data}).to_string();
        Self { id, event, at_ms, body }
    }
}

/// Adds a webhook; its secret is in what this gives and nowhere else.
pub async fn add(state: &AppState, caller: &Caller, asked: NewWebhook) -> Result<MadeWebhook> {
    let url = address::checked(&asked.url, &state.config.webhooks_to);
    let url = url.map_err(|fault| Error::Invalid(format!("url: {fault}")))?;
    let mut events = if asked.events.is_empty() { Event::ALL.to_vec() } else { asked.events };
    events.sort_unstable();
    events.dedup();
    if events.contains(&Event::Test) {
        return Err(Error::Invalid("events: every webhook gets test when somebody tries it".to_owned()));
    }
    if crate::alerts::store::webhooks::all(&state.db.read).await?.len() >= MOST {
        return Err(Error::Conflict(format!("there are {MOST} webhooks already; remove one")));
    }
    let secret = sign::new_secret();
    let (url, created_by, created_at_ms) = (url.to_string(), caller.name.clone(), now_ms());
    let webhook = Webhook { id: 0, url, events, created_by, created_at_ms, is_active: true, last: None };
    let words: Vec<_> = webhook.events.iter().map(|event| event.as_str()).collect();
    let act = caller.does(Deed::WebhookAdded, &origin(&webhook)).with(json!({"events": words.join(", ")}));
    let id = crate::alerts::store::webhooks::insert(
        &state.db.write,
        &webhook,
        &state.secrets_key.encrypt(&secret),
        caller.user_id.as_deref(),
        &act,
    )
    .await?;
    Ok(MadeWebhook { webhook: Webhook { id, ..webhook }, secret })
}

/// The webhook with this id, or a 404.
pub async fn found(state: &AppState, id: &str) -> Result<Webhook> {
    let missing = || Error::NotFound(format!("webhook {id:?}"));
    let number: i64 = id.parse().map_err(|_| missing())?;
    let all = crate::alerts::store::webhooks::all(&state.db.read).await?;
    all.into_iter().find(|webhook| webhook.id == number).ok_or_else(missing)
}

/// Removes a webhook and what was to be sent to it.
pub async fn remove(state: &AppState, caller: &Caller, webhook: &Webhook) -> Result<()> {
    let act = caller.does(Deed::WebhookRemoved, &origin(webhook)).with(json!({"id": webhook.id}));
    if crate::alerts::store::webhooks::remove(&state.db.write, webhook.id, &act).await? {
        Ok(())
    } else {
        Err(Error::NotFound(format!("webhook {}", webhook.id)))
    }
}

/// Sends a test event now, once, and says what came of it.
pub async fn try_out(state: &AppState, caller: &Caller, webhook: &Webhook) -> Result<Delivery> {
    if !webhook.is_active {
        return Err(Error::Conflict(format!(
            "{} added this webhook and is no administrator any more: it is sent nothing; remove it and add it again",
            webhook.created_by
        )));
    }
    let told = Told::new(Event::Test, now_ms(), &json!({"by": caller.name, "url": state.public_url.as_str()}));
    let due = crate::alerts::store::webhooks::insert_one(&state.db.write, webhook.id, &told).await?;
    deliver::once(state, &due).await?;
    let all = crate::alerts::store::webhooks::deliveries(&state.db.read, webhook.id, 100).await?;
    let sent = all.into_iter().find(|delivery| delivery.id == told.id);
    sent.ok_or_else(|| Error::NotFound(format!("webhook {}", webhook.id)))
}

/// Where a webhook goes, without what its path may give away: for lists of others, the audit log and the log.
pub fn origin(webhook: &Webhook) -> String {
    webhook.url.parse::<Url>().map_or_else(|_| String::new(), |url| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_what_when_and_under_which_name() {
        let told = Told::new(Event::AgentAway, 5, &json!({"agent": "rack"}));
        let body: Value = serde_json::from_str(&told.body).expect("JSON");
        assert_eq!(body, json!({"id": told.id, "event": "agent.away", "at_ms": 5, "data": {"agent": "rack"}}));
        assert!(told.id.starts_with("msg_") && !told.id.contains(['-', '.']), "{}", told.id);
    }

    #[test]
    fn every_event_is_written_as_it_is_read() {
        for event in Event::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
            assert_eq!(serde_json::to_value(event).expect("JSON"), event.as_str());
        }
        assert!("test".parse::<Event>().is_err());
    }
}
