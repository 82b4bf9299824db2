//! Experiments: targets × sizes × loads × repetitions of one scenario, from plan to progress.
//!
//! [`plan`] is the request, [`submission`] stores it, and [`order`] orders its runs. [`stopping_rule`] and [`knee`]
//! decide from the results whether more runs are needed, [`next_runs`] lists them, and [`scheduler`] queues them.
//! [`new`] is the form for a new run.

pub mod actions;
pub mod against;
pub mod api;
pub mod describe;
pub mod from_imports;
pub mod knee;
pub mod list;
pub mod lookup;
pub mod model;
pub mod new;
pub mod next_runs;
pub mod order;
pub mod pages;
pub mod plan;
pub mod plan_faults;
pub mod plan_fields;
pub mod power;
pub mod progress;
pub mod race;
pub mod remarks;
pub mod scheduler;
pub mod stopping_rule;
pub mod store;
pub mod submission;
pub mod sweep;

use axum::{
    Extension, Router,
    routing::{get, post},
};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{app::state::AppState, fleet::presence::Presence, web::form::up};

/// Returns the HTML pages.
pub fn pages(presence: Presence) -> Router<AppState> {
    Router::new()
        .route("/experiments/new", get(new::pages::form).post(new::pages::submit))
        .route("/runs/new", get(new::pages::moved))
        .route("/experiments/new/check", get(new::pages::recheck))
        .route("/experiments", get(list::index))
        .route("/experiments/live", get(list::live))
        .route("/experiments/from-imports", post(from_imports::post))
        .route("/experiments/{id}", get(pages::show))
        .route("/experiments/{id}/live", get(pages::follow))
        .route("/experiments/{id}/note", post(remarks::post_note))
        .route("/experiments/{id}/labels", post(remarks::post_label))
        .route("/experiments/{id}/labels/remove", post(remarks::post_removal))
        .route("/experiments/{id}/pause", up(1, post(actions::pause)))
        .route("/experiments/{id}/resume", up(1, post(actions::resume)))
        .route("/experiments/{id}/repetitions", get(actions::add_form).post(actions::post_add))
        .route("/experiments/{id}/cancel", up(1, post(actions::cancel)).get(actions::confirm_cancel))
        .layer(Extension(presence))
}

/// Returns the JSON API.
pub fn api(presence: Presence) -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::list, api::submit))
        .routes(routes!(from_imports::gather))
        .routes(routes!(api::show))
        .routes(routes!(crate::experiments::actions::cancel))
        .routes(routes!(crate::experiments::actions::pause))
        .routes(routes!(crate::experiments::actions::resume))
        .routes(routes!(crate::experiments::actions::add))
        .routes(routes!(remarks::add_label, remarks::remove_label))
        .routes(routes!(remarks::set_note))
        .routes(routes!(api::watch))
        .layer(Extension(presence))
}
