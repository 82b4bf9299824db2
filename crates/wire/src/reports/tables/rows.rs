//! Reads a row of a table by a mapping of its columns. Pure.

use super::cells;
use super::column::{Column, Statistic, Unit};
use super::notation::Notation;
use super::parse::Row;
use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, shown};
use crate::reports::values::to_integer;

/// Reads a row.
pub fn report(columns: &[String], row: &Row, mapping: &[Column], notation: Notation) -> Result<Report, Fault> {
    let mut report = Report {
        line: Some(row.line),
        latency: Latencies { of: Population::Responses, definition: Definition::Unknown, ..Latencies::default() },
        ..Report::default()
    };
    let mut names: Vec<&str> = Vec::new();
    for ((cell, column), name) in row.cells.iter().zip(mapping).zip(columns) {
        match column {
            Column::Name => names.push(cell),
            _ if cells::is_unknown(cell) => {}
            _ => read(cell, *column, notation, &mut report).map_err(|what| {
                let what = format!("{}: \"{}\" {what}", shown(name), shown(cell));
                Place::root(&format!("line {}", row.line)).fault(what)
            })?,
        }
    }
    report.name = Some(names.join(" / ")).filter(|name| !name.is_empty());
    Ok(report)
}

/// Reads a cell; fails with what it is not.
fn read(cell: &str, column: Column, notation: Notation, report: &mut Report) -> Result<(), &'static str> {
    let number = |unit: &str| {
        let number = cells::amount(&cells::with_unit(cell, unit), notation).filter(|number| number.value >= 0.0);
        number.ok_or("is not a number")
    };
    let time = |unit: Option<Unit>| {
        let unit = unit.ok_or("has no unit: choose the one of the column")?;
        cells::time(cell, unit.ms(), notation).ok_or("is not a time")
    };
    match column {
        Column::Requests(unit) => report.requests = Some(to_integer(number(unit)?.value.round())),
        Column::Failed(unit) => match cells::with_unit(cell, unit).strip_suffix('%') {
            Some(percent) => {
                let percent = cells::decimal(percent, notation).filter(|percent| (0.0..=100.0).contains(percent));
                report.failed_share = Some(percent.ok_or("is no share from 0 to 100 %")? / 100.0);
            }
            None if number("")?.value.fract() > 0.0 => return Err("is no number of requests: is it \"failed %\"?"),
            None => report.failed = Some(to_integer(number("")?.value)),
        },
        Column::Rate(unit) => report.set_rate(number(unit)?),
        Column::Connections => {
            report.load = Generated { connections: Some(to_integer(number("")?.value)), ..Generated::default() };
        }
        Column::Duration(unit) => report.duration = Some(time(unit)?),
        Column::Latency(statistic, unit) => insert(&mut report.latency, statistic, time(unit)?),
        Column::Cpu(unit) => {
            let cores = cells::cores(&cells::with_unit(cell, unit), notation).ok_or("is no share of a CPU")?;
            report.others.insert("target_cpu_cores".to_owned(), cores);
        }
        Column::Memory(unit) => {
            let bytes = cells::bytes(&cells::with_unit(cell, unit), notation).ok_or("is no amount of memory")?;
            report.others.insert("target_memory_bytes".to_owned(), bytes);
        }
        Column::Name | Column::Other | Column::Unclear => {}
    }
    Ok(())
}

fn insert(latency: &mut Latencies, statistic: Statistic, time: Time) {
    match statistic {
        Statistic::Min => latency.min = Some(time),
        Statistic::Mean => latency.mean = Some(time),
        Statistic::Max => latency.max = Some(time),
        Statistic::Deviation => latency.stddev = Some(time),
        Statistic::Percentile(percent) => {
            *latency = std::mem::take(latency).with_percentiles([(percent, Some(time))]);
        }
    }
}
