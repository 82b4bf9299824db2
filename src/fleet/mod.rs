//! Agents: keys, connections, capabilities and availability.

pub mod admin;
pub mod api;
pub mod enrolment;
pub mod inspection;
pub mod model;
pub mod pages;
pub mod presence;
pub mod store;
pub mod targets;

use axum::{
    Extension, Router,
    extract::DefaultBodyLimit,
    routing::{get, post},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, catalog::MAX_SCENARIO_BODY, fleet::presence::Presence, web::form::up};

/// Routes of the JSON API.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(inspection::add_scenario))
        .layer(DefaultBodyLimit::max(MAX_SCENARIO_BODY))
        .routes(routes!(api::agents))
        .routes(routes!(api::new_key))
        .routes(routes!(api::revoke_key))
        .routes(routes!(admin::put_availability))
        .routes(routes!(admin::set_labels))
        .routes(routes!(admin::ask_key_change))
        .routes(routes!(admin::remove_agent))
        .routes(routes!(enrolment::enrol))
        .routes(routes!(enrolment::change_key))
        .routes(routes!(enrolment::whoami))
        .routes(routes!(inspection::check_scenario))
        .routes(routes!(targets::remove_unused))
        .routes(routes!(targets::remove))
        .routes(routes!(api::rename::rename))
}

/// Routes of the pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/agents", get(pages::index).post(pages::add))
        .route("/agents/{name}", get(pages::show))
        .route("/agents/{name}/revoke", up(1, post(api::revoke_key)).get(pages::ask_revoke))
        .route("/agents/{name}/drain", post(pages::actions::drain))
        .route("/agents/{name}/enable", post(pages::actions::enable))
        .route("/agents/{name}/disable", get(pages::actions::ask_disable).post(pages::actions::disable))
        .route("/agents/{name}/remove", up(2, post(admin::remove_agent)).get(pages::actions::ask_remove))
        .route("/agents/{name}/labels", post(pages::actions::label))
        .route("/agents/{name}/change-key", up(1, post(admin::ask_key_change)))
        .merge(api::rename::pages())
        .layer(Extension(presence))
}
