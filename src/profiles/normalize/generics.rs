//! Type arguments in angle brackets. Pure.
//!
//! Angle brackets also occur in operators (`operator<<`), arrows (`->`), qualified paths (`<T as Trait>::method`), and
//! names in brackets (`<init>`, `<module>`). Only arguments are shortened. No recursion, as names come from outside.

use super::characters::is_identifier;

/// Operators of C++ with an angle bracket, the longest first.
const OPERATORS: [&[char]; 10] = [
    &['<', '=', '>'],
    &['<', '<', '='],
    &['>', '>', '='],
    &['-', '>', '*'],
    &['<', '<'],
    &['>', '>'],
    &['<', '='],
    &['>', '='],
    &['-', '>'],
    &['<'],
];

/// Names in angle brackets that may come after `::`.
const NAMES: [&str; 8] = ["init", "clinit", "module", "lambda", "anonymous", "listcomp", "genexpr", "unknown"];

/// Keyword after which an operator's symbol comes.
const OPERATOR: [char; 8] = ['o', 'p', 'e', 'r', 'a', 't', 'o', 'r'];

/// Shortens `Vec<T, A>::push` to `Vec<…>::push`, and `<Vec<T>>::push` to the same.
pub(super) fn shorten(name: &str) -> String {
    let text = Brackets::new(name);
    let mut short = String::with_capacity(name.len());
    let mut dropped = vec![false; text.chars.len()];
    let mut at = 0;
    while at < text.chars.len() {
        match text.closing[at] {
            Some(end) if text.is_arguments(at, end) => {
                short.truncate(short.trim_end_matches("::").len());
                short.push_str("<…>");
                at = end;
            }
            Some(end) if text.is_path_only(at, end) => dropped[end] = true,
            _ if dropped[at] => {}
            _ => short.push(text.chars[at]),
        }
        at += 1;
    }
    short
}

/// A name and where its angle brackets close.
struct Brackets {
    chars: Vec<char>,
    /// For each opening angle bracket, where it closes.
    closing: Vec<Option<usize>>,
}

impl Brackets {
    fn new(name: &str) -> Self {
        let chars: Vec<char> = name.chars().collect();
        let mut closing = vec![None; chars.len()];
        let mut open: Vec<usize> = Vec::new();
        let mut at = 0;
        while at < chars.len() {
            let operator = operator_at(&chars, at);
            match chars[at] {
                _ if operator > 0 => at += operator - 1,
                '<' | '(' => open.push(at),
                '>' if at > 0 && matches!(chars[at - 1], '-' | '=') => {}
                '>' => {
                    if let Some(start) = open.pop_if(|start| chars[*start] == '<') {
                        closing[start] = Some(at);
                    }
                }
                ')' => while open.pop().is_some_and(|start| chars[start] != '(') {},
                _ => {}
            }
            at += 1;
        }
        Self { chars, closing }
    }

    /// Whether brackets contain type arguments.
    fn is_arguments(&self, start: usize, end: usize) -> bool {
        let before = &self.chars[..start];
        let inner = &self.chars[start + 1..end];
        if self.is_qualified(start, end) {
            return false;
        }
        if before.ends_with(&[':', ':']) {
            let inner: String = inner.iter().collect();
            return before.len() > 2 && !NAMES.contains(&inner.as_str()) && !inner.starts_with("lambda");
        }
        before.last().is_some_and(|last| is_identifier(*last) || *last == '}') || is_after_operator(before)
    }

    /// Whether brackets contain `T as Trait` or `impl Trait for T`.
    fn is_qualified(&self, start: usize, end: usize) -> bool {
        if self.chars[start + 1..end].starts_with(&['i', 'm', 'p', 'l', ' ']) {
            return true;
        }
        let mut at = start + 1;
        while at < end {
            if self.chars[at..end].starts_with(&[' ', 'a', 's', ' ']) {
                return true;
            }
            at = self.closing[at].unwrap_or(at) + 1;
        }
        false
    }

    /// Whether brackets begin a path and contain only another path: `<Vec<T>>::push`.
    fn is_path_only(&self, start: usize, end: usize) -> bool {
        let is_start = start == 0 || matches!(self.chars[start - 1], ' ' | '(' | '<' | ',' | '&' | '*' | '[');
        if !is_start || !self.chars[end + 1..].starts_with(&[':', ':']) || self.is_qualified(start, end) {
            return false;
        }
        let mut at = start + 1;
        while at < end {
            let is_part = is_identifier(self.chars[at]) || self.chars[at] == ':' || self.closing[at].is_some();
            if !is_part {
                return false;
            }
            at = self.closing[at].unwrap_or(at) + 1;
        }
        is_identifier(self.chars[start + 1])
    }
}

/// Returns the length of an operator's symbol that begins here; 0 if there is none.
fn operator_at(chars: &[char], at: usize) -> usize {
    if !matches!(chars[at], '<' | '>' | '-') || !ends_with_keyword(&chars[..at]) {
        return 0;
    }
    let symbol = OPERATORS.iter().find(|symbol| chars[at..].starts_with(symbol));
    symbol.map_or(usize::from(chars[at] == '>'), |symbol| symbol.len())
}

/// Whether a text ends with an operator's name, such as `operator<<` or `operator()`.
fn is_after_operator(before: &[char]) -> bool {
    let before = before.strip_suffix(&[' ']).unwrap_or(before);
    let is_symbol = |letter: &&char| !is_identifier(**letter) && !letter.is_whitespace();
    let symbol = before.iter().rev().take_while(is_symbol).count();
    (1..=3).contains(&symbol) && ends_with_keyword(&before[..before.len() - symbol])
}

fn ends_with_keyword(before: &[char]) -> bool {
    let rest = before.strip_suffix(OPERATOR.as_slice());
    rest.is_some_and(|rest| !rest.last().is_some_and(|last| is_identifier(*last)))
}
