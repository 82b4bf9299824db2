//! What a file contains, before any of it becomes a run. Pure.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use crate::reports::archive::{self, ArchivedFile};
use crate::reports::formats::{table_csv, wide_csv};
use crate::reports::hints::{self, Hints};
use crate::reports::read::Contents;
use crate::reports::report::Report;
use crate::reports::summary::Resolution;
use crate::reports::tables::{Column, Row, Table};
use crate::reports::validate::Fault;

/// Cells of a column that are shown.
const SAMPLES: usize = 3;

/// Results that later ones are compared with.
const COMPARED_MAX: usize = 500;

/// What was found in a file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct FilePreview {
    /// Its name, or its path in an archive.
    pub file: Option<String>,
    /// What was removed before its reports were read.
    pub stripped: Vec<&'static str>,
    /// Its reports, in their order.
    pub reports: Vec<ReportPreview>,
    /// The columns of the table, if the file is one.
    pub columns: Vec<ColumnPreview>,
    /// Why other reports, or the whole file, can't be read.
    pub faults: Vec<String>,
    /// Whether it is of no known format: it may be no result at all.
    pub is_of_no_format: bool,
}

/// A report that may become a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, ToSchema)]
pub struct ReportPreview {
    /// Its first line in the file.
    pub line: Option<usize>,
    /// The heading above it.
    pub heading: Option<String>,
    /// What the file calls it.
    pub name: Option<String>,
    /// What was loaded, if the name says more than that.
    pub target: Option<String>,
    /// Parameters of the run: what else distinguishes it in its collection, such as the test.
    pub parameters: BTreeMap<String, String>,
    /// Connections or virtual users that were requested.
    pub connections: Option<u64>,
    /// E.g. `wrk's output`.
    pub kind: String,
    /// Whether its values are rounded for display.
    pub rounded: bool,
    /// Requests.
    pub requests: Option<u64>,
    /// Requests per second.
    pub rps: Option<f64>,
    /// Median of the latency, milliseconds.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the latency, milliseconds.
    pub p99_ms: Option<f64>,
    /// Failed share of the requests, from 0 to 1.
    pub error_rate: Option<f64>,
    /// How far rounded values may be from those that were measured.
    pub resolution: Resolution,
    /// Metrics that it does not have.
    pub missing_metrics: Vec<&'static str>,
    /// What one has to know before one believes the values.
    pub warnings: Vec<String>,
    /// Why it can't become a run.
    pub fault: Option<String>,
    /// The file with the same result in another form, such as its text: only one of them can become a run.
    pub same_as: Option<String>,
    /// What is compared with other forms.
    #[serde(skip)]
    #[schema(ignore)]
    report: Report,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, ToSchema)]
pub struct ColumnPreview {
    /// Its name; `*` for all columns of a table with one for each target.
    pub name: String,
    /// Its meaning: `p99 ms`, `requests/s`; with `?` for an unknown unit or several meanings, empty if unknown.
    pub is: String,
    /// Its first cells.
    pub samples: Vec<String>,
}

impl FilePreview {
    /// Reads a file, or all files of an archive.
    pub fn all(name: Option<&str>, bytes: &[u8], hints: &Hints) -> Result<Vec<Self>, Fault> {
        let own = || Self { file: name.map(str::to_owned), ..Self::of(bytes, hints) };
        let of_archive = |file: ArchivedFile| Self { file: Some(file.path), ..Self::of(&file.bytes, hints) };
        let mut all: Vec<Self> =
            archive::files(bytes)?.map_or_else(|| vec![own()], |files| files.into_iter().map(of_archive).collect());
        Self::note_other_forms(&mut all);
        Ok(all)
    }

    /// Notes which results are those of earlier files in another form.
    pub fn note_other_forms(files: &mut [Self]) {
        let mut earlier: Vec<(Option<String>, Report)> = Vec::new();
        for Self { file, reports, .. } in files {
            for preview in reports {
                let own = &preview.report;
                let same = earlier.iter().find(|(_, other)| own.is_same_result(other));
                match same {
                    Some((first, _)) => preview.same_as.clone_from(first),
                    None if earlier.len() < COMPARED_MAX => earlier.push((file.clone(), own.clone())),
                    None => {}
                }
            }
        }
    }

