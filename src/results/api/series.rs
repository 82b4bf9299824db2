//! The time series of a run, as JSON or as CSV for spreadsheets.

use axum::{
    Json,
    extract::{Path, State},
    http::header,
    response::{IntoResponse, Response},
};
use brewbench_wire::series::{Packed, Series};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::RunId,
        state::AppState,
    },
    auth::caller::Read,
    live::feed::LiveFeed,
    results::{
        series::{
            model::{SeriesBody, SideCores},
            table,
        },
        store::downsampled,
    },
    runs::{lookup::found, model::Run},
    web::time_ago::exact,
};

/// The format of a time series.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum SeriesFormat {
    /// With the unit of each value.
    #[default]
    Json,
    /// One line per second.
    Csv,
}

/// Format of the response.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct SeriesQuery {
    /// `json` by default.
    #[serde(default)]
    format: SeriesFormat,
}

/// Show the time series of a run: load, latencies and resources per second; of a run in progress, the series so far.
#[utoipa::path(get, path = "/api/v1/runs/{id}/series", tag = "runs", params(("id" = String, Path), SeriesQuery),
    responses((status = 200, body = SeriesBody, description = "or text/csv"), (status = 404, body = ErrorBody)))]
pub async fn series(
    _: Read,
    State(state): State<AppState>,
    Path(id): Path<RunId>,
    QueryParams(query): QueryParams<SeriesQuery>,
) -> Result<Response> {
    let run = found(&state, &id).await?;
    let Some(series) = current(&state, &run).await? else {
        let gone = downsampled::reduction(&state.db.read, &id)
            .await?
            .map(|(_, at)| format!(": retention deleted it {}", exact(Some(at))));
        return Err(Error::NotFound(format!("series of run {:?}{}", id.as_str(), gone.unwrap_or_default())));
    };
    let evidence = crate::runs::api::environment::evidence(&state, &run.id).await?;
    let body = SeriesBody::new(&id, &series, SideCores::new(&run, evidence.as_ref()));
    let name = |end: &str| {
        let disposition = format!("attachment; filename=\"{}-series.{end}\"", id.as_str().replace(['"', '\\'], ""));
        (header::CONTENT_DISPOSITION, disposition)
    };
    Ok(match query.format {
        SeriesFormat::Json => ([name("json")], Json(body)).into_response(),
        SeriesFormat::Csv => {
            let kind = (header::CONTENT_TYPE, "text/csv; charset=utf-8".to_owned());
            ([kind, name("csv")], table::csv(&body)).into_response()
        }
    })
}

/// Returns the series of a run: the stored one, or of a run in progress the series so far.
pub async fn current(state: &AppState, run: &Run) -> Result<Option<Series>> {
    if run.has_ended() {
        return stored(state, &run.id).await;
    }
    Ok(run.id.to_wire().ok().and_then(|id| state.memory::<LiveFeed>().series(id)))
}

/// Returns the stored series of a run.
pub async fn stored(state: &AppState, id: &RunId) -> Result<Option<Series>> {
    let packed = crate::runs::store::series(&state.db.read, id).await?.map(Packed::from_bytes);
    packed.map(|packed| packed.unpack().map_err(Error::internal)).transpose()
}
