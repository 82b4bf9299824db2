//! JSON API of API tokens. Users manage their own, administrators manage all of them.

use axum::{
    Json,
    extract::{Path, State},
    http::StatusCode,
};
use brewbench_wire::now_ms;
use serde_json::json;

use super::DAY_MS;
use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::{action::Action, record},
        caller::{Caller, TokenManager},
        checks::checked_name,
        model::Scope,
        proven::Proven,
        secret,
        store::tokens::{self, TokenRow},
        users::{CreatedSecret, NewToken, TokenList},
    },
};

/// List your tokens, or all tokens for administrators, without secrets. Needs a logged-in user or a token with the
/// scope `admin`.
#[utoipa::path(get, path = "/api/v1/tokens", tag = "tokens", responses((status = 200, body = TokenList)))]
pub async fn list(TokenManager(caller): TokenManager, State(state): State<AppState>) -> Result<Json<TokenList>> {
    Ok(Json(TokenList { tokens: tokens::tokens(&state.db.read, owner_filter(&caller)).await? }))
}

/// Returns the user id that restricts a caller to their own tokens; `None` for administrators.
pub fn owner_filter(caller: &Caller) -> Option<&str> {
    if caller.scope == Scope::Admin { None } else { Some(caller.user_id.as_deref().unwrap_or_default()) }
}

/// How long before its end a token needs attention. Shorter-lived ones never do.
const ATTENTION_MS: i64 = 7 * DAY_MS;

/// Returns the tokens that a caller may manage and that expire soon.
pub async fn expiring(state: &AppState, caller: &Caller) -> Result<Vec<(String, i64)>> {
    Ok(tokens::expiring(&state.db.read, owner_filter(caller), now_ms(), ATTENTION_MS).await?)
}

/// Create a token. It expires after 90 days unless you choose otherwise. Its rights never exceed its owner's, and it
/// ends with the owner. Only this response shows its
/// secret. Needs a logged-in user or a token with the scope `admin`.
#[utoipa::path(post, path = "/api/v1/tokens", tag = "tokens", request_body = NewToken,
    responses((status = 201, body = CreatedSecret),
    (status = 403, body = ErrorBody), (status = 409, body = ErrorBody)))]
pub async fn new(
    manager: Proven<TokenManager>,
    State(state): State<AppState>,
    Input(request): Input<NewToken>,
) -> Result<(StatusCode, Json<CreatedSecret>)> {
    Ok((StatusCode::CREATED, Json(create_token(&state.db, &request, &manager.by()).await?)))
}

/// Creates and stores a token.
pub async fn create_token(db: &Db, request: &NewToken, by: &Proven<Caller>) -> Result<CreatedSecret> {
    let NewToken { name, scope, .. } = request;
    let days = request.days().map_err(Error::Invalid)?;
    let name = checked_name(name)?;
    let name = name.as_str();
    if *scope > by.scope {
        return Err(Error::Forbidden(format!(
            "scope: your tokens can have at most your own scope, {}",
            by.scope.as_str()
        )));
    }
    let (token, now) = (secret::generate(secret::Kind::Token), now_ms());
    let hash = secret::hash(&token);
    let expires_at_ms = days.map(|days| now + i64::from(days) * DAY_MS);
    let row = TokenRow { name, hash: &hash, scope: *scope, user_id: by.user_id.as_deref(), expires_at_ms };
    let detail = json!({"scope": scope, "expires_in_days": days});
    let mut transaction = db.write.begin().await?;
    tokens::insert_token(&mut transaction, &row, now).await?;
    record(&mut transaction, &by.does(Action::TokenMade, name).with(detail)).await?;
    transaction.commit().await?;
    Ok(CreatedSecret { name: name.to_owned(), secret: token })
}

/// Revoke a token for good: your own, or any token as an administrator. Needs a logged-in user or a token with the
/// scope `admin`.
#[utoipa::path(delete, path = "/api/v1/tokens/{name}", tag = "tokens",
    params(("name" = String, Path)), responses((status = 204), (status = 404, body = ErrorBody)))]
pub async fn revoke(
    TokenManager(caller): TokenManager,
    State(state): State<AppState>,
    Path(name): Path<String>,
) -> Result<StatusCode> {
    let mut transaction = state.db.write.begin().await?;
    if !tokens::revoke_token(&mut transaction, &name, owner_filter(&caller), now_ms()).await? {
        return Err(Error::NotFound(format!("unrevoked token {name:?}")));
    }
    record(&mut transaction, &caller.does(Action::TokenRevoked, &name)).await?;
    transaction.commit().await?;
    state.events.rights_changed();
    Ok(StatusCode::NO_CONTENT)
}
