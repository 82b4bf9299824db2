//! `/api/v1/compare`: a comparison as JSON.

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
    compare::{chosen::Chosen, load, script_metrics::ScriptMetrics, view::Comparison},
};

/// Compare runs: figures, differences from the baseline, leaders and warnings.
#[utoipa::path(
    get,
    path = "/api/v1/compare",
    tag = "compare",
    params(Chosen),
    responses(
        (status = 200, body = Comparison),
        (status = 404, body = ErrorBody, description = "none of the runs exists"),
        (status = 422, body = ErrorBody, description = "no runs named, or too many"),
    )
)]
pub async fn compare(_read: Read, State(state): State<AppState>, RawQuery(query): RawQuery) -> Result<Response> {
    let comparison = load::from_query(&state, &query.unwrap_or_default()).await?;
    Ok(Json(&**comparison).into_response())
}

/// Compare the scripts' own metrics by name: custom ones, and those of protocols besides HTTP.
#[utoipa::path(
    get,
    path = "/api/v1/compare/metrics",
    tag = "compare",
    params(Chosen),
    responses(
        (status = 200, body = ScriptMetrics),
        (status = 404, body = ErrorBody, description = "none of the runs exists"),
        (status = 422, body = ErrorBody, description = "no runs named, or too many"),
    )
)]
pub async fn metrics(
    _read: Read,
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
) -> Result<Json<ScriptMetrics>> {
    let comparison = load::from_query(&state, &query.unwrap_or_default()).await?;
    Ok(Json(load::script_metrics(&state, &comparison).await?))
}
