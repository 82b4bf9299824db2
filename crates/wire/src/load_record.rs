//! What a load generator reported about its load, besides its metrics: when it ran, and what went wrong in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum distinct messages of a kind.
pub const MAX_MESSAGES: usize = 3;

/// Maximum characters of a message.
pub const MAX_MESSAGE: usize = 300;

/// The course of a measured load, on the agent's clock. Unknown values are absent: other load generators and versions,
/// and those in a cluster, do not report them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadRecord {
    /// When the load started, after `setup()`, unix milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_start_ms: Option<i64>,
    /// Duration of `setup()`, milliseconds; 0 without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setup_ms: Option<u64>,
    /// From the start of the load to the end of its last scenario, after which no iteration started, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regular_ms: Option<u64>,
    /// Time of its own turns in a duet, milliseconds; absent if the load shared the time with no other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_ms: Option<u64>,
    /// From the start of the load to the end of its last iteration, milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_ms: Option<u64>,
    /// Duration of `teardown()`, milliseconds; 0 without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub teardown_ms: Option<u64>,
    /// Iterations that did not end in time, so that no metric contains them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupted_iterations: Option<u64>,
    /// Iterations that ended with an exception; they count as completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exceptions: Option<Messages>,
    /// Requests without a response, and other errors of the load generator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub errors: Option<Messages>,
    /// Why the load ended before its time, as the end of a sentence: `its threshold … was crossed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_short: Option<String>,
    /// The script's own limit of requests per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rps_limit: Option<f64>,
}

/// Messages of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Messages {
    /// How many there were.
    pub count: u64,
    /// The commonest ones, the most frequent first.
    pub commonest: Vec<Message>,
}

/// A message of a load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// The text, on one line. Others that differ in numbers only are counted as the same.
    pub text: String,
    /// How often it was reported.
    pub count: u64,
}

impl LoadRecord {
    /// Removes implausible values and shortens texts, which an unmodified agent does not send.
    #[must_use]
    pub fn checked(self) -> Self {
        Self {
            exceptions: self.exceptions.map(Messages::checked),
            errors: self.errors.map(Messages::checked),
            cut_short: self.cut_short.as_deref().map(shortened),
            rps_limit: self.rps_limit.filter(|limit| limit.is_finite() && *limit > 0.0),
            ..self
        }
    }
}

impl Messages {
    /// Returns the commonest message.
    pub fn first(&self) -> Option<&Message> {
        self.commonest.first()
    }

    /// Creates it from counts by text.
    pub fn from_counts(counts: impl IntoIterator<Item = (String, u64)>) -> Self {
        let mut commonest: Vec<Message> = counts.into_iter().map(|(text, count)| Message { text, count }).collect();
        commonest.sort_by_key(|message| std::cmp::Reverse(message.count));
        let count = commonest.iter().fold(0, |sum: u64, message| sum.saturating_add(message.count));
        Self { count, commonest }.checked()
    }

    /// Adds the messages of another load generator. Of each, only the commonest ones are known.
    #[must_use]
    pub fn plus(self, other: &Self) -> Self {
        let mut counts = BTreeMap::new();
        for Message { text, count } in self.commonest.into_iter().chain(other.commonest.iter().cloned()) {
            *counts.entry(text).or_insert(0) += count;
        }
        Self { count: self.count.saturating_add(other.count), ..Self::from_counts(counts) }
    }

    pub(crate) fn checked(self) -> Self {
        let checked = |message: Message| Message { text: shortened(&message.text), ..message };
        Self { commonest: self.commonest.into_iter().take(MAX_MESSAGES).map(checked).collect(), ..self }
    }
}

/// Returns the start of a text that is too long to be shown.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn implausible_records_are_bounded() {
        let message = Message { text: "x".repeat(MAX_MESSAGE + 1), count: 1 };
        let many = Messages { count: 9, commonest: vec![message; 9] };
        let record =
            LoadRecord { exceptions: Some(many), rps_limit: Some(f64::NAN), ..LoadRecord::default() }.checked();
        let messages = record.exceptions.expect("messages");
        assert_eq!((messages.count, messages.commonest.len(), record.rps_limit), (9, MAX_MESSAGES, None));
        assert_eq!(messages.commonest[0].text.chars().count(), MAX_MESSAGE + 1, "with an ellipsis");
    }

    #[test]
    fn messages_of_generators_are_added_by_text() {
        let of =
            |all: &[(&str, u64)]| Messages::from_counts(all.iter().map(|(text, count)| ((*text).to_owned(), *count)));
        let sum = of(&[("404", 2), ("500", 3)]).plus(&of(&[("404", 4)]));
        assert_eq!(sum, of(&[("500", 3), ("404", 6)]));
        assert_eq!((sum.count, sum.first().map(|first| first.text.as_str())), (9, Some("404")));
    }

    #[test]
    fn an_empty_record_is_an_empty_object() {
        assert_eq!(serde_json::to_string(&LoadRecord::default()).expect("written"), "{}");
        assert_eq!(serde_json::from_str::<LoadRecord>("{}").expect("read"), LoadRecord::default());
    }
}
