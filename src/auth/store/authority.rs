//! SQL of what ends with a user or a role. The view and the triggers are in `migrations/0026_authority.sql`.

use sqlx::SqliteConnection;

use super::{parsed, sessions::IDLE_MS};
use crate::auth::{
    authority::{AccessKind, Ending, EndingList, suffices},
    model::Role,
};

/// Returns what ends if a user gets a role, or is removed if `role` is `None`. Expired items are omitted.
pub async fn endings(
    connection: &mut SqliteConnection,
    user_id: &str,
    role: Option<Role>,
    now: i64,
) -> sqlx::Result<EndingList> {
    let granted = sqlx::query!(
        r#"select kind as "kind!: String", name as "name!: String", role as "role!: String" from authority
           where user_id = ?1 and (ends_at is null or ends_at > ?2)"#,
        user_id,
        now
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut ends = Vec::new();
    for row in granted {
        let needed: Role = parsed(&row.role)?;
        if role.is_none_or(|role| !suffices(role, needed)) {
            ends.push(Ending::new(parsed(&row.kind)?, row.name));
        }
    }
    if role.is_none() {
        ends.extend(own(connection, user_id, now).await?);
    }
    ends.sort_by(|one, other| (one.kind, &one.name).cmp(&(other.kind, &other.name)));
    Ok(EndingList { ends })
}

/// Returns the user's own passkeys, sessions and tokens.
async fn own(connection: &mut SqliteConnection, user_id: &str, now: i64) -> sqlx::Result<Vec<Ending>> {
    let idle = now - IDLE_MS;
    let rows = sqlx::query!(
        r#"select 'passkey' as "kind!: String", name as "name!: String" from passkey where user_id = ?1
           union all select 'session', device from session
               where user_id = ?1 and expires_at > ?2 and last_used_at > ?3
           union all select 'token', name from token
               where user_id = ?1 and revoked_at is null and (expires_at is null or expires_at > ?2)"#,
        user_id,
        now,
        idle
    )
    .fetch_all(connection)
    .await?;
    rows.into_iter()
        .map(|row| {
            let kind: AccessKind = parsed(&row.kind)?;
            let name = if kind == AccessKind::Session { crate::auth::device::device(&row.name) } else { row.name };
            Ok(Ending::new(kind, name))
        })
        .collect()
}
