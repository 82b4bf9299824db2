//! Runs under way: what runs now, and one run as it goes on.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Json,
    extract::{Path, State},
    http::{HeaderMap, StatusCode},
    response::{
        IntoResponse, Response, Sse,
        sse::{Event, KeepAlive},
    },
};
use brewbench_agent::wire::{self, Phase, now_ms};
use futures_util::{Stream, StreamExt, stream};
use tokio::{
    sync::{
        broadcast::{Receiver, error::RecvError},
        watch,
    },
    time::{Instant, sleep_until},
};

use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        ids::RunId,
        rate_limit::streams,
        state::{AppState, RunChanged},
    },
    auth::caller::Read,
    live::{
        feed::{self, News},
        status::{Now, PointsBody, RunNow, written},
    },
    results::{api::series::stored, series::model::SideCores},
    runs::{
        lookup::found,
        model::{Run, RunList},
    },
};

/// A stream ends after so long and is asked for again: whoever may no longer read then learns of it.
const LONGEST: Duration = Duration::from_mins(10);

/// The id of the last event: who names it has heard everything.
const END: &str = "end";

/// More agents than anybody has.
const MOST_RUNNING: i64 = 1_000;

/// What runs now, how far and how fast each is, and how many wait.
#[utoipa::path(get, path = "/api/v1/runs/now", tag = "runs", responses((status = 200, body = Now)))]
pub async fn now(_: Read, State(state): State<AppState>) -> Result<Json<Now>> {
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let limit = i64::try_from(running).unwrap_or(MOST_RUNNING).min(MOST_RUNNING);
    let runs = crate::runs::store::unfinished(&state.db.rows, limit).await?;
    let begun = runs.iter().filter(|run| run.phase != Phase::Queued);
    Ok(Json(Now { running: begun.map(|run| run_now(&state, run, &[])).collect(), queued }))
}

/// How far a run is.
fn run_now(state: &AppState, run: &Run, others: &[&Run]) -> RunNow {
    let rate = run.id.to_wire().ok().and_then(|id| state.underway.rate(id));
    RunNow::new(run, others, rate, now_ms())
}

/// Follow a run: an event `phase` (a `RunNow`) at once and with each change, `points` (a `PointsBody`) with everything so
/// far and then whatever comes, `end` (a `RunList` of one) when it has ended. A stream that broke or ended before that is
/// asked for again with `Last-Event-ID`, as browsers do by themselves; after `end` the answer to that is 204.
#[utoipa::path(get, path = "/api/v1/runs/{id}/series/live", tag = "runs",
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header, description = "of the last event")),
    responses((status = 200, content_type = "text/event-stream", body = PointsBody), (status = 204, description = "all was told"),
        (status = 404, body = ErrorBody)))]
pub async fn follow(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    headers: HeaderMap,
) -> Result<Response> {
    let run = found(&state, &id).await?;
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    if last == Some(END) && run.has_ended() {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let follower = Follower {
        _place: state.limits.streams.open(&caller.name)?,
        changes: state.events.listen(),
        opened: state.underway.opened(),
        news: None,
        mark: last.and_then(|mark| mark.parse().ok()),
        run: run.id.to_wire().map_err(Error::internal)?,
        cores: SideCores::of(&run, None),
        id: run.id,
        until: Instant::now() + LONGEST,
        next: Next::Look,
        state,
    };
    // Clients ask again, and are refused if they may not any more.
    let until = follower.state.events.people_change();
    Ok(Sse::new(events(follower).take_until(until)).keep_alive(KeepAlive::default()).into_response())
}

fn events(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    let bunches = stream::unfold(follower, |mut follower| async move { Some((follower.next().await?, follower)) });
    bunches.flat_map(|events| stream::iter(events.into_iter().map(Ok)))
}

/// Somebody who follows a run.
struct Follower {
    state: AppState,
    _place: streams::Stream,
    id: RunId,
    run: wire::RunId,
    cores: SideCores,
    changes: Receiver<RunChanged>,
    opened: watch::Receiver<()>,
    /// None while nobody tells of the run.
    news: Option<Receiver<Arc<News>>>,
    /// Up to here it knows everything.
    mark: Option<i64>,
    until: Instant,
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Look,
    Wait,
    Over,
}

impl Follower {
    /// What is to be sent next; none when the stream ends.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            if self.next == Next::Over {
                return None;
            }
            if self.next == Next::Look {
                self.next = Next::Wait;
                return self.look().await.inspect_err(|fault| tracing::debug!(%fault, "nobody follows any more")).ok();
            }
            let events = tokio::select! {
                () = self.state.shutdown.cancelled() => return None,
                () = sleep_until(self.until) => return None,
                news = heard(&mut self.news) => match news {
                    Ok(news) => vec![self.points(&news)],
                    // It was too slow for a while.
                    Err(RecvError::Lagged(_)) => self.join(),
                    Err(RecvError::Closed) => {
                        self.news = None;
                        continue;
                    }
                },
                _ = self.opened.changed(), if self.news.is_none() => self.join(),
                () = change(&mut self.changes, &self.id) => {
                    self.next = Next::Look;
                    continue;
                }
            };
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    /// Where the run stands.
    async fn look(&mut self) -> Result<Vec<Event>> {
        let run = found(&self.state, &self.id).await?;
        let cell = crate::runs::store::repetitions(&self.state.db.rows, &run).await?;
        let others: Vec<&Run> = cell.iter().filter(|other| other.id != run.id).collect();
        let mut events = vec![event("phase", &run_now(&self.state, &run, &others))?];
        if run.has_ended() {
            self.next = Next::Over;
            let series = stored(&self.state, &run.id).await?.unwrap_or_default();
            events.extend(feed::since(series, self.mark).iter().map(|news| self.points(news)));
            let runs = RunList { runs: vec![run] };
            events.push(event("end", &runs)?.id(END));
        } else if self.news.is_none() {
            events.extend(self.join());
        }
        Ok(events)
    }

    /// Begins to listen, if somebody tells of the run, with what it does not know yet.
    fn join(&mut self) -> Vec<Event> {
        let Some((missed, news)) = self.state.underway.listen(self.run, self.mark) else { return Vec::new() };
        self.news = Some(news);
        missed.iter().map(|news| self.points(news)).collect()
    }

    fn points(&mut self, news: &News) -> Event {
        self.mark = Some(news.mark);
        Event::default().event("points").id(news.mark.to_string()).data(written(news, self.cores))
    }
}

fn event(name: &str, data: &impl serde::Serialize) -> Result<Event> {
    Event::default().event(name).json_data(data).map_err(Error::internal)
}

async fn heard(news: &mut Option<Receiver<Arc<News>>>) -> Result<Arc<News>, RecvError> {
    match news {
        Some(news) => news.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits until this run changes; who missed something must look.
async fn change(changes: &mut Receiver<RunChanged>, run: &RunId) {
    loop {
        match changes.recv().await {
            Ok(other) if other.run != *run => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
