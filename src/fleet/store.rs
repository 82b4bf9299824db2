//! SQL of agents and their keys.

use brewbench_wire::messages::Hello;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::{
        db::decode,
        error::{Error, Result},
        ids::AgentId,
    },
    auth::{
        audit::{self, AuditEvent},
        store::{distinct, taken},
    },
    fleet::model::{About, Agent, AgentEngine, Availability, ClusterGenerators, NamedAgent},
};

/// Returns the id of an agent, or of a removed one: runs still name it.
pub async fn find(connection: &mut SqliteConnection, name: &str) -> sqlx::Result<Option<AgentId>> {
    sqlx::query_scalar!(r#"select id as "id: AgentId" from agent where name = ?"#, name)
        .fetch_optional(connection)
        .await
}

/// The same, for a row that must not be written without it.
pub async fn id(connection: &mut SqliteConnection, name: &str) -> sqlx::Result<AgentId> {
    find(connection, name).await?.ok_or(sqlx::Error::RowNotFound)
}

/// Returns the id of an agent that is not removed.
pub async fn present(connection: &mut SqliteConnection, name: &str) -> Result<AgentId> {
    let id =
        sqlx::query_scalar!(r#"select id as "id: AgentId" from agent where name = ? and removed_at is null"#, name);
    id.fetch_optional(connection).await?.ok_or_else(|| Error::NotFound(format!("agent {name:?}")))
}

/// Returns the ids of agents in this order, as stored.
pub async fn ids(connection: &mut SqliteConnection, names: &[String]) -> sqlx::Result<String> {
    let mut ids = Vec::with_capacity(names.len());
    for name in names {
        ids.push(id(connection, name).await?);
    }
    serde_json::to_string(&ids).map_err(decode)
}

/// Stores an agent with its one-time key, valid until a time, unix ms. `made_by` is the user whose role it depends on.
/// An agent with the name of a removed one is that agent again.
pub async fn insert_agent(
    pool: &SqlitePool,
    name: &str,
    one_time_hash: &[u8],
    (now, until): (i64, i64),
    made_by: Option<&str>,
    act: &AuditEvent,
) -> Result<()> {
    let mut transaction = pool.begin().await?;
    let names =
        sqlx::query_scalar!("select name from agent where removed_at is null").fetch_all(&mut *transaction).await?;
    distinct("agent", name, &names)?;
    let done = sqlx::query!(
        "insert into agent (name, key_hash, created_at, is_one_time, one_time_until, made_by) values (?, ?, ?, 1, ?, ?)
         on conflict (name) do update set key_hash = excluded.key_hash, created_at = excluded.created_at, is_one_time = 1,
             one_time_until = excluded.one_time_until, made_by = excluded.made_by, revoked_at = null, removed_at = null
         where removed_at is not null",
        name,
        one_time_hash,
        now,
        until,
        made_by
    )
    .execute(&mut *transaction)
    .await?;
    if done.rows_affected() == 0 {
        return Err(Error::Conflict(format!(
            "an agent {name:?} already exists; choose another name, or delete that agent if its key is lost: its runs stay"
        )));
    }
    audit::record(&mut transaction, act).await?;
    Ok(transaction.commit().await?)
}

/// Returns the agent of a one-time key that is valid or was exchanged. Its creator must still be an administrator.
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

/// Replaces a one-time key with the agent's own key; false if the one-time key is no longer valid.
pub async fn exchange(
    pool: &SqlitePool,
    one_time_hash: &[u8],
    key_hash: &[u8],
    now: i64,
    act: &AuditEvent,
) -> Result<bool> {
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
    .map_err(|fault| taken(fault, || "another agent already has this key".to_owned()))?;
    Ok(audit::commit(transaction, &done, act).await?)
}

/// Returns whether a one-time key was exchanged for exactly this key.
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

/// Stores the next key of an agent; replaces an unused one.
pub async fn store_next_key(pool: &SqlitePool, agent: AgentId, key_hash: &[u8]) -> Result<()> {
    sqlx::query!("update agent set next_key_hash = ?2 where id = ?1 and key_hash <> ?2", agent, key_hash)
        .execute(pool)
        .await
        .map_err(|fault| taken(fault, || "another agent already has this key".to_owned()))?;
    Ok(())
}

/// Makes the next key of an agent its current one after its first use; false if that has already happened.
pub async fn promote_next_key(pool: &SqlitePool, key_hash: &[u8], now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
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

/// Requests a key rotation; false if there is no agent with this name and its own key.
pub async fn ask_key_change(pool: &SqlitePool, name: &str, now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
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

/// Returns whether a key rotation is pending.
pub async fn wants_key_change(pool: &SqlitePool, agent: AgentId) -> sqlx::Result<bool> {
    let row = sqlx::query!("select key_change_asked_at from agent where id = ?", agent).fetch_optional(pool).await?;
    Ok(row.is_some_and(|row| row.key_change_asked_at.is_some()))
}

/// Sets whether an agent gets runs; false if there is no such agent or nothing changes.
pub async fn set_availability(
    pool: &SqlitePool,
    name: &str,
    availability: Availability,
    now: i64,
    act: &AuditEvent,
) -> sqlx::Result<bool> {
    let availability = availability.as_str();
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set availability = ?2, availability_at = ?3, availability_by = ?4
         where name = ?1 and availability <> ?2 and removed_at is null",
        name,
        availability,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// Returns whether an agent gets runs; `None` if it is removed or its key is revoked.
pub async fn availability(pool: &SqlitePool, agent: AgentId) -> sqlx::Result<Option<Availability>> {
    let row = sqlx::query!("select availability from agent where id = ? and revoked_at is null", agent)
        .fetch_optional(pool)
        .await?;
    row.map(|row| read_availability(&row.availability)).transpose()
}

/// Returns the labels of an agent.
pub async fn labels(pool: &SqlitePool, agent: AgentId) -> sqlx::Result<Vec<String>> {
    read_labels(&sqlx::query_scalar!("select labels from agent where id = ?", agent).fetch_one(pool).await?)
}

fn read_labels(text: &str) -> sqlx::Result<Vec<String>> {
    serde_json::from_str(text).map_err(|fault| sqlx::Error::Decode(fault.into()))
}

fn read_availability(text: &str) -> sqlx::Result<Availability> {
    text.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))
}

/// Replaces the labels of an agent; false if there is none with this name.
pub async fn set_labels(pool: &SqlitePool, name: &str, labels: &[String], act: &AuditEvent) -> Result<bool> {
    let labels = serde_json::to_string(labels).map_err(Error::internal)?;
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("update agent set labels = ?2 where name = ?1 and removed_at is null", name, labels)
        .execute(&mut *transaction)
        .await?;
    Ok(audit::commit(transaction, &done, act).await?)
}

/// Renames an agent.
pub async fn rename(connection: &mut SqliteConnection, agent: AgentId, new: &str) -> Result<()> {
    let others = sqlx::query_scalar!("select name from agent where id <> ? and removed_at is null", agent);
    distinct("agent", new, &others.fetch_all(&mut *connection).await?)?;
    sqlx::query!("update agent set name = ? where id = ?", new, agent).execute(connection).await.map_err(|fault| {
        taken(fault, || format!("the name {new:?} already belongs to an agent, or to a removed one; choose another"))
    })?;
    Ok(())
}

/// Removes an agent, without the name that its runs show; false if there is none with this name.
pub async fn remove(pool: &SqlitePool, name: &str, now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!(
        "update agent set removed_at = ?2, revoked_at = ?2, key_hash = randomblob(32), exchanged_key_hash = null,
             next_key_hash = null, key_at = null, key_change_asked_at = null, is_one_time = 0, one_time_until = null,
             made_by = null, last_seen_at = null, hello = null, labels = '[]', availability = 'enabled',
             availability_at = null, availability_by = null
         where name = ?1 and removed_at is null",
        name,
        now
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &done, act).await
}

/// Sets the key of an agent, which need not exist: for the agent in the server's own process.
pub async fn replace_key(pool: &SqlitePool, name: &str, key_hash: &[u8], now: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into agent (name, key_hash, created_at, key_at) values (?1, ?2, ?3, ?3)
         on conflict (name) do update set key_hash = excluded.key_hash, key_at = excluded.key_at, revoked_at = null,
             removed_at = null, is_one_time = 0, one_time_until = null, exchanged_key_hash = null, next_key_hash = null",
        name,
        key_hash,
        now
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// The agent that a key belongs to.
#[derive(Clone, Debug)]
pub struct KeyOwner {
    /// The agent.
    pub agent: NamedAgent,
    /// Whether it gets runs.
    pub availability: Availability,
    /// Who set the availability.
    pub availability_by: Option<String>,
    /// Whether it is the agent's next key.
    pub is_next: bool,
}

/// Returns the agent of a valid key that is not a one-time key.
pub async fn agent_by_key(pool: &SqlitePool, key_hash: &[u8]) -> sqlx::Result<Option<KeyOwner>> {
    let row = sqlx::query!(
        r#"select id as "id: AgentId", name, availability, availability_by, key_hash <> ?1 as "is_next!: bool" from agent
         where (key_hash = ?1 and is_one_time = 0 or next_key_hash = ?1) and revoked_at is null"#,
        key_hash
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| {
        let availability = read_availability(&row.availability)?;
        let agent = NamedAgent { id: row.id, name: row.name };
        Ok(KeyOwner { agent, availability, availability_by: row.availability_by, is_next: row.is_next })
    })
    .transpose()
}

/// Stores an agent's hello message.
pub async fn store_hello(connection: &mut SqliteConnection, agent: AgentId, hello: &Hello, now: i64) -> Result<()> {
    let about = About {
        hostname: hello.machine.hostname.clone(),
        cores: hello.machine.cores,
        physical_cores: hello.machine.physical_cores,
        memory_bytes: hello.machine.memory_bytes,
        kernel: hello.machine.kernel.clone(),
        cpu: hello.machine.cpu.as_str().to_owned(),
        memory: hello.machine.memory.as_str().to_owned(),
        engines: hello.engines.iter().map(AgentEngine::from_offer).collect(),
        version: hello.version.clone(),
        targets: hello.targets.iter().map(|offer| offer.name.clone()).collect(),
        any_scenario: hello.any_scenario,
        clock_offset_ms: hello.now_ms - now,
        load_address: hello.load_address,
        cluster_generators: hello.generators.as_ref().map(ClusterGenerators::from_offer),
    };
    let about = serde_json::to_string(&about).map_err(Error::internal)?;
    sqlx::query!("update agent set hello = ?, last_seen_at = ? where id = ?", about, now, agent)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores when an agent was last seen.
pub async fn seen(pool: &SqlitePool, agent: AgentId, now: i64) -> sqlx::Result<()> {
    sqlx::query!("update agent set last_seen_at = ? where id = ? and removed_at is null", now, agent)
        .execute(pool)
        .await?;
    Ok(())
}

/// Returns all agents by name. The caller sets `connected`.
pub async fn agents(pool: &SqlitePool) -> sqlx::Result<Vec<Agent>> {
    let rows = sqlx::query!(
        "select name, created_at, revoked_at, last_seen_at, hello, availability, availability_at, availability_by, labels,
             one_time_until, key_at, key_change_asked_at
         from agent where removed_at is null order by name"
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            let about = row.hello.as_deref().map(serde_json::from_str).transpose();
            Ok(Agent {
                name: row.name,
                connected: false,
                fault: None,
                created_at_ms: row.created_at,
                revoked_at_ms: row.revoked_at,
                last_seen_at_ms: row.last_seen_at,
                about: about.map_err(|fault| sqlx::Error::Decode(fault.into()))?,
                availability: read_availability(&row.availability)?,
                availability_at_ms: row.availability_at,
                availability_by: row.availability_by,
                labels: read_labels(&row.labels)?,
                one_time_key_expires_at_ms: row.one_time_until,
                key_at_ms: row.key_at,
                rotation_requested_at_ms: row.key_change_asked_at,
            })
        })
        .collect()
}

/// Revokes an agent's key for good; false if there is no unrevoked one with this name.
pub async fn revoke(pool: &SqlitePool, name: &str, now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let done = sqlx::query!("update agent set revoked_at = ? where name = ? and revoked_at is null", now, name)
        .execute(&mut *transaction)
        .await?;
    audit::commit(transaction, &done, act).await
}
