//! JSON API of alerts and webhooks.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde_json::json;

use super::{CreatedWebhook, Delivery, DeliveryList, NewWebhook, Thresholds, WebhookList, watch::url, webhooks};
use crate::{
    alerts::model::{Alert, AlertList, AlertRule},
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Admin, Caller, Read},
        proven::Proven,
    },
};

/// The maximum number of listed deliveries.
const MAX_LISTED: i64 = 100;

/// List active alerts: agents that are away for too long, a stalled queue.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", responses((status = 200, body = AlertList)))]
pub async fn alerts(_: Read, State(state): State<AppState>) -> Json<AlertList> {
    let active_alerts = state.active_alerts.now();
    let alerts = active_alerts.iter().map(|alert| Alert {
        kind: alert.kind.to_owned(),
        agent: Some(alert.subject.clone()).filter(|agent| !agent.is_empty()),
        sentence: alert.sentence.clone(),
        url: url(&state, &alert.href),
        since_ms: alert.since_ms,
        raised_at_ms: alert.raised_at_ms,
    });
    Json(AlertList { alerts: alerts.collect() })
}

/// Show the thresholds of alerts.
#[utoipa::path(get, path = "/api/v1/alert-rule", tag = "alerts", responses((status = 200, body = AlertRule)))]
pub async fn alert_rule(_: Read, State(state): State<AppState>) -> Result<Json<AlertRule>> {
    Ok(Json(crate::alerts::store::rule(&state.db.read).await?))
}

/// Set the thresholds of alerts.
#[utoipa::path(put, path = "/api/v1/alert-rule", tag = "alerts", request_body = Thresholds,
    responses((status = 200, body = AlertRule), (status = 422, body = ErrorBody)))]
pub async fn set_alert_rule(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(rule): Input<Thresholds>,
) -> Result<Json<AlertRule>> {
    set(&state, &caller, rule).await?;
    Ok(Json(crate::alerts::store::rule(&state.db.read).await?))
}

/// Sets the thresholds and applies them at once.
pub async fn set(state: &AppState, caller: &Caller, rule: Thresholds) -> Result<()> {
    let rule = rule.checked().map_err(Error::Invalid)?;
    if crate::alerts::store::rule(&state.db.read).await?.rule != rule {
        let act = caller.does(Action::AlertRuleSet, "").with(json!(rule));
        crate::alerts::store::set_rule(&state.db.write, rule, now_ms(), &act).await?;
        state.check_alerts.notify_one();
    }
    Ok(())
}

/// List webhooks, without their secrets.
#[utoipa::path(get, path = "/api/v1/webhooks", tag = "alerts", responses((status = 200, body = WebhookList)))]
pub async fn webhooks(_: Admin, State(state): State<AppState>) -> Result<Json<WebhookList>> {
    Ok(Json(WebhookList { webhooks: crate::alerts::store::webhooks::all(&state.db.read).await? }))
}

/// Add a webhook. Events are signed according to Standard Webhooks. Only this response shows the secret.
#[utoipa::path(post, path = "/api/v1/webhooks", tag = "alerts", request_body = NewWebhook,
    responses((status = 201, body = CreatedWebhook),
    (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add_webhook(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Input(request): Input<NewWebhook>,
) -> Result<(StatusCode, Json<CreatedWebhook>)> {
    Ok((StatusCode::CREATED, Json(webhooks::add(&state, &admin.by(), request).await?)))
}

/// Remove a webhook. Its pending deliveries are dropped.
#[utoipa::path(delete, path = "/api/v1/webhooks/{id}", tag = "alerts", params(("id" = String, Path)),
    responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn remove_webhook(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<StatusCode> {
    let webhook = webhooks::found(&state, &id).await?;
    webhooks::remove(&state, &caller, &webhook).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List the deliveries of a webhook: those of the last week and pending ones.
#[utoipa::path(get, path = "/api/v1/webhooks/{id}/deliveries", tag = "alerts", params(("id" = String, Path)),
    responses((status = 200, body = DeliveryList), (status = 404, body = ErrorBody)))]
pub async fn deliveries(_: Admin, State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<DeliveryList>> {
    let webhook = webhooks::found(&state, &id).await?;
    Ok(Json(DeliveryList { deliveries: list_deliveries(&state, webhook.id).await? }))
}

/// Returns the deliveries of a webhook, newest first.
pub async fn list_deliveries(state: &AppState, webhook: i64) -> Result<Vec<Delivery>> {
    Ok(crate::alerts::store::webhooks::deliveries(&state.db.read, webhook, MAX_LISTED).await?)
}

/// Send a test event once, now. Returns the outcome.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/test", tag = "alerts", params(("id" = String, Path)),
    responses((status = 200, body = Delivery), (status = 404, body = ErrorBody)))]
pub async fn try_webhook(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Delivery>> {
    let webhook = webhooks::found(&state, &id).await?;
    Ok(Json(webhooks::send_test(&state, &caller, &webhook).await?))
}
