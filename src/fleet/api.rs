//! JSON of agents and their keys; and the extractor that proves that an agent calls.

use axum::{
    Extension, Json,
    extract::{FromRequestParts, Path, State},
    http::{StatusCode, request::Parts},
};
use brewbench_agent::wire::now_ms;

use super::enrolment::{ONE_TIME_LIFE_MS, who};
use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::{Act, deed::Deed},
        caller::{Admin, Caller, Read, address, bearer},
        checks::checked_name,
        people::MadeSecret,
        secret::{self, Kind},
    },
    fleet::{
        self,
        model::{Agent, AgentList, NewAgentKey, Standing},
        presence::Presence,
        store::Known,
    },
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
        let hash = secret::hash(bearer(&parts.headers).ok_or(Error::Unauthenticated)?);
        let address = address(parts, state);
        let Some(Known { name, standing, standing_by, is_next }) =
            fleet::store::agent_by_key(&state.db.read, &hash).await?
        else {
            state.limits.tries.wrong_secret(address)?;
            return Err(Error::Unauthenticated);
        };
        if is_next {
            let act = Act::new(&who(&name), address, Deed::AgentKeyChanged, &name);
            fleet::store::take_next_key(&state.db.write, &hash, now_ms(), &act).await?;
            state.events.agents_changed();
        }
        if standing == Standing::Disabled {
            let by = standing_by.map_or(String::new(), |by| format!(" by {by}"));
            return Err(Error::Forbidden(format!(
                "the agent {name:?} is disabled{by}; `brewbench fleet enable` lets it in"
            )));
        }
        Ok(Self { name })
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
    let mut agents = fleet::store::agents(&db.read).await?;
    for agent in &mut agents {
        agent.connected = presence.has(&agent.name);
    }
    Ok(agents)
}

/// Make a one-time key for a new agent, which exchanges it for a key of its own. It is in the answer and nowhere else.
#[utoipa::path(post, path = "/api/v1/agent-keys", tag = "fleet",
    request_body = NewAgentKey,
    responses((status = 201, body = MadeSecret), (status = 409, body = ErrorBody)))]
pub async fn new_key(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewAgentKey>,
) -> Result<(StatusCode, Json<MadeSecret>)> {
    Ok((StatusCode::CREATED, Json(make_key(&state.db, &asked.name, &caller).await?)))
}

/// Makes and stores the one-time key of a new agent.
pub async fn make_key(db: &Db, name: &str, by: &Caller) -> Result<MadeSecret> {
    let name = checked_name(name)?;
    let name = name.as_str();
    let made = secret::make(Kind::OneTimeKey);
    let act = by.does(Deed::AgentKeyMade, name);
    let now = now_ms();
    let (hash, life) = (secret::hash(&made), (now, now + ONE_TIME_LIFE_MS));
    fleet::store::insert_agent(&db.write, name, &hash, life, by.user_id.as_deref(), &act).await?;
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
    if !fleet::store::revoke(&db.write, name, now_ms(), &by.does(Deed::AgentKeyRevoked, name)).await? {
        return Err(Error::NotFound(format!("agent {name:?} with a key that could be revoked")));
    }
    presence.cut(name);
    Ok(())
}
