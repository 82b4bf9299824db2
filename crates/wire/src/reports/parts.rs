//! The reports of a text, such as a README with five of them: each as a text of its own. Pure.

use std::fmt;

use crate::reports::encoding::decoded;
use crate::reports::read::{Contents, read};
use crate::reports::validate::Fault;

/// A report of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its first line in the text, from 1.
    pub line: usize,
    /// The heading, or else the text, above it.
    pub heading: Option<String>,
    /// Its lines, up to the next report.
    pub text: String,
}

/// Returns the reports of a text with several; empty if there is only one.
///
/// Fails if one of them can't be read, and if they are entries of a collection, which have no lines of their own.
pub fn parts(bytes: &[u8]) -> Result<Vec<Part>, Fault> {
    let Contents { reports, refused, .. } = read(bytes)?;
    if reports.len() + refused.len() < 2 {
        return Ok(Vec::new());
    }
    if let Some(fault) = refused.into_iter().next() {
        return Err(fault);
    }
    let count = reports.len();
    let whole = |what: &dyn fmt::Display| Fault { place: "the file".to_owned(), what: what.to_string() };
    let starts: Option<Vec<usize>> = reports.iter().map(|report| report.line?.checked_sub(1)).collect();
    let starts = starts.filter(|starts| starts.is_sorted_by(|one, next| one < next));
    let starts = starts
        .ok_or_else(|| whole(&format_args!("is a collection of {count} reports: put each into a file of its own")))?;
    let text = decoded(bytes).map_err(|fault| whole(&fault))?;
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().collect();
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    let part = |((report, start), end): ((_, usize), usize)| {
        let report: crate::reports::report::Report = report;
        let text = lines.get(start..end).unwrap_or_default().join("\n");
        let alone = read(text.as_bytes())?;
        match alone.reports.as_slice() {
            [_] if alone.refused.is_empty() => Ok(Part { line: start + 1, heading: report.heading, text }),
            _ => Err(Fault {
                place: format!("line {}", start + 1),
                what: "is no report without what surrounds it".to_owned(),
            }),
        }
    };
    reports.into_iter().zip(starts.iter().copied()).zip(ends).map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRK: &str = "Running 10s test @ http://127.0.0.1:8080/\n  2 threads and 10 connections\n  \
        Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.00ms    0.20ms   5.00ms   90.00%\n    \
        Req/Sec     5.00k   100.00     6.00k    70.00%\n  100000 requests in 10.00s, 10.00MB read\n\
        Requests/sec:  10000.00\nTransfer/sec:      1.00MB\n";

    #[test]
    fn each_report_of_a_readme_is_a_text_of_its_own() {
        let readme = format!("# Results\n\n## Go\n\n```\n{WRK}```\n\n## Rust\n\n```\n{WRK}```\nThat was it.\n");
        let parts = parts(readme.as_bytes()).expect("parts");
        let found: Vec<_> = parts.iter().map(|part| (part.line, part.heading.as_deref())).collect();
        assert_eq!(found, [(6, Some("Go")), (19, Some("Rust"))]);
        assert!(parts.iter().all(|part| part.text.starts_with("Running 10s test")), "{parts:?}");
    }

    #[test]
    fn one_report_has_no_parts() {
        assert_eq!(parts(WRK.as_bytes()), Ok(Vec::new()));
        assert!(parts(b"nothing").is_err());
    }
}
