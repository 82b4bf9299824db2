//! A thread that generates load with HTTP/2, on tokio's runtime for one thread.
//!
//! It allocates for each request, and takes several times the CPU time of HTTP/1: HTTP/2 is measured for its effect on
//! the target, not for the highest rate. Each connection has one request at a time.

mod client;
mod exchange;
mod timer;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use tokio::sync::Notify;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::Clock;
use crate::message::PathCursor;
use crate::outbox::Outbox;
use crate::schedule::Arrivals;
use crate::stop::Stop;
use crate::transport::Traffic;
use crate::work::Work;
use exchange::Slot;
use timer::Timer;

/// How often the level and the end are looked at.
const LEVEL: Duration = Duration::from_millis(10);

/// What all tasks of a thread share.
struct Context {
    work: Arc<Work>,
    thread: u32,
    clock: Clock,
    stop: Stop,
    state: RefCell<State>,
    traffic: Cell<Traffic>,
    /// Notified when a slot of an open load is free.
    freed: Notify,
}

/// What tasks change. It is never borrowed while one waits.
struct State {
    outbox: Outbox,
    cursors: Vec<PathCursor>,
    rng: ChaCha8Rng,
    contents: u64,
    open: u64,
    in_flight: u64,
    /// In a closed load: slots below this number send.
    active: u64,
    /// In a closed load: which slots have a task.
    has_task: Vec<bool>,
    arrivals: Option<Arrivals>,
    free: VecDeque<Slot>,
    is_draining: bool,
}

/// Generates the load until it ends.
pub fn run(work: &Arc<Work>, thread: u32, clock: Clock, stop: &Stop, outbox: Outbox) -> io::Result<()> {
    let idle = Idle::new(clock);
    let (parked, unparked) = (idle.clone(), idle.clone());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .on_thread_park(move || parked.begin())
        .on_thread_unpark(move || unparked.end())
        .build()?;
    let connections = usize::try_from(work.connections(thread)).unwrap_or(usize::MAX);
    let state = State {
        outbox,
        cursors: vec![PathCursor::new(work.share(thread)); work.messages.len()],
        rng: work.rng(thread),
        contents: 0,
        open: 0,
        in_flight: 0,
        active: 0,
        has_task: vec![false; connections],
        arrivals: work.arrivals(thread, clock),
        free: (0..connections).map(|_| Slot::default()).collect(),
        is_draining: false,
    };
    let context = Rc::new(Context {
        work: Arc::clone(work),
        thread,
        clock,
        stop: stop.clone(),
        state: RefCell::new(state),
        traffic: Cell::default(),
        freed: Notify::new(),
    });
    LocalSet::new().block_on(&runtime, context.drive(&idle))
}

