//! Coordinates the participants of distributed runs: handles their arrivals at gates, and fails a run that a
//! participant has left. [`crate::distributed::barrier`] makes the decisions.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_wire::{
    messages::{Gate, ServerMessage},
    now_ms,
};

use crate::{
    app::{
        error::Result,
        ids::RunId,
        state::{AppState, RunChanged},
    },
    distributed::{
        barrier::{Barrier, Step},
        settle,
        store::participants,
    },
    fleet::presence::Presence,
    runs::store::retries::HeldRun,
};

/// The barriers of current runs, in memory only: after a restart of the server the agents report their gates again.
#[derive(Clone, Debug, Default)]
pub struct Barriers(Arc<Mutex<HashMap<brewbench_wire::RunId, Barrier>>>);

impl Barriers {
    fn all(&self) -> MutexGuard<'_, HashMap<brewbench_wire::RunId, Barrier>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the steps of a run's barrier; none without a barrier.
    fn with(&self, run: brewbench_wire::RunId, act: impl FnOnce(&mut Barrier) -> Vec<Step>) -> Vec<Step> {
        self.all().get_mut(&run).map(act).unwrap_or_default()
    }

    /// Drops the barrier of the changed run if it has ended. Without `changed` it checks all runs, as events were
    /// missed.
    pub async fn forget_ended(&self, state: &AppState, changed: Option<&RunChanged>) -> Result<()> {
        let is_affected = |run: &brewbench_wire::RunId| changed.is_none_or(|changed| changed.run == RunId::from(*run));
        let affected: Vec<brewbench_wire::RunId> = self.all().keys().copied().filter(is_affected).collect();
        for run in affected {
            if participants::of(&state.db.read, &run.into()).await?.is_empty() {
                self.all().remove(&run);
            }
        }
        Ok(())
    }
}

/// Coordinates the participants of distributed runs.
#[derive(Clone, Copy, Debug)]
pub struct Coordinator<'a> {
    /// Database and events.
    pub state: &'a AppState,
    /// Sends messages to agents.
    pub presence: &'a Presence,
    /// The barriers of current runs.
    pub barriers: &'a Barriers,
}

impl Coordinator<'_> {
    /// Handles an agent's arrival at a gate. Cancels the run on an agent that is not one of its participants.
    pub async fn arrive(
        &self,
        agent: &str,
        run: brewbench_wire::RunId,
        gate: Gate,
        base_url: Option<String>,
    ) -> Result<()> {
        let participants = participants::of(&self.state.db.read, &run.into()).await?;
        if !participants.iter().any(|participant| participant.agent == agent && !participant.has_delivered) {
            self.presence.send(agent, ServerMessage::Cancel { run });
            return Ok(());
        }
        let steps = {
            let mut all = self.barriers.all();
            let agents = participants.into_iter().map(|participant| (participant.agent, participant.has_delivered));
            let barrier = all.entry(run).or_insert_with(|| Barrier::new(run, agents));
            barrier.arrive(agent, gate, base_url, now_ms())
        };
        self.carry_out(run, steps).await
    }

    /// Handles the answer of an agent's clock, which is probed for one run at a time.
    pub async fn clock(&self, agent: &str, sent_ms: i64, agent_ms: i64) -> Result<()> {
        let Some(run) = self.presence.busy_with(agent) else { return Ok(()) };
        let steps = self.barriers.with(run, |barrier| barrier.clock(agent, sent_ms, agent_ms, now_ms()));
        self.carry_out(run, steps).await
    }

    /// Handles that an agent's part of a run is stored.
    pub async fn delivered(&self, agent: &str, run: brewbench_wire::RunId) -> Result<()> {
        let steps = self.barriers.with(run, |barrier| barrier.delivered(agent, now_ms()));
        self.carry_out(run, steps).await
    }

    async fn carry_out(&self, run: brewbench_wire::RunId, steps: Vec<Step>) -> Result<()> {
        let id = RunId::from(run);
        for step in steps {
            match step {
                Step::Send(agent, message) => drop(self.presence.send(&agent, message)),
                Step::StoreClock(place, reading) => {
                    let (offset_ms, error_ms) = (reading.offset_ms, reading.error_ms);
                    let place = i64::try_from(place).unwrap_or(i64::MAX);
                    participants::store_clock(&self.state.db.write, &id, place, offset_ms, error_ms).await?;
                }
                Step::Fail(why) => give_up(self.state, &id, &why).await?,
            }
        }
        Ok(())
    }
}

/// Fails a run that a participant has left, as its load is no longer complete. The other participants are stopped, and
/// the run is retried if its plan allows it.
pub async fn give_up(state: &AppState, run: &RunId, why: &str) -> Result<()> {
    if settle::fail(&state.db, run, why).await? {
        tracing::warn!(run = run.as_str(), why, "failed a distributed run");
        let experiment_id = participants::experiment_of(&state.db.read, run).await?;
        publish_change(state, &HeldRun { id: run.clone(), experiment_id });
        state.work.notify_one();
    }
    Ok(())
}

/// Publishes that a run has changed.
pub(crate) fn publish_change(state: &AppState, held: &HeldRun) {
    state.events.publish(RunChanged { run: held.id.clone(), experiment: held.experiment_id.clone() });
}
