//! Exports runs as a file: JSON, or CSV for spreadsheets.

use std::collections::BTreeMap;

use axum::{
    Json,
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::trash::found_all;
use crate::{
    app::{
        error::{Error, ErrorBody, QueryParams, Result},
        ids::listed,
        state::AppState,
    },
    auth::caller::Read,
    metrics::METRICS,
    runs::{
        csv, exchange, load,
        model::{Run, RunList},
        verdict::Verdict,
    },
};

/// Maximum number of runs in one export.
const MAX_RUNS: usize = 1_000;

/// The format of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExportFormat {
    /// A list of runs.
    #[default]
    Json,
    /// One line per run.
    Csv,
    /// The figures of one run in the form of k6's `--summary-export`.
    K6,
    /// Bencher Metric Format: medians and ranges of targets.
    Bencher,
    /// CSV for Apache Otava: one line per valid or suspect run, oldest first.
    Otava,
    /// The text format of Prometheus.
    Prometheus,
}

/// The runs and the format of an export.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Export {
    /// Ids of runs, comma-separated or in repeated `runs` parameters.
    #[serde(default)]
    runs: Vec<String>,
    /// `json` by default.
    #[serde(default)]
    format: ExportFormat,
}

/// Export runs with metrics, labels and notes as a file.
#[utoipa::path(get, path = "/api/v1/runs/export", tag = "runs", params(Export),
    responses((status = 200, body = RunList, description = "or another format: text/csv, text/plain or other JSON"), (status = 404, body = ErrorBody),
        (status = 422, body = ErrorBody)))]
pub async fn export(
    _: Read,
    State(state): State<AppState>,
    QueryParams(options): QueryParams<Export>,
) -> Result<Response> {
    let ids = listed(&options.runs);
    if ids.is_empty() || ids.len() > MAX_RUNS {
        return Err(Error::Invalid(format!("runs: name 1 to {MAX_RUNS} runs to export: ?runs=ID,ID")));
    }
    let runs = found_all(&state, &ids).await?;
    Ok(match options.format {
        ExportFormat::Json => {
            let name = [(header::CONTENT_DISPOSITION, "attachment; filename=\"runs.json\"")];
            (name, Json(RunList { runs })).into_response()
        }
        ExportFormat::Csv => file("text/csv; charset=utf-8", "runs.csv", table(&runs)),
        ExportFormat::Otava => file("text/csv; charset=utf-8", "otava.csv", exchange::otava(&runs)),
        ExportFormat::Prometheus => {
            file("text/plain; version=0.0.4; charset=utf-8", "runs.prom", exchange::prometheus(&runs))
        }
        ExportFormat::Bencher => file("application/json", "bencher.json", exchange::bencher(&runs).to_string()),
        ExportFormat::K6 => match runs.as_slice() {
            [run] => file("application/json", "summary.json", exchange::k6(run).to_string()),
            _ => return Err(Error::Invalid("runs: a k6 summary has one run".to_owned())),
        },
    })
}

fn file(kind: &'static str, name: &str, text: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, kind.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ];
    (headers, text).into_response()
}

/// The columns before the metrics.
const BEFORE: [&str; 15] = [
    "id",
    "experiment",
    "target",
    "version",
    "size",
    "vcpus",
    "memory_bytes",
    "replicas",
    "scenario",
    "parameters",
    "load",
    "vus",
    "repetition",
    "phase",
    "verdict",
];

/// The columns after the metrics.
const AFTER: [&str; 23] = [
    "warm_up_s",
    "warm_up_auto",
    "warmed_up_s",
    "iterations",
    "requests_per_iteration",
    "bytes_per_request",
    "sent_bytes_per_request",
    "min_new_connections",
    "max_new_connections",
    "statuses",
    "protocols",
    "checks_passed",
    "checks_failed",
    "agent",
    "generators",
    "cluster_generators",
    "engine",
    "created_by",
    "queued_at_ms",
    "finished_at_ms",
    "labels",
    "note",
    "reasons",
];

