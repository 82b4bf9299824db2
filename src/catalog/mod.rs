//! What can be run: targets that agents offer, machine sizes, and scenarios with all revisions.

pub mod api;
pub mod identity;
pub mod manifest;
pub mod model;
pub mod pages;
pub mod store;

use axum::{
    Router,
    extract::DefaultBodyLimit,
    routing::{get, post},
};
use brewbench_wire::scenario::MAX_BYTES;
use pages::{new_target, targets};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, web::form::up};

/// Maximum size of a request with a scenario: its files in base64, and what is around them.
pub const MAX_SCENARIO_BODY: usize = MAX_BYTES / 3 * 4 + (8 << 20);

/// Routes of the JSON API.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::targets))
        .routes(routes!(api::target_manifest))
        .routes(routes!(api::sizes, api::add_size))
        .routes(routes!(api::delete_size))
        .routes(routes!(api::scenarios))
        .routes(routes!(api::scenario))
        .routes(routes!(api::revisions))
}

/// Routes of the pages of targets, machine sizes and scenarios.
pub fn pages() -> Router<AppState> {
    Router::new()
        .route("/scenarios", get(pages::scenarios::index).post(pages::scenarios::add))
        .layer(DefaultBodyLimit::max(MAX_SCENARIO_BODY))
        .route("/sizes", get(pages::sizes::index).post(pages::sizes::add))
        .route("/sizes/{name}/remove", up(2, post(api::delete_size)).get(pages::sizes::ask_remove))
        .route("/targets", get(targets::index))
        .route("/targets/new", get(new_target::form).post(new_target::preview))
        .route("/targets/new/check", post(new_target::check))
        .route("/targets/new/manifest", post(new_target::download))
        .route("/targets/new/live", get(new_target::live))
        .route("/targets/{name}", get(targets::show))
        .route("/targets/{name}/remove", get(targets::ask_remove).post(targets::remove))
        .route("/unused-targets/remove", get(targets::ask_remove_unused).post(targets::remove_unused))
        .route("/scenarios/{name}", get(pages::scenarios::show))
        .route("/scenarios/{name}/check", post(pages::scenarios::check))
        .route("/scenarios/{name}/addresses", post(pages::scenarios::set_addresses))
        .route("/scenarios/{name}/limits", post(pages::scenarios::set_limits))
        .route("/scenarios/{name}/differences", get(pages::scenarios::compare))
}
