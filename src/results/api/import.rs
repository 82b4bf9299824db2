//! Importing other people's results.

use std::collections::BTreeMap;

use axum::{
    Json,
    body::Bytes,
    extract::{State, rejection::BytesRejection},
    http::StatusCode,
};
use brewbench_agent::reports::encoding::without_mark;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::{
    app::{
        error::{Asked, Error, ErrorBody, Result},
        rate_limit::uploads::Room,
        state::AppState,
    },
    auth::caller::Submit,
    catalog::model::find_size,
    results::import::{self, Imported, about::About},
    runs::model::RunSize,
};

/// What is known of a summary besides itself.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ImportQuery {
    /// Name of the target.
    target: String,
    /// Its version.
    version: Option<String>,
    /// Name of a machine size, or short as `2/4GiB`.
    size: Option<String>,
    /// What was run.
    scenario: Option<String>,
    /// Which repetition, from 1.
    repetition: Option<u32>,
    /// What else tells its load from another, as `NAME=VALUE`; one `parameter` each, e.g. `payload=10K`.
    #[serde(default)]
    parameter: Vec<String>,
}

/// A folder, with the text of each of its files.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct FolderBody {
    /// The text of `index.json`, which says what each file is; its fields stand in the README.
    pub index: String,
    /// The files that it names, by name.
    pub files: BTreeMap<String, String>,
}

/// Import one file, as it is: k6's `handleSummary` data, `--summary-export`, machine-readable summary or text report, or
/// wrk's output. The answer says what it was taken for and which figures it does not have.
#[utoipa::path(post, path = "/api/v1/runs/import", tag = "runs", params(ImportQuery), operation_id = "import",
    request_body(content_type = "application/json", description = "the file, verbatim; its content says what it is"),
    responses((status = 201, body = Imported), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn one(
    Submit(caller): Submit,
    State(state): State<AppState>,
    Asked(query): Asked<ImportQuery>,
    _room: Room,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Imported>)> {
    let bytes = small_enough(&state, bytes)?;
    let ImportQuery { target, version, size, scenario, repetition, parameter } = query;
    let about = About {
        target,
        version,
        size: meant_size(&state, size.as_deref()).await?,
        scenario,
        parameters: parameter.iter().map(|text| pair(text)).collect::<Result<_>>()?,
        repetition: repetition.unwrap_or(1),
        ..About::default()
    };
    let imported = import::one(&state, None, about, &bytes, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

/// Import a folder with an index: all of its files, or none where one is at fault.
#[utoipa::path(post, path = "/api/v1/runs/import/folder", tag = "runs", request_body = FolderBody,
    operation_id = "import_folder",
    responses((status = 201, body = Imported), (status = 413, body = ErrorBody), (status = 422, body = ErrorBody),
        (status = 503, body = ErrorBody)))]
pub async fn folder(
    Submit(caller): Submit,
    State(state): State<AppState>,
    _room: Room,
    bytes: Result<Bytes, BytesRejection>,
) -> Result<(StatusCode, Json<Imported>)> {
    let bytes = small_enough(&state, bytes)?;
    let text = without_mark(&bytes).map_err(|fault| Error::Invalid(format!("the body {fault}")))?;
    let FolderBody { index, files } =
        serde_json::from_slice(text).map_err(|fault| Error::Invalid(format!("the body: {fault}")))?;
    let imported = import::whole_folder(&state, &index, &files, &caller.name).await?;
    Ok((StatusCode::CREATED, Json(imported)))
}

fn small_enough(state: &AppState, bytes: Result<Bytes, BytesRejection>) -> Result<Bytes> {
    let limit = state.config.max_summary_bytes;
    bytes.map_err(|fault| match fault.into() {
        Error::TooLarge(_) => Error::TooLarge(format!("the file is larger than the limit of {limit} bytes")),
        other => other,
    })
}

/// The machine size that somebody means; fails if there is none.
pub async fn meant_size(state: &AppState, meant: Option<&str>) -> Result<Option<RunSize>> {
    let Some(meant) = meant else { return Ok(None) };
    let sizes = crate::catalog::store::sizes(&state.db.read).await?;
    let size = find_size(&sizes, meant).ok_or_else(|| Error::Invalid(format!("size: there is no {meant:?}")))?;
    Ok(Some(RunSize { name: size.name.clone(), vcpus: size.vcpus, memory_bytes: size.memory_bytes }))
}

/// A parameter from `NAME=VALUE`.
pub fn pair(text: &str) -> Result<(String, String)> {
    let pair = text.split_once('=').map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()));
    pair.ok_or_else(|| Error::Invalid(format!("parameter: write {text:?} as NAME=VALUE")))
}
