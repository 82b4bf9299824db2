//! The page of one run, its logs and its environment.
//!
//! [`show`] loads the data. Pure files turn it into parts of the page: [`headline`], [`phases`], [`metrics`],
//! [`checks`], [`machine`], [`timeseries`], `work` and [`charts`]. [`logs`] searches logs.

pub mod charts;
pub mod checks;
pub mod environment;
pub mod headline;
pub mod logs;
pub mod machine;
pub mod metrics;
pub mod phases;
pub mod rules;
pub mod show;
pub mod timeseries;
mod work;

use axum::{Router, routing::get};

use crate::app::state::AppState;

/// Routes of the pages.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/runs/{id}", get(show::show))
        .route("/runs/{id}/logs", get(logs::search))
        .route("/runs/{id}/environment", get(environment::environment))
}
