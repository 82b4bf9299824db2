//! Guesses what a column is by its name, in English; a name of another language is left to people. Pure.

use super::{Column, Statistic, Unit};
use crate::reports::time::number;

/// Proposes what a column is.
pub fn column(name: &str, cells: &[&str]) -> Column {
    let name = name.to_lowercase();
    let words: Vec<&str> = name
        .split(|letter: char| !letter.is_alphanumeric() && letter != '%' && letter != '.' && letter != 'µ')
        .filter(|word| !word.is_empty())
        .collect();
    let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let compact: String = name.chars().filter(|letter| letter.is_alphanumeric() || *letter == '/').collect();
    let is_rate = has(&["rps", "qps"])
        || ["req/s", "requests/s", "reqs/s", "requestspersecond", "reqpersec", "requestspersec", "throughputrps"]
            .iter()
            .any(|part| compact.contains(part));
    if is_rate {
        return Column::Rate;
    }
    if let Some(statistic) = statistic(&words, &name) {
        return Column::Latency(statistic, unit(&words, cells));
    }
    if has(&["name", "framework", "target", "server", "language", "implementation", "version", "router"]) {
        return Column::Name;
    }
    match () {
        () if has(&["failed", "errors", "failures", "non2xx"]) => Column::Failed,
        () if has(&["requests", "total", "count"]) && !has(&["latency", "time"]) => Column::Requests,
        () if has(&["connections", "vus", "concurrency", "users", "clients"]) => Column::Connections,
        () if has(&["duration"]) => Column::Duration(unit(&words, cells)),
        () if has(&["cpu"]) => Column::Cpu,
        () if has(&["memory", "mem", "rss"]) => Column::Memory,
        () => Column::Other,
    }
}

fn statistic(words: &[&str], name: &str) -> Option<Statistic> {
    let percentile = words.iter().find_map(|word| {
        let digits = word.strip_prefix('p').or_else(|| word.strip_suffix('%')).or_else(|| word.strip_suffix("th"))?;
        let digits = digits.replace('_', ".");
        let percent = number(&digits)?;
        // p999 is the 99.9th.
        let percent = if percent > 100.0 && digits.starts_with("99") {
            format!("99.{}", digits.get(2..)?).parse().ok()?
        } else {
            percent
        };
        (0.0..=100.0).contains(&percent).then_some(Statistic::Percentile(percent))
    });
    let is_latency = ["latency", "response", "lat", "time", "ms", "us"].iter().any(|word| words.contains(word));
    let named = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    percentile.or_else(|| match () {
        () if named(&["median"]) => Some(Statistic::Percentile(50.0)),
        () if !is_latency => None,
        () if named(&["avg", "average", "mean"]) => Some(Statistic::Mean),
        () if named(&["max", "maximum", "slowest"]) => Some(Statistic::Max),
        () if named(&["min", "minimum", "fastest"]) => Some(Statistic::Min),
        () if named(&["stdev", "stddev", "deviation"]) => Some(Statistic::Deviation),
        () => name.contains("latency").then_some(Statistic::Mean),
    })
}

/// The unit in the name of a column, or else that of all cells. Other units are asked for.
fn unit(words: &[&str], cells: &[&str]) -> Option<Unit> {
    let of = |word: &str| {
        Some(match word {
            "ns" | "nanoseconds" => Unit::Nanoseconds,
            "us" | "µs" | "microseconds" => Unit::Microseconds,
            "ms" | "milliseconds" | "millis" => Unit::Milliseconds,
            "s" | "sec" | "secs" | "seconds" => Unit::Seconds,
            "min" | "minutes" => Unit::Minutes,
            _ => return None,
        })
    };
    // "min" is a minimum beside another unit.
    let units: Vec<Unit> = words.iter().filter_map(|word| of(word)).collect();
    if let Some(unit) = units.iter().find(|unit| **unit != Unit::Minutes) {
        return Some(*unit);
    }
    let mut known = cells.iter().filter(|cell| !super::cells::is_unknown(cell)).peekable();
    known.peek()?;
    known.all(|cell| super::cells::time(cell, None).is_some()).then_some(Unit::InCells)
}
