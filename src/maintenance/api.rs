//! Backup download, and the retention rule as JSON.

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
    retention::{self, Retention, RetentionRule},
};
use crate::{
    app::{
        error::{Error, ErrorBody, Result},
        input::Input,
        state::AppState,
    },
    auth::{
        audit::action::Action,
        caller::{Admin, Read},
        proven::Proven,
    },
    maintenance,
};

/// Allows one backup at a time, because each needs as much disk space as the database.
#[derive(Clone, Debug, Default)]
pub struct BackupLock(Arc<Mutex<()>>);

/// How much of a backup is read at once, bytes.
const CHUNK: usize = 256 * 1024;

/// Download a backup: the current database as one SQLite file.
#[utoipa::path(get, path = "/api/v1/backup", tag = "keeping",
    responses((status = 200, content_type = "application/vnd.sqlite3"), (status = 409, body = ErrorBody)))]
pub async fn download(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Extension(BackupLock(lock)): Extension<BackupLock>,
) -> Result<Response> {
    let busy = |_| Error::Conflict("a backup is already in progress; try again when it is done".to_owned());
    let guard = lock.try_lock_owned().map_err(busy)?;
    let (file, bytes) = backup::for_download(&state.db.read, &state.config.data).await?;
    drop(guard);
    maintenance::store::record(&state.db.write, &backup::with_size(&admin.0.does(Action::BackupMade, ""), bytes))
        .await?;
    let name = format!("brewbench-{}.db", Timestamp::now().strftime("%Y%m%dT%H%M%SZ"));
    let headers = [
        (header::CONTENT_TYPE, "application/vnd.sqlite3".to_owned()),
        // The length lets the client detect a truncated download. Most of the content is already compressed.
        (header::CONTENT_LENGTH, bytes.to_string()),
        (header::CONTENT_ENCODING, "identity".to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
        (header::CACHE_CONTROL, "no-store".to_owned()),
    ];
    let file = tokio::fs::File::from_std(file);
    Ok((headers, Body::from_stream(ReaderStream::with_capacity(file, CHUNK))).into_response())
}

/// Return the retention rule of series.
#[utoipa::path(get, path = "/api/v1/retention", tag = "keeping", responses((status = 200, body = Retention)))]
pub async fn rule(_: Read, State(state): State<AppState>) -> Result<Json<Retention>> {
    Ok(Json(retention::current(&state).await?))
}

/// Downsample or delete series some days after the end of their runs. Metrics and verdicts stay.
#[utoipa::path(put, path = "/api/v1/retention", tag = "keeping", request_body = RetentionRule,
    responses((status = 200, body = Retention), (status = 422, body = ErrorBody)))]
pub async fn set_rule(
    admin: Proven<Admin>,
    State(state): State<AppState>,
    Input(rule): Input<RetentionRule>,
) -> Result<Json<Retention>> {
    retention::set(&state, &admin.by(), rule).await?;
    Ok(Json(retention::current(&state).await?))
}

/// Keep series forever. Series that were downsampled or deleted do not come back.
#[utoipa::path(delete, path = "/api/v1/retention", tag = "keeping", responses((status = 204)))]
pub async fn remove_rule(admin: Proven<Admin>, State(state): State<AppState>) -> Result<StatusCode> {
    retention::remove(&state, &admin.by()).await?;
    Ok(StatusCode::NO_CONTENT)
}
