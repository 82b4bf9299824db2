//! Printed numbers and times with their rounding error. Pure.

use serde::{Deserialize, Serialize};

/// A time, and how far it may be from the one that was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Time {
    /// Milliseconds.
    pub ms: f64,
    /// The largest rounding error, milliseconds.
    pub error_ms: f64,
}

/// Units as tools print them, longest first, and their milliseconds.
const UNITS: [(&str, f64); 15] = [
    ("seconds", 1e3),
    ("minutes", 6e4),
    ("secs", 1e3),
    ("sec", 1e3),
    ("min", 6e4),
    ("ns", 1e-6),
    ("µs", 1e-3),
    ("μs", 1e-3),
    ("us", 1e-3),
    ("ms", 1.0),
    ("s", 1e3),
    ("m", 6e4),
    ("h", 3.6e6),
    ("d", 8.64e7),
    ("y", 3.155_76e10),
];

/// Units that differ from the millisecond by a decimal point, and by how many places.
const POINTS: [(f64, i32); 3] = [(1e-6, -6), (1e-3, -3), (1e3, 3)];

impl Time {
    /// A time that is not rounded.
    pub fn exact(ms: f64) -> Self {
        Self { ms, error_ms: 0.0 }
    }

    /// A time in units of `of_ms` milliseconds, not rounded.
    #[expect(clippy::float_cmp, reason = "units are constants")]
    pub fn of(value: f64, of_ms: f64) -> Self {
        // Moving the decimal point keeps the decimals exact: 0.0097 s is 9.7 ms, not 9.700000000000001.
        let moved = |places: i32| format!("{value}e{places}").parse();
        Self::exact(match POINTS.into_iter().find(|(unit, _)| *unit == of_ms) {
            Some((_, places)) if value.is_finite() => moved(places).unwrap_or(f64::NAN),
            _ => value * of_ms,
        })
    }

    /// A time that was rounded to a multiple of `step_ms`.
    pub fn rounded(ms: f64, step_ms: f64) -> Self {
        Self { ms, error_ms: step_ms / 2.0 }
    }

    /// Parses a number with decimals in a unit of `of_ms` milliseconds: `0.0013` of a second.
    pub fn decimal(text: &str, of_ms: f64) -> Option<Self> {
        let Printed { value, error } = printed(text)?;
        Some(Self { error_ms: error * of_ms, ..Self::of(value, of_ms) })
    }

    /// Parses a time with its unit: `850.00us`, `1.50m`, `0.0013 secs`, `1m2.5s`, `2h3m4s`.
    ///
    /// A missing or unknown unit is an error: it may be a sign of truncated text.
    pub fn printed(text: &str) -> Option<Self> {
        let text = text.trim();
        if matches!(text, "0" | "0s") {
            return Some(Self::default());
        }
        let mut rest = text.strip_prefix('-').unwrap_or(text);
        let sign = if rest.len() < text.len() { -1.0 } else { 1.0 };
        let mut sum: Option<Self> = None;
        while !rest.is_empty() {
            let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
            let (value, after) = rest.split_at(end);
            let after = after.trim_start();
            let (unit, of_ms) = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit))?;
            let part = Self::decimal(value, of_ms)?;
            sum = Some(match sum {
                None => part,
                // Only the last part is rounded.
                Some(before) => Self { ms: before.ms + part.ms, error_ms: part.error_ms },
            });
            rest = after.get(unit.len()..)?;
        }
        sum.map(|time| Self { ms: sign * time.ms, ..time })
    }

    /// Returns the time with at least this relative error.
    #[must_use]
    pub fn within(self, share: f64) -> Self {
        self.at_least(self.ms.abs() * share)
    }

    /// Returns the time with at least this error, milliseconds.
    #[must_use]
    pub fn at_least(self, error_ms: f64) -> Self {
        Self { error_ms: self.error_ms.max(error_ms), ..self }
    }
}

/// A printed number, and how far it may be from the one that was measured: half of its last digit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Printed {
    /// The number.
    pub value: f64,
    /// The largest rounding error.
    pub error: f64,
}

