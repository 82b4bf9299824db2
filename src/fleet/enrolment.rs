//! Enrolment of agents and rotation of their keys.
//!
//! An agent generates its keys and sends only their hashes, so the keys never leave its machine. A new agent
//! authenticates with a one-time key from an administrator and may repeat the request with the same new key until it
//! gets a response. An agent that rotates its key authenticates with the old one; both work until the new one is used.

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
};
use brewbench_wire::{
    key::{Enrolled, NewKey},
    now_ms,
};

use super::api::AgentCaller;
use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, action::Action},
        caller::{address, bearer},
        refusals::{self, Refused},
        secret,
    },
    fleet::{self, model::audit_name},
};

/// A new agent, authenticated by its one-time key.
#[derive(Clone, Debug)]
pub struct NewAgent {
    /// The agent's name.
    name: String,
    one_time_hash: Vec<u8>,
    address: Option<std::net::IpAddr>,
}

impl FromRequestParts<AppState> for NewAgent {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let one_time_hash = secret::hash(bearer(&parts.headers).ok_or(Error::Unauthenticated)?);
        let address = address(parts, state);
        let Some(name) = fleet::store::agent_by_one_time_key(&state.db.read, &one_time_hash, now_ms()).await? else {
            state.limits.tries.wrong_secret(address)?;
            refusals::log(Refused::AgentKey, address);
            return Err(Error::Unauthenticated);
        };
        Ok(Self { name, one_time_hash, address })
    }
}

/// Exchange a one-time key for the agent's own key.
#[utoipa::path(post, path = "/api/v1/agent/enrolment", tag = "agents",
    request_body(content_type = "application/json", description = "`key_sha256`: the hash of the new key, in hex"),
    responses((status = 204), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn enrol(agent: NewAgent, State(state): State<AppState>, Input(new): Input<NewKey>) -> Result<StatusCode> {
    let NewAgent { name, one_time_hash, address } = agent;
    let act = AuditEvent::new(&audit_name(&name), address, Action::AgentEnrolled, &name);
    exchange(&state.db, &one_time_hash, &hash_in(&new)?, &act).await?;
    state.events.agents_changed();
    Ok(StatusCode::NO_CONTENT)
}

/// Replaces the hash of a one-time key with that of the agent's own key.
pub async fn exchange(db: &Db, one_time_hash: &[u8], key_hash: &[u8], act: &AuditEvent) -> Result<()> {
    if fleet::store::exchange(&db.write, one_time_hash, key_hash, now_ms(), act).await?
        || fleet::store::is_exchanged(&db.read, one_time_hash, key_hash).await?
    {
        return Ok(());
    }
    Err(Error::Conflict(format!(
        "the one-time key of {:?} was already used, by another agent or from another state folder; remove the agent and \
        add it again",
        act.object
    )))
}

/// Announce the hash of the agent's next key.
#[utoipa::path(put, path = "/api/v1/agent/key", tag = "agents",
    request_body(content_type = "application/json", description = "`key_sha256`: the hash of the new key, in hex"),
    responses((status = 204), (status = 422, body = ErrorBody)))]
pub async fn change_key(
    AgentCaller(agent): AgentCaller,
    State(state): State<AppState>,
    Input(new): Input<NewKey>,
) -> Result<StatusCode> {
    fleet::store::store_next_key(&state.db.write, agent.id, &hash_in(&new)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show the agent's name. The first request with a new key also activates it.
#[utoipa::path(get, path = "/api/v1/agent/self", tag = "agents",
    responses((status = 200, description = "`name`: the agent's name", content_type = "application/json")))]
pub async fn whoami(AgentCaller(agent): AgentCaller) -> Json<Enrolled> {
    Json(Enrolled { name: agent.name })
}

fn hash_in(new: &NewKey) -> Result<Vec<u8>> {
    let digit = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let hex = new.key_sha256.as_bytes();
    let bytes: Option<Vec<u8>> = hex.chunks(2).map(digit).collect();
    let bytes = bytes.filter(|bytes| bytes.len() == 32 && hex.len() == 64 && hex.iter().all(u8::is_ascii_hexdigit));
    bytes.ok_or_else(|| Error::Invalid("key_sha256: must be 64 hexadecimal digits".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_64_hexadecimal_digits_are_a_hash() {
        let hash = |text: &str| hash_in(&NewKey { key_sha256: text.to_owned() });
        assert_eq!(hash(&"0aF1".repeat(16)).expect("a hash"), [0x0a, 0xf1].repeat(16));
        for bad in ["", "00", &"0".repeat(63), &"0".repeat(66), &"+1".repeat(32), &"é1".repeat(21)] {
            assert!(hash(bad).is_err(), "{bad:?}");
        }
    }
}
