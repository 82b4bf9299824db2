//! Runs that several agents do: what they say at their gates, and what becomes of a run of which one falls out. What is
//! said to them is decided by [`crate::distributed::barrier`].

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_agent::wire::{
    self,
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
        barrier::{Meeting, Step},
        settle,
        store::participants,
    },
    fleet::presence::Presence,
    runs::store::retries::HeldRun,
};

/// The meetings that go on. They live in memory: after a server's start those who take part say again where they are.
#[derive(Clone, Debug, Default)]
pub struct Meetings(Arc<Mutex<HashMap<wire::RunId, Meeting>>>);

impl Meetings {
    fn all(&self) -> MutexGuard<'_, HashMap<wire::RunId, Meeting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What follows for the run, where there is a meeting of it.
    fn with(&self, run: wire::RunId, act: impl FnOnce(&mut Meeting) -> Vec<Step>) -> Vec<Step> {
        self.all().get_mut(&run).map(act).unwrap_or_default()
    }

    /// Forgets the meetings of runs that have ended: of the one that has changed, or of any if that was missed.
    pub async fn forget_ended(&self, state: &AppState, changed: Option<&RunChanged>) -> Result<()> {
        let is_meant = |run: &wire::RunId| changed.is_none_or(|changed| changed.run == RunId::from(*run));
        let meant: Vec<wire::RunId> = self.all().keys().copied().filter(is_meant).collect();
        for run in meant {
            if participants::of(&state.db.read, &run.into()).await?.is_empty() {
                self.all().remove(&run);
            }
        }
        Ok(())
    }
}

/// Everything that decides about those who do a run together.
#[derive(Clone, Copy, Debug)]
pub struct Together<'a> {
    /// Database and events.
    pub state: &'a AppState,
    /// To speak to them.
    pub presence: &'a Presence,
    /// Where they meet.
    pub meetings: &'a Meetings,
}

impl Together<'_> {
    /// An agent is at a gate of a run. One that takes no part in it is told to stop.
    pub async fn arrive(&self, agent: &str, run: wire::RunId, gate: Gate, base_url: Option<String>) -> Result<()> {
        let crew = participants::of(&self.state.db.read, &run.into()).await?;
        if !crew.iter().any(|member| member.agent == agent && !member.has_delivered) {
            self.presence.send(agent, ServerMessage::Cancel { run });
            return Ok(());
        }
        let steps = {
            let mut all = self.meetings.all();
            let members = crew.into_iter().map(|member| (member.agent, member.has_delivered));
            let meeting = all.entry(run).or_insert_with(|| Meeting::new(run, members));
            meeting.arrive(agent, gate, base_url, now_ms())
        };
        self.carry_out(run, steps).await
    }

    /// An agent's clock has said something; it is asked for one run at a time.
    pub async fn clock(&self, agent: &str, asked_ms: i64, said_ms: i64) -> Result<()> {
        let Some(run) = self.presence.busy_with(agent) else { return Ok(()) };
        let steps = self.meetings.with(run, |meeting| meeting.clock(agent, asked_ms, said_ms, now_ms()));
        self.carry_out(run, steps).await
    }

    /// An agent's part of a run is stored.
    pub async fn delivered(&self, agent: &str, run: wire::RunId) -> Result<()> {
        let steps = self.meetings.with(run, |meeting| meeting.delivered(agent, now_ms()));
        self.carry_out(run, steps).await
    }

    async fn carry_out(&self, run: wire::RunId, steps: Vec<Step>) -> Result<()> {
        let id = RunId::from(run);
        for step in steps {
            match step {
                Step::Say(agent, message) => drop(self.presence.send(&agent, message)),
                Step::Keep(place, reading) => {
                    let (offset_ms, error_ms) = (reading.offset_ms, reading.error_ms);
                    let place = i64::try_from(place).unwrap_or(i64::MAX);
                    participants::keep_clock(&self.state.db.write, &id, place, offset_ms, error_ms).await?;
                }
                Step::Fail(why) => give_up(self.state, &id, &why).await?,
            }
        }
        Ok(())
    }
}

/// Ends a run of which one has fallen out; its figures would be of another load. The others are stopped, and it is done
/// again if it may be.
pub async fn give_up(state: &AppState, run: &RunId, why: &str) -> Result<()> {
    if settle::fail(&state.db, run, why).await? {
        tracing::warn!(run = run.as_str(), why, "a run of several is given up");
        let experiment_id = participants::experiment_of(&state.db.read, run).await?;
        tell(state, &HeldRun { id: run.clone(), experiment_id });
        state.work.notify_one();
    }
    Ok(())
}

pub(crate) fn tell(state: &AppState, held: &HeldRun) {
    state.events.tell(RunChanged { run: held.id.clone(), experiment: held.experiment_id.clone() });
}
