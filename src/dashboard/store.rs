//! SQL that reads across modules; it writes nothing.

use std::collections::BTreeMap;

use sqlx::SqlitePool;

use crate::{app::ids::RunId, runs::load, web::format};

/// The newest runs of an agent: their ids.
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

/// Names of machine sizes that runs have had.
pub async fn used_sizes(pool: &SqlitePool) -> sqlx::Result<Vec<String>> {
    let rows = sqlx::query!(
        "select name from machine_size where exists (select 1 from run where size_name = machine_size.name)"
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.name).collect())
}

/// What a target did once, as far as a line over time needs it.
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
    /// As JSON.
    pub parameters: String,
    /// How hard and how long, as JSON.
    pub load: Option<String>,
    /// Virtual users, where they are constant.
    pub vus: Option<i64>,
    /// Measured time asked for.
    pub duration_ms: Option<i64>,
    /// Warm-up.
    pub warm_up_ms: Option<i64>,
    /// Who measured.
    pub agent: Option<String>,
    /// Requests per second.
    pub rps: Option<f64>,
    /// 99th percentile of latency.
    pub p99_ms: Option<f64>,
    /// Unix ms.
    pub finished_at_ms: Option<i64>,
    /// `valid` or `suspect`.
    pub verdict: Option<String>,
}

impl Measured {
    /// Everything but the figures: only results of one setting may be put in one line.
    pub fn setting(&self) -> impl PartialEq {
        let Self {
            size_name, scenario, scenario_sha256, parameters, load, vus, duration_ms, warm_up_ms, agent, ..
        } = self;
        let texts = [size_name, scenario, scenario_sha256, load, agent].map(Clone::clone);
        (texts, parameters.clone(), [*vus, *duration_ms, *warm_up_ms])
    }

    /// Whether something speaks against its figures.
    pub fn is_suspect(&self) -> bool {
        self.verdict.as_deref() == Some("suspect")
    }

    /// The setting for people: `2 vCPU / 4 GiB · hash · 10 VUs · 10 s · on rack`.
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
        if parts.is_empty() { "setting not known".to_owned() } else { parts.join(" · ") }
    }
}

/// The newest results of a target that count, newest first.
pub async fn results(pool: &SqlitePool, target: &str, limit: i64) -> sqlx::Result<Vec<Measured>> {
    sqlx::query_as!(
        Measured,
        "select version, size_name, scenario, scenario_sha256, parameters, load, vus, duration_ms, warm_up_ms, agent,
             rps, p99_ms, finished_at as finished_at_ms, verdict
         from run where target = ? and phase = 'finished' and verdict in ('valid', 'suspect') and deleted_at is null
         order by seq desc limit ?",
        target,
        limit
    )
    .fetch_all(pool)
    .await
}

/// The newest runs of a target: their ids.
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

/// What ended since some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Runs.
    pub runs: usize,
    /// Runs whose figures do not count, or that have none.
    pub without_figures: usize,
    /// Experiments that the runs belong to.
    pub experiments: usize,
}

/// Counts what ended since a time, unix ms.
pub async fn ended(pool: &SqlitePool, since: i64) -> sqlx::Result<Ended> {
    let row = sqlx::query!(
        r#"select count(*) as "runs!: i64", count(distinct experiment_id) as "experiments!: i64",
                  count(*) filter (where phase <> 'finished' or verdict = 'invalid') as "without_figures!: i64"
           from run where finished_at >= ? and deleted_at is null"#,
        since
    )
    .fetch_one(pool)
    .await?;
    let whole = |count: i64| usize::try_from(count).unwrap_or_default();
    Ok(Ended {
        runs: whole(row.runs),
        without_figures: whole(row.without_figures),
        experiments: whole(row.experiments),
    })
}

/// What failed, was lost or is worth nothing, and ended since a time, newest first: ids. What somebody cancelled is no
/// fault.
pub async fn broken(pool: &SqlitePool, since: i64, limit: i64) -> sqlx::Result<Vec<RunId>> {
    let rows = sqlx::query!(
        r#"select id as "id: RunId" from run where finished_at >= ? and (phase in ('failed', 'lost') or verdict = 'invalid')
           and deleted_at is null
         order by finished_at desc limit ?"#,
        since,
        limit
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Whether there is any run.
pub async fn any_run(pool: &SqlitePool) -> sqlx::Result<bool> {
    Ok(sqlx::query!("select id from run where deleted_at is null limit 1").fetch_optional(pool).await?.is_some())
}

/// Of the database that answers.
pub async fn sqlite_version(pool: &SqlitePool) -> sqlx::Result<String> {
    Ok(sqlx::query!(r#"select sqlite_version() as "version!: String""#).fetch_one(pool).await?.version)
}

/// The newest runs of a scenario: their ids.
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

/// Who submitted the last 200 runs of a scenario, by name.
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
