//! Formats figures for people. In a template: `{{ crate::web::format::number(run.rps) }}`.
//!
//! Unknown values are a dash with a text for screen readers, never zero. Functions take `impl Borrow<Option<…>>`
//! because Askama passes arguments by reference.

use std::{borrow::Borrow, fmt};

use askama::filters::HtmlSafe;

/// Keeps a number and its unit on one line.
const NBSP: char = '\u{a0}';

/// A formatted figure, possibly unknown; renders itself in a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure(Option<String>);

impl Figure {
    /// Returns a word in the place of a figure.
    pub fn word(word: &str) -> Self {
        Self(Some(word.to_owned()))
    }

    /// The plain text; a dash if unknown.
    pub fn text(&self) -> &str {
        self.0.as_deref().unwrap_or("–")
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(text) => f.write_str(text),
            None => f.write_str(
                r#"<span class="unknown"><span aria-hidden="true">–</span><span class="sr">not known</span></span>"#,
            ),
        }
    }
}

/// Only this file creates figures, from digits, units and signs.
impl HtmlSafe for Figure {}

/// A measured figure with at most four significant digits and thousands commas: `15,450`, `118.2`, `4.70`, `0.129`.
pub fn number(value: impl Borrow<Option<f64>>) -> Figure {
    figure(*value.borrow(), significant)
}

/// An exact count with thousands commas: `123,456`.
pub fn count(value: impl Borrow<Option<u64>>) -> Figure {
    Figure(value.borrow().map(|value| commas(&value.to_string())))
}

/// Milliseconds in the unit that fits: `59.70 ns`, `3.67 ms`, `12.30 s`.
pub fn latency(ms: impl Borrow<Option<f64>>) -> Figure {
    figure(*ms.borrow(), |ms| {
        let (value, unit) = match ms.abs() {
            0.0 => (ms, "ms"),
            tiny if tiny < 0.001 => (ms * 1e6, "ns"),
            tiny if tiny < 0.01 => (ms * 1e3, "µs"),
            small if small < 10_000.0 => (ms, "ms"),
            _ => (ms / 1e3, "s"),
        };
        format!("{}{NBSP}{unit}", significant(value))
    })
}

/// How far a rounded value may be off, behind it: ` ± 0.5 ms`; empty if its digits claim no more than is known.
pub fn plus_minus(
    value: impl Borrow<Option<f64>>,
    error: impl Borrow<Option<f64>>,
    write: impl Fn(Option<f64>) -> Figure,
) -> String {
    let shown = value.borrow().zip(*error.borrow()).filter(|(value, error)| *error >= SHOWN_ERROR * value.abs());
    shown.map_or_else(String::new, |(_, error)| {
        let figure = write(Some(error));
        let (digits, unit) = figure.text().split_at(figure.text().find(NBSP).unwrap_or(figure.text().len()));
        let digits = if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits };
        format!("{NBSP}±{NBSP}{digits}{unit}")
    })
}

/// Share of a value from which on its error is shown: half of the third digit.
const SHOWN_ERROR: f64 = 0.005;

/// A share from 0 to 1 as a percentage: `0 %`, `0.12 %`, `0.0003 %`.
pub fn percent(share: impl Borrow<Option<f64>>) -> Figure {
    figure(*share.borrow(), |share| {
        let percent = share * 100.0;
        match percent.abs() {
            0.0 => format!("0{NBSP}%"),
            small if small < 0.01 => {
                let digits = format!("{percent:.*}", decimals_of_small(small));
                format!("{}{NBSP}%", digits.trim_end_matches('0'))
            }
            small if small < 10.0 => format!("{}{NBSP}%", trimmed(&format!("{percent:.2}"))),
            _ => format!("{}{NBSP}%", trimmed(&format!("{percent:.1}"))),
        }
    })
}

/// Decimals needed to show two non-zero digits of a number below 0.01.
fn decimals_of_small(small: f64) -> usize {
    (3..12).find(|decimals| small * 10_f64.powi(*decimals) >= 10.0).unwrap_or(12).unsigned_abs() as usize
}

