//! The invariants of a world, at any time and after it has settled.

use std::collections::{BTreeMap, BTreeSet};

use proptest::{prelude::TestCaseError, prop_assert, prop_assert_eq};

use super::{AGENTS, world::World};
use crate::{app::ids::RunId, fleet::presence::Connected};

/// Fault-free rounds that a world needs at most, with or without open runs.
const MAX_ROUNDS: usize = 40;

/// Further rounds for each run that has not ended: a distributed run takes about eight, and may be retried twice.
const MAX_ROUNDS_PER_RUN: usize = 30;

/// A stored run.
#[derive(sqlx::FromRow)]
pub struct Stored {
    pub id: RunId,
    retry_of: Option<RunId>,
    pub phase: String,
    verdict: Option<String>,
    leased: bool,
    pub is_distributed: bool,
}

impl Stored {
    fn counts(&self) -> bool {
        self.phase == "finished" && self.verdict.as_deref() != Some("invalid")
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase.as_str(), "finished" | "failed" | "cancelled" | "lost")
    }
}

impl World {
    pub async fn stored(&self) -> Vec<Stored> {
        let all = "select id, retry_of, phase, verdict, generators <> '[]' as is_distributed,
                       exists (select 1 from lease where run_id = run.id) as leased
                   from run order by seq";
        sqlx::query_as(all).fetch_all(&self.server.state.db.read).await.expect("runs")
    }

    /// Returns the phases of all runs.
    pub async fn phases(&self) -> Vec<String> {
        self.stored().await.into_iter().map(|run| run.phase).collect()
    }

    /// Returns run and agent of each stored part.
    async fn parts(&self) -> BTreeSet<(RunId, String)> {
        let all = "select run_id, agent.name from run_part join agent on agent.id = agent_id where outcome is not null";
        sqlx::query_as(all).fetch_all(&self.server.state.db.read).await.expect("parts").into_iter().collect()
    }

    /// Checks what must hold at any time.
    pub async fn check(&mut self) -> Result<(), TestCaseError> {
        let stored = self.stored().await;
        for (id, phase) in &self.acknowledged {
            let current = stored.iter().find(|run| run.id == *id).map(|run| run.phase.as_str());
            prop_assert_eq!(current, Some(phase.as_str()), "an acknowledged result is gone");
        }
        let lost = self.acknowledged_parts.difference(&self.parts().await).next().cloned();
        prop_assert_eq!(lost, None, "an acknowledged part is gone");
        for run in &stored {
            let final_phase = matches!(run.phase.as_str(), "finished" | "failed" | "cancelled");
            let before = self.ended.get(&run.id);
            prop_assert!(before.is_none_or(|before| *before == run.phase), "{} became {}", run.id, run.phase);
            if final_phase {
                self.ended.insert(run.id.clone(), run.phase.clone());
            }
            prop_assert!(!(run.has_ended() && run.leased), "a run that has ended is leased");
        }
        let mut counting: BTreeMap<&RunId, usize> = BTreeMap::new();
        for run in stored.iter().filter(|run| run.counts()) {
            *counting.entry(original(&stored, run)).or_default() += 1;
        }
        prop_assert!(counting.values().all(|count| *count == 1), "a repetition counts twice");
        Ok(())
    }

    /// Plays rounds without faults until every run has ended, every outcome is delivered and every agent is free.
    pub async fn settle(&mut self) -> Result<(), TestCaseError> {
        let open = self.stored().await.iter().filter(|run| !run.has_ended()).count();
        for round in 0..MAX_ROUNDS + open * MAX_ROUNDS_PER_RUN {
            for agent in 0..AGENTS {
                self.work_without_faults(agent).await;
            }
            self.assign().await;
            self.handle_changes().await;
            if round % 10 == 9 {
                // Every agent that holds a lease has renewed it by now.
                self.pass(10).await;
                self.handle_changes().await;
            }
            self.check().await?;
            if self.is_settled().await {
                return Ok(());
            }
        }
        let stored = self.stored().await;
        let open: Vec<_> = stored.iter().filter(|run| !run.has_ended()).map(|run| (&run.id, &run.phase)).collect();
        let busy: Vec<_> =
            self.presence.list().into_iter().map(|(name, agent)| (name, agent.busy, agent.declined)).collect();
        let known: Vec<_> = self.agents.iter().map(|agent| (agent.running(), agent.known_runs())).collect();
        Err(TestCaseError::fail(format!("the world does not settle: {open:?}, {busy:?}, {known:?}")))
    }

    async fn is_settled(&self) -> bool {
        let free = |(_, agent): &(String, Connected)| agent.is_free();
        self.stored().await.iter().all(Stored::has_ended)
            && self.agents.iter().all(|agent| agent.is_idle() && agent.spool.is_empty())
            && self.presence.list().iter().all(free)
    }
}

/// Returns the first run of a chain of retries.
fn original<'a>(stored: &'a [Stored], run: &'a Stored) -> &'a RunId {
    let before = run.retry_of.as_ref().and_then(|before| stored.iter().find(|other| other.id == *before));
    before.map_or(&run.id, |before| original(stored, before))
}
