//! JSON of alerts and webhooks.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde_json::json;

use super::{Delivery, DeliveryList, MadeWebhook, NewWebhook, Rule, WebhookList, watch::url, webhooks};
use crate::{
    alerts::model::{Alert, AlertList, AlertRule},
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Admin, Caller, Read},
    },
};

/// More than these are not listed.
const MOST_LISTED: i64 = 100;

/// What somebody should look at now: agents that have been away too long, a queue that stands still.
#[utoipa::path(get, path = "/api/v1/alerts", tag = "alerts", responses((status = 200, body = AlertList)))]
pub async fn alerts(_: Read, State(state): State<AppState>) -> Json<AlertList> {
    let notices = state.notices.now();
    let alerts = notices.iter().map(|notice| Alert {
        kind: notice.kind.to_owned(),
        agent: Some(notice.subject.clone()).filter(|agent| !agent.is_empty()),
        sentence: notice.sentence.clone(),
        url: url(&state, &notice.href),
        since_ms: notice.since_ms,
        raised_at_ms: notice.raised_at_ms,
    });
    Json(AlertList { alerts: alerts.collect() })
}

/// From when on something is an alert.
#[utoipa::path(get, path = "/api/v1/alert-rule", tag = "alerts", responses((status = 200, body = AlertRule)))]
pub async fn alert_rule(_: Read, State(state): State<AppState>) -> Result<Json<AlertRule>> {
    Ok(Json(crate::alerts::store::rule(&state.db.read).await?))
}

/// Say from when on something is an alert.
#[utoipa::path(put, path = "/api/v1/alert-rule", tag = "alerts", request_body = Rule,
    responses((status = 200, body = AlertRule), (status = 422, body = ErrorBody)))]
pub async fn set_alert_rule(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(rule): Input<Rule>,
) -> Result<Json<AlertRule>> {
    set(&state, &caller, rule).await?;
    Ok(Json(crate::alerts::store::rule(&state.db.read).await?))
}

/// Sets the rule, and looks by it at once.
pub async fn set(state: &AppState, caller: &Caller, rule: Rule) -> Result<()> {
    let rule = rule.checked().map_err(Error::Invalid)?;
    if crate::alerts::store::rule(&state.db.read).await?.rule != rule {
        let act = caller.does(Deed::AlertRuleSet, "").with(json!(rule));
        crate::alerts::store::set_rule(&state.db.write, rule, now_ms(), &act).await?;
        state.look_again.notify_one();
    }
    Ok(())
}

/// Where events are sent, without the secrets.
#[utoipa::path(get, path = "/api/v1/webhooks", tag = "alerts", responses((status = 200, body = WebhookList)))]
pub async fn webhooks(_: Admin, State(state): State<AppState>) -> Result<Json<WebhookList>> {
    Ok(Json(WebhookList { webhooks: crate::alerts::store::webhooks::all(&state.db.read).await? }))
}

/// Have events sent somewhere, signed after Standard Webhooks. The secret is in the answer and nowhere else.
#[utoipa::path(post, path = "/api/v1/webhooks", tag = "alerts", request_body = NewWebhook,
    responses((status = 201, body = MadeWebhook),
    (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn add_webhook(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(asked): Input<NewWebhook>,
) -> Result<(StatusCode, Json<MadeWebhook>)> {
    Ok((StatusCode::CREATED, Json(webhooks::add(&state, &caller, asked).await?)))
}

/// Remove a webhook; what was to be sent to it is not sent any more.
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

/// What was sent to a webhook within a week, and what is to be sent.
#[utoipa::path(get, path = "/api/v1/webhooks/{id}/deliveries", tag = "alerts", params(("id" = String, Path)),
    responses((status = 200, body = DeliveryList), (status = 404, body = ErrorBody)))]
pub async fn deliveries(_: Admin, State(state): State<AppState>, Path(id): Path<String>) -> Result<Json<DeliveryList>> {
    let webhook = webhooks::found(&state, &id).await?;
    Ok(Json(DeliveryList { deliveries: sent(&state, webhook.id).await? }))
}

/// What was and is to be sent to a webhook, the last first.
pub async fn sent(state: &AppState, webhook: i64) -> Result<Vec<Delivery>> {
    Ok(crate::alerts::store::webhooks::deliveries(&state.db.read, webhook, MOST_LISTED).await?)
}

/// Send a test event now, once; the answer says what came of it.
#[utoipa::path(post, path = "/api/v1/webhooks/{id}/test", tag = "alerts", params(("id" = String, Path)),
    responses((status = 200, body = Delivery), (status = 404, body = ErrorBody)))]
pub async fn try_webhook(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Path(id): Path<String>,
) -> Result<Json<Delivery>> {
    let webhook = webhooks::found(&state, &id).await?;
    Ok(Json(webhooks::try_out(&state, &caller, &webhook).await?))
}
