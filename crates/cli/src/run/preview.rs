//! What the files of an import contain, before anything is sent.

use std::{
    collections::BTreeSet,
    fmt::Write,
    path::{Path, PathBuf},
};

use brewbench_wire::reports::{
    hints::{Hints, is_named},
    preview::{FilePreview, ReportPreview},
};

use crate::{
    files,
    table::{self, cut, figure, plain, table},
};

/// Reads files and prints what they contain: reports with these words in their names. Returns whether all can be read.
pub fn print(files: &[PathBuf], hints: &Hints, only: Option<&str>, as_json: bool) -> anyhow::Result<bool> {
    let mut previews = Vec::new();
    for file in files {
        if file.is_dir() {
            files::walk(file, file, &mut |_, path| {
                if !path.is_symlink() {
                    previews.extend(of_file(path, hints));
                }
                Ok(())
            })?;
        } else {
            previews.extend(of_file(file, hints));
        }
    }
    FilePreview::note_other_forms(&mut previews);
    let is_wanted = |report: &ReportPreview| {
        only.is_none_or(|words| is_named(report.name.as_deref(), report.heading.as_deref(), words))
    };
    for preview in &mut previews {
        preview.reports.retain(is_wanted);
    }
    if as_json {
        println!("{}", serde_json::to_string_pretty(&previews)?);
    } else {
        for preview in &previews {
            print!("{}", text(preview));
        }
    }
    // Of several files, those that are no results are skipped.
    let is_skipped = |preview: &FilePreview| preview.is_of_no_format && previews.len() > 1;
    Ok(previews.iter().all(|preview| preview.is_complete() || is_skipped(preview)))
}

/// Returns what a file contains, or what each file of an archive does.
fn of_file(file: &Path, hints: &Hints) -> Vec<FilePreview> {
    let name = file.display().to_string();
    let read = files::bytes(file).map_err(|fault| format!("{fault:#}"));
    let read = read.and_then(|bytes| FilePreview::all(Some(&name), &bytes, hints).map_err(|fault| fault.to_string()));
    read.unwrap_or_else(|fault| vec![FilePreview { file: Some(name), faults: vec![fault], ..FilePreview::default() }])
}

fn text(preview: &FilePreview) -> String {
    let FilePreview { file, stripped, reports, columns, faults, .. } = preview;
    let file = file.as_deref().unwrap_or_default();
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
                figure(report.rps),
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
    for column in columns {
        let what = format!("column {}: {} ({})", column.name, column.is, column.samples.join(", "));
        let _ = writeln!(text, "{}", table::hanging(&plain(&what), 2));
    }
    let of_reports = reports.iter().filter_map(|report| report.fault.as_ref());
    for warning in reports.iter().flat_map(|report| &report.warnings).collect::<BTreeSet<_>>() {
        let _ = writeln!(text, "{}", table::hanging(&plain(&format!("note: {warning}")), 2));
    }
    for other in reports.iter().filter_map(|report| report.same_as.as_ref()).collect::<BTreeSet<_>>() {
        let note = format!("note: the same result as in {other}, in another form: import one of them");
        let _ = writeln!(text, "{}", table::hanging(&plain(&note), 2));
    }
    for fault in faults.iter().chain(of_reports.collect::<BTreeSet<_>>()) {
        let _ = writeln!(text, "! {}", plain(fault));
    }
    text
}
