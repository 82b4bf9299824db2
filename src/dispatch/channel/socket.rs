//! Messages on an agent's WebSocket.

use axum::extract::ws::{Message, Utf8Bytes, WebSocket};
use brewbench_wire::{
    PROTOCOL,
    messages::{AgentMessage, Hello, ServerMessage, protocol_of},
    version_mismatch,
};

use super::log::AgentLog;

/// A newer protocol may have a few unknown messages; more than this in a row is not this protocol.
const MAX_UNREADABLE: usize = 20;

/// Receives an agent's `Hello`, or returns why the agent can't work with this server.
///
/// Returns `None` if the connection is closed or the first message is a different one.
pub(super) async fn receive_hello(socket: &mut WebSocket) -> Option<Result<Box<Hello>, String>> {
    let text = receive_text(socket).await?;
    if let Some(reason) = version_mismatch(protocol_of(&text)?, PROTOCOL) {
        return Some(Err(reason));
    }
    match serde_json::from_str(&text) {
        Ok(AgentMessage::Hello(hello)) => Some(Ok(hello)),
        Ok(_) => None,
        Err(fault) => Some(Err(format!("this agent's hello message can't be read: {fault}"))),
    }
}

/// Receives the next readable message. Returns `None` if the connection is closed or not of this protocol.
pub(super) async fn receive(socket: &mut WebSocket, log: &AgentLog<'_>) -> Option<AgentMessage> {
    for _ in 0..MAX_UNREADABLE {
        match serde_json::from_str(&receive_text(socket).await?) {
            Ok(message) => return Some(message),
            Err(fault) => log.warn(&fault.to_string(), "skipped an unreadable message of an agent"),
        }
    }
    None
}

async fn receive_text(socket: &mut WebSocket) -> Option<Utf8Bytes> {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(text) = message {
            return Some(text);
        }
    }
    None
}

/// Sends a message. Errors are ignored: receiving detects a closed socket.
pub(super) async fn send(socket: &mut WebSocket, message: &ServerMessage) {
    if let Ok(text) = serde_json::to_string(message) {
        let _ = socket.send(Message::text(text)).await;
    }
}
