//! What the files of an import contain, before anything is sent.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
};

use brewbench_wire::reports::{
    read::{Contents, read},
    report::Report,
};
use serde::Serialize;

use crate::{
    files,
    table::{self, cut, figure, plain, table},
};

/// What was found in a file.
#[derive(Debug, Serialize)]
struct Preview {
    file: String,
    /// What was removed before its reports were read.
    stripped: Vec<&'static str>,
    reports: Vec<ReportPreview>,
    /// Why others, or the whole file, can't be read.
    faults: Vec<String>,
}

/// A report that would become a run.
#[derive(Debug, Serialize)]
struct ReportPreview {
    /// Its first line in the file.
    line: Option<usize>,
    heading: Option<String>,
    name: Option<String>,
    /// E.g. `wrk's output`.
    kind: String,
    rounded: bool,
    requests: u64,
    rps: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    error_rate: Option<f64>,
    missing_metrics: Vec<&'static str>,
}

/// Reads files and prints what they contain. Returns whether all can be read.
pub fn print(files: &[PathBuf], as_json: bool) -> anyhow::Result<bool> {
    let previews: Vec<Preview> = files.iter().map(|file| preview(file)).collect();
    if as_json {
        println!("{}", serde_json::to_string_pretty(&previews)?);
    } else {
        for preview in &previews {
            print!("{}", text(preview));
        }
    }
    Ok(previews.iter().all(|preview| preview.faults.is_empty()))
}

fn preview(file: &Path) -> Preview {
    let name = file.display().to_string();
    let none =
        |fault: String| Preview { file: name.clone(), stripped: Vec::new(), reports: Vec::new(), faults: vec![fault] };
    let bytes = match files::bytes(file) {
        Ok(bytes) => bytes,
        Err(fault) => return none(format!("{fault:#}")),
    };
    let Contents { reports, stripped, refused } = match read(&bytes[..]) {
        Ok(contents) => contents,
        Err(fault) => return none(fault.to_string()),
    };
    let (mut read, mut faults) = (Vec::new(), refused.iter().map(ToString::to_string).collect::<Vec<_>>());
    for report in reports {
        match of_report(report) {
            Ok(report) => read.push(report),
            Err(fault) => faults.push(fault),
        }
    }
    Preview { file: name, stripped: stripped.into_iter().collect(), reports: read, faults }
}

fn of_report(report: Report) -> Result<ReportPreview, String> {
    let (line, heading, name) = (report.line, report.heading.clone(), report.name.clone());
    let summary = report.into_summary().map_err(|fault| fault.to_string())?;
    let figures = summary.figures();
    Ok(ReportPreview {
        line,
        heading,
        name,
        kind: summary.shape.name().to_owned(),
        rounded: summary.shape.is_text(),
        requests: figures.requests,
        rps: figures.rps,
        p50_ms: figures.latency.p50_ms,
        p99_ms: figures.latency.p99_ms,
        error_rate: figures.failed.map(|failed| failed as f64 / figures.requests.max(1) as f64),
        missing_metrics: summary.missing(),
    })
}

fn text(preview: &Preview) -> String {
    let Preview { file, stripped, reports, faults } = preview;
    let stripped = if stripped.is_empty() { String::new() } else { format!(" (without {})", stripped.join(", ")) };
    let mut text = format!("{}{stripped}\n", plain(file));
    if !reports.is_empty() {
        let head = [">line", "of", "read as", ">req/s", ">p50 ms", ">p99 ms", ">failed"];
        text += &table(&head, reports, |report| {
            let of = report.heading.as_deref().or(report.name.as_deref()).unwrap_or_default();
            vec![
                report.line.map_or_else(String::new, |line| line.to_string()),
                cut(of, 20),
                cut(&report.kind, 22),
                figure(Some(report.rps)),
                figure(report.p50_ms),
                figure(report.p99_ms),
                table::percent(report.error_rate),
            ]
        });
    }
    let missing: BTreeSet<_> = reports.iter().flat_map(|report| &report.missing_metrics).collect();
    if !missing.is_empty() {
        let all: Vec<&str> = missing.into_iter().copied().collect();
        let _ = writeln!(text, "{}", table::hanging(&format!("missing: {}", all.join(", ")), 2));
    }
    for fault in faults {
        let _ = writeln!(text, "! {}", plain(fault));
    }
    text
}
