//! JSON API of the audit log, and its export as a file.

use axum::{
    Json,
    body::Body,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use futures_util::{Stream, TryStreamExt, stream};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::{
    app::{
        db::Db,
        error::{Error, ErrorBody, QueryParams, Result},
        paging,
        state::AppState,
    },
    auth::{
        audit::{AuditFilter, CSV_HEAD, Entry, EntryList, Range, csv_line},
        caller::Admin,
        store::audit::entries,
    },
};

/// Entries that an export reads at a time.
const CHUNK: u32 = 1_000;

/// List a page of the audit log, newest entries first.
#[utoipa::path(get, path = "/api/v1/audit", tag = "audit", params(AuditFilter),
    responses((status = 200, body = EntryList), (status = 422, body = ErrorBody)))]
pub async fn list(
    _: Admin,
    State(state): State<AppState>,
    QueryParams(wanted): QueryParams<AuditFilter>,
) -> Result<Json<EntryList>> {
    Ok(Json(page(&state.db, &wanted.range()?).await?))
}

/// Returns a page of the log.
pub async fn page(db: &Db, range: &Range) -> Result<EntryList> {
    // Reads one entry more than is returned, to detect a further page without counting.
    let mut entries = entries(&db.read, &Range { limit: range.limit + 1, ..range.clone() }).await?;
    let next = paging::cut(&mut entries, range.limit).map(|entry| entry.id);
    Ok(EntryList { entries, next })
}

/// The file format of an export.
#[derive(Clone, Copy, Debug, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum AuditFormat {
    /// For spreadsheets. Cells that look like formulas get a leading apostrophe.
    Csv,
    /// An array of entries.
    Json,
}

/// The file format of an export.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct As {
    /// `csv` or `json`.
    format: AuditFormat,
}

/// Export the audit log, or the entries that match the filters, as a file.
#[utoipa::path(get, path = "/api/v1/audit/export", tag = "audit", params(As, AuditFilter),
    responses((status = 200, body = String, content_type = "text/csv"), (status = 422, body = ErrorBody)))]
pub async fn export(
    _: Admin,
    State(state): State<AppState>,
    QueryParams(As { format }): QueryParams<As>,
    QueryParams(wanted): QueryParams<AuditFilter>,
) -> Result<Response> {
    let range = Range { limit: CHUNK, ..wanted.range()? };
    let (kind, name) = match format {
        AuditFormat::Csv => ("text/csv; charset=utf-8", "attachment; filename=\"brewbench-audit.csv\""),
        AuditFormat::Json => ("application/json", "attachment; filename=\"brewbench-audit.json\""),
    };
    let chunks = chunks(state.db, range).map_ok(move |(first, entries)| text(format, first, &entries));
    let end = stream::iter([Ok(if matches!(format, AuditFormat::Json) { "]\n".to_owned() } else { String::new() })]);
    let body = Body::from_stream(futures_util::StreamExt::chain(chunks, end));
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, name)], body).into_response())
}

/// Streams the matching entries in chunks; the flag marks the first chunk.
fn chunks(db: Db, range: Range) -> impl Stream<Item = Result<(bool, Vec<Entry>)>> {
    stream::try_unfold((true, Some(range)), move |(first, range)| {
        let db = db.clone();
        async move {
            let Some(range) = range else { return Ok::<_, Error>(None) };
            let entries = entries(&db.read, &range).await?;
            let after = entries.last().map(|entry| entry.id).filter(|_| entries.len() == range.limit as usize);
            let rest = after.map(|after| Range { after, ..range });
            Ok(Some(((first, entries), (false, rest))))
        }
    })
}

fn text(format: AuditFormat, first: bool, entries: &[Entry]) -> String {
    match format {
        AuditFormat::Csv => {
            let lines: String = entries.iter().map(csv_line).collect();
            if first { format!("{CSV_HEAD}{lines}") } else { lines }
        }
        AuditFormat::Json => {
            let written = entries.iter().map(|entry| serde_json::to_string(entry).unwrap_or_default());
            let rows: Vec<_> = written.collect();
            match (first, rows.is_empty()) {
                (true, _) => format!("[{}", rows.join(",\n")),
                (false, true) => String::new(),
                (false, false) => format!(",\n{}", rows.join(",\n")),
            }
        }
    }
}
