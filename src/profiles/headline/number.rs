//! Numbers of the headline. Pure.

use crate::profiles::stacks::Unit;

/// Keeps a number and its unit on one line.
const NBSP: char = '\u{a0}';

/// Significant digits of all numbers.
const DIGITS: i32 = 3;

/// Formats an amount with its unit: `−0.015 ms`, `2.1 points`.
pub(super) fn amount(value: f64, unit: Unit) -> String {
    match unit {
        Unit::MsPerRequest => format!("{}{NBSP}ms", number(value)),
        Unit::Percent => format!("{}{NBSP}points", number(value)),
    }
}

/// Formats a difference like [`amount`], with a plus sign if it is positive.
pub(super) fn signed(value: f64, unit: Unit) -> String {
    format!("{}{}", if value > 0.0 { "+" } else { "" }, amount(value, unit))
}

/// Formats a share as a percentage: `62 %`, `−4 %`, `0.5 %`.
pub(super) fn percent(share: f64) -> String {
    let percent = share * 100.0;
    let rounded = if percent.abs() >= 10.0 { percent.round() } else { (percent * 10.0).round() / 10.0 };
    format!("{}{NBSP}%", number(rounded))
}

/// Formats a number with at most three significant digits and a proper minus sign.
pub(super) fn number(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let exponent = exponent(value);
    let unit = 10_f64.powi(exponent + 1 - DIGITS);
    let decimals = usize::try_from(DIGITS - 1 - exponent).unwrap_or(0);
    let digits = format!("{:.decimals$}", (value.abs() / unit).round() * unit);
    let digits = if decimals > 0 { digits.trim_end_matches('0').trim_end_matches('.') } else { &digits };
    format!("{}{digits}", if value < 0.0 { "−" } else { "" })
}

#[expect(clippy::cast_possible_truncation, reason = "the logarithm of a finite number is small")]
fn exponent(value: f64) -> i32 {
    value.abs().log10().floor() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_at_most_three_significant_digits() {
        for (value, expected) in [
            (0.0, "0"),
            (-0.015, "−0.015"),
            (0.123_456, "0.123"),
            (1.0, "1"),
            (9.996, "10"),
            (-1234.5, "−1230"),
            (100.0, "100"),
            (0.000_012_345, "0.0000123"),
            (99.96, "100"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(number(value), expected);
        }
    }

    #[test]
    fn shares_are_percentages() {
        let plain = |share| percent(share).replace(NBSP, " ");
        assert_eq!((plain(0.618), plain(-0.04), plain(1.034)), ("62 %".into(), "−4 %".into(), "103 %".into()));
        assert_eq!((plain(0.0049), plain(0.0), plain(12.34)), ("0.5 %".into(), "0 %".into(), "1230 %".into()));
        assert_eq!(signed(0.25, Unit::Percent).replace(NBSP, " "), "+0.25 points");
        assert_eq!(signed(-0.25, Unit::MsPerRequest).replace(NBSP, " "), "−0.25 ms");
    }
}
