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
//! changes nothing; but what the target's agent saw is kept with the run, for the target may have been the reason. For
//! a run that was given up as lost, parts still count as long as the rule above lets its whole result count; one that
//! failed does not, for the run has ended already.

use brewbench_agent::wire::{
    Phase, now_ms,
    outcome::{Ended, Outcome},
};

use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
    },
    results::{
        evidence::Evidence,
        finalize::Conclusion,
        settlement::{Open, Settled, enter, still_open},
        store::verdicts,
    },
    runs::store::retries,
};

/// Settles the result of a run on one machine by the rule above; committed when this returns.
pub async fn settle(db: &Db, agent: &str, outcome: &Outcome, asked: verdicts::Asked) -> Result<Settled> {
    let id = RunId::from(outcome.run);
    let now = now_ms();
    let conclusion = Conclusion::of(outcome, asked, Evidence::of(outcome))?;

    let mut transaction = db.write.begin().await?;
    let (phase, holder) =
        retries::standing(&mut transaction, &id).await?.ok_or_else(|| Error::NotFound(format!("run {id}")))?;
    if holder.as_deref() != Some(agent) {
        return Ok(Settled::not_theirs(&id, agent));
    }
    if phase == Phase::Lost.as_str() && outcome.ended == Ended::Cancelled {
        return Ok(Settled::dropped("the run was given up, and its agent stopped it"));
    }
    match still_open(&mut transaction, &id, &phase).await? {
        Open::No(settled) => return Ok(settled),
        Open::Instead(retry) => retries::withdraw(&mut transaction, &retry).await?,
        Open::Yes | Open::Lost => {}
    }
    enter(&mut transaction, outcome, now).await?;
    conclusion.store(&mut transaction, &id, now).await?;
    transaction.commit().await?;
    Ok(Settled::KEPT)
}
