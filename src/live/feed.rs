//! Runs under way: the series of each so far and whoever listens to it, in memory. A server that starts anew is told the
//! past again by the agents.
//!
//! What is told takes the place of all that is later than a time (see [`Portion`]), from the agent to the page: so
//! nothing is doubled, whoever connects anew. Whatever a listener does, the agents' channel never waits for it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use brewbench_agent::wire::{
    self,
    series::{Damaged, Part, Portion, Second, Series, Usage},
};
use tokio::sync::{broadcast, watch};

use crate::live::{
    participants::{Crew, Teller},
    series_buffer::{self, After, Growing},
};

/// So many portions may wait for a listener, about a quarter of a minute's; then it looks again at the whole.
const MOST_WAITING: usize = 32;

/// A rate that is older than this says nothing of now.
const FRESH: Duration = Duration::from_secs(5);

/// All runs that agents tell of; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Underway(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    runs: Mutex<HashMap<wire::RunId, Entry>>,
    opened: watch::Sender<()>,
}

#[derive(Debug)]
struct Entry {
    tellers: Tellers,
    /// What listeners hear of.
    series: Growing,
    heard_at: Instant,
    news: broadcast::Sender<Arc<News>>,
}

/// Who tells of a run.
#[derive(Debug)]
enum Tellers {
    /// The agent that does it.
    One(String),
    /// Those that do it together.
    Crew(Box<Crew>),
}

impl Tellers {
    fn has(&self, agent: &str) -> bool {
        match self {
            Self::One(one) => one == agent,
            Self::Crew(crew) => crew.has(agent),
        }
    }

    fn names(&self) -> Vec<&str> {
        match self {
            Self::One(one) => vec![one],
            Self::Crew(crew) => crew.names().collect(),
        }
    }

    /// The agent that runs the target.
    fn first(&self) -> &str {
        match self {
            Self::One(one) => one,
            Self::Crew(crew) => crew.host(),
        }
    }
}

/// Points that take the place of all later ones of their run, also of another part. Of the kind of which there are
/// none, nothing is replaced.
#[derive(Debug)]
pub struct News {
    /// Which part they belong to.
    pub part: Part,
    /// When the first part of the run began, by the agent's clock, unix ms.
    pub start_ms: i64,
    /// When this part began, ms after the first.
    pub offset_ms: i64,
    /// What k6 told.
    pub seconds: Tail<Second, u32>,
    /// What was used.
    pub usage: Tail<Usage, i32>,
    /// Whoever names it later has everything up to here: unix ms by the agent's clock.
    pub mark: i64,
    pub(crate) written: OnceLock<String>,
}

/// The last points of a kind.
#[derive(Debug)]
pub struct Tail<T, At> {
    /// What is later than this goes away, ms after the start of the run; everything, if there is no time.
    pub after_ms: Option<i64>,
    /// The time of the point before them in their part, ms after its start.
    pub before: Option<At>,
    /// In ascending order.
    pub points: Vec<T>,
}

/// How fast a run is at the moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Requests a second.
    pub rps: f64,
    /// Failed requests a second.
    pub failed_rps: f64,
}

/// What somebody does not know of a series that is whole, who knows everything up to a mark.
pub fn since(series: Series, mark: Option<i64>) -> Vec<News> {
    Growing::from(series).since(mark)
}

impl News {
    /// What it is in the words of listeners: made once, whoever asks first.
    pub fn written(&self, write: impl FnOnce(&Self) -> String) -> &str {
        self.written.get_or_init(|| write(self))
    }
}

impl Underway {
    /// An agent begins to tell of a run that it works on. It works on no other.
    pub fn open(&self, run: wire::RunId, agent: &str) {
        self.open_for(run, Tellers::One(agent.to_owned()));
    }

    /// Several agents begin to tell of a run that they do together: one of the target, the others of the load. They work on
    /// no other.
    pub fn open_together(&self, run: wire::RunId, host: Teller, generators: Vec<Teller>) {
        self.open_for(run, Tellers::Crew(Box::new(Crew::new(host, generators))));
    }

    fn open_for(&self, run: wire::RunId, tellers: Tellers) {
        let mut runs = self.runs();
        // Those who do it together may begin at the same moment: what the first has told is kept.
        if runs.get(&run).is_some_and(|entry| entry.tellers.names() == tellers.names()) {
            return;
        }
        runs.retain(|_, entry| match &tellers {
            Tellers::One(agent) => !entry.tellers.has(agent),
            Tellers::Crew(crew) => !crew.names().any(|agent| entry.tellers.has(agent)),
        });
        let (series, news) = (Growing::default(), broadcast::channel(MOST_WAITING).0);
        runs.insert(run, Entry { tellers, series, heard_at: Instant::now(), news });
        self.0.opened.send_replace(());
    }

    /// Whether this agent has begun to tell of this run.
    pub fn is_open(&self, run: wire::RunId, agent: &str) -> bool {
        self.runs().get(&run).is_some_and(|entry| entry.tellers.has(agent))
    }

    /// Takes points of a run from one of those that tell of it; they must make sense and fit in.
    pub fn take(&self, agent: &str, portion: &Portion) -> Result<(), Damaged> {
        // Outside of the lock: this is the work.
        let points = series_buffer::unpack(portion)?;
        if let Some(entry) = self.runs().get_mut(&portion.run) {
            let Entry { tellers, series, heard_at, news } = entry;
            *heard_at = Instant::now();
            let told = match tellers {
                Tellers::One(_) => series.put(After::of(portion), points)?,
                Tellers::Crew(crew) => match crew.put(agent, series.whole(), After::of(portion), points)? {
                    Some((after, points)) => series.put(after, points)?,
                    None => None,
                },
            };
            if let Some(told) = told {
                let _ = news.send(Arc::new(told));
            }
        }
        Ok(())
    }

    /// The run has ended, or is another agent's.
    pub fn forget(&self, run: wire::RunId) {
        self.runs().remove(&run);
    }

    /// All runs that are told of, with the agent that runs the target.
    pub fn open_runs(&self) -> Vec<(wire::RunId, String)> {
        self.runs().iter().map(|(run, entry)| (*run, entry.tellers.first().to_owned())).collect()
    }

    /// What a run has come to so far; nothing before its first second has ended.
    pub fn series(&self, run: wire::RunId) -> Option<Series> {
        self.runs().get(&run).map(|entry| entry.series.whole().clone()).filter(|series| *series != Series::default())
    }

    /// How fast a run was in its last second, unless that was long ago.
    pub fn rate(&self, run: wire::RunId) -> Option<Rate> {
        let runs = self.runs();
        runs.get(&run).filter(|entry| entry.heard_at.elapsed() < FRESH)?.series.rate()
    }

    /// What a listener does not know yet, who knows everything up to a mark, and all that comes from then on; nothing
    /// while nobody tells of the run.
    pub fn listen(&self, run: wire::RunId, mark: Option<i64>) -> Option<(Vec<News>, broadcast::Receiver<Arc<News>>)> {
        let runs = self.runs();
        let entry = runs.get(&run)?;
        Some((entry.series.since(mark), entry.news.subscribe()))
    }

    /// Changes whenever an agent begins to tell of a run.
    pub fn opened(&self) -> watch::Receiver<()> {
        self.0.opened.subscribe()
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<wire::RunId, Entry>> {
        self.0.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
