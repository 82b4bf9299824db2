//! SQL of verdicts: rules, limits and re-judging.

use brewbench_wire::{load::Load, target::TargetKind};
use serde_json::json;
use sqlx::{AssertSqlSafe, SqliteConnection, SqliteExecutor, SqlitePool};

use crate::{
    app::{
        db::decode,
        ids::{ExperimentId, RunId},
    },
    auth::audit::{self, AuditEvent},
    results::verdict::{limits::Limits, model::RULES},
    runs::{
        load,
        model::RunSpec,
        store::spec::{COLUMNS, SpecColumns},
        verdict::{Reason, Verdict},
    },
};

/// The limits of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScenarioLimits {
    /// Their values.
    pub limits: Limits,
    /// Number of changes.
    pub revision: i64,
    /// When and by whom they were last changed, unix ms; None if never.
    pub changed: Option<(i64, String)>,
}

/// The rules and limits that a run was judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct JudgedBy {
    /// Version of the rules.
    pub rules: i64,
    /// All limits at that time.
    pub limits: Limits,
    /// Time of the judgement, unix ms.
    pub judged_at_ms: i64,
}

/// What is needed to re-judge a run, besides its blobs.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// Sequence number.
    pub seq: i64,
    /// Its id.
    pub id: RunId,
    /// Its experiment.
    pub experiment: Option<ExperimentId>,
    /// Whether it was measured by an agent, not imported.
    pub is_ours: bool,
    /// The scenario's name.
    pub scenario: Option<String>,
    /// Its load.
    pub load: Option<Load>,
    /// The CPU share of its size, cores.
    pub vcpus: Option<f64>,
    /// Mechanisms that enforced its machine size, CPU and memory.
    pub enforced: [Option<String>; 2],
    /// How its target was provided, if known.
    pub kind: Option<TargetKind>,
    /// As judged before.
    pub verdict: Verdict,
    /// As judged before.
    pub reasons: Vec<Reason>,
}

