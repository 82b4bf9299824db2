//! SQL of webhooks: where to, what is to be sent, what became of it.

use sqlx::{SqliteConnection, SqlitePool};

use super::decode;
use crate::{
    alerts::{
        Delivery, Webhook,
        deliver::Attempt,
        model::Event,
        webhooks::{DeliveryState, Told},
    },
    app::secrets_key::{self, SecretsKey},
    auth::audit::{self, Act},
};

/// Stores a webhook and gives its id; that of `webhook` does not count. `made_by` is the id of the user whose authority it
/// is.
pub async fn insert(
    pool: &SqlitePool,
    webhook: &Webhook,
    encrypted_secret: &str,
    made_by: Option<&str>,
    act: &Act,
) -> sqlx::Result<i64> {
    let Webhook { id: _, url, events, created_by, created_at_ms, is_active: _, last: _ } = webhook;
    let events = serde_json::to_string(events).map_err(decode)?;
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "insert into webhook (url, events, secret, created_by, made_by, created_at) values (?, ?, ?, ?, ?, ?)",
        url,
        events,
        encrypted_secret,
        created_by,
        made_by,
        created_at_ms
    )
    .execute(&mut *transaction)
    .await?;
    audit::note(&mut transaction, act).await?;
    transaction.commit().await?;
    Ok(done.last_insert_rowid())
}

/// Encrypts secrets that an earlier version stored as they are, and warns of those that this key can't decrypt.
pub async fn encrypt_secrets(pool: &SqlitePool, key: &SecretsKey) -> sqlx::Result<()> {
    let rows = sqlx::query!("select id, secret from webhook").fetch_all(pool).await?;
    let (encrypted, plain): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| secrets_key::is_encrypted(&row.secret));
    for row in encrypted {
        if let Err(fault) = key.decrypt(&row.secret) {
            tracing::warn!(webhook = row.id, %fault, "nothing can be sent to this webhook");
        }
    }
    if plain.is_empty() {
        return Ok(());
    }
    // Without this, SQLite leaves the old secrets readable in free space of the file.
    sqlx::query("pragma secure_delete = on").execute(pool).await?;
    for row in plain {
        let encrypted = key.encrypt(&row.secret);
        sqlx::query!("update webhook set secret = ? where id = ?", encrypted, row.id).execute(pool).await?;
    }
    sqlx::query("pragma secure_delete = off").execute(pool).await?;
    sqlx::query("pragma wal_checkpoint(truncate)").execute(pool).await?;
    Ok(())
}

/// All of them, each with what was sent last.
pub async fn all(pool: &SqlitePool) -> sqlx::Result<Vec<Webhook>> {
    let rows = sqlx::query!(
        r#"select id, url, events, created_by, created_at,
                  made_by is null or exists (select 1 from user where user.id = made_by and role = 'admin')
                      as "is_active!: bool"
           from webhook order by id"#
    );
    let mut all = Vec::new();
    for row in rows.fetch_all(pool).await? {
        let events: Vec<Event> = serde_json::from_str(&row.events).map_err(decode)?;
        let last = deliveries(pool, row.id, 1).await?.pop();
        let (url, created_by, created_at_ms) = (row.url, row.created_by, row.created_at);
        all.push(Webhook { id: row.id, url, events, created_by, created_at_ms, is_active: row.is_active, last });
    }
    Ok(all)
}

