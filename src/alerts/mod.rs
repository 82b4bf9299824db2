//! Alerts, and telling others: what somebody should look at, on pages and by webhook.
//!
//! [`rules`] decides what is worth an alert, [`watch`] looks and keeps; [`finished`] tells of experiments that are over.
//! An event is written down for every webhook that wants it in the transaction that makes it happen, and [`deliver`] sends
//! what was written down, signed ([`sign`]), to addresses where that may go ([`address`]), until it is taken or given up.

pub mod address;
pub mod api;
pub mod deliver;
pub mod finished;
pub mod model;
pub mod pages;
pub mod rules;
pub mod sign;
pub mod store;
pub mod watch;
pub mod webhooks;

use axum::Router;
pub use rules::Rule;
use utoipa_axum::{router::OpenApiRouter, routes};
pub use webhooks::{Delivery, DeliveryList, MadeWebhook, NewWebhook, Webhook, WebhookList};

use crate::app::state::AppState;

/// Pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// JSON.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::alerts))
        .routes(routes!(api::alert_rule, api::set_alert_rule))
        .routes(routes!(api::webhooks, api::add_webhook))
        .routes(routes!(api::remove_webhook))
        .routes(routes!(api::deliveries))
        .routes(routes!(api::try_webhook))
}
