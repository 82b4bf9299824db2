//! Who is connected now. Lives in memory: a server that starts anew has nobody until they dial in.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use brewbench_agent::wire::{
    RunId,
    messages::{Hello, ServerMessage},
};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// A connected agent.
#[derive(Clone, Debug)]
pub struct Connected {
    /// Tells one connection of an agent from the next.
    pub connection: Uuid,
    /// What it said of itself.
    pub hello: Hello,
    /// What it was given and has not reported done.
    pub busy: Option<RunId>,
    /// Runs that it would not take in this connection.
    pub declined: HashSet<RunId>,
    /// Its clock minus ours when it connected, ms.
    pub clock_offset_ms: i64,
    /// To its socket.
    pub outbox: mpsc::UnboundedSender<ServerMessage>,
    /// Ends its connection.
    pub close: CancellationToken,
}

impl Connected {
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
pub struct Presence(Arc<Mutex<BTreeMap<String, Connected>>>);

impl Presence {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Connected>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Everybody who is connected, by name.
    pub fn list(&self) -> Vec<(String, Connected)> {
        self.all().iter().map(|(name, connected)| (name.clone(), connected.clone())).collect()
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
    }

    /// Notes what an agent works on, unless it has connected anew meanwhile.
    pub fn set_busy(&self, name: &str, connection: Uuid, busy: Option<RunId>) {
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.busy = busy;
        }
    }

    /// Notes that an agent would not take a run; it is free for others.
    pub fn decline(&self, name: &str, connection: Uuid, run: RunId) {
        if let Some(connected) = self.all().get_mut(name).filter(|connected| connected.connection == connection) {
            connected.busy = None;
            connected.declined.insert(run);
        }
    }

    /// Ends an agent's connection, if it has one.
    pub fn close(&self, name: &str) {
        if let Some(connected) = self.all().get(name) {
            connected.close.cancel();
        }
    }

    /// Says something to an agent; false if it is not connected.
    pub fn send(&self, name: &str, message: ServerMessage) -> bool {
        self.all().get(name).is_some_and(|connected| connected.outbox.send(message).is_ok())
    }
}
