//! JSON of agents and their keys; and the extractor that proves that an agent calls.

use axum::{
    Extension, Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts},
};
use brewbench_agent::wire::now_ms;

use super::{Agent, AgentList, NewAgentKey, Presence, queries};
use crate::{
    auth::{
        Admin, Caller, MadeSecret, Read,
        api::checked_name,
        audit::Deed,
        caller::{address, bearer},
        secret::{self, Kind},
    },
    db::Db,
    error::{Error, ErrorBody, Input, Result},
    state::AppState,
};

/// An agent calls, known by its key.
#[derive(Clone, Debug)]
pub struct AgentCaller {
    /// The name that the server's owner gave it.
    pub name: String,
}

impl FromRequestParts<AppState> for AgentCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let key = bearer(&parts.headers).ok_or(Error::Unauthenticated)?;
        if let Some(name) = queries::agent_by_key(&state.db.read, &secret::hash(key)).await? {
            return Ok(Self { name });
        }
        state.limits.wrong_secret(address(parts, state))?;
        Err(Error::Unauthenticated)
    }
}

/// All agents: what each can do and whether it is connected.
#[utoipa::path(get, path = "/api/v1/agents", tag = "fleet", responses((status = 200, body = AgentList)))]
pub async fn agents(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Json<AgentList>> {
    Ok(Json(AgentList { agents: all(&state.db, &presence).await? }))
}

/// All agents by name, and whether each is connected.
pub async fn all(db: &Db, presence: &Presence) -> Result<Vec<Agent>> {
    let mut agents = queries::agents(&db.read).await?;
    for agent in &mut agents {
        agent.connected = presence.has(&agent.name);
    }
    Ok(agents)
}

/// Make a key for a new agent. It is in the answer and nowhere else.
#[utoipa::path(post, path = "/api/v1/agent-keys", tag = "fleet",
    responses((status = 201, body = MadeSecret), (status = 409, body = ErrorBody)))]
pub async fn new_key(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewAgentKey>,
) -> Result<(StatusCode, Json<MadeSecret>)> {
    Ok((StatusCode::CREATED, Json(make_key(&state.db, &asked.name, &caller).await?)))
}

/// Makes and stores the key of a new agent.
pub async fn make_key(db: &Db, name: &str, by: &Caller) -> Result<MadeSecret> {
    let name = checked_name(name)?;
    let made = secret::make(Kind::AgentKey);
    let act = by.does(Deed::AgentKeyMade, name);
    queries::insert_agent(&db.write, name, &secret::hash(&made), now_ms(), &act).await?;
    Ok(MadeSecret { name: name.to_owned(), secret: made })
}

/// End an agent's key for good; its connection ends at once.
#[utoipa::path(delete, path = "/api/v1/agent-keys/{name}", tag = "fleet",
    params(("name" = String, Path)), responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke_key(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    revoke(&state.db, &presence, &name, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends the key of an agent and its connection.
pub async fn revoke(db: &Db, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    if !queries::revoke(&db.write, name, now_ms(), &by.does(Deed::AgentKeyRevoked, name)).await? {
        return Err(Error::NotFound(format!("agent {name:?} with a key that could be revoked")));
    }
    presence.close(name);
    Ok(())
}
