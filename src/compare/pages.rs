//! `/compare`: the page of one comparison. It lives in its address, so that it can be shared.

use askama::Template;
use askama_web::WebTemplate;
use axum::extract::State;
use axum_extra::extract::Query;

use super::{Chosen, Comparison, load};
use crate::{
    auth::Read,
    error::Result,
    state::AppState,
    web::shell::{Section, Shell},
};

/// The page; without a comparison it explains how to get one.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "compare/index.html")]
pub struct ComparePage {
    /// What surrounds it.
    pub shell: Shell,
    /// What is compared.
    pub comparison: Option<Comparison>,
}

/// `GET /compare?runs=…&baseline=…`
pub async fn compare(
    Read(caller): Read,
    State(state): State<AppState>,
    Query(chosen): Query<Chosen>,
) -> Result<ComparePage> {
    let ids = chosen.ids();
    let comparison = if ids.is_empty() {
        None
    } else {
        let mut comparison = load(&state, &chosen, &ids).await?;
        comparison.keep = vec![("runs".to_owned(), ids.join(","))];
        Some(comparison)
    };
    let title = comparison.as_ref().map_or_else(|| "Compare runs".to_owned(), |comparison| comparison.title.clone());
    Ok(ComparePage { shell: Shell::signed_in(title, Section::Compare, &caller.name), comparison })
}
