//! JSON of lists of runs.

use axum::{Json, extract::State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        paging,
        state::AppState,
    },
    auth::caller::Read,
    runs::{filter::RunQuery, model::RunPage},
};

pub(crate) const MAX_LISTED: u32 = 1_000;

/// The length of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Length {
    /// Maximum number of runs, up to 1000; 100 by default.
    limit: Option<u32>,
}

/// List runs, with filters, order and pages; by default all runs, newest first.
#[utoipa::path(get, path = "/api/v1/runs", tag = "runs", params(RunQuery, Length),
    responses((status = 200, body = RunPage), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<RunQuery>,
    QueryParams(length): QueryParams<Length>,
) -> Result<Json<RunPage>> {
    let limit = paging::limit(length.limit, 100, MAX_LISTED)?;
    let filter = query.filter().map_err(Error::Invalid)?;
    let mut runs = crate::runs::store::list(&state.db.rows, &filter, i64::from(limit) + 1).await?;
    let next = paging::cut(&mut runs, limit).map(|run| run.id.clone());
    Ok(Json(RunPage { runs, next }))
}