impl Context {
    /// Starts tasks, reports, and ends the load.
    async fn drive(self: &Rc<Self>, idle: &Idle) -> io::Result<()> {
        if self.state.borrow().arrivals.is_some() {
            let timer = Timer::new()?;
            spawn_local(Rc::clone(self).arrive(timer));
        }
        let end_ns = self.work.end_ns;
        while self.clock.now_ns() < end_ns && !self.stop.is_requested() {
            self.report(idle, false);
            self.follow_level();
            tokio::time::sleep(LEVEL.min(Duration::from_nanos(end_ns.saturating_sub(self.clock.now_ns())))).await;
        }
        // Those that were due before the end start if a connection is free.
        while !self.stop.is_requested() && self.start_next() {}
        self.drain();
        while self.state.borrow().in_flight > 0
            && self.clock.now_ns() < end_ns + self.work.grace_ns
            && !self.stop.is_requested()
        {
            self.report(idle, false);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        {
            let mut state = self.state.borrow_mut();
            let in_flight = state.in_flight;
            state.outbox.tally.counts.interrupted += in_flight;
            state.in_flight = 0;
        }
        self.report(idle, true);
        Ok(())
    }

    /// Sends the counts if they are due.
    fn report(&self, idle: &Idle, is_last: bool) {
        let now_ns = self.clock.now_ns();
        let mut state = self.state.borrow_mut();
        if now_ns < state.outbox.due_ns() && !is_last {
            return;
        }
        let Traffic { received, sent } = self.traffic.take();
        let (open, in_flight) = (state.open, state.in_flight);
        let counts = &mut state.outbox.tally.counts;
        counts.bytes_in += received;
        counts.bytes_out += sent;
        counts.idle_ns += idle.reset();
        if !state.outbox.send(now_ns, open, in_flight, is_last) {
            self.stop.request();
        }
    }

    /// Lets as many connections send as the level of a closed load says.
    fn follow_level(self: &Rc<Self>) {
        let mut state = self.state.borrow_mut();
        if state.arrivals.is_some() {
            return;
        }
        state.active = self.work.active_connections(self.thread, self.clock.now_ns());
        let active = state.active;
        for (place, has_task) in (0..active).zip(&mut state.has_task) {
            if !*has_task {
                *has_task = true;
                spawn_local(Rc::clone(self).repeat(place));
            }
        }
    }

    /// Sends one request after the other while the level is above the number of the slot.
    async fn repeat(self: Rc<Self>, place: u64) {
        let mut slot = Slot::default();
        while !self.has_ended() && place < self.state.borrow().active {
            let rest_ns = self.exchange(&mut slot, None).await.unwrap_or(self.work.think_ns);
            if rest_ns > 0 {
                tokio::time::sleep(Duration::from_nanos(rest_ns)).await;
            }
        }
        let place = usize::try_from(place).unwrap_or(usize::MAX);
        if let Some(has_task) = self.state.borrow_mut().has_task.get_mut(place) {
            *has_task = false;
        }
    }

    /// Starts the requests of an open load.
    async fn arrive(self: Rc<Self>, timer: Timer) {
        loop {
            let next_ns = self.state.borrow().arrivals.as_ref().and_then(Arrivals::next_ns);
            let Some(due_ns) = next_ns else { return };
            let now_ns = self.clock.now_ns();
            if due_ns > now_ns && timer.wait(due_ns - now_ns).await.is_err() {
                return self.stop.fail("the load generator's timer failed".to_owned());
            }
            if self.has_ended() {
                return;
            }
            if !self.start_next() {
                self.freed.notified().await;
            }
        }
    }

    /// Starts the next request of an open load, if a connection is free and there is one.
    fn start_next(self: &Rc<Self>) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(due_ns) = state.arrivals.as_ref().and_then(Arrivals::next_ns) else { return false };
        let Some(mut slot) = state.free.pop_front() else { return false };
        drop(state);
        self.note_start(due_ns, slot.free_ns);
        let context = Rc::clone(self);
        spawn_local(async move {
            if let Some(rest_ns) = context.exchange(&mut slot, Some(due_ns)).await {
                tokio::time::sleep(Duration::from_nanos(rest_ns)).await;
            }
            slot.free_ns = context.clock.now_ns();
            context.state.borrow_mut().free.push_back(slot);
            context.freed.notify_one();
        });
        true
    }

    fn note_start(&self, due_ns: u64, free_ns: u64) {
        let late_ns = self.clock.now_ns().saturating_sub(due_ns.max(free_ns));
        let mut state = self.state.borrow_mut();
        if let Some(arrivals) = &mut state.arrivals {
            arrivals.advance();
        }
        let tally = &mut state.outbox.tally;
        tally.scheduling.record(late_ns);
        tally.counts.waited += u64::from(free_ns > due_ns);
    }

    fn drain(&self) {
        let until_ns = self.clock.now_ns().min(self.work.end_ns);
        let mut state = self.state.borrow_mut();
        state.is_draining = true;
        let dropped = state.arrivals.as_ref().map_or(0, |arrivals| arrivals.left_until(until_ns));
        state.outbox.tally.counts.dropped += dropped;
    }

    /// Whether no request starts any more.
    fn has_ended(&self) -> bool {
        self.clock.now_ns() >= self.work.end_ns || self.state.borrow().is_draining
    }
}

/// How long the thread of a runtime has waited.
#[derive(Clone)]
struct Idle {
    clock: Clock,
    since_ns: Arc<AtomicU64>,
    total_ns: Arc<AtomicU64>,
}

impl Idle {
    fn new(clock: Clock) -> Self {
        Self { clock, since_ns: Arc::default(), total_ns: Arc::default() }
    }

    fn begin(&self) {
        self.since_ns.store(self.clock.now_ns(), Ordering::Relaxed);
    }

    fn end(&self) {
        let waited_ns = self.clock.now_ns().saturating_sub(self.since_ns.load(Ordering::Relaxed));
        self.total_ns.fetch_add(waited_ns, Ordering::Relaxed);
    }

    /// Returns the time since the previous call.
    fn reset(&self) -> u64 {
        self.total_ns.swap(0, Ordering::Relaxed)
    }
}
