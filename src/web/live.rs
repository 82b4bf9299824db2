//! Pages that follow what happens: Datastar patches over SSE, sent when something has changed, while something runs once
//! a second, and at once for what a page calls news. The compression layer leaves `text/event-stream` alone by itself.

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
    state::{AppState, RunChanged},
};

/// Changes that come closer together than this are shown as one.
const CALM: Duration = Duration::from_millis(300);

/// A stream ends after so long and the page asks again: whoever may no longer read then learns of it.
const LONGEST: Duration = Duration::from_mins(10);

/// What a page shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Concerns {
    /// All runs.
    Everything,
    /// One run.
    Run(RunId),
    /// The runs of one experiment.
    Experiment(ExperimentId),
}

impl Concerns {
    fn meets(&self, changed: &RunChanged) -> bool {
        match self {
            Self::Everything => true,
            Self::Run(run) => changed.run == *run,
            Self::Experiment(experiment) => changed.experiment.as_ref() == Some(experiment),
        }
    }
}

/// Why a page is looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beat {
    /// It has just begun to follow: what happened since it was rendered is not on it.
    Start,
    /// Something that it shows has changed.
    Changed,
    /// Nothing but the time has changed.
    Time,
    /// There is news of the page's own.
    News,
}

/// When it is looked at again at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// Something runs: bars move.
    Second,
    /// Nothing runs: only times such as `3 min ago` grow old.
    Minute,
    /// Nothing will change any more.
    Over,
}

/// What is sent at one beat.
#[derive(Debug)]
pub struct Frame {
    /// Elements of the page by their ids.
    pub patches: Vec<PatchElements>,
    /// When to look again.
    pub pace: Pace,
}

/// A page that follows.
pub trait View: Send + 'static {
    /// What of the page is different now.
    fn frame(&mut self, beat: Beat) -> impl Future<Output = Result<Frame>> + Send;

    /// Waits for something that is to be shown at once, which the next frame does. It may be dropped while it waits.
    fn news(&mut self) -> impl Future<Output = ()> + Send {
        std::future::pending()
    }
}

/// A fragment whose root carries an id takes the place of the element with this id.
pub fn patch(fragment: &impl Template) -> Result<PatchElements> {
    Ok(PatchElements::new(fragment.render().map_err(Error::internal)?))
}

