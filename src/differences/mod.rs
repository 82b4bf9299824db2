//! Differences in work that users have accepted: a comparison of the two targets names a winner although these facts
//! differ. [`model`] defines what an acceptance covers; [`crate::compare::equal_work`] finds the differences.

pub mod api;
pub mod model;
pub mod pages;
pub mod store;

use axum::Router;
pub use model::{AcceptedDifference, DifferenceList, NewDifference, WorkFact};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list, api::accept)).routes(routes!(api::revoke))
}
