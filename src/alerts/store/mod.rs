//! SQL of alerts: raised alerts, thresholds, announced experiments.

pub mod webhooks;

use sqlx::SqlitePool;

use super::{
    Thresholds,
    rules::{Kind, Raised, WatchedAgent},
};
use crate::alerts::message::Message;
use crate::{
    alerts::model::AlertRule,
    app::{db::decode, ids::ExperimentId},
    auth::audit::{self, AuditEvent},
};

/// Returns the thresholds in effect.
pub async fn rule(pool: &SqlitePool) -> sqlx::Result<AlertRule> {
    let row = sqlx::query!("select agent_away_s, queue_standstill_s, set_at, set_by from alert_rule")
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else { return Ok(AlertRule { rule: Thresholds::default(), set_at_ms: None, set_by: None }) };
    let rule = Thresholds {
        agent_away_s: u32::try_from(row.agent_away_s).map_err(decode)?,
        queue_standstill_s: u32::try_from(row.queue_standstill_s).map_err(decode)?,
    };
    Ok(AlertRule { rule, set_at_ms: Some(row.set_at), set_by: Some(row.set_by) })
}

/// Stores the thresholds.
pub async fn set_rule(pool: &SqlitePool, rule: Thresholds, now: i64, act: &AuditEvent) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert or replace into alert_rule (only, agent_away_s, queue_standstill_s, set_at, set_by)
         values (1, ?, ?, ?, ?)",
        rule.agent_away_s,
        rule.queue_standstill_s,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?;
    audit::record(&mut transaction, act).await?;
    transaction.commit().await
}

/// Returns the agents that must stay connected. The caller sets `is_connected`.
pub async fn watched_agents(pool: &SqlitePool) -> sqlx::Result<Vec<WatchedAgent>> {
    sqlx::query_as!(
        WatchedAgent,
        r#"select name, false as "is_connected!: bool", last_seen_at as "last_seen_at_ms!" from agent
           where last_seen_at is not null and revoked_at is null and availability <> 'disabled' order by name"#
    )
    .fetch_all(pool)
    .await
}

/// Returns raised alerts, oldest first, with the time they were raised, unix ms.
pub async fn raised(pool: &SqlitePool) -> sqlx::Result<Vec<(Raised, i64)>> {
    let rows = sqlx::query!(
        "select kind, subject, sentence, since, raised_at from alert where cleared_at is null order by id"
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let kind = match row.kind.as_str() {
                "agent.disconnected" => Kind::AgentDisconnected,
                "queue.stalled" => Kind::QueueStalled,
                other => return Err(decode(format!("{other:?} is not a kind of alert"))),
            };
            let alert = Raised { kind, subject: row.subject, sentence: row.sentence, since_ms: row.since };
            Ok((alert, row.raised_at))
        })
        .collect()
}

/// Raises an alert and queues its event, in one transaction.
pub async fn raise(pool: &SqlitePool, alert: &Raised, message: &Message) -> sqlx::Result<()> {
    let Raised { kind, subject, sentence, since_ms } = alert;
    let kind = kind.as_str();
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert into alert (kind, subject, sentence, since, raised_at) values (?, ?, ?, ?, ?)",
        kind,
        subject,
        sentence,
        since_ms,
        message.at_ms
    )
    .execute(&mut *transaction)
    .await?;
    webhooks::queue(&mut transaction, message).await?;
    transaction.commit().await
}

/// Clears an alert and queues its event, in one transaction.
pub async fn clear(pool: &SqlitePool, alert: &Raised, message: &Message) -> sqlx::Result<()> {
    let kind = alert.kind.as_str();
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "update alert set cleared_at = ? where kind = ? and subject = ? and cleared_at is null",
        message.at_ms,
        kind,
        alert.subject
    )
    .execute(&mut *transaction)
    .await?;
    webhooks::queue(&mut transaction, message).await?;
    transaction.commit().await
}

/// Removes alerts that were cleared before a time, unix ms.
pub async fn prune(pool: &SqlitePool, before: i64) -> sqlx::Result<()> {
    sqlx::query!("delete from alert where cleared_at < ?", before).execute(pool).await?;
    Ok(())
}

/// Returns finished experiments with agent runs that were not announced since their last run was queued.
pub async fn unannounced(pool: &SqlitePool) -> sqlx::Result<Vec<ExperimentId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ExperimentId" from experiment
         where is_open = 0
             and not exists (
                 select 1 from experiment_announced
                 where experiment_id = experiment.id
                     and announced_at >= (select max(queued_at) from run where experiment_id = experiment.id)
             )
             and exists (select 1 from run where experiment_id = experiment.id and origin = 'agent')
             and not exists (
                 select 1 from run
                 where experiment_id = experiment.id and phase not in ('finished', 'failed', 'cancelled', 'lost')
             )
         order by id"#
    )
    .fetch_all(pool)
    .await
}

/// Returns whether an experiment is finished and was not announced since its last run was queued.
pub async fn is_unannounced(pool: &SqlitePool, id: &ExperimentId) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        r#"select (select max(queued_at) from run where experiment_id = ?1) as "last?: i64",
                  (select announced_at from experiment_announced where experiment_id = ?1) as "announced?: i64"
           from experiment
           where id = ?1 and is_open = 0 and not exists (
               select 1 from run
               where experiment_id = ?1 and phase not in ('finished', 'failed', 'cancelled', 'lost')
           )"#,
        id
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.is_some_and(|row| row.last.is_some() && row.announced < row.last))
}

/// Marks a finished experiment as announced and queues the event, in one transaction.
pub async fn announce_finished(pool: &SqlitePool, id: &ExperimentId, message: &Message) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert or replace into experiment_announced (experiment_id, announced_at) values (?, ?)",
        id,
        message.at_ms
    )
    .execute(&mut *transaction)
    .await?;
    webhooks::queue(&mut transaction, message).await?;
    transaction.commit().await
}
