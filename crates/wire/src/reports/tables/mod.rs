//! Tables of results that no tool wrote: CSV, TSV and Markdown, with a mapping of their columns. Pure.
//!
//! [`Table::find`] reads the cells as text. [`Table::guess`] proposes what each column is; where the unit does not follow
//! from its name, it is `None`, and the user chooses. [`Table::reports`] reads the rows by a mapping.

mod cells;
pub mod column;
mod guess;
mod notation;
mod parse;
mod rows;

pub use column::{Column, Statistic, Unit};
use notation::Notation;
pub use parse::{Row, Table};

use crate::reports::report::Report;
use crate::reports::validate::{Fault, Place, shown};

impl Table {
    /// Proposes what each column is.
    pub fn guess(&self) -> Vec<Column> {
        guess::columns(self)
    }

    /// Reads the rows by a mapping with one entry for each column.
    ///
    /// Fails if two columns mean the same, if a unit is unknown, if a cell is no number, or if two numbers contradict
    /// each other in their decimal separator. Cells that are empty or stand for no value (`-`, `N/A`, a negative number)
    /// are unknown.
    pub fn reports(&self, mapping: &[Column]) -> Result<Vec<Report>, Fault> {
        if mapping.len() != self.columns.len() {
            let what = format!("has {} entries for {} columns", mapping.len(), self.columns.len());
            return Err(Place::root("the mapping").fault(what));
        }
        self.distinct(mapping)?;
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let notation = Notation::of(self, mapping)?;
        self.rows.iter().map(|row| rows::report(&self.columns, row, mapping, notation)).collect()
    }

    /// Reads a table with a target in each column: all cells beside the first column are the chosen metric, such as
    /// requests per second.
    pub fn wide(&self, of_cells: Column) -> Result<Vec<Report>, Fault> {
        if let Some(fault) = &self.fault {
            return Err(fault.clone());
        }
        let notation = Notation::of(self, &[&[Column::Name][..], &vec![of_cells; self.columns.len() - 1]].concat())?;
        let mut reports = Vec::new();
        for row in &self.rows {
            let label = row.cells.first().map_or("", String::as_str);
            for (target, cell) in self.columns.iter().zip(&row.cells).skip(1) {
                let row = Row { line: row.line, cells: vec![target.clone(), label.to_owned(), cell.clone()] };
                let columns = [String::new(), String::new(), target.clone()];
                reports.push(rows::report(&columns, &row, &[Column::Name, Column::Name, of_cells], notation)?);
            }
        }
        Ok(reports)
    }

    /// Checks that each column has a meaning of its own.
    fn distinct(&self, mapping: &[Column]) -> Result<(), Fault> {
        let mut seen: Vec<(String, &str)> = Vec::new();
        for (column, name) in mapping.iter().zip(&self.columns) {
            let fault = |what: String| Err(Place::root("the columns").fault(format!("\"{}\" {what}", shown(name))));
            // Without the unit.
            let meaning = column.to_string().split(' ').next().unwrap_or_default().to_owned();
            match (column, seen.iter().find(|(other, _)| *other == meaning)) {
                (Column::Name | Column::Other, _) => {}
                (Column::Unclear, _) => {
                    return fault("may have several meanings: specify one, or ignore it".to_owned());
                }
                (_, Some((_, other))) => {
                    return fault(format!("means {meaning}, as \"{}\" does: ignore one of them", shown(other)));
                }
                (_, None) => seen.push((meaning, name)),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
