//! An event as it is sent to webhooks.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::alerts::model::Event;

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
}
