//! Stored runs: history, details of one run, labels and notes, export. JSON, pages and commands share [`model::Run`].

pub mod api;
pub mod code;
pub mod column;
pub mod csv;
pub mod exchange;
pub mod filter;
pub mod load;
pub mod lookup;
pub mod model;
pub mod pages;
pub mod progress;
pub mod remarks;
pub mod store;
#[cfg(test)]
pub mod testing;
pub mod verdict;
pub mod view;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Routes of the pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Routes of the JSON API.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list::list))
        .routes(routes!(api::export::export))
        .routes(routes!(api::show::show, api::trash::delete))
        .routes(routes!(api::trash::undelete))
        .routes(routes!(api::remarks::add_label, api::remarks::remove_label))
        .routes(routes!(api::remarks::set_note))
        .routes(routes!(api::environment::show))
        .routes(routes!(api::environment::difference))
        .routes(routes!(api::show::summary))
        .routes(routes!(api::show::cancel))
}
