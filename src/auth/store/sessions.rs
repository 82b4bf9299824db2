//! SQL of passkeys and sessions.

use rusqlite::params;
use sqlx::{SqliteConnection, SqlitePool};

use super::{MINUTE_MS, User, parsed, taken};
use crate::{
    app::{
        db::Db,
        error::{Error, Result},
    },
    auth::{
        device::device,
        model::Session,
        users::{OwnPasskey, OwnSession},
    },
};

/// A passkey to store.
#[derive(Clone, Debug)]
pub struct NewPasskey<'a> {
    /// Id assigned by the authenticator.
    pub credential_id: &'a [u8],
    /// Name chosen by its owner.
    pub name: &'a str,
    /// The credential as JSON.
    pub credential: &'a str,
}

/// Stores a user's passkey.
pub async fn insert_passkey(
    connection: &mut SqliteConnection,
    user_id: &str,
    passkey: &NewPasskey<'_>,
    now: i64,
) -> Result<()> {
    let NewPasskey { credential_id, name, credential } = passkey;
    sqlx::query!(
        "insert into passkey (credential_id, user_id, name, credential, created_at) values (?, ?, ?, ?, ?)",
        credential_id,
        user_id,
        name,
        credential,
        now
    )
    .execute(connection)
    .await
    .map_err(|fault| taken(fault, || "this passkey is already registered; log in with it".to_owned()))?;
    Ok(())
}

/// Returns the credential with this id, as JSON, and its user.
pub async fn passkey(pool: &SqlitePool, credential_id: &[u8]) -> sqlx::Result<Option<(String, User)>> {
    let row = sqlx::query!(
        "select credential, user.id, user.name, user.role from passkey join user on user.id = passkey.user_id
         where credential_id = ?",
        credential_id
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| Ok((row.credential, User { id: row.id, name: row.name, role: parsed(&row.role)? }))).transpose()
}

/// Stores a passkey's counter and time of use; fails if it was removed in the meantime.
pub async fn passkey_used(connection: &mut SqliteConnection, id: &[u8], credential: &str, now: i64) -> Result<()> {
    let done = sqlx::query!(
        "update passkey set credential = ?, last_used_at = ? where credential_id = ?",
        credential,
        now,
        id
    )
    .execute(connection)
    .await?;
    if done.rows_affected() == 0 {
        return Err(Error::Forbidden("this passkey has just been removed; log in with another one".to_owned()));
    }
    Ok(())
}

/// Returns the credential ids of a user's passkeys.
pub async fn credential_ids(pool: &SqlitePool, user_id: &str) -> sqlx::Result<Vec<Vec<u8>>> {
    let rows = sqlx::query!("select credential_id from passkey where user_id = ?", user_id).fetch_all(pool).await?;
    Ok(rows.into_iter().map(|row| row.credential_id).collect())
}

/// Returns a user's passkeys, oldest first.
pub async fn passkeys(pool: &SqlitePool, user_id: &str) -> sqlx::Result<Vec<OwnPasskey>> {
    sqlx::query_as!(
        OwnPasskey,
        "select id, name, created_at as created_at_ms, last_used_at as last_used_at_ms
         from passkey where user_id = ? order by id",
        user_id
    )
    .fetch_all(pool)
    .await
}

/// Renames a user's passkey and returns the previous name.
pub async fn rename_passkey(connection: &mut SqliteConnection, user_id: &str, id: i64, name: &str) -> Result<String> {
    let before = own_passkey(connection, user_id, id).await?;
    sqlx::query!("update passkey set name = ? where id = ?", name, id).execute(connection).await?;
    Ok(before)
}

/// Removes a user's passkey and returns its name. Refuses to remove the last one.
pub async fn remove_passkey(connection: &mut SqliteConnection, user_id: &str, id: i64) -> Result<String> {
    let name = own_passkey(connection, user_id, id).await?;
    let count = sqlx::query!("select count(*) as n from passkey where user_id = ?", user_id)
        .fetch_one(&mut *connection)
        .await?
        .n;
    if count < 2 {
        return Err(last_passkey());
    }
    sqlx::query!("delete from passkey where id = ?", id).execute(connection).await?;
    Ok(name)
}

/// The error for removing the last passkey.
pub fn last_passkey() -> Error {
    Error::Conflict("this is your last passkey, without which you cannot log in; add another one first".to_owned())
}

async fn own_passkey(connection: &mut SqliteConnection, user_id: &str, id: i64) -> Result<String> {
    let row = sqlx::query!("select name from passkey where id = ? and user_id = ?", id, user_id)
        .fetch_optional(connection)
        .await?;
    row.map(|row| row.name).ok_or_else(|| Error::NotFound("this passkey in your account".to_owned()))
}

/// Removes all passkeys and sessions of a user.
pub async fn remove_passkeys_and_sessions(connection: &mut SqliteConnection, user_id: &str) -> sqlx::Result<()> {
    sqlx::query!("delete from passkey where user_id = ?", user_id).execute(&mut *connection).await?;
    sqlx::query!("delete from session where user_id = ?", user_id).execute(connection).await?;
    Ok(())
}

