//! Expiry of a TLS certificate, checked by the server that presents it and by its clients.

use std::time::Duration;

use x509_cert::Certificate;
use x509_cert::der::{DateTime, Decode};

const HOUR_MS: i64 = 60 * 60 * 1_000;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Remaining days below which a certificate is due for renewal. Automatic renewal happens earlier.
pub const SOON_DAYS: i64 = 21;

/// Expiry of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expiry {
    /// End of validity, unix ms.
    pub at_ms: i64,
}

/// How much validity a certificate has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remaining {
    /// At least [`SOON_DAYS`].
    Plenty,
    /// Fewer than [`SOON_DAYS`].
    Little,
    /// The certificate has expired.
    Nothing,
}

impl Expiry {
    /// Reads the expiry of a DER certificate; `None` if it can't be parsed.
    pub fn from_der(der: &[u8]) -> Option<Self> {
        let certificate = Certificate::from_der(der).ok()?;
        let end = certificate.tbs_certificate().validity().not_after.to_unix_duration();
        Some(Self { at_ms: i64::try_from(end.as_millis()).ok()? })
    }

    /// Returns the remaining validity at a time, unix ms.
    pub fn left(self, now_ms: i64) -> Remaining {
        match self.at_ms - now_ms {
            ..=0 => Remaining::Nothing,
            left if left < SOON_DAYS * DAY_MS => Remaining::Little,
            _ => Remaining::Plenty,
        }
    }

    /// Returns full days until expiry; negative once it has passed.
    pub fn days(self, now_ms: i64) -> i64 {
        (self.at_ms - now_ms) / DAY_MS
    }

    /// Describes the expiry relative to a time, unix ms: `expires on 2026-12-01, in 9 days`.
    pub fn describe(self, now_ms: i64) -> String {
        let (day, distance) = (day(self.at_ms), distance((self.at_ms - now_ms).abs()));
        if self.left(now_ms) == Remaining::Nothing {
            format!("expired on {day}, {distance} ago")
        } else {
            format!("expires on {day}, in {distance}")
        }
    }
}

fn distance(ms: i64) -> String {
    let (days, hours) = (ms / DAY_MS, ms / HOUR_MS);
    match (days, hours) {
        (0, 0) => "less than an hour".to_owned(),
        (0, 1) => "1 hour".to_owned(),
        (0, _) => format!("{hours} hours"),
        (1, _) => "1 day".to_owned(),
        _ => format!("{days} days"),
    }
}

/// Returns the UTC day of a time, unix ms: `2026-12-01`.
pub fn day(at_ms: i64) -> String {
    let since = Duration::from_millis(u64::try_from(at_ms).unwrap_or(0));
    // `DateTime` ends with year 9999, which certificates without an expiry use.
    let date = DateTime::from_unix_duration(since).unwrap_or(DateTime::INFINITY);
    format!("{:04}-{:02}-{:02}", date.year(), date.month(), date.day())
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_305_600_000;

    #[test]
    fn expiry_is_described_by_day_and_distance() {
        let at = |left_ms: i64| Expiry { at_ms: NOW + left_ms };
        for (left, sentence) in [
            (9 * DAY_MS + 5, "expires on 2026-12-01, in 9 days"),
            (DAY_MS, "expires on 2026-11-23, in 1 day"),
            (5 * HOUR_MS, "expires on 2026-11-22, in 5 hours"),
            (1, "expires on 2026-11-22, in less than an hour"),
            (-HOUR_MS, "expired on 2026-11-21, 1 hour ago"),
            (-400 * DAY_MS, "expired on 2025-10-18, 400 days ago"),
        ] {
            assert_eq!(at(left).describe(NOW), sentence);
        }
        assert_eq!(day(i64::MAX), "9999-12-31");
    }

    #[test]
    fn less_than_three_weeks_are_little_and_the_exact_end_is_expired() {
        let left = |left_ms: i64| Expiry { at_ms: NOW + left_ms }.left(NOW);
        assert_eq!(left(SOON_DAYS * DAY_MS), Remaining::Plenty);
        assert_eq!(left(SOON_DAYS * DAY_MS - 1), Remaining::Little);
        assert_eq!((left(1), left(0), left(-1)), (Remaining::Little, Remaining::Nothing, Remaining::Nothing));
    }

    #[test]
    fn an_unreadable_certificate_has_no_expiry() {
        for bad in [&b""[..], b"\x30\x03\x02\x01\x01", &[0xff; 64]] {
            assert_eq!(Expiry::from_der(bad), None);
        }
    }
}
