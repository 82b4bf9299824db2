//! A backup as a file to take away, and the rule for series as JSON.

use std::sync::Arc;

use axum::{
    Extension, Json,
    body::Body,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use jiff::Timestamp;
use tokio::sync::Mutex;
use tokio_util::io::ReaderStream;

use super::{
    backup,
    retention::{self, Rule, SeriesRule},
};
use crate::{
    app::{
        error::{Error, ErrorBody, Input, Result},
        state::AppState,
    },
    auth::{
        audit::deed::Deed,
        caller::{Admin, Read},
    },
    maintenance,
};

/// One backup at a time: each takes the room of the database while it is made.
#[derive(Clone, Debug, Default)]
pub struct AtWork(Arc<Mutex<()>>);

/// How much of a backup is read at once, bytes.
const CHUNK: usize = 256 * 1024;

/// A backup: the whole database as it is now, as one SQLite file.
#[utoipa::path(get, path = "/api/v1/backup", tag = "keeping",
    responses((status = 200, content_type = "application/vnd.sqlite3"), (status = 409, body = ErrorBody)))]
pub async fn download(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Extension(AtWork(at_work)): Extension<AtWork>,
) -> Result<Response> {
    caller.proven()?;
    let busy = |_| Error::Conflict("a backup is being made already; try again when it is done".to_owned());
    let held = at_work.try_lock_owned().map_err(busy)?;
    let (file, bytes) = backup::to_hand_out(&state.db.read, &state.config.data).await?;
    drop(held);
    maintenance::store::note(&state.db.write, &backup::made(&caller.does(Deed::BackupMade, ""), bytes)).await?;
    let name = format!("brewbench-{}.db", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
    let headers = [
        (header::CONTENT_TYPE, "application/vnd.sqlite3".to_owned()),
        // Who takes it sees by its length that it is whole; what takes most of it is packed already.
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_ENCODING, "identity".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let file = tokio::fs::File::from_std(file);
    Ok((headers, Body::from_stream(ReaderStream::with_capacity(file, CHUNK))).into_response())
}

/// How long series are kept.
#[utoipa::path(get, path = "/api/v1/series-rule", tag = "keeping", responses((status = 200, body = SeriesRule)))]
pub async fn rule(_: Read, State(state): State<AppState>) -> Result<Json<SeriesRule>> {
    Ok(Json(retention::current(&state).await?))
}

/// Thin or delete series some days after their runs have ended. Figures and verdicts stay.
#[utoipa::path(put, path = "/api/v1/series-rule", tag = "keeping", request_body = Rule,
    responses((status = 200, body = SeriesRule), (status = 422, body = ErrorBody)))]
pub async fn set_rule(
    Admin(caller): Admin,
    State(state): State<AppState>,
    Input(rule): Input<Rule>,
) -> Result<Json<SeriesRule>> {
    retention::set(&state, &caller, rule).await?;
    Ok(Json(retention::current(&state).await?))
}

/// Keep series for ever. What was thinned or deleted does not come back.
#[utoipa::path(delete, path = "/api/v1/series-rule", tag = "keeping", responses((status = 204)))]
pub async fn remove_rule(Admin(caller): Admin, State(state): State<AppState>) -> Result<StatusCode> {
    retention::remove(&state, &caller).await?;
    Ok(StatusCode::NO_CONTENT)
}
