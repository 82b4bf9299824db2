//! Makes foreign text, for example from a script, safe to print.

/// Returns the text on one line, without escape sequences and other characters that a terminal interprets.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // An escape sequence ends with a letter.
            while letters.next().is_some_and(|part| !part.is_ascii_alphabetic()) {}
        } else {
            plain.push(if is_obeyed(letter) { ' ' } else { letter });
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a terminal or a browser interprets a character instead of showing it: control characters, bidirectional
/// controls, and characters without a width.
pub fn is_obeyed(letter: char) -> bool {
    let has_no_shape =
        matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    letter.is_control() || has_no_shape
}

/// Unquotes text quoted by Go, up to its closing quote; `None` if it does not start with a quote.
pub fn unquoted(text: &str) -> Option<String> {
    let mut letters = text.strip_prefix('"')?.chars();
    let mut plain = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(plain),
            '\\' => match letters.next()? {
                'n' => plain.push('\n'),
                't' => plain.push('\t'),
                'r' => plain.push('\r'),
                kind @ ('x' | 'u' | 'U') => {
                    let digits = if kind == 'x' {
                        2
                    } else if kind == 'u' {
                        4
                    } else {
                        8
                    };
                    let code: String = letters.by_ref().take(digits).collect();
                    plain.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                other => plain.push(other),
            },
            letter => plain.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
        assert_eq!(plain("Error: \u{1b}[1;31mred\u{1b}[0m\n\tat script.js\u{7}"), "Error: red at script.js");
        assert_eq!(plain("a\u{202e}txt.exe\u{2066}b\u{200b}c"), "a txt.exe b c");
        assert_eq!(plain("\u{1b}]0;title\u{7}x \u{1b}["), "]0;title x");
    }

    #[test]
    fn text_quoted_by_go_is_unquoted() {
        let quoted = r#""a \"b\"\n\tc \\ \x1b[31m \u00e9" hint="more""#;
        assert_eq!(unquoted(quoted).as_deref(), Some("a \"b\"\n\tc \\ \u{1b}[31m é"));
        assert_eq!((unquoted("bare"), unquoted("\"open")), (None, None));
    }
}
