//! hey's requests as CSV (`-o csv`): one line each. Times are seconds with four decimals.

use std::io::Read;

use super::format::{Format, Reader};
use crate::reports::formats::table::{self, Row};
use crate::reports::report::{Population, Report};
use crate::reports::samples::Samples;
use crate::reports::time::Time;
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "hey-csv",
    title: "hey's requests as CSV",
    tool: "hey",
    limits: "Times have four decimals of a second. Requests without a response are missing, and so is the address.",
    is_rounded: true,
    timeout_ms: Some(20_000.0),
    reader: Reader::Records { is: |head| head.starts_with("response-time,DNS+dialup,").into(), read },
};

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let (mut samples, mut end_ms, mut report) = (Samples::default(), 0.0_f64, Report::default());
    table::each(source, b',', |row: &Row<'_>| {
        let ms = row.number("response-time")? * 1e3;
        samples.add(ms);
        end_ms = end_ms.max(row.number("offset")? * 1e3 + ms);
        *report.statuses.entry(row.text("status-code")?.to_owned()).or_default() += 1;
        Ok(())
    })?;
    report.requests = Some(samples.total());
    report.failed = Some(super::fields::bad_statuses(&report.statuses));
    report.duration = Some(Time::rounded(end_ms, 0.1)).filter(|time| time.ms > 0.0);
    report.latency = samples.latencies(Population::Responses);
    Ok(vec![report])
}
