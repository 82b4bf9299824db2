//! JavaScript in colours, light enough to need no grammar: comments, strings, numbers and keywords. Pure.
//!
//! A grammar engine would bring megabytes of syntaxes to colour one language. What this takes wrongly, such as quotes
//! in a regular expression, is coloured wrongly until the end of its line and nothing else.

use std::fmt;

use askama::filters::HtmlSafe;

const KEYWORDS: [&str; 40] = [
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "from",
    "function",
    "if",
    "import",
    "in",
    "instanceof",
    "let",
    "new",
    "null",
    "of",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "while",
];

/// A script; in a template it writes itself with classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script(pub String);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    Comment,
    Text,
    Number,
    Keyword,
}

impl Kind {
    fn class(self) -> Option<&'static str> {
        match self {
            Self::Plain => None,
            Self::Comment => Some("hl-comment"),
            Self::Text => Some("hl-text"),
            Self::Number => Some("hl-number"),
            Self::Keyword => Some("hl-keyword"),
        }
    }
}

/// The first piece of a script that is not empty, and what it is.
fn piece(rest: &str) -> (Kind, &str) {
    let until = |end: Option<usize>| &rest[..end.unwrap_or(rest.len())];
    let first = rest.chars().next().unwrap_or_default();
    if rest.starts_with("//") {
        return (Kind::Comment, until(rest.find('\n')));
    }
    if let Some(inside) = rest.strip_prefix("/*") {
        return (Kind::Comment, until(inside.find("*/").map(|at| at + 4)));
    }
    if matches!(first, '\'' | '"' | '`') {
        return (Kind::Text, until(end_of_text(rest, first)));
    }
    let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '_' | '$');
    if first.is_ascii_digit() {
        return (Kind::Number, until(rest.find(|letter: char| !is_word(letter) && letter != '.')));
    }
    if is_word(first) {
        let word = until(rest.find(|letter: char| !is_word(letter)));
        return (if KEYWORDS.contains(&word) { Kind::Keyword } else { Kind::Plain }, word);
    }
    (Kind::Plain, until(Some(first.len_utf8())))
}

/// Where a string ends, its closing quote included. Only a template goes over the end of a line.
fn end_of_text(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, letter) in rest.char_indices().skip(1) {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '\n' if quote != '`' => return Some(at),
            letter if letter == quote => return Some(at + letter.len_utf8()),
            _ => {}
        }
    }
    None
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_str();
        while !rest.is_empty() {
            let (kind, text) = piece(rest);
            rest = &rest[text.len()..];
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            match kind.class() {
                Some(class) => write!(f, r#"<span class="{class}">{text}</span>"#)?,
                None => f.write_str(&text)?,
            }
        }
        Ok(())
    }
}

/// Every piece of the script is escaped, and the rest is ours.
impl HtmlSafe for Script {}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(script: &str) -> String {
        Script(script.to_owned()).to_string()
    }

    #[test]
    fn the_words_of_the_language_have_classes() {
        assert_eq!(
            html("const a = 1.5; // <b>\n"),
            "<span class=\"hl-keyword\">const</span> a = <span class=\"hl-number\">1.5</span>; \
             <span class=\"hl-comment\">// &lt;b&gt;</span>\n"
        );
        assert_eq!(html("`${x}\n`"), "<span class=\"hl-text\">`${x}\n`</span>");
        assert_eq!(html("constant"), "constant");
    }

    #[test]
    fn nothing_is_lost_and_nothing_becomes_an_element_whatever_is_written() {
        for odd in
            ["'", "\"a\\\"", "/*", "/* <i> */ é 日本", "'</pre><script>alert(1)</script>", "`", "\\", "1e", "/['\"]/"]
        {
            let html = html(odd);
            let mut text = html.clone();
            for class in ["hl-comment", "hl-text", "hl-number", "hl-keyword"] {
                text = text.replace(&format!(r#"<span class="{class}">"#), "");
            }
            let text = text.replace("</span>", "");
            assert!(!text.contains('<'), "{odd}: {html}");
            assert_eq!(text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"), odd);
        }
    }
}
