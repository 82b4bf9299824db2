//! JSON API of experiments.

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
use brewbench_wire::now_ms;
use futures_util::{Stream, StreamExt};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{
    list,
    progress::progress,
    submission::{check, create},
};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::ExperimentId,
        input::Input,
        paging,
        state::{AppState, RunChanged},
    },
    auth::caller::{Read, Submit},
    experiments::{
        lookup::{find, find_with_runs},
        model::{ExperimentInfo, ExperimentList, ExperimentWithRuns},
        plan::Plan,
    },
    fleet::presence::Presence,
};

const MAX_LISTED: u32 = 200;

/// Filter and page of a list of experiments.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Only experiments after this one in the list: `next` of the previous page.
    #[param(value_type = Option<String>)]
    after: Option<ExperimentId>,
    /// Only experiments with this label.
    label: Option<String>,
    /// Maximum number of experiments, up to 200. Default: 20.
    limit: Option<u32>,
}

/// Lists experiments, newest first, each with its progress and a one-line result.
#[utoipa::path(get, path = "/api/v1/experiments", tag = "experiments", params(ListQuery),
    responses((status = 200, body = ExperimentList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Read,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ListQuery>,
) -> Result<Json<ExperimentList>> {
    let limit = paging::limit(query.limit, 20, MAX_LISTED)?;
    let filter =
        list::Filter { after: query.after.as_ref(), label: query.label.as_deref(), limit: i64::from(limit) + 1 };
    let mut lines = list::lines(&state, filter).await?;
    let next = paging::cut(&mut lines, limit).map(|line| line.experiment.id.clone());
    let info = |line: list::ListedExperiment| -> Result<ExperimentInfo> {
        let verdict = line.verdict();
        let url = state.public_url.join(&format!("experiments/{}", line.experiment.id)).map_err(Error::internal)?;
        Ok(ExperimentInfo { experiment: line.experiment, url: url.into(), progress: line.progress, verdict })
    };
    Ok(Json(ExperimentList { experiments: lines.into_iter().map(info).collect::<Result<_>>()?, next }))
}

/// Submits an experiment and queues its runs.
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
    Ok((StatusCode::CREATED, Json(create(&state, checked, caller).await?)))
}

/// Returns an experiment with its runs and progress.
#[utoipa::path(get, path = "/api/v1/experiments/{id}", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, body = ExperimentWithRuns), (status = 404, body = ErrorBody)))]
pub async fn show(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Json<ExperimentWithRuns>> {
    Ok(Json(find_with_runs(&state, &id).await?))
}

/// Streams the progress of an experiment as server-sent events.
///
/// Sends an event `progress` immediately, after each change and at least every second; the last one when it is over.
#[utoipa::path(get, path = "/api/v1/experiments/{id}/events", tag = "experiments", params(("id" = String, Path)),
    responses((status = 200, content_type = "text/event-stream"), (status = 404, body = ErrorBody)))]
pub async fn watch(
    Read(caller): Read,
    State(state): State<AppState>,
    Path(id): Path<ExperimentId>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>> {
    find(&state, &id).await?;
    let slot = state.limits.streams.open(&caller.name)?;
    // When users or their rights change, the stream ends; clients reconnect and are authorized again.
    let until = state.events.rights_change();
    let changes = changes(state, id).take_until(until).inspect(move |_| {
        // Keep the slot until the stream ends.
        let _ = &slot;
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
        let experiment = find(&state, &id).await.ok()?;
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

/// Waits until this experiment changes. Missed events count as a change.
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
