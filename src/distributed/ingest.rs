//! Accepts an agent's result: of a run on one machine or in its cluster, or its part of a distributed run.

use brewbench_wire::{
    Phase,
    outcome::{Cause, Ended, Outcome},
};

use super::{
    merge::{self, Merged},
    model::AgentPart,
    settle,
};
use crate::{
    app::{
        db::Db,
        error::{Error, Result},
        ids::RunId,
    },
    results::{
        evidence::Evidence,
        ingest, profiles,
        settlement::Settled,
        store::{parts, verdicts},
    },
    runs::{model::RunSpec, store::retries},
};

/// Settles a result by the rule in [`crate::results::ingest`]. It is committed when this returns.
pub async fn accept(db: &Db, agent: &str, mut outcome: Outcome) -> Result<Settled> {
    let id = RunId::from(outcome.run);
    let requested = verdicts::requested(&db.read, &id).await?;
    let Some((phase, holder)) = retries::phase_and_agent(&mut *db.read.acquire().await?, &id).await? else {
        return Err(Error::NotFound(format!("run {id}")));
    };
    let is_expected = if requested.generators.is_empty() {
        holder.as_deref() == Some(agent)
    } else {
        parts::list(&db.read, &id).await?.iter().any(|row| row.agent == agent)
    };
    if !is_expected {
        return Ok(Settled::not_assigned(&id, agent));
    }
    let is_open = !matches!(phase, Phase::Finished | Phase::Failed | Phase::Cancelled);
    if is_open {
        profiles::rewrite_all(&mut outcome).await?;
    } else {
        // It comes too late: its profiles are not even read.
        outcome.profiled = None;
    }
    let outcome = &outcome;
    if outcome.ended == Ended::Finished && !outcome.generators.is_empty() {
        settle_cluster(db, agent, outcome, requested).await
    } else if requested.generators.is_empty() {
        ingest::settle(db, agent, outcome, requested, Evidence::from_outcome(outcome)).await
    } else {
        settle::settle(db, agent, outcome, &requested).await
    }
}

/// Settles a run whose agent had the load generated in its cluster.
async fn settle_cluster(db: &Db, agent: &str, outcome: &Outcome, requested: RunSpec) -> Result<Settled> {
    let (host, generators) = AgentPart::of_cluster(agent, outcome);
    match merge::merge(&host, &generators) {
        Ok(Merged { outcome: merged, evidence }) => {
            let merged = Outcome { times: outcome.times.clone(), ..merged };
            ingest::settle(db, agent, &merged, requested, evidence).await
        }
        Err(reason) => {
            let ended = Ended::Failed { reason, cause: Cause::Generator };
            let failed = Outcome { ended, generators: Vec::new(), ..outcome.clone() };
            let evidence = Evidence::from_outcome(&failed);
            ingest::settle(db, agent, &failed, requested, evidence).await
        }
    }
}
