//! Webhooks: adding, removing and testing them, and the messages sent to them.

use brewbench_wire::now_ms;
use serde_json::json;
use url::Url;

use super::{address, deliver, sign};
use crate::{
    alerts::{
        message::Message,
        model::{CreatedWebhook, Delivery, Event, NewWebhook, Webhook},
    },
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{audit::action::Action, caller::Caller, proven::Proven},
};

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
    fn events_round_trip_as_text() {
        for event in Event::ALL {
            assert_eq!(event.as_str().parse(), Ok(event));
            assert_eq!(serde_json::to_value(event).expect("JSON"), event.as_str());
        }
        assert!("test".parse::<Event>().is_err());
    }
}
