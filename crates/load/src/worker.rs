//! A thread that generates load with HTTP/1: its connections, its buffers and its counts.
//!
//! In steady state a request is one write and one read, and `epoll_wait` for all connections that are ready. Nothing is
//! allocated, and nothing is shared with other threads.

mod exchange;
mod pace;
mod slot;
mod timers;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use rand_chacha::ChaCha8Rng;
use std::os::fd::{AsFd, AsRawFd};

use crate::clock::{Clock, ms};
use crate::message::PathCursor;
use crate::outbox::Outbox;
use crate::stop::Stop;
use crate::tally::Tally;
use crate::turns::Turn;
use crate::work::Work;
use pace::Pace;
use slot::{Phase, Slot};
use timers::Timers;

/// Size of the buffer for responses, of a thread.
const BUFFER: usize = 64 * 1024;

/// Events that are taken at once: reports and starts wait for them.
const EVENTS: usize = 256;

/// The timer of arrivals among the tokens of connections.
const TIMER: Token = Token(usize::MAX);

/// Longest wait, after which a thread looks whether it has to stop.
const LONGEST_WAIT_NS: u64 = ms(50);

/// A thread that generates load.
pub struct Worker {
    work: Arc<Work>,
    thread: u32,
    clock: Clock,
    stop: Stop,
    outbox: Outbox,
    poll: Poll,
    timer: TimerFd,
    /// The arrival for which the timer is set.
    timer_ns: u64,
    slots: Vec<Slot>,
    timers: Timers,
    pace: Pace,
    /// Connections that have more to read, but others come first.
    again: Vec<usize>,
    buffer: Vec<u8>,
    scratch: Vec<u8>,
    cursors: Vec<PathCursor>,
    rng: ChaCha8Rng,
    contents: u64,
    /// The last time that was read.
    now_ns: u64,
    /// When requests may start: now, or next.
    turn: Turn,
    open: u64,
    in_flight: u64,
    /// Set when the load has ended, and no request starts.
    is_draining: bool,
}

