//! JSON of experiments.

use std::{convert::Infallible, time::Duration};

use axum::{
    Extension, Json,
    extract::{Path, State},
    http::StatusCode,
    response::{
        Sse,
        sse::{Event, KeepAlive},
    },
};
use brewbench_agent::wire::now_ms;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    list,
    progress::progress,
    submission::{check, make},
};
use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Input, Result},
        ids::ExperimentId,
        state::{AppState, RunChanged},
    },
    auth::caller::{Read, Submit},
    experiments::{
        lookup::{found, whole},
        model::{ExperimentInfo, ExperimentList, ExperimentWithRuns},
        plan::Plan,
    },
    fleet::presence::Presence,
};

const MOST_LISTED: u32 = 200;

/// Which experiments.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only experiments submitted before this one: the last id of the page before.
    #[param(value_type = Option<String>)]
    before: Option<ExperimentId>,
    /// Only experiments with this label.
    label: Option<String>,
    /// At most so many, up to 200; 20 unless said.
    limit: Option<u32>,
}

/// Experiments, newest first, each with its progress and its verdict in one line.
#[utoipa::path(get, path = "/api/v1/experiments", tag = "experiments", params(ListQuery),
    responses((status = 200, body = ExperimentList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    Asked(query): Asked<ListQuery>,
) -> Result<Json<ExperimentList>> {
    let limit = query.limit.unwrap_or(20).clamp(1, MOST_LISTED);
    let which = list::Which { before: query.before.as_ref(), label: query.label.as_deref(), limit: limit.into() };
    let lines = list::lines(&state, which, &[]).await?;
    let info = |line: list::Line| -> Result<ExperimentInfo> {
        let verdict = line.verdict();
        let url = state.public_url.join(&format!("experiments/{}", line.experiment.id)).map_err(Error::internal)?;
        Ok(ExperimentInfo { experiment: line.experiment, url: url.into(), progress: line.progress, verdict })
    };
    Ok(Json(ExperimentList { experiments: lines.into_iter().map(info).collect::<Result<_>>()? }))
}

/// Submit an experiment: its runs are queued.
#[utoipa::path(post, path = "/api/v1/experiments", tag = "experiments",
    request_body = Plan,
    responses((status = 201, body = ExperimentWithRuns), (status = 409, body = ErrorBody), (status = 422, body = ErrorBody)))]
pub async fn submit(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Extension(presence): Extension<Presence>,
    Input(plan): Input<Plan>,
) -> Result<(StatusCode, Json<ExperimentWithRuns>)> {
    let checked = check(&state, &presence, plan).await?;
    Ok((StatusCode::CREATED, Json(make(&state, checked, caller.name).await?)))
}

/// An experiment with its runs and its progress.
#[utoipa::path(get, path = "/api/v1/experiments/{id}", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn show(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    Ok(Json(whole(&state, &id).await?))
}

/// Watch an experiment: an event `progress` at once and whenever something changes (at least every second while it
/// runs), the last one when it is over.
#[utoipa::path(get, path = "/api/v1/experiments/{id}/events", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream"), (status = 404, body = ErrorBody)))]
pub async fn watch(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    found(&state, &id).await?;
    let place = state.limits.streams.open(&caller.name)?;
    // Clients ask again, and are refused if they may not any more.
    let until = state.events.people_change();
    let changes = changes(state, id).take_until(until).inspect(move |_| {
        // Until the stream ends.
        let _ = &place;
    });
    Ok(Sse::new(changes).keep_alive(KeepAlive::default()))
}

fn changes(state: AppState, id: ExperimentId) -> impl Stream<Item = Result<Event, Infallible>> {
    let listener = state.events.listen();
    futures_util::stream::unfold((state, id, listener, Next::Now), |(state, id, mut listener, next)| async move {
        if next == Next::End {
            return None;
        }
        if next == Next::Change {
            tokio::select! {
                () = next_change(&mut listener, &id) => {}
                () = tokio::time::sleep(Duration::from_secs(1)) => {}
                () = state.shutdown.cancelled() => return None,
            }
        }
        let experiment = found(&state, &id).await.ok()?;
        let runs = crate::runs::store::of_experiment(&state.db.rows, &id).await.ok()?;
        let progress = progress(&experiment, &runs, now_ms());
        let next = if progress.is_over() { Next::End } else { Next::Change };
        let event = Event::default().event("progress").json_data(&progress).ok()?;
        Some((Ok(event), (state, id, listener, next)))
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Now,
    Change,
    End,
}

/// Waits until something of this experiment changes; a listener that missed something takes it for a change.
pub async fn next_change(listener: &mut tokio::sync::broadcast::Receiver<RunChanged>, experiment: &ExperimentId) {
    use tokio::sync::broadcast::error::RecvError;
    loop {
        match listener.recv().await {
            Ok(changed) if changed.experiment.as_ref() != Some(experiment) => {}
            Ok(_) | Err(RecvError::Lagged(_)) => return,
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
