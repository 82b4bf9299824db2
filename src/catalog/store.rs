//! SQL of targets, machine sizes and scenarios; [`names`] has the SQL of target names.

pub mod names;

use std::collections::BTreeMap;

use brewbench_wire::{
    job::{Scenario, ScenarioKind},
    messages::TargetOffer,
};
use serde_json::json;
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::error::{Error, Result},
    auth::{
        audit::{self, AuditEvent},
        store::taken,
    },
    catalog::{
        identity::are_comparable,
        model::{Engine, FIRST_SIZES, MachineSize, Revision, ScenarioInfo, ScriptCheck, Target, size_name},
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
    agent: &str,
    offers: &[TargetOffer],
    now: i64,
) -> sqlx::Result<()> {
    for TargetOffer { name, version, description, identity, anywhere: _, profile: _, compiles_at_run_time: _ } in offers
    {
        let (kind, identity) = (identity.kind().as_str(), identity.text());
        sqlx::query!(
            "insert into target (name, version, identity, description, first_seen_at, last_seen_at, agent_id, kind)
             values (?1, ?2, ?3, ?4, ?5, ?5, (select id from agent where name = ?6), ?7)
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
             select target.rowid from target join agent on agent.id = target.agent_id
             where agent.name = ?1 and target.last_seen_at < ?2
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
pub async fn page(pool: &SqlitePool, after: &str, limit: i64) -> sqlx::Result<(Vec<Target>, Option<String>)> {
    let more = limit + 1;
    let mut names =
        sqlx::query_scalar!("select distinct name from target where name > ? order by name limit ?", after, more)
            .fetch_all(pool)
            .await?;
    let is_last = i64::try_from(names.len()).is_ok_and(|count| count <= limit);
    names.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    let next = names.last().filter(|_| !is_last).cloned();
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

/// Stores the bundled scenarios, each revision once, so that a user's later revision stays the newest.
pub async fn first_scenarios(pool: &SqlitePool, bundled: &[Scenario], now: i64) -> Result<()> {
    for scenario in bundled {
        if revision(pool, &scenario.name, &scenario.sha256()).await?.is_none() {
            keep_scenario(&mut *pool.acquire().await?, scenario, now).await?;
        }
    }
    Ok(())
}

/// Stores a revision that a user submitted, with the result of k6's check.
pub async fn add_scenario(
    pool: &SqlitePool,
    scenario: &Scenario,
    check: Option<&ScriptCheck>,
    now: i64,
    act: &AuditEvent,
) -> Result<()> {
    let mut transaction = pool.begin().await?;
    let sha256 = keep_scenario(&mut transaction, scenario, now).await?;
    if let Some(check) = check {
        note_check(&mut *transaction, &scenario.name, &sha256, check).await?;
    }
    audit::record(&mut transaction, &act.clone().with(json!({"sha256": sha256}))).await?;
    Ok(transaction.commit().await?)
}

/// Stores the result of k6's check of a revision, replacing the previous one.
pub async fn note_check(
    to: impl sqlx::SqliteExecutor<'_>,
    name: &str,
    sha256: &str,
    check: &ScriptCheck,
) -> sqlx::Result<()> {
    let ScriptCheck { agent, engine, at_ms, fault } = check;
    sqlx::query!(
        "update scenario_revision set checked_by = ?3, checked_version = ?4, checked_at = ?5, check_fault = ?6
         where name = ?1 and sha256 = ?2",
        name,
        sha256,
        agent,
        engine.version,
        at_ms,
        fault
    )
    .execute(to)
    .await?;
    Ok(())
}

/// Builds the result of k6's check from its columns.
fn check(
    agent: Option<String>,
    version: Option<String>,
    at: Option<i64>,
    fault: Option<String>,
) -> Option<ScriptCheck> {
    // All scenarios are k6 scripts: see `ScenarioKind`.
    let engine = Engine { name: "k6".to_owned(), version };
    Some(ScriptCheck { agent: agent?, engine, at_ms: at?, fault })
}

/// Returns a note on a script that does not have the name of the variable with the target's address.
fn base_url_note(reads_base_url: bool) -> Option<String> {
    (!reads_base_url).then(|| {
        "the script does not read BASE_URL, the address of the target: if it loads another server, its runs are invalid"
            .to_owned()
    })
}

/// Stores a revision and returns its hash. Storing a known revision again makes it the newest.
async fn keep_scenario(connection: &mut SqliteConnection, scenario: &Scenario, now: i64) -> Result<String> {
    let sha256 = scenario.sha256();
    let files = serde_json::to_string(&scenario.files).map_err(Error::internal)?;
    let defaults = serde_json::to_string(&scenario.defaults).map_err(Error::internal)?;
    sqlx::query!(
        "insert into scenario_revision (name, sha256, script, files, defaults, created_at) values (?, ?, ?, ?, ?, ?)
         on conflict (name, sha256) do update
             set id = (select max(id) + 1 from scenario_revision), created_at = excluded.created_at",
        scenario.name,
        sha256,
        scenario.script,
        files,
        defaults,
        now
    )
    .execute(connection)
    .await?;
    Ok(sha256)
}

/// Returns the newest revision of each scenario, by name.
pub async fn scenarios(pool: &SqlitePool) -> sqlx::Result<Vec<ScenarioInfo>> {
    let rows = sqlx::query!(
        r#"select name as "name!", sha256 as "sha256!", created_at as "created_at!", checked_by, checked_version, checked_at,
                  check_fault,
                  instr(script, 'BASE_URL') + instr(files, 'BASE_URL') > 0 as "reads_base_url!: bool",
                  (select count(*) from scenario_revision as other where other.name = newest.name) as "revisions!: i64"
           from scenario_revision as newest
           where id = (select max(id) from scenario_revision as other where other.name = newest.name)
           order by name"#
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ScenarioInfo {
            name: row.name,
            sha256: row.sha256,
            revisions: row.revisions,
            created_at_ms: row.created_at,
            check: check(row.checked_by, row.checked_version, row.checked_at, row.check_fault),
            note: base_url_note(row.reads_base_url),
        })
        .collect())
}

/// Returns the newest revision of a scenario.
pub async fn scenario(pool: &SqlitePool, name: &str) -> Result<Option<Scenario>> {
    let row = sqlx::query!(
        "select name, script, files, defaults from scenario_revision where name = ? order by id desc limit 1",
        name
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| decode(row.name, row.script, &row.files, &row.defaults)).transpose()
}

/// Returns all revisions of a scenario, newest first.
pub async fn revisions(pool: &SqlitePool, name: &str) -> sqlx::Result<Vec<Revision>> {
    let rows = sqlx::query!(
        r#"select sha256, created_at, checked_by, checked_version, checked_at, check_fault,
                  instr(script, 'BASE_URL') + instr(files, 'BASE_URL') > 0 as "reads_base_url!: bool"
           from scenario_revision where name = ? order by id desc"#,
        name
    )
    .fetch_all(pool)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| Revision {
            sha256: row.sha256,
            created_at_ms: row.created_at,
            check: check(row.checked_by, row.checked_version, row.checked_at, row.check_fault),
            note: base_url_note(row.reads_base_url),
        })
        .collect())
}

/// Returns one revision of a scenario.
pub async fn revision(pool: &SqlitePool, name: &str, sha256: &str) -> Result<Option<Scenario>> {
    let row = sqlx::query!(
        "select name, script, files, defaults from scenario_revision where name = ? and sha256 = ?",
        name,
        sha256
    )
    .fetch_optional(pool)
    .await?;
    row.map(|row| decode(row.name, row.script, &row.files, &row.defaults)).transpose()
}

fn decode(name: String, script: String, files: &str, defaults: &str) -> Result<Scenario> {
    let map = |text| serde_json::from_str::<BTreeMap<_, _>>(text).map_err(Error::internal);
    Ok(Scenario { name, kind: ScenarioKind::K6, script, files: map(files)?, defaults: map(defaults)? })
}
