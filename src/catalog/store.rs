//! SQL of targets and machine sizes; [`names`] has the SQL of target names.

pub mod names;
pub mod scenarios;

use brewbench_wire::messages::TargetOffer;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::{error::Result, ids::AgentId, paging},
    auth::{
        audit::{self, AuditEvent},
        store::taken,
    },
    catalog::{
        identity::are_comparable,
        model::{FIRST_SIZES, MachineSize, Target, size_name},
    },
    web::series_style::{Mark, Marks},
};

/// Executables without runs that are kept per agent after it stops offering them.
const MAX_UNUSED: i64 = 200;

/// Stores what an agent offers.
///
/// Of its former offers without runs only the newest are kept, so that an agent with new offers on every connection
/// does not fill the catalog.
pub async fn keep_targets(
    connection: &mut SqliteConnection,
    agent: AgentId,
    offers: &[TargetOffer],
    now: i64,
) -> sqlx::Result<()> {
    for TargetOffer { name, version, description, identity, .. } in offers {
        let (kind, identity) = (identity.kind().as_str(), identity.text());
        sqlx::query!(
            "insert into target (name, version, identity, description, first_seen_at, last_seen_at, agent_id, kind)
             values (?1, ?2, ?3, ?4, ?5, ?5, ?6, ?7)
             on conflict do update set description = excluded.description, last_seen_at = excluded.last_seen_at,
                 agent_id = excluded.agent_id",
            name,
            version,
            identity,
            description,
            now,
            agent,
            kind
        )
        .execute(&mut *connection)
        .await?;
    }
    let deleted = sqlx::query!(
        "delete from target where rowid in (
             select target.rowid from target
             where target.agent_id = ?1 and target.last_seen_at < ?2
                 and not exists (
                     select 1 from run where run.target = target.name and run.target_identity = target.identity
                 )
             order by target.last_seen_at desc, target.rowid desc limit -1 offset ?3
         )",
        agent,
        now,
        MAX_UNUSED
    )
    .execute(&mut *connection)
    .await?;
    if deleted.rows_affected() > 0 { names::forget_colours(connection).await } else { Ok(()) }
}

/// Returns the targets of at most `limit` names after a name, and the last name if there are more.
pub async fn page(pool: &SqlitePool, after: &str, limit: u32) -> sqlx::Result<(Vec<Target>, Option<String>)> {
    let more = i64::from(limit) + 1;
    let mut names =
        sqlx::query_scalar!("select distinct name from target where name > ? order by name limit ?", after, more)
            .fetch_all(pool)
            .await?;
    let next = paging::cut(&mut names, limit).cloned();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    Ok((of_names(pool, &names).await?, next))
}

/// Returns the targets with these names, by name, last seen first.
pub async fn of_names(pool: &SqlitePool, names: &[&str]) -> sqlx::Result<Vec<Target>> {
    let names = serde_json::to_string(names).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    selected(pool, Some(names)).await
}

/// Returns all targets, by name, last seen first.
pub async fn targets(pool: &SqlitePool) -> sqlx::Result<Vec<Target>> {
    selected(pool, None).await
}

async fn selected(pool: &SqlitePool, names: Option<String>) -> sqlx::Result<Vec<Target>> {
    let rows = sqlx::query!(
        "select name, version, kind, identity, description, first_seen_at, last_seen_at from target
         where ?1 is null or name in (select value from json_each(?1)) order by name, last_seen_at desc",
        names
    )
    .fetch_all(pool)
    .await?;
    let mut targets: Vec<Target> = rows
        .into_iter()
        .map(|row| {
            Ok(Target {
                name: row.name,
                version: row.version,
                kind: row.kind.parse().map_err(|fault: String| sqlx::Error::Decode(fault.into()))?,
                identity: row.identity,
                has_other_code: false,
                description: row.description,
                first_seen_at_ms: row.first_seen_at,
                last_seen_at_ms: row.last_seen_at,
            })
        })
        .collect::<sqlx::Result<_>>()?;
    mark_other_code(&mut targets);
    Ok(targets)
}

