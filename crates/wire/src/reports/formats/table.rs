//! Rows of CSV files, read one after another. Pure.

use std::collections::HashMap;
use std::io::Read;

use csv::StringRecord;

use super::fields::parsed;
use crate::reports::validate::{Fault, Place, shown};

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
    take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    each_with(source, delimiter, None, take)
}

/// Reads a table; `columns` are those of one without a header.
pub fn each_with(
    source: &mut dyn Read,
    delimiter: u8,
    columns: Option<&[&str]>,
    mut take: impl FnMut(&Row<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .flexible(true)
        .has_headers(columns.is_none())
        .from_reader(source);
    let columns = match columns {
        Some(columns) => StringRecord::from(columns.to_vec()),
        None => reader.headers().map_err(|error| to_fault(&error))?.clone(),
    };
    let columns: StringRecord = columns.iter().map(str::trim).collect();
    // Of columns with one name the first counts.
    let mut places = HashMap::new();
    for (place, name) in columns.iter().enumerate() {
        places.entry(name.to_owned()).or_insert(place);
    }
    let mut record = StringRecord::new();
    loop {
        if !reader.read_record(&mut record).map_err(|error| to_fault(&error))? {
            return Ok(());
        }
        let line = record.position().map_or(0, csv::Position::line);
        take(&Row { columns: &columns, places: &places, record: &record, line })?;
    }
}

/// Turns an error of the CSV reader into a sentence.
pub fn to_fault(error: &csv::Error) -> Fault {
    let line = error.position().map_or(1, csv::Position::line);
    let what = match error.kind() {
        csv::ErrorKind::Utf8 { .. } => "is not valid UTF-8".to_owned(),
        csv::ErrorKind::Io(error) => format!("can't be read: {error}"),
        _ => error.to_string(),
    };
    Place::root(&format!("line {line}")).fault(what)
}
