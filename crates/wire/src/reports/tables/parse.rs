//! Finds a table in a text. Pure.

use crate::reports::validate::{Fault, Place};

/// Maximum number of columns and of rows.
const COLUMNS_MAX: usize = 200;
const ROWS_MAX: usize = 10_000;

/// What separates columns, and what in their numbers is asked for: where columns are separated by a semicolon, a comma
/// is likely to be a decimal one.
const SEPARATORS: [(u8, &[char]); 3] = [(b',', &[]), (b'\t', &[',']), (b';', &[',', '.'])];

/// A table of text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// The names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as the header.
    pub rows: Vec<Row>,
    /// Why its other rows can't be read.
    pub fault: Option<Fault>,
    /// Separators in a number of three more digits whose meaning is asked for unless another number shows it.
    pub(super) asked: &'static [char],
}

/// A row of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its line in the file, from 1.
    pub line: usize,
    /// Its cells as they are.
    pub cells: Vec<String>,
}

impl Table {
    /// Finds the first table in a text; `None` if there is none.
    ///
    /// Of several separators, the one that makes rows of one length counts, then the one with the most columns.
    pub fn find(text: &str) -> Option<Self> {
        let separated = || {
            let tables = SEPARATORS.iter().rev().filter_map(|(separator, asked)| separated(text, *separator, asked));
            tables.max_by_key(|table| (table.fault.is_none(), table.columns.len()))
        };
        markdown(text).or_else(separated)
    }

    /// Collects the rows; the first one of another length is a fault, as are too many.
    fn of(columns: Vec<String>, rows: impl Iterator<Item = Row>, asked: &'static [char]) -> Option<Self> {
        let mut table = Self { columns, rows: Vec::new(), fault: None, asked };
        let count = table.columns.len();
        if !(2..=COLUMNS_MAX).contains(&count) {
            return None;
        }
        for Row { line, cells } in rows {
            let what = match cells.len() {
                _ if table.rows.len() == ROWS_MAX => format!("the table has more than {ROWS_MAX} rows: split it"),
                len if len != count => format!("has {len} cells, but the header has {count}: complete the row"),
                _ => {
                    table.rows.push(Row { line, cells });
                    continue;
                }
            };
            table.fault = Some(fault(line, &what));
            break;
        }
        (!table.rows.is_empty()).then_some(table)
    }
}

fn fault(line: usize, what: &str) -> Fault {
    Place::root(&format!("line {line}")).fault(what)
}

/// Reads a table whose columns are separated by a letter.
fn separated(text: &str, delimiter: u8, asked: &'static [char]) -> Option<Table> {
    let mut reader =
        csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).has_headers(false).from_reader(text.as_bytes());
    let mut rows = reader.records().map_while(Result::ok).map(|record| {
        let line = record.position().map_or(0, csv::Position::line);
        let cells = record.iter().map(|cell| cell.trim().to_owned()).collect();
        Row { line: usize::try_from(line).unwrap_or_default(), cells }
    });
    Table::of(rows.next()?.cells, rows, asked)
}

/// Reads a table of Markdown: cells between `|`, with a line of dashes below the header. It ends before a line that does
/// not begin with `|`.
fn markdown(text: &str) -> Option<Table> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let cells = |line: &str| -> Option<Vec<String>> {
        let inner = line.strip_prefix('|')?.trim_end().trim_end_matches('|');
        Some(inner.split('|').map(|cell| cell.trim().trim_matches(['*', '`']).to_owned()).collect())
    };
    let is_rule =
        |line: &str| line.starts_with('|') && line.contains("--") && line.chars().all(|letter| "|-: ".contains(letter));
    let rule = lines.iter().position(|line| is_rule(line))?;
    let columns = cells(lines.get(rule.checked_sub(1)?)?)?;
    let row = |(index, line): (usize, &&str)| Some(Row { line: index + 1, cells: cells(line)? });
    Table::of(columns, lines.iter().enumerate().skip(rule + 1).map_while(row), &[])
}
