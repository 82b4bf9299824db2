//! JSON API of agents and their keys, and the extractor that authenticates an agent.

pub mod rename;

use axum::{
    Extension, Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts},
};
use brewbench_wire::now_ms;

use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{AuditEvent, action::Action},
        caller::{Admin, Caller, Read, address, bearer},
        checks::checked_name,
        proven::Proven,
        refusals::{self, Refused},
        secret::{self, Kind},
        users::CreatedSecret,
    },
    fleet::{
        self,
        model::{Agent, AgentList, Availability, NamedAgent, NewAgentKey, ONE_TIME_LIFE_MS, audit_name},
        presence::Presence,
        store::KeyOwner,
    },
};

/// An agent, authenticated by its key.
#[derive(Clone, Debug)]
pub struct AgentCaller(pub NamedAgent);

impl FromRequestParts<AppState> for AgentCaller {
    type Rejection = Error;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self> {
        let hash = secret::hash(bearer(&parts.headers).ok_or(Error::Unauthenticated)?);
        let address = address(parts, state);
        let Some(KeyOwner { agent, availability, availability_by, is_next }) =
            fleet::store::agent_by_key(&state.db.read, &hash).await?
        else {
            state.limits.tries.wrong_secret(address)?;
            refusals::log(Refused::AgentKey, address);
            return Err(Error::Unauthenticated);
        };
        if is_next {
            let act = AuditEvent::new(&audit_name(&agent.name), address, Action::AgentKeyChanged, &agent.name);
            fleet::store::promote_next_key(&state.db.write, &hash, now_ms(), &act).await?;
            state.events.agents_changed();
        }
        if availability == Availability::Disabled {
            let by = availability_by.map_or(String::new(), |by| format!(" by {by}"));
            return Err(Error::Forbidden(format!(
                "the agent {:?} is disabled{by}; enable it with `brewbench fleet enable`",
                agent.name
            )));
        }
        Ok(Self(agent))
    }
}

/// List agents with their capabilities and state.
#[utoipa::path(get, path = "/api/v1/agents", tag = "fleet", responses((status = 200, body = AgentList)))]
pub async fn agents(
    _: Read,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
) -> Result<Json<AgentList>> {
    Ok(Json(AgentList { agents: all(&state.db, &presence).await? }))
}

/// Returns all agents by name, with their connection state.
pub async fn all(db: &Db, presence: &Presence) -> Result<Vec<Agent>> {
    let mut agents = fleet::store::agents(&db.read).await?;
    for agent in &mut agents {
        agent.connected = presence.has(&agent.name);
        agent.fault = presence.fault(&agent.name);
    }
    Ok(agents)
}

/// Create a one-time key for a new agent, which exchanges it for its own key. Only this response shows it.
#[utoipa::path(post, path = "/api/v1/agent-keys", tag = "fleet",
    request_body = NewAgentKey,
    responses((status = 201, body = CreatedSecret), (status = 409, body = ErrorBody)))]
pub async fn new_key(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Input(request): Input<NewAgentKey>,
) -> Result<(StatusCode, Json<CreatedSecret>)> {
    Ok((StatusCode::CREATED, Json(create_key(&state.db, &request.name, &admin.by()).await?)))
}

/// Creates and stores the one-time key of a new agent.
pub async fn create_key(db: &Db, name: &str, by: &Proven<Caller>) -> Result<CreatedSecret> {
    let name = checked_name(name)?;
    let name = name.as_str();
    let key = secret::generate(Kind::OneTimeKey);
    let act = by.does(Action::AgentKeyMade, name);
    let now = now_ms();
    let (hash, life) = (secret::hash(&key), (now, now + ONE_TIME_LIFE_MS));
    fleet::store::insert_agent(&db.write, name, &hash, life, by.user_id.as_deref(), &act).await?;
    Ok(CreatedSecret { name: name.to_owned(), secret: key })
}

/// Revoke an agent's key for good. Its connection ends at once.
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

/// Revokes the key of an agent and disconnects it.
pub async fn revoke(db: &Db, presence: &Presence, name: &str, by: &Caller) -> Result<()> {
    if !fleet::store::revoke(&db.write, name, now_ms(), &by.does(Action::AgentKeyRevoked, name)).await? {
        return Err(Error::NotFound(format!("agent {name:?} with an unrevoked key")));
    }
    presence.disconnect(name);
    Ok(())
}
