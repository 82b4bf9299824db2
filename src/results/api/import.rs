//! Imports results that were measured elsewhere.

use std::collections::BTreeMap;

use axum::{
    Json,
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::StatusCode,
};
use brewbench_wire::reports::encoding::without_mark;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        rate_limit::uploads::UploadPermit,
        state::AppState,
    },
    auth::caller::Submit,
    catalog::model::find_size,
    results::import::{self, Imported, about::About},
    runs::model::{RunSize, RunSpec},
};

/// Metadata of an imported summary.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// Name of the target.
    target: String,
    /// Its version.
    version: Option<String>,
    /// Name of a machine size, or its short form such as `2/4GiB`.
    size: Option<String>,
    /// Name of the scenario.
    scenario: Option<String>,
    /// Number of the repetition, from 1.
    repetition: Option<u32>,
    /// Distinguishes its load from others, as `NAME=VALUE`, e.g. `payload=10K`; repeatable.
    #[serde(default)]
    parameter: Vec<String>,
}

/// A folder with the text of its files.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderBody {
    /// The text of `index.json`, which describes each file; the README documents its fields.
    pub index: String,
    /// Text of each listed file by its name.
    pub files: BTreeMap<String, String>,
}

/// Import one file unchanged: k6's `handleSummary` data, `--summary-export`, machine-readable summary or text report,
/// or wrk's output. The response describes how it was read and which metrics it lacks.
#[utoipa::path(post, path = "/api/v1/runs/import", tag = "runs", params(ImportQuery), operation_id = "import",
    request_body(content_type = "application/json", description = "the file, verbatim; its format is detected"),
    responses((status = 201, body = Imported), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn one(
    Submit(caller): Submit,
    State(state): State<AppState>,
    QueryParams(query): QueryParams<ImportQuery>,
    _room: UploadPermit,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Imported>)> {
    let bytes = small_enough(&state, bytes)?;
    let ImportQuery { target, version, size, scenario, repetition, parameter } = query;
    let size = requested_size(&state, size.as_deref()).await?;
    let parameters = parameter.iter().map(|text| pair(text)).collect::<Result<_>>()?;
    let about = About {
        spec: RunSpec { target, size, scenario, parameters, ..RunSpec::default() },
        version,
        repetition: repetition.unwrap_or(1),
        ..About::default()
    };
    let imported = import::import_file(&state, None, about, &bytes, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

/// Import a folder with an index: all of its files, or none if one is invalid.
#[utoipa::path(post, path = "/api/v1/runs/import/folder", tag = "runs", request_body = FolderBody,
    operation_id = "import_folder",
    responses((status = 201, body = Imported), (status = 409, body = ErrorBody), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn folder(
    Submit(caller): Submit,
    State(state): State<AppState>,
    _room: UploadPermit,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Imported>)> {
    let bytes = small_enough(&state, bytes)?;
    let text = without_mark(&bytes).map_err(|fault| Error::Invalid(format!("the body {fault}")))?;
    let FolderBody { index, files } =
        serde_json::from_slice(text).map_err(|fault| Error::Invalid(format!("the body: {fault}")))?;
    let imported = import::import_folder(&state, &index, &files, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(imported)))
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

/// Parses a parameter `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String)> {
    let pair = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pair.ok_or_else(|| Error::Invalid(format!("parameter: write {text:?} as NAME=VALUE")))
}
