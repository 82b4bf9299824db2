//! `/api/v1/compare`: what the page shows, as JSON.

use axum::{
    Json,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
};

use crate::{
    app::{
        error::{ErrorBody, Result},
        state::AppState,
    },
    auth::caller::Read,
    compare::{chosen::Chosen, load, view::Comparison},
};

/// Compares runs: medians of their repetitions, differences to the baseline, clear winners and doubts.
#[utoipa::path(
    get,
    path = "/api/v1/compare",
    tag = "compare",
    params(Chosen),
    responses(
        (status = 200, body = Comparison),
        (status = 404, body = ErrorBody, description = "none of the runs is here"),
        (status = 422, body = ErrorBody, description = "no run is named, or too many are"),
    )
)]
pub async fn compare(_read: Read, State(state): State<AppState>, RawQuery(query): RawQuery) -> Result<Response> {
    let comparison = load::of_query(&state, &query.unwrap_or_default()).await?;
    Ok(Json(&**comparison).into_response())
}
