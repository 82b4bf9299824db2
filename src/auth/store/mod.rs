//! SQL of users. Files in this folder have passkeys and sessions, invitations, tokens and the audit log.

pub mod audit;
pub mod authority;
pub mod invites;
pub mod notices;
pub mod sessions;
pub mod tokens;

use brewbench_wire::name::lookalike;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::error::{Error, Result},
    auth::{authority::EndingList, model::Role, users::UserInfo},
};

/// Resolution of last-use times: not every request needs to write.
const MINUTE_MS: i64 = 60_000;

/// A stored user.
#[derive(Clone, Debug)]
pub struct User {
    /// UUID; also the user handle of the passkeys.
    pub id: String,
    /// Unique.
    pub name: String,
    /// The user's role.
    pub role: Role,
}

fn parsed<T: std::str::FromStr<Err = String>>(text: &str) -> sqlx::Result<T> {
    text.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))
}

/// Converts a unique violation into a conflict with a message for the user.
pub fn taken(fault: sqlx::Error, sentence: impl FnOnce() -> String) -> Error {
    match &fault {
        sqlx::Error::Database(database) if database.kind() == sqlx::error::ErrorKind::UniqueViolation => {
            Error::Conflict(sentence())
        }
        _ => fault.into(),
    }
}

/// Refuses a new name that looks like one of its kind, because lists and the audit log identify by names.
pub fn distinct(kind: &str, name: &str, existing: &[String]) -> Result<()> {
    match lookalike(name, existing.iter().map(String::as_str)) {
        Some(other) => {
            Err(Error::Conflict(format!("the name {name:?} looks like the existing {kind} {other:?}; choose another")))
        }
        None => Ok(()),
    }
}

/// Returns whether a user has registered yet.
pub async fn any_user(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from user limit 1").fetch_optional(pool).await?.is_some())
}

/// Returns the user with this name.
pub async fn user(pool: &SqlitePool, name: &str) -> Result<User> {
    found(&mut *pool.acquire().await?, name).await
}

fn unknown(name: &str) -> Error {
    Error::NotFound(format!("user {name:?}"))
}

/// Stores a user. A name that looks like another user's is refused.
pub async fn insert_user(connection: &mut SqliteConnection, user: &User, now: i64) -> Result<()> {
    let User { id, name, role } = user;
    let names = sqlx::query_scalar!("select name from user").fetch_all(&mut *connection).await?;
    distinct("user", name, &names)?;
    let role = role.as_str();
    sqlx::query!("insert into user (id, name, role, created_at) values (?, ?, ?, ?)", id, name, role, now)
        .execute(connection)
        .await
        .map_err(|fault| taken(fault, || format!("the name {name:?} is taken; choose another")))?;
    Ok(())
}

/// Returns all users by name.
pub async fn users(pool: &SqlitePool) -> Result<Vec<UserInfo>> {
    let rows = sqlx::query!(
        r#"select name, role, created_at,
                  (select count(*) from passkey where user_id = user.id) as "passkeys!: i64",
                  max(coalesce((select max(last_used_at) from session where user_id = user.id), 0),
                      coalesce((select max(last_used_at) from passkey where user_id = user.id), 0)) as "last!: i64"
           from user order by name"#
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(UserInfo {
                name: row.name,
                role: parsed(&row.role)?,
                passkeys: row.passkeys,
                created_at_ms: row.created_at,
                last_seen_at_ms: Some(row.last).filter(|last| *last > 0),
            })
        })
        .collect()
}

/// Changes a user's role; returns the previous role and what ended with it. Refuses to demote the last administrator.
pub async fn change_role(
    connection: &mut SqliteConnection,
    name: &str,
    role: Role,
    now: i64,
) -> Result<(Role, EndingList)> {
    let user = found(connection, name).await?;
    if role != Role::Admin {
        keep_an_admin(connection, name, user.role).await?;
    }
    let ended = authority::endings(connection, &user.id, Some(role), now).await?;
    let role = role.as_str();
    sqlx::query!("update user set role = ? where id = ?", role, user.id).execute(connection).await?;
    Ok((user.role, ended))
}

/// Removes a user with all dependent items; returns the role and what ended. Refuses to remove the last administrator.
pub async fn remove_user(connection: &mut SqliteConnection, name: &str, now: i64) -> Result<(Role, EndingList)> {
    let user = found(connection, name).await?;
    keep_an_admin(connection, name, user.role).await?;
    let ended = authority::endings(connection, &user.id, None, now).await?;
    sqlx::query!("delete from user where id = ?", user.id).execute(connection).await?;
    Ok((user.role, ended))
}

async fn found(connection: &mut SqliteConnection, name: &str) -> Result<User> {
    let row = sqlx::query!("select id, name, role from user where name = ?", name).fetch_optional(connection).await?;
    let row = row.ok_or_else(|| unknown(name))?;
    Ok(User { role: parsed(&row.role)?, id: row.id, name: row.name })
}

async fn keep_an_admin(connection: &mut SqliteConnection, name: &str, role: Role) -> Result<()> {
    if role != Role::Admin {
        return Ok(());
    }
    let others = sqlx::query!("select id from user where role = 'admin' and name <> ? limit 1", name);
    if others.fetch_optional(connection).await?.is_none() {
        return Err(Error::Conflict(format!(
            "{name} is the last administrator; make another user an administrator first"
        )));
    }
    Ok(())
}