/// The stream of a page for a caller. An error ends it; the page asks again and then is told.
pub fn follow<V: View>(
    state: &AppState,
    caller: &str,
    concerns: Concerns,
    view: V,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>> + use<V>>> {
    let place = state.limits.streams.open(caller)?;
    let pulse = Pulse {
        changes: state.events.listen(),
        concerns,
        people: state.events.people(),
        shutdown: state.shutdown.clone(),
        until: Instant::now() + LONGEST,
        next: None,
        looked_at: Instant::now(),
    };
    let frames = stream::unfold((pulse, view, place), |(mut pulse, mut view, place)| async move {
        let beat = pulse.next(&mut view).await?;
        let frame =
            view.frame(beat).await.inspect_err(|fault| tracing::debug!(%fault, "a page stopped following")).ok()?;
        pulse.next = Some(frame.pace);
        if beat != Beat::News {
            pulse.looked_at = Instant::now();
        }
        Some((frame.patches, (pulse, view, place)))
    });
    let events = frames.flat_map(|patches| stream::iter(patches.into_iter().map(|patch| Ok(patch.into()))));
    Ok(Sse::new(events).keep_alive(KeepAlive::default()))
}

/// Says when to look.
struct Pulse {
    changes: Receiver<RunChanged>,
    concerns: Concerns,
    /// Somebody may do less than before: the page asks again, and is refused if it is hers.
    people: watch::Receiver<u64>,
    shutdown: CancellationToken,
    until: Instant,
    /// None before the first look.
    next: Option<Pace>,
    /// News are no look: the time goes on beside them.
    looked_at: Instant,
}

impl Pulse {
    /// Waits for the next look; none when the stream is to end.
    async fn next(&mut self, view: &mut impl View) -> Option<Beat> {
        let rest = match self.next {
            None => return Some(Beat::Start),
            Some(Pace::Over) => return None,
            Some(Pace::Second) => Duration::from_secs(1),
            Some(Pace::Minute) => Duration::from_mins(1),
        };
        let (shutdown, until, due) = (self.shutdown.clone(), self.until, self.looked_at + rest);
        let mut people = self.people.clone();
        tokio::select! {
            () = shutdown.cancelled() => return None,
            () = sleep_until(until) => return None,
            Ok(()) = people.changed() => return None,
            () = view.news() => return Some(Beat::News),
            () = sleep_until(due) => return Some(Beat::Time),
            () = self.change() => {}
        }
        // Not while the clock runs as well: the change is heard, and a beat of time must not take its place.
        sleep(CALM).await;
        self.changes = self.changes.resubscribe();
        Some(Beat::Changed)
    }

    /// Waits for a change that the page shows. Those that come along with it are for the caller to drop.
    async fn change(&mut self) {
        loop {
            match self.changes.recv().await {
                Ok(changed) if !self.concerns.meets(&changed) => {}
                // Who missed something must look.
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

    fn pulse(events: &Events, concerns: Concerns, next: Option<Pace>) -> Pulse {
        Pulse {
            changes: events.listen(),
            concerns,
            people: events.people(),
            shutdown: CancellationToken::new(),
            until: Instant::now() + LONGEST,
            next,
            looked_at: Instant::now(),
        }
    }

    /// A page without news of its own.
    struct Quiet;

    impl View for Quiet {
        async fn frame(&mut self, _: Beat) -> Result<Frame> {
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
    async fn a_page_is_sent_at_once_and_then_when_something_of_it_changes() {
        let events = Events::default();
        let run = RunId::now();
        let mut pulse = pulse(&events, Concerns::Run(run.clone()), None);
        assert_eq!(pulse.next(&mut Quiet).await, Some(Beat::Start));
        pulse.next = Some(Pace::Minute);
        events.tell(changed(RunId::now()));
        events.tell(changed(run));
        assert_eq!(pulse.next(&mut Quiet).await, Some(Beat::Changed));
    }

    #[tokio::test]
    async fn changes_that_come_together_are_one() {
        let events = Events::default();
        let mut pulse = pulse(&events, Concerns::Experiment(experiment()), Some(Pace::Second));
        for _ in 0..400 {
            events.tell(changed(RunId::now()));
        }
        assert_eq!(pulse.next(&mut Quiet).await, Some(Beat::Changed));
        assert_eq!(pulse.next(&mut Quiet).await, Some(Beat::Time));
    }

    #[tokio::test]
    async fn a_change_right_before_a_beat_of_time_is_shown_all_the_same() {
        let events = Events::default();
        let mut pulse = pulse(&events, Concerns::Everything, Some(Pace::Second));
        let late = async {
            sleep(Duration::from_millis(850)).await;
            events.tell(changed(RunId::now()));
        };
        let beats =
            async { [pulse.next(&mut Quiet).await, pulse.next(&mut Quiet).await, pulse.next(&mut Quiet).await] };
        let ((), beats) = tokio::join!(late, beats);
        assert!(beats.contains(&Some(Beat::Changed)), "{beats:?}");
    }

    #[tokio::test]
    async fn a_stream_ends_with_the_server_and_when_nothing_will_change_any_more() {
        let events = Events::default();
        let mut over = pulse(&events, Concerns::Everything, Some(Pace::Over));
        assert_eq!(over.next(&mut Quiet).await, None);
        let mut running = pulse(&events, Concerns::Everything, Some(Pace::Minute));
        running.shutdown.cancel();
        assert_eq!(running.next(&mut Quiet).await, None);
    }

    /// A page with news all the time.
    struct Busy;

    impl View for Busy {
        async fn frame(&mut self, _: Beat) -> Result<Frame> {
            Ok(Frame { patches: Vec::new(), pace: Pace::Second })
        }

        async fn news(&mut self) {
            sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn news_come_at_once_and_do_not_keep_the_time_from_going_on() {
        let mut pulse = pulse(&Events::default(), Concerns::Everything, Some(Pace::Second));
        assert_eq!(pulse.next(&mut Busy).await, Some(Beat::News));
        while pulse.next(&mut Busy).await != Some(Beat::Time) {}
        assert!(pulse.looked_at.elapsed() >= Duration::from_secs(1));
    }
}