impl Worker {
    /// Prepares a thread.
    pub fn new(work: Arc<Work>, thread: u32, clock: Clock, stop: Stop, outbox: Outbox) -> io::Result<Self> {
        let poll = Poll::new()?;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC)?;
        poll.registry().register(&mut SourceFd(&timer.as_fd().as_raw_fd()), TIMER, Interest::READABLE)?;
        let connections = usize::try_from(work.connections(thread)).unwrap_or(usize::MAX);
        let share = work.share(thread);
        Ok(Self {
            slots: (0..connections).map(|_| Slot::default()).collect(),
            timers: Timers::new(connections, work.connect_timeout_ns.min(work.request_timeout_ns)),
            pace: Pace::new(&work, thread, clock),
            again: Vec::with_capacity(connections),
            buffer: vec![0; BUFFER],
            scratch: Vec::new(),
            cursors: vec![PathCursor::new(share); work.messages.len()],
            rng: work.rng(thread),
            contents: 0,
            now_ns: 0,
            turn: clock.turn(0),
            open: 0,
            in_flight: 0,
            is_draining: false,
            timer_ns: 0,
            work,
            thread,
            clock,
            stop,
            outbox,
            poll,
            timer,
        })
    }

    /// Generates the load until it ends.
    pub fn run(mut self) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS);
        let mut again = Vec::with_capacity(self.again.capacity());
        while self.advance() {
            self.wait(&mut events)?;
            for event in &events {
                let place = event.token().0;
                if place < self.slots.len() {
                    let closed = event.is_read_closed() || event.is_error();
                    self.ready(place, event.is_readable() || closed, event.is_writable(), closed);
                    self.start_due();
                }
            }
            std::mem::swap(&mut again, &mut self.again);
            for place in again.drain(..) {
                self.ready(place, true, false, false);
            }
        }
        let in_flight = self.in_flight;
        self.tally().counts.interrupted += in_flight;
        self.now_ns = self.clock.now_ns();
        self.outbox.send(self.now_ns, self.open, 0, true);
        Ok(())
    }

    /// Does what is due, and returns whether the load goes on.
    fn advance(&mut self) -> bool {
        self.now_ns = self.clock.now_ns();
        if self.now_ns >= self.outbox.due_ns() && !self.outbox.send(self.now_ns, self.open, self.in_flight, false) {
            self.stop.request();
        }
        let end_ns = self.work.end_ns;
        let has_ended = self.now_ns >= end_ns || self.stop.is_requested();
        if has_ended && !self.is_draining {
            if !self.stop.is_requested() {
                self.start_last();
            }
            self.drain();
        }
        self.expire();
        if self.is_draining {
            return self.in_flight > 0 && self.now_ns < end_ns + self.work.grace_ns && !self.stop.is_requested();
        }
        if self.now_ns >= self.turn.closes_ns {
            self.turn = self.clock.turn(self.now_ns);
        }
        self.wake();
        self.follow_level();
        self.start_due();
        true
    }

    fn wait(&mut self, events: &mut Events) -> io::Result<()> {
        self.now_ns = self.clock.now_ns();
        let mut until_ns = self.outbox.due_ns().min(self.now_ns + LONGEST_WAIT_NS);
        until_ns = until_ns.min(self.timers.next_ns(self.in_flight > 0));
        if self.is_draining {
            until_ns = until_ns.min(self.work.end_ns + self.work.grace_ns);
        } else {
            until_ns = until_ns.min(self.work.end_ns).min(self.pace.next_level_ns(self.now_ns));
        }
        let has_turn = self.turn.contains(self.now_ns);
        let due_ns = if has_turn { self.pace.next_start_ns() } else { Some(self.turn.opens_ns) };
        if let Some(due_ns) = due_ns.filter(|_| !self.is_draining) {
            if due_ns <= self.now_ns || !self.again.is_empty() {
                until_ns = 0;
            } else if due_ns < until_ns && due_ns != self.timer_ns {
                // `epoll_wait` counts milliseconds, which is too coarse for arrivals.
                let wait = TimeSpec::from_duration(Duration::from_nanos(due_ns - self.now_ns));
                self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty())?;
                self.timer_ns = due_ns;
            }
        }
        let wait = if self.again.is_empty() { until_ns.saturating_sub(self.now_ns) } else { 0 };
        match self.poll.poll(events, Some(Duration::from_nanos(wait))) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => events.clear(),
            polled => polled?,
        }
        if wait > 0 {
            let before_ns = self.now_ns;
            self.now_ns = self.clock.now_ns();
            let waited_ns = self.now_ns - before_ns;
            let counts = &mut self.tally().counts;
            *if has_turn { &mut counts.idle_ns } else { &mut counts.away_ns } += waited_ns;
        }
        Ok(())
    }

    /// Ends everything but requests in flight.
    fn drain(&mut self) {
        self.is_draining = true;
        let until_ns = self.now_ns.min(self.work.end_ns);
        let dropped = self.pace.arrivals().map_or(0, |arrivals| arrivals.left_until(until_ns));
        let is_closed_model = self.pace.arrivals().is_none();
        for place in 0..self.slots.len() {
            match self.slots[place].phase {
                Phase::Connecting | Phase::Handshaking if is_closed_model => self.give_up(place),
                Phase::Idle | Phase::Resting => self.switch_off(place),
                Phase::Off | Phase::Busy | Phase::Connecting | Phase::Handshaking => {}
            }
        }
        self.tally().counts.dropped += dropped;
    }

    /// Whether no request starts any more.
    fn has_ended(&self) -> bool {
        self.is_draining || self.now_ns >= self.work.end_ns
    }

    /// Whether a request that ends now ends after the load, or outside of its turns.
    fn is_late(&self) -> bool {
        self.now_ns > self.work.end_ns || !self.turn.contains(self.now_ns)
    }

    /// Ends an attempt to connect that takes longer than a closed load. In an open one, its request has started.
    fn give_up(&mut self, place: usize) {
        self.withdraw(place);
        self.tally().counts.interrupted += 1;
    }

    /// Closes a connection that has no request.
    fn switch_off(&mut self, place: usize) {
        self.close(place);
        self.slots[place].phase = Phase::Off;
    }

    /// Ends an attempt to connect without counting it as a failure.
    fn withdraw(&mut self, place: usize) {
        self.in_flight -= 1;
        self.timers.set_deadline(place, u64::MAX);
        self.switch_off(place);
    }

    fn tally(&mut self) -> &mut Tally {
        &mut self.outbox.tally
    }
}