    /// Reads a file that is no archive.
    pub fn of(bytes: &[u8], hints: &Hints) -> Self {
        let found = hints.read(bytes);
        let is_of = |name: &str| match &found {
            Ok(Contents { reports, .. }) => reports.iter().any(|report| report.format == name),
            Err(_) => name == table_csv::FORMAT.name,
        };
        let (is_wide, is_table) = (is_of(wide_csv::NAME), is_of(table_csv::FORMAT.name));
        let table = if is_wide || is_table { hints::find(bytes).ok().flatten() } else { None };
        let is_wide = is_wide || hints.columns.contains_key(hints::ALL_COLUMNS);
        let columns = table.map(|table| if is_wide { all(&table, hints) } else { columns(&table, hints) });
        let columns = columns.unwrap_or_default();
        match found {
            Ok(Contents { reports, stripped, refused }) => Self {
                stripped: stripped.into_iter().collect(),
                reports: reports.into_iter().map(ReportPreview::from).collect(),
                columns,
                faults: refused.iter().map(Fault::to_string).collect(),
                ..Self::default()
            },
            Err(fault) => Self {
                columns,
                is_of_no_format: fault.is_of_no_format,
                faults: vec![fault.to_string()],
                ..Self::default()
            },
        }
    }

    /// Whether all of it can be imported.
    pub fn is_complete(&self) -> bool {
        self.faults.is_empty() && self.reports.iter().all(|report| report.fault.is_none())
    }
}

/// All columns as one: each of them is a target.
fn all(table: &Table, hints: &Hints) -> Vec<ColumnPreview> {
    let is = hints.columns.get(hints::ALL_COLUMNS).map_or_else(String::new, Column::to_string);
    let cells = table.rows.first().into_iter().flat_map(|row| row.cells.iter().skip(1));
    vec![ColumnPreview { name: hints::ALL_COLUMNS.to_owned(), is, samples: cells.take(SAMPLES).cloned().collect() }]
}

fn columns(table: &Table, hints: &Hints) -> Vec<ColumnPreview> {
    let samples = |index: usize| {
        let cell = |row: &Row| row.cells.get(index).cloned();
        table.rows.iter().take(SAMPLES).filter_map(cell).collect()
    };
    let column = |(index, (name, guess)): (usize, (&String, _))| ColumnPreview {
        name: name.clone(),
        is: hints.columns.get(name).copied().unwrap_or(guess).to_string(),
        samples: samples(index),
    };
    table.columns.iter().zip(table.guess()).enumerate().map(column).collect()
}

impl From<Report> for ReportPreview {
    fn from(report: Report) -> Self {
        let (line, heading, name) = (report.line, report.heading.clone(), report.name.clone());
        let warnings = report.warnings.iter().map(ToString::to_string).collect();
        let (target, parameters, connections) =
            (report.target.clone(), report.parameters.clone(), report.load.connections);
        let without_series = Report { summary: None, series: None, ..report.clone() };
        let preview = Self {
            line,
            heading,
            name,
            target,
            parameters,
            connections,
            warnings,
            report: without_series,
            ..Self::default()
        };
        let summary = match report.into_summary() {
            Ok(summary) => summary,
            Err(fault) => return Self { fault: Some(fault.to_string()), ..preview },
        };
        let figures = summary.figures();
        Self {
            kind: summary.shape.name().to_owned(),
            rounded: summary.shape.is_text(),
            requests: Some(figures.requests),
            rps: Some(figures.rps),
            p50_ms: figures.latency.p50_ms,
            p99_ms: figures.latency.p99_ms,
            resolution: figures.resolution,
            error_rate: figures.failed.map(|failed| failed as f64 / figures.requests.max(1) as f64),
            missing_metrics: summary.missing(),
            ..preview
        }
    }
}
