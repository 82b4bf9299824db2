//! Fields of other tools' files: numbers that may be written as text, be missing, or stand for "unknown". Pure.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer};

use crate::reports::time::Time;
use crate::reports::values::to_integer;

/// A number that may be a number, text with a number, `null`, `-` or `N/A`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Loose(pub Option<f64>);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Any {
            Number(f64),
            Text(String),
            Other(serde::de::IgnoredAny),
        }
        Ok(Self(match Any::deserialize(deserializer)? {
            Any::Number(number) => Some(number),
            Any::Text(text) => parsed(&text),
            Any::Other(_) => None,
        }))
    }
}

impl Loose {
    /// Returns a count; a negative number is none.
    pub fn count(self) -> Option<u64> {
        self.0.filter(|number| *number >= 0.0).map(|number| to_integer(number.round()))
    }

    /// Returns an exact time in a unit of `of_ms` milliseconds.
    pub fn time(self, of_ms: f64) -> Option<Time> {
        self.0.map(|value| Time::of(value, of_ms))
    }

    /// Returns a time that was rounded to whole units.
    pub fn whole_time(self, of_ms: f64) -> Option<Time> {
        self.0.map(|value| Time { error_ms: of_ms / 2.0, ..Time::of(value, of_ms) })
    }
}

/// Parses a number as programs write it: with an exponent, but without names such as `inf`.
pub fn parsed(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_number = text.bytes().all(|byte| b"+-.eE0123456789".contains(&byte));
    is_number.then(|| text.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

/// Adds up counts by status, and returns those of an error: 400 and above, and those that are no status.
pub fn bad_statuses(statuses: &BTreeMap<String, u64>) -> u64 {
    let is_good = |status: &str| status.starts_with(['1', '2', '3']) && status.len() == 3;
    let bad = statuses.iter().filter(|(status, _)| !is_good(status)).map(|(_, count)| *count);
    bad.fold(0, u64::saturating_add)
}

/// Adds up counts.
pub fn sum<'a>(counts: impl IntoIterator<Item = &'a u64>) -> u64 {
    counts.into_iter().fold(0, |sum, count| sum.saturating_add(*count))
}

/// Returns counts by name without zeros.
pub fn counts<'a>(pairs: impl IntoIterator<Item = (&'a str, u64)>) -> BTreeMap<String, u64> {
    pairs.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Parses a time of a day in UTC as RFC 3339 writes it, into unix milliseconds: `2026-11-27T06:20:32.295Z`.
pub fn instant_ms(text: &str) -> Option<i64> {
    let part = |range: std::ops::Range<usize>| text.get(range)?.parse::<i64>().ok();
    let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
    let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    if !(0..24).contains(&hour) || !(0..60).contains(&minute) || !(0..=60).contains(&second) {
        return None;
    }
    // Days since 1970 in the calendar that counts years from March.
    let (y, m) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719_468;
    let rest = text.get(19..).unwrap_or_default();
    let digits: String =
        rest.strip_prefix(['.', ',']).unwrap_or_default().chars().take_while(char::is_ascii_digit).collect();
    let millis: i64 = format!("{digits:0<3}").get(..3)?.parse().ok()?;
    let zone = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == ',');
    let offset_minutes = match zone.as_bytes().first() {
        Some(sign @ (b'+' | b'-')) => {
            let number = |range: std::ops::Range<usize>| zone.get(range)?.parse::<i64>().ok();
            let minutes = number(1..3)? * 60 + number(4..6).or_else(|| number(3..5)).unwrap_or_default();
            if *sign == b'-' { -minutes } else { minutes }
        }
        _ => 0,
    };
    Some((((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second) * 1000 + millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_unix_milliseconds() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2026-11-27T06:20:32.295Z", 1_795_760_432_295),
            ("2026-11-27T07:20:32.295623501+01:00", 1_795_760_432_295),
            ("2026/11/27 06:20:32", 1_795_760_432_000),
            ("2000-02-29T12:00:00Z", 951_825_600_000),
        ];
        for (text, ms) in cases {
            assert_eq!(instant_ms(text), Some(ms), "{text}");
        }
        for wrong in ["", "2026", "2026-13-01T00:00:00Z", "2026-11-27T25:00:00Z", "é026-11-27T06:20:32"] {
            assert_eq!(instant_ms(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn loose_numbers_are_read_and_names_are_not() {
        let read = |text: &str| serde_json::from_str::<Loose>(text).expect("any value").0;
        assert_eq!((read("1.5"), read("\"82333\""), read("\"600.971\"")), (Some(1.5), Some(82_333.0), Some(600.971)));
        assert_eq!(
            (read("null"), read("\"-\""), read("\"N/A\""), read("{}"), read("\"inf\"")),
            (None, None, None, None, None)
        );
        assert_eq!((Loose(Some(-1.0)).count(), Loose(Some(7.0)).count()), (None, Some(7)));
    }
}
