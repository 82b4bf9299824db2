//! What matches a query, and how well. Pure.

use crate::app::search_text::{SearchText, first_distinct};

/// The minimum length of a part of an id.
const MIN_ID: usize = 4;

/// How well a name matches, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rank {
    /// The name is the query.
    Exact,
    /// The name begins with the query.
    Prefix,
    /// Each word of the query begins a word of the name.
    Words,
    /// The name contains each word of the query.
    Part,
    /// Only a longer text matches.
    Text,
}

/// What a user searches for in names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    text: SearchText,
    lower: String,
    words: Vec<String>,
}

impl Query {
    /// Reads what was typed. Upper and lower case of ASCII letters are the same, as in SQLite.
    pub fn new(typed: &str) -> Self {
        let text = SearchText::new(typed);
        let lower = text.as_str().to_ascii_lowercase();
        let words = first_distinct(lower.split_whitespace());
        Self { text, lower, words }
    }

    /// Returns the text.
    pub fn text(&self) -> &SearchText {
        &self.text
    }

    /// Whether nothing was typed.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Returns the words in lower case.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Returns the query if it may be a part of an id: hexadecimal digits and hyphens.
    pub fn as_id(&self) -> Option<&str> {
        let is_id = |letter: u8| letter.is_ascii_hexdigit() || letter == b'-';
        (self.lower.len() >= MIN_ID && self.lower.bytes().all(is_id)).then_some(&self.lower)
    }

    /// Returns how well a name matches; none if it does not.
    pub fn rank(&self, name: &str) -> Option<Rank> {
        let name = name.to_ascii_lowercase();
        if self.is_empty() || !self.words.iter().all(|word| name.contains(word.as_str())) {
            return None;
        }
        Some(match () {
            () if name == self.lower => Rank::Exact,
            () if name.starts_with(&self.lower) => Rank::Prefix,
            () if self.words.iter().all(|word| begins_a_word(&name, word)) => Rank::Words,
            () => Rank::Part,
        })
    }
}

fn begins_a_word(name: &str, word: &str) -> bool {
    name.match_indices(word).any(|(at, _)| !name[..at].ends_with(char::is_alphanumeric))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rank(query: &str, name: &str) -> Option<Rank> {
        Query::new(query).rank(name)
    }

    #[test]
    fn an_exact_name_ranks_before_a_prefix_a_word_and_a_part() {
        assert_eq!(rank(" Servy ", "servy"), Some(Rank::Exact));
        assert_eq!(rank("serv", "servy"), Some(Rank::Prefix));
        assert_eq!(rank("hyper", "rust-hyper"), Some(Rank::Words));
        assert_eq!(rank("ype", "rust-hyper"), Some(Rank::Part));
        assert_eq!(rank("go", "rust-hyper"), None);
        assert!(Rank::Exact < Rank::Prefix && Rank::Prefix < Rank::Words && Rank::Part < Rank::Text);
    }

    #[test]
    fn all_words_must_match_in_any_order() {
        assert_eq!(rank("parser new", "after the new parser"), Some(Rank::Words));
        assert_eq!(rank("parser old", "after the new parser"), None);
        assert_eq!(rank("", "servy"), None);
    }

    #[test]
    fn only_hexadecimal_digits_are_part_of_an_id() {
        assert_eq!(Query::new("019A-bc").as_id(), Some("019a-bc"));
        for other in ["019", "servy", "019a bc", "019a%"] {
            assert_eq!(Query::new(other).as_id(), None, "{other}");
        }
    }

    proptest! {
        #[test]
        fn any_query_and_name_can_be_ranked(query in any::<String>(), name in any::<String>()) {
            let query = Query::new(&query);
            query.rank(&name);
        }
    }
}
