//! Cells of tables: numbers of several languages, times, CPU and memory. Pure.

use crate::reports::time::Time;

/// What people write for no value.
const UNKNOWN: [&str; 10] = ["", "-", "–", "—", "n/a", "na", "null", "none", "nan", "?"];

/// Whether a cell stands for no value: empty, a dash, or −1.
pub fn is_unknown(cell: &str) -> bool {
    let cell = cell.trim().to_lowercase();
    UNKNOWN.contains(&cell.as_str()) || decimal(&cell).is_some_and(|number| number < 0.0)
}

/// Parses a number with a decimal point or comma, and with separators of thousands: `1,234.5`, `1.234,5`, `1 234,5`,
/// `1'234.5`.
///
/// `1,234` and `1.234` are ambiguous: a comma with exactly three digits behind it separates thousands, a point never
/// does unless there is another one.
pub fn decimal(text: &str) -> Option<f64> {
    let text: String =
        text.trim().chars().filter(|letter| !letter.is_whitespace() && *letter != '\'' && *letter != '_').collect();
    let (points, commas) = (text.matches('.').count(), text.matches(',').count());
    let plain = match (points, commas) {
        (_, 0) if points <= 1 => text,
        (_, 0) => grouped(&text, '.')?,
        (0, 1) => {
            let (whole, rest) = text.split_once(',')?;
            let is_group = rest.len() == 3 && !whole.is_empty() && whole.trim_start_matches('-') != "0";
            if is_group { text.replace(',', "") } else { text.replace(',', ".") }
        }
        (0, _) => grouped(&text, ',')?,
        _ if text.rfind('.') > text.rfind(',') => grouped_with(&text, ',', '.')?,
        _ => grouped_with(&text, '.', ',')?,
    };
    crate::reports::time::number(&plain)
}

/// Removes separators if groups of three digits are between them.
fn grouped(text: &str, separator: char) -> Option<String> {
    let mut groups = text.split(separator);
    groups.next().filter(|first| (1..=4).contains(&first.len()))?;
    groups.all(|group| group.len() == 3).then(|| text.replace(separator, ""))
}

fn grouped_with(text: &str, separator: char, point: char) -> Option<String> {
    let (whole, fraction) = text.rsplit_once(point)?;
    let whole = if whole.contains(separator) { grouped(whole, separator)? } else { whole.to_owned() };
    (!whole.contains(point)).then(|| format!("{whole}.{fraction}"))
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
    let (digits, unit) = cell.split_at(cell.find(|letter: char| letter.is_alphabetic()).unwrap_or(cell.len()));
    digits.ends_with(|letter: char| letter.is_ascii_digit() || letter == ' ')
        && Time::printed(&format!("1{unit}")).is_some()
}

/// Parses a number that may have a prefix such as `k`, and a unit of requests behind it: `12.5k`, `1,234 req/s`.
pub fn amount(cell: &str) -> Option<f64> {
    let end = cell.trim().find(|letter: char| letter.is_alphabetic()).unwrap_or(cell.trim().len());
    let (digits, unit) = cell.trim().split_at(end);
    let unit = unit.trim();
    let factor = match unit {
        "" => 1.0,
        "k" | "K" => 1e3,
        "M" => 1e6,
        _ if unit.to_lowercase().starts_with("req") || unit.to_lowercase().starts_with("rps") => 1.0,
        _ => return None,
    };
    decimal(digits).map(|number| number * factor)
}

/// Parses a time, in a unit of `unit_ms` milliseconds, or with the unit in the cell.
pub fn time(cell: &str, unit_ms: Option<f64>) -> Option<Time> {
    let cell = cell.trim();
    let end = cell.find(|letter: char| letter.is_alphabetic()).unwrap_or(cell.len());
    let (digits, unit) = cell.split_at(end);
    let number = decimal(digits)?;
    match (unit.trim(), unit_ms) {
        ("", Some(unit_ms)) => {
            let decimals = digits.trim().rsplit_once(['.', ',']).map_or(0, |(_, fraction)| fraction.len());
            let step = unit_ms * 10_f64.powi(-i32::try_from(decimals).ok()?);
            Some(Time { error_ms: step / 2.0, ..Time::of(number, unit_ms) })
        }
        ("", None) => None,
        (unit, _) => Time::printed(&format!("{number}{unit}")),
    }
}

/// Parses a share of a CPU into cores: `490m`, `0.49`, `49%`.
pub fn cores(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    if let Some(milli) = cell.strip_suffix('m') {
        return decimal(milli).map(|milli| milli / 1e3);
    }
    match cell.strip_suffix('%') {
        Some(percent) => decimal(percent).map(|percent| percent / 100.0),
        None => decimal(cell),
    }
}

/// Parses an amount of memory into bytes: `76MiB`, `76Mi`, `1.5 GB`, `79691776`.
pub fn bytes(cell: &str) -> Option<f64> {
    let cell = cell.trim();
    let end = cell.find(|letter: char| letter.is_alphabetic()).unwrap_or(cell.len());
    let (digits, unit) = cell.split_at(end);
    let unit = unit.trim().trim_end_matches('B');
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
    decimal(digits).map(|number| number * step.powi(power))
}
