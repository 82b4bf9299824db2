//! Requests of a measured phase by status, protocol and new connections: two runs did equal work only if these are
//! similar.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::load_record::Messages;

/// Maximum distinct values of a tag in HTTP.
const MAX_VALUES: usize = 100;

/// Maximum length of a tag's value in HTTP.
const MAX_LENGTH: usize = 32;

/// Counts of requests, from the tags set by k6. Unknown ones are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkDone {
    /// Requests by status of the response, `0` without one.
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Requests by protocol of the response, e.g. `HTTP/1.1`.
    pub protocols: Option<BTreeMap<String, u64>>,
    /// Requests that opened a connection.
    pub new_connections: Option<u64>,
    /// Responses that the script did not expect, such as `404 (GET /hash)`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<Messages>,
}

impl WorkDone {
    /// Adds up the work of several generators; unknown if one of them does not know it.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Self::default() };
        parts.fold(first.clone(), |sum, part| Self {
            statuses: sum.statuses.zip(part.statuses.as_ref()).map(|(sum, part)| added(sum, part)),
            protocols: sum.protocols.zip(part.protocols.as_ref()).map(|(sum, part)| added(sum, part)),
            new_connections: sum.new_connections.zip(part.new_connections).map(|(a, b)| a.saturating_add(b)),
            failures: sum.failures.zip(part.failures.as_ref()).map(|(sum, part)| sum.plus(part)),
        })
    }

    /// Removes implausible counts, which an unmodified k6 does not send.
    #[must_use]
    pub fn checked(self) -> Self {
        let sane = |counts: &BTreeMap<String, u64>| {
            counts.len() <= MAX_VALUES && counts.keys().all(|value| value.len() <= MAX_LENGTH)
        };
        Self {
            statuses: self.statuses.filter(sane),
            protocols: self.protocols.filter(sane),
            failures: self.failures.map(Messages::checked),
            ..self
        }
    }
}

fn added(mut sum: BTreeMap<String, u64>, part: &BTreeMap<String, u64>) -> BTreeMap<String, u64> {
    for (value, count) in part {
        let all = sum.entry(value.clone()).or_default();
        *all = all.saturating_add(*count);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the fields are options")]
    fn counts(all: &[(&str, u64)]) -> Option<BTreeMap<String, u64>> {
        Some(all.iter().map(|(value, count)| ((*value).to_owned(), *count)).collect())
    }

    #[test]
    fn a_value_unknown_to_one_generator_is_unknown() {
        let one =
            WorkDone { statuses: counts(&[("200", 5)]), protocols: None, new_connections: Some(2), failures: None };
        let other = WorkDone { statuses: counts(&[("200", 1), ("302", 4)]), new_connections: Some(3), ..one.clone() };
        let sum = WorkDone::sum([&one, &other]);
        assert_eq!(sum.statuses, counts(&[("200", 6), ("302", 4)]));
        assert_eq!((sum.protocols.clone(), sum.new_connections), (None, Some(5)));
        assert_eq!(WorkDone::sum([&one, &WorkDone::default()]), WorkDone::default());
        assert_eq!(WorkDone::sum([]), WorkDone::default());
    }

    #[test]
    fn implausible_counts_are_removed() {
        let long = WorkDone { protocols: counts(&[(&"x".repeat(MAX_LENGTH + 1), 1)]), ..WorkDone::default() };
        assert_eq!(long.checked(), WorkDone::default());
        let many = (0..=MAX_VALUES as u64).map(|number| (number.to_string(), number)).collect();
        let many = WorkDone { statuses: Some(many), new_connections: Some(1), ..WorkDone::default() };
        assert_eq!(many.checked(), WorkDone { new_connections: Some(1), ..WorkDone::default() });
    }
}
