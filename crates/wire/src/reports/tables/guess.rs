//! Guesses what columns are by the words of their names, in English; a name of another language is left to people.
//! Pure.
//!
//! A name has a meaning if all of its words fit: `requests/s` is a rate, `failed requests/s` is not.

use super::cells::{self, is_unknown};
use super::column::{Column, Statistic, UNITS, Unit};
use super::parse::Table;
use crate::reports::time::number;

/// Words that are read as another one, or as two.
const SYNONYMS: [(&str, &[&str]); 25] = [
    ("requests", &["req", "reqs", "request"]),
    ("rps", &["qps", "requestspersecond", "requestspersec", "reqpersec", "throughputrps"]),
    ("k requests", &["kreq", "kreqs", "krequests"]),
    ("k rps", &["krps", "kqps"]),
    ("k", &["thousand", "thousands"]),
    ("ns", &["nanoseconds"]),
    ("us", &["µs", "μs", "microseconds"]),
    ("ms", &["milliseconds", "millis", "msec"]),
    ("s", &["sec", "secs", "second", "seconds"]),
    ("min", &["minimum", "minutes", "fastest"]),
    ("avg", &["average", "mean"]),
    ("max", &["maximum", "slowest", "peak"]),
    ("stddev", &["std", "stdev", "dev", "deviation"]),
    ("p50", &["median"]),
    ("latency", &["lat", "latencies"]),
    ("time", &["times"]),
    ("failed", &["error", "errors", "failure", "failures", "fail", "fails", "non2xx", "non"]),
    ("ok", &["success", "successes", "successful", "succeeded", "2xx"]),
    ("timeouts", &["timeout", "4xx", "5xx"]),
    ("share", &["rate", "ratio"]),
    ("%", &["percent", "pct", "percentage"]),
    ("connections", &["vus", "concurrency", "users", "clients"]),
    ("memory", &["mem", "rss"]),
    ("m", &["millicores", "millicpu"]),
    ("name", &["framework", "target", "server", "language", "implementation", "version", "router"]),
];

const RATE: &[&str] = &["rps", "requests", "s", "per", "throughput", "avg", "p50", "total", "http", "k"];
const COUNT: &[&str] =
    &["total", "count", "number", "of", "num", "http", "all", "made", "sent", "complete", "completed"];
const USED: &[&str] = &["usage", "used", "utilization", "utilisation", "avg", "max", "name", "of", "%", "m", "cores"];
const LATENCY: &[&str] = &["latency", "response", "time", "requests", "http", "duration", "percentile", "in", "of"];

/// What a column is whose name has all of the first words, and besides only words of the following lists.
type Meaning = (Column, &'static [&'static str], &'static [&'static [&'static str]]);

const MEANINGS: [Meaning; 11] = [
    (Column::Rate(""), &["rps"], &[RATE]),
    (Column::Rate(""), &["requests", "s"], &[RATE]),
    (Column::Failed(""), &["failed"], &[COUNT, &["requests", "responses", "ok", "%", "share"]]),
    (Column::Requests(""), &["requests"], &[COUNT, &["k"]]),
    (Column::Requests(""), &["total"], &[&["count"]]),
    (Column::Requests(""), &["count"], &[]),
    (Column::Connections, &["connections"], &[COUNT, &["concurrent", "open", "virtual"]]),
    (Column::Duration(None), &["duration"], &[COUNT, &["test", "run", "load", "in", "ns", "us", "ms", "s", "min"]]),
    (Column::Cpu(""), &["cpu"], &[USED]),
    (Column::Memory(""), &["memory"], &[USED, &["b", "bytes", "kb", "mb", "gb", "kib", "mib", "gib", "mi", "gi"]]),
    (Column::Name, &["name"], &[&["web", "http", "of", "the", "test"]]),
];

/// Words of failures: what they count is asked for unless it is clear.
const FAILURES: [&str; 3] = ["failed", "ok", "timeouts"];

/// Words of a column that says again how many requests failed.
const FAILED_AGAIN: [&str; 9] = ["failed", "ok", "requests", "responses", "%", "share", "s", "per", "total"];

const CORES: [(&str, &str); 3] = [("%", "%"), ("m", "m"), ("cores", "")];

const SIZES: [(&str, &str); 10] = [
    ("b", "B"),
    ("bytes", "B"),
    ("kb", "kB"),
    ("mb", "MB"),
    ("gb", "GB"),
    ("kib", "KiB"),
    ("mib", "MiB"),
    ("gib", "GiB"),
    ("mi", "MiB"),
    ("gi", "GiB"),
];

/// Proposes what each column is.
pub fn columns(table: &Table) -> Vec<Column> {
    let cells = |index: usize| table.rows.iter().filter_map(move |row| row.cells.get(index)).map(String::as_str);
    let names: Vec<Vec<String>> = table.columns.iter().map(|name| words(name)).collect();
    let mut columns: Vec<Column> = names
        .iter()
        .enumerate()
        .map(|(index, words)| column(words, &cells(index).filter(|cell| !is_unknown(cell)).collect::<Vec<_>>()))
        .collect();
    let is_counted = columns.contains(&Column::Failed(""));
    let is_known = is_counted || columns.contains(&Column::Failed("%"));
    for (column, words) in columns.iter_mut().zip(&names) {
        let is_again = match column {
            Column::Failed("%") => is_counted,
            Column::Unclear => is_known && words.iter().all(|word| FAILED_AGAIN.contains(&word.as_str())),
            _ => false,
        };
        if is_again {
            *column = Column::Other;
        }
    }
    // Without a name, one row is like another.
    if !columns.contains(&Column::Name)
        && let Some(first) = columns.first_mut().filter(|first| **first == Column::Other)
    {
        *first = Column::Name;
    }
    columns
}

fn column(words: &[String], cells: &[&str]) -> Column {
    let has = |wanted: &str| words.iter().any(|word| word == wanted);
    let fits = |(_, needed, others): &&Meaning| {
        let is_known = |word: &String| needed.contains(&word.as_str()) || others.concat().contains(&word.as_str());
        needed.iter().all(|word| has(word)) && words.iter().all(is_known)
    };
    let meaning = MEANINGS.iter().find(fits).map(|(column, ..)| *column);
    match meaning {
        Some(Column::Rate(_)) if has("k") => Column::Rate("k"),
        Some(Column::Requests(_)) if has("k") => Column::Requests("k"),
        Some(Column::Failed(_)) if has("%") => Column::Failed("%"),
        Some(Column::Failed(_)) if has("share") && !cells.iter().all(|cell| cell.ends_with('%')) => Column::Unclear,
        Some(Column::Duration(_)) if units(words).count() > 1 => Column::Other,
        Some(Column::Duration(_)) => Column::Duration(unit(units(words), cells)),
        Some(Column::Cpu(_)) => of_unit(words, cells, &CORES).map_or(Column::Other, Column::Cpu),
        Some(Column::Memory(_)) => of_unit(words, cells, &SIZES).map_or(Column::Other, Column::Memory),
        Some(clear) => clear,
        None if FAILURES.into_iter().any(has) => Column::Unclear,
        None => latency(words, cells).unwrap_or(Column::Other),
    }
}

/// Splits a name into its words: `latencyP99_9(ms)` has three, `latency`, `p99.9` and `ms`.
fn words(name: &str) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let at = |index: Option<usize>| index.and_then(|index| letters.get(index)).copied().unwrap_or(' ');
    let mut text = String::new();
    for (index, letter) in letters.iter().enumerate() {
        let (before, after) = (at(index.checked_sub(1)), at(Some(index + 1)));
        let is_point = matches!(letter, '_' | ',') && before.is_ascii_digit() && after.is_ascii_digit();
        let begins = letter.is_uppercase()
            && before.is_alphanumeric()
            && !before.is_uppercase()
            && (after.is_lowercase() || after.is_ascii_digit());
        if begins || *letter == '%' && !before.is_ascii_digit() {
            text.push(' ');
        }
        text.extend(if is_point { vec!['.'] } else { letter.to_lowercase().collect() });
    }
    let is_of_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '%' | '.');
    let words = text.split(|letter| !is_of_word(letter)).map(|word| word.trim_matches('.'));
    let plain = |word: &str| {
        let synonym = SYNONYMS.iter().find(|(_, others)| others.contains(&word));
        synonym.map_or(word, |(word, _)| word).split(' ').map(str::to_owned).collect::<Vec<_>>()
    };
    words.filter(|word| !word.is_empty()).flat_map(plain).collect()
}

