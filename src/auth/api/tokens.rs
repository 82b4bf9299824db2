//! JSON of API tokens. A person keeps her own, an administrator all of them.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_agent::wire::now_ms;
use serde_json::json;

use super::DAY_MS;
use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::{deed::Deed, note},
        caller::{Caller, Keeper},
        checks::checked_name,
        model::Scope,
        people::{MadeSecret, NewToken, TokenList},
        secret,
        store::tokens::{self, TokenRow},
    },
};

/// One's own tokens, without their secrets; all of them for administrators. Needs a person who is logged in, or a token
/// of the scope admin.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", responses((status = 200, body = TokenList)))]
pub async fn list(Keeper(caller): Keeper, State(state): State<AppState>) -> Result<Json<TokenList>> {
    Ok(Json(TokenList { tokens: tokens::tokens(&state.db.read, whose(&caller)).await? }))
}

/// Whose tokens somebody sees and ends; none for everybody's.
pub fn whose(caller: &Caller) -> Option<&str> {
    if caller.scope == Scope::Admin { None } else { Some(caller.user_id.as_deref().unwrap_or_default()) }
}

/// Make a token; it reaches no farther than its maker and ends with her. Its secret is in the answer and nowhere else.
/// Needs a person who is logged in, or a token of the scope admin.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 201, body = MadeSecret),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn new(
    Keeper(caller): Keeper,
    State(state): State<AppState>,
    Input(asked): Input<NewToken>,
) -> Result<(StatusCode, Json<MadeSecret>)> {
    Ok((StatusCode::CREATED, Json(make_token(&state.db, &asked, &caller).await?)))
}

/// Makes and stores a token.
pub async fn make_token(db: &Db, asked: &NewToken, by: &Caller) -> Result<MadeSecret> {
    let NewToken { name, scope, expires_in_days } = asked;
    by.proven()?;
    let name = checked_name(name)?;
    let name = name.as_str();
    if *scope > by.scope {
        return Err(Error::Forbidden(format!("a token of yours reaches at most as far as you: {}", by.scope.as_str())));
    }
    let (made, now) = (secret::make(secret::Kind::Token), now_ms());
    let hash = secret::hash(&made);
    let expires_at_ms = expires_in_days.map(|days| now + i64::from(days) * DAY_MS);
    let row = TokenRow { name, hash: &hash, scope: *scope, user_id: by.user_id.as_deref(), expires_at_ms };
    let detail = json!({"scope": scope, "expires_in_days": expires_in_days});
    let mut transaction = db.write.begin().await?;
    tokens::insert_token(&mut transaction, &row, now).await?;
    note(&mut transaction, &by.does(Deed::TokenMade, name).with(detail)).await?;
    transaction.commit().await?;
    Ok(MadeSecret { name: name.to_owned(), secret: made })
}

/// End a token for good: one's own; any for administrators. Needs a person who is logged in, or a token of the scope
/// admin.
#[utoipa::path(delete, path = "/api/v1/tokens/{name}", tag = "tokens",
    params(("name" = String, Path)), responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke(
    Keeper(caller): Keeper,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    if !tokens::revoke_token(&mut transaction, &name, whose(&caller), now_ms()).await? {
        return Err(Error::NotFound(format!("token {name:?} that could be revoked")));
    }
    note(&mut transaction, &caller.does(Deed::TokenRevoked, &name)).await?;
    transaction.commit().await?;
    state.events.people_changed();
    Ok(StatusCode::NO_CONTENT)
}
