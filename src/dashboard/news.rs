//! What happened since the last visit, in a sentence. Pure.

use jiff::{Timestamp, tz::TimeZone};

use super::store::Ended;
use crate::web::format::plural;

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Within this time a visit is described in hours, also if it was on the day before.
const RECENT_MS: i64 = 12 * HOUR_MS;

/// Describes a time as the beginning of a sentence: `Since yesterday`. Days are those of UTC, as everywhere on the
/// site.
pub fn since(then_ms: i64, now_ms: i64) -> String {
    let date = |ms: i64| Timestamp::from_millisecond(ms).unwrap_or_default().to_zoned(TimeZone::UTC).date();
    let (then, today) = (date(then_ms), date(now_ms));
    let hours = (now_ms - then_ms) / HOUR_MS;
    let days = then.until(today).map_or(0, |span| span.get_days());
    match days {
        _ if hours < 1 => "In the last hour".to_owned(),
        days if days < 1 || now_ms - then_ms < RECENT_MS => {
            format!("In the last {}", if hours == 1 { "hour".to_owned() } else { format!("{hours} hours") })
        }
        1 => "Since yesterday".to_owned(),
        2..7 => format!("Since {}", then.strftime("%A")),
        7..30 => format!("In the last {days} days"),
        _ => format!("Since {then}"),
    }
}

/// Describes what happened: `46 runs in 3 experiments finished; 3 are invalid.`
pub fn describe(ended: Ended) -> String {
    let Ended { finished, experiments, invalid, failed, lost, imported } = ended;
    let runs = match (finished, experiments) {
        (0, _) => "no runs finished".to_owned(),
        (_, 0) => format!("{} finished", plural(finished, "run")),
        _ => format!("{} in {} finished", plural(finished, "run"), plural(experiments, "experiment")),
    };
    let verb = |count: usize, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let problems: Vec<String> = [
        (invalid, verb(invalid, "is invalid", "are invalid")),
        (failed, verb(failed, "failed", "failed")),
        (lost, verb(lost, "was lost", "were lost")),
    ]
    .into_iter()
    .filter_map(|(count, text)| (count > 0).then_some(text))
    .collect();
    let problems = if problems.is_empty() { String::new() } else { format!("; {}", problems.join(", ")) };
    let imports = match imported {
        0 => String::new(),
        1 => " 1 run was imported.".to_owned(),
        count => format!(" {} were imported.", plural(count, "run")),
    };
    format!("{runs}{problems}.{imports}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-03-04 12:13:14 UTC, a Wednesday.
    const NOW: i64 = 1_772_626_394_000;

    #[test]
    fn the_sentence_counts_runs_experiments_and_problems() {
        let ended = Ended { finished: 46, experiments: 3, invalid: 3, ..Ended::default() };
        assert_eq!(describe(ended), "46 runs in 3 experiments finished; 3 are invalid.");
        let one = Ended { finished: 1, experiments: 1, invalid: 1, failed: 2, lost: 1, imported: 0 };
        assert_eq!(describe(one), "1 run in 1 experiment finished; 1 is invalid, 2 failed, 1 was lost.");
        assert_eq!(describe(Ended::default()), "no runs finished.");
    }

    #[test]
    fn imports_are_named_apart_and_are_no_problem() {
        let imported = Ended { imported: 12, ..Ended::default() };
        assert_eq!(describe(imported), "no runs finished. 12 runs were imported.");
    }

    #[test]
    fn the_last_visit_is_named_by_its_day() {
        let cases = [
            (1_000, "In the last hour"),
            (100 * 60 * 1_000, "In the last hour"),
            (3 * HOUR_MS, "In the last 3 hours"),
            // 01:13 at night: the evening before is some hours ago.
            (11 * HOUR_MS, "In the last 11 hours"),
            (13 * HOUR_MS, "Since yesterday"),
            (24 * HOUR_MS, "Since yesterday"),
            (36 * HOUR_MS, "Since yesterday"),
            (37 * HOUR_MS, "Since Monday"),
            (8 * 24 * HOUR_MS, "In the last 8 days"),
            (60 * 24 * HOUR_MS, "Since 2026-01-03"),
        ];
        for (before, words) in cases {
            assert_eq!(since(NOW - before, NOW), words, "{before}");
        }
    }
}
