//! Live pages that look the same for many callers: each is rendered once per change, by a task of its own, for all its
//! streams.

use std::{convert::Infallible, sync::Arc};

use axum::response::{
    Sse,
    sse::{Event, KeepAlive},
};
use futures_util::{Stream, StreamExt, stream};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

use super::{
    live::{MAX_AGE, Pulse, Topic, View},
    shared_pages::LastSent,
};
use crate::app::{error::Result, rate_limit::streams, state::AppState};

/// Starts a stream of the page with this key for a caller. All streams with the key share the first one's view, so the
/// key names everything that the view depends on.
pub fn follow<V: View>(
    state: &AppState,
    caller: &str,
    key: String,
    topic: Topic,
    view: V,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<V>>> {
    let place = state.limits.streams.open(caller)?;
    let (until, rights) = (Instant::now() + MAX_AGE, state.events.rights());
    let shown = state.shared_pages.join(key, |page| {
        state.tasks.spawn(render(state.clone(), topic, view, page));
    });
    let follower = Follower { shown, wholes: 0, until, rights, _place: place };
    let batches = stream::unfold(follower, |mut follower| async move { Some((follower.next().await?, follower)) });
    let events = batches.flat_map(|events| stream::iter(events.into_iter().map(Ok)));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Renders a page until nobody follows it. The end ends its streams, and their pages reconnect.
async fn render(state: AppState, topic: Topic, mut view: impl View, page: Arc<watch::Sender<LastSent>>) {
    // Streams end at their own age; permissions are checked when they reconnect.
    let mut pulse = Pulse::new(&state, topic, MAX_AGE * 6);
    loop {
        let patches = tokio::select! {
            () = page.closed() => return,
            patches = pulse.frame(&mut view, &state.limits.streams) => patches,
        };
        let Some(patches) = patches else { return };
        let events: Arc<[Event]> = patches.into_iter().map(Event::from).collect();
        page.send_modify(|shown| {
            if view.is_whole() {
                *shown = LastSent { whole: events, wholes: shown.wholes + 1, rest: Arc::default() };
            } else {
                shown.rest = events;
            }
        });
    }
}

/// One stream of a shared page.
struct Follower {
    shown: watch::Receiver<LastSent>,
    /// The number of the last whole frame that was sent.
    wholes: u64,
    until: Instant,
    /// Signals that permissions changed: the page reconnects, which checks them again.
    rights: watch::Receiver<u64>,
    _place: streams::Stream,
}

impl Follower {
    /// Waits for the next events; none if the stream should end.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            tokio::select! {
                () = sleep_until(self.until) => return None,
                Ok(()) = self.rights.changed() => return None,
                changed = self.shown.changed() => changed.ok()?,
            }
            let shown = self.shown.borrow_and_update().clone();
            let is_behind = self.wholes != shown.wholes;
            self.wholes = shown.wholes;
            let whole = if is_behind { shown.whole.to_vec() } else { Vec::new() };
            let events: Vec<Event> = whole.into_iter().chain(shown.rest.iter().cloned()).collect();
            if !events.is_empty() {
                return Some(events);
            }
        }
    }
}
