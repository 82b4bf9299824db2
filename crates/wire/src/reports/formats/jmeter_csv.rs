//! JMeter's results as CSV (JTL): one sample a line. Times are whole milliseconds.
//!
//! A transaction contains samples that have their own lines, so it is not counted.

use std::io::Read;

use super::fields::instant_ms;
use super::format::{Format, Reader, Recognised};
use super::jmeter::{Sample, Samples};
use super::table::{self, Row};
use crate::reports::report::Report;
use crate::reports::validate::Fault;

pub(super) const FORMAT: Format = Format {
    name: "jmeter-csv",
    title: "JMeter's results as CSV (JTL)",
    tool: "jmeter",
    limits: "Times are whole milliseconds. All samplers are added up.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Records { is, read },
};

/// The columns of a file without a header, which is JMeter's default order.
const COLUMNS: [&str; 17] = [
    "timeStamp",
    "elapsed",
    "label",
    "responseCode",
    "responseMessage",
    "threadName",
    "dataType",
    "success",
    "failureMessage",
    "bytes",
    "sentBytes",
    "grpThreads",
    "allThreads",
    "URL",
    "Latency",
    "IdleTime",
    "Connect",
];

/// Returns the separator of a table with a header.
fn delimiter(line: &str) -> Option<u8> {
    let is = |separator: char| {
        let names: Vec<&str> = line.split(separator).map(str::trim).collect();
        names.contains(&"elapsed") && names.contains(&"timeStamp")
    };
    [',', ';', '\t', '|']
        .into_iter()
        .find(|separator| is(*separator))
        .and_then(|separator| u8::try_from(separator).ok())
}

fn has_no_header(line: &str) -> bool {
    let fields: Vec<&str> = line.split(',').collect();
    let digits = |field: Option<&&str>| {
        field.is_some_and(|text| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    digits(fields.first())
        && fields.first().is_some_and(|text| text.len() == 13)
        && digits(fields.get(1))
        && fields.len() >= 12
        && fields.iter().any(|field| matches!(*field, "true" | "false"))
}

fn is(head: &str) -> Recognised {
    let line = head.lines().next().unwrap_or_default();
    match delimiter(line) {
        Some(_) if line.contains("success") => Recognised::Yes,
        Some(_) => Recognised::Near(
            "its column \"success\" is missing: save it with jmeter.save.saveservice.successful=true".into(),
        ),
        None => has_no_header(line).into(),
    }
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    // The header is needed before the table is read.
    let mut start = vec![0; 4096];
    let mut length = 0;
    while length < start.len() {
        let count = source
            .read(start.get_mut(length..).unwrap_or_default())
            .map_err(|error| crate::reports::input::unpack::to_fault(&error))?;
        if count == 0 {
            break;
        }
        length += count;
    }
    start.truncate(length);
    let head = String::from_utf8_lossy(&start).into_owned();
    let line = head.lines().next().unwrap_or_default();
    let separator = delimiter(line);
    let columns = if separator.is_none() { Some(&COLUMNS[..]) } else { None };
    let mut all = std::io::Cursor::new(start).chain(source);
    let mut samples = Samples::default();
    let cut = table::each_written(&mut all, separator.unwrap_or(b','), columns, |row| add(row, &mut samples))?;
    let mut report = samples.report()?;
    report.warnings.extend(cut);
    Ok(vec![report])
}

fn add(row: &Row<'_>, samples: &mut Samples) -> Result<(), Fault> {
    let text = row.text("timeStamp")?;
    let at_ms = text.parse::<i64>().ok().or_else(|| instant_ms(text));
    let count = |column: &str| row.get(column).and_then(|text| text.parse::<u64>().ok());
    let [code, message, url] = ["responseCode", "responseMessage", "URL"].map(|column| row.get(column));
    let is_transaction = match (message, code) {
        (Some(message), _) => message.starts_with("Number of samples in transaction"),
        // It has neither a status nor an address.
        (None, Some(code)) => code.is_empty() && url.is_none_or(|url| matches!(url, "" | "null")),
        (None, None) => {
            samples.may_have_transactions = true;
            false
        }
    };
    if is_transaction {
        samples.transactions += 1;
        return Ok(());
    }
    samples.add(&Sample {
        at_ms: at_ms.ok_or_else(|| row.fault(&format!("timeStamp: \"{text}\" is not a time")))?,
        elapsed_ms: row.number("elapsed")?,
        is_success: match row.text("success")? {
            "true" => true,
            "false" => false,
            _ => return Err(row.fault("success: is neither true nor false")),
        },
        code: code.unwrap_or_default(),
        received: count("bytes"),
        sent: count("sentBytes"),
        threads: count("allThreads"),
        url: url.unwrap_or_default(),
    });
    Ok(())
}