/// A session to store.
#[derive(Clone, Debug)]
pub struct NewSession<'a> {
    /// Hash of its secret.
    pub hash: &'a [u8],
    /// Id of its user.
    pub user_id: &'a str,
    /// The browser's user agent.
    pub device: &'a str,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// A session ends after this time without use, ms.
pub const IDLE_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// Stores the session of a user who has just confirmed their identity with a passkey. Returns its id.
pub async fn insert_session(
    connection: &mut SqliteConnection,
    session: &NewSession<'_>,
    now: i64,
) -> sqlx::Result<i64> {
    let NewSession { hash, user_id, device, expires_at_ms } = session;
    let done = sqlx::query!(
        "insert into session (hash, user_id, device, created_at, last_used_at, proved_at, expires_at)
         values (?, ?, ?, ?4, ?4, ?4, ?5)",
        hash,
        user_id,
        device,
        now,
        expires_at_ms
    )
    .execute(connection)
    .await?;
    Ok(done.last_insert_rowid())
}

/// Removes ended sessions and returns their number.
pub async fn remove_ended(pool: &SqlitePool, now: i64) -> sqlx::Result<u64> {
    let idle = now - IDLE_MS;
    let done = sqlx::query!("delete from session where expires_at <= ? or last_used_at <= ?", now, idle);
    Ok(done.execute(pool).await?.rows_affected())
}

/// Records that a session's user has just confirmed their identity with a passkey, and replaces the session's secret:
/// others who know the previous one must not profit from the proof.
pub async fn record_confirmation(
    connection: &mut SqliteConnection,
    hash: &[u8],
    new_hash: &[u8],
    now: i64,
) -> Result<()> {
    let done = sqlx::query!("update session set proved_at = ?, hash = ? where hash = ?", now, new_hash, hash);
    if done.execute(connection).await?.rows_affected() == 0 {
        return Err(Error::Conflict("this session was just confirmed elsewhere or has ended; try again".to_owned()));
    }
    Ok(())
}

/// Returns the user of a valid session, and the session; updates the last use.
pub async fn session_user(db: &Db, hash: &[u8], now: i64) -> sqlx::Result<Option<(User, Session)>> {
    let idle = now - IDLE_MS;
    let row = sqlx::query!(
        "select user.id, user.name, user.role, session.id as session, session.last_used_at, session.proved_at
         from session join user on user.id = session.user_id
         where session.hash = ? and session.expires_at > ? and session.last_used_at > ?",
        hash,
        now,
        idle
    )
    .fetch_optional(&db.read)
    .await?;
    let Some(row) = row else { return Ok(None) };
    if row.last_used_at < now - MINUTE_MS {
        let hash = hash.to_owned();
        db.write_if_free(move |connection| {
            connection.execute("update session set last_used_at = ? where hash = ?", params![now, hash])
        })
        .await;
    }
    let session = Session { id: row.session, proved_at_ms: row.proved_at };
    Ok(Some((User { id: row.id, name: row.name, role: parsed(&row.role)? }, session)))
}

/// Returns a user's valid sessions by last use. `own` is the hash of the current session, which comes first.
pub async fn sessions(pool: &SqlitePool, user_id: &str, own: &[u8], now: i64) -> sqlx::Result<Vec<OwnSession>> {
    let idle = now - IDLE_MS;
    let rows = sqlx::query!(
        r#"select id, device, created_at, last_used_at, expires_at, hash = ?1 as "this!: bool" from session
           where user_id = ?2 and expires_at > ?3 and last_used_at > ?4 order by hash = ?1 desc, last_used_at desc, id desc"#,
        own,
        user_id,
        now,
        idle
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| OwnSession {
            id: row.id,
            device: device(&row.device),
            created_at_ms: row.created_at,
            last_used_at_ms: row.last_used_at,
            expires_at_ms: row.expires_at.min(row.last_used_at + IDLE_MS),
            this: row.this,
        })
        .collect())
}

/// Ends the session with this secret.
pub async fn end_session_by_hash(connection: &mut SqliteConnection, hash: &[u8]) -> sqlx::Result<()> {
    sqlx::query!("delete from session where hash = ?", hash).execute(connection).await?;
    Ok(())
}

/// Ends one of a user's sessions and returns its device.
pub async fn end_session(connection: &mut SqliteConnection, user_id: &str, id: i64) -> Result<String> {
    let row = sqlx::query!("delete from session where id = ? and user_id = ? returning device", id, user_id)
        .fetch_optional(connection)
        .await?;
    row.map(|row| device(&row.device)).ok_or_else(|| Error::NotFound("this session in your account".to_owned()))
}

/// Ends all but one of a user's sessions and returns their number.
pub async fn end_other_sessions(connection: &mut SqliteConnection, user_id: &str, own: &[u8]) -> sqlx::Result<u64> {
    let done =
        sqlx::query!("delete from session where user_id = ? and hash <> ?", user_id, own).execute(connection).await?;
    Ok(done.rows_affected())
}
