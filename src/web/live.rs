//! Live pages: Datastar patches over SSE, sent on changes, on news, and every second while a run is in progress.
//!
//! The compression layer does not compress `text/event-stream`.

use std::{convert::Infallible, future::Future, time::Duration};

use askama::Template;
use axum::response::{
    Sse,
    sse::{Event, KeepAlive},
};
use datastar::prelude::PatchElements;
use futures_util::{Stream, StreamExt, stream};
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        watch,
    },
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::app::{
    error::{Error, Result},
    ids::{ExperimentId, RunId},
    rate_limit::streams::Streams,
    state::{AppState, RunChanged},
};

/// Changes within this time are combined into one patch.
const DEBOUNCE: Duration = Duration::from_millis(300);

/// Maximum duration of a stream. The page then reconnects, which checks the user's permissions again.
pub(super) const MAX_AGE: Duration = Duration::from_mins(10);

/// The runs that a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topic {
    /// All runs.
    Everything,
    /// One run.
    Run(RunId),
    /// The runs of one experiment.
    Experiment(ExperimentId),
}

impl Topic {
    fn includes(&self, changed: &RunChanged) -> bool {
        match self {
            Self::Everything => true,
            Self::Run(run) => changed.run == *run,
            Self::Experiment(experiment) => changed.experiment.as_ref() == Some(experiment),
        }
    }
}

/// Why a page is updated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tick {
    /// The stream has just started; changes since the page was rendered are missing on it.
    Start,
    /// A shown run has changed.
    Changed,
    /// Only time has passed.
    Time,
    /// The page's own source has news.
    News,
}

/// The longest interval between two updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// A run is in progress: progress bars move.
    Second,
    /// No run is in progress: only times such as `3 min ago` change.
    Minute,
    /// Nothing can change any more.
    Over,
}

/// One update of a page.
#[derive(Debug)]
pub struct Frame {
    /// Elements that replace those with the same id.
    pub patches: Vec<PatchElements>,
    /// When the next update is due.
    pub pace: Pace,
}

