//! The tables of go-web-framework-benchmark: a column for each framework, a row for each processing time (`0 ms`) or
//! number of connections. They do not say what the numbers are: requests per second, or milliseconds, or bytes.
//! [`Table::wide`](crate::reports::tables::Table::wide) reads them by a choice.

use std::collections::BTreeMap;
use std::io::Read;

use super::fields::parsed;
use super::format::{Format, Reader, Recognised};
use crate::reports::formats::table;
use crate::reports::report::{Generated, Report};
use crate::reports::validate::{Fault, Place};
use crate::reports::warning::Warning;

/// The name of the format.
pub const NAME: &str = "wide-csv";

pub(super) const FORMAT: Format = Format {
    name: NAME,
    title: "a table of go-web-framework-benchmark",
    tool: "wrk",
    limits: "It has one number for each framework and row, and does not say of what: choose the metric.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Records { is, read },
};

/// The name of a number whose meaning is unknown.
const VALUE: &str = "value";

fn is(head: &str) -> Recognised {
    let mut lines = head.lines();
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let names: Vec<&str> = first.split(',').collect();
    let values: Vec<&str> = second.split(',').collect();
    let is_wide = names.len() > 2 && names.len() == values.len() && names.first() == Some(&"");
    let has_names = names.iter().skip(1).all(|name| name.contains(|letter: char| letter.is_alphabetic()));
    if !is_wide || !has_names || !values.iter().skip(1).all(|value| parsed(value).is_some()) {
        return Recognised::No;
    }
    Recognised::Yes
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let mut reports = Vec::new();
    table::each(source, b',', |row| {
        let label = row.field(0).unwrap_or_default().to_owned();
        let connections: Option<u64> = label.parse().ok();
        let parameters =
            if connections.is_none() { BTreeMap::from([("row".to_owned(), label.clone())]) } else { BTreeMap::new() };
        for (name, value) in row.names().zip(row.fields()).skip(1) {
            if reports.len() > super::format::REPORTS_MAX {
                return Err(Place::root("the file").fault("has too many cells"));
            }
            let what = "the table does not say what its numbers are: choose requests per second or a latency";
            // −1 stands for a run that failed.
            let Some(number) = parsed(value).filter(|number| *number >= 0.0) else { continue };
            reports.push(Report {
                name: Some(format!("{name} / {label}")),
                target: Some(name.to_owned()),
                parameters: parameters.clone(),
                load: Generated { connections, ..Generated::default() },
                others: BTreeMap::from([(VALUE.to_owned(), number)]),
                warnings: vec![Warning::Note(what.to_owned())],
                ..Report::default()
            });
        }
        Ok(())
    })?;
    Ok(reports)
}
