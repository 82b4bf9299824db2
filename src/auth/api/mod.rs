//! JSON of login and registration, of one's own account, of people, tokens and the audit log.

pub mod account;
pub mod audit;
pub mod ceremonies;
pub mod people;
pub mod tokens;

pub use people::{INVITE_LIFE_MS, make_invite};
pub use tokens::make_token;

use brewbench_agent::wire::name::{BadName, LONGEST, Name};

use crate::error::{Error, Result};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

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
