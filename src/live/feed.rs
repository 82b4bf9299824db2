//! Runs in progress, in memory: the series of each so far, and its subscribers.
//!
//! Agents send the series so far again after a restart of the server. Points replace all later ones (see [`Delta`]),
//! from the agent to the page, so that a reconnect doubles nothing. The agents' channel never waits for a subscriber.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use brewbench_wire::series::{DecodeError, Delta, Second, Series, Usage, WindowKind};
use tokio::sync::{broadcast, watch};

use crate::live::{
    participants::{Participant, Participants},
    series_buffer::{self, After, LiveSecond, SeriesBuffer},
};

/// Updates that may wait for a subscriber, about 15 s; a slower one loads the whole series again.
const MAX_WAITING: usize = 32;

/// Maximum characters of a step.
const MAX_STEP: usize = 200;

/// A rate older than this is outdated.
const FRESH: Duration = Duration::from_secs(5);

/// All runs that agents report; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct LiveFeed(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    runs: Mutex<HashMap<brewbench_wire::RunId, FeedEntry>>,
    opened: watch::Sender<()>,
}

#[derive(Debug)]
struct FeedEntry {
    source: Source,
    /// The series that subscribers get.
    series: SeriesBuffer,
    /// What takes long in its preparation.
    step: Option<String>,
    received_at: Instant,
    updates: broadcast::Sender<Arc<Update>>,
}

/// The agents that report a run.
#[derive(Debug)]
enum Source {
    /// The only agent of the run.
    Agent(String),
    /// The participants of a distributed run.
    Participants(Box<Participants>),
}

impl Source {
    fn has(&self, agent: &str) -> bool {
        match self {
            Self::Agent(one) => one == agent,
            Self::Participants(participants) => participants.has(agent),
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::Agent(one) => vec![one],
            Self::Participants(participants) => participants.names().collect(),
        }
    }

    /// Returns the agent that runs the target.
    fn host(&self) -> &str {
        match self {
            Self::Agent(one) => one,
            Self::Participants(participants) => participants.host(),
        }
    }
}

/// Points that replace all later ones of their run, also of another part. A kind without points replaces nothing.
#[derive(Debug)]
pub struct Update {
    /// The part that they belong to.
    pub part: WindowKind,
    /// Start of the run's first part by the agent's clock, unix ms.
    pub start_ms: i64,
    /// Start of this part, ms after the first.
    pub offset_ms: i64,
    /// Load and latencies per second.
    pub seconds: Tail<Second, u32>,
    /// Samples of resource use.
    pub usage: Tail<Usage, i32>,
    /// A subscriber that sends this mark has everything up to here: unix ms by the agent's clock.
    pub mark: i64,
    pub(crate) json: OnceLock<String>,
}

/// New points of a kind.
#[derive(Debug)]
pub struct Tail<T, At> {
    /// Later points are replaced, ms after the start of the run; all, if None.
    pub after_ms: Option<i64>,
    /// Time of the previous point of the part, ms after its start.
    pub before: Option<At>,
    /// The points in ascending order.
    pub points: Vec<T>,
}

/// The current rate of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests per second.
    pub rps: f64,
    /// Failed requests per second.
    pub failed_rps: f64,
}

/// Returns what a subscriber with everything up to `mark` lacks of a complete series.
pub fn since(series: Series, mark: Option<i64>) -> Vec<Update> {
    SeriesBuffer::from(series).since(mark)
}

impl Update {
    /// Returns the update as JSON, serialized on first use.
    pub fn json(&self, serialize: impl FnOnce(&Self) -> String) -> &str {
        self.json.get_or_init(|| serialize(self))
    }
}

impl LiveFeed {
    /// Opens a run that an agent starts to report; closes any other run of the agent.
    pub fn open(&self, run: brewbench_wire::RunId, agent: &str) {
        self.open_for(run, Source::Agent(agent.to_owned()));
    }

    /// Opens a distributed run that its participants start to report; closes any other run of theirs.
    pub fn open_distributed(&self, run: brewbench_wire::RunId, host: Participant, generators: Vec<Participant>) {
        self.open_for(run, Source::Participants(Box::new(Participants::new(host, generators))));
    }

