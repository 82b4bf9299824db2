//! When a server's certificate ends, for those who show it and for those who are shown it.

use std::time::Duration;

use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};

const HOUR_MS: i64 = 60 * 60 * 1_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Whoever renews certificates by a program has done it by then, and whoever does it by hand still has the time.
pub const SOON_DAYS: i64 = 21;

/// The end of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ending {
    /// From when on nobody trusts it any more, unix ms.
    pub at_ms: i64,
}

/// How far away that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Nothing to be done.
    Plenty,
    /// Fewer than [`SOON_DAYS`].
    Little,
    /// It has ended.
    Nothing,
}

impl Ending {
    /// What a certificate in DER says of itself; nothing if it can't be read.
    pub fn of(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let end = certificate.tbs_certificate().validity().not_after.to_unix_duration();
        Some(Self { at_ms: i64::try_from(end.as_millis()).ok()? })
    }

    /// What is left at a time, unix ms.
    pub fn left(self, now_ms: i64) -> Left {
        match self.at_ms - now_ms {
            ..=0 => Left::Nothing,
            left if left < SOON_DAYS * DAY_MS => Left::Little,
            _ => Left::Plenty,
        }
    }

    /// Whole days until then, or since then below zero.
    pub fn days(self, now_ms: i64) -> i64 {
        (self.at_ms - now_ms) / DAY_MS
    }

    /// What is said of it at a time, unix ms: `ends on 2026-12-01, in 9 days`.
    pub fn sentence(self, now_ms: i64) -> String {
        let (day, far) = (day(self.at_ms), far((self.at_ms - now_ms).abs()));
        if self.left(now_ms) == Left::Nothing {
            format!("has expired on {day}, {far} ago")
        } else {
            format!("ends on {day}, in {far}")
        }
    }
}

fn far(ms: i64) -> String {
    let (days, hours) = (ms / DAY_MS, ms / HOUR_MS);
    match (days, hours) {
        (0, 0) => "less than an hour".to_owned(),
        (0, 1) => "1 hour".to_owned(),
        (0, _) => format!("{hours} hours"),
        (1, _) => "1 day".to_owned(),
        _ => format!("{days} days"),
    }
}

/// The day of a time, unix ms, in UTC: `2026-12-01`.
pub(crate) fn day(at_ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
    // It knows no year after 9999, which certificates without an end have.
    let date = DateTime::from_unix_duration(since).unwrap_or(DateTime::INFINITY);
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_305_600_000;

    #[test]
    fn an_end_is_told_by_its_day_and_how_far_it_is() {
        let at = |left_ms: i64| Ending { at_ms: NOW + left_ms };
        for (left, sentence) in [
            (9 * DAY_MS + 5, "ends on 2026-12-01, in 9 days"),
            (DAY_MS, "ends on 2026-11-23, in 1 day"),
            (5 * HOUR_MS, "ends on 2026-11-22, in 5 hours"),
            (1, "ends on 2026-11-22, in less than an hour"),
            (-HOUR_MS, "has expired on 2026-11-21, 1 hour ago"),
            (-400 * DAY_MS, "has expired on 2025-10-18, 400 days ago"),
        ] {
            assert_eq!(at(left).sentence(NOW), sentence);
        }
        assert_eq!(day(i64::MAX), "9999-12-31");
    }

    #[test]
    fn three_weeks_are_little_and_the_last_moment_is_none() {
        let left = |left_ms: i64| Ending { at_ms: NOW + left_ms }.left(NOW);
        assert_eq!(left(SOON_DAYS * DAY_MS), Left::Plenty);
        assert_eq!(left(SOON_DAYS * DAY_MS - 1), Left::Little);
        assert_eq!((left(1), left(0), left(-1)), (Left::Little, Left::Nothing, Left::Nothing));
    }

    #[test]
    fn what_is_no_certificate_has_no_end() {
        for bad in [&b""[..], b"\x30\x03\x02\x01\x01", &[0xff; 64]] {
            assert_eq!(Ending::of(bad), None);
        }
    }
}
