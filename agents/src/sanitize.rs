//! Text that others wrote, made fit for sentences.

/// On one line, without the escape sequences that a terminal would obey: a script says of itself what it wants to.
pub fn plain(text: &str) -> String {
    let mut plain = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter == '\u{1b}' && letters.next_if_eq(&'[').is_some() {
            // Such a sequence ends with a letter.
            while letters.next().is_some_and(|part| !part.is_ascii_alphabetic()) {}
        } else {
            plain.push(if is_obeyed(letter) { ' ' } else { letter });
        }
    }
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Whether a terminal or a browser does something at a letter rather than show it: control characters, those that turn the
/// direction of writing, and those without a width.
pub fn is_obeyed(letter: char) -> bool {
    let has_no_shape =
        matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}');
    letter.is_control() || has_no_shape
}

/// What a quoted text as Go writes it stands for, up to its closing quote; none if it does not begin with a quote.
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
    fn what_a_script_says_of_itself_obeys_nobody() {
        assert_eq!(plain("Error: \u{1b}[1;31mred\u{1b}[0m\n\tat script.js\u{7}"), "Error: red at script.js");
        assert_eq!(plain("a\u{202e}txt.exe\u{2066}b\u{200b}c"), "a txt.exe b c");
        assert_eq!(plain("\u{1b}]0;title\u{7}x \u{1b}["), "]0;title x");
    }

    #[test]
    fn what_go_quotes_is_read() {
        let quoted = r#""a \"b\"\n\tc \\ \x1b[31m \u00e9" hint="more""#;
        assert_eq!(unquoted(quoted).as_deref(), Some("a \"b\"\n\tc \\ \u{1b}[31m é"));
        assert_eq!((unquoted("bare"), unquoted("\"open")), (None, None));
    }
}
