//! Times relative to now, with the exact time on hover.

use std::{borrow::Borrow, fmt};

use askama::filters::HtmlSafe;
use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;

/// A point in time; renders as a `<time>` element in a template.
#[derive(Clone, Copy, Debug)]
pub struct RelativeTime {
    at: Option<Timestamp>,
    now: Timestamp,
}

/// A unix time in milliseconds, relative to now.
pub fn ago(unix_ms: impl Borrow<Option<i64>>) -> RelativeTime {
    relative_to(*unix_ms.borrow(), Timestamp::now())
}

/// The exact time in UTC: `2026-03-04 12:13:14 UTC`; a dash if unknown.
pub fn exact(unix_ms: impl Borrow<Option<i64>>) -> String {
    timestamp(*unix_ms.borrow()).map_or_else(|| "–".to_owned(), utc)
}

/// The day in UTC: `2026-03-04`; none if the time is out of range.
pub fn day(unix_ms: i64) -> Option<String> {
    timestamp(Some(unix_ms)).map(|at| at.strftime("%Y-%m-%d").to_string())
}

fn relative_to(unix_ms: Option<i64>, now: Timestamp) -> RelativeTime {
    RelativeTime { at: timestamp(unix_ms), now }
}

fn timestamp(unix_ms: Option<i64>) -> Option<Timestamp> {
    unix_ms.and_then(|ms| Timestamp::from_millisecond(ms).ok())
}

fn utc(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string()
}

fn relative(at: Timestamp, now: Timestamp) -> String {
    let seconds = now.as_second() - at.as_second();
    let text = match seconds.abs() {
        under if under < 5 => return "just now".to_owned(),
        under if under < MINUTE => format!("{under} s"),
        under if under < HOUR => format!("{} min", under / MINUTE),
        under if under < DAY => format!("{} h", under / HOUR),
        under if under < 2 * DAY => "1 day".to_owned(),
        under if under < 30 * DAY => format!("{} days", under / DAY),
        _ => return at.strftime("%Y-%m-%d").to_string(),
    };
    if seconds > 0 { format!("{text} ago") } else { format!("in {text}") }
}

impl fmt::Display for RelativeTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(at) = self.at else { return write!(f, "{}", super::format::number(None)) };
        write!(f, r#"<time datetime="{at}" title="{}">{}</time>"#, utc(at), relative(at, self.now))
    }
}

/// Consists only of digits and words of this file.
impl HtmlSafe for RelativeTime {}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_772_626_394_000;

    fn at(ms_before: i64) -> String {
        let now = Timestamp::from_millisecond(NOW).expect("in range");
        relative_to(Some(NOW - ms_before), now).to_string()
    }

    #[test]
    fn times_are_relative_with_the_exact_one_on_hover() {
        let cases = [
            (1000, "just now"),
            (42_000, "42 s ago"),
            (190_000, "3 min ago"),
            (7_300_000, "2 h ago"),
            (90_000_000, "1 day ago"),
            (300_000_000, "3 days ago"),
            (-120_000, "in 2 min"),
        ];
        for (before, text) in cases {
            assert!(at(before).contains(&format!(">{text}</time>")), "{}", at(before));
        }
        let html = at(42_000);
        assert!(html.contains(r#"datetime="2026-03-04T12:12:32Z""#), "{html}");
        assert!(html.contains(r#"title="2026-03-04 12:12:32 UTC""#), "{html}");
    }

    #[test]
    fn an_unknown_or_out_of_range_time_is_shown_as_not_known() {
        assert!(ago(None).to_string().contains("not known"));
        assert!(ago(Some(i64::MAX)).to_string().contains("not known"));
        assert_eq!(exact(None), "–");
    }
}
