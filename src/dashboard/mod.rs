//! The pages that look at several rooms at once: what happens, what there is, what is broken. They own no table.

pub mod agent_acts;
pub mod agents;
pub mod alerts;
pub mod differences;
pub mod disk;
pub mod home;
pub mod keeping;
pub mod limits;
pub mod queries;
pub mod scenarios;
pub mod settings;
pub mod sizes;
pub mod targets;
pub mod upload;

use axum::{
    Extension, Router,
    routing::{get, post},
};

use crate::{fleet::Presence, state::AppState};

/// Pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/", get(home::index))
        .route("/dashboard/live", get(home::live))
        .route("/agents", get(agents::index).post(agents::add))
        .route("/agents/{name}", get(agents::show))
        .route("/agents/{name}/revoke", get(agents::ask_revoke).post(agents::revoke))
        .route("/agents/{name}/drain", post(agent_acts::drain))
        .route("/agents/{name}/enable", post(agent_acts::enable))
        .route("/agents/{name}/disable", get(agent_acts::ask_disable).post(agent_acts::disable))
        .route("/agents/{name}/forget", get(agent_acts::ask_forget).post(agent_acts::forget))
        .route("/agents/{name}/labels", post(agent_acts::label))
        .route("/agents/{name}/change-key", post(agent_acts::change_key))
        .route("/sizes", get(sizes::index).post(sizes::add))
        .route("/sizes/{name}/remove", get(sizes::ask_remove).post(sizes::remove))
        .route("/targets", get(targets::index))
        .route("/targets/{name}", get(targets::show))
        .route("/targets/{name}/remove", get(targets::ask_remove).post(targets::remove))
        .route("/unneeded-targets/remove", get(targets::ask_remove_unneeded).post(targets::remove_unneeded))
        .route("/scenarios", get(scenarios::index).post(scenarios::add))
        .route("/scenarios/{name}", get(scenarios::show))
        .route("/scenarios/{name}/check", post(scenarios::check))
        .route("/scenarios/{name}/limits", post(limits::set))
        .route("/scenarios/{name}/differences", get(scenarios::compare))
        .route("/settings", get(settings::index))
        .route("/settings/series", post(keeping::set_series))
        .route("/settings/alerts", post(alerts::set_rule))
        .route("/settings/scheme", post(settings::choose_scheme))
        .layer(Extension(presence))
}
