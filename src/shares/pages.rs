//! `/shares`: all share links. `/shared/{secret}`: the comparison of one, without a login.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form, Router,
    extract::{Path, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use brewbench_wire::now_ms;
use serde::Deserialize;

use super::api;
use crate::{
    app::{
        error::{Error, Result},
        state::AppState,
    },
    auth::{
        caller::{Public, Read, Submit},
        model::Scope,
        proven::Proven,
        secret,
    },
    compare::{load, view::Comparison},
    shares::model::{CreatedShare, NewShare, Share, ShareList},
    web::{
        confirm::Confirm,
        form::up,
        format::plural,
        headers::NO_REFERRER,
        shell::{Section, Shell},
    },
};

/// The lifetimes that forms offer, days; 0 never expires.
pub const LIVES: [(u32, &str); 4] = [(7, "7 days"), (30, "30 days"), (365, "a year"), (0, "no end")];

/// Returns the page routes.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/shares", get(index).post(create))
        .route("/shares/{id}/revoke", up(2, post(api::revoke)).get(ask_revoke))
        .route("/shared/{secret}", get(shared))
}

/// The list of links.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "shares/index.html")]
pub struct IndexPage {
    shell: Shell,
    shares: Vec<Share>,
    /// The link that was just created, with its secret.
    made: Option<CreatedShare>,
    scope: Scope,
    now: i64,
}

impl IndexPage {
    fn may_submit(&self) -> bool {
        self.scope >= Scope::Submit
    }
}

async fn index(read: Read, state: State<AppState>) -> Result<IndexPage> {
    page(read, state, None).await
}

async fn page(Read(caller): Read, state: State<AppState>, made: Option<CreatedShare>) -> Result<IndexPage> {
    let ShareList { mut shares } = api::list(Read(caller.clone()), state).await?.0;
    let now = now_ms();
    // Open links come first.
    shares.sort_by_key(|share| share.state(now) != "open");
    let shell = Shell::signed_in("Shared comparisons", Section::Shares, &caller.name)
        .explained_in("guide/comparing#reports-and-share-links");
    Ok(IndexPage { shell, shares, made, scope: caller.scope, now })
}

/// The form on the comparison page.
#[derive(Debug, Deserialize)]
struct ShareForm {
    query: String,
    days: u32,
}

async fn create(member: Proven<Submit>, state: State<AppState>, Form(form): Form<ShareForm>) -> Result<Response> {
    let new = NewShare { query: form.query, expires_in_days: Some(form.days).filter(|days| *days > 0) };
    let made = api::create_as(&state, &member.by(), &new).await?;
    Ok((StatusCode::CREATED, page(Read(member.0.clone()), state, Some(made)).await?).into_response())
}

async fn ask_revoke(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Confirm> {
    let share = api::find(&state, &id).await?;
    let action = "Revoke this link";
    Ok(Confirm {
        shell: Shell::signed_in(action, Section::Shares, &caller.name),
        action,
        what: format!("{}, {}", share.title, plural(share.runs.len(), "run")),
        consequences: vec![
            "The link stops working immediately.".to_owned(),
            "This can't be undone. The comparison and its runs are kept.".to_owned(),
        ],
        back: "/shares".to_owned(),
    })
}

/// The page of a share link.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "shares/shared.html")]
pub struct SharedPage {
    comparison: Comparison,
    /// When the link was created.
    shared_at_ms: i64,
}

/// Keeps search engines from indexing a shared comparison.
const NO_INDEX: (HeaderName, &str) = (HeaderName::from_static("x-robots-tag"), "noindex, nofollow");

async fn shared(_: Public, State(state): State<AppState>, Path(secret): Path<String>) -> Result<Response> {
    // The same message for unknown, expired and revoked links.
    let missing = || Error::NotFound("comparison behind this link; it may have expired or been revoked".to_owned());
    let share =
        crate::shares::store::open(&state.db.read, &secret::hash(&secret), now_ms()).await?.ok_or_else(missing)?;
    let comparison = load::page_for_outside(&state, &share.whole_query()).await.map_err(|fault| match fault {
        Error::NotFound(_) => missing(),
        fault => fault,
    })?;
    let headers = [(header::REFERRER_POLICY, NO_REFERRER), NO_INDEX];
    let comparison = Comparison::clone(&comparison).outside();
    Ok((headers, SharedPage { comparison, shared_at_ms: share.created_at_ms }).into_response())
}
