//! Tables of results that no tool wrote: CSV, TSV and Markdown, with a mapping of their columns. Pure.
//!
//! [`Table::find`] reads the cells as text. [`Table::guess`] proposes what each column is; where the unit does not follow
//! from its name, it is `None`, and the user chooses. [`Table::reports`] reads the rows by a mapping.

mod cells;
pub mod column;
mod guess;

pub use cells::{amount, decimal};

use crate::reports::report::{Definition, Generated, Latencies, Population, Report};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, shown};
use crate::reports::values::to_integer;

/// Maximum number of columns and of rows.
const COLUMNS_MAX: usize = 200;
const ROWS_MAX: usize = 10_000;

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Row>,
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its cells as they are.
    pub cells: Vec<String>,
}

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    /// The name of the target, or a part of it.
    Name,
    /// Requests made.
    Requests,
    /// Failed requests.
    Failed,
    /// Requests per second.
    Rate,
    /// Connections or virtual users.
    Connections,
    /// Duration of the load, in this unit.
    Duration(Option<Unit>),
    /// A latency, in this unit.
    Latency(Statistic, Option<Unit>),
    /// CPU of the target: cores, `490m`, or percent of a core.
    Cpu,
    /// Memory of the target: bytes, `76MiB`.
    Memory,
    /// Not read.
    Other,
}

/// A statistic of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Fastest.
    Min,
    /// Mean.
    Mean,
    /// Slowest.
    Max,
    /// Standard deviation.
    Deviation,
    /// A percentile, from 0 to 100.
    Percentile(f64),
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 10⁻⁹ s.
    Nanoseconds,
    /// 10⁻⁶ s.
    Microseconds,
    /// 10⁻³ s.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// 60 seconds.
    Minutes,
    /// In each cell: `1.2ms`.
    InCells,
}

impl Unit {
    /// Returns its milliseconds; `None` if it is in the cells.
    fn ms(self) -> Option<f64> {
        Some(match self {
            Self::Nanoseconds => 1e-6,
            Self::Microseconds => 1e-3,
            Self::Milliseconds => 1.0,
            Self::Seconds => 1e3,
            Self::Minutes => 6e4,
            Self::InCells => return None,
        })
    }
}

impl Table {
    /// Finds the first table in a text; `None` if there is none.
    pub fn find(text: &str) -> Option<Self> {
        Self::markdown(text)
            .or_else(|| [',', '\t', ';'].into_iter().find_map(|separator| Self::separated(text, separator)))
    }

    /// Reads a table whose columns are separated by a letter.
    fn separated(text: &str, separator: char) -> Option<Self> {
        let delimiter = u8::try_from(separator).ok()?;
        let mut reader = csv::ReaderBuilder::new()
            .delimiter(delimiter)
            .flexible(true)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let mut records = reader.records().map_while(Result::ok);
        let columns: Vec<String> = records.next()?.iter().map(|cell| cell.trim().to_owned()).collect();
        if !(2..=COLUMNS_MAX).contains(&columns.len()) {
            return None;
        }
        let row = |record: csv::StringRecord| {
            let line = record.position().map_or(0, csv::Position::line);
            let cells: Vec<String> = record.iter().map(|cell| cell.trim().to_owned()).collect();
            (cells.len() == columns.len()).then_some(Row { line: usize::try_from(line).unwrap_or_default(), cells })
        };
        let rows: Vec<Row> = records.take(ROWS_MAX).map_while(row).collect();
        (!rows.is_empty()).then_some(Self { columns, rows })
    }

    /// Reads a table of Markdown: cells between `|`, with a line of dashes below the header.
    fn markdown(text: &str) -> Option<Self> {
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let cells = |line: &str| -> Option<Vec<String>> {
            let inner = line.strip_prefix('|')?.trim_end().trim_end_matches('|');
            Some(inner.split('|').map(|cell| cell.trim().trim_matches(['*', '`']).to_owned()).collect())
        };
        let is_rule = |line: &str| {
            line.starts_with('|') && line.contains("--") && line.chars().all(|letter| "|-: ".contains(letter))
        };
        let rule = lines.iter().position(|line| is_rule(line))?;
        let columns =
            cells(lines.get(rule.checked_sub(1)?)?).filter(|columns| (2..=COLUMNS_MAX).contains(&columns.len()))?;
        let row = |(index, line): (usize, &&str)| {
            let cells = cells(line).filter(|cells| cells.len() == columns.len())?;
            Some(Row { line: index + 1, cells })
        };
        let rows: Vec<Row> = lines.iter().enumerate().skip(rule + 1).take(ROWS_MAX).map_while(row).collect();
        (!rows.is_empty()).then_some(Self { columns, rows })
    }

