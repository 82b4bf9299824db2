//! SQL of alerts: what is raised, the rule, whose end was told.

pub mod webhooks;

use sqlx::SqlitePool;

use super::{
    Rule,
    rules::{Kind, Missed, Raised},
    webhooks::Told,
};
use crate::{
    alerts::model::AlertRule,
    app::ids::ExperimentId,
    auth::audit::{self, Act},
};

fn decode(fault: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sqlx::Error {
    sqlx::Error::Decode(fault.into())
}

/// The rule that holds.
pub async fn rule(pool: &SqlitePool) -> sqlx::Result<AlertRule> {
    let row = sqlx::query!("select agent_away_s, queue_standstill_s, set_at, set_by from alert_rule")
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else { return Ok(AlertRule { rule: Rule::default(), set_at_ms: None, set_by: None }) };
    let rule = Rule {
        agent_away_s: u32::try_from(row.agent_away_s).map_err(decode)?,
        queue_standstill_s: u32::try_from(row.queue_standstill_s).map_err(decode)?,
    };
    Ok(AlertRule { rule, set_at_ms: Some(row.set_at), set_by: Some(row.set_by) })
}

/// Sets the rule.
pub async fn set_rule(pool: &SqlitePool, rule: Rule, now: i64, act: &Act) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert or replace into alert_rule (only, agent_away_s, queue_standstill_s, set_at, set_by)
         values (1, ?, ?, ?, ?)",
        rule.agent_away_s,
        rule.queue_standstill_s,
        now,
        act.who
    )
    .execute(&mut *transaction)
    .await?;
    audit::note(&mut transaction, act).await?;
    transaction.commit().await
}

/// All agents that are missed while they are away; whether they are connected is for the caller to fill in.
pub async fn missed(pool: &SqlitePool) -> sqlx::Result<Vec<Missed>> {
    sqlx::query_as!(
        Missed,
        r#"select name, false as "is_connected!: bool", last_seen_at as "last_seen_at_ms!" from agent
           where last_seen_at is not null and revoked_at is null and standing <> 'disabled' order by name"#
    )
    .fetch_all(pool)
    .await
}

/// What is raised, the oldest first, with when that was, unix ms.
pub async fn raised(pool: &SqlitePool) -> sqlx::Result<Vec<(Raised, i64)>> {
    let rows = sqlx::query!(
        "select kind, subject, sentence, since, raised_at from alert where cleared_at is null order by id"
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let kind = match row.kind.as_str() {
                "agent.away" => Kind::AgentAway,
                "queue.standstill" => Kind::QueueStandstill,
                other => return Err(decode(format!("{other:?} is no kind of alert"))),
            };
            let alert = Raised { kind, subject: row.subject, sentence: row.sentence, since_ms: row.since };
            Ok((alert, row.raised_at))
        })
        .collect()
}

/// Raises an alert and writes down what is told of it, in one transaction.
pub async fn raise(pool: &SqlitePool, alert: &Raised, told: &Told) -> sqlx::Result<()> {
    let Raised { kind, subject, sentence, since_ms } = alert;
    let kind = kind.as_str();
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert into alert (kind, subject, sentence, since, raised_at) values (?, ?, ?, ?, ?)",
        kind,
        subject,
        sentence,
        since_ms,
        told.at_ms
    )
    .execute(&mut *transaction)
    .await?;
    webhooks::tell(&mut transaction, told).await?;
    transaction.commit().await
}

/// Clears an alert and writes down what is told of it, in one transaction.
pub async fn clear(pool: &SqlitePool, alert: &Raised, told: &Told) -> sqlx::Result<()> {
    let kind = alert.kind.as_str();
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "update alert set cleared_at = ? where kind = ? and subject = ? and cleared_at is null",
        told.at_ms,
        kind,
        alert.subject
    )
    .execute(&mut *transaction)
    .await?;
    webhooks::tell(&mut transaction, told).await?;
    transaction.commit().await
}

/// Removes alerts that were cleared before a time, unix ms.
pub async fn prune(pool: &SqlitePool, before: i64) -> sqlx::Result<()> {
    sqlx::query!("delete from alert where cleared_at < ?", before).execute(pool).await?;
    Ok(())
}

/// Experiments with runs of agents that are over and of whose end nobody was told, or only before they went on.
pub async fn untold(pool: &SqlitePool) -> sqlx::Result<Vec<ExperimentId>> {
    sqlx::query_scalar!(
        r#"select id as "id: ExperimentId" from experiment
         where is_open = 0
             and not exists (
                 select 1 from experiment_told
                 where experiment_id = experiment.id
                     and told_at >= (select max(queued_at) from run where experiment_id = experiment.id)
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

/// Whether an experiment is over, and nobody was told of that since its last run was queued.
pub async fn is_untold(pool: &SqlitePool, id: &ExperimentId) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        r#"select (select max(queued_at) from run where experiment_id = ?1) as "last?: i64",
                  (select told_at from experiment_told where experiment_id = ?1) as "told?: i64"
           from experiment
           where id = ?1 and is_open = 0 and not exists (
               select 1 from run
               where experiment_id = ?1 and phase not in ('finished', 'failed', 'cancelled', 'lost')
           )"#,
        id
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.is_some_and(|row| row.last.is_some() && row.told < row.last))
}

/// Notes that the end of an experiment is told, and writes down what, in one transaction.
pub async fn tell_end(pool: &SqlitePool, id: &ExperimentId, told: &Told) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!("insert or replace into experiment_told (experiment_id, told_at) values (?, ?)", id, told.at_ms)
        .execute(&mut *transaction)
        .await?;
    webhooks::tell(&mut transaction, told).await?;
    transaction.commit().await
}
