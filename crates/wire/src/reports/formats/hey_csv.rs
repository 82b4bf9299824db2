//! hey's requests as CSV (`-o csv`): one line each. Times are seconds with four decimals.

use std::io::Read;

use super::format::{Format, Reader};
use crate::reports::formats::table::{self, Row};
use crate::reports::report::{Population, Report};
use crate::reports::samples::Samples;
use crate::reports::time::Time;
use crate::reports::validate::Fault;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "hey-csv",
    title: "hey's requests as CSV",
    tool: "hey",
    limits: "Times have four decimals of a second. Requests without a response are missing, and so is the address.",
    is_rounded: true,
    timeout_ms: Some(20_000.0),
    reader: Reader::Records { is: |head| head.starts_with("response-time,DNS+dialup,").into(), read },
};

/// The most responses of which hey keeps the times.
pub(super) const RESPONSES_MAX: u64 = 1_000_000;

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let (mut samples, mut end_ms, mut report) = (Samples::default(), 0.0_f64, Report::default());
    let cut = table::each_written(source, b',', None, |row: &Row<'_>| {
        let (seconds, offset) = (row.number("response-time")?, row.number("offset")?);
        let status = row.text("status-code")?;
        samples.add(seconds * 1e3);
        end_ms = end_ms.max((offset + seconds) * 1e3);
        *report.statuses.entry(status.to_owned()).or_default() += 1;
        Ok(())
    })?;
    report.requests = Some(samples.total());
    report.failed = Some(super::fields::bad_statuses(&report.statuses)).filter(|failed| *failed > 0);
    report.duration = Some(Time::rounded(end_ms, 0.1)).filter(|time| time.ms > 0.0);
    report.latency = samples.latencies(Population::Responses).at_least(0.05);
    let what = "hey writes only requests with a response: those without one are missing, also among the failed";
    report.warnings.push(Warning::Incomplete(what.to_owned()));
    report.warnings.extend(cut);
    if samples.total() == RESPONSES_MAX {
        let what = "hey writes only the first 1,000,000 responses: the others are missing";
        report.warnings.push(Warning::Incomplete(what.to_owned()));
    }
    Ok(vec![report])
}
