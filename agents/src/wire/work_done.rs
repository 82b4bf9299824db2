//! What the requests of a measured phase were, beside how long they took: two runs did equal work only if this is alike.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// More values of a tag than this are none that HTTP has.
const MAX_VALUES: usize = 100;

/// Longer values of a tag are none that HTTP has.
const MAX_LENGTH: usize = 32;

/// Requests by kind, from the tags that k6 puts on them. What the tags do not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkDone {
    /// Requests by the status of their response, `0` where there was none.
    pub statuses: Option<BTreeMap<String, u64>>,
    /// Requests by the protocol of their response, e.g. `HTTP/1.1`.
    pub protocols: Option<BTreeMap<String, u64>>,
    /// Requests that opened a connection of their own.
    pub new_connections: Option<u64>,
}

impl WorkDone {
    /// The work of several generators together; absent where one of them does not know it.
    pub fn sum<'a>(parts: impl IntoIterator<Item = &'a Self>) -> Self {
        let mut parts = parts.into_iter();
        let Some(first) = parts.next() else { return Self::default() };
        parts.fold(first.clone(), |sum, part| Self {
            statuses: sum.statuses.zip(part.statuses.as_ref()).map(|(sum, part)| added(sum, part)),
            protocols: sum.protocols.zip(part.protocols.as_ref()).map(|(sum, part)| added(sum, part)),
            new_connections: sum.new_connections.zip(part.new_connections).map(|(a, b)| a.saturating_add(b)),
        })
    }

    /// The same without counts that no k6 of ours sends.
    #[must_use]
    pub fn checked(self) -> Self {
        let sane = |counts: &BTreeMap<String, u64>| {
            counts.len() <= MAX_VALUES && counts.keys().all(|value| value.len() <= MAX_LENGTH)
        };
        Self { statuses: self.statuses.filter(sane), protocols: self.protocols.filter(sane), ..self }
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
    fn what_one_generator_does_not_know_is_not_known_of_all() {
        let one = WorkDone { statuses: counts(&[("200", 5)]), protocols: None, new_connections: Some(2) };
        let other = WorkDone { statuses: counts(&[("200", 1), ("302", 4)]), new_connections: Some(3), ..one.clone() };
        let sum = WorkDone::sum([&one, &other]);
        assert_eq!(sum.statuses, counts(&[("200", 6), ("302", 4)]));
        assert_eq!((sum.protocols.clone(), sum.new_connections), (None, Some(5)));
        assert_eq!(WorkDone::sum([&one, &WorkDone::default()]), WorkDone::default());
        assert_eq!(WorkDone::sum([]), WorkDone::default());
    }

    #[test]
    fn counts_that_no_k6_makes_are_left_out() {
        let long = WorkDone { protocols: counts(&[(&"x".repeat(MAX_LENGTH + 1), 1)]), ..WorkDone::default() };
        assert_eq!(long.checked(), WorkDone::default());
        let many = (0..=MAX_VALUES as u64).map(|number| (number.to_string(), number)).collect();
        let many = WorkDone { statuses: Some(many), new_connections: Some(1), ..WorkDone::default() };
        assert_eq!(many.checked(), WorkDone { new_connections: Some(1), ..WorkDone::default() });
    }
}
