//! Locust's statistics as CSV (`*_stats.csv`), in the columns of its two generations. Times are milliseconds.
//!
//! Locust rounds percentiles: to two digits from 100 ms on.

use std::collections::BTreeMap;
use std::io::Read;

use super::fields::parsed;
use super::format::{Format, Reader, Recognised};
use super::table::{self, Row};
use crate::reports::report::{Definition, Latencies, Population, Report};
use crate::reports::time::{Time, number};
use crate::reports::validate::Fault;
use crate::reports::values::to_integer;
use crate::reports::warning::Warning;

pub(super) const FORMAT: Format = Format {
    name: "locust",
    title: "Locust's statistics as CSV",
    tool: "locust",
    limits: "Percentiles have two digits, and none are in the file of Locust 0. It lacks the duration, the users and the \
             address. Only the row of all requests is read.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Records { is, read },
};

/// Each figure in the newer and in the older generation.
const NAME: [&str; 2] = ["Name", "Name"];
const REQUESTS: [&str; 2] = ["Request Count", "# requests"];
const FAILURES: [&str; 2] = ["Failure Count", "# failures"];
const MEDIAN: [&str; 2] = ["Median Response Time", "Median response time"];
const MEAN: [&str; 2] = ["Average Response Time", "Average response time"];
const MIN: [&str; 2] = ["Min Response Time", "Min response time"];
const MAX: [&str; 2] = ["Max Response Time", "Max response time"];

fn is(head: &str) -> Recognised {
    let line = head.lines().next().unwrap_or_default().replace('"', "");
    let names: Vec<&str> = line.split(',').map(str::trim).collect();
    let has = |name: &str| names.contains(&name);
    if has("Timestamp") && has("User Count") {
        return Recognised::Near("it is the history: import the file that ends with _stats.csv".into());
    }
    if has("Name") && has("# requests") && has("50%") && !has("# failures") {
        return Recognised::Near(
            "it is the distribution, without rates: import the file that ends with _requests.csv".into(),
        );
    }
    let is_first = names.first().is_some_and(|first| matches!(*first, "Type" | "Method" | "Name"));
    (is_first && has("Requests/s") && (has(REQUESTS[0]) || has(REQUESTS[1]))).into()
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let (mut reports, mut total) = (Vec::new(), None);
    let mut columns: Option<Vec<(String, f64)>> = None;
    table::each(source, b',', |row: &Row<'_>| {
        let columns = columns.get_or_insert_with(|| {
            let percent = |name: &str| Some((name.to_owned(), number(name.strip_suffix('%')?)?));
            row.names().filter_map(percent).collect()
        });
        let report = one(row, columns)?;
        match any(row, NAME) {
            Some("Aggregated" | "Total") => total = Some(report),
            name if reports.len() < 1_000 => reports.push(Report { name: name.map(str::to_owned), ..report }),
            _ => {}
        }
        Ok(())
    })?;
    Ok(total.map_or(reports, |total| vec![total]))
}

fn any<'a>(row: &'a Row<'_>, names: [&'static str; 2]) -> Option<&'a str> {
    names.into_iter().find_map(|name| row.get(name))
}

fn one(row: &Row<'_>, columns: &[(String, f64)]) -> Result<Report, Fault> {
    let value = |names: [&'static str; 2]| any(row, names).and_then(parsed);
    let count = |names: [&'static str; 2]| {
        let missing = || row.fault(&format!("\"{}\" is not a count", names[0]));
        value(names).filter(|count| *count >= 0.0).map(to_integer).ok_or_else(missing)
    };
    let (requests, failed) = (count(REQUESTS)?, count(FAILURES)?);
    // Locust 0 rounds the ends, too.
    let time = |names: [&'static str; 2]| {
        let is_whole = |ms: f64| ms.fract() == 0.0;
        value(names).map(|ms| Time { ms, error_ms: if is_whole(ms) { 0.5 } else { 0.0 } })
    };
    let ends = Latencies {
        min: time(MIN),
        mean: time(MEAN),
        max: time(MAX),
        of: Population::All,
        definition: Definition::Rank,
        ..Latencies::default()
    };
    let mut percentiles: BTreeMap<u64, (f64, Option<Time>)> = BTreeMap::new();
    let listed = columns.iter().filter_map(|(name, percent)| Some((*percent, row.get(name).and_then(parsed)?)));
    let median = value(MEDIAN).map(|ms| (50.0, ms));
    for (percent, ms) in median.into_iter().chain(listed).filter(|(percent, _)| *percent < 100.0) {
        percentiles.insert(percent.to_bits(), (percent, Some(rounded(ms))));
    }
    Ok(Report {
        requests: Some(requests),
        failed: Some(failed),
        rate_per_s: row.get("Requests/s").and_then(parsed),
        latency: if requests > 0 { ends.with_percentiles(percentiles.into_values()) } else { Latencies::default() },
        warnings: vec![Warning::LoadUnknown("Locust's statistics have no number of users".to_owned())],
        ..Report::default()
    })
}

/// A percentile has two digits from 100 on, and is whole below.
fn rounded(ms: f64) -> Time {
    let step = match ms {
        ms if ms < 100.0 => 1.0,
        ms if ms < 1_000.0 => 10.0,
        ms if ms < 10_000.0 => 100.0,
        _ => 1_000.0,
    };
    Time::rounded(ms, step)
}
