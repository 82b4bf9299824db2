//! SQL of agents and their keys.

use brewbench_agent::wire::messages::Hello;
use sqlx::SqlitePool;

use super::{About, Agent};
use crate::{
    auth::{
        audit::{self, Act},
        queries::taken,
    },
    error::Result,
};

/// Stores an agent with its key.
pub async fn insert_agent(pool: &SqlitePool, name: &str, key_hash: &[u8], now: i64, act: &Act) -> Result<()> {
    let mut transaction = pool.begin().await?;
    sqlx::query!("insert into agent (name, key_hash, created_at) values (?, ?, ?)", name, key_hash, now)
        .execute(&mut *transaction)
        .await
        .map_err(|fault| taken(fault, || format!("there is an agent {name:?} already; choose another name")))?;
    audit::note(&mut transaction, act).await?;
    Ok(transaction.commit().await?)
}

/// Gives an agent a new key, whether it exists or not: for the agent that lives in the server's own process.
pub async fn replace_key(pool: &SqlitePool, name: &str, key_hash: &[u8], now: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into agent (name, key_hash, created_at) values (?, ?, ?)
         on conflict (name) do update set key_hash = excluded.key_hash, revoked_at = null",
        name,
        key_hash,
        now
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Whose key it is, if it is good.
pub async fn agent_by_key(pool: &SqlitePool, key_hash: &[u8]) -> sqlx::Result<Option<String>> {
    let row = sqlx::query!("select name from agent where key_hash = ? and revoked_at is null", key_hash)
        .fetch_optional(pool)
        .await?;
    Ok(row.map(|row| row.name))
}

/// Keeps an agent's introduction.
pub async fn keep_hello(pool: &SqlitePool, name: &str, hello: &Hello, now: i64) -> Result<()> {
    let about = About {
        hostname: hello.machine.hostname.clone(),
        cores: hello.machine.cores,
        memory_bytes: hello.machine.memory_bytes,
        kernel: hello.machine.kernel.clone(),
        cpu: hello.machine.cpu.as_str().to_owned(),
        memory: hello.machine.memory.as_str().to_owned(),
        k6_version: hello.k6_version.clone(),
        version: hello.version.clone(),
        targets: hello.targets.iter().map(|offer| offer.name.clone()).collect(),
        any_scenario: hello.any_scenario,
        clock_offset_ms: hello.now_ms - now,
    };
    let about = serde_json::to_string(&about).map_err(crate::error::Error::internal)?;
    sqlx::query!("update agent set hello = ?, last_seen_at = ? where name = ?", about, now, name).execute(pool).await?;
    Ok(())
}

/// Keeps when an agent was heard of last.
pub async fn seen(pool: &SqlitePool, name: &str, now: i64) -> sqlx::Result<()> {
    sqlx::query!("update agent set last_seen_at = ? where name = ?", now, name).execute(pool).await?;
    Ok(())
}

/// All agents by name; whether they are connected is for the caller to fill in.
pub async fn agents(pool: &SqlitePool) -> sqlx::Result<Vec<Agent>> {
    let rows = sqlx::query!("select name, created_at, revoked_at, last_seen_at, hello from agent order by name")
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
