//! Counts messages that differ in numbers only as one. Pure.

use std::collections::HashMap;

use brewbench_wire::load_record::{MAX_MESSAGES, Message, Messages, shortened};
use brewbench_wire::sanitize::plain;

/// Maximum distinct messages; later ones are counted without their text.
const MAX_DISTINCT: usize = 50;

/// Messages of one kind.
#[derive(Debug, Default)]
pub struct Tally {
    count: u64,
    messages: Vec<Message>,
    /// Index of each message by its text without numbers.
    known: HashMap<String, usize>,
    /// The previous message as written, and its index: a flood repeats itself.
    last: Option<(String, usize)>,
}

impl Tally {
    /// Counts a message. `text` returns what to show of it, and is called only if the message is another than before.
    pub fn add(&mut self, raw: &str, text: impl FnOnce() -> String) {
        self.count += 1;
        let last = self.last.as_ref().filter(|(last, _)| last == raw).map(|(_, index)| *index);
        let Some(index) = last.or_else(|| self.index_of(raw, text)) else { return };
        self.messages[index].count += 1;
        if last.is_none() {
            self.last = Some((raw.to_owned(), index));
        }
    }

    fn index_of(&mut self, raw: &str, text: impl FnOnce() -> String) -> Option<usize> {
        let key = without_numbers(raw);
        if let Some(&index) = self.known.get(&key) {
            return Some(index);
        }
        if self.messages.len() == MAX_DISTINCT {
            return None;
        }
        self.messages.push(Message { text: shortened(&plain(&text())), count: 0 });
        self.known.insert(key, self.messages.len() - 1);
        Some(self.messages.len() - 1)
    }

    /// Returns the number of messages, and the commonest.
    pub fn messages(&self) -> Messages {
        let mut commonest = self.messages.clone();
        commonest.sort_by_key(|message| std::cmp::Reverse(message.count));
        commonest.truncate(MAX_MESSAGES);
        Messages { count: self.count, commonest }
    }
}

/// Maximum length of a key, bytes: messages may contain whole documents.
const MAX_KEY: usize = 1_000;

/// Replaces each number by one character.
fn without_numbers(text: &str) -> String {
    let mut key = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if key.ends_with('#') => {}
            '0'..='9' => key.push('#'),
            other => key.push(other),
        }
        if key.len() >= MAX_KEY {
            break;
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_differ_in_numbers_are_one() {
        let mut tally = Tally::default();
        for (raw, text) in [("a 17", "first"), ("b", "second"), ("a 1", "third"), ("a 1", "fourth")] {
            tally.add(raw, || text.to_owned());
        }
        let Messages { count, commonest } = tally.messages();
        let texts: Vec<_> = commonest.iter().map(|one| (one.text.as_str(), one.count)).collect();
        assert_eq!((count, texts), (4, vec![("first", 3), ("second", 1)]));
    }

    #[test]
    fn a_flood_of_distinct_messages_is_bounded() {
        let mut tally = Tally::default();
        for number in 0..10_000_u32 {
            let raw: String = number.to_string().chars().map(|digit| char::from(digit as u8 + 50)).collect();
            tally.add(&raw.repeat(1_000), || raw.clone());
        }
        assert_eq!((tally.messages().count, tally.messages().commonest.len()), (10_000, MAX_MESSAGES));
        assert_eq!((tally.messages.len(), tally.known.len()), (MAX_DISTINCT, MAX_DISTINCT));
        assert!(tally.known.keys().all(|key| key.len() <= MAX_KEY + 4));
    }
}
