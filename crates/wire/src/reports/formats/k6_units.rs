//! Parses numbers with units, as printed by k6. A missing or unknown unit is an error: it may be a sign of
//! truncated text.

/// Parses a plain number: digits with an optional fraction; no sign, exponent or name.
pub(super) fn number(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let digits = text.starts_with(|letter: char| letter.is_ascii_digit()) && !text.ends_with('.');
    (plain && digits).then(|| text.parse().ok()).flatten().filter(|number: &f64| number.is_finite())
}

/// Parses an integer.
pub(super) fn count(text: &str) -> Option<f64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| number(text)).flatten()
}

/// Parses a time printed by k6 into milliseconds: `390ns`, `2.41µs`, `45.41ms`, `1.3s`, `1m2s`, `1h0m5s`, `0s`.
///
/// Source: `humanizeGenericDuration` of k6's summary. Minutes are integers and always followed by seconds.
pub(super) fn k6_time(text: &str) -> Option<f64> {
    // Dividing instead of multiplying by a fraction keeps the printed decimals exact.
    for (unit, of_ms) in [("ns", 1e6), ("µs", 1e3), ("μs", 1e3), ("us", 1e3), ("ms", 1.0)] {
        if let Some(value) = text.strip_suffix(unit) {
            return number(value).map(|value| value / of_ms);
        }
    }
    let seconds = text.strip_suffix('s')?;
    let Some((minutes, seconds)) = seconds.split_once('m') else { return number(seconds).map(|value| value * 1e3) };
    let (hours, minutes) = minutes.split_once('h').unwrap_or(("0", minutes));
    Some(((count(hours)? * 60.0 + count(minutes)?) * 60.0 + number(seconds)?) * 1e3)
}

/// Parses an amount printed by k6 into bytes, with decimal prefixes: number and unit are separate words.
///
/// Source: `humanizeBytes` of k6's summary.
pub(super) fn k6_bytes(value: &str, unit: &str) -> Option<f64> {
    const UNITS: [&str; 9] = ["B", "kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"];
    let power = i32::try_from(UNITS.iter().position(|known| *known == unit)?).ok()?;
    number(value).map(|value| (value * 1000_f64.powi(power)).round())
}

/// Returns half of the last digit that k6 prints of an amount of bytes: one decimal below ten of a unit.
pub(super) fn half_digit_of_bytes(bytes: f64) -> f64 {
    let mut unit = 1.0;
    while bytes >= 1e3 * unit {
        unit *= 1e3;
    }
    if unit > 1.0 && bytes < 10.0 * unit { 0.05 * unit } else { 0.5 * unit }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_k6_range_from_nanoseconds_to_hours() {
        let cases = [
            ("390ns", 0.000_39),
            ("2.41µs", 0.002_41),
            ("2.41μs", 0.002_41),
            ("500us", 0.5),
            ("45.41ms", 45.41),
            ("0s", 0.0),
            ("1.3s", 1_300.0),
            ("1m2s", 62_000.0),
            ("1h0m5s", 3_605_000.0),
        ];
        for (text, ms) in cases {
            let read = k6_time(text).unwrap_or_else(|| panic!("{text}"));
            assert!((read - ms).abs() <= ms * 1e-12, "{text}: {read}");
        }
        for cut in
            ["", "2.41", "2.41µ", "45.41m", "1m", "1m2", "1h0m", "1.5m2s", "-1s", "infs", "1e3s", ".5s", "5.s", "s"]
        {
            assert_eq!(k6_time(cut), None, "{cut}");
        }
    }

    #[test]
    fn bytes_are_decimal() {
        assert_eq!(k6_bytes("848", "kB"), Some(848_000.0));
        assert_eq!(k6_bytes("1.3", "GB"), Some(1.3e9));
        assert_eq!((k6_bytes("0", "B"), k6_bytes("1.3", "G"), k6_bytes("1.3", "")), (Some(0.0), None, None));
    }
}
