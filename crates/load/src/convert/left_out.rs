//! What could not be taken over. Pure.

use std::collections::HashMap;

/// Maximum number of sentences.
const MAX_SENTENCES: usize = 50;

/// What could not be taken over, each with its first place and how often it occurs.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    all: Vec<(String, String, u32)>,
    numbers: HashMap<String, usize>,
}

impl LeftOut {
    /// Adds what is at some places, of which one is named.
    pub(super) fn add(&mut self, place: &str, what: &str, times: u32) {
        let number = *self.numbers.entry(what.to_owned()).or_insert(self.all.len());
        match self.all.get_mut(number) {
            Some((_, _, all)) => *all = all.saturating_add(times),
            None => self.all.push((place.to_owned(), what.to_owned(), times)),
        }
    }

    /// Returns sentences.
    pub(super) fn sentences(&self) -> Vec<String> {
        let sentence = |(place, what, times): &(String, String, u32)| match times {
            0 | 1 => format!("{place}: {what}"),
            more => format!("{place} and {} more: {what}", more - 1),
        };
        let more = self.all.len().saturating_sub(MAX_SENTENCES);
        let rest = (more > 0).then(|| format!("and {more} more"));
        self.all.iter().take(MAX_SENTENCES).map(sentence).chain(rest).collect()
    }
}
