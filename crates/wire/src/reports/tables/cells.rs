//! Cells of tables: numbers of several languages, times, CPU and memory. Pure.

use super::notation::Notation;
use crate::reports::time::{Printed, Time, printed};

/// What people write for no value.
const UNKNOWN: [&str; 10] = ["", "-", "–", "—", "n/a", "na", "null", "none", "nan", "?"];

/// Whether a cell stands for no value: empty, a dash, or −1.
pub fn is_unknown(cell: &str) -> bool {
    let cell = cell.trim().to_lowercase();
    let is_negative = |rest: &str| rest.starts_with(|letter: char| letter.is_ascii_digit());
    UNKNOWN.contains(&cell.as_str()) || cell.strip_prefix('-').is_some_and(is_negative)
}

/// Parses a number in the notation of its table.
pub fn decimal(text: &str, notation: Notation) -> Option<f64> {
    digits(text, notation).map(|number| number.value)
}

fn digits(text: &str, notation: Notation) -> Option<Printed> {
    printed(&notation.plain(text).filter(|_| is_plain(text))?)
}

/// Whether a cell has no unit.
pub fn is_plain(cell: &str) -> bool {
    !cell.contains(|letter: char| letter.is_alphabetic() || letter == '%')
}

/// Adds a unit to a cell that has none.
pub fn with_unit(cell: &str, unit: &str) -> String {
    if is_plain(cell) { format!("{cell}{unit}") } else { cell.to_owned() }
}

/// Whether a cell is a number with a unit of time.
pub fn has_time_unit(cell: &str) -> bool {
    let (digits, unit) = split(cell);
    digits.contains(|letter: char| letter.is_ascii_digit()) && Time::printed(&format!("1{unit}")).is_some()
}

/// Parses a number that may have a prefix such as `k`, and a unit of requests behind it: `12.5k`, `1,234 req/s`.
pub fn amount(cell: &str, notation: Notation) -> Option<Printed> {
    let (number, unit) = split(cell);
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ if unit.to_lowercase().starts_with("req") || unit.to_lowercase().starts_with("rps") => 1.0,
        _ => return None,
    };
    digits(number, notation).map(|number| number * factor)
}

/// Parses a time, in a unit of `unit_ms` milliseconds, or with the unit in the cell.
pub fn time(cell: &str, unit_ms: Option<f64>, notation: Notation) -> Option<Time> {
    let (digits, unit) = split(cell);
    let plain = notation.plain(digits)?;
    match unit {
        "" => Time::decimal(&plain, unit_ms?),
        unit => Time::printed(&format!("{plain}{unit}")),
    }
}

/// Parses a share of a CPU into cores: `490m`, `0.49`, `49%`.
pub fn cores(cell: &str, notation: Notation) -> Option<f64> {
    match (cell.strip_suffix('m'), cell.strip_suffix('%')) {
        (Some(milli), _) => decimal(milli, notation).map(|milli| milli / 1e3),
        (None, Some(percent)) => decimal(percent, notation).map(|percent| percent / 100.0),
        (None, None) => decimal(cell, notation),
    }
}

/// Parses an amount of memory into bytes: `76MiB`, `76Mi`, `1.5 GB`, `79691776`.
pub fn bytes(cell: &str, notation: Notation) -> Option<f64> {
    let (digits, unit) = split(cell);
    let unit = unit.trim_end_matches('B');
    let (prefix, step) = match unit.strip_suffix('i') {
        Some(prefix) => (prefix, 1024_f64),
        None => (unit, 1000_f64),
    };
    let power = match prefix {
        "" => 0,
        "k" | "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        _ => return None,
    };
    decimal(digits, notation).map(|number| number * step.powi(power))
}

/// Splits a cell into its number and its unit.
fn split(cell: &str) -> (&str, &str) {
    let cell = cell.trim();
    let (digits, unit) = cell.split_at(cell.find(|letter: char| letter.is_alphabetic()).unwrap_or(cell.len()));
    (digits, unit.trim())
}
