//! `/shares`: the links that there are. `/shared/{secret}`: what one of them shows to somebody who is not logged in.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Form, Router,
    extract::{Path, State},
    http::{HeaderName, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
    routing::get,
};
use brewbench_agent::wire::now_ms;
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
        secret,
    },
    compare::{load, view::Comparison},
    shares::model::{MadeShare, NewShare, Share, ShareList},
    web::{
        confirm::Confirm,
        format::plural,
        headers::NO_REFERRER,
        shell::{Section, Shell},
    },
};

/// What a form may choose as the life of a link, days; 0 for one without an end.
pub const LIVES: [(u32, &str); 4] = [(7, "7 days"), (30, "30 days"), (365, "a year"), (0, "no end")];

/// The pages of this module.
pub fn router() -> Router<AppState> {
    Router::new()
        .route("/shares", get(index).post(make))
        .route("/shares/{id}/revoke", get(ask_revoke).post(revoke))
        .route("/shared/{secret}", get(shared))
}

/// The links.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "shares/index.html")]
pub struct IndexPage {
    shell: Shell,
    shares: Vec<Share>,
    /// One that was just made, with its secret.
    made: Option<MadeShare>,
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

async fn page(Read(caller): Read, state: State<AppState>, made: Option<MadeShare>) -> Result<IndexPage> {
    let ShareList { mut shares } = api::list(Read(caller.clone()), state).await?.0;
    let now = now_ms();
    // Those that show something come first.
    shares.sort_by_key(|share| share.state(now) != "open");
    let shell = Shell::signed_in("Shared comparisons", Section::Compare, &caller.name);
    Ok(IndexPage { shell, shares, made, scope: caller.scope, now })
}

/// What the form of a comparison says.
#[derive(Debug, Deserialize)]
struct Typed {
    query: String,
    days: u32,
}

async fn make(Submit(caller): Submit, state: State<AppState>, Form(typed): Form<Typed>) -> Result<Response> {
    let asked = NewShare { query: typed.query, expires_in_days: Some(typed.days).filter(|days| *days > 0) };
    let made = api::make(&state, &caller, &asked).await?;
    Ok((StatusCode::CREATED, page(Read(caller), state, Some(made)).await?).into_response())
}

async fn ask_revoke(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Confirm> {
    let share = api::found(&state, &id).await?;
    let deed = "Revoke this link";
    Ok(Confirm {
        shell: Shell::signed_in(deed, Section::Compare, &caller.name),
        deed,
        what: format!("{}, {}", share.title, plural(share.runs.len(), "run")),
        consequences: vec![
            "Whoever has it sees nothing any more, from now on.".to_owned(),
            "It can't be brought back; the comparison and its runs stay.".to_owned(),
        ],
        back: "/shares".to_owned(),
    })
}

async fn revoke(Submit(caller): Submit, State(state): State<AppState>, Path(id): Path<String>) -> Result<Redirect> {
    let share = api::found(&state, &id).await?;
    api::revoke_one(&state, &caller, &share).await?;
    Ok(Redirect::to("/shares"))
}

/// One comparison and nothing else.
#[derive(Debug, Template, WebTemplate)]
#[template(path = "shares/shared.html")]
pub struct SharedPage {
    comparison: Comparison,
}

/// Search engines that come by a link leave it out.
const NO_INDEX: (HeaderName, &str) = (HeaderName::from_static("x-robots-tag"), "noindex, nofollow");

async fn shared(_: Public, State(state): State<AppState>, Path(secret): Path<String>) -> Result<Response> {
    // The same words for a link that never was and one that is over.
    let missing = || Error::NotFound("comparison behind this link, or not any more".to_owned());
    let share =
        crate::shares::store::open(&state.db.read, &secret::hash(&secret), now_ms()).await?.ok_or_else(missing)?;
    let comparison = load::page_of_query(&state, &share.whole_query()).await.map_err(|fault| match fault {
        Error::NotFound(_) => missing(),
        fault => fault,
    })?;
    let headers = [(header::REFERRER_POLICY, NO_REFERRER), NO_INDEX];
    Ok((headers, SharedPage { comparison: Comparison::clone(&comparison).outside() }).into_response())
}
