//! Splits JavaScript into tokens. Pure.

/// What a token is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind<'a> {
    /// A name or a keyword.
    Word(&'a str),
    /// A string, or a part of a template.
    Text(String),
    Number(&'a str),
    /// One character. A template is in two backquotes; `$` begins an expression in it, and `}` ends it.
    Mark(char),
    /// A regular expression, or a text with an odd escape.
    Other,
}

/// A token.
#[derive(Debug)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind<'a>,
    /// The line, from 1.
    pub(super) line: usize,
    /// The bracket that it is in.
    pub(super) parent: Option<usize>,
    /// The other bracket, of a bracket; of others, itself.
    pub(super) partner: usize,
}

/// Keywords after which a value begins, so that `/` begins a regular expression.
const BEFORE_VALUES: &str = "await case delete do else in new of return throw typeof void";

/// Whether a word is one of some.
pub(super) fn one_of(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

struct Lexer<'a> {
    rest: &'a str,
    line: usize,
    tokens: Vec<Token<'a>>,
    open: Vec<usize>,
}

/// Splits a script. The error is a sentence.
pub(super) fn split(script: &str) -> Result<Vec<Token<'_>>, String> {
    let mut lexer = Lexer { rest: script, line: 1, tokens: Vec::new(), open: Vec::new() };
    while let Some(first) = lexer.rest.chars().next() {
        let line = lexer.line;
        lexer.next(first).ok_or_else(|| format!("line {line}: what {first:?} begins or ends is not complete"))?;
    }
    match lexer.open.last() {
        Some(&open) => Err(format!("line {}: a bracket or a template has no end", lexer.tokens[open].line)),
        None => Ok(lexer.tokens),
    }
}

impl<'a> Lexer<'a> {
    /// Takes the next token; none if its end is not found.
    fn next(&mut self, first: char) -> Option<()> {
        let rest = self.rest;
        let length = |is_part: fn(char) -> bool| rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let is_of_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let regex = || find(&rest[1..], &["/"]).filter(|_| !self.is_after_value());
        match first {
            _ if first.is_whitespace() => self.take(length(char::is_whitespace)),
            '/' if rest.starts_with("//") => self.take(length(|c| c != '\n')),
            '/' if rest.starts_with("/*") => self.take(rest[2..].find("*/")? + 4),
            '/' => match regex() {
                Some(end) => self.push(Kind::Other, end + 2),
                None => self.push(Kind::Mark('/'), 1),
            },
            '"' | '\'' => {
                let end = find(&rest[1..], &[&rest[..1]])?;
                self.push(cooked(&rest[1..=end]), end + 2);
            }
            '`' => {
                self.open(first, 1);
                self.template()?;
            }
            '(' | '[' | '{' => self.open(first, 1),
            ')' | ']' | '}' => self.close(first)?,
            _ if first.is_ascii_digit() => {
                let end = length(|c| c.is_alphanumeric() || c == '_' || c == '.');
                self.push(Kind::Number(&rest[..end]), end);
            }
            _ if is_of_word(first) => {
                let end = rest.find(|c| !is_of_word(c)).unwrap_or(rest.len());
                self.push(Kind::Word(&rest[..end]), end);
            }
            _ => self.push(Kind::Mark(first), first.len_utf8()),
        }
        Some(())
    }

    fn take(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
    }

    fn push(&mut self, kind: Kind<'a>, length: usize) {
        let (line, parent, partner) = (self.line, self.open.last().copied(), self.tokens.len());
        self.tokens.push(Token { kind, line, parent, partner });
        self.take(length);
    }

    fn open(&mut self, mark: char, length: usize) {
        self.push(Kind::Mark(mark), length);
        self.open.push(self.tokens.len() - 1);
    }

    fn close(&mut self, mark: char) -> Option<()> {
        let open = self.open.pop()?;
        let Kind::Mark(opened) = self.tokens[open].kind else { return None };
        let close = self.tokens.len();
        self.push(Kind::Mark(mark), 1);
        (self.tokens[open].partner, self.tokens[close].partner) = (close, open);
        match (opened, mark) {
            ('(', ')') | ('[', ']') | ('{', '}') | ('`', '`') => Some(()),
            ('$', '}') => self.template(),
            _ => None,
        }
    }

    /// Takes the text of a template and what follows: an expression begins, or the template ends.
    fn template(&mut self) -> Option<()> {
        let end = find(self.rest, &["`", "${"])?;
        self.push(cooked(&self.rest[..end]), end);
        if self.rest.starts_with('`') {
            return self.close('`');
        }
        self.open('$', 2);
        Some(())
    }

    /// Whether the last token ends a value. This is not sure after `)` and `}`, where divisions are usual.
    fn is_after_value(&self) -> bool {
        self.tokens.last().is_some_and(|token| match token.kind {
            Kind::Word(word) => !one_of(BEFORE_VALUES, word),
            Kind::Mark(mark) => ")]}`".contains(mark),
            _ => true,
        })
    }
}

/// Returns where an end is that is not escaped. Only a template has several lines.
fn find(text: &str, ends: &[&str]) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices() {
        if !is_escaped && ends.iter().any(|end| text[at..].starts_with(end)) {
            return Some(at);
        } else if c == '\n' && !is_escaped && ends.len() == 1 {
            return None;
        }
        is_escaped = !is_escaped && c == '\\';
    }
    None
}

/// Replaces the escapes of a text.
fn cooked(raw: &str) -> Kind<'static> {
    let mut text = String::with_capacity(raw.len());
    let mut parts = raw.chars();
    while let Some(c) = parts.next() {
        text.push(match (c, if c == '\\' { parts.next() } else { None }) {
            ('\\', Some('n')) => '\n',
            ('\\', Some('t')) => '\t',
            ('\\', Some('\n')) => continue,
            ('\\', Some(escaped)) if !escaped.is_ascii_alphanumeric() => escaped,
            ('\\', _) => return Kind::Other,
            (c, _) => c,
        });
    }
    Kind::Text(text)
}
