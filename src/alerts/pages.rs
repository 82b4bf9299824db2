//! The pages of webhooks at `/settings/webhooks`.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Router,
    extract::{Path, RawForm, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use url::form_urlencoded;

use super::{Delivery, NewWebhook, Webhook, api, webhooks};
use crate::{
    alerts::model::Event,
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Admin, Caller},
        proven::Proven,
    },
    web::{
        confirm::Confirm,
        form::up,
        shell::{Section, Shell},
    },
};

/// Routes of the pages.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/settings/webhooks", get(index).post(add))
        .route("/settings/webhooks/{id}", get(show))
        .route("/settings/webhooks/{id}/test", up(1, post(api::try_webhook)))
        .route("/settings/webhooks/{id}/remove", up(2, post(api::remove_webhook)).get(ask_remove))
}

/// The list of webhooks with the form that adds one.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "alerts/webhooks.html")]
struct WebhooksPage {
    shell: Shell,
    webhooks: Vec<Webhook>,
    typed: NewWebhook,
    fault: Option<String>,
}

impl WebhooksPage {
    async fn read(state: &AppState, caller: &Caller) -> Result<Self> {
        Ok(Self {
            shell: Shell::signed_in("Webhooks", Section::Settings, &caller.name).explained_in("reference/webhooks"),
            webhooks: crate::alerts::store::webhooks::all(&state.db.read).await?,
            typed: NewWebhook { url: String::new(), events: Event::ALL.to_vec() },
            fault: None,
        })
    }

    fn is_ticked(&self, event: Event) -> bool {
        self.typed.events.contains(&event)
    }
}

/// The page that shows the secret of a new webhook.
#[derive(Template, WebTemplate)]
#[template(path = "alerts/created.html")]
struct SecretPage {
    shell: Shell,
    id: i64,
    secret: String,
}

/// The page of one webhook.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "alerts/webhook.html")]
struct WebhookPage {
    shell: Shell,
    webhook: Webhook,
    deliveries: Vec<Delivery>,
}

/// `GET /settings/webhooks`
async fn index(Admin(caller): Admin, State(state): State<AppState>) -> Result<Response> {
    Ok(WebhooksPage::read(&state, &caller).await?.into_response())
}

/// `POST /settings/webhooks`: adds a webhook. Only this response shows its secret.
async fn add(admin: Proven<Admin>, State(state): State<AppState>, RawForm(body): RawForm) -> Result<Response> {
    let mut typed = NewWebhook::default();
    for (field, text) in form_urlencoded::parse(&body) {
        match field.as_ref() {
            "url" => typed.url = text.into_owned(),
            "event" => typed.events.push(text.parse().map_err(Error::Invalid)?),
            _ => {}
        }
    }
    let added = if typed.events.is_empty() {
        Err(Error::Invalid("events: choose at least one".to_owned()))
    } else {
        webhooks::add(&state, &admin.by(), typed.clone()).await
    };
    match added {
        Ok(added) => {
            let shell = Shell::signed_in("New webhook", Section::Settings, &admin.0.name);
            let page = SecretPage { shell, id: added.webhook.id, secret: added.secret };
            Ok((StatusCode::CREATED, page).into_response())
        }
        Err(fault @ (Error::Invalid(_) | Error::Conflict(_))) => {
            let page = WebhooksPage::read(&state, &admin.0).await?;
            let page = WebhooksPage { typed, fault: Some(fault.to_string()), ..page };
            Ok((StatusCode::UNPROCESSABLE_ENTITY, page).into_response())
        }
        Err(other) => Err(other),
    }
}

/// `GET /settings/webhooks/{id}`
async fn show(Admin(caller): Admin, State(state): State<AppState>, Path(id): Path<String>) -> Result<Response> {
    let webhook = webhooks::found(&state, &id).await?;
    let deliveries = api::list_deliveries(&state, webhook.id).await?;
    let shell = Shell::signed_in("Webhook", Section::Settings, &caller.name);
    Ok(WebhookPage { shell, webhook, deliveries }.into_response())
}

async fn ask_remove(Admin(caller): Admin, State(state): State<AppState>, Path(id): Path<String>) -> Result<Confirm> {
    let webhook = webhooks::found(&state, &id).await?;
    let action = "Remove this webhook";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Settings, &caller.name),
        action,
        what: webhook.url.clone(),
        consequences: vec![
            "No more events are sent to it; pending deliveries are dropped.".to_owned(),
            "Its secret and its list of deliveries are deleted.".to_owned(),
        ],
        back: format!("/settings/webhooks/{}", webhook.id),
    })
}
