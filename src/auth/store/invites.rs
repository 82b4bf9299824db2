//! SQL of invitations.

use sqlx::{SqliteConnection, SqlitePool};

use super::parsed;
use crate::{
    app::error::{Error, Result},
    auth::{model::Role, users::OpenInvite},
};

/// An invitation to store.
#[derive(Clone, Debug)]
pub struct InviteRow<'a> {
    /// Hash of its secret.
    pub hash: &'a [u8],
    /// Role of the invited user.
    pub role: Role,
    /// Id of the existing user it is for; none for a new user.
    pub user_id: Option<&'a str>,
    /// Whether using it removes that user's earlier passkeys and sessions.
    pub resets_passkeys: bool,
    /// Name of its creator.
    pub created_by: Option<&'a str>,
    /// Id of the user whose role it depends on; none for commands on the data folder.
    pub made_by: Option<&'a str>,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// An open invitation.
#[derive(Clone, Debug)]
pub struct UsableInvite {
    /// Role of the invited user.
    pub role: Role,
    /// Id and name of the existing user it is for.
    pub user: Option<(String, String)>,
    /// Whether using it removes that user's earlier passkeys and sessions.
    pub resets_passkeys: bool,
}

/// Stores an invitation.
pub async fn insert_invite(connection: &mut SqliteConnection, invite: &InviteRow<'_>, now: i64) -> sqlx::Result<()> {
    let InviteRow { hash, role, user_id, resets_passkeys, created_by, made_by, expires_at_ms } = invite;
    let role = role.as_str();
    sqlx::query!(
        "insert into invite (hash, role, user_id, ends_passkeys, created_by, made_by, created_at, expires_at)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
        hash,
        role,
        user_id,
        resets_passkeys,
        created_by,
        made_by,
        now,
        expires_at_ms
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Returns an open invitation whose creator may still invite.
pub async fn usable_invite(pool: &SqlitePool, hash: &[u8], now: i64) -> Result<UsableInvite> {
    let row = sqlx::query!(
        r#"select coalesce(user.role, invite.role) as "role!", ends_passkeys as "resets_passkeys: bool", user.id as "id?", user.name as "name?"
           from invite left join user on user.id = invite.user_id
           where hash = ? and used_at is null and withdrawn_at is null and expires_at > ?
               and (made_by is null or exists (select 1 from user where id = made_by and role = 'admin'))"#,
        hash,
        now
    )
    .fetch_optional(pool)
    .await?
    .ok_or_else(link_spent)?;
    Ok(UsableInvite { role: parsed(&row.role)?, user: row.id.zip(row.name), resets_passkeys: row.resets_passkeys })
}

/// Marks an invitation as used, if its creator may still invite.
pub async fn spend_invite(connection: &mut SqliteConnection, hash: &[u8], now: i64) -> Result<()> {
    let spent = sqlx::query!(
        "update invite set used_at = ?1
         where hash = ?2 and used_at is null and withdrawn_at is null and expires_at > ?1
             and (made_by is null or exists (select 1 from user where id = made_by and role = 'admin'))",
        now,
        hash
    )
    .execute(connection)
    .await?;
    if spent.rows_affected() == 0 { Err(link_spent()) } else { Ok(()) }
}

fn link_spent() -> Error {
    Error::Forbidden("this registration link was already used or has expired; ask for a new one".to_owned())
}

/// Returns open invitations by expiry, earliest first.
pub async fn open_invites(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<OpenInvite>> {
    sqlx::query_as!(
        OpenInvite,
        r#"select invite.id, coalesce(user.role, invite.role) as "role!", user.name as "user?", ends_passkeys as "resets_passkeys: bool", created_by,
                  invite.created_at as created_at_ms, expires_at as expires_at_ms
           from invite left join user on user.id = invite.user_id
           where used_at is null and withdrawn_at is null and expires_at > ?
               and (made_by is null or exists (select 1 from user as maker where maker.id = made_by and maker.role = 'admin'))
           order by expires_at, invite.id"#,
        now
    )
    .fetch_all(pool)
    .await
}

/// Withdraws an open invitation; false if there is none with this id.
pub async fn withdraw_invite(connection: &mut SqliteConnection, id: i64, now: i64) -> sqlx::Result<bool> {
    let done = sqlx::query!(
        "update invite set withdrawn_at = ?1
         where id = ?2 and used_at is null and withdrawn_at is null and expires_at > ?1",
        now,
        id
    )
    .execute(connection)
    .await?;
    Ok(done.rows_affected() > 0)
}
