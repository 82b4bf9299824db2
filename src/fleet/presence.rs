//! Who is connected now. Lives in memory: a server that starts anew has nobody until they dial in.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_agent::wire::{
    self,
    job::{Job, Scenario},
    messages::{Finding, Hello, ServerMessage},
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::{catalog::model::Engine, fleet::model::Standing};

/// A connected agent.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Tells one connection of an agent from the next.
    pub connection: Uuid,
    /// What it said of itself; shared, as all agents are looked through for every run.
    pub hello: Arc<Hello>,
    /// What it may take.
    pub standing: Standing,
    /// What people call it; shared as well.
    pub labels: Arc<[String]>,
    /// What it was given and has not reported done.
    pub busy: Option<wire::RunId>,
    /// The script that it looks at; a run waits for that.
    pub inspecting: Option<Uuid>,
    /// Runs that it would not take in this connection.
    pub declined: HashSet<wire::RunId>,
    /// Its clock minus ours when it connected, ms.
    pub clock_offset_ms: i64,
    /// To its socket.
    pub outbox: mpsc::UnboundedSender<ServerMessage>,
    /// Changes whenever it says something, and is gone with it.
    pub ears: watch::Receiver<()>,
    /// Ends its connection.
    pub close: CancellationToken,
}

impl Connected {
    /// Whether it may be given something: it takes runs and has nothing to do.
    pub fn is_free(&self) -> bool {
        self.standing == Standing::Enabled && self.busy.is_none() && self.inspecting.is_none()
    }

    /// Whether people call it this.
    pub fn has_label(&self, label: &str) -> bool {
        self.labels.iter().any(|own| own == label)
    }

    /// Why it can't give a machine size, if it can't.
    pub fn lacks(&self, vcpus: f64, memory_bytes: u64) -> Option<String> {
        let machine = &self.hello.machine;
        if vcpus > f64::from(machine.cores) {
            return Some(format!("has {} cores", machine.cores));
        }
        (memory_bytes > machine.memory_bytes)
            .then(|| format!("has {:.1} GiB of memory", machine.memory_bytes as f64 / (1024.0 * 1024.0 * 1024.0)))
    }

    /// Whether it offers a target of this name.
    pub fn offers(&self, target: &str) -> bool {
        self.hello.targets.iter().any(|offer| offer.name == target)
    }
}

/// All connected agents by name; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Presence(Arc<Everybody>);

#[derive(Debug, Default)]
struct Everybody {
    agents: Mutex<BTreeMap<String, Connected>>,
    /// Who waits for an answer, by question and the connection that it went to.
    waiting: Mutex<Vec<(Uuid, Uuid, oneshot::Sender<Finding>)>>,
}

/// A script that an agent was asked to look at.
#[derive(Debug)]
pub struct Question {
    /// Who was asked.
    pub agent: String,
    /// In which connection.
    pub connection: Uuid,
    /// Its load generator.
    pub engine: Engine,
    /// Fails when the connection ends.
    pub answer: oneshot::Receiver<Finding>,
}

impl Presence {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Connected>> {
        self.0.agents.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Names of the targets that connected agents offer.
    pub fn offered(&self) -> HashSet<String> {
        let all = self.all();
        all.values().flat_map(|agent| agent.hello.targets.iter().map(|offer| offer.name.clone())).collect()
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<(Uuid, Uuid, oneshot::Sender<Finding>)>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the first free agent that is willing, told by its name and by whether it takes any script, to look at one.
    /// It is not free until [`Presence::answered`].
    pub fn ask(&self, id: Uuid, scenario: &Scenario, willing: impl Fn(&str, bool) -> bool) -> Option<Question> {
        let mut all = self.all();
        let free =
            |(name, agent): &(&String, &mut Connected)| agent.is_free() && willing(name, agent.hello.any_scenario);
        let (name, agent) = all.iter_mut().find(free)?;
        let engine = Engine::of(&agent.hello.engines.first()?.version());
        agent.inspecting = Some(id);
        let (sender, answer) = oneshot::channel();
        self.waiting().push((id, agent.connection, sender));
        // If the socket has just closed, leaving ends the wait.
        let _ = agent.outbox.send(ServerMessage::Inspect { id, scenario: Box::new(scenario.clone()) });
        Some(Question { agent: name.clone(), connection: agent.connection, engine, answer })
    }

    /// Hands an answer to who waits for it.
    pub fn answer(&self, id: Uuid, finding: Finding) {
        let mut waiting = self.waiting();
        if let Some(place) = waiting.iter().position(|(asked, ..)| *asked == id) {
            let _ = waiting.swap_remove(place).2.send(finding);
        }
    }

    /// Notes that nobody waits for this connection's look at a script any more: the agent is free for runs.
    pub fn answered(&self, name: &str, connection: Uuid) {
        self.waiting().retain(|(_, of, _)| *of != connection);
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.inspecting = None;
        }
    }

