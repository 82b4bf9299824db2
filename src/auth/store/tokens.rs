//! SQL of API tokens.

use jiff::Timestamp;
use rusqlite::params;
use sqlx::{SqliteConnection, SqlitePool};

use super::{MINUTE_MS, distinct, parsed, taken};
use crate::{
    app::{db::Db, error::Result},
    auth::{
        model::{Role, Scope},
        users::Token,
    },
};

/// A token to store.
#[derive(Clone, Debug)]
pub struct TokenRow<'a> {
    /// Unique.
    pub name: &'a str,
    /// Hash of its secret.
    pub hash: &'a [u8],
    /// Its scope.
    pub scope: Scope,
    /// Id of its owner; none for commands on the data folder.
    pub user_id: Option<&'a str>,
    /// Unix ms; none if it does not expire.
    pub expires_at_ms: Option<i64>,
}

/// A valid token.
#[derive(Clone, Debug)]
pub struct ValidToken {
    /// Unique.
    pub name: String,
    /// Its scope, limited by the owner's role.
    pub scope: Scope,
    /// Id of its owner.
    pub user_id: Option<String>,
}

/// A token that a caller sent.
#[derive(Clone, Debug)]
pub enum Presented {
    /// It is valid.
    Valid(ValidToken),
    /// It was revoked or has expired; in words.
    Ended(String),
    /// There is none with this secret.
    Unknown,
}

/// Returns the token with this secret; updates the last use of a valid one.
pub async fn presented_token(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Presented> {
    let row = sqlx::query!(
        r#"select token.id, token.name, token.scope, token.user_id, token.last_used_at, token.expires_at,
                  token.revoked_at, user.role as "role?"
           from token left join user on user.id = token.user_id where token.hash = ?"#,
        hash
    )
    .fetch_optional(&db.read)
    .await?;
    let Some(row) = row else { return Ok(Presented::Unknown) };
    if let Some(how) = ended(row.revoked_at, row.expires_at, now) {
        return Ok(Presented::Ended(format!("the token {:?} {how}; create a new one", row.name)));
    }
    if row.last_used_at.is_none_or(|last| last < now - MINUTE_MS) {
        let id = row.id;
        db.write_if_free(move |connection| {
            connection.execute("update token set last_used_at = ? where id = ?", params![now, id])
        })
        .await;
    }
    let scope: Scope = parsed(&row.scope)?;
    let max = row.role.as_deref().map(parsed::<Role>).transpose()?.map_or(Scope::Admin, Role::scope);
    Ok(Presented::Valid(ValidToken { name: row.name, scope: scope.min(max), user_id: row.user_id }))
}

/// Returns how a token ended; none if it is valid.
fn ended(revoked_at: Option<i64>, expires_at: Option<i64>, now: i64) -> Option<String> {
    let date = |at| Timestamp::from_millisecond(at).map(|at| at.strftime("%Y-%m-%d %H:%M UTC").to_string());
    let (word, at) = match (revoked_at, expires_at) {
        (Some(at), _) => ("was revoked on", at),
        (None, Some(at)) if at <= now => ("expired on", at),
        _ => return None,
    };
    Some(format!("{word} {}", date(at).unwrap_or_default()))
}

/// Returns valid tokens that expire within a time, ms, and live longer than that, the earliest first: a user's, or all
/// if `owner` is `None`.
pub async fn expiring(
    pool: &SqlitePool,
    owner: Option<&str>,
    now: i64,
    within: i64,
) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        r#"select name, expires_at as "expires_at!" from token
           where revoked_at is null and expires_at > ?1 and expires_at <= ?1 + ?2
               and expires_at - created_at > ?2 and (?3 is null or user_id = ?3)
           order by expires_at limit 20"#,
        now,
        within,
        owner
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.name, row.expires_at)).collect())
}

/// Stores a token.
pub async fn insert_token(connection: &mut SqliteConnection, token: &TokenRow<'_>, now: i64) -> Result<()> {
    let TokenRow { name, hash, scope, user_id, expires_at_ms } = token;
    let names = sqlx::query_scalar!("select name from token").fetch_all(&mut *connection).await?;
    distinct("token", name, &names)?;
    let scope = scope.as_str();
    sqlx::query!(
        "insert into token (name, hash, scope, user_id, created_at, expires_at) values (?, ?, ?, ?, ?, ?)",
        name,
        hash,
        scope,
        user_id,
        now,
        expires_at_ms
    )
    .execute(connection)
    .await
    .map_err(|fault| taken(fault, || format!("a token {name:?} already exists; choose another name")))?;
    Ok(())
}

/// Returns tokens by name: a user's, or all if `owner` is `None`.
pub async fn tokens(pool: &SqlitePool, owner: Option<&str>) -> sqlx::Result<Vec<Token>> {
    sqlx::query_as!(
        Token,
        r#"select token.name, scope, user.name as "owner?", token.created_at as created_at_ms,
                  expires_at as expires_at_ms, last_used_at as last_used_at_ms, revoked_at as revoked_at_ms
           from token left join user on user.id = token.user_id
           where ?1 is null or token.user_id = ?1 order by token.name"#,
        owner
    )
    .fetch_all(pool)
    .await
}

/// Revokes a token for good; false if there is no unrevoked one with this name and owner.
pub async fn revoke_token(
    connection: &mut SqliteConnection,
    name: &str,
    owner: Option<&str>,
    now: i64,
) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update token set revoked_at = ?1
         where name = ?2 and revoked_at is null and (?3 is null or user_id = ?3)",
        now,
        name,
        owner
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}
