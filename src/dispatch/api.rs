//! Upload of results by agents.

use axum::{
    Extension, Json,
    body::Bytes,
    extract::{Path, State},
};
use brewbench_wire::outcome::Outcome;
use tracing::Instrument;

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        input::Input,
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    catalog::store::scenarios,
    distributed::{
        coordinate::{Barriers, Coordinator},
        ingest,
    },
    fleet::{api::AgentCaller, presence::Presence},
    results::settlement::Settled,
    runs::lookup,
};

/// Get a file of a scenario by its SHA-256.
#[utoipa::path(get, path = "/api/v1/agent/files/{sha256}", tag = "agents", params(("sha256" = String, Path)),
    responses((status = 200, content_type = "application/octet-stream", body = [u8]),
        (status = 404, body = ErrorBody)))]
pub async fn file(_: AgentCaller, State(state): State<AppState>, Path(sha256): Path<String>) -> Result<Bytes> {
    let found = scenarios::content(&state.db.read, &sha256).await?;
    found.map(Bytes::from).ok_or_else(|| Error::NotFound(format!("file {sha256:?}")))
}

/// Uploads the result of a run. Agents retry until the server acknowledges; it does so once the result is committed.
#[utoipa::path(put, path = "/api/v1/agent/runs/{id}/result", tag = "agents", params(("id" = String, Path)),
    request_body(content_type = "application/json", description = "The outcome; see the crate brewbench-agent"),
    responses((status = 200, body = Settled), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn result(
    AgentCaller(agent): AgentCaller,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(barriers): Extension<Barriers>,
    Path(id): Path<RunId>,
    _room: UploadPermit,
    Input(outcome): Input<Outcome>,
) -> Result<Json<Settled>> {
    if RunId::from(outcome.run) != id {
        return Err(Error::Invalid(format!("run: the body contains run {}, but the URL contains {id}", outcome.run)));
    }
    let span = tracing::info_span!("run", id = id.as_str());
    let run = outcome.run;
    let settled = Box::pin(ingest::accept(&state.db, &agent, outcome).instrument(span)).await?;
    if let Some(why) = &settled.reason {
        tracing::info!(run = id.as_str(), agent = agent.name, why, "result does not count");
    } else {
        tracing::info!(run = id.as_str(), agent = agent.name, "result stored");
    }
    let coordinator = Coordinator { state: &state, presence: &presence, barriers: &barriers };
    coordinator.delivered(&agent.name, run).await?;
    // A retry may have been queued.
    state.work.notify_one();
    lookup::announce(&state, &lookup::found(&state, &id).await?);
    Ok(Json(settled))
}
