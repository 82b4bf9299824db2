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
    compare::{chosen::Chosen, load, view::Comparison},
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