/// A selection of finished runs.
#[derive(Clone, Copy, Debug)]
pub enum RejudgeScope<'a> {
    /// All.
    All,
    /// Those of a scenario.
    Scenario(&'a str),
    /// These.
    Ids(&'a [RunId]),
}

/// Loads what a run was to measure; nothing if the run does not exist.
pub async fn requested(pool: &SqlitePool, id: &RunId) -> sqlx::Result<RunSpec> {
    let select = AssertSqlSafe(format!("select {COLUMNS} from run where id = ?"));
    let columns: Option<SpecColumns> = sqlx::query_as(select).bind(id).fetch_optional(pool).await?;
    columns.map_or_else(|| Ok(RunSpec::default()), RunSpec::try_from)
}

/// Loads the limits of a scenario; the defaults if it has none, or without a scenario.
pub async fn limits(from: impl SqliteExecutor<'_>, scenario: Option<&str>) -> sqlx::Result<ScenarioLimits> {
    let row = sqlx::query!(
        "select limits, revision, changed_at, changed_by from scenario_limits where scenario = ?",
        scenario
    )
    .fetch_optional(from)
    .await?;
    let Some(row) = row else { return Ok(ScenarioLimits::default()) };
    let limits = serde_json::from_str(&row.limits).map_err(decode)?;
    Ok(ScenarioLimits { limits, revision: row.revision, changed: Some((row.changed_at, row.changed_by)) })
}

/// Stores the limits of a scenario; its runs are then due for re-judging.
pub async fn set_limits(
    pool: &SqlitePool,
    scenario: &str,
    limits: &Limits,
    now: i64,
    act: &AuditEvent,
) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    let changed = limits.changed();
    let text = serde_json::to_string(&changed).map_err(decode)?;
    sqlx::query!(
        "insert into scenario_limits (scenario, limits, revision, judged_revision, changed_at, changed_by)
         values (?1, ?2, 1, 0, ?3, ?4)
         on conflict do update set limits = excluded.limits, revision = revision + 1, changed_at = excluded.changed_at,
             changed_by = excluded.changed_by",
        scenario,
        text,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?;
    audit::record(&mut transaction, &act.clone().with(json!(changed))).await?;
    transaction.commit().await
}

/// Lists scenarios with runs to re-judge, and the revision of their limits.
pub async fn pending(pool: &SqlitePool) -> sqlx::Result<Vec<(String, i64)>> {
    let rows = sqlx::query!(
        "select scenario, revision from scenario_limits where judged_revision < revision order by scenario"
    )
    .fetch_all(pool)
    .await?;
    Ok(rows.into_iter().map(|row| (row.scenario, row.revision)).collect())
}

/// Records that all runs of a scenario are judged by this revision of its limits.
pub async fn all_judged(pool: &SqlitePool, scenario: &str, revision: i64) -> sqlx::Result<()> {
    sqlx::query!(
        "update scenario_limits set judged_revision = ?2 where scenario = ?1 and judged_revision < ?2",
        scenario,
        revision
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Loads the rules and limits that a run was judged by; None if older servers judged it.
pub async fn judged_by(pool: &SqlitePool, run: &RunId) -> sqlx::Result<Option<JudgedBy>> {
    let row = sqlx::query!("select rules, limits, judged_at from run_judgement where run_id = ?", run)
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let limits = serde_json::from_str(&row.limits).map_err(decode)?;
    Ok(Some(JudgedBy { rules: row.rules, limits, judged_at_ms: row.judged_at }))
}

/// Records that a run was judged by the current rules and these limits.
pub async fn record_judgement(
    connection: &mut SqliteConnection,
    run: &RunId,
    limits: &Limits,
    now: i64,
) -> sqlx::Result<()> {
    let text = serde_json::to_string(limits).map_err(decode)?;
    let rules = i64::from(RULES);
    sqlx::query!(
        "insert or replace into run_judgement (run_id, rules, limits, judged_at) values (?, ?, ?, ?)",
        run,
        rules,
        text,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Replaces the verdict of a finished run.
pub async fn revise(
    connection: &mut SqliteConnection,
    run: &RunId,
    verdict: Verdict,
    reasons: &[Reason],
) -> sqlx::Result<()> {
    let (verdict, reasons) = (verdict.as_str(), serde_json::to_string(reasons).map_err(decode)?);
    sqlx::query!(
        "update run set verdict = ?2, reasons = ?3 where id = ?1 and phase = 'finished'",
        run,
        verdict,
        reasons
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Lists at most `limit` finished runs after sequence number `after`, including deleted runs that can be restored.
pub async fn candidates(
    pool: &SqlitePool,
    which: RejudgeScope<'_>,
    after: i64,
    limit: i64,
) -> sqlx::Result<Vec<Candidate>> {
    let (scenario, ids) = match which {
        RejudgeScope::All => (None, None),
        RejudgeScope::Scenario(name) => (Some(name), None),
        RejudgeScope::Ids(ids) => (None, Some(serde_json::to_string(ids).map_err(decode)?)),
    };
    let rows = sqlx::query!(
        r#"select seq as "seq!", id as "id!: RunId", experiment_id as "experiment_id: ExperimentId", origin, scenario, load, vcpus * replicas as "vcpus?: f64", enforced_cpu, enforced_memory, target_kind,
                  verdict as "verdict!", reasons
           from run
           where seq > ?1 and phase = 'finished' and verdict is not null and (?2 is null or scenario = ?2)
               and (?3 is null or id in (select value from json_each(?3)))
           order by seq limit ?4"#,
        after,
        scenario,
        ids,
        limit
    )
    .fetch_all(pool)
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Candidate {
                seq: row.seq,
                id: row.id,
                experiment: row.experiment_id,
                is_ours: row.origin == "agent",
                scenario: row.scenario,
                load: row.load.as_deref().map(load::read).transpose().map_err(decode)?,
                vcpus: row.vcpus,
                enforced: [row.enforced_cpu, row.enforced_memory],
                kind: row.target_kind.as_deref().and_then(|kind| kind.parse().ok()),
                verdict: row.verdict.parse().map_err(|fault: String| decode(fault))?,
                reasons: serde_json::from_str(&row.reasons).map_err(decode)?,
            })
        })
        .collect()
}
