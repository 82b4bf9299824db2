//! Executes a plan: its threads, and their reports.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

use crate::clock::Clock;
use crate::collector::Collector;
use crate::events::{Event, Summary};
use crate::outbox::{Outbox, Report};
use crate::plan::{Fault, HttpVersion, Plan};
use crate::stop::Stop;
use crate::tally::Tally;
use crate::work::{Model, Work};
use crate::worker::Worker;

/// A plan that was checked, and is ready to be executed.
#[derive(Debug)]
pub struct Generator {
    work: Arc<Work>,
}

/// Why a load could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A thread can't be started, or can't wait for events.
    #[error("the load generator's thread failed: {0}")]
    Thread(io::Error),
    /// A thread has panicked.
    #[error("a thread of the load generator panicked; this is a fault of brewbench")]
    Panicked,
    /// The reader of the events is gone.
    #[error("the events can't be written: {0}")]
    Events(io::Error),
}

impl Generator {
    /// Prepares a plan. Looks up the target's address, and asks it for its version of HTTP if the plan leaves it open.
    pub fn prepare(plan: &Plan) -> Result<Self, Fault> {
        Ok(Self { work: Arc::new(Work::prepare(plan)?) })
    }

    /// Generates the load until its end or a stop, and passes on the events that follow [`Event::Ready`].
    pub fn run(&self, stop: &Stop, mut events: impl FnMut(Event) -> io::Result<()>) -> Result<(), RunError> {
        let clock = Clock::start(self.work.turns);
        events(Event::Started).map_err(RunError::Events)?;
        let before = usage();
        let (reports, received) = channel();
        let (mut spares, mut threads) = (Vec::new(), Vec::new());
        for thread in 0..self.work.threads {
            let (spare, own) = channel();
            // One to count in while the other one is read.
            let _ = spare.send(Box::<Tally>::default());
            spares.push(spare);
            let outbox = Outbox::new(thread, Sender::clone(&reports), own);
            threads.push(self.start(thread, clock, stop, outbox).map_err(RunError::Thread)?);
        }
        drop(reports);
        let mut collector = Collector::new(threads.len());
        let mut written = Ok(());
        for report in received {
            for second in collector.add(&report) {
                written = written.and_then(|()| events(Event::Second(Box::new(second))));
            }
            if written.is_err() {
                stop.request();
            }
            let Report { thread, mut tally, .. } = report;
            tally.clear();
            // A thread that has ended needs none.
            let _ = spares[thread as usize].send(tally);
        }
        written.map_err(RunError::Events)?;
        for thread in threads {
            thread.join().map_err(|_| RunError::Panicked)?.map_err(RunError::Thread)?;
        }
        events(Event::Summary(Box::new(self.summary(&collector, stop, clock, before)))).map_err(RunError::Events)
    }

    fn start(&self, thread: u32, clock: Clock, stop: &Stop, outbox: Outbox) -> io::Result<JoinHandle<io::Result<()>>> {
        let (work, stop, named) = (Arc::clone(&self.work), stop.clone(), Builder::new().name(format!("load-{thread}")));
        if self.work.http == HttpVersion::Two {
            return named.spawn(move || crate::http2::run(&work, thread, clock, &stop, outbox));
        }
        let worker = Worker::new(work, thread, clock, stop, outbox)?;
        named.spawn(move || worker.run())
    }

    fn summary(&self, collector: &Collector, stop: &Stop, clock: Clock, before: Option<Usage>) -> Summary {
        let cpu = |time: fn(&Usage) -> TimeVal| match (&before, usage()) {
            (Some(before), Some(after)) => u64::try_from((time(&after) - time(before)).num_milliseconds()).unwrap_or(0),
            _ => 0,
        };
        let fault = stop.fault().map(str::to_owned);
        let summary = collector.summary();
        let open_ns = |until_ms: u64| clock.open_ns((until_ms * 1_000_000).min(self.work.end_ns));
        Summary {
            planned_ms: self.work.end_ns / 1_000_000,
            open_ms: self.work.turns.map(|_| open_ns(summary.elapsed_ms) / 1_000_000),
            connections: self.work.model.connections(),
            open: matches!(self.work.model, Model::Open { .. }),
            threads: self.work.threads,
            http: if self.work.http == HttpVersion::Two { "2" } else { "1.1" }.to_owned(),
            cpu_user_ms: cpu(Usage::user_time),
            cpu_system_ms: cpu(Usage::system_time),
            interrupted: stop.is_requested() && fault.is_none(),
            fault,
            ..summary
        }
    }
}

fn usage() -> Option<Usage> {
    getrusage(UsageWho::RUSAGE_SELF).ok()
}
