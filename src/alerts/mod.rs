//! Alerts on pages, and events sent to webhooks.
//!
//! [`rules`] decides what is an alert, [`watch`] evaluates the rules and stores alerts, and [`finished`] announces
//! finished experiments. The transaction that causes an event also queues a delivery for each subscribed webhook.
//! [`deliver`] sends it, signed by [`sign`], to an address that [`address`] allows, until it succeeds or gives up.

pub mod address;
pub mod api;
pub mod deliver;
pub mod finished;
pub mod message;
pub mod model;
pub mod pages;
pub mod rules;
pub mod sign;
pub mod store;
pub mod watch;
pub mod webhooks;

use axum::Router;
pub use model::{CreatedWebhook, Delivery, DeliveryList, NewWebhook, Webhook, WebhookList};
pub use rules::Thresholds;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::app::state::AppState;

/// Routes of the pages.
pub fn pages() -> Router<AppState> {
    pages::router()
}

/// Routes of the JSON API.
pub fn api() -> OpenApiRouter<AppState> {
    OpenApiRouter::new()
        .routes(routes!(api::alerts))
        .routes(routes!(api::alert_rule, api::set_alert_rule))
        .routes(routes!(api::webhooks, api::add_webhook))
        .routes(routes!(api::remove_webhook))
        .routes(routes!(api::deliveries))
        .routes(routes!(api::try_webhook))
}
