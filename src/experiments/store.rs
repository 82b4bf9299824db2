//! SQL of experiments.

use brewbench_wire::load::Load;
use sqlx::{AssertSqlSafe, SqliteConnection, SqlitePool};

use crate::{
    app::{
        db::decode,
        ids::{AgentId, ExperimentId},
    },
    auth::audit::{self, AuditEvent},
    experiments::{model::Experiment, plan::Plan},
    fleet,
    runs::model::{RunSize, RunSpec},
};

/// What the runs of an experiment need besides its plan.
#[derive(Clone, Debug, PartialEq)]
pub struct RunInputs {
    /// Sizes in the order of the plan.
    pub sizes: Vec<RunSize>,
    /// The scenario's revision.
    pub scenario_sha256: String,
}

impl RunInputs {
    /// Returns what a run of a plan measures.
    pub fn spec(&self, plan: &Plan, target: &str, size: &RunSize, load: &Load) -> RunSpec {
        let (target, size) = (target.to_owned(), Some(size.clone()));
        RunSpec { target, size, ..plan.spec(&self.scenario_sha256) }.under(load.clone())
    }
}

/// Stores an experiment.
pub async fn insert(
    connection: &mut SqliteConnection,
    experiment: &Experiment,
    inputs: &RunInputs,
) -> sqlx::Result<()> {
    // A new experiment has no labels, note or pause.
    let Experiment { id, name, plan, created_by, created_at_ms, is_open, .. } = experiment;
    let PlanColumns { plan, agent, generators } = PlanColumns::of(connection, plan).await?;
    let sizes = serde_json::to_string(&inputs.sizes).map_err(decode)?;
    sqlx::query!(
        "insert into experiment (id, name, plan, agent_id, generators, created_by, created_at, is_open, sizes,
             scenario_sha256)
         values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        id,
        name,
        plan,
        agent,
        generators,
        created_by,
        created_at_ms,
        is_open,
        sizes,
        inputs.scenario_sha256
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// A plan as stored: the agents that it names are ids.
struct PlanColumns {
    /// The rest, as JSON.
    plan: String,
    agent: Option<AgentId>,
    generators: String,
}

impl PlanColumns {
    async fn of(connection: &mut SqliteConnection, plan: &Plan) -> sqlx::Result<Self> {
        let agent = match &plan.agent {
            Some(name) => Some(fleet::store::id(connection, name).await?),
            None => None,
        };
        let generators = fleet::store::ids(connection, &plan.generators).await?;
        let rest = Plan { agent: None, generators: Vec::new(), ..plan.clone() };
        Ok(Self { plan: serde_json::to_string(&rest).map_err(decode)?, agent, generators })
    }
}

/// A row of `experiment`, with the names of agents.
#[derive(sqlx::FromRow)]
struct ExperimentRow {
    id: ExperimentId,
    name: String,
    plan: String,
    agent: Option<String>,
    generators: String,
    created_by: String,
    created_at: i64,
    labels: String,
    note: Option<String>,
    is_open: i64,
    paused_at: Option<i64>,
    paused_by: Option<String>,
}

impl TryFrom<ExperimentRow> for Experiment {
    type Error = sqlx::Error;

    fn try_from(row: ExperimentRow) -> sqlx::Result<Self> {
        let ExperimentRow { id, name, plan, agent, generators, created_by, created_at, labels, note, is_open, .. } =
            row;
        let ExperimentRow { paused_at, paused_by, .. } = row;
        let generators = serde_json::from_str(&generators).map_err(decode)?;
        let plan: Plan = serde_json::from_str(&plan).map_err(decode)?;
        Ok(Self {
            id,
            name,
            plan: Plan { agent, generators, ..plan },
            created_by,
            created_at_ms: created_at,
            labels: serde_json::from_str(&labels).map_err(decode)?,
            note,
            is_open: is_open != 0,
            paused_at_ms: paused_at,
            paused_by,
        })
    }
}

/// Selects rows of `experiment`.
const SELECT: &str = "select id, name, plan, (select name from agent where agent.id = experiment.agent_id) as agent,
        (select json_group_array((select name from agent where agent.id = named.value))
            from json_each(experiment.generators) as named) as generators,
        created_by, created_at, labels, note, is_open, paused_at, paused_by
    from experiment";

/// Returns an experiment, if it exists.
pub async fn find(pool: &SqlitePool, id: &ExperimentId) -> sqlx::Result<Option<Experiment>> {
    let select = AssertSqlSafe(format!("{SELECT} where id = ?"));
    let row: Option<ExperimentRow> = sqlx::query_as(select).bind(id).fetch_optional(pool).await?;
    row.map(Experiment::try_from).transpose()
}

/// Returns up to `limit` experiments, newest first, optionally only those after another one in this order, or with a label.
pub async fn list(
    pool: &SqlitePool,
    after: Option<&ExperimentId>,
    label: Option<&str>,
    limit: i64,
) -> sqlx::Result<Vec<Experiment>> {
    // Ids are version 7 UUIDs, which sort by time.
    let select = AssertSqlSafe(format!(
        "{SELECT} where (?1 is null or id < ?1) and (?2 is null or ?2 in (select value from json_each(labels)))
         order by id desc limit ?3"
    ));
    let rows: Vec<ExperimentRow> = sqlx::query_as(select).bind(after).bind(label).bind(limit).fetch_all(pool).await?;
    rows.into_iter().map(Experiment::try_from).collect()
}

/// Adds a label to an experiment, unless it has it.
pub async fn add_label(pool: &SqlitePool, id: &ExperimentId, label: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update experiment set labels =
             (select json_group_array(value) from (select value from json_each(labels) union select ?2 order by 1))
         where id = ?1",
        id,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Removes a label from an experiment.
pub async fn remove_label(pool: &SqlitePool, id: &ExperimentId, label: &str) -> sqlx::Result<()> {
    sqlx::query!(
        "update experiment set labels =
             (select json_group_array(value) from (select value from json_each(labels) where value <> ?2 order by 1))
         where id = ?1",
        id,
        label
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Replaces the note of an experiment; `None` removes it.
pub async fn set_note(pool: &SqlitePool, id: &ExperimentId, note: Option<&str>) -> sqlx::Result<()> {
    sqlx::query!("update experiment set note = ?2 where id = ?1", id, note).execute(pool).await?;
    Ok(())
}

/// Returns the inputs of an experiment's runs; `None` for an old experiment whose runs were all deleted.
pub async fn run_inputs(pool: &SqlitePool, id: &ExperimentId) -> sqlx::Result<Option<RunInputs>> {
    let row =
        sqlx::query!("select sizes, scenario_sha256 from experiment where id = ?", id).fetch_optional(pool).await?;
    let stored = row.and_then(|row| row.sizes.zip(row.scenario_sha256));
    let Some((sizes, scenario_sha256)) = stored else { return Ok(None) };
    let sizes: Vec<RunSize> = serde_json::from_str(&sizes).map_err(decode)?;
    Ok(Some(RunInputs { sizes, scenario_sha256 }))
}

/// Returns the ids of open experiments, which may still add runs themselves.
pub async fn open(pool: &SqlitePool) -> sqlx::Result<Vec<ExperimentId>> {
    sqlx::query_scalar!(r#"select id as "id: ExperimentId" from experiment where is_open = 1 order by id"#)
        .fetch_all(pool)
        .await
}

/// Pauses an experiment. Returns false if it was already paused.
pub async fn pause(pool: &SqlitePool, id: &ExperimentId, now: i64, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update experiment set paused_at = ?2, paused_by = ?3 where id = ?1 and paused_at is null",
        id,
        now,
        act.actor
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &changed, act).await
}

/// Resumes an experiment. Returns false if it was not paused.
pub async fn resume(pool: &SqlitePool, id: &ExperimentId, act: &AuditEvent) -> sqlx::Result<bool> {
    let mut transaction = pool.begin().await?;
    let changed = sqlx::query!(
        "update experiment set paused_at = null, paused_by = null where id = ?1 and paused_at is not null",
        id
    )
    .execute(&mut *transaction)
    .await?;
    audit::commit(transaction, &changed, act).await
}

/// Closes an experiment for a user, so that it adds no more runs itself.
pub async fn close(pool: &SqlitePool, id: &ExperimentId, act: &AuditEvent) -> sqlx::Result<()> {
    let mut transaction = pool.begin().await?;
    end(&mut transaction, id).await?;
    audit::record(&mut transaction, act).await?;
    transaction.commit().await
}

/// Marks an experiment as no longer open. Returns false if it was not open.
pub async fn end(connection: &mut SqliteConnection, id: &ExperimentId) -> sqlx::Result<bool> {
    let changed =
        sqlx::query!("update experiment set is_open = 0 where id = ? and is_open = 1", id).execute(connection).await?;
    Ok(changed.rows_affected() > 0)
}

/// Whether an experiment is open. Must be called in the transaction that queues its runs.
pub async fn is_open(connection: &mut SqliteConnection, id: &ExperimentId) -> sqlx::Result<bool> {
    let row = sqlx::query!("select is_open from experiment where id = ?", id).fetch_optional(connection).await?;
    Ok(row.is_some_and(|row| row.is_open != 0))
}

/// Replaces the plan of an experiment that is not open.
///
/// Returns false if it is open, or if its plan no longer has this number of repetitions: another request was faster.
pub async fn replan(
    connection: &mut SqliteConnection,
    id: &ExperimentId,
    repetitions: u32,
    plan: &Plan,
    act: &AuditEvent,
) -> sqlx::Result<bool> {
    let PlanColumns { plan, agent, generators } = PlanColumns::of(connection, plan).await?;
    let changed = sqlx::query!(
        "update experiment set plan = ?3, agent_id = ?4, generators = ?5, looks = looks + 1, looks_at = json_insert(looks_at, '$[#]', ?2) where id = ?1 \
         and is_open = 0 and plan ->> '$.repetitions' = ?2",
        id,
        repetitions,
        plan,
        agent,
        generators
    )
    .execute(&mut *connection)
    .await?;
    if changed.rows_affected() > 0 {
        audit::record(connection, act).await?;
    }
    Ok(changed.rows_affected() > 0)
}

/// Stores an experiment of imported runs.
pub async fn insert_from_imports(
    connection: &mut SqliteConnection,
    id: &ExperimentId,
    name: &str,
    plan: &Plan,
    by: &str,
    now: i64,
) -> sqlx::Result<()> {
    let plan = serde_json::to_string(plan).map_err(decode)?;
    sqlx::query!(
        "insert into experiment (id, name, plan, created_by, created_at) values (?, ?, ?, ?, ?)",
        id,
        name,
        plan,
        by,
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}
