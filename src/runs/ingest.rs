//! How the results of agents get into the store.
//!
//! **The rule for results.** A run takes the first whole result that arrives for it from the agent that it was given to.
//! A result that comes twice, or after the run was cancelled, is acknowledged (so that the agent can forget it) and
//! changes nothing. A result for a run that was given up as lost still counts as long as nobody has begun to measure the
//! cell again: the run then takes it and its place-holder leaves the queue. Otherwise the new measurement counts. What an
//! agent stopped is no result: where nobody cancelled the run, it is lost.
//!
//! **Of several agents.** A run that several do takes from each of them the first whole result as its part, in any order,
//! and from nobody else. It waits until all parts are there; they then become its one result, in the same transaction
//! that keeps the last of them. A part that failed, or that its agent stopped, ends the run at once, for the rest of a
//! load is not the load that was asked for: it is `failed`, and what its other agents bring afterwards is acknowledged and
//! changes nothing; but what the target's agent saw is kept with the run, for the target may have been the reason. For a run that was given up as lost, parts still count as long as the rule above lets its whole
//! result count; one that failed does not, for the run has ended already.

use std::{collections::BTreeMap, str::FromStr};

use brewbench_agent::wire::{
    Phase, now_ms,
    outcome::{Conditions, Cores, Ended, Observed, Outcome},
};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use utoipa::ToSchema;

use super::{
    conclusion::Conclusion,
    material,
    parts::{self, seen::GeneratorSeen, thresholds::WholeThreshold},
    queries::{self, judgements, leases},
};
use crate::{
    db::Db,
    error::{Error, Result},
};

/// What an agent saw of a run besides its summary; stored as one blob, shown on the run's page.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Evidence {
    /// The target's last output.
    pub target_log: String,
    /// k6's last output; where others made the load, each of them has its own.
    pub k6_log: String,
    /// What the sandbox counted.
    pub observed: Option<Observed>,
    /// Where both sides ran.
    pub cores: Cores,
    /// Facts about the machine.
    pub environment: BTreeMap<String, String>,
    /// What speaks for or against the circumstances.
    #[serde(default)]
    pub conditions: Conditions,
    /// Those who made the load, where it was not the target's agent, in the order of their segments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub generators: Vec<GeneratorSeen>,
    /// The script's thresholds for the load of all of these together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thresholds: Vec<WholeThreshold>,
    /// Why the target's agent failed, too, where another agent had ended the run before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_later: Option<String>,
}

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    /// Whether it counts.
    pub kept: bool,
    /// Why it doesn't.
    pub why: Option<String>,
}

impl Settled {
    pub(super) const KEPT: Self = Self { kept: true, why: None };

    pub(super) fn dropped(why: impl Into<String>) -> Self {
        Self { kept: false, why: Some(why.into()) }
    }

    pub(super) fn not_theirs(id: &str, agent: &str) -> Self {
        Self::dropped(format!("run {id} is not in the hands of {agent}"))
    }
}

/// Settles an agent's result by the rule above; committed when this returns.
pub async fn settle(db: &Db, agent: &str, outcome: &Outcome) -> Result<Settled> {
    let id = outcome.run.to_string();
    let now = now_ms();
    let asked = judgements::asked(&db.read, &id).await?;
    if !asked.generators.is_empty() {
        return parts::settle::settle(db, agent, outcome, &asked).await;
    }
    let conclusion = Conclusion::of(outcome, asked, Evidence::of(outcome))?;

    let mut transaction = db.write.begin().await?;
    let (phase, holder) =
        leases::standing(&mut transaction, &id).await?.ok_or_else(|| Error::NotFound(format!("run {id}")))?;
    if holder.as_deref() != Some(agent) {
        return Ok(Settled::not_theirs(&id, agent));
    }
    if phase == Phase::Lost.as_str() && outcome.ended == Ended::Cancelled {
        return Ok(Settled::dropped("the run was given up, and its agent stopped it"));
    }
    match still_open(&mut transaction, &id, &phase).await? {
        Open::No(settled) => return Ok(settled),
        Open::Instead(retry) => leases::withdraw(&mut transaction, &retry).await?,
        Open::Yes | Open::Lost => {}
    }
    enter(&mut transaction, outcome, now).await?;
    conclusion.store(&mut transaction, &id, now).await?;
    transaction.commit().await?;
    Ok(Settled::KEPT)
}

/// Whether a run still takes results.
pub(super) enum Open {
    /// It is being done.
    Yes,
    /// It was given up, and is not done again.
    Lost,
    /// It was given up, and this one waits in its place: it has to leave the queue.
    Instead(String),
    /// It doesn't; the answer to who brings one.
    No(Settled),
}

/// Whether a run in this phase still takes results.
pub(super) async fn still_open(connection: &mut SqliteConnection, id: &str, phase: &str) -> Result<Open> {
    let no = |why: &str| Open::No(Settled::dropped(why));
    Ok(match Phase::from_str(phase).map_err(Error::internal)? {
        Phase::Finished | Phase::Failed => no("there is a result already"),
        Phase::Cancelled => no("the run was cancelled"),
        Phase::Queued => no("the run was given back to the queue"),
        Phase::Lost => match leases::retry_of(connection, id).await? {
            None => Open::Lost,
            Some((retry, phase)) if phase == Phase::Queued.as_str() => Open::Instead(retry),
            Some((retry, _)) => no(&format!("run {retry} measures it again already")),
        },
        Phase::Leased | Phase::Preparing | Phase::WarmingUp | Phase::Measuring | Phase::Collecting => Open::Yes,
    })
}

/// Notes when the phases of a run began.
pub(super) async fn enter(connection: &mut SqliteConnection, outcome: &Outcome, now: i64) -> Result<()> {
    let id = outcome.run.to_string();
    for time in &outcome.times {
        // The agent's clock may be wrong; what it says is moved by how far it is off now.
        let at = time.at_ms + now - outcome.sent_at_ms;
        queries::enter(connection, &id, time.phase.as_str(), at).await?;
    }
    Ok(())
}

impl Evidence {
    /// Of a result, without what others saw.
    pub(super) fn of(outcome: &Outcome) -> Self {
        Self {
            target_log: outcome.target_log.clone(),
            k6_log: outcome.k6_log.clone(),
            observed: outcome.observed,
            cores: outcome.cores.clone(),
            environment: outcome.environment.clone(),
            conditions: material::short(outcome.conditions.clone()),
            generators: Vec::new(),
            thresholds: Vec::new(),
            said_later: None,
        }
    }
}
