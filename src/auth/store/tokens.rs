//! SQL of API tokens.

use sqlx::{SqliteConnection, SqlitePool};

use super::{MINUTE_MS, parsed, taken};
use crate::{
    app::{db::Db, error::Result},
    auth::{
        model::{Role, Scope},
        people::Token,
    },
};

/// A token to be stored.
#[derive(Clone, Debug)]
pub struct TokenRow<'a> {
    /// Unique.
    pub name: &'a str,
    /// Of its secret.
    pub hash: &'a [u8],
    /// How far it reaches.
    pub scope: Scope,
    /// Whose it is; none where the owner of the data folder made it.
    pub user_id: Option<&'a str>,
    /// Unix ms; none for no end.
    pub expires_at_ms: Option<i64>,
}

/// A token that is good.
#[derive(Clone, Debug)]
pub struct GoodToken {
    /// Unique.
    pub name: String,
    /// How far it reaches: never farther than the person whose it is.
    pub scope: Scope,
    /// Whose it is.
    pub user_id: Option<String>,
}

/// The token with this secret, if it is good; keeps its last use to the minute.
pub async fn good_token(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Option<GoodToken>> {
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
        sqlx::query!("update token set last_used_at = ? where id = ?", now, row.id).execute(&db.write).await?;
    }
    let scope: Scope = parsed(&row.scope)?;
    let most = row.role.as_deref().map(parsed::<Role>).transpose()?.map_or(Scope::Admin, Role::scope);
    Ok(Some(GoodToken { name: row.name, scope: scope.min(most), user_id: row.user_id }))
}

/// Stores a token.
pub async fn insert_token(connection: &mut SqliteConnection, token: &TokenRow<'_>, now: i64) -> Result<()> {
    let TokenRow { name, hash, scope, user_id, expires_at_ms } = token;
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
    .map_err(|fault| taken(fault, || format!("there is a token {name:?} already; choose another name")))?;
    Ok(())
}

/// Tokens by name: a person's, or all.
pub async fn tokens(pool: &SqlitePool, of: Option<&str>) -> sqlx::Result<Vec<Token>> {
    sqlx::query_as!(
        Token,
        r#"select token.name, scope, user.name as "owner?", token.created_at as created_at_ms,
                  expires_at as expires_at_ms, last_used_at as last_used_at_ms, revoked_at as revoked_at_ms
           from token left join user on user.id = token.user_id
           where ?1 is null or token.user_id = ?1 order by token.name"#,
        of
    )
    .fetch_all(pool)
    .await
}

/// Ends a token for good; false if there is none with this name, of this person, that goes on.
pub async fn revoke_token(
    connection: &mut SqliteConnection,
    name: &str,
    of: Option<&str>,
    now: i64,
) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update token set revoked_at = ?1
         where name = ?2 and revoked_at is null and (?3 is null or user_id = ?3)",
        now,
        name,
        of
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}
