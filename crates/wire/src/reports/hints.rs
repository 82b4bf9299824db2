//! Information that a file lacks and a person adds: meanings of columns, the duration. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::reports::encoding::decoded;
use crate::reports::formats::{table_csv, wide_csv};
use crate::reports::input::unpack;
use crate::reports::read::{Contents, checked, read};
use crate::reports::tables::{Column, Table};
use crate::reports::time::Time;
use crate::reports::validate::{Fault, Place, shown};

/// Stands for all columns but the first, in a table with one column for each target.
pub const ALL_COLUMNS: &str = "*";

/// Information that a file lacks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hints {
    /// Meanings of columns, by their names; others are guessed.
    pub columns: BTreeMap<String, Column>,
    /// Duration of each load that has none in the file, milliseconds.
    pub duration_ms: Option<f64>,
}

impl Hints {
    /// Reads all reports of a file.
    pub fn read(&self, bytes: &[u8]) -> Result<Contents, Fault> {
        let mut contents = if self.columns.is_empty() { read(bytes)? } else { self.table(bytes)? };
        for report in &mut contents.reports {
            report.duration = report.duration.or(self.duration_ms.map(Time::exact));
        }
        Ok(contents)
    }

    /// Returns the hints for one of several files: those on columns only if it has a table with these columns.
    #[must_use]
    pub fn applying_to(&self, bytes: &[u8]) -> Self {
        let table = if self.columns.is_empty() { None } else { find(bytes).ok().flatten() };
        let is_wide =
            || read(bytes).is_ok_and(|found| found.reports.iter().all(|report| report.format == wide_csv::NAME));
        let has_column = |name: &String| table.as_ref().is_some_and(|table| table.columns.contains(name));
        let has = |name: &String| if name == ALL_COLUMNS { is_wide() } else { has_column(name) };
        if self.columns.keys().all(has) { self.clone() } else { Self { columns: BTreeMap::new(), ..*self } }
    }

    fn table(&self, bytes: &[u8]) -> Result<Contents, Fault> {
        let table =
            find(bytes)?.ok_or_else(|| Place::root("the file").fault("has no table, so that it has no columns"))?;
        let reports = match self.columns.get(ALL_COLUMNS) {
            Some(_) if self.columns.len() > 1 => {
                return Err(Place::root("the columns").fault("have either one meaning (*) or one for each name"));
            }
            Some(column) => table.wide(*column)?,
            None => table.reports(&self.mapping(&table)?)?,
        };
        let reports = checked(reports, &table_csv::FORMAT)?;
        Ok(Contents { reports, stripped: BTreeSet::new(), refused: Vec::new() })
    }

    /// Returns the meaning of each column.
    fn mapping(&self, table: &Table) -> Result<Vec<Column>, Fault> {
        if let Some(name) = self.columns.keys().find(|name| !table.columns.contains(name)) {
            let all: Vec<_> = table.columns.iter().map(|name| format!("\"{}\"", shown(name))).collect();
            let what = format!("has no column \"{}\", only {}", shown(name), all.join(", "));
            return Err(Place::root("the table").fault(what));
        }
        let guesses = table.columns.iter().zip(table.guess());
        Ok(guesses.map(|(name, guess)| self.columns.get(name).copied().unwrap_or(guess)).collect())
    }
}

/// Finds the table in a file that may be compressed.
pub fn find(bytes: &[u8]) -> Result<Option<Table>, Fault> {
    let bytes = unpack::document(unpack::open(bytes)?.all)?;
    let text = decoded(&bytes).map_err(|fault| Place::root("the file").fault(fault))?;
    Ok(Table::find(&String::from_utf8_lossy(&text)))
}

/// Whether the name or the heading of a report contains these words.
pub fn is_named(name: Option<&str>, heading: Option<&str>, wanted: &str) -> bool {
    let wanted = wanted.to_lowercase();
    [name, heading].into_iter().flatten().any(|name| name.to_lowercase().contains(&wanted))
}
