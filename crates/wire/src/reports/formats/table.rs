//! Rows of CSV files, read one after another. Pure.

use std::collections::HashMap;
use std::io::Read;

use csv::StringRecord;

use super::fields::parsed;
use crate::reports::input::unpack::{Bounded, State};
use crate::reports::validate::{Fault, Place, shown};
use crate::reports::warning::Warning;

/// A row with the names of its columns.
pub struct Row<'a> {
    columns: &'a StringRecord,
    places: &'a HashMap<String, usize>,
    record: &'a StringRecord,
    line: u64,
}

impl Row<'_> {
    /// Returns the text of a column.
    pub fn text(&self, column: &str) -> Result<&str, Fault> {
        self.get(column).ok_or_else(|| self.fault(&format!("the column \"{column}\" is missing")))
    }

    /// Returns the names of the columns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter()
    }

    /// Returns the text of all columns.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.record.iter()
    }

    /// Returns the text of a column by its place.
    pub fn field(&self, index: usize) -> Option<&str> {
        self.record.get(index)
    }

    /// Returns the text of a column that may be missing.
    pub fn get(&self, column: &str) -> Option<&str> {
        self.record.get(*self.places.get(column)?).map(str::trim)
    }

    /// Returns the number of a column.
    pub fn number(&self, column: &str) -> Result<f64, Fault> {
        let text = self.text(column)?;
        parsed(text).ok_or_else(|| self.fault(&format!("{column}: \"{}\" is not a number", shown(text))))
    }

    /// Returns a fault of this row.
    pub fn fault(&self, what: &str) -> Fault {
        Place::root(&format!("line {}", self.line)).fault(what)
    }
}

/// Reads a table with a header, and calls `take` for each row.
pub fn each(
    source: &mut dyn Read,
    delimiter: u8,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    rows(source, delimiter, None, |row, _| take(row)).map(drop)
}

/// Reads a table that a tool writes row by row; `columns` are those of one without a header.
///
/// Returns a warning if the last line is truncated: the tool was killed while it wrote.
pub fn each_written(
    source: &mut dyn Read,
    delimiter: u8,
    columns: Option<&[&str]>,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<Option<Warning>, Fault> {
    // Of the row before.
    let (mut fields, mut cut) = (None, None);
    rows(source, delimiter, columns, |row, is_unended| {
        let is_short = fields.is_some_and(|fields| row.record.len() < fields);
        let taken = if is_unended && is_short { Err(row.fault("is truncated")) } else { take(row) };
        if taken.is_err() && is_unended && fields.is_some() {
            let what = format!("line {}, the last one, is truncated: the test was interrupted", row.line);
            cut = Some(Warning::Incomplete(what));
            return Ok(());
        }
        fields = Some(row.record.len());
        taken
    })?;
    Ok(cut)
}

/// Calls `take` with each row, and with whether it has no line end.
fn rows(
    source: &mut dyn Read,
    delimiter: u8,
    columns: Option<&[&str]>,
    mut take: impl FnMut(&Row<'_>, bool) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let state = State::default();
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(columns.is_none())
        .from_reader(Bounded::new(source, &state));
    let columns = match columns {
        Some(columns) => StringRecord::from(columns.to_vec()),
        None => reader.headers().map_err(|error| to_fault(&error, 1))?.clone(),
    };
    let columns: StringRecord = columns.iter().map(str::trim).collect();
    // Of columns with one name the first counts.
    let mut places = HashMap::new();
    for (place, name) in columns.iter().enumerate() {
        places.entry(name.to_owned()).or_insert(place);
    }
    let mut record = StringRecord::new();
    loop {
        state.next_record();
        let line = reader.position().line();
        if !reader.read_record(&mut record).map_err(|error| to_fault(&error, line))? {
            return Ok(());
        }
        let line = record.position().map_or(0, csv::Position::line);
        take(&Row { columns: &columns, places: &places, record: &record, line }, state.has_ended())?;
    }
}

/// Turns an error of the CSV reader into a sentence; `line` is where the record begins.
fn to_fault(error: &csv::Error, line: u64) -> Fault {
    let line = error.position().map_or(line, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "is not valid UTF-8".to_owned(),
        csv::ErrorKind::Io(error) => format!("can't be read: {error}"),
        _ => error.to_string(),
    };
    Place::root(&format!("line {line}")).fault(what)
}
