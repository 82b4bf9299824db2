//! Parts in braces and brackets, and addresses within names. Pure.

use super::characters::{is_decimal, is_hex, is_identifier};

/// Shortens `{{closure}}`, `{closure#0}` and `{lambda(int)#1}` to `{closure}` and `{lambda}`.
pub(super) fn shorten_braces(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(open) = rest.find('{') {
        short.push_str(&rest[..open]);
        rest = &rest[open..];
        let is_double = rest.starts_with("{{");
        let inner = &rest[if is_double { 2 } else { 1 }..];
        let ends_with = if is_double { "}}" } else { "}" };
        let Some(end) = inner.find(['{', '}']).filter(|end| inner[*end..].starts_with(ends_with)) else {
            short.push('{');
            rest = &rest[1..];
            continue;
        };
        short.push('{');
        short.push_str(kind(&inner[..end]));
        short.push('}');
        rest = &inner[end + ends_with.len()..];
    }
    short + rest
}

/// Returns the kind of a function without a name: `closure` of `closure#0`, `lambda` of `lambda(int)#1`.
fn kind(inner: &str) -> &str {
    let numbered = inner.rsplit_once('#').filter(|(_, number)| is_decimal(number));
    let inner = numbered.map_or(inner, |(rest, _)| rest);
    if inner.starts_with("lambda(") { "lambda" } else { inner }
}

/// Shortens type arguments `[go.shape.int_0]` to `[…]`; removes crate hashes `[a1b2c3]` and ABI tags `[abi:cxx11]`.
pub(super) fn shorten_brackets(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let closing = closing_brackets(&chars);
    let mut short = String::with_capacity(name.len());
    let mut at = 0;
    while at < chars.len() {
        match closing[at].filter(|_| at > 0 && is_identifier(chars[at - 1]) && !short.ends_with("operator")) {
            Some(end) if end > at + 1 => {
                let inner: String = chars[at + 1..end].iter().collect();
                let is_crate = inner.len() <= 16 && is_hex(&inner) && chars[end + 1..].starts_with(&[':', ':']);
                if !is_crate && !inner.starts_with("abi:") {
                    short.push_str("[…]");
                }
                at = end + 1;
            }
            _ => {
                short.push(chars[at]);
                at += 1;
            }
        }
    }
    short
}

/// Returns for each opening bracket where its closing one is.
fn closing_brackets(chars: &[char]) -> Vec<Option<usize>> {
    let mut closing = vec![None; chars.len()];
    let mut open = Vec::new();
    for (at, letter) in chars.iter().enumerate() {
        match letter {
            '[' => open.push(at),
            ']' => {
                if let Some(start) = open.pop() {
                    closing[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

/// Shortens addresses to `0x…`; removes those after a slash, which the JVM gives to hidden classes.
pub(super) fn shorten_addresses(name: &str) -> String {
    let mut short = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(start) = rest.find("0x") {
        let digits = rest[start + 2..].bytes().take_while(u8::is_ascii_hexdigit).count();
        let is_inside = rest[..start].ends_with(is_identifier);
        let before = &rest[..start];
        rest = &rest[start + 2 + digits..];
        if digits < 4 || is_inside {
            short.push_str(before);
            short.push_str("0x");
            short.push_str(&name[name.len() - rest.len() - digits..name.len() - rest.len()]);
        } else if let Some(class) = before.strip_suffix('/') {
            short.push_str(class);
        } else {
            short.push_str(before);
            short.push_str("0x…");
        }
    }
    short + rest
}
