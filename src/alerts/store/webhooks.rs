//! SQL of webhooks and their deliveries.

use sqlx::{SqliteConnection, SqlitePool};

use crate::app::db::decode;
use crate::{
    alerts::{
        Delivery, Webhook,
        message::Message,
        model::{Attempt, DeliveryState, Event},
    },
    app::secrets_key::{self, SecretsKey},
    auth::audit::{self, AuditEvent},
};

/// Stores a webhook and returns its id; `webhook.id` is ignored. `made_by` is the user whose role it depends on.
pub async fn insert(
    pool: &SqlitePool,
    webhook: &Webhook,
    encrypted_secret: &str,
    made_by: Option<&str>,
    act: &AuditEvent,
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
    audit::record(&mut transaction, act).await?;
    transaction.commit().await?;
    Ok(done.last_insert_rowid())
}

/// Encrypts plain-text secrets of earlier versions and warns about secrets that this key cannot decrypt.
pub async fn encrypt_secrets(pool: &SqlitePool, key: &SecretsKey) -> sqlx::Result<()> {
    let rows = sqlx::query!("select id, secret from webhook").fetch_all(pool).await?;
    let (encrypted, plain): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| secrets_key::is_encrypted(&row.secret));
    for row in encrypted {
        if let Err(fault) = key.decrypt(&row.secret) {
            tracing::warn!(webhook = row.id, %fault, "no events can be sent to this webhook");
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

/// Returns all webhooks, each with its latest delivery.
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

/// Removes a webhook with its deliveries; false if there is none with this id.
pub async fn remove(pool: &SqlitePool, id: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from webhook where id = ?", id).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}

/// Queues an event for each subscribed webhook whose creator is still an administrator.
pub async fn queue(connection: &mut SqliteConnection, message: &Message) -> sqlx::Result<()> {
    let Message { id, event, at_ms, body } = message;
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

/// Stores a delivery to one webhook that the caller sends, once.
pub async fn insert_one(pool: &SqlitePool, webhook: i64, message: &Message) -> sqlx::Result<Due> {
    let Message { id, event, at_ms, body } = message;
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

/// A due delivery.
pub struct Due {
    /// Id of the delivery.
    pub id: i64,
    /// The event's id.
    pub event_id: String,
    /// The body to send.
    pub body: String,
    /// Number of earlier attempts.
    pub tries: i64,
    /// Id of the webhook.
    pub webhook_id: i64,
    /// URL of the webhook.
    pub url: String,
    /// The signing secret, encrypted.
    pub encrypted_secret: String,
}

/// Returns the deliveries due at a time, unix ms: the first of each webhook.
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

/// Returns when the next delivery is due, unix ms.
pub async fn next_due(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    let row = sqlx::query!("select next_at from webhook_delivery where next_at is not null order by next_at limit 1");
    Ok(row.fetch_optional(pool).await?.and_then(|row| row.next_at))
}

/// Stores the outcome of an attempt; `next_at` is the time of the next one, unix ms.
pub async fn record_attempt(pool: &SqlitePool, due: &Due, attempt: &Attempt, next_at: Option<i64>) -> sqlx::Result<()> {
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

/// Returns the deliveries of a webhook, newest first.
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
                attempts: u32::try_from(row.tries).map_err(decode)?,
                next_at_ms: row.next_at,
                last_at_ms: row.last_at,
                status: row.status.map(u16::try_from).transpose().map_err(decode)?,
                error: row.error,
            })
        })
        .collect()
}

/// Removes completed deliveries created before a time, unix ms.
pub async fn prune(pool: &SqlitePool, before: i64) -> sqlx::Result<()> {
    sqlx::query!("delete from webhook_delivery where next_at is null and created_at < ?", before).execute(pool).await?;
    Ok(())
}
