//! The way home of results.

use axum::{
    Extension, Json,
    extract::{Path, State},
};
use brewbench_agent::wire::outcome::Outcome;
use tracing::Instrument;

use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        ids::RunId,
        rate_limit::uploads::Room,
        state::AppState,
    },
    distributed::{
        coordinate::{Meetings, Together},
        ingest,
    },
    fleet::{api::AgentCaller, presence::Presence},
    results::settlement::Settled,
    runs::lookup,
};

/// An agent sends the result of a run, as often as it takes; the answer comes once it is committed.
#[utoipa::path(put, path = "/api/v1/agent/runs/{id}/result", tag = "agents", params(("id" = String, Path)),
    request_body(content_type = "application/json", description = "the outcome, see the crate brewbench-agent"),
    responses((status = 200, body = Settled), (status = 404, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn result(
    caller: AgentCaller,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Extension(meetings): Extension<Meetings>,
    Path(id): Path<RunId>,
    _room: Room,
    Input(outcome): Input<Outcome>,
) -> Result<Json<Settled>> {
    if RunId::from(outcome.run) != id {
        return Err(Error::Invalid(format!("run: the body is about {}, the address about {id}", outcome.run)));
    }
    let span = tracing::info_span!("run", id = id.as_str());
    let settled = ingest::accept(&state.db, &caller.name, &outcome).instrument(span).await?;
    if let Some(why) = &settled.why {
        tracing::info!(run = id.as_str(), agent = caller.name, why, "a result that does not count");
    } else {
        tracing::info!(run = id.as_str(), agent = caller.name, "a result is stored");
    }
    let together = Together { state: &state, presence: &presence, meetings: &meetings };
    together.delivered(&caller.name, outcome.run).await?;
    // It may be done again.
    state.work.notify_one();
    lookup::tell(&state, &lookup::found(&state, &id).await?);
    Ok(Json(settled))
}
