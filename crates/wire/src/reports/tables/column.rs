//! Columns as people write them: `requests/s`, `p99 ms`, `mean us`, `name`. Pure.

use std::fmt;
use std::str::FromStr;

/// How columns are written, for help and errors.
pub const SYNTAX: &str = "name, requests, failed, failed %, requests/s, connections, duration, cpu, memory, ignore, or \
                          a latency: min, mean, max, stddev, p99; times with the unit of the cells: p99 ms (ns, us, \
                          ms, s or min; none if it is in the cells), others as requests k, requests/s k, cpu %, cpu m, \
                          memory MiB";

/// Units of time in the names of columns.
pub(super) const UNITS: [(&str, Unit); 5] = [
    ("ns", Unit::Nanoseconds),
    ("us", Unit::Microseconds),
    ("ms", Unit::Milliseconds),
    ("s", Unit::Seconds),
    ("min", Unit::Minutes),
];

const PLAIN: [(&str, Column); 21] = [
    ("name", Column::Name),
    ("requests", Column::Requests("")),
    ("requests k", Column::Requests("k")),
    ("failed", Column::Failed("")),
    ("failed %", Column::Failed("%")),
    ("requests/s", Column::Rate("")),
    ("requests/s k", Column::Rate("k")),
    ("connections", Column::Connections),
    ("cpu", Column::Cpu("")),
    ("cpu %", Column::Cpu("%")),
    ("cpu m", Column::Cpu("m")),
    ("memory", Column::Memory("")),
    ("memory B", Column::Memory("B")),
    ("memory kB", Column::Memory("kB")),
    ("memory MB", Column::Memory("MB")),
    ("memory GB", Column::Memory("GB")),
    ("memory KiB", Column::Memory("KiB")),
    ("memory MiB", Column::Memory("MiB")),
    ("memory GiB", Column::Memory("GiB")),
    ("ignore", Column::Other),
    // As a guess with several meanings is written.
    ("?", Column::Unclear),
];

const STATISTICS: [(&str, Statistic); 4] =
    [("min", Statistic::Min), ("mean", Statistic::Mean), ("max", Statistic::Max), ("stddev", Statistic::Deviation)];

/// What a column is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Column {
    /// The name of the target, or a part of it.
    Name,
    /// Requests made, in this unit if a cell has none: `k`.
    Requests(&'static str),
    /// Failed requests: their number, or `%` of all.
    Failed(&'static str),
    /// Requests per second, in this unit if a cell has none: `k`.
    Rate(&'static str),
    /// Connections or virtual users.
    Connections,
    /// Duration of the load, in this unit.
    Duration(Option<Unit>),
    /// A latency, in this unit.
    Latency(Statistic, Option<Unit>),
    /// CPU of the target, in this unit if a cell has none: cores, `m`, or percent of a core.
    Cpu(&'static str),
    /// Memory of the target, in this unit if a cell has none: bytes, `MiB`.
    Memory(&'static str),
    /// Not read.
    Other,
    /// To be specified: its name has several meanings.
    Unclear,
}

/// A statistic of latencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Statistic {
    /// Fastest.
    Min,
    /// Mean.
    Mean,
    /// Slowest.
    Max,
    /// Standard deviation.
    Deviation,
    /// A percentile, from 0 to 100.
    Percentile(f64),
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// 10⁻⁹ s.
    Nanoseconds,
    /// 10⁻⁶ s.
    Microseconds,
    /// 10⁻³ s.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// 60 seconds.
    Minutes,
    /// In each cell: `1.2ms`.
    InCells,
}

impl Unit {
    /// Returns its milliseconds; `None` if it is in the cells.
    pub(super) fn ms(self) -> Option<f64> {
        Some(match self {
            Self::Nanoseconds => 1e-6,
            Self::Microseconds => 1e-3,
            Self::Milliseconds => 1.0,
            Self::Seconds => 1e3,
            Self::Minutes => 6e4,
            Self::InCells => return None,
        })
    }
}

/// Not a column.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no column: write {SYNTAX}")]
pub struct BadColumn(String);

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self {
            Self::Duration(unit) => {
                f.write_str("duration")?;
                *unit
            }
            Self::Latency(Statistic::Percentile(percent), unit) => {
                write!(f, "p{percent}")?;
                *unit
            }
            Self::Latency(statistic, unit) => {
                f.write_str(STATISTICS.iter().find(|(_, one)| one == statistic).map_or("", |(name, _)| name))?;
                *unit
            }
            plain => return f.write_str(PLAIN.iter().find(|(_, one)| one == plain).map_or("", |(name, _)| name)),
        };
        match unit {
            Some(Unit::InCells) => Ok(()),
            Some(unit) => write!(f, " {}", UNITS.iter().find(|(_, one)| *one == unit).map_or("", |(name, _)| name)),
            None => f.write_str(" ?"),
        }
    }
}

impl FromStr for Column {
    type Err = BadColumn;

    fn from_str(text: &str) -> Result<Self, BadColumn> {
        let bad = || BadColumn(text.to_owned());
        let lower = text.trim().to_lowercase();
        if let Some((_, plain)) = PLAIN.iter().find(|(name, _)| name.eq_ignore_ascii_case(&lower)) {
            return Ok(*plain);
        }
        let mut words = lower.split_whitespace();
        let (what, unit, None) = (words.next().unwrap_or_default(), words.next(), words.next()) else {
            return Err(bad());
        };
        let unit = match unit {
            None => Some(Unit::InCells),
            // As a guess without a unit is written.
            Some("?") => None,
            Some(name) => Some(UNITS.iter().find(|(one, _)| *one == name).ok_or_else(bad)?.1),
        };
        if what == "duration" {
            return Ok(Self::Duration(unit));
        }
        let named = STATISTICS.iter().find(|(name, _)| *name == what).map(|(_, statistic)| *statistic);
        let percentile = || {
            let percent: f64 = what.strip_prefix('p')?.parse().ok()?;
            (0.0..=100.0).contains(&percent).then_some(Statistic::Percentile(percent))
        };
        Ok(Self::Latency(named.or_else(percentile).ok_or_else(bad)?, unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_read_as_they_are_written() {
        for text in [
            "name",
            "requests/s",
            "p99 ms",
            "p99.9 us",
            "mean",
            "stddev ?",
            "duration s",
            "ignore",
            "failed %",
            "memory MiB",
            "?",
        ] {
            assert_eq!(text.parse::<Column>().expect(text).to_string(), text);
        }
        assert_eq!("P99 ms".parse(), Ok(Column::Latency(Statistic::Percentile(99.0), Some(Unit::Milliseconds))));
        for text in ["", "p101", "p99 kg", "p99 ms s", "rate", "pNaN"] {
            assert!(text.parse::<Column>().is_err(), "{text}");
        }
    }
}
