//! SQL of invitations.

use sqlx::{SqliteConnection, SqlitePool};

use super::parsed;
use crate::{
    app::error::{Error, Result},
    auth::{model::Role, people::OpenInvite},
};

/// An invitation to be stored.
#[derive(Clone, Debug)]
pub struct InviteRow<'a> {
    /// Of its secret.
    pub hash: &'a [u8],
    /// What the invited person becomes, or is.
    pub role: Role,
    /// The id of the person who gets another passkey by it; none for somebody new.
    pub user_id: Option<&'a str>,
    /// Whether that person's passkeys and sessions of before end with its use.
    pub ends_passkeys: bool,
    /// Who made it.
    pub created_by: Option<&'a str>,
    /// The id of the user whose authority it is; none for the owner of the data folder.
    pub made_by: Option<&'a str>,
    /// Unix ms.
    pub expires_at_ms: i64,
}

/// What an invitation that can still be used is for.
#[derive(Clone, Debug)]
pub struct Usable {
    /// What the invited person becomes.
    pub role: Role,
    /// Who gets another passkey by it: id and name.
    pub person: Option<(String, String)>,
    /// Whether that person's passkeys and sessions of before end.
    pub ends_passkeys: bool,
}

/// Stores an invitation.
pub async fn insert_invite(connection: &mut SqliteConnection, invite: &InviteRow<'_>, now: i64) -> sqlx::Result<()> {
    let InviteRow { hash, role, user_id, ends_passkeys, created_by, made_by, expires_at_ms } = invite;
    let role = role.as_str();
    sqlx::query!(
        "insert into invite (hash, role, user_id, ends_passkeys, created_by, made_by, created_at, expires_at)
         values (?, ?, ?, ?, ?, ?, ?, ?)",
        hash,
        role,
        user_id,
        ends_passkeys,
        created_by,
        made_by,
        now,
        expires_at_ms
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// An invitation that can still be used, and whose maker may still invite.
pub async fn usable_invite(pool: &SqlitePool, hash: &[u8], now: i64) -> Result<Usable> {
    let row = sqlx::query!(
        r#"select coalesce(user.role, invite.role) as "role!", ends_passkeys as "ends_passkeys: bool", user.id as "id?", user.name as "name?"
           from invite left join user on user.id = invite.user_id
           where hash = ? and used_at is null and withdrawn_at is null and expires_at > ?
               and (made_by is null or exists (select 1 from user where id = made_by and role = 'admin'))"#,
        hash,
        now
    )
    .fetch_optional(pool)
    .await?
    .ok_or_else(link_spent)?;
    Ok(Usable { role: parsed(&row.role)?, person: row.id.zip(row.name), ends_passkeys: row.ends_passkeys })
}

/// Uses an invitation up, if its maker may still invite.
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
    Error::Forbidden("this registration link was used or has expired; ask for another".to_owned())
}

/// Invitations that can still be used, the one that ends first first.
pub async fn open_invites(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<OpenInvite>> {
    sqlx::query_as!(
        OpenInvite,
        r#"select invite.id, coalesce(user.role, invite.role) as "role!", user.name as "person?", ends_passkeys as "ends_passkeys: bool", created_by,
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

/// Withdraws an invitation that can still be used; false if there is none with this id.
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
