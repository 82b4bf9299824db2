//! Imports results that were measured elsewhere.

use axum::{
    Json,
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::StatusCode,
};
use brewbench_wire::reports::{hints::Hints, preview::FilePreview, tables::column::BadColumn};
use serde::Deserialize;
use tokio::task::spawn_blocking;
use utoipa::IntoParams;

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    auth::caller::Submit,
    catalog::model::find_size,
    results::import::{self, Imported, Upload, about::About},
    runs::model::{RunSize, RunSpec},
};

/// Metadata of an imported summary.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// Name of the target. Default: the heading or name of a report in a file with several, or else the name of the file.
    target: Option<String>,
    /// Name of the file.
    file: Option<String>,
    /// Its version.
    version: Option<String>,
    /// Name of a machine size, or its short form such as `2/4GiB`.
    size: Option<String>,
    /// Name of the scenario.
    scenario: Option<String>,
    /// Number of the repetition, from 1: of the first report of each target.
    repetition: Option<u32>,
    /// Distinguishes its load from others, as `NAME=VALUE`, e.g. `payload=10K`; repeatable.
    #[serde(default)]
    parameter: Vec<String>,
    /// Meaning of a column of a table, as `NAME=COLUMN`, e.g. `Slowest=max ms` or `*=requests/s` for a table with a column for
    /// each target; repeatable. Others are guessed by their names.
    #[serde(default)]
    column: Vec<String>,
    /// Seconds of each load, for a file that lacks them.
    duration: Option<f64>,
    /// Imports only reports with these words in their names or headings.
    only: Option<String>,
}

/// Information that a file lacks.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PreviewQuery {
    /// As of an import.
    #[serde(default)]
    column: Vec<String>,
    /// As of an import.
    duration: Option<f64>,
}

/// Import one file unchanged: the result of a load generator, a text with several, a collection, a table, or a tar or zip
/// of files, which an `index.json` in it may describe. A run for each report, or none if one is invalid. The response
/// describes how it was read and which metrics it lacks.
#[utoipa::path(post, path = "/api/v1/runs/import", tag = "runs", params(ImportQuery), operation_id = "import",
    request_body(content_type = "application/octet-stream", description = "the file, verbatim; its format is detected"),
    responses((status = 201, body = Imported), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn import(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ImportQuery>,
    _room: UploadPermit,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Imported>)> {
    let bytes = small_enough(&state, bytes)?;
    let ImportQuery { target, file, version, size, scenario, repetition, parameter, column, duration, only } = query;
    let size = requested_size(&state, size.as_deref()).await?;
    let parameters = parameter.iter().map(|text| pair(text)).collect::<Result<_>>()?;
    let about = About {
        spec: RunSpec { target: target.unwrap_or_default(), size, scenario, parameters, ..RunSpec::default() },
        version,
        repetition: repetition.unwrap_or_default(),
        ..About::default()
    };
    let upload = Upload { name: file, about, hints: hints(&column, duration)?, only, bytes: bytes.to_vec() };
    let imported = import::import_file(&state, upload, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

/// Show what a file contains, and store nothing.
#[utoipa::path(post, path = "/api/v1/runs/import/preview", tag = "runs", params(PreviewQuery),
    operation_id = "preview_import",
    request_body(content_type = "application/octet-stream", description = "the file, verbatim; its format is detected"),
    responses((status = 200, body = Vec<FilePreview>), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn preview(
    Submit(_caller): Submit,
    State(state): State<AppState>,
    QueryParams(PreviewQuery { column, duration }): QueryParams<PreviewQuery>,
    _room: UploadPermit,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<Json<Vec<FilePreview>>> {
    let bytes = small_enough(&state, bytes)?;
    let hints = hints(&column, duration)?;
    let found = spawn_blocking(move || FilePreview::all(None, &bytes, &hints)).await.map_err(Error::internal)?;
    let found = found.map_err(|fault| Error::Invalid(fault.to_string()))?;
    match found.as_slice() {
        [file] if file.reports.is_empty() && file.columns.is_empty() => Err(Error::Invalid(file.faults.join("; "))),
        _ => Ok(Json(found)),
    }
}

fn small_enough(state: &AppState, bytes: Result<Bytes, BytesRejection>) -> Result<Bytes> {
    let limit = state.config.max_summary_bytes;
    bytes.map_err(|fault| match fault.into() {
        Error::TooLarge(_) => Error::TooLarge(format!("the file is larger than the limit of {limit} bytes")),
        other => other,
    })
}

/// Finds the requested machine size; fails if it does not exist.
pub async fn requested_size(state: &AppState, requested: Option<&str>) -> Result<Option<RunSize>> {
    let Some(requested) = requested else { return Ok(None) };
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    let size = find_size(&sizes, requested)
        .ok_or_else(|| Error::Invalid(format!("size: there is no machine size {requested:?}")))?;
    Ok(Some(RunSize::from(size)))
}

/// Parses information that a file lacks.
pub fn hints(columns: &[String], duration_s: Option<f64>) -> Result<Hints> {
    let column = |text: &String| {
        let (name, column) =
            text.rsplit_once('=').ok_or_else(|| Error::Invalid(format!("column: write {text:?} as NAME=COLUMN")))?;
        let column = column.parse().map_err(|fault: BadColumn| Error::Invalid(format!("column {name:?}: {fault}")))?;
        Ok((name.to_owned(), column))
    };
    if duration_s.is_some_and(|seconds| !(0.001..=864_000.0).contains(&seconds)) {
        return Err(Error::Invalid("duration: not a valid number of seconds of a load".to_owned()));
    }
    let columns = columns.iter().map(column).collect::<Result<_>>()?;
    Ok(Hints { columns, duration_ms: duration_s.map(|seconds| seconds * 1e3) })
}

/// Parses a parameter `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String)> {
    let pair = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pair.ok_or_else(|| Error::Invalid(format!("parameter: write {text:?} as NAME=VALUE")))
}
