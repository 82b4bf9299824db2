//! k6's `--out csv`: one measurement a line. Times are seconds, milliseconds and finer, or dates, as configured.

use std::io::Read;

use super::fields::{instant_ms, parsed};
use super::format::{Format, Reader};
use super::k6_points::{Point, Points};
use super::table::{self, Row};
use crate::reports::report::Report;
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "k6-csv",
    title: "k6's --out csv",
    tool: "k6",
    limits: "Times are whole seconds unless K6_CSV_TIME_FORMAT says otherwise, so that the duration may be a second off. It \
             lacks thresholds and custom metrics.",
    is_rounded: true,
    timeout_ms: Some(60_000.0),
    reader: Reader::Records { is: |head| head.starts_with("metric_name,timestamp,metric_value,").into(), read },
};

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let (mut points, mut resolution_ms) = (Points::default(), 0.0_f64);
    let cut = table::each_written(source, b',', None, |row: &Row<'_>| {
        let text = row.text("timestamp")?;
        let unknown = || row.fault(&format!("timestamp: \"{text}\" is not a time"));
        let (at_ms, step_ms) = time(text).ok_or_else(unknown)?;
        resolution_ms = resolution_ms.max(step_ms);
        points.add(Point {
            metric: row.text("metric_name")?,
            at_ms,
            value: row.number("metric_value")?,
            is_expected: match row.get("expected_response") {
                Some("true") => Some(true),
                Some("false") => Some(false),
                _ => None,
            },
            status: row.get("status").unwrap_or_default(),
            check: row.get("check").unwrap_or_default(),
            url: row.get("url").unwrap_or_default(),
        })
    })?;
    let mut report = points.report(resolution_ms)?;
    report.warnings.extend(cut);
    Ok(vec![report])
}

/// Parses a time into unix milliseconds and the step of its unit. The unit follows from the size.
fn time(text: &str) -> Option<(f64, f64)> {
    if let Some(ms) = instant_ms(text) {
        return Some((ms as f64, if text.contains('.') { 1.0 } else { 1e3 }));
    }
    let value = parsed(text).filter(|value| *value >= 0.0)?;
    Some(match value {
        seconds if seconds < 1e11 => (seconds * 1e3, 1e3),
        ms if ms < 1e14 => (ms, 1.0),
        us if us < 1e17 => (us / 1e3, 1e-3),
        ns => (ns / 1e6, 1e-6),
    })
}
