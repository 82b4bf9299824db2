//! SQL of the notices about a user's account, which are read from the audit log.

use sqlx::{SqliteConnection, SqlitePool};

use crate::auth::notices::Notice;

/// How far back notices go, ms.
const MAX_AGE_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// Returns at most 20 notices that a user has not dismissed, newest first. A login counts if the user never logged in
/// from this address with such a device, and if it did not begin this session.
pub async fn notices(pool: &SqlitePool, user_id: &str, session: i64, now: i64) -> sqlx::Result<Vec<Notice>> {
    let longest = now - MAX_AGE_MS;
    sqlx::query_as!(
        Notice,
        r#"select entry.at as at_ms, action, actor, object, address, detail ->> '$.device' as "device?: String"
           from audit as entry join user on user.id = ?1
           where action in ('logged in', 'passkey added', 'access recovered', 'token created', 'invitation created')
               and entry.at > max(user.notices_from, user.created_at, ?2)
               and case action
                   when 'invitation created' then object = user.name
                   when 'token created' then
                       actor = user.name or actor in (select 'token ' || token.name from token where user_id = ?1)
                   when 'logged in' then
                       actor = user.name and coalesce(detail ->> '$.session', 0) <> ?3 and not exists (
                           select 1 from audit as earlier
                           where earlier.actor = entry.actor and earlier.id < entry.id
                               and earlier.action in ('logged in', 'registered', 'access recovered')
                               and earlier.address is entry.address
                               and earlier.detail ->> '$.device' is entry.detail ->> '$.device'
                       )
                   else actor = user.name
               end
           order by entry.at desc, entry.id desc limit 20"#,
        user_id,
        longest,
        session
    )
    .fetch_all(pool)
    .await
}

/// Dismisses the notices of a user until a time, unix ms.
pub async fn dismiss(connection: &mut SqliteConnection, user_id: &str, until: i64) -> sqlx::Result<()> {
    sqlx::query!("update user set notices_from = max(notices_from, ?) where id = ?", until, user_id)
        .execute(connection)
        .await?;
    Ok(())
}