    /// Everybody who is connected, by name.
    pub fn list(&self) -> Vec<(String, Connected)> {
        self.all().iter().map(|(name, connected)| (name.clone(), connected.clone())).collect()
    }

    /// Whether anybody may be given something.
    pub fn any_free(&self) -> bool {
        self.all().values().any(Connected::is_free)
    }

    /// Who works on what, by name.
    pub fn working(&self) -> Vec<(String, wire::RunId)> {
        self.all().iter().filter_map(|(name, connected)| Some((name.clone(), connected.busy?))).collect()
    }

    /// Whether this agent is connected.
    pub fn has(&self, name: &str) -> bool {
        self.all().contains_key(name)
    }

    /// Enters an agent. The newest connection counts: one that was still there under this name is closed.
    pub fn enter(&self, name: &str, connected: Connected) {
        if let Some(old) = self.all().insert(name.to_owned(), connected) {
            old.close.cancel();
        }
    }

    /// Takes an agent out, unless it has connected anew meanwhile.
    pub fn leave(&self, name: &str, connection: Uuid) {
        let mut all = self.all();
        if all.get(name).is_some_and(|connected| connected.connection == connection) {
            all.remove(name);
        }
        self.waiting().retain(|(_, of, _)| *of != connection);
    }

    /// Gives a run to an agent, which is busy from now on; false if it has gone or connected anew meanwhile.
    pub fn start(&self, name: &str, connection: Uuid, job: Job) -> bool {
        let mut all = self.all();
        let Some(connected) = all.get_mut(name).filter(|connected| connected.connection == connection) else {
            return false;
        };
        connected.busy = Some(job.run);
        // If the socket has just closed, the agent will say at its next connection that it does not hold the run.
        let _ = connected.outbox.send(ServerMessage::Start(Box::new(job)));
        true
    }

    /// Notes that an agent is done with a run: it is free for others, unless it works on another one already.
    pub fn done(&self, name: &str, connection: Uuid, run: wire::RunId) {
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection)
            && connected.busy == Some(run)
        {
            connected.busy = None;
        }
    }

    /// Notes that an agent would not take a run; it gets others, and this one not in this connection.
    pub fn decline(&self, name: &str, connection: Uuid, run: wire::RunId) {
        self.done(name, connection, run);
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.declined.insert(run);
        }
    }

    /// Ends an agent's connection, if it has one; what it works on is stopped. Nothing is given to it from now on.
    pub fn cut(&self, name: &str) {
        let Some(connected) = self.all().remove(name) else { return };
        if let Some(run) = connected.busy {
            let _ = connected.outbox.send(ServerMessage::Cancel { run });
        }
        connected.close.cancel();
    }

    /// Ends an agent's connection, if it has one, so that it connects anew; what it works on goes on.
    pub fn hang_up(&self, name: &str) {
        if let Some(connected) = self.all().remove(name) {
            connected.close.cancel();
        }
    }

    /// Notes what an agent may take from now on.
    pub fn set_standing(&self, name: &str, standing: Standing) {
        if let Some(connected) = self.all().get_mut(name) {
            connected.standing = standing;
        }
    }

    /// Notes what people call an agent from now on.
    pub fn set_labels(&self, name: &str, labels: &[String]) {
        if let Some(connected) = self.all().get_mut(name) {
            connected.labels = labels.into();
        }
    }

    /// The connection under this name of another life than this one: of another process with the same key. A process
    /// that does not say which it is counts as another one.
    pub fn rival(&self, name: &str, life: Option<Uuid>) -> Option<Connected> {
        let other = |connected: &&Connected| life.is_none() || connected.hello.life != life;
        self.all().get(name).filter(other).cloned()
    }

    /// What an agent was given and has not reported done.
    pub fn busy_with(&self, name: &str) -> Option<wire::RunId> {
        self.all().get(name)?.busy
    }

    /// Says something to an agent; false if it is not connected.
    pub fn send(&self, name: &str, message: ServerMessage) -> bool {
        self.all().get(name).is_some_and(|connected| connected.outbox.send(message).is_ok())
    }
}
