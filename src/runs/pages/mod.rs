//! Pages of the history, and what users do to runs; `results` has the page of one run.
//!
//! [`history`] loads the data, [`groups`] and [`row`] turn it into rows; [`bulk`] and [`actions`] change runs.

pub mod actions;
pub mod bulk;
pub mod filters;
pub mod groups;
pub mod history;
pub mod remarks;
pub mod row;

use axum::{
    Router,
    routing::{get, post},
};

use crate::{app::state::AppState, runs::api, web::form::up};

/// Routes of the pages.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/runs", get(history::history))
        .route("/runs/live", get(history::live))
        .route("/runs/label", get(bulk::ask_label).post(bulk::label))
        .route("/runs/delete", get(bulk::ask_delete).post(bulk::delete))
        .route("/runs/undelete", post(bulk::undelete))
        .route("/runs/{id}/note", post(remarks::set_note))
        .route("/runs/{id}/labels", post(remarks::add_label))
        .route("/runs/{id}/labels/remove", post(remarks::remove_label))
        .route("/runs/{id}/cancel", up(1, post(api::show::cancel)).get(actions::ask_cancel))
        .route("/runs/{id}/delete", up(2, post(api::trash::delete)).get(actions::ask_delete))
}
