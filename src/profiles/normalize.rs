//! Names of functions and modules without what differs between two builds of the same code. Pure.
//!
//! Two builds give the same function different hashes, clone numbers and addresses, and often different type arguments.
//! Profiles can be compared only if their names match. All rules are applied until none changes anything, so a
//! normalised name stays what it is.

mod characters;
mod generics;
mod languages;
mod markers;
mod modules;
mod suffixes;

use characters::{is_hex, printable};
pub use modules::{file, module};

/// Name of a function that is not known.
pub const UNKNOWN: &str = "[unknown]";

/// Maximum number of characters of a name.
pub const MAX_CHARS: usize = 500;

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

#[cfg(test)]
mod tests;
