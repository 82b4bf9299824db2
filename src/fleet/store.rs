//! SQL of agents and their keys.

use brewbench_agent::wire::messages::Hello;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::error::{Error, Result},
    auth::{
        audit::{self, Act},
        store::taken,
    },
    fleet::model::{About, Agent, AgentEngine, Standing},
};

/// Stores an agent with its one-time key, which can be exchanged until a time, unix ms. `made_by` is the id of the user
/// whose authority it is.
pub async fn insert_agent(
    pool: &SqlitePool,
    name: &str,
    one_time_hash: &[u8],
    (now, until): (i64, i64),
    made_by: Option<&str>,
    act: &Act,
) -> Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert into agent (name, key_hash, created_at, is_one_time, one_time_until, made_by) values (?, ?, ?, 1, ?, ?)",
        name,
        one_time_hash,
        now,
        until,
        made_by
    )
    .execute(&mut *transaction)
    .await
    .map_err(|fault| taken(fault, || format!("there is an agent {name:?} already; choose another name")))?;
    audit::note(&mut transaction, act).await?;
    Ok(transaction.commit().await?)
}

/// Whose one-time key it is, if it can be exchanged or was exchanged. One whose maker is no administrator any more can not.
pub async fn agent_by_one_time_key(pool: &SqlitePool, hash: &[u8], now: i64) -> sqlx::Result<Option<String>> {
    let row = sqlx::query!(
        "select name from agent
         where revoked_at is null and (
             key_hash = ?1 and is_one_time = 1 and one_time_until > ?2
                 and (made_by is null or exists (select 1 from user where user.id = made_by and role = 'admin'))
             or exchanged_key_hash = ?1
         )",
        hash,
        now
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.map(|row| row.name))
}

/// Puts an agent's own key in the place of its one-time key; false if that can't be exchanged any more.
pub async fn exchange(pool: &SqlitePool, one_time_hash: &[u8], key_hash: &[u8], now: i64, act: &Act) -> Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set key_hash = ?2, key_at = ?3, is_one_time = 0, one_time_until = null, exchanged_key_hash = ?1
         where key_hash = ?1 and is_one_time = 1 and one_time_until > ?3 and revoked_at is null
             and (made_by is null or exists (select 1 from user where user.id = made_by and role = 'admin'))",
        one_time_hash,
        key_hash,
        now
    )
    .execute(&mut *transaction)
    .await
    .map_err(|fault| taken(fault, || "another agent has this key already".to_owned()))?;
    Ok(audit::commit(transaction, &done, act).await?)
}

/// Whether a one-time key was exchanged for this very key.
pub async fn is_exchanged(pool: &SqlitePool, one_time_hash: &[u8], key_hash: &[u8]) -> sqlx::Result<bool> {
    let row = sqlx::query!(
        "select name from agent where exchanged_key_hash = ? and key_hash = ? and revoked_at is null",
        one_time_hash,
        key_hash
    )
    .fetch_optional(pool)
    .await?;
    Ok(row.is_some())
}

/// Keeps the key that an agent is going to use, in place of one that it has not used.
pub async fn note_next_key(pool: &SqlitePool, name: &str, key_hash: &[u8]) -> Result<()> {
    sqlx::query!("update agent set next_key_hash = ?2 where name = ?1 and key_hash <> ?2", name, key_hash)
        .execute(pool)
        .await
        .map_err(|fault| taken(fault, || "another agent has this key already".to_owned()))?;
    Ok(())
}

