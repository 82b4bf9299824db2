//! JSON of login and registration, of one's own account, of people, tokens and the audit log.

pub mod account;
pub mod audit;
pub mod ceremonies;
pub mod people;
pub mod tokens;

pub use people::{INVITE_LIFE_MS, make_invite};
pub use tokens::make_token;

use crate::error::{Error, Result};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A name that people, tokens and agents may have: visible, on one line, at most 80 characters.
pub fn checked_name(name: &str) -> Result<&str> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > 80 || name.chars().any(char::is_control) {
        return Err(Error::Invalid("name: 1 to 80 characters on one line".to_owned()));
    }
    Ok(name)
}
