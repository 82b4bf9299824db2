//! What is wrong with the fields of a draft. Pure.

use std::collections::BTreeMap;

use crate::experiments::plan_fields;

/// Faults by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults(BTreeMap<&'static str, String>);

/// Field names in errors of the API, and the form field of each. [`FIELDS`](plan_fields::FIELDS) has more.
const FIELDS: [(&str, &str); 19] = [
    ("target", "target"),
    ("targets", "target"),
    ("against", "against"),
    ("size", "size"),
    ("sizes", "size"),
    ("scenario", "scenario"),
    ("parameters", "set"),
    ("repetitions", "repeat"),
    ("until", "until"),
    ("profile", "profile"),
    ("profiled_repetitions", "profile"),
    ("retries", "retries"),
    ("knee", "knee"),
    ("loads", "load"),
    ("agent", "agent"),
    ("agent_label", "agent"),
    ("spread", "spread"),
    ("generators", "load-from"),
    ("cluster_generators", "generators"),
];

impl Faults {
    /// Returns the fault of a field.
    pub fn of(&self, field: &str) -> Option<&str> {
        self.0.get(field).map(String::as_str)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the fault that concerns no single field.
    pub fn general(&self) -> Option<&str> {
        self.of("")
    }

    /// Returns the first fault.
    pub fn first(&self) -> Option<&str> {
        self.0.values().next().map(String::as_str)
    }

    /// Adds an error of the API, which starts with its field and a colon.
    pub fn add_refusal(&mut self, sentence: &str) {
        let (field, rest) = sentence.split_once(": ").unwrap_or(("", sentence));
        let others = plan_fields::FIELDS.iter().map(|other| (other.key, other.flag));
        match FIELDS.into_iter().chain(others).find(|(known, _)| *known == field) {
            Some((_, field)) => self.0.insert(field, rest.to_owned()),
            None if field == "name" => self.0.insert("name", rest.to_owned()),
            None => self.0.insert("", sentence.to_owned()),
        };
    }

    /// Removes the fault of a field.
    pub fn remove(&mut self, field: &str) {
        self.0.remove(field);
    }

    pub(super) fn add(&mut self, field: &'static str, sentence: &str) {
        self.0.insert(field, sentence.to_owned());
    }
}