/// The next key of an agent was used: it takes the place of the one before. False if it has done so already.
pub async fn take_next_key(pool: &SqlitePool, key_hash: &[u8], now: i64, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set key_hash = next_key_hash, next_key_hash = null, key_at = ?2, key_change_asked_at = null
         where next_key_hash = ?1",
        key_hash,
        now
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// An agent is to make itself another key; false if there is none with a key of its own.
pub async fn ask_key_change(pool: &SqlitePool, name: &str, now: i64, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set key_change_asked_at = ?2 where name = ?1 and is_one_time = 0 and revoked_at is null",
        name,
        now
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// Whether an agent is to make itself another key and has not.
pub async fn wants_key_change(pool: &SqlitePool, name: &str) -> sqlx::Result<bool> {
    let row = sqlx::query!("select key_change_asked_at from agent where name = ?", name).fetch_optional(pool).await?;
    Ok(row.is_some_and(|row| row.key_change_asked_at.is_some()))
}

/// Says what an agent may take; false if there is none of this name of which that was not said already.
pub async fn set_standing(
    pool: &SqlitePool,
    name: &str,
    standing: Standing,
    now: i64,
    act: &Act,
) -> sqlx::Result<bool> {
    let standing = standing.as_str();
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set standing = ?2, standing_at = ?3, standing_by = ?4 where name = ?1 and standing <> ?2",
        name,
        standing,
        now,
        act.who
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// What an agent may take now; none where it is unknown or its key was revoked.
pub async fn standing(pool: &SqlitePool, name: &str) -> sqlx::Result<Option<Standing>> {
    let row = sqlx::query!("select standing from agent where name = ? and revoked_at is null", name)
        .fetch_optional(pool)
        .await?;
    row.map(|row| read_standing(&row.standing)).transpose()
}

/// What people call an agent; nothing where it is unknown.
pub async fn labels(pool: &SqlitePool, name: &str) -> sqlx::Result<Vec<String>> {
    let row = sqlx::query!("select labels from agent where name = ?", name).fetch_optional(pool).await?;
    row.map_or_else(|| Ok(Vec::new()), |row| read_labels(&row.labels))
}

fn read_labels(text: &str) -> sqlx::Result<Vec<String>> {
    serde_json::from_str(text).map_err(|fault| sqlx::Error::Decode(fault.into()))
}

fn read_standing(text: &str) -> sqlx::Result<Standing> {
    text.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))
}

/// Labels an agent, in place of the labels that it had; false if there is none of this name.
pub async fn set_labels(pool: &SqlitePool, name: &str, labels: &[String], act: &Act) -> Result<bool> {
    let labels = serde_json::to_string(labels).map_err(Error::internal)?;
    let mut transaction = pool.begin().await?;
    let done =
        sqlx::query!("update agent set labels = ?2 where name = ?1", name, labels).execute(&mut *transaction).await?;
    Ok(audit::commit(transaction, &done, act).await?)
}

/// Gives an agent another name, also wherever the old one stands: see the trigger `agent_renamed`. False if there is none of
/// this name.
pub async fn rename(connection: &mut SqliteConnection, name: &str, new: &str) -> Result<bool> {
    let done = sqlx::query!("update agent set name = ?2 where name = ?1", name, new)
        .execute(connection)
        .await
        .map_err(|fault| taken(fault, || format!("there is an agent {new:?} already; choose another name")))?;
    Ok(done.rows_affected() > 0)
}

/// Forgets an agent; false if there is none of this name.
pub async fn forget(pool: &SqlitePool, name: &str, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("delete from agent where name = ?", name).execute(&mut *transaction).await?;
    audit::commit(transaction, &done, act).await
}

/// Gives an agent a new key, whether it exists or not: for the agent that lives in the server's own process.
pub async fn replace_key(pool: &SqlitePool, name: &str, key_hash: &[u8], now: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into agent (name, key_hash, created_at, key_at) values (?1, ?2, ?3, ?3)
         on conflict (name) do update set key_hash = excluded.key_hash, key_at = excluded.key_at, revoked_at = null,
             is_one_time = 0, one_time_until = null, exchanged_key_hash = null, next_key_hash = null",
        name,
        key_hash,
        now
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Whose key it is.
#[derive(Clone, Debug)]
pub struct Known {
    /// The agent's name.
    pub name: String,
    /// What it may take.
    pub standing: Standing,
    /// Who said so.
    pub standing_by: Option<String>,
    /// Whether it is the key that is to take the place of the present one.
    pub is_next: bool,
}

/// Whose key it is, if it is good and no one-time key.
pub async fn agent_by_key(pool: &SqlitePool, key_hash: &[u8]) -> sqlx::Result<Option<Known>> {
    let row = sqlx::query!(
        r#"select name, standing, standing_by, key_hash <> ?1 as "is_next!: bool" from agent
         where (key_hash = ?1 and is_one_time = 0 or next_key_hash = ?1) and revoked_at is null"#,
        key_hash
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| {
        let standing = read_standing(&row.standing)?;
        Ok(Known { name: row.name, standing, standing_by: row.standing_by, is_next: row.is_next })
    })
    .transpose()
}

/// Keeps an agent's introduction.
pub async fn keep_hello(connection: &mut SqliteConnection, name: &str, hello: &Hello, now: i64) -> Result<()> {
    let about = About {
        hostname: hello.machine.hostname.clone(),
        cores: hello.machine.cores,
        physical_cores: hello.machine.physical_cores,
        memory_bytes: hello.machine.memory_bytes,
        kernel: hello.machine.kernel.clone(),
        cpu: hello.machine.cpu.as_str().to_owned(),
        memory: hello.machine.memory.as_str().to_owned(),
        engines: hello.engines.iter().map(AgentEngine::of).collect(),
        version: hello.version.clone(),
        targets: hello.targets.iter().map(|offer| offer.name.clone()).collect(),
        any_scenario: hello.any_scenario,
        clock_offset_ms: hello.now_ms - now,
        load_address: hello.load_address,
    };
    let about = serde_json::to_string(&about).map_err(Error::internal)?;
    sqlx::query!("update agent set hello = ?, last_seen_at = ? where name = ?", about, now, name)
        .execute(connection)
        .await?;
    Ok(())
}

/// Keeps when an agent was heard of last.
pub async fn seen(pool: &SqlitePool, name: &str, now: i64) -> sqlx::Result<()> {
    sqlx::query!("update agent set last_seen_at = ? where name = ?", now, name).execute(pool).await?;
    Ok(())
}

/// All agents by name; whether they are connected is for the caller to fill in.
pub async fn agents(pool: &SqlitePool) -> sqlx::Result<Vec<Agent>> {
    let rows = sqlx::query!(
        "select name, created_at, revoked_at, last_seen_at, hello, standing, standing_at, standing_by, labels,
             one_time_until, key_at, key_change_asked_at
         from agent order by name"
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let about = row.hello.as_deref().map(serde_json::from_str).transpose();
            Ok(Agent {
                name: row.name,
                connected: false,
                created_at_ms: row.created_at,
                revoked_at_ms: row.revoked_at,
                last_seen_at_ms: row.last_seen_at,
                about: about.map_err(|fault| sqlx::Error::Decode(fault.into()))?,
                standing: read_standing(&row.standing)?,
                standing_at_ms: row.standing_at,
                standing_by: row.standing_by,
                labels: read_labels(&row.labels)?,
                enrols_until_ms: row.one_time_until,
                key_at_ms: row.key_at,
                key_change_asked_at_ms: row.key_change_asked_at,
            })
        })
        .collect()
}

/// Ends an agent's key for good; false if there is none of this name that goes on.
pub async fn revoke(pool: &SqlitePool, name: &str, now: i64, act: &Act) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("update agent set revoked_at = ? where name = ? and revoked_at is null", now, name)
        .execute(&mut *transaction)
        .await?;
    audit::commit(transaction, &done, act).await
}