/// A live page.
pub trait View: Send + 'static {
    /// Renders what has changed on the page.
    fn frame(&mut self, tick: Tick) -> impl Future<Output = Result<Frame>> + Send;

    /// Whether the last frame replaced everything that changes. Streams of a shared page begin with such a frame.
    fn is_whole(&self) -> bool {
        true
    }

    /// Waits for news that the next frame must show immediately. Must be cancel-safe.
    fn news(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// Renders a fragment that replaces the element with the id of its root.
pub fn patch(fragment: &impl Template) -> Result<PatchElements> {
    Ok(PatchElements::new(fragment.render().map_err(Error::internal)?))
}

/// Starts the stream of a page for a caller. An error ends it; the page then reconnects and shows the error.
pub fn follow<V: View>(
    state: &AppState,
    caller: &str,
    topic: Topic,
    view: V,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<V>>> {
    let place = state.limits.streams.open(caller)?;
    let (pulse, turns) = (Pulse::new(state, topic, MAX_AGE), state.limits.streams.clone());
    let frames = stream::unfold((pulse, view, turns, place), |(mut pulse, mut view, turns, place)| async move {
        let patches = pulse.frame(&mut view, &turns).await?;
        Some((patches, (pulse, view, turns, place)))
    });
    let events = frames.flat_map(|patches| stream::iter(patches.into_iter().map(|patch| Ok(patch.into()))));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Schedules the updates of a page.
pub(super) struct Pulse {
    changes: Receiver<RunChanged>,
    topic: Topic,
    /// Signals that permissions changed: the page reconnects, which checks them again.
    rights: watch::Receiver<u64>,
    shutdown: CancellationToken,
    until: Instant,
    /// None before the first update.
    next: Option<Pace>,
    /// When the last update other than news was sent; news do not delay regular updates.
    updated_at: Instant,
}

impl Pulse {
    /// Starts now; the updates end after `age`.
    pub(super) fn new(state: &AppState, topic: Topic, age: Duration) -> Self {
        Self {
            changes: state.events.listen(),
            topic,
            rights: state.events.rights(),
            shutdown: state.shutdown.clone(),
            until: Instant::now() + age,
            next: None,
            updated_at: Instant::now(),
        }
    }

    /// Waits for the next update and renders it in turn with other pages; none if the stream should end.
    pub(super) async fn frame(&mut self, view: &mut impl View, turns: &Streams) -> Option<Vec<PatchElements>> {
        let tick = self.next(view).await?;
        let _turn = turns.turn().await;
        let frame = view
            .frame(tick)
            .await
            .inspect_err(|fault| tracing::debug!(%fault, "a live stream ended with an error"))
            .ok()?;
        self.next = Some(frame.pace);
        if tick != Tick::News {
            self.updated_at = Instant::now();
        }
        Some(frame.patches)
    }

    /// Waits for the next update; none if the stream should end.
    async fn next(&mut self, view: &mut impl View) -> Option<Tick> {
        let rest = match self.next {
            None => return Some(Tick::Start),
            Some(Pace::Over) => return None,
            Some(Pace::Second) => Duration::from_secs(1),
            Some(Pace::Minute) => Duration::from_mins(1),
        };
        let (shutdown, until, due) = (self.shutdown.clone(), self.until, self.updated_at + rest);
        let mut rights = self.rights.clone();
        tokio::select! {
            () = shutdown.cancelled() => return None,
            () = sleep_until(until) => return None,
            Ok(()) = rights.changed() => return None,
            () = view.news() => return Some(Tick::News),
            () = sleep_until(due) => return Some(Tick::Time),
            () = self.change() => {}
        }
        // Sleep outside of `select!`: the change is already received, and a periodic tick must not replace it.
        sleep(DEBOUNCE).await;
        self.changes = self.changes.resubscribe();
        Some(Tick::Changed)
    }

    /// Waits for a change of a shown run. The caller drops further changes that follow at once.
    async fn change(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(changed) if !self.topic.includes(&changed) => {}
                // After missed changes the page must be updated.
                Ok(_) | Err(RecvError::Lagged(_)) => return,
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::state::Events;

    fn pulse(events: &Events, topic: Topic, next: Option<Pace>) -> Pulse {
        Pulse {
            changes: events.listen(),
            topic,
            rights: events.rights(),
            shutdown: CancellationToken::new(),
            until: Instant::now() + MAX_AGE,
            next,
            updated_at: Instant::now(),
        }
    }

    /// A page without news.
    struct Quiet;

    impl View for Quiet {
        async fn frame(&mut self, _: Tick) -> Result<Frame> {
            Ok(Frame { patches: Vec::new(), pace: Pace::Second })
        }
    }

    fn changed(run: RunId) -> RunChanged {
        RunChanged { run, experiment: Some(experiment()) }
    }

    fn experiment() -> ExperimentId {
        ExperimentId::from("night".to_owned())
    }

    #[tokio::test]
    async fn a_page_is_updated_at_the_start_and_after_each_change_of_its_runs() {
        let events = Events::default();
        let run = RunId::now();
        let mut pulse = pulse(&events, Topic::Run(run.clone()), None);
        assert_eq!(pulse.next(&mut Quiet).await, Some(Tick::Start));
        pulse.next = Some(Pace::Minute);
        events.publish(changed(RunId::now()));
        events.publish(changed(run));
        assert_eq!(pulse.next(&mut Quiet).await, Some(Tick::Changed));
    }

    #[tokio::test]
    async fn simultaneous_changes_cause_one_update() {
        let events = Events::default();
        let mut pulse = pulse(&events, Topic::Experiment(experiment()), Some(Pace::Second));
        for _ in 0..400 {
            events.publish(changed(RunId::now()));
        }
        assert_eq!(pulse.next(&mut Quiet).await, Some(Tick::Changed));
        assert_eq!(pulse.next(&mut Quiet).await, Some(Tick::Time));
    }

    #[tokio::test]
    async fn a_change_right_before_a_beat_of_time_is_not_lost() {
        let events = Events::default();
        let mut pulse = pulse(&events, Topic::Everything, Some(Pace::Second));
        let late = async {
            sleep(Duration::from_millis(850)).await;
            events.publish(changed(RunId::now()));
        };
        let ticks =
            async { [pulse.next(&mut Quiet).await, pulse.next(&mut Quiet).await, pulse.next(&mut Quiet).await] };
        let ((), ticks) = tokio::join!(late, ticks);
        assert!(ticks.contains(&Some(Tick::Changed)), "{ticks:?}");
    }

    #[tokio::test]
    async fn a_stream_ends_at_shutdown_and_when_nothing_can_change_any_more() {
        let events = Events::default();
        let mut over = pulse(&events, Topic::Everything, Some(Pace::Over));
        assert_eq!(over.next(&mut Quiet).await, None);
        let mut running = pulse(&events, Topic::Everything, Some(Pace::Minute));
        running.shutdown.cancel();
        assert_eq!(running.next(&mut Quiet).await, None);
    }

    /// A page with constant news.
    struct Busy;

    impl View for Busy {
        async fn frame(&mut self, _: Tick) -> Result<Frame> {
            Ok(Frame { patches: Vec::new(), pace: Pace::Second })
        }

        async fn news(&mut self) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn news_are_sent_immediately_and_do_not_delay_regular_updates() {
        let mut pulse = pulse(&Events::default(), Topic::Everything, Some(Pace::Second));
        assert_eq!(pulse.next(&mut Busy).await, Some(Tick::News));
        while pulse.next(&mut Busy).await != Some(Tick::Time) {}
        assert!(pulse.updated_at.elapsed() >= Duration::from_secs(1));
    }
}
