//! Decides whether a run still accepts a result.

use brewbench_wire::{Phase, outcome::Outcome};
use serde::{Deserialize, Serialize};
use sqlx::SqliteConnection;
use utoipa::ToSchema;

use crate::{
    app::{error::Result, ids::RunId},
    runs::{self, store::retries},
};

/// The answer to an uploaded result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Settled {
    /// Whether it counts.
    pub counts: bool,
    /// Why it does not count; null if it does.
    pub reason: Option<String>,
}

impl Settled {
    pub(crate) const COUNTS: Self = Self { counts: true, reason: None };

    pub(crate) fn dropped(reason: impl Into<String>) -> Self {
        Self { counts: false, reason: Some(reason.into()) }
    }

    pub(crate) fn not_assigned(id: &RunId, agent: &str) -> Self {
        Self::dropped(format!("run {id} is not assigned to {agent}"))
    }
}

/// Whether a run still accepts results.
pub(crate) enum Open {
    /// An agent works on it.
    Yes,
    /// It is lost and has no retry.
    Lost,
    /// It is lost, and this retry must leave the queue.
    Supersedes(RunId),
    /// It does not; the answer to the agent.
    No(Settled),
}

/// Returns whether a run in this phase still accepts results.
pub(crate) async fn still_open(connection: &mut SqliteConnection, id: &RunId, phase: Phase) -> Result<Open> {
    let no = |why: &str| Open::No(Settled::dropped(why));
    Ok(match phase {
        Phase::Finished | Phase::Failed => no("the run already has a result"),
        Phase::Cancelled => no("the run was cancelled"),
        Phase::Queued => no("the run was returned to the queue"),
        Phase::Lost => match retries::retry_of(connection, id).await? {
            None => Open::Lost,
            Some((retry, Phase::Queued)) => Open::Supersedes(retry),
            Some((retry, _)) => no(&format!("its retry, run {retry}, has already started")),
        },
        Phase::Leased | Phase::Preparing | Phase::WarmingUp | Phase::Measuring | Phase::Collecting => Open::Yes,
    })
}

/// Stores when the phases of a run began.
pub(crate) async fn enter(connection: &mut SqliteConnection, outcome: &Outcome, now: i64) -> Result<()> {
    let id = RunId::from(outcome.run);
    for time in &outcome.times {
        // The agent's clock may be wrong: its times are corrected by its current offset.
        let at = time.at_ms + now - outcome.sent_at_ms;
        runs::store::enter(connection, &id, time.phase.as_str(), at).await?;
    }
    Ok(())
}