/// A relative difference (0.283) with its sign: `+28.3 %`, `−22.1 %`; from twofold on as a factor: `2.1×`, `151×`.
pub fn change(ratio: impl Borrow<Option<f64>>) -> Figure {
    figure(*ratio.borrow(), |ratio| {
        if ratio >= 1.0 {
            return times(ratio + 1.0);
        }
        let percent = ratio * 100.0;
        let digits = format!("{:.1}", percent.abs());
        let sign = match digits.as_str() {
            "0.0" => "±",
            _ if percent < 0.0 => "−",
            _ => "+",
        };
        format!("{sign}{digits}{NBSP}%")
    })
}

/// A factor from two on: `2.1×`, `151×`.
pub fn times(factor: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative; a float cast saturates")]
    let whole = factor.round() as u64;
    if factor < 9.95 { format!("{factor:.1}×") } else { format!("{}×", count(Some(whole)).text()) }
}

/// An interval of relative differences in one unit, with as many digits as tell its ends apart: `+26.1 % to +30.2 %`,
/// from twofold on `1.98× to 2.10×`.
pub fn interval(low: f64, high: f64) -> String {
    const MOST: usize = 4;
    let end = |ratio: f64, digits: usize| match () {
        () if high >= 1.0 => format!("{:.digits$}×", ratio + 1.0),
        () => {
            let percent = format!("{:.digits$}", ratio.abs() * 100.0);
            let sign = match ratio {
                _ if percent.chars().all(|digit| matches!(digit, '0' | '.')) => "±",
                less if less < 0.0 => "−",
                _ => "+",
            };
            format!("{sign}{percent}{NBSP}%")
        }
    };
    let least = usize::from(high < 9.0);
    let both = |digits: usize| (end(low, digits), end(high, digits));
    let differ = (least..MOST).map(both).find(|(low, high)| low != high);
    let (low, high) = differ.unwrap_or_else(|| both(least));
    format!("{low} to {high}")
}

/// A difference between two shares in percentage points, with its sign: `+0.30 points`.
pub fn points(difference: impl Borrow<Option<f64>>) -> Figure {
    figure(*difference.borrow(), |share| {
        let digits = format!("{:.2}", share.abs() * 100.0);
        let sign = match digits.as_str() {
            "0.00" => "±",
            _ if share < 0.0 => "−",
            _ => "+",
        };
        format!("{sign}{digits}{NBSP}points")
    })
}

