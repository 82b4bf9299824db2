//! `/api/v1/compare`: what the page shows, as JSON.

use axum::{Json, extract::State};

use crate::{
    app::{
        error::{Asked, ErrorBody, Result},
        state::AppState,
    },
    auth::caller::Read,
    compare::{
        chosen::Chosen,
        load::{load, named, nothing_named},
        view::Comparison,
    },
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
pub async fn compare(
    _read: Read,
    State(state): State<AppState>,
    Asked(chosen): Asked<Chosen>,
) -> Result<Json<Comparison>> {
    let ids = named(&state, &chosen).await?;
    if ids.is_empty() {
        return Err(nothing_named());
    }
    load(&state, &chosen, &ids).await.map(Json)
}
