//! Connected agents, in memory. After a restart the list is empty until agents reconnect.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_wire::{
    job::Job,
    messages::{Finding, Hello, ServerMessage},
    scenario::Scenario,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{app::ids::AgentId, catalog::model::Engine, fleet::model::Availability};

/// A connected agent.
#[derive(Clone, Debug)]
pub struct Connected {
    /// The agent's id.
    pub id: AgentId,
    /// Identifies this connection of the agent.
    pub connection: Uuid,
    /// What it reported about itself; shared, because placement reads all agents for every run.
    pub hello: Arc<Hello>,
    /// Whether it gets runs.
    pub availability: Availability,
    /// Its labels; shared as well.
    pub labels: Arc<[String]>,
    /// Its current run.
    pub busy: Option<brewbench_wire::RunId>,
    /// Why it takes no runs, if so.
    pub fault: Option<String>,
    /// The script that it checks; it gets no runs during the check.
    pub inspecting: Option<Uuid>,
    /// Runs that it declined in this connection.
    pub declined: HashSet<brewbench_wire::RunId>,
    /// Its clock minus the server's when it connected, ms.
    pub clock_offset_ms: i64,
    /// Messages to its socket.
    pub outbox: mpsc::UnboundedSender<ServerMessage>,
    /// Changes with each message from it; closes with the connection.
    pub activity: watch::Receiver<()>,
    /// Closes its connection.
    pub close: CancellationToken,
}

impl Connected {
    /// Returns whether it can get a run: it is enabled and idle.
    pub fn is_free(&self) -> bool {
        self.takes_runs() && self.busy.is_none() && self.inspecting.is_none()
    }

    /// Returns whether it gets runs once it is idle.
    pub fn takes_runs(&self) -> bool {
        self.availability == Availability::Enabled && self.fault.is_none()
    }

    /// Returns whether it has a label.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Returns whether it offers a target.
    pub fn offers(&self, target: &str) -> bool {
        self.hello.targets.iter().any(|offer| offer.name == target)
    }
}

/// All connected agents by name; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Presence(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    agents: Mutex<BTreeMap<String, Connected>>,
    /// Pending inspections: their id, the agent's connection, and where the finding goes.
    waiting: Mutex<Vec<(Uuid, Uuid, oneshot::Sender<Finding>)>>,
}

/// A started check of a script by an agent.
#[derive(Debug)]
pub struct Inspection {
    /// Name of the agent.
    pub agent: String,
    /// The agent's connection.
    pub connection: Uuid,
    /// Its load generator.
    pub engine: Engine,
    /// The finding; fails if the connection ends.
    pub finding: oneshot::Receiver<Finding>,
}

impl Presence {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Connected>> {
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of targets that connected agents offer.
    pub fn offered(&self) -> HashSet<String> {
        let all = self.all();
        all.values().flat_map(|agent| agent.hello.targets.iter().map(|offer| offer.name.clone())).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Uuid, Uuid, oneshot::Sender<Finding>)>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the first free agent that is able to check a script. `is_able` gets its name and whether it runs any
    /// script. The agent is not free until [`Presence::end_inspection`].
    pub fn start_inspection(
        &self,
        id: Uuid,
        scenario: &Scenario,
        is_able: impl Fn(&str, bool) -> bool,
    ) -> Option<Inspection> {
        let mut all = self.all();
        let usual = scenario.engines().first().copied().unwrap_or_default();
        let free = |(name, agent): (&'_ String, &'_ Connected)| {
            let offer = agent.hello.engines.iter().find(|engine| engine.name == usual.as_str())?;
            let is_able = agent.is_free() && is_able(name, agent.hello.any_scenario);
            is_able.then(|| (name.clone(), Engine::from_report(&offer.version())))
        };
        let (name, engine) = all.iter().find_map(free)?;
        let agent = all.get_mut(&name)?;
        agent.inspecting = Some(id);
        let (sender, finding) = oneshot::channel();
        self.waiting().push((id, agent.connection, sender));
        // If the socket has just closed, `leave` drops the sender, which ends the wait.
        let _ = agent.outbox.send(ServerMessage::Inspect { id, scenario: Box::new(scenario.clone()) });
        Some(Inspection { agent: name, connection: agent.connection, engine, finding })
    }

    /// Passes a finding to the waiting inspection.
    pub fn deliver_finding(&self, id: Uuid, finding: Finding) {
        let mut waiting = self.waiting();
        if let Some(index) = waiting.iter().position(|(inspection, ..)| *inspection == id) {
            let _ = waiting.swap_remove(index).2.send(finding);
        }
    }

    /// Ends the inspection of a connection, so that the agent is free for runs.
    pub fn end_inspection(&self, name: &str, connection: Uuid) {
        self.waiting().retain(|(_, other, _)| *other != connection);
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.inspecting = None;
        }
    }

