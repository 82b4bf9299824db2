//! Validates labels and notes of runs and experiments. Pure.

use crate::app::error::{Error, Result};

/// Maximum length of a note, in characters.
const MAX_NOTE: usize = 20_000;

const MAX_LABEL: usize = 40;

/// Validates and trims a label.
pub fn checked_label(text: &str) -> Result<&str> {
    let label = text.trim();
    if label.is_empty() || label.chars().count() > MAX_LABEL {
        return Err(Error::Invalid(format!("label: must have 1 to {MAX_LABEL} characters")));
    }
    if label.chars().any(char::is_control) || !label.chars().any(char::is_alphanumeric) {
        return Err(Error::Invalid("label: must be one line with at least one letter or digit".to_owned()));
    }
    Ok(label)
}

/// Validates and trims a note; none if it is empty.
pub fn checked_note(text: &str) -> Result<Option<String>> {
    let note = text.replace("\r\n", "\n").trim_end().to_owned();
    if note.chars().count() > MAX_NOTE {
        return Err(Error::Invalid(format!("note: must have at most {MAX_NOTE} characters")));
    }
    Ok(Some(note).filter(|note| !note.trim().is_empty()))
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
    fn a_blank_note_is_none() {
        assert_eq!(checked_note(" \r\n ").ok(), Some(None));
        assert_eq!(checked_note("one\r\n\r\ntwo\n").ok(), Some(Some("one\n\ntwo".to_owned())));
        assert!(checked_note(&"x".repeat(MAX_NOTE + 1)).is_err());
    }
}
