//! The rule for results: whether a run still takes one, and what became of it.

use std::str::FromStr;

use brewbench_agent::wire::{Phase, outcome::Outcome};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use utoipa::ToSchema;

use crate::{
    app::{
        error::{Error, Result},
        ids::RunId,
    },
    runs::{self, store::retries},
};

/// What became of a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    /// Whether it counts.
    pub kept: bool,
    /// Why it doesn't.
    pub why: Option<String>,
}

impl Settled {
    pub(crate) const KEPT: Self = Self { kept: true, why: None };

    pub(crate) fn dropped(why: impl Into<String>) -> Self {
        Self { kept: false, why: Some(why.into()) }
    }

    pub(crate) fn not_theirs(id: &RunId, agent: &str) -> Self {
        Self::dropped(format!("run {id} is not in the hands of {agent}"))
    }
}

/// Whether a run still takes results.
pub(crate) enum Open {
    /// It is being done.
    Yes,
    /// It was given up, and is not done again.
    Lost,
    /// It was given up, and this one waits in its place: it has to leave the queue.
    Instead(RunId),
    /// It doesn't; the answer to who brings one.
    No(Settled),
}

/// Whether a run in this phase still takes results.
pub(crate) async fn still_open(connection: &mut SqliteConnection, id: &RunId, phase: &str) -> Result<Open> {
    let no = |why: &str| Open::No(Settled::dropped(why));
    Ok(match Phase::from_str(phase).map_err(Error::internal)? {
        Phase::Finished | Phase::Failed => no("there is a result already"),
        Phase::Cancelled => no("the run was cancelled"),
        Phase::Queued => no("the run was given back to the queue"),
        Phase::Lost => match retries::retry_of(connection, id).await? {
            None => Open::Lost,
            Some((retry, phase)) if phase == Phase::Queued.as_str() => Open::Instead(retry),
            Some((retry, _)) => no(&format!("run {retry} measures it again already")),
        },
        Phase::Leased | Phase::Preparing | Phase::WarmingUp | Phase::Measuring | Phase::Collecting => Open::Yes,
    })
}

/// Notes when the phases of a run began.
pub(crate) async fn enter(connection: &mut SqliteConnection, outcome: &Outcome, now: i64) -> Result<()> {
    let id = RunId::from(outcome.run);
    for time in &outcome.times {
        // The agent's clock may be wrong; what it says is moved by how far it is off now.
        let at = time.at_ms + now - outcome.sent_at_ms;
        runs::store::enter(connection, &id, time.phase.as_str(), at).await?;
    }
    Ok(())
}
