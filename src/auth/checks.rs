//! Checks names and lines that users type. Pure.

use brewbench_agent::wire::name::{BadName, LONGEST, Name};

use crate::app::error::{Error, Result};

/// The name that somebody typed, for whatever it is.
pub fn checked_name(text: &str) -> Result<Name> {
    text.parse().map_err(|fault: BadName| Error::Invalid(format!("name: {fault}")))
}

/// A text of one line that names nothing: the title of an experiment, a version, the value of a parameter.
pub fn checked_line(text: &str) -> Result<&str> {
    let line = text.trim();
    // What reorders or hides the text around it is not part of a line either.
    let is_hidden = |letter: char| matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_bad = |letter: char| letter.is_control() || is_hidden(letter);
    if line.is_empty() || line.chars().count() > LONGEST || line.chars().any(is_bad) {
        return Err(Error::Invalid(format!("name: {}", BadName::Length)));
    }
    Ok(line)
}
