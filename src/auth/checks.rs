//! Checks names and lines that users type. Pure.

use brewbench_wire::name::{BadName, MAX_CHARACTERS, Name};

use crate::app::error::{Error, Result};

/// Parses a name that a user typed.
pub fn checked_name(text: &str) -> Result<Name> {
    text.parse().map_err(|fault: BadName| Error::Invalid(format!("name: {fault}")))
}

/// Checks a line of free text: the title of an experiment, a version, the value of a parameter.
pub fn checked_line(text: &str) -> Result<&str> {
    let line = text.trim();
    // Also rejects characters that reorder or hide the text around them.
    let is_hidden =
        |c: char| matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    let is_bad = |c: char| c.is_control() || is_hidden(c);
    if line.is_empty() || line.chars().count() > MAX_CHARACTERS || line.chars().any(is_bad) {
        return Err(Error::Invalid(format!("name: {}", BadName::Length)));
    }
    Ok(line)
}
