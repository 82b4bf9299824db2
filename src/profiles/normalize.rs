//! Names of functions and modules without what differs between two builds of the same code. Pure.
//!
//! Two builds give the same function different hashes, clone numbers and addresses, and often different type arguments.
//! Profiles can be compared only if their names match. All rules are applied until none changes anything, so a
//! normalised name stays what it is.

mod generics;
mod languages;
mod markers;
mod modules;
mod suffixes;

pub use modules::{file, module};

/// Name of a function that is not known.
pub const UNKNOWN: &str = "[unknown]";

/// Maximum number of characters of a name.
pub const MAX_CHARS: usize = 500;

/// Maximum number of characters of a raw name that are looked at: shortening may need more than it returns.
const MAX_RAW_CHARS: usize = 10_000;

/// Rounds after which a name is taken as it is. Real names need two or three.
const MAX_ROUNDS: usize = 100;

/// Spellings of an unknown function.
const UNKNOWN_SPELLINGS: [&str; 8] = ["", "0x…", "??", "???", "unknown", "(unknown)", "<unknown>", "[[unknown]]"];

/// Normalises the name of a function.
pub fn function(raw: &str) -> String {
    let mut name = printable(raw);
    for _ in 0..MAX_ROUNDS {
        let next = round(&name);
        if next == name {
            break;
        }
        name = next;
    }
    name
}

/// Applies every rule once.
fn round(name: &str) -> String {
    let name = languages::unify(suffixes::strip(name.trim()).trim_end());
    let name = markers::shorten_brackets(&markers::shorten_braces(&markers::shorten_addresses(&name)));
    let name = cut(&generics::shorten(&name));
    if is_unknown(&name) { UNKNOWN.to_owned() } else { name }
}

/// Removes control characters and those that change the direction of text.
fn printable(raw: &str) -> String {
    let is_invisible = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    raw.chars().filter(|letter| !is_invisible(*letter)).take(MAX_RAW_CHARS).collect()
}

fn cut(name: &str) -> String {
    if name.chars().nth(MAX_CHARS).is_none() {
        return name.to_owned();
    }
    let kept: String = name.chars().take(MAX_CHARS - 1).collect();
    format!("{}…", kept.trim_end())
}

fn is_unknown(name: &str) -> bool {
    let is_bare_address = name.len() >= 8 && name.starts_with(|first: char| first.is_ascii_digit()) && is_hex(name);
    is_bare_address || UNKNOWN_SPELLINGS.iter().any(|spelling| name.eq_ignore_ascii_case(spelling))
}

fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a character can be part of an identifier.
fn is_identifier(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}

#[cfg(test)]
mod tests;
