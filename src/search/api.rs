//! JSON of the search.

use axum::{Json, extract::State};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{ErrorBody, QueryParams, Result},
        state::AppState,
    },
    auth::caller::Read,
    search::{find, model::SearchResults},
};

/// The maximum number of hits of each kind.
pub(super) const MAX_HITS: usize = 20;

/// Query parameters of the search.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SearchQuery {
    /// Words of a name, or the beginning of an id or of its last part; without it, all pages are listed.
    #[serde(default)]
    pub(super) q: String,
}

/// Searches targets, experiments, runs, pages and the documentation, with at most 20 hits of each kind.
#[utoipa::path(get, path = "/api/v1/search", tag = "search", params(SearchQuery), operation_id = "search",
    responses((status = 200, body = SearchResults), (status = 422, body = ErrorBody)))]
pub async fn search(
    Read(caller): Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Result<Json<SearchResults>> {
    Ok(Json(find::search(&state, Some(&caller), &query.q, MAX_HITS).await?))
}
