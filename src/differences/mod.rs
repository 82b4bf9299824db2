//! Differences in work that users have accepted: for two targets, and one scenario or any, a comparison names a winner
//! although what is named here differs. [`model`] says what one covers; [`crate::compare::equal_work`] finds the
//! differences.

pub mod api;
pub mod model;
pub mod pages;
pub mod store;

use axum::Router;
pub use model::{AcceptedDifference, DifferenceList, NewDifference, WorkFact};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list, api::accept)).routes(routes!(api::revoke))
}
