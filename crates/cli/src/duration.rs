//! Durations in readable form: `10s`, `500ms`, `1m30s`.

/// Parses a duration into seconds.
pub fn seconds(text: &str) -> Result<f64, String> {
    let duration: jiff::SignedDuration = text.parse().map_err(|_| "write it as 10s, 500ms or 1m30s".to_owned())?;
    if duration.is_negative() {
        return Err("must not be negative".to_owned());
    }
    Ok(duration.as_secs_f64())
}

/// Formats seconds, e.g. `1 min 20 s`.
pub fn text(seconds: f64) -> String {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
    let whole = seconds.clamp(0.0, 1e12).round() as u64;
    match (whole / 3_600, whole / 60 % 60, whole % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed_and_formatted() {
        assert_eq!(seconds("3s"), Ok(3.0));
        assert_eq!(seconds("500ms"), Ok(0.5));
        assert_eq!(seconds("1m30s"), Ok(90.0));
        for bad in ["", "3", "-1s", "soon"] {
            assert!(seconds(bad).is_err(), "{bad:?}");
        }
        assert_eq!(text(80.4), "1 min 20 s");
        assert_eq!(text(7_260.0), "2 h 1 min");
    }
}
