//! How the numbers of a table are written: with a decimal point or comma. Decided once for a table. Pure.

use super::column::Column;
use super::parse::Table;
use crate::reports::validate::{Fault, Place, shown};

/// What separates the whole part of a number from its decimals; the other one groups thousands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// `1,234.5`
    Point,
    /// `1.234,5`
    Comma,
}

/// What a number shows of the notation.
enum Shown {
    Nothing,
    One(Notation),
    /// It is one of two numbers.
    Either(String),
}

impl Notation {
    fn decimal(self) -> char {
        if self == Self::Point { '.' } else { ',' }
    }

    fn other(self) -> Self {
        if self == Self::Point { Self::Comma } else { Self::Point }
    }

    /// Returns the notation of a table, of whose columns those are numbers that are read.
    ///
    /// Fails if two numbers contradict each other, and if none decides what another one is.
    pub fn of(table: &Table, mapping: &[Column]) -> Result<Self, Fault> {
        let mut found: Option<(Self, String)> = None;
        let mut either: Option<(String, String)> = None;
        for row in &table.rows {
            for ((cell, column), name) in row.cells.iter().zip(mapping).zip(&table.columns) {
                if matches!(column, Column::Name | Column::Other | Column::Unclear) {
                    continue;
                }
                let place = || format!("line {}: {}: \"{}\"", row.line, shown(name), shown(cell));
                match (shown_by(cell), &found) {
                    (Shown::One(one), Some((other, first))) if one != *other => {
                        let what = format!("contradicts {first}: write all decimals with a point, or all with a comma");
                        return Err(Place::root(&place()).fault(what));
                    }
                    (Shown::One(one), None) => found = Some((one, place())),
                    (Shown::Either(which), None) if either.is_none() && cell.contains(table.asked) => {
                        either = Some((place(), which));
                    }
                    _ => {}
                }
            }
        }
        match (found, either) {
            (Some((notation, _)), _) => Ok(notation),
            (None, None) => Ok(Self::Point),
            (None, Some((place, which))) => {
                let what =
                    format!("may be {which}: write thousands without a separator, or another number of decimals");
                Err(Place::root(&place).fault(what))
            }
        }
    }

    /// Returns a number as digits with at most a point: `1,234.5` as `1234.5`.
    pub fn plain(self, text: &str) -> Option<String> {
        let text = digits(text);
        let grouping = self.other().decimal();
        let (whole, fraction) = match text.split_once(self.decimal()) {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (text.as_str(), None),
        };
        let mut groups = whole.trim_start_matches('-').split(grouping);
        let first = groups.next()?;
        let is_grouped = whole.contains(grouping);
        if is_grouped && (first == "0" || !(1..=3).contains(&first.len()) || !groups.all(|group| group.len() == 3)) {
            return None;
        }
        let whole = whole.replace(grouping, "");
        let plain = fraction.map_or(whole.clone(), |fraction| format!("{whole}.{fraction}"));
        crate::reports::time::number(&plain).map(|_| plain)
    }
}

/// The number in a cell, without its unit and without spaces and apostrophes that group thousands.
fn digits(cell: &str) -> String {
    let end = cell.find(|letter: char| letter.is_alphabetic() || letter == '%').unwrap_or(cell.len());
    let number = cell.get(..end).unwrap_or_default();
    number.chars().filter(|letter| !letter.is_whitespace() && !matches!(letter, '\'' | '’' | '_')).collect()
}

fn shown_by(cell: &str) -> Shown {
    let text = digits(cell);
    let values = [Notation::Point, Notation::Comma].map(|notation| notation.plain(&text));
    match values {
        [Some(point), Some(comma)] if point == comma => Shown::Nothing,
        [Some(point), Some(comma)] => Shown::Either(format!("{point} or {comma}")),
        [Some(_), None] => Shown::One(Notation::Point),
        [None, Some(_)] => Shown::One(Notation::Comma),
        [None, None] => Shown::Nothing,
    }
}
