//! Tells characters apart. Pure.

/// Maximum number of characters of a raw name that are looked at: shortening may need more than it returns.
const MAX_RAW_CHARS: usize = 10_000;

/// Removes control characters and those that change the direction of text.
pub(super) fn printable(raw: &str) -> String {
    let is_invisible = |letter: char| {
        letter.is_control()
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    raw.chars().filter(|letter| !is_invisible(*letter)).take(MAX_RAW_CHARS).collect()
}

pub(super) fn is_hex(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(super) fn is_decimal(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a character can be part of an identifier.
pub(super) fn is_identifier(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_' || letter == '$'
}