/// Marks the targets, sorted by name, whose version does not say which code they are.
fn mark_other_code(targets: &mut [Target]) {
    for of_name in targets.chunk_by_mut(|one, other| one.name == other.name) {
        let all: Vec<(String, String)> =
            of_name.iter().map(|target| (target.version.clone(), target.identity.clone())).collect();
        for target in of_name {
            target.has_other_code = all.iter().any(|(version, identity)| {
                *version == target.version && *identity != target.identity && are_comparable(identity, &target.identity)
            });
        }
    }
}

/// Returns the marks of targets. A name gets its slot when it is first offered, submitted or imported.
pub async fn marks(pool: &SqlitePool, targets: &[&str]) -> sqlx::Result<Marks> {
    let names = serde_json::to_string(targets).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    let rows =
        sqlx::query!("select name, slot from target_colour where name in (select value from json_each(?))", names)
            .fetch_all(pool)
            .await?;
    Ok(rows.into_iter().map(|row| (row.name, Mark(usize::try_from(row.slot).unwrap_or_default()))).collect())
}

/// Stores the default sizes unless there are sizes already.
pub async fn first_sizes(pool: &SqlitePool, now: i64) -> sqlx::Result<()> {
    if sqlx::query!("select name from machine_size limit 1").fetch_optional(pool).await?.is_some() {
        return Ok(());
    }
    for (vcpus, memory_bytes) in FIRST_SIZES {
        let vcpus = f64::from(vcpus);
        let (name, memory) = (size_name(vcpus, memory_bytes, 1), memory_bytes.cast_signed());
        sqlx::query!(
            "insert into machine_size (name, vcpus, memory_bytes, created_at) values (?, ?, ?, ?)",
            name,
            vcpus,
            memory,
            now
        )
        .execute(pool)
        .await?;
    }
    Ok(())
}

/// Returns all sizes, smallest first.
pub async fn sizes(pool: &SqlitePool) -> sqlx::Result<Vec<MachineSize>> {
    let rows = sqlx::query!(
        r#"select name, vcpus, memory_bytes, replicas as "replicas: u32" from machine_size
           order by vcpus * replicas, memory_bytes * replicas, replicas, name"#
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| MachineSize {
            name: row.name,
            vcpus: row.vcpus,
            memory_bytes: row.memory_bytes.cast_unsigned(),
            replicas: row.replicas,
        })
        .collect())
}

/// Stores a size.
pub async fn insert_size(
    connection: &mut SqliteConnection,
    size: &MachineSize,
    now: i64,
    act: &AuditEvent,
) -> Result<()> {
    let MachineSize { name, vcpus, memory_bytes, replicas } = size;
    let memory = memory_bytes.cast_signed();
    sqlx::query!(
        "insert into machine_size (name, vcpus, memory_bytes, replicas, created_at) values (?, ?, ?, ?, ?)",
        name,
        vcpus,
        memory,
        replicas,
        now
    )
    .execute(&mut *connection)
    .await
    .map_err(|fault| taken(fault, || format!("size {name:?} already exists; choose another name")))?;
    Ok(audit::record(connection, act).await?)
}

/// Stores a size unless there is one of this name.
pub async fn insert_size_once(
    connection: &mut SqliteConnection,
    size: &MachineSize,
    now: i64,
    act: &AuditEvent,
) -> Result<()> {
    let exists = sqlx::query!("select name from machine_size where name = ?", size.name)
        .fetch_optional(&mut *connection)
        .await?
        .is_some();
    if exists { Ok(()) } else { insert_size(connection, size, now, act).await }
}

/// Removes a size that no run uses, finished or not. Returns whether there was one.
pub async fn delete_size(pool: &SqlitePool, name: &str, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let is_deleted = sqlx::query!(
        "delete from machine_size where name = ?1 and not exists (select 1 from run where size_name = ?1)",
        name
    )
    .execute(&mut *transaction)
    .await?
    .rows_affected()
        > 0;
    if is_deleted {
        audit::record(&mut transaction, act).await?;
    }
    transaction.commit().await?;
    Ok(is_deleted)
}
