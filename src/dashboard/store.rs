//! SQL that reads across modules and writes nothing.

use std::collections::BTreeMap;

use sqlx::SqlitePool;

use crate::{app::ids::RunId, runs::load, web::format};

/// Returns the ids of an agent's newest runs.
pub async fn runs_of_agent(pool: &SqlitePool, agent: &str, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where agent = ? and deleted_at is null order by seq desc limit ?"#,
        agent,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Returns the names of the machine sizes that runs use.
pub async fn used_sizes(pool: &SqlitePool) -> sqlx::Result<Vec<String>> {
    let rows = sqlx::query!(
        "select name from machine_size where exists (select 1 from run where size_name = machine_size.name)"
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

/// A result of a target, with the columns that a chart over time needs.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// The target's version.
    pub version: Option<String>,
    /// The machine size's name.
    pub size_name: Option<String>,
    /// The scenario's name.
    pub scenario: Option<String>,
    /// The scenario's revision.
    pub scenario_sha256: Option<String>,
    /// The scenario's parameters, as JSON.
    pub parameters: String,
    /// The load, as JSON.
    pub load: Option<String>,
    /// The number of virtual users, if it is constant.
    pub vus: Option<i64>,
    /// The requested length of the measured phase.
    pub duration_ms: Option<i64>,
    /// The requested length of the warm-up.
    pub warm_up_ms: Option<i64>,
    /// The name of the agent that measured it.
    pub agent: Option<String>,
    /// Requests per second.
    pub rps: Option<f64>,
    /// 99th percentile of latency.
    pub p99_ms: Option<f64>,
    /// When the run ended, unix ms.
    pub finished_at_ms: Option<i64>,
    /// `valid` or `suspect`.
    pub verdict: Option<String>,
}

impl Measured {
    /// Returns everything except the figures. Only results with equal settings may share a line.
    pub fn setting(&self) -> impl PartialEq {
        let Self {
            size_name, scenario, scenario_sha256, parameters, load, vus, duration_ms, warm_up_ms, agent, ..
        } = self;
        let texts = [size_name, scenario, scenario_sha256, load, agent].map(Clone::clone);
        (texts, parameters.clone(), [*vus, *duration_ms, *warm_up_ms])
    }

    /// Whether the verdict is suspect.
    pub fn is_suspect(&self) -> bool {
        self.verdict.as_deref() == Some("suspect")
    }

    /// Describes the setting: `2 vCPU / 4 GiB · hash · 10 VUs · 10 s · on rack`.
    pub fn words(&self) -> String {
        let mut parts: Vec<String> = self.size_name.iter().chain(&self.scenario).cloned().collect();
        let parameters: BTreeMap<String, String> = serde_json::from_str(&self.parameters).unwrap_or_default();
        parts.extend(parameters.iter().map(|(name, value)| format!("{name}={value}")));
        let vus = || self.vus.and_then(|vus| usize::try_from(vus).ok()).map(|vus| format::plural(vus, "VU"));
        let load = self.load.as_deref().and_then(|load| load::read(load).ok());
        parts.extend(load.as_ref().map(load::words).or_else(vus));
        let duration = self.duration_ms.map(|ms| ms as f64 / 1_000.0);
        parts.extend(duration.map(|seconds| format::duration(Some(seconds)).text().to_owned()));
        parts.extend(self.agent.iter().map(|agent| format!("on {agent}")));
        if parts.is_empty() { "unknown setting".to_owned() } else { parts.join(" · ") }
    }
}

/// Returns the newest valid or suspect results of a target, newest first.
pub async fn results(pool: &SqlitePool, target: &str, limit: i64) -> sqlx::Result<Vec<Measured>> {
    sqlx::query_as!(
        Measured,
        "select version, size_name, scenario, scenario_sha256, parameters, load, vus, duration_ms, warm_up_ms, agent,
             rps, p99_ms, finished_at as finished_at_ms, verdict
         from run where target = ? and counts
         order by seq desc limit ?",
        target,
        limit
    )
    .fetch_all(pool)
    .await
}

/// Returns the ids of a target's newest runs.
pub async fn runs_of_target(pool: &SqlitePool, target: &str, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where target = ? and deleted_at is null order by seq desc limit ?"#,
        target,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Counts of what happened since some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// Runs of agents that finished.
    pub finished: usize,
    /// Experiments of these runs.
    pub experiments: usize,
    /// Finished runs that are invalid.
    pub invalid: usize,
    /// Runs that failed.
    pub failed: usize,
    /// Runs that were lost.
    pub lost: usize,
    /// Runs that were imported.
    pub imported: usize,
}

/// Counts the runs that ended since a time, unix ms. Imports are counted apart, whatever their verdict.
pub async fn ended(pool: &SqlitePool, since: i64) -> sqlx::Result<Ended> {
    let row = sqlx::query!(
        r#"select count(*) filter (where origin = 'agent' and phase = 'finished') as "finished!: i64",
                  count(distinct iif(origin = 'agent' and phase = 'finished', experiment_id, null)) as "experiments!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'finished' and verdict = 'invalid') as "invalid!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'failed') as "failed!: i64",
                  count(*) filter (where origin = 'agent' and phase = 'lost') as "lost!: i64",
                  count(*) filter (where origin = 'import') as "imported!: i64"
           from run where finished_at >= ? and deleted_at is null"#,
        since
    )
    .fetch_one(pool)
    .await?;
    let count = |count: i64| usize::try_from(count).unwrap_or_default();
    Ok(Ended {
        finished: count(row.finished),
        experiments: count(row.experiments),
        invalid: count(row.invalid),
        failed: count(row.failed),
        lost: count(row.lost),
        imported: count(row.imported),
    })
}

/// Returns the ids of failed, lost and invalid runs of agents since a time, newest first. Cancelled and imported runs are
/// not failures.
pub async fn broken(pool: &SqlitePool, since: i64, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where finished_at >= ? and (phase in ('failed', 'lost') or verdict = 'invalid')
           and origin = 'agent' and deleted_at is null
         order by finished_at desc limit ?"#,
        since,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Counts the targets that agents have ever offered, by name.
pub async fn target_count(pool: &SqlitePool) -> sqlx::Result<usize> {
    let count =
        sqlx::query_scalar!(r#"select count(distinct name) as "count!: i64" from target"#).fetch_one(pool).await?;
    Ok(usize::try_from(count).unwrap_or_default())
}

/// Returns when an agent finished a run for the first time, unix ms.
pub async fn first_measured_at(pool: &SqlitePool) -> sqlx::Result<Option<i64>> {
    let first = sqlx::query!(
        r#"select finished_at as "finished_at!" from run indexed by overview_run_finished
         where finished_at is not null and origin = 'agent' and phase = 'finished' and deleted_at is null
         order by finished_at limit 1"#
    );
    Ok(first.fetch_optional(pool).await?.map(|row| row.finished_at))
}

/// Whether any run exists.
pub async fn any_run(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from run where deleted_at is null limit 1").fetch_optional(pool).await?.is_some())
}

/// Returns the version of SQLite.
pub async fn sqlite_version(pool: &SqlitePool) -> sqlx::Result<String> {
    Ok(sqlx::query!(r#"select sqlite_version() as "version!: String""#).fetch_one(pool).await?.version)
}

/// Returns the ids of a scenario's newest runs.
pub async fn runs_of_scenario(pool: &SqlitePool, scenario: &str, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where scenario = ? and deleted_at is null order by seq desc limit ?"#,
        scenario,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Returns the names of the users who submitted the last 200 runs of a scenario, sorted.
pub async fn users_of_scenario(pool: &SqlitePool, scenario: &str) -> sqlx::Result<Vec<String>> {
    let rows = sqlx::query!(
        "select distinct created_by
         from (select created_by from run where scenario = ? order by seq desc limit 200) order by created_by",
        scenario
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.created_by).collect())
}
