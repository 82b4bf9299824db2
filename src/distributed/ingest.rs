//! Accepts an agent's result: of a run on one machine or in its cluster, or its part of a distributed run.

use brewbench_agent::wire::outcome::{Cause, Ended, Outcome};

use super::{
    merge::{self, Merged},
    model::Part,
    settle,
};
use crate::{
    app::{db::Db, error::Result},
    results::{evidence::Evidence, ingest, settlement::Settled, store::verdicts},
};

/// Settles a result by the rule in [`crate::results::ingest`]. It is committed when this returns.
pub async fn accept(db: &Db, agent: &str, outcome: &Outcome) -> Result<Settled> {
    let requested = verdicts::requested(&db.read, &outcome.run.into()).await?;
    if outcome.ended == Ended::Finished && !outcome.generators.is_empty() {
        settle_cluster(db, agent, outcome, requested).await
    } else if requested.generators.is_empty() {
        ingest::settle(db, agent, outcome, requested, Evidence::from_outcome(outcome)).await
    } else {
        settle::settle(db, agent, outcome, &requested).await
    }
}

/// Settles a run whose agent had the load generated in its cluster.
async fn settle_cluster(db: &Db, agent: &str, outcome: &Outcome, requested: verdicts::Requested) -> Result<Settled> {
    let (host, generators) = Part::of_cluster(agent, outcome);
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