/// An amount of bytes in binary units: `256 MiB`, `1.50 GiB`.
pub fn bytes(amount: impl Borrow<Option<f64>>) -> Figure {
    figure(*amount.borrow(), |amount| scaled(amount, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB"]))
}

/// Bytes per second in decimal units: `1.30 GB/s`, `812 kB/s`.
pub fn rate(bytes_per_second: impl Borrow<Option<f64>>) -> Figure {
    figure(*bytes_per_second.borrow(), |rate| scaled(rate, 1000.0, &["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]))
}

/// A duration in seconds: `0.52 s`, `30 s`, `1 min 30 s`, `2 h 5 min`.
pub fn duration(seconds: impl Borrow<Option<f64>>) -> Figure {
    figure(*seconds.borrow(), |seconds| {
        if seconds < 59.95 {
            return format!("{}{NBSP}s", trimmed(&significant(seconds)));
        }
        let whole = rounded(seconds);
        let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
        let parts = if hours > 0 { [(hours, "h"), (minutes, "min")] } else { [(minutes, "min"), (rest, "s")] };
        let texts: Vec<_> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, unit)| format!("{}{NBSP}{unit}", commas(&n.to_string())))
            .collect();
        texts.join(&NBSP.to_string())
    })
}

/// A count with its noun: `1 run`, `12 runs`. Only for nouns with a regular plural.
pub fn plural(count: impl Borrow<usize>, noun: &str) -> String {
    match *count.borrow() {
        1 => format!("1 {noun}"),
        count => format!("{} {noun}s", commas(&count.to_string())),
    }
}

/// Begins a sentence: its first letter becomes a capital.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn figure(value: Option<f64>, write: impl Fn(f64) -> String) -> Figure {
    Figure(value.filter(|value| value.is_finite()).map(write))
}

/// At most four significant digits and two decimals from 1 on; three significant digits below.
fn significant(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    // Rounding may add a digit (999.96), so round before choosing the decimals.
    let rounded = round_to(value, if value.abs() < 1.0 { 3 } else { 4 });
    let decimals = match rounded.abs() {
        large if large >= 1000.0 => 0,
        large if large >= 100.0 => 1,
        large if large >= 1.0 => 2,
        small => decimals_below_one(small),
    };
    significant_at(rounded, decimals)
}

fn significant_at(value: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", value.abs());
    format!("{}{}", if value < 0.0 { "−" } else { "" }, commas(&digits))
}

fn round_to(value: f64, digits: i32) -> f64 {
    let text = format!("{value:.*e}", usize::try_from(digits - 1).unwrap_or(0));
    text.parse().unwrap_or(value)
}

/// Decimals needed to show three significant digits of a number below 1: 3 for 0.129, 4 for 0.0129.
fn decimals_below_one(value: f64) -> usize {
    let mut decimals = 3;
    let mut value = value * 10.0;
    while value < 1.0 && decimals < 6 {
        value *= 10.0;
        decimals += 1;
    }
    decimals
}

fn scaled(amount: f64, step: f64, units: &[&str]) -> String {
    let mut amount = amount;
    let mut unit = 0;
    // The half avoids printing 1023.999 as 1,024 of the smaller unit.
    while amount.abs() >= step - 0.5 && unit + 1 < units.len() {
        amount /= step;
        unit += 1;
    }
    let digits = if unit == 0 { format!("{amount:.0}") } else { trimmed(&three(amount)) };
    format!("{}{NBSP}{}", commas(&digits), units[unit])
}

fn three(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        large if large >= 10.0 => 1,
        _ => 2,
    };
    format!("{value:.decimals$}")
}

/// Removes a fraction of zeros.
fn trimmed(digits: &str) -> String {
    match digits.split_once('.') {
        Some((whole, fraction)) if fraction.bytes().all(|digit| digit == b'0') => whole.to_owned(),
        _ => digits.to_owned(),
    }
}

/// Separates thousands of a number without a sign: `1234.5` becomes `1,234.5`.
pub(crate) fn commas(digits: &str) -> String {
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, fraction)| (whole, Some(fraction)));
    let mut text = String::with_capacity(digits.len() + 4);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if let Some(fraction) = fraction {
        text.push('.');
        text.push_str(fraction);
    }
    text
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "spans of time are positive and short")]
fn rounded(seconds: f64) -> u64 {
    seconds.round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(figure: &Figure) -> String {
        figure.text().replace(NBSP, " ")
    }

    #[test]
    fn numbers_have_at_most_four_significant_digits() {
        let cases = [
            (0.0, "0"),
            (0.001_234, "0.00123"),
            (0.1291, "0.129"),
            (0.9996, "1.00"),
            (4.7, "4.70"),
            (11.633, "11.63"),
            (99.996, "100.0"),
            (118.24, "118.2"),
            (999.96, "1,000"),
            (15_449.0, "15,450"),
            (1_234_567.0, "1,235,000"),
            (-3.5, "−3.50"),
        ];
        for (value, text) in cases {
            assert_eq!(number(Some(value)).text(), text);
        }
    }

    #[test]
    fn unknown_values_are_a_dash_with_a_text_and_never_zero() {
        for missing in [number(None), number(Some(f64::NAN)), rate(Some(f64::INFINITY)), count(None), percent(None)] {
            assert_eq!(missing.text(), "–");
            let html = missing.to_string();
            assert!(html.contains("not known") && !html.contains('0'), "{html}");
        }
    }

    #[test]
    fn errors_that_the_digits_hide_are_shown() {
        let cases = [(2.0, 0.5, " ± 0.5 ms"), (0.0, 0.5, " ± 0.5 ms"), (120.0, 5.0, " ± 5 ms"), (1.74, 0.005, "")];
        for (value, error, text) in cases {
            assert_eq!(plus_minus(Some(value), Some(error), latency).replace(NBSP, " "), text);
        }
        assert_eq!(plus_minus(Some(2.0), None, latency), "");
        assert_eq!(plus_minus(Some(1_530.0), Some(10.0), number).replace(NBSP, " "), " ± 10");
    }

    #[test]
    fn counts_are_exact() {
        assert_eq!(count(Some(123_456_789)).text(), "123,456,789");
        assert_eq!(count(Some(12)).text(), "12");
        assert_eq!(plural(1usize, "run"), "1 run");
        assert_eq!(plural(1200usize, "run"), "1,200 runs");
    }

    #[test]
    fn shares_and_changes_are_percentages() {
        for (share, text) in [
            (0.0, "0 %"),
            (0.000_01, "0.001 %"),
            (0.000_003_14, "0.00031 %"),
            (1.0 / 3e6, "0.000033 %"),
            (0.0012, "0.12 %"),
            (0.5, "50 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(plain(&percent(Some(share))), text);
        }
        for (ratio, text) in [
            (0.283, "+28.3 %"),
            (-0.221, "−22.1 %"),
            (0.0, "±0.0 %"),
            (-0.0001, "±0.0 %"),
            (1.14, "2.1×"),
            (12.0, "13×"),
            (1_149.5, "1,151×"),
        ] {
            assert_eq!(plain(&change(Some(ratio))), text);
        }
    }

    #[test]
    fn ends_of_an_interval_have_one_unit_and_the_digits_that_tell_them_apart() {
        for (low, high, text) in [
            (0.261, 0.302, "+26.1 % to +30.2 %"),
            (-0.05, 0.0, "−5.0 % to ±0.0 %"),
            (-0.997_12, -0.997_09, "−99.712 % to −99.709 %"),
            (0.98, 1.1, "2.0× to 2.1×"),
            (2.004, 2.012, "3.00× to 3.01×"),
            (-0.5, 1.1, "0.5× to 2.1×"),
            (998.0, 998.0, "999× to 999×"),
        ] {
            assert_eq!(interval(low, high).replace(NBSP, " "), text);
        }
    }

    #[test]
    fn bytes_are_binary_and_rates_decimal() {
        for (amount, text) in
            [(0.0, "0 B"), (1023.0, "1,023 B"), (268_435_456.0, "256 MiB"), (1_610_612_736.0, "1.50 GiB")]
        {
            assert_eq!(plain(&bytes(Some(amount))), text);
        }
        for (amount, text) in [(812.0, "812 B/s"), (812_300.0, "812 kB/s"), (1.3e9, "1.30 GB/s"), (999.8, "1 kB/s")] {
            assert_eq!(plain(&rate(Some(amount))), text);
        }
    }

    #[test]
    fn durations_use_the_largest_fitting_units() {
        for (seconds, text) in [
            (0.52, "0.520 s"),
            (10.0, "10 s"),
            (59.97, "1 min"),
            (90.0, "1 min 30 s"),
            (7500.0, "2 h 5 min"),
            (3600.0, "1 h"),
        ] {
            assert_eq!(plain(&duration(Some(seconds))), text);
        }
        assert_eq!(plain(&latency(Some(3.67))), "3.67 ms");
        assert_eq!(plain(&latency(Some(0.0))), "0 ms");
        assert_eq!(plain(&latency(Some(0.000_597))), "597.0 ns");
        assert_eq!(plain(&latency(Some(-0.001_25))), "−1.25 µs");
        assert_eq!(plain(&latency(Some(12_300.0))), "12.30 s");
    }
}
