//! The gate: whether a candidate is a regression against a baseline, by rules such as `rps<-5%`.
//!
//! It fails only on a significant difference beyond a rule's limit, by the same statistics as the compare page. It
//! passes only if the confidence interval lies within every limit. Everything else is "cannot say" with a reason: a
//! wide interval, too few repetitions, invalid runs, confounders.
//!
//! [`rule`] parses the rules, [`cells`] finds what can be compared, [`confounders`] and [`obstacle`] what prevents it,
//! [`decide`] decides by [`ruling`]; [`markdown`], [`junit`] and [`picture`] render the [`model::Gate`]; [`bisection`] searches
//! for a commit. All of these are pure. [`mod@api`] loads the runs, [`mod@pages`] shows the result.

pub mod api;
pub mod bisection;
pub mod cells;
pub mod confounders;
pub mod decide;
pub mod junit;
pub mod markdown;
pub mod model;
pub mod obstacle;
pub mod pages;
pub mod picture;
pub mod rule;
pub mod ruling;
pub mod title;
mod xml;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Returns the page routes.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Returns the API routes.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::gate))
}
