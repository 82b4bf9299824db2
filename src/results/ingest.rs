//! Stores the results that agents upload.
//!
//! **The rule for results.** A run takes the first complete result from the agent that holds its lease. A duplicate, or
//! a result for a cancelled run, is acknowledged (so that the agent can delete it) and changes nothing. A result for a
//! lost run still counts until its retry has started: the run takes the result, and the retry leaves the queue.
//! Otherwise the retry counts. A run that its agent stopped without a cancellation has no result: it is lost.
//!
//! **Distributed runs.** The first complete result of each participant becomes its part, in any order. The run waits
//! for all parts; they are merged into one result in the transaction that stores the last of them. A part that failed,
//! or that its agent stopped, ends the run as `failed` at once, because the remaining load is not the requested load.
//! Later results of the other participants are acknowledged and change nothing, except that the host's evidence is
//! stored: the target may be the cause. For a lost run, parts count under the rule above; a failed part does not,
//! because the run has already ended.

use brewbench_wire::{
    Phase, now_ms,
    outcome::{Ended, Outcome},
};

use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
    },
    fleet::model::NamedAgent,
    results::{
        evidence::Evidence,
        finalize::Conclusion,
        settlement::{Open, Settled, enter, still_open},
    },
    runs::{model::RunSpec, store::retries},
};

/// Applies the rule above to the result of a run on one machine; committed when this returns.
pub async fn settle(
    db: &Db,
    agent: &NamedAgent,
    outcome: &Outcome,
    requested: RunSpec,
    evidence: Evidence,
) -> Result<Settled> {
    let id = RunId::from(outcome.run);
    let now = now_ms();
    let conclusion = Conclusion::new(outcome, requested, evidence)?;

    let mut transaction = db.write.begin().await?;
    let (phase, holder) =
        retries::phase_and_agent(&mut transaction, &id).await?.ok_or_else(|| Error::NotFound(format!("run {id}")))?;
    if holder != Some(agent.id) {
        return Ok(Settled::not_assigned(&id, &agent.name));
    }
    if phase == Phase::Lost && outcome.ended == Ended::Cancelled {
        return Ok(Settled::dropped("the run was lost, and its agent stopped it"));
    }
    match still_open(&mut transaction, &id, phase).await? {
        Open::No(settled) => return Ok(settled),
        Open::Supersedes(retry) => retries::withdraw(&mut transaction, &retry).await?,
        Open::Yes | Open::Lost => {}
    }
    enter(&mut transaction, outcome, now).await?;
    conclusion.store(&mut transaction, &id, now).await?;
    transaction.commit().await?;
    Ok(Settled::COUNTS)
}