    /// Returns all connected agents by name.
    pub fn list(&self) -> Vec<(String, Connected)> {
        self.all().iter().map(|(name, connected)| (name.clone(), connected.clone())).collect()
    }

    /// Returns whether an agent is free.
    pub fn any_free(&self) -> bool {
        self.all().values().any(Connected::is_free)
    }

    /// Returns busy agents by name with their runs.
    pub fn working(&self) -> Vec<(String, brewbench_wire::RunId)> {
        self.all().iter().filter_map(|(name, connected)| Some((name.clone(), connected.busy?))).collect()
    }

    /// Returns whether an agent is connected.
    pub fn has(&self, name: &str) -> bool {
        self.all().contains_key(name)
    }

    /// Returns why a connected agent takes no runs, if so.
    pub fn fault(&self, name: &str) -> Option<String> {
        self.all().get(name)?.fault.clone()
    }

    /// Stores why an agent takes no runs, `None` if it does, and returns whether that is new. Once the fault is gone, it
    /// is offered again what it declined.
    pub fn set_fault(&self, name: &str, connection: Uuid, fault: Option<String>) -> bool {
        let mut all = self.all();
        let Some(connected) = all.get_mut(name).filter(|connected| connected.connection == connection) else {
            return false;
        };
        if connected.fault == fault {
            return false;
        }
        if fault.is_none() {
            connected.declined.clear();
        }
        connected.fault = fault;
        true
    }

    /// Adds an agent. The newest connection counts; an older one with the same name is closed.
    pub fn enter(&self, name: &str, connected: Connected) {
        if let Some(old) = self.all().insert(name.to_owned(), connected) {
            old.close.cancel();
        }
    }

    /// Removes an agent unless it has reconnected.
    pub fn leave(&self, name: &str, connection: Uuid) {
        let mut all = self.all();
        if all.get(name).is_some_and(|connected| connected.connection == connection) {
            all.remove(name);
        }
        self.waiting().retain(|(_, other, _)| *other != connection);
    }

    /// Sends a run to an agent and marks it busy; false if that connection has ended.
    pub fn start(&self, name: &str, connection: Uuid, job: Job) -> bool {
        let mut all = self.all();
        let Some(connected) = all.get_mut(name).filter(|connected| connected.connection == connection) else {
            return false;
        };
        connected.busy = Some(job.run);
        // If the socket has just closed, the agent reports at its next connection that it does not have the run.
        let _ = connected.outbox.send(ServerMessage::Start(Box::new(job)));
        true
    }

    /// Marks an agent as free after a run, unless it already has another one.
    pub fn done(&self, name: &str, connection: Uuid, run: brewbench_wire::RunId) {
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection)
            && connected.busy == Some(run)
        {
            connected.busy = None;
        }
    }

    /// Records that an agent declined a run. It does not get this run again in this connection.
    pub fn decline(&self, name: &str, connection: Uuid, run: brewbench_wire::RunId) {
        self.done(name, connection, run);
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.declined.insert(run);
        }
    }

    /// Disconnects an agent and cancels its run.
    pub fn disconnect(&self, name: &str) {
        let Some(connected) = self.all().remove(name) else { return };
        if let Some(run) = connected.busy {
            let _ = connected.outbox.send(ServerMessage::Cancel { run });
        }
        connected.close.cancel();
    }

    /// Closes an agent's connection so that it reconnects; its run continues.
    pub fn force_reconnect(&self, name: &str) {
        if let Some(connected) = self.all().remove(name) {
            connected.close.cancel();
        }
    }

    /// Sets whether an agent gets runs.
    pub fn set_availability(&self, name: &str, availability: Availability) {
        if let Some(connected) = self.all().get_mut(name) {
            connected.availability = availability;
        }
    }

    /// Sets the labels of an agent.
    pub fn set_labels(&self, name: &str, labels: &[String]) {
        if let Some(connected) = self.all().get_mut(name) {
            connected.labels = labels.into();
        }
    }

    /// Returns the connection of another process with the same key: one with another `life`, or with an unknown one.
    pub fn rival(&self, name: &str, life: Option<Uuid>) -> Option<Connected> {
        let other = |connected: &&Connected| life.is_none() || connected.hello.life != life;
        self.all().get(name).filter(other).cloned()
    }

    /// Returns the current run of an agent.
    pub fn busy_with(&self, name: &str) -> Option<brewbench_wire::RunId> {
        self.all().get(name)?.busy
    }

    /// Sends a message to an agent; false if it is not connected.
    pub fn send(&self, name: &str, message: ServerMessage) -> bool {
        self.all().get(name).is_some_and(|connected| connected.outbox.send(message).is_ok())
    }
}