/// Removes a webhook, and what was and is to be sent to it; false if there is none with this id.
pub async fn remove(pool: &SqlitePool, id: i64, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from webhook where id = ?", id).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}

/// Writes an event down for every webhook that wants it and whose maker is an administrator.
pub async fn tell(connection: &mut SqliteConnection, told: &Told) -> sqlx::Result<()> {
    let Told { id, event, at_ms, body } = told;
    let event = event.as_str();
    sqlx::query!(
        "insert into webhook_delivery (webhook_id, event_id, event, body, created_at, next_at)
         select id, ?1, ?2, ?3, ?4, ?4 from webhook
         where ?2 in (select value from json_each(events))
             and (made_by is null or exists (select 1 from user where user.id = made_by and role = 'admin'))",
        id,
        event,
        body,
        at_ms
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes an event down for one webhook, to be sent by the caller, once.
pub async fn insert_one(pool: &SqlitePool, webhook: i64, told: &Told) -> sqlx::Result<Due> {
    let Told { id, event, at_ms, body } = told;
    let event = event.as_str();
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "insert into webhook_delivery (webhook_id, event_id, event, body, created_at) values (?, ?, ?, ?, ?)",
        webhook,
        id,
        event,
        body,
        at_ms
    )
    .execute(&mut *transaction)
    .await?;
    let row = done.last_insert_rowid();
    let due = sqlx::query_as!(
        Due,
        "select webhook_delivery.id, event_id, body, tries, webhook_id, url, secret as encrypted_secret
         from webhook_delivery join webhook on webhook.id = webhook_id where webhook_delivery.id = ?",
        row
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(due)
}

/// What is to be sent now, and where to.
pub struct Due {
    /// Names it here.
    pub id: i64,
    /// The event's id.
    pub event_id: String,
    /// What is sent.
    pub body: String,
    /// How often it was sent before.
    pub tries: i64,
    /// To which webhook.
    pub webhook_id: i64,
    /// Where to.
    pub url: String,
    /// What it is signed with, encrypted.
    pub encrypted_secret: String,
}

/// What is to be sent at a time, unix ms: of each webhook the first.
pub async fn due(pool: &SqlitePool, now: i64) -> sqlx::Result<Vec<Due>> {
    sqlx::query_as!(
        Due,
        "select webhook_delivery.id, event_id, body, tries, webhook_id, url, secret as encrypted_secret
         from webhook_delivery join webhook on webhook.id = webhook_id
         where webhook_delivery.id in (
             select min(id) from webhook_delivery where next_at is not null and next_at <= ? group by webhook_id
         )
             and (made_by is null or exists (select 1 from user where user.id = made_by and role = 'admin'))
         order by webhook_delivery.id",
        now
    )
    .fetch_all(pool)
    .await
}

/// When something is to be sent next, unix ms.
pub async fn next_due(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    let row = sqlx::query!("select next_at from webhook_delivery where next_at is not null order by next_at limit 1");
    Ok(row.fetch_optional(pool).await?.and_then(|row| row.next_at))
}

/// Keeps what became of a try; `next_at` says when there is another one, unix ms.
pub async fn note(pool: &SqlitePool, due: &Due, attempt: &Attempt, next_at: Option<i64>) -> sqlx::Result<()> {
    let Attempt { at_ms, status, fault } = attempt;
    let delivered_at = fault.is_none().then_some(at_ms);
    sqlx::query!(
        "update webhook_delivery set tries = tries + 1, last_at = ?2, delivered_at = ?3, status = ?4, error = ?5,
             next_at = ?6
         where id = ?1",
        due.id,
        at_ms,
        delivered_at,
        status,
        fault,
        next_at
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// What was and is to be sent to a webhook, the last first; at most `limit`.
pub async fn deliveries(pool: &SqlitePool, webhook: i64, limit: i64) -> sqlx::Result<Vec<Delivery>> {
    let rows = sqlx::query!(
        "select event_id, event, created_at, tries, next_at, last_at, delivered_at, status, error from webhook_delivery
         where webhook_id = ? order by id desc limit ?",
        webhook,
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let state = match (row.delivered_at, row.next_at) {
                (Some(_), _) => DeliveryState::Delivered,
                (None, Some(_)) => DeliveryState::Waiting,
                (None, None) => DeliveryState::GivenUp,
            };
            Ok(Delivery {
                id: row.event_id,
                event: row.event,
                created_at_ms: row.created_at,
                state,
                tries: u32::try_from(row.tries).map_err(decode)?,
                next_at_ms: row.next_at,
                last_at_ms: row.last_at,
                status: row.status.map(u16::try_from).transpose().map_err(decode)?,
                error: row.error,
            })
        })
        .collect()
}

/// Removes what happened before a time, unix ms, and is not to be sent any more.
pub async fn prune(pool: &SqlitePool, before: i64) -> sqlx::Result<()> {
    sqlx::query!("delete from webhook_delivery where next_at is null and created_at < ?", before).execute(pool).await?;
    Ok(())
}