    fn open_for(&self, run: brewbench_wire::RunId, source: Source) {
        let mut runs = self.runs();
        // Participants may start at the same moment: points of the first are kept.
        if runs.get(&run).is_some_and(|entry| entry.source.names() == source.names()) {
            return;
        }
        runs.retain(|_, entry| match &source {
            Source::Agent(agent) => !entry.source.has(agent),
            Source::Participants(participants) => !participants.names().any(|agent| entry.source.has(agent)),
        });
        let (series, updates) = (SeriesBuffer::default(), broadcast::channel(MAX_WAITING).0);
        runs.insert(run, FeedEntry { source, series, step: None, received_at: Instant::now(), updates });
        self.0.opened.send_replace(());
    }

    /// Whether the run is open for this agent.
    pub fn is_open(&self, run: brewbench_wire::RunId, agent: &str) -> bool {
        self.runs().get(&run).is_some_and(|entry| entry.source.has(agent))
    }

    /// Adds points from an agent of a run; fails if they are invalid or too large.
    pub fn receive(&self, agent: &str, delta: &Delta) -> Result<(), DecodeError> {
        // Unpacked before taking the lock, because this is the expensive part.
        let points = series_buffer::unpack(delta)?;
        if let Some(entry) = self.runs().get_mut(&delta.run) {
            let FeedEntry { source, series, received_at, updates, .. } = entry;
            *received_at = Instant::now();
            let update = match source {
                Source::Agent(_) => series.put(After::from_portion(delta), points)?,
                Source::Participants(participants) => {
                    match participants.put(agent, series.series(), After::from_portion(delta), points)? {
                        Some((after, points)) => series.put(after, points)?,
                        None => None,
                    }
                }
            };
            if let Some(update) = update {
                let _ = updates.send(Arc::new(update));
            }
        }
        Ok(())
    }

    /// Stores the current step of the preparation of an open run.
    pub fn set_step(&self, run: brewbench_wire::RunId, step: &str) {
        if let Some(entry) = self.runs().get_mut(&run) {
            entry.step = Some(step.chars().take(MAX_STEP).collect());
        }
    }

    /// Returns the current step of the preparation of a run.
    pub fn step(&self, run: brewbench_wire::RunId) -> Option<String> {
        self.runs().get(&run)?.step.clone()
    }

    /// Forgets a run that has ended or is assigned to another agent.
    pub fn forget(&self, run: brewbench_wire::RunId) {
        self.runs().remove(&run);
    }

    /// Lists all open runs with the agent that runs the target.
    pub fn open_runs(&self) -> Vec<(brewbench_wire::RunId, String)> {
        self.runs().iter().map(|(run, entry)| (*run, entry.source.host().to_owned())).collect()
    }

    /// Returns the series of a run so far; None before its first second has ended.
    pub fn series(&self, run: brewbench_wire::RunId) -> Option<Series> {
        self.runs().get(&run).map(|entry| entry.series.series().clone()).filter(|series| *series != Series::default())
    }

    /// Returns the rate of a run in its last second, unless it is outdated.
    pub fn rate(&self, run: brewbench_wire::RunId) -> Option<Rate> {
        let runs = self.runs();
        runs.get(&run).filter(|entry| entry.received_at.elapsed() < FRESH)?.series.rate()
    }

    /// Returns the last seconds of a run, at most `most`; none before its first second has ended.
    pub fn recent(&self, run: brewbench_wire::RunId, most: usize) -> Vec<LiveSecond> {
        self.runs().get(&run).map(|entry| entry.series.recent(most)).unwrap_or_default()
    }

    /// Subscribes to a run: returns what a subscriber with everything up to `mark` lacks, and all further updates; None
    /// while no agent reports the run.
    pub fn subscribe(
        &self,
        run: brewbench_wire::RunId,
        mark: Option<i64>,
    ) -> Option<(Vec<Update>, broadcast::Receiver<Arc<Update>>)> {
        let runs = self.runs();
        let entry = runs.get(&run)?;
        Some((entry.series.since(mark), entry.updates.subscribe()))
    }

    /// Changes whenever a run is opened.
    pub fn opened(&self) -> watch::Receiver<()> {
        self.0.opened.subscribe()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<brewbench_wire::RunId, FeedEntry>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
