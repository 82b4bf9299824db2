//! Where a connection is in its conversation, and until when the head of its next request must be there.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tokio::time::{Instant, Sleep, sleep_until};

/// What the socket and what answers know of one connection together; cheap to clone.
#[derive(Clone, Debug)]
pub struct Stage(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    head: Duration,
    /// While a head is awaited of which something is there, or which is the first.
    head_by: Option<Instant>,
    exchanges: usize,
    upgraded: bool,
}

impl Stage {
    /// The first head must be there within this time.
    pub fn new(head: Duration) -> Self {
        let head_by = Some(Instant::now() + head);
        Self(Arc::new(Mutex::new(State { head, head_by, exchanges: 0, upgraded: false })))
    }

    /// From now on a head has this time, the first one as well: TLS, if any, is there.
    pub fn restart(&self, head: Duration) {
        let mut state = self.state();
        (state.head, state.head_by) = (head, Some(Instant::now() + head));
    }

    /// Bytes have come. Between two requests they are the start of a head.
    pub fn heard(&self) {
        let mut state = self.state();
        if state.exchanges == 0 && !state.upgraded && state.head_by.is_none() {
            state.head_by = Some(Instant::now() + state.head);
        }
    }

    /// A head is whole; until the answer is, the other side need not say anything.
    pub fn begin(&self) -> Exchange {
        let mut state = self.state();
        state.head_by = None;
        state.exchanges += 1;
        Exchange(self.clone())
    }

    /// There will be no more heads.
    pub fn upgrade(&self) {
        self.state().upgraded = true;
    }

    /// When the other side has taken too long over a head.
    pub fn head_by(&self) -> Option<Instant> {
        self.state().head_by
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One request and its answer; over when this is dropped.
#[derive(Debug)]
pub struct Exchange(Stage);

impl Drop for Exchange {
    fn drop(&mut self) {
        self.0.state().exchanges -= 1;
    }
}

/// A timer that is asked whenever something else is waited for.
#[derive(Debug, Default)]
pub struct Alarm(Option<Pin<Box<Sleep>>>);

impl Alarm {
    /// Whether it is this late; if not, wakes when it is.
    pub fn poll(&mut self, when: Instant, cx: &mut Context<'_>) -> Poll<()> {
        let sleep = self.0.get_or_insert_with(|| Box::pin(sleep_until(when)));
        if sleep.deadline() != when {
            sleep.as_mut().reset(when);
        }
        sleep.as_mut().poll(cx)
    }
}

/// So much has to move within the time that is given for some progress: byte by byte is none.
const SOME: usize = 4 * 1024;

/// Whether something that is waited for gets on.
#[derive(Debug)]
pub struct Progress {
    within: Duration,
    moved: usize,
    /// From the first time that it had to be waited for.
    by: Option<Instant>,
    alarm: Alarm,
}

impl Progress {
    /// Some progress is expected within each such time.
    pub fn new(within: Duration) -> Self {
        Self { within, moved: 0, by: None, alarm: Alarm::default() }
    }

    /// So many bytes have moved.
    pub fn moved(&mut self, bytes: usize) {
        self.moved += bytes;
        if self.moved >= SOME {
            self.done();
        }
    }

    /// Nothing is waited for any more.
    pub fn done(&mut self) {
        (self.moved, self.by) = (0, None);
    }

    /// It has to be waited for: ready once that has taken too long.
    pub fn waiting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let by = *self.by.get_or_insert_with(|| Instant::now() + self.within);
        self.alarm.poll(by, cx)
    }
}
