//! JSON of runs in progress: the current runs, and an event stream of one run.

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
use brewbench_wire::{Phase, now_ms};
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
        feed::{self, LiveFeed, Update},
        status::{Now, PointsBody, RunNow, to_json},
    },
    results::{api::series::stored, series::model::SideCores},
    runs::{
        lookup::found,
        model::{Run, RunList},
    },
};

/// Maximum length of a stream. Clients reconnect, which re-checks their permission.
const MAX_STREAM: Duration = Duration::from_mins(10);

/// The id of the last event; a client that sends it has received everything.
const END: &str = "end";

/// Maximum number of unfinished runs to list.
const MAX_RUNNING: i64 = 1_000;

/// List the runs in progress with progress and rate, and the number of queued runs.
#[utoipa::path(get, path = "/api/v1/runs/now", tag = "runs", responses((status = 200, body = Now)))]
pub async fn now(_: Read, State(state): State<AppState>) -> Result<Json<Now>> {
    let (running, queued) = crate::runs::store::unfinished_count(&state.db.read).await?;
    let limit = i64::try_from(running).unwrap_or(MAX_RUNNING).min(MAX_RUNNING);
    let runs = crate::runs::store::unfinished(&state.db.rows, limit).await?;
    let running_runs = runs.iter().filter(|run| run.phase != Phase::Queued);
    Ok(Json(Now { running: running_runs.map(|run| run_now(&state, run, &[])).collect(), queued }))
}

/// Returns the progress of a run.
fn run_now(state: &AppState, run: &Run, others: &[&Run]) -> RunNow {
    let id = run.id.to_wire().ok();
    let rate = id.and_then(|id| state.memory::<LiveFeed>().rate(id));
    let step = id.filter(|_| run.phase == Phase::Preparing).and_then(|id| state.memory::<LiveFeed>().step(id));
    RunNow { step, ..RunNow::new(run, others, rate, now_ms()) }
}

/// Stream a run in progress as server-sent events.
///
/// Events: `phase` (a `RunNow`) at once and on each change; `points` (a `PointsBody`) with the series so far, then each
/// update; `end` (a `RunList` of one) when the run has ended. Before `end`, clients reconnect with `Last-Event-ID`, as
/// browsers do by themselves; after `end` the response is 204.
#[utoipa::path(get, path = "/api/v1/runs/{id}/series/live", tag = "runs",
    params(("id" = String, Path), ("Last-Event-ID" = Option<String>, Header, description = "the last event's id")),
    responses((status = 200, content_type = "text/event-stream", body = PointsBody), (status = 204, description = "all was sent"),
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
        opened: state.memory::<LiveFeed>().opened(),
        updates: None,
        mark: last.and_then(|mark| mark.parse().ok()),
        run: run.id.to_wire().map_err(Error::internal)?,
        cores: SideCores::new(&run, None),
        id: run.id,
        until: Instant::now() + MAX_STREAM,
        next: Next::Load,
        state,
    };
    // Clients reconnect and are refused if they have lost their permission.
    let until = follower.state.events.rights_change();
    Ok(Sse::new(events(follower).take_until(until)).keep_alive(KeepAlive::default()).into_response())
}

fn events(follower: Follower) -> impl Stream<Item = Result<Event, Infallible>> {
    let batches = stream::unfold(follower, |mut follower| async move { Some((follower.next().await?, follower)) });
    batches.flat_map(|events| stream::iter(events.into_iter().map(Ok)))
}

/// A client that follows a run.
struct Follower {
    state: AppState,
    _place: streams::Stream,
    id: RunId,
    run: brewbench_wire::RunId,
    cores: SideCores,
    changes: Receiver<RunChanged>,
    opened: watch::Receiver<()>,
    /// None while no agent reports the run.
    updates: Option<Receiver<Arc<Update>>>,
    /// The client has everything up to here.
    mark: Option<i64>,
    until: Instant,
    next: Next,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Load,
    Wait,
    Over,
}

impl Follower {
    /// Returns the next events; None when the stream ends.
    async fn next(&mut self) -> Option<Vec<Event>> {
        loop {
            if self.next == Next::Over {
                return None;
            }
            if self.next == Next::Load {
                self.next = Next::Wait;
                return self
                    .load()
                    .await
                    .inspect_err(|fault| tracing::debug!(%fault, "cannot read the followed run"))
                    .ok();
            }
            let events = tokio::select! {
                () = self.state.shutdown.cancelled() => return None,
                () = sleep_until(self.until) => return None,
                update = next_update(&mut self.updates) => match update {
                    Ok(update) => vec![self.points(&update)],
                    // The client was too slow and missed updates.
                    Err(RecvError::Lagged(_)) => self.join(),
                    Err(RecvError::Closed) => {
                        self.updates = None;
                        continue;
                    }
                },
                _ = self.opened.changed(), if self.updates.is_none() => self.join(),
                () = change(&mut self.changes, &self.id) => {
                    self.next = Next::Load;
                    continue;
                }
            };
            if !events.is_empty() {
                return Some(events);
            }
        }
    }

    /// Loads the run and returns its progress, and the end if it has ended.
    async fn load(&mut self) -> Result<Vec<Event>> {
        let run = found(&self.state, &self.id).await?;
        let cell = crate::runs::store::repetitions(&self.state.db.rows, &run).await?;
        let others: Vec<&Run> = cell.iter().filter(|other| other.id != run.id).collect();
        let mut events = vec![event("phase", &run_now(&self.state, &run, &others))?];
        if run.has_ended() {
            self.next = Next::Over;
            let series = stored(&self.state, &run.id).await?.unwrap_or_default();
            events.extend(feed::since(series, self.mark).iter().map(|update| self.points(update)));
            let runs = RunList { runs: vec![run] };
            events.push(event("end", &runs)?.id(END));
        } else if self.updates.is_none() {
            events.extend(self.join());
        }
        Ok(events)
    }

    /// Subscribes if an agent reports the run; returns the missed points.
    fn join(&mut self) -> Vec<Event> {
        let Some((missed, updates)) = self.state.memory::<LiveFeed>().subscribe(self.run, self.mark) else {
            return Vec::new();
        };
        self.updates = Some(updates);
        missed.iter().map(|update| self.points(update)).collect()
    }

    fn points(&mut self, update: &Update) -> Event {
        self.mark = Some(update.mark);
        Event::default().event("points").id(update.mark.to_string()).data(to_json(update, self.cores))
    }
}

fn event(name: &str, data: &impl serde::Serialize) -> Result<Event> {
    Event::default().event(name).json_data(data).map_err(Error::internal)
}

async fn next_update(updates: &mut Option<Receiver<Arc<Update>>>) -> Result<Arc<Update>, RecvError> {
    match updates {
        Some(updates) => updates.recv().await,
        None => std::future::pending().await,
    }
}

/// Waits until this run changes; missed events count as a change.
async fn change(changes: &mut Receiver<RunChanged>, run: &RunId) {
    loop {
        match changes.recv().await {
            Ok(other) if other.run != *run => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
