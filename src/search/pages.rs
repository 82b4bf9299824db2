//! `/search`: hits as a page, or as JSON for the command palette (`static/palette.js`).

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Json,
    extract::State,
    http::{HeaderMap, header},
    response::{IntoResponse, Response},
};

use super::api::{MAX_HITS, SearchQuery};
use crate::{
    app::{
        error::{QueryParams, Result},
        state::AppState,
    },
    auth::caller::OptionalCaller,
    search::{
        find,
        model::{Hit, HitKind},
    },
    web::shell::Shell,
};

/// The maximum number of hits of each kind in the palette.
const PALETTE_HITS: usize = 5;

/// The hits of a search.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "search/index.html")]
struct SearchPage {
    shell: Shell,
    words: String,
    groups: Vec<(HitKind, Vec<Hit>)>,
}

/// `GET /search?q=…`: what the caller may see; for anonymous visitors the documentation.
pub async fn search(
    visitor: OptionalCaller,
    State(state): State<AppState>,
    headers: HeaderMap,
    QueryParams(query): QueryParams<SearchQuery>,
) -> Result<Response> {
    let caller = visitor.0.as_ref();
    if headers.get_all(header::ACCEPT).iter().any(|accept| accept == "application/json") {
        let results = find::search(&state, caller, &query.q, PALETTE_HITS).await?;
        // A browser must not show this where the page is expected.
        return Ok(([(header::CACHE_CONTROL, "no-store")], Json(results)).into_response());
    }
    let results = find::search(&state, caller, &query.q, MAX_HITS).await?;
    let groups = results.hits.chunk_by(|one, next| one.kind == next.kind);
    let groups = groups.filter_map(|hits| Some((hits.first()?.kind, hits.to_vec()))).collect();
    let shell = Shell::documentation("Search", visitor.name());
    Ok(SearchPage { shell, words: results.query, groups }.into_response())
}
