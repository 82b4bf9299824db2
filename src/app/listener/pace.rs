//! Tracks the state of a connection and the deadline of the head of its next request.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// State of one connection, shared by its socket and its handlers; cheap to clone.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    head: Duration,
    /// Deadline of the current head: set for the first head and once a later head has begun.
    head_by: Option<Instant>,
    exchanges: usize,
    upgraded: bool,
}

impl Stage {
    /// Starts with the timeout of the first head.
    pub fn new(head: Duration) -> Self {
        let head_by = Some(Instant::now() + head);
        Self(Arc::new(Mutex::new(State { head, head_by, exchanges: 0, upgraded: false })))
    }

    /// Sets the timeout of heads and restarts that of the first one, after the TLS handshake.
    pub fn restart(&self, head: Duration) {
        let mut state = self.state();
        (state.head, state.head_by) = (head, Some(Instant::now() + head));
    }

    /// Records received bytes. Between two requests they start a head.
    pub fn received(&self) {
        let mut state = self.state();
        if state.exchanges == 0 && !state.upgraded && state.head_by.is_none() {
            state.head_by = Some(Instant::now() + state.head);
        }
    }

    /// Records a complete head. The client may be silent until its response is sent.
    pub fn begin(&self) -> Exchange {
        let mut state = self.state();
        state.head_by = None;
        state.exchanges += 1;
        Exchange(self.clone())
    }

    /// Records an upgrade: no more heads follow.
    pub fn upgrade(&self) {
        self.state().upgraded = true;
    }

    /// Returns the deadline of the current head.
    pub fn head_by(&self) -> Option<Instant> {
        self.state().head_by
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request and its response; it ends on drop.
#[derive(Debug)]
pub struct Exchange(Stage);

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.state().exchanges -= 1;
    }
}

/// A timer that is polled together with another operation.
#[derive(Debug, Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Ready at this time; otherwise wakes the task then.
    pub fn poll(&mut self, when: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(when)));
        if sleep.deadline() != when {
            sleep.as_mut().reset(when);
        }
        sleep.as_mut().poll(cx)
    }
}

/// Bytes that count as progress, so that a trickle of single bytes does not.
const MIN_PROGRESS: usize = 4 * 1024;

/// Detects a transfer without progress.
#[derive(Debug)]
pub struct Progress {
    within: Duration,
    moved: usize,
    /// Deadline, set when the transfer first blocks.
    by: Option<Instant>,
    alarm: Alarm,
}

impl Progress {
    /// Expects progress within each such period.
    pub fn new(within: Duration) -> Self {
        Self { within, moved: 0, by: None, alarm: Alarm::default() }
    }

    /// Records transferred bytes.
    pub fn moved(&mut self, bytes: usize) {
        self.moved += bytes;
        if self.moved >= MIN_PROGRESS {
            self.reset();
        }
    }

    /// Clears the deadline.
    pub fn reset(&mut self) {
        (self.moved, self.by) = (0, None);
    }

    /// Records that the transfer blocks; ready once the deadline has passed.
    pub fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let by = *self.by.get_or_insert_with(|| Instant::now() + self.within);
        self.alarm.poll(by, cx)
    }
}
