//! Accepts an agent's result: of a run on one machine, or its part of a distributed run.

use brewbench_agent::wire::outcome::Outcome;

use super::settle;
use crate::{
    app::{db::Db, error::Result},
    results::{ingest, settlement::Settled, store::verdicts},
};

/// Settles a result by the rule in [`crate::results::ingest`]. It is committed when this returns.
pub async fn accept(db: &Db, agent: &str, outcome: &Outcome) -> Result<Settled> {
    let requested = verdicts::requested(&db.read, &outcome.run.into()).await?;
    if requested.generators.is_empty() {
        ingest::settle(db, agent, outcome, requested).await
    } else {
        settle::settle(db, agent, outcome, &requested).await
    }
}
