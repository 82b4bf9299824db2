//! Text to search for, bounded where it enters: the work of a search grows with its words. Pure.

use serde::Deserialize;

/// The longest text, characters.
pub const MAX_LETTERS: usize = 100;

/// The maximum number of different words of a text.
pub const MAX_WORDS: usize = 8;

/// A text to search for without control characters and surrounding blanks. What exceeds the longest text is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct SearchText(String);

impl SearchText {
    /// Reads what was typed.
    pub fn new(typed: &str) -> Self {
        Self(typed.trim().chars().filter(|letter| !letter.is_control()).take(MAX_LETTERS).collect())
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the different words in lower case: letters, digits and `_`, without punctuation.
    pub fn terms(&self) -> Vec<String> {
        let lower = self.0.to_lowercase();
        first_distinct(lower.split(|letter: char| !letter.is_alphanumeric() && letter != '_'))
    }
}

impl From<String> for SearchText {
    fn from(typed: String) -> Self {
        Self::new(&typed)
    }
}

/// Returns the first different words, in order; further ones are ignored.
pub fn first_distinct<'a>(words: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for word in words.filter(|word| !word.is_empty()) {
        if distinct.len() == MAX_WORDS {
            break;
        }
        if !distinct.iter().any(|known| known == word) {
            distinct.push(word.to_owned());
        }
    }
    distinct
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_repeated_word_counts_once() {
        assert_eq!(SearchText::new(" The p99, the P99-of the run ").terms(), ["the", "p99", "of", "run"]);
    }

    proptest! {
        #[test]
        fn any_text_is_bounded(typed in any::<String>()) {
            let text = SearchText::new(&typed.repeat(50));
            prop_assert!(text.as_str().chars().count() <= MAX_LETTERS && text.terms().len() <= MAX_WORDS);
        }
    }
}
