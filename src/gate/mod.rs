//! The gate: whether a candidate is a regression against a baseline, by rules such as `rps<-5%`.
//!
//! It fails only on a significant difference beyond a rule's limit, by the same statistics as the compare page, and passes
//! only where the confidence interval lies within every limit. Everything else is "cannot say", with the reason: the
//! interval is too wide, there are too few repetitions, invalid runs, confounders.
//!
//! [`rule`] reads the rules, [`cells`] finds what can be compared, [`confounders`] and [`obstacle`] what forbids it,
//! [`decide`] decides by [`ruling`]; [`markdown`] and [`junit`] write the [`model::Gate`]. All of that is pure; [`mod@api`]
//! reads and answers, [`mod@pages`] shows.

pub mod api;
pub mod cells;
pub mod confounders;
pub mod decide;
pub mod junit;
pub mod markdown;
pub mod model;
pub mod obstacle;
pub mod pages;
pub mod rule;
pub mod ruling;

use axum::Router;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// The page.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new().routes(routes!(api::gate))
}
