//! JSON of lists of runs.

use axum::{Json, extract::State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Result},
        state::AppState,
    },
    auth::caller::Read,
    runs::{filter::Wanted, model::RunList},
};

pub(crate) const MOST_LISTED: u32 = 1_000;

/// How much of a list is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Length {
    /// At most so many, up to 1000; 100 unless said.
    limit: Option<u32>,
}

/// Runs: narrowed, ordered, page by page. All of them, the newest first, unless said.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(Wanted, Length),
    responses((status = 200, body = RunList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    Asked(wanted): Asked<Wanted>,
    Asked(length): Asked<Length>,
) -> Result<Json<RunList>> {
    let limit = length.limit.unwrap_or(100).clamp(1, MOST_LISTED);
    let filter = wanted.filter().map_err(Error::Invalid)?;
    Ok(Json(RunList { runs: crate::runs::store::list(&state.db.rows, &filter, limit.into()).await? }))
}
