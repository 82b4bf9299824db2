//! SQL of API tokens.

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

/// Returns the token with this secret, if it is valid; updates the last use.
pub async fn valid_token(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Option<ValidToken>> {
    let row = sqlx::query!(
        r#"select token.id, token.name, token.scope, token.user_id, token.last_used_at, user.role as "role?"
           from token left join user on user.id = token.user_id
           where token.hash = ? and revoked_at is null and (expires_at is null or expires_at > ?)"#,
        hash,
        now
    )
    .fetch_optional(&db.read)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.last_used_at.is_none_or(|last| last < now - MINUTE_MS) {
        let id = row.id;
        db.write_if_free(move |connection| {
            connection.execute("update token set last_used_at = ? where id = ?", params![now, id])
        })
        .await;
    }
    let scope: Scope = parsed(&row.scope)?;
    let max = row.role.as_deref().map(parsed::<Role>).transpose()?.map_or(Scope::Admin, Role::scope);
    Ok(Some(ValidToken { name: row.name, scope: scope.min(max), user_id: row.user_id }))
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