fn latency(words: &[String], cells: &[&str]) -> Option<Column> {
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
    let fits = |word: &String| {
        let is_named = LATENCY.contains(&word.as_str()) || statistic(word).is_some() || units([word]).next().is_some();
        // "p99" is one in any language.
        is_named || !word.is_ascii()
    };
    let is_of_rate = has(&["requests"]) && !has(&["latency", "response", "time", "duration"]);
    if is_of_rate || !words.iter().all(fits) {
        return None;
    }
    let mut statistics = words.iter().filter_map(|word| statistic(word));
    let statistic = match (statistics.next(), statistics.next()) {
        (Some(percentile @ Statistic::Percentile(_)), None) => percentile,
        (Some(other), None) if has(&["latency", "response", "time", "ms", "us"]) => other,
        (None, None) if has(&["latency"]) => Statistic::Mean,
        _ => return None,
    };
    // "min" is the minimum.
    Some(Column::Latency(statistic, unit(units(words).filter(|unit| *unit != Unit::Minutes), cells)))
}

fn statistic(word: &str) -> Option<Statistic> {
    let named = match word {
        "avg" => Some(Statistic::Mean),
        "max" => Some(Statistic::Max),
        "min" => Some(Statistic::Min),
        "stddev" => Some(Statistic::Deviation),
        _ => None,
    };
    let percentile = || {
        let digits = word.strip_prefix('p').or_else(|| word.strip_suffix('%')).or_else(|| word.strip_suffix("th"))?;
        let percent = number(digits)?;
        // p999 is the 99.9th.
        let percent = if percent > 100.0 && digits.starts_with("99") {
            format!("99.{}", digits.get(2..)?).parse().ok()?
        } else {
            percent
        };
        (0.0..=100.0).contains(&percent).then_some(Statistic::Percentile(percent))
    };
    named.or_else(percentile)
}

fn units<'a>(words: impl IntoIterator<Item = &'a String>) -> impl Iterator<Item = Unit> {
    words.into_iter().filter_map(|word| UNITS.iter().find(|(name, _)| name == word).map(|(_, unit)| *unit))
}

/// The unit in the name of a column, or else that of all cells. Other units are asked for.
fn unit(mut units: impl Iterator<Item = Unit>, cells: &[&str]) -> Option<Unit> {
    match (units.next(), units.next()) {
        (Some(unit), None) => Some(unit),
        (None, None) if !cells.is_empty() && cells.iter().all(|cell| cells::has_time_unit(cell)) => Some(Unit::InCells),
        _ => None,
    }
}

/// The unit of an amount in the name of its column, or else none if cells have one.
fn of_unit(words: &[String], cells: &[&str], units: &[(&str, &'static str)]) -> Option<&'static str> {
    let in_name = units.iter().find(|(word, _)| words.iter().any(|one| one == word)).map(|(_, unit)| *unit);
    in_name.or_else(|| cells.iter().any(|cell| !cells::is_plain(cell)).then_some(""))
}