    /// Proposes what each column is.
    pub fn guess(&self) -> Vec<Column> {
        let cells = |index: usize| self.rows.iter().filter_map(move |row| row.cells.get(index)).map(String::as_str);
        let mut columns: Vec<Column> = self
            .columns
            .iter()
            .enumerate()
            .map(|(index, name)| guess::column(name, &cells(index).collect::<Vec<_>>()))
            .collect();
        // Without a name, one row is like another.
        if !columns.contains(&Column::Name)
            && let Some(first) = columns.first_mut().filter(|first| **first == Column::Other)
        {
            *first = Column::Name;
        }
        columns
    }

    /// Reads the rows by a mapping with one entry for each column.
    ///
    /// Fails if a unit is unknown, or if a cell is no number. Cells that are empty or stand for no value (`-`, `N/A`, a
    /// negative number) are unknown.
    pub fn reports(&self, mapping: &[Column]) -> Result<Vec<Report>, Fault> {
        if mapping.len() != self.columns.len() {
            let what = format!("has {} entries for {} columns", mapping.len(), self.columns.len());
            return Err(Place::root("the mapping").fault(what));
        }
        self.rows.iter().map(|row| self.report(row, mapping)).collect()
    }

    /// Reads a table with a target in each column: all cells beside the first column are the chosen metric, such as
    /// requests per second.
    pub fn wide(&self, of_cells: Column) -> Result<Vec<Report>, Fault> {
        let mut reports = Vec::new();
        for row in &self.rows {
            let label = row.cells.first().map_or("", String::as_str);
            for (target, cell) in self.columns.iter().zip(&row.cells).skip(1) {
                let cells = vec![target.clone(), label.to_owned(), cell.clone()];
                let columns = vec![String::new(), String::new(), target.clone()];
                let one = Self { columns, rows: vec![Row { line: row.line, cells }] };
                reports.extend(one.reports(&[Column::Name, Column::Name, of_cells])?);
            }
        }
        Ok(reports)
    }

    fn report(&self, row: &Row, mapping: &[Column]) -> Result<Report, Fault> {
        let mut report = Report {
            line: Some(row.line),
            latency: Latencies { of: Population::Responses, definition: Definition::Unknown, ..Latencies::default() },
            ..Report::default()
        };
        let (mut names, mut percentiles): (Vec<&str>, Vec<(f64, Option<Time>)>) = (Vec::new(), Vec::new());
        for ((cell, column), name) in row.cells.iter().zip(mapping).zip(&self.columns) {
            let fault = |what: &str| {
                Place::root(&format!("line {}", row.line)).fault(format_args!(
                    "{}: \"{}\" {what}",
                    shown(name),
                    shown(cell)
                ))
            };
            if matches!(column, Column::Name) {
                names.push(cell);
                continue;
            }
            if cells::is_unknown(cell) {
                continue;
            }
            let number = || amount(cell).filter(|value| *value >= 0.0).ok_or_else(|| fault("is not a number"));
            let time = |unit: Option<Unit>| {
                let unit = unit.ok_or_else(|| fault("has no unit: choose the one of the column"))?;
                cells::time(cell, unit.ms()).ok_or_else(|| fault("is not a time"))
            };
            match *column {
                Column::Requests => report.requests = Some(to_integer(number()?)),
                Column::Failed => report.failed = Some(to_integer(number()?)),
                Column::Rate => report.rate_per_s = Some(number()?),
                Column::Connections => {
                    report.load = Generated { connections: Some(to_integer(number()?)), ..Generated::default() }
                }
                Column::Duration(unit) => report.duration = Some(time(unit)?),
                Column::Latency(Statistic::Min, unit) => report.latency.min = Some(time(unit)?),
                Column::Latency(Statistic::Mean, unit) => report.latency.mean = Some(time(unit)?),
                Column::Latency(Statistic::Max, unit) => report.latency.max = Some(time(unit)?),
                Column::Latency(Statistic::Deviation, unit) => report.latency.stddev = Some(time(unit)?),
                Column::Latency(Statistic::Percentile(percent), unit) => percentiles.push((percent, Some(time(unit)?))),
                Column::Cpu => {
                    let cores = cells::cores(cell).ok_or_else(|| fault("is no share of a CPU"))?;
                    report.others.insert("target_cpu_cores".to_owned(), cores);
                }
                Column::Memory => {
                    let bytes = cells::bytes(cell).ok_or_else(|| fault("is no amount of memory"))?;
                    report.others.insert("target_memory_bytes".to_owned(), bytes);
                }
                Column::Name | Column::Other => {}
            }
        }
        report.name = Some(names.join(" / ")).filter(|name| !name.is_empty());
        report.latency = report.latency.with_percentiles(percentiles);
        Ok(report)
    }
}

#[cfg(test)]
mod tests;
