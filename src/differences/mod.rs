//! Differences in work that users have accepted: for two targets, and one scenario or any, a comparison names a winner
//! although what is named here differs. [`model`] says what one covers; [`crate::compare::equal_work`] finds the
//! differences.

pub mod api;
pub mod model;
pub mod pages;
pub mod queries;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

pub use model::{AcceptedDifference, DifferenceList, NewDifference, WorkFact};

use crate::state::AppState;

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::list, api::accept)).routes(routes!(api::revoke))
}