impl std::ops::Mul<f64> for Printed {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { value: self.value * factor, error: self.error * factor }
    }
}

/// Parses a plain number: digits with an optional sign and fraction, no exponent, no name.
pub fn printed(text: &str) -> Option<Printed> {
    let plain = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = digits.bytes().all(plain) && digits.starts_with(|letter: char| letter.is_ascii_digit());
    let value =
        (is_plain && !digits.ends_with('.')).then(|| text.parse().ok()).flatten().filter(|n: &f64| n.is_finite())?;
    let decimals = digits.split_once('.').map_or(0, |(_, fraction)| fraction.len());
    Some(Printed { value, error: 10_f64.powi(-i32::try_from(decimals).ok()?) / 2.0 })
}

/// Parses a plain number whose rounding does not matter.
pub fn number(text: &str) -> Option<f64> {
    printed(text).map(|number| number.value)
}

/// Parses an integer, with or without separators of thousands.
pub fn count(text: &str) -> Option<u64> {
    let is_count = |byte: u8| byte.is_ascii_digit() || byte == b',';
    let is_plain = text.starts_with(|letter: char| letter.is_ascii_digit()) && text.bytes().all(is_count);
    is_plain.then(|| text.replace(',', "").parse().ok()).flatten()
}

/// Parses a number with a prefix of its unit: `1.71MB` with the suffix `B` and the step 1024, `1.03k` with the step 1000.
pub fn scaled(text: &str, suffix: &str, step: f64) -> Option<Printed> {
    let text = text.strip_suffix(suffix)?.trim_end();
    let power = ["k", "m", "g", "t", "p"].iter().position(|prefix| {
        text.chars().last().is_some_and(|last| last.eq_ignore_ascii_case(&prefix.chars().next().unwrap_or(' ')))
    });
    let power = power.and_then(|power| i32::try_from(power + 1).ok());
    let digits = if power.is_some() { text.get(..text.len() - 1)?.trim_end() } else { text };
    printed(digits).map(|number| number * step.powi(power.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_time_has_the_error_of_its_last_digit() {
        let cases = [
            ("328.79us", 0.328_79, 0.000_005),
            ("1.74ms", 1.74, 0.005),
            ("2.00s", 2_000.0, 5.0),
            ("1.50m", 90_000.0, 300.0),
            ("0.0013 secs", 1.3, 0.05),
            ("436.167µs", 0.436_167, 0.000_000_5),
            ("1.995s", 1_995.0, 0.5),
            ("1m2.5s", 62_500.0, 50.0),
            ("2h3m4s", 7_384_000.0, 500.0),
            ("0s", 0.0, 0.0),
            ("-1.5ms", -1.5, 0.05),
        ];
        for (text, ms, error_ms) in cases {
            let read = Time::printed(text).unwrap_or_else(|| panic!("{text}"));
            assert!((read.ms - ms).abs() <= ms.abs() * 1e-12, "{text}: {read:?}");
            assert!((read.error_ms - error_ms).abs() <= error_ms * 1e-9, "{text}: {read:?}");
        }
        for cut in ["", "2.41", "21.44x", "s", "-nan", "nan", "1e3s", ".5s", "5.s", "1m2"] {
            assert_eq!(Time::printed(cut), None, "{cut}");
        }
    }

    #[test]
    fn amounts_have_prefixes() {
        let read = |text, suffix, step| scaled(text, suffix, step).map(|number| (number.value, number.error));
        assert_eq!(read("1.71MB", "B", 1024.0), Some((1.71 * 1024.0 * 1024.0, 0.005 * 1024.0 * 1024.0)));
        assert_eq!((read("1.53k", "", 1e3), read("93", "", 1e3)), (Some((1_530.0, 5.0)), Some((93.0, 0.5))));
        assert_eq!((read("0.00B", "B", 1024.0), read("1.2G", "B", 1024.0)), (Some((0.0, 0.005)), None));
        assert_eq!((count("22,687"), count(",1"), count("-1"), count("")), (Some(22_687), None, None, None));
    }
}
