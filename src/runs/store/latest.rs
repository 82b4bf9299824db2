//! SQL of the newest runs and results of a target, a scenario, a machine size or an agent.

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
