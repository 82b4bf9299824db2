//! `/docs`: the documentation of this version. `docs/` is an mdBook; its chapters are embedded at build and rendered in
//! the site's own layout, so that help works offline, without scripts and under the same content security policy.
//!
//! - [`book`]: the chapters and their order.
//! - [`render`]: Markdown to HTML, headings and the texts to search.
//! - `store`: full-text search.
//! - `pages`: the handlers.

pub mod book;
mod pages;
pub mod render;
pub mod store;

use axum::Router;

use crate::app::state::AppState;

/// The pages of this module.
pub fn router() -> Router<AppState> {
    pages::router()
}
