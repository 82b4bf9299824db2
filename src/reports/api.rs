//! `/api/v1/report`.

use axum::{
    extract::{RawQuery, State},
    http::header,
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{csv, html, markdown, profiles};
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        state::AppState,
    },
    auth::caller::Read,
    compare::{chosen::Chosen, load, view::Comparison},
    reports::format::{ReportFormat, file_name},
};

/// Query parameters of a report.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ReportQuery {
    /// The format of the file. The default is `html`.
    #[serde(default)]
    format: ReportFormat,
    /// Whether agents are numbered instead of named, and profiles left out: for a report that is published.
    #[serde(default)]
    anonymous: bool,
}

/// Returns a comparison as a file: HTML with embedded charts, Markdown for a pull request, CSV or JSON.
///
/// HTML and Markdown include the comparison of the experiments' profiles.
#[utoipa::path(get, path = "/api/v1/report", tag = "compare", params(Chosen, ReportQuery),
    responses((status = 200, body = Comparison, description = "as JSON; or text/html, text/markdown, text/csv"),
        (status = 404, body = ErrorBody, description = "none of the runs exists"),
        (status = 422, body = ErrorBody, description = "no run is named, or too many are")))]
pub async fn report(
    _: Read,
    State(state): State<AppState>,
    RawQuery(query): RawQuery,
    QueryParams(ReportQuery { format, anonymous }): QueryParams<ReportQuery>,
) -> Result<Response> {
    let query = query.unwrap_or_default();
    let comparison = match format {
        _ if anonymous => load::page_for_outside(&state, &query).await?,
        ReportFormat::Html => load::page_from_query(&state, &query).await?,
        _ => load::from_query(&state, &query).await?,
    };
    let comparison = Comparison::clone(&comparison).outside();
    let name = file_name(&comparison.title, format);
    let profiles = match format {
        ReportFormat::Html | ReportFormat::Markdown if !anonymous => profiles::of(&state, &comparison).await?,
        _ => Vec::new(),
    };
    let text = match format {
        ReportFormat::Html => html::text(comparison, profiles)?,
        ReportFormat::Markdown => markdown::text(&comparison) + &markdown::profiles(&profiles),
        ReportFormat::Csv => csv::text(&comparison),
        ReportFormat::Json => serde_json::to_string_pretty(&comparison).map_err(Error::internal)?,
    };
    // Always a download: this site's content security policy would block the scripts inside the file.
    let headers = [
        (header::CONTENT_TYPE, format.kind().to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    Ok((headers, text).into_response())
}