/// Writes a heading and one line per run. Unknown values are empty.
fn table(runs: &[Run]) -> String {
    let mut text = csv::line(BEFORE.into_iter().chain(METRICS.iter().map(|def| def.key)).chain(AFTER));
    for run in runs {
        text.push_str(&csv::line(cells(run).iter().map(String::as_str)));
    }
    text
}

fn cells(run: &Run) -> Vec<String> {
    fn word<T: ToString>(value: Option<&T>) -> String {
        value.map_or_else(String::new, T::to_string)
    }
    let size = run.spec.size.as_ref();
    let parameters: Vec<_> = run.spec.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let before = [
        run.id.to_string(),
        word(run.experiment.as_ref()),
        run.spec.target.clone(),
        word(run.version.as_ref()),
        word(size.map(|size| &size.name)),
        word(size.map(|size| &size.vcpus)),
        word(size.map(|size| &size.memory_bytes)),
        word(size.map(|size| &size.replicas)),
        word(run.spec.scenario.as_ref()),
        parameters.join(" "),
        load::describe_with(&run.spec, load::exact).unwrap_or_default().replace('\u{a0}', " "),
        word(run.spec.vus.as_ref()),
        run.repetition.to_string(),
        run.phase.to_string(),
        run.verdict.map_or("", Verdict::as_str).to_owned(),
    ];
    let figures = METRICS.iter().map(|def| word((def.get)(&run.figures).as_ref()));
    let after = [
        word(run.spec.warm_up_s.as_ref()),
        run.spec.warm_up_auto.to_string(),
        word(run.figures.warmed_up_s.as_ref()),
        word(run.figures.iterations.as_ref()),
        word(run.figures.work.requests_per_iteration.as_ref()),
        word(run.figures.work.bytes_per_request.as_ref()),
        word(run.figures.work.sent_bytes_per_request.as_ref()),
        word(run.figures.work.min_new_connections.as_ref()),
        word(run.figures.work.max_new_connections.as_ref()),
        counts(run.figures.work.statuses.as_ref()),
        counts(run.figures.work.protocols.as_ref()),
        word(run.figures.checks_passed.as_ref()),
        word(run.figures.checks_failed.as_ref()),
        word(run.agent.as_ref()),
        run.spec.generators.join(" · "),
        run.spec.cluster_generators.to_string(),
        word(run.engine.as_ref()),
        run.created_by.clone(),
        run.queued_at_ms.to_string(),
        word(run.finished_at_ms.as_ref()),
        run.labels.join(" · "),
        word(run.note.as_ref()),
        run.reasons.iter().map(|reason| reason.code.as_str()).collect::<Vec<_>>().join(" "),
    ];
    before.into_iter().chain(figures).chain(after).collect()
}

/// `200:98 302:2`
fn counts(counts: Option<&BTreeMap<String, u64>>) -> String {
    let parts = counts.into_iter().flatten().map(|(value, count)| format!("{value}:{count}"));
    parts.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::testing::{failed, finished};

    #[test]
    fn every_line_has_a_cell_for_every_column_and_unknown_values_are_empty() {
        let text = table(&[finished("servy", 1), failed("servy", "failed", "it died")]);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() == lines[0].len()), "{text}");
        let rps = lines[0].iter().position(|column| *column == "rps").expect("a column");
        assert_eq!((lines[1][rps], lines[2][rps]), ("10000", ""));
    }

    #[test]
    fn a_name_is_never_a_formula() {
        let mut run = finished("=HYPERLINK(\"http://x\")", 1);
        run.note = Some("@SUM(1)".to_owned());
        let text = table(&[run]);
        assert!(text.contains("\"'=HYPERLINK(\"\"http://x\"\")\"") && text.contains(",'@SUM(1)"), "{text}");
    }
}
