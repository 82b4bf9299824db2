//! What people say of runs and experiments: labels and notes. Pure.

use crate::app::error::{Error, Result};

/// A longer note is a document, and belongs elsewhere.
const LONGEST_NOTE: usize = 20_000;

const LONGEST_LABEL: usize = 40;

/// More labels than this tell nothing any more.
const MOST_LABELS: usize = 30;

/// A label as it is kept; fails with a sentence.
pub fn checked_label(text: &str) -> Result<&str> {
    let label = text.trim();
    if label.is_empty() || label.chars().count() > LONGEST_LABEL {
        return Err(Error::Invalid(format!("label: between 1 and {LONGEST_LABEL} characters")));
    }
    if label.chars().any(char::is_control) || !label.chars().any(char::is_alphanumeric) {
        return Err(Error::Invalid("label: letters, digits and signs of one line".to_owned()));
    }
    Ok(label)
}

/// A note as it is kept; none if it is empty.
pub fn checked_note(text: &str) -> Result<Option<String>> {
    let note = text.replace("\r\n", "\n").trim_end().to_owned();
    if note.chars().count() > LONGEST_NOTE {
        return Err(Error::Invalid(format!("note: at most {LONGEST_NOTE} characters")));
    }
    Ok(Some(note).filter(|note| !note.trim().is_empty()))
}

/// Whether something with these labels can get one more; it may have that one already.
pub fn check_room(what: &str, labels: &[String], label: &str) -> Result<()> {
    if labels.len() >= MOST_LABELS && !labels.iter().any(|known| known == label) {
        return Err(Error::Conflict(format!("{what} has {MOST_LABELS} labels already")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_short_line() {
        assert_eq!(checked_label("  before the rewrite ").ok(), Some("before the rewrite"));
        for bad in ["", "  ", "a\nb", "\u{1b}[31mred", "..", &"x".repeat(41)] {
            assert!(checked_label(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_note_that_says_nothing_is_none() {
        assert_eq!(checked_note(" \r\n ").ok(), Some(None));
        assert_eq!(checked_note("one\r\n\r\ntwo\n").ok(), Some(Some("one\n\ntwo".to_owned())));
        assert!(checked_note(&"x".repeat(LONGEST_NOTE + 1)).is_err());
    }
}
