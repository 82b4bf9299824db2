//! SQL of the newest runs and results of a target, a scenario, a machine size or an agent.

use sqlx::{AssertSqlSafe, SqlitePool};

use crate::{
    app::ids::RunId,
    runs::{
        load,
        model::RunSpec,
        store::spec::{COLUMNS, SpecColumns},
    },
    web::format,
};

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

/// A result of a target, with what a chart over time needs.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetResult {
    /// What was measured.
    pub spec: RunSpec,
    /// The rest.
    pub result: Measurement,
}

/// Where and when something was measured, and its figures.
#[derive(Clone, Debug, PartialEq, sqlx::FromRow)]
pub struct Measurement {
    /// The target's version.
    pub version: Option<String>,
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

impl TargetResult {
    /// Whether two results may share a line: only with equal settings.
    pub fn has_setting_of(&self, other: &Self) -> bool {
        self.spec == other.spec && self.result.agent == other.result.agent
    }

    /// Whether the verdict is suspect.
    pub fn is_suspect(&self) -> bool {
        self.result.verdict.as_deref() == Some("suspect")
    }

    /// Describes the setting: `2 vCPU / 4 GiB · hash · 10 VUs · 10 s · on rack`.
    pub fn describe(&self) -> String {
        let Self { spec, result } = self;
        let mut parts: Vec<String> = spec.size.iter().map(|size| &size.name).chain(&spec.scenario).cloned().collect();
        parts.extend(spec.parameters.iter().map(|(name, value)| format!("{name}={value}")));
        let vus = || spec.vus.and_then(|vus| usize::try_from(vus).ok()).map(|vus| format::plural(vus, "VU"));
        parts.extend(load::describe_with(spec, load::describe).or_else(vus));
        parts.extend(spec.duration_s.map(|seconds| format::duration(Some(seconds)).text().to_owned()));
        parts.extend(result.agent.iter().map(|agent| format!("on {agent}")));
        if parts.is_empty() { "unknown setting".to_owned() } else { parts.join(" · ") }
    }
}

/// Returns the newest valid or suspect results of a target, newest first.
pub async fn results(pool: &SqlitePool, target: &str, limit: i64) -> sqlx::Result<Vec<TargetResult>> {
    #[derive(sqlx::FromRow)]
    struct Row {
        #[sqlx(flatten)]
        spec: SpecColumns,
        #[sqlx(flatten)]
        result: Measurement,
    }
    let rows = sqlx::query_as::<_, Row>(AssertSqlSafe(format!(
        "select {COLUMNS}, version, agent, rps, p99_ms, finished_at as finished_at_ms, verdict
         from run where target = ? and counts
         order by seq desc limit ?"
    )));
    let rows = rows.bind(target).bind(limit).fetch_all(pool).await?;
    rows.into_iter().map(|Row { spec, result }| Ok(TargetResult { spec: spec.try_into()?, result })).collect()
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
