//! SQL of people, sessions, tokens and invitations.

use sqlx::SqlitePool;

use super::{Caller, Role, Scope, Token};
use crate::{
    db::Db,
    error::{Error, Result},
};

const MINUTE_MS: i64 = 60_000;

/// A person as stored.
#[derive(Clone, Debug)]
pub struct User {
    /// UUID; also the user handle of its passkeys.
    pub id: String,
    /// Unique.
    pub name: String,
    /// What the person is.
    pub role: Role,
}

fn parsed<T: std::str::FromStr<Err = String>>(text: &str) -> sqlx::Result<T> {
    text.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))
}

/// Whether anybody has registered yet.
pub async fn any_user(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from user limit 1").fetch_optional(pool).await?.is_some())
}

/// The person with this id.
pub async fn user(pool: &SqlitePool, id: &str) -> sqlx::Result<Option<User>> {
    let row = sqlx::query!("select id, name, role from user where id = ?", id).fetch_optional(pool).await?;
    row.map(|row| Ok(User { role: parsed(&row.role)?, id: row.id, name: row.name })).transpose()
}

/// Stores an invitation.
pub async fn insert_invite(pool: &SqlitePool, hash: &[u8], role: Role, now: i64, expires: i64) -> sqlx::Result<()> {
    let role = role.as_str();
    sqlx::query!(
        "insert into invite (hash, role, created_at, expires_at) values (?, ?, ?, ?)",
        hash,
        role,
        now,
        expires
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The role of an invitation that can still be used.
pub async fn open_invite(pool: &SqlitePool, hash: &[u8], now: i64) -> sqlx::Result<Option<Role>> {
    let row = sqlx::query!("select role from invite where hash = ? and used_at is null and expires_at > ?", hash, now)
        .fetch_optional(pool)
        .await?;
    row.map(|row| parsed(&row.role)).transpose()
}

/// Uses an invitation up and stores its person with a first passkey, all or nothing.
pub async fn register(pool: &SqlitePool, invite: &[u8], user: &User, passkey: &NewPasskey<'_>, now: i64) -> Result<()> {
    let mut transaction = pool.begin().await?;
    let spent = sqlx::query!(
        "update invite set used_at = ?1 where hash = ?2 and used_at is null and expires_at > ?1",
        now,
        invite
    )
    .execute(&mut *transaction)
    .await?;
    if spent.rows_affected() == 0 {
        return Err(Error::Conflict("this registration link was used or has expired; ask for another".to_owned()));
    }
    let role = user.role.as_str();
    sqlx::query!("insert into user (id, name, role, created_at) values (?, ?, ?, ?)", user.id, user.name, role, now)
        .execute(&mut *transaction)
        .await
        .map_err(|fault| taken(fault, || format!("the name {:?} is taken; choose another", user.name)))?;
    sqlx::query!(
        "insert into passkey (credential_id, user_id, name, credential, created_at) values (?, ?, ?, ?, ?)",
        passkey.credential_id,
        user.id,
        passkey.name,
        passkey.credential,
        now
    )
    .execute(&mut *transaction)
    .await
    .map_err(|fault| taken(fault, || "this passkey is registered already; log in with it".to_owned()))?;
    Ok(transaction.commit().await?)
}

/// A passkey to be stored.
#[derive(Clone, Debug)]
pub struct NewPasskey<'a> {
    /// The authenticator's id for it.
    pub credential_id: &'a [u8],
    /// As its owner calls it.
    pub name: &'a str,
    /// The credential as JSON.
    pub credential: &'a str,
}

/// A unique violation becomes a sentence for the user.
pub fn taken(fault: sqlx::Error, sentence: impl FnOnce() -> String) -> Error {
    match &fault {
        sqlx::Error::Database(database) if database.kind() == sqlx::error::ErrorKind::UniqueViolation => {
            Error::Conflict(sentence())
        }
        _ => fault.into(),
    }
}

/// The credential with this id, as JSON, and whose it is.
pub async fn passkey(pool: &SqlitePool, credential_id: &[u8]) -> sqlx::Result<Option<(String, String)>> {
    let row = sqlx::query!("select credential, user_id from passkey where credential_id = ?", credential_id)
        .fetch_optional(pool)
        .await?;
    Ok(row.map(|row| (row.credential, row.user_id)))
}

/// Keeps a passkey's counter and the time of its use.
pub async fn passkey_used(pool: &SqlitePool, id: &[u8], credential: &str, now: i64) -> sqlx::Result<()> {
    sqlx::query!("update passkey set credential = ?, last_used_at = ? where credential_id = ?", credential, now, id)
        .execute(pool)
        .await?;
    Ok(())
}

/// Stores a session and forgets those that have ended.
pub async fn insert_session(
    pool: &SqlitePool,
    hash: &[u8],
    user_id: &str,
    device: &str,
    now: i64,
    expires: i64,
) -> sqlx::Result<()> {
    sqlx::query!("delete from session where expires_at <= ?", now).execute(pool).await?;
    sqlx::query!(
        "insert into session (hash, user_id, device, created_at, last_used_at, expires_at) values (?, ?, ?, ?4, ?4, ?5)",
        hash,
        user_id,
        device,
        now,
        expires
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Ends a session.
pub async fn delete_session(pool: &SqlitePool, hash: &[u8]) -> sqlx::Result<()> {
    sqlx::query!("delete from session where hash = ?", hash).execute(pool).await?;
    Ok(())
}

/// Whose session it is, if it goes on; keeps its last use to the minute.
pub async fn session_caller(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Option<Caller>> {
    let row = sqlx::query!(
        "select user.name, user.role, session.last_used_at from session join user on user.id = session.user_id
         where session.hash = ? and session.expires_at > ?",
        hash,
        now
    )
    .fetch_optional(&db.read)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.last_used_at < now - MINUTE_MS {
        sqlx::query!("update session set last_used_at = ? where hash = ?", now, hash).execute(&db.write).await?;
    }
    Ok(Some(Caller { name: row.name, scope: parsed::<Role>(&row.role)?.scope() }))
}

/// Whose token it is, if it is good; keeps its last use to the minute.
pub async fn token_caller(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Option<Caller>> {
    let row = sqlx::query!(
        "select id, name, scope, last_used_at from token
         where hash = ? and revoked_at is null and (expires_at is null or expires_at > ?)",
        hash,
        now
    )
    .fetch_optional(&db.read)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.last_used_at.is_none_or(|last| last < now - MINUTE_MS) {
        sqlx::query!("update token set last_used_at = ? where id = ?", now, row.id).execute(&db.write).await?;
    }
    Ok(Some(Caller { name: format!("token {}", row.name), scope: parsed::<Scope>(&row.scope)? }))
}

/// Stores a token.
pub async fn insert_token(
    pool: &SqlitePool,
    name: &str,
    hash: &[u8],
    scope: Scope,
    now: i64,
    expires: Option<i64>,
) -> Result<()> {
    let scope = scope.as_str();
    sqlx::query!(
        "insert into token (name, hash, scope, created_at, expires_at) values (?, ?, ?, ?, ?)",
        name,
        hash,
        scope,
        now,
        expires
    )
    .execute(pool)
    .await
    .map_err(|fault| taken(fault, || format!("there is a token {name:?} already; choose another name")))?;
    Ok(())
}

/// All tokens by name.
pub async fn tokens(pool: &SqlitePool) -> sqlx::Result<Vec<Token>> {
    sqlx::query_as!(
        Token,
        "select name, scope, created_at as created_at_ms, expires_at as expires_at_ms,
                last_used_at as last_used_at_ms, revoked_at as revoked_at_ms
         from token order by name"
    )
    .fetch_all(pool)
    .await
}

/// Ends a token for good; false if there is none with this name that goes on.
pub async fn revoke_token(pool: &SqlitePool, name: &str, now: i64) -> sqlx::Result<bool> {
    let done = sqlx::query!("update token set revoked_at = ? where name = ? and revoked_at is null", now, name)
        .execute(pool)
        .await?;
    Ok(done.rows_affected() > 0)
}
