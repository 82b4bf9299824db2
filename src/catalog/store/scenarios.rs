//! SQL of scenarios and their files.

use std::collections::BTreeMap;

use brewbench_wire::{
    engine::EngineKind,
    hex,
    messages::ScriptReport,
    scenario::{
        Content, REQUESTS, Scenario,
        addresses::{self, Address},
        engines, is_module,
    },
    variables,
};
use serde_json::json;
use sha2::{Digest, Sha256};
use sqlx::{SqliteConnection, SqlitePool};

use crate::{
    app::error::{Error, Result},
    auth::audit::{self, AuditEvent},
    catalog::model::{Engine, Revision, ScenarioInfo, ScriptCheck},
};

/// Gives files of earlier versions the keys of all others, and removes files that no revision has: those of scenarios
/// that were refused.
pub async fn clean_up(pool: &SqlitePool) -> sqlx::Result<()> {
    let old = sqlx::query!("select key, bytes from scenario_content where key like '%/%'").fetch_all(pool).await?;
    for file in old {
        let key = hex(&Sha256::digest(&file.bytes));
        let mut transaction = pool.begin().await?;
        keep_content(&mut transaction, &key, &file.bytes).await?;
        sqlx::query!("update scenario_file set content = ? where content = ?", key, file.key)
            .execute(&mut *transaction)
            .await?;
        sqlx::query!("delete from scenario_content where key = ?", file.key).execute(&mut *transaction).await?;
        transaction.commit().await?;
    }
    sqlx::query!("delete from scenario_content where key not in (select content from scenario_file)")
        .execute(pool)
        .await?;
    Ok(())
}

async fn keep_content(connection: &mut SqliteConnection, key: &str, bytes: &[u8]) -> sqlx::Result<()> {
    sqlx::query!("insert into scenario_content (key, bytes) values (?, ?) on conflict do nothing", key, bytes)
        .execute(connection)
        .await?;
    Ok(())
}

/// Stores the files that are not in messages, so that agents can fetch them before the scenario is stored.
pub async fn keep_large(pool: &SqlitePool, scenario: &Scenario, message: &Scenario) -> sqlx::Result<()> {
    for (path, file) in &message.elsewhere {
        if let Some(content) = scenario.files.get(path) {
            keep_content(&mut *pool.acquire().await?, &file.sha256, content.bytes()).await?;
        }
    }
    Ok(())
}

/// Returns the bytes of a file by their SHA-256.
pub async fn content(pool: &SqlitePool, sha256: &str) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select bytes from scenario_content where key = ?", sha256).fetch_optional(pool).await
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
    let ScriptCheck { agent, engine, at_ms, fault, report } = check;
    let report = serde_json::to_string(report).map_err(|fault| sqlx::Error::Encode(fault.into()))?;
    sqlx::query!(
        "update scenario_revision set checked_by = ?3, checked_version = ?4, checked_at = ?5, check_fault = ?6, report = ?7
         where name = ?1 and sha256 = ?2",
        name,
        sha256,
        agent,
        engine.version,
        at_ms,
        fault,
        report
    )
    .execute(to)
    .await?;
    Ok(())
}

/// Builds the result of a check from its columns.
fn check(
    entry: &str,
    agent: Option<String>,
    version: Option<String>,
    at: Option<i64>,
    fault: Option<String>,
    report: &str,
) -> Option<ScriptCheck> {
    let checked_by = engines(entry, true).first().copied().unwrap_or_default();
    let engine = Engine { name: checked_by.as_str().to_owned(), version };
    let report = serde_json::from_str(report).unwrap_or_default();
    Some(ScriptCheck { agent: agent?, engine, at_ms: at?, fault, report })
}

/// Reads what may be the target's address; none if runs get the address.
fn addresses(column: Option<&str>) -> Option<Vec<Address>> {
    column.map(|addresses| serde_json::from_str(addresses).unwrap_or_default())
}

/// Stores a revision and returns its hash. Storing a known revision again makes it the newest.
async fn keep_scenario(connection: &mut SqliteConnection, scenario: &Scenario, now: i64) -> Result<String> {
    let sha256 = scenario.sha256();
    let Scenario { name, entry, files, elsewhere: _, defaults } = scenario;
    let defaults = serde_json::to_string(defaults).map_err(Error::internal)?;
    let addresses = addresses::find(scenario).map(|found| serde_json::to_string(&found)).transpose();
    let addresses = addresses.map_err(Error::internal)?;
    sqlx::query!(
        "insert into scenario_revision (name, sha256, entry, addresses, defaults, created_at)
         values (?, ?, ?, ?, ?, ?)
         on conflict (name, sha256) do update
             set id = (select max(id) + 1 from scenario_revision), created_at = excluded.created_at",
        name,
        sha256,
        entry,
        addresses,
        defaults,
        now
    )
    .execute(&mut *connection)
    .await?;
    for (path, content) in files {
        let key = hex(&Sha256::digest(content.bytes()));
        keep_content(connection, &key, content.bytes()).await?;
        sqlx::query!(
            "insert into scenario_file (sha256, path, content) values (?, ?, ?) on conflict do nothing",
            sha256,
            path,
            key
        )
        .execute(&mut *connection)
        .await?;
    }
    Ok(sha256)
}

