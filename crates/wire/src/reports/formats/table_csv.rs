//! A table as CSV, TSV or Markdown that no tool wrote, whose columns can be guessed: see [`crate::reports::tables`].

use std::collections::BTreeSet;
use std::io::Read;

use super::format::{Format, Reader, Recognised};
use crate::reports::input::{lines, prefix, unpack};
use crate::reports::report::Report;
use crate::reports::tables::{Column, Table};
use crate::reports::validate::{Fault, Place};

/// The format.
pub const FORMAT: Format = Format {
    name: "table",
    title: "a table as CSV, TSV or Markdown",
    tool: "unknown",
    limits: "The meaning of a column is guessed from its name; specify it if the guess is wrong.",
    is_rounded: true,
    timeout_ms: None,
    reader: Reader::Records { is, read },
};

fn is(head: &str) -> Recognised {
    let is_prose = head.trim_start().starts_with(['{', '[', '<']);
    // The first column of a log is no name.
    let mut prefixes = BTreeSet::new();
    prefix::without(&lines::cleaned(head, &mut BTreeSet::new()), &mut prefixes);
    let is_table = !is_prose && prefixes.is_empty();
    // The last row may be cut off; three bytes are those of a byte order mark.
    let is_all = head.len() as u64 + 3 < unpack::HEAD;
    let rows = if is_all { head } else { head.rsplit_once('\n').map_or(head, |(rows, _)| rows) };
    let Some(table) = Some(rows).filter(|_| is_table).and_then(Table::find) else { return Recognised::No };
    let mapping = table.guess();
    let has_rate = mapping.iter().any(|column| matches!(column, Column::Rate(_)));
    if !has_rate || !mapping.contains(&Column::Name) {
        return Recognised::No;
    }
    let is_markdown = rows.lines().any(|line| line.trim_start().starts_with('|'));
    let lines = rows.lines().filter(|line| !line.trim().is_empty()).count();
    match table.reports(&mapping) {
        // With the header and the dashes.
        Ok(_) if is_markdown && lines != table.rows.len() + 2 => Recognised::Near(
            "it has other text: remove it, or specify a column (--column, or the import preview) to read the first table"
                .into(),
        ),
        Ok(_) => Recognised::Yes,
        Err(fault) => {
            Recognised::Near(format!("{fault} (specify columns by --column or in the import preview)").into())
        }
    }
}

fn read(source: &mut dyn Read) -> Result<Vec<Report>, Fault> {
    let bytes = unpack::document(source)?;
    let text = String::from_utf8(bytes).map_err(|_| Place::root("the table").fault("is not valid UTF-8"))?;
    let table = Table::find(&text).ok_or_else(|| Place::root("the table").fault("has no rows"))?;
    table.reports(&table.guess())
}
