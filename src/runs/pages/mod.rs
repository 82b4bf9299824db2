//! Pages of the history and of single runs.
//!
//! [`history`] and [`show`] load the data. Pure files turn it into parts of a page: [`headline`], [`row`], [`phases`],
//! [`metrics`], [`checks`], [`machine`], [`timeseries`], `work` and [`charts`]. [`logs`] searches logs.

pub mod actions;
pub mod bulk;
pub mod charts;
pub mod checks;
pub mod environment;
pub mod filters;
pub mod headline;
pub mod history;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod phases;
pub mod remarks;
pub mod row;
pub mod rules;
pub mod show;
pub mod timeseries;
mod work;

use axum::{
    Router,
    routing::{get, post},
};

use crate::app::state::AppState;

/// Routes of the pages.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/runs", get(history::history))
        .route("/runs/live", get(history::live))
        .route("/runs/label", get(bulk::ask_label).post(bulk::label))
        .route("/runs/delete", get(bulk::ask_delete).post(bulk::delete))
        .route("/runs/undelete", post(bulk::undelete))
        .route("/runs/{id}", get(show::one))
        .route("/runs/{id}/logs", get(logs::search))
        .route("/runs/{id}/environment", get(environment::environment))
        .route("/runs/{id}/note", post(remarks::note))
        .route("/runs/{id}/labels", post(remarks::add_label))
        .route("/runs/{id}/labels/remove", post(remarks::remove_label))
        .route("/runs/{id}/cancel", get(actions::ask_cancel).post(actions::cancel))
        .route("/runs/{id}/delete", get(actions::ask_delete).post(actions::delete))
}