/// Returns the newest revision of each scenario, by name.
pub async fn scenarios(pool: &SqlitePool) -> sqlx::Result<Vec<ScenarioInfo>> {
    let rows = sqlx::query!(
        r#"select name as "name!", entry as "entry!", sha256 as "sha256!", created_at as "created_at!", checked_by, checked_version, checked_at,
                  check_fault, report as "report!", addresses,
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
            check: check(&row.entry, row.checked_by, row.checked_version, row.checked_at, row.check_fault, &row.report),
            addresses: addresses(row.addresses.as_deref()),
        })
        .collect())
}

/// Returns the newest revision of a scenario.
pub async fn scenario(pool: &SqlitePool, name: &str) -> Result<Option<Scenario>> {
    match newest(pool, name).await? {
        Some(sha256) => revision(pool, name, &sha256).await,
        None => Ok(None),
    }
}

/// Returns all revisions of a scenario, newest first.
pub async fn revisions(pool: &SqlitePool, name: &str) -> sqlx::Result<Vec<Revision>> {
    let rows = sqlx::query!(
        r#"select entry, sha256, created_at, checked_by, checked_version, checked_at, check_fault, report, addresses
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
            check: check(&row.entry, row.checked_by, row.checked_version, row.checked_at, row.check_fault, &row.report),
            addresses: addresses(row.addresses.as_deref()),
        })
        .collect())
}

/// Returns one revision of a scenario.
pub async fn revision(pool: &SqlitePool, name: &str, sha256: &str) -> Result<Option<Scenario>> {
    load(pool, name, sha256, |_, _| true).await
}

/// What runs of a scenario may set.
#[derive(Clone, Debug)]
pub struct ScenarioParameters {
    /// The revision.
    pub sha256: String,
    /// The names, each with its default; empty if it has none.
    pub defaults: BTreeMap<String, String>,
    /// The scenarios in the script's options, as far as k6 has read it.
    pub scenarios: Vec<String>,
    /// The load generators that can execute it, the usual one first.
    pub engines: Vec<EngineKind>,
}

/// Returns the parameters of the newest revision of a scenario, without reading its data files, which may be large.
pub async fn parameters(pool: &SqlitePool, name: &str) -> Result<Option<ScenarioParameters>> {
    let Some(sha256) = newest(pool, name).await? else { return Ok(None) };
    let is_read = |entry: &str, path: &str| is_module(entry, path) || path == REQUESTS;
    let code = load(pool, name, &sha256, is_read).await?;
    let list = |code: &Scenario| {
        code.files.contains_key(REQUESTS) || brewbench_wire::scenarios::request_list(&sha256).is_some()
    };
    let engines = code.as_ref().map(|code| engines(&code.entry, list(code))).unwrap_or_default();
    let defaults = code.iter().flat_map(|code| {
        let default = |name: &String| code.defaults.get(name).cloned().unwrap_or_default();
        variables::parameters(code).into_iter().map(move |name| (name.clone(), default(&name)))
    });
    let report =
        sqlx::query_scalar!("select report from scenario_revision where name = ? and sha256 = ?", name, sha256);
    let report: ScriptReport = serde_json::from_str(&report.fetch_one(pool).await?).unwrap_or_default();
    Ok(Some(ScenarioParameters { sha256, defaults: defaults.collect(), scenarios: report.scenarios, engines }))
}

/// Returns the hash of the newest revision of a scenario.
pub async fn newest(pool: &SqlitePool, name: &str) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select sha256 from scenario_revision where name = ? order by id desc limit 1", name)
        .fetch_optional(pool)
        .await
}

/// Returns a revision with some of its files, chosen by the paths of script and file.
async fn load(
    pool: &SqlitePool,
    name: &str,
    sha256: &str,
    is_wanted: fn(&str, &str) -> bool,
) -> Result<Option<Scenario>> {
    let found =
        sqlx::query!("select entry, defaults from scenario_revision where name = ? and sha256 = ?", name, sha256);
    let Some(found) = found.fetch_optional(pool).await? else { return Ok(None) };
    let all = sqlx::query!("select path, content from scenario_file where sha256 = ?", sha256).fetch_all(pool).await?;
    let mut files = BTreeMap::new();
    for file in all.into_iter().filter(|file| is_wanted(&found.entry, &file.path)) {
        let bytes = content(pool, &file.content).await?.unwrap_or_default();
        files.insert(file.path, Content::from(bytes));
    }
    Ok(Some(Scenario {
        name: name.to_owned(),
        entry: found.entry,
        files,
        elsewhere: BTreeMap::new(),
        defaults: serde_json::from_str::<BTreeMap<_, _>>(&found.defaults).map_err(Error::internal)?,
    }))
}
