//! The constant values of a script: what is the same each time it is evaluated. Pure.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};

use serde_json::{Map, Value};

use super::super::scalar;
use super::tokens::{Kind, Token, one_of};

/// Maximum depth of values in values.
const MAX_DEPTH: usize = 64;

/// Most work for the values of a script, in bytes.
const MAX_WORK: usize = 1 << 26;

/// Functions that do not change an object that they are given.
const READERS: &str = "get head post put patch options del request asyncRequest stringify check log";

/// A script with its constants. In its texts, `${NAME}` is a parameter, and nothing else contains `${`.
pub(super) struct Script<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// Where the values of constants begin; none for names with other uses.
    constants: HashMap<&'a str, Option<usize>>,
    /// Names that unknown functions are given: they may change objects.
    given_away: HashSet<&'a str>,
    /// Usual values of parameters.
    pub(super) defaults: RefCell<BTreeMap<String, String>>,
    work: Cell<usize>,
}

impl<'a> Script<'a> {
    pub(super) fn new(tokens: Vec<Token<'a>>) -> Self {
        let (constants, given_away) = (HashMap::new(), HashSet::new());
        let mut script =
            Self { tokens, constants, given_away, defaults: RefCell::default(), work: Cell::new(MAX_WORK) };
        for at in 0..script.tokens.len() {
            let Some(name) = script.word(at) else { continue };
            if at > 0 && script.is(at - 1, ".") || script.is(at + 1, ":") {
                continue;
            }
            let is_declared = script.word_before(at) == Some("const") && script.is(at + 1, "=");
            if is_declared && !script.constants.contains_key(name) {
                script.constants.insert(name, Some(at + 2));
            } else if is_declared || !script.is_read(at) {
                script.constants.insert(name, None);
            }
            let open = script.tokens[at].parent.filter(|open| script.is(*open, "("));
            if open.is_some_and(|open| !one_of(READERS, script.word_before(open).unwrap_or_default())) {
                script.given_away.insert(name);
            }
        }
        script
    }

    /// Whether a name is only read. Otherwise it may be declared again, or a part of it may be changed.
    fn is_read(&self, at: usize) -> bool {
        let next_is_usual = self.tokens.get(at + 1).is_none_or(|next| match next.kind {
            Kind::Mark(mark) => "})],+;|?&".contains(mark),
            _ => next.line > self.tokens[at].line,
        });
        let is_declared = self.word_before(at).is_some_and(|word| one_of("class const delete function let var", word));
        let mut open = self.tokens[at].parent;
        // A pattern, or a list of parameters.
        for _ in 0..4 {
            let Some(group) = open else { break };
            let after = self.tokens[group].partner + 1;
            let is_list = self.is(group, "(");
            let is_statement = is_list && matches!(self.word_before(group), Some("if" | "for" | "while" | "switch"));
            let declares = self.is(after, "=") && !self.is(after, "==") || is_list && self.is(after, "{");
            if declares && !is_statement {
                return false;
            }
            open = self.tokens[group].parent.filter(|_| !is_list);
        }
        next_is_usual && !is_declared
    }

    /// Returns the word at a place.
    pub(super) fn word(&self, at: usize) -> Option<&'a str> {
        match self.tokens.get(at)?.kind {
            Kind::Word(word) => Some(word),
            _ => None,
        }
    }

    /// Returns the word before a place.
    pub(super) fn word_before(&self, at: usize) -> Option<&'a str> {
        self.word(at.checked_sub(1)?)
    }

    /// Whether the tokens at a place are these words and marks.
    pub(super) fn is(&self, at: usize, expected: &str) -> bool {
        let mut rest = expected;
        for token in self.tokens.iter().skip(at) {
            let next = match token.kind {
                Kind::Word(word) => rest.strip_prefix(word),
                Kind::Mark(mark) => rest.strip_prefix(mark),
                _ => None,
            };
            match next {
                Some("") => return true,
                Some(next) => rest = next,
                None => return false,
            }
        }
        false
    }

    /// Returns where the values between brackets begin that commas separate.
    pub(super) fn arguments(&self, open: usize) -> Vec<usize> {
        let (mut starts, mut at) = (Vec::new(), open + 1);
        while at < self.tokens[open].partner {
            if at == open + 1 || self.is(at - 1, ",") {
                starts.push(at);
            }
            at = self.tokens[at].partner.max(at) + 1;
        }
        starts
    }

    /// Returns the value that begins at a place, if it is constant.
    pub(super) fn constant(&self, at: usize) -> Option<Value> {
        self.whole(at, 0)
    }

    fn whole(&self, at: usize, depth: usize) -> Option<Value> {
        let (value, end) = self.value(at, depth)?;
        let is_end = self.tokens.get(end).is_none_or(|next| match next.kind {
            Kind::Mark(mark) => ";,)]}".contains(mark),
            _ => next.line > self.tokens[end - 1].line,
        });
        is_end.then_some(value)
    }

    /// Returns a value and where it ends.
    fn value(&self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let depth = if depth < MAX_DEPTH { depth + 1 } else { return None };
        let (mut value, mut end) = self.operand(at, depth)?;
        while self.is(end, "+") {
            let (right, after) = self.operand(end + 1, depth)?;
            let is_text = value.is_string() || right.is_string();
            value = Value::String(self.joined(&value, &right).filter(|_| is_text)?);
            end = after;
        }
        if self.is(end, "||") || self.is(end, "??") {
            let (right, after) = self.value(end + 2, depth)?;
            return Some((self.or_default(value, &right)?, after));
        }
        Some((value, end))
    }

    /// Joins two values, if they do not become a parameter.
    fn joined(&self, left: &Value, right: &Value) -> Option<String> {
        let (left, right) = (scalar(left)?, scalar(right)?);
        self.work.set(self.work.get().checked_sub(left.len() + right.len() + 16)?);
        (!(left.ends_with('$') && right.starts_with('{'))).then(|| left + &right)
    }

    /// Keeps the value that a parameter has if none is given.
    fn or_default(&self, value: Value, other: &Value) -> Option<Value> {
        let name = value.as_str()?.strip_prefix("${")?.strip_suffix('}').filter(|name| !name.contains('}'))?;
        let other = scalar(other).filter(|other| !other.contains("${"))?;
        let mut defaults = self.defaults.borrow_mut();
        let is_same = *defaults.entry(name.to_owned()).or_insert_with(|| other.clone()) == other;
        is_same.then_some(value)
    }

    fn operand(&self, at: usize, depth: usize) -> Option<(Value, usize)> {
        let token = self.tokens.get(at)?;
        self.work.set(self.work.get().checked_sub(16)?);
        let value = match &token.kind {
            Kind::Text(text) => Value::from(literal(text)?),
            Kind::Number(text) => number(text)?,
            Kind::Word("true") => Value::Bool(true),
            Kind::Word("false") => Value::Bool(false),
            Kind::Word("null") => Value::Null,
            Kind::Word("__ENV") => return self.environment(at),
            Kind::Word("JSON") if self.is(at + 1, ".stringify(") => {
                let [value] = self.arguments(at + 3)[..] else { return None };
                let text = Value::from(self.whole(value, depth)?.to_string());
                return Some((Value::from(self.joined(&text, &"".into())?), self.tokens[at + 3].partner + 1));
            }
            Kind::Word(name) => {
                let start = (*self.constants.get(name)?)?;
                let is_object = self.is(start, "{") || self.is(start, "[");
                self.whole(start, depth).filter(|_| !(is_object && self.given_away.contains(name)))?
            }
            Kind::Mark('`') => self.template(at, depth)?,
            Kind::Mark('(') => self.value(at + 1, depth).filter(|(_, end)| *end == token.partner)?.0,
            Kind::Mark('[') => {
                let items = self.arguments(at).into_iter().map(|item| self.whole(item, depth));
                Value::Array(items.collect::<Option<_>>()?)
            }
            Kind::Mark('{') => self.object(at, depth)?,
            Kind::Mark(_) | Kind::Other => return None,
        };
        Some((value, token.partner + 1))
    }

    fn template(&self, open: usize, depth: usize) -> Option<Value> {
        let (mut all, mut at) = (Value::from(""), open + 1);
        while at < self.tokens[open].partner {
            let part = match &self.tokens[at].kind {
                Kind::Text(part) => Value::from(literal(part)?),
                Kind::Mark(_) => self.value(at + 1, depth).filter(|(_, end)| *end == self.tokens[at].partner)?.0,
                _ => return None,
            };
            all = Value::String(self.joined(&all, &part)?);
            at = self.tokens[at].partner + 1;
        }
        Some(all)
    }

    /// Returns a variable of the environment: `__ENV.NAME` or `__ENV['NAME']`.
    fn environment(&self, at: usize) -> Option<(Value, usize)> {
        let (name, end) = match self.tokens.get(at + 2)?.kind {
            Kind::Word(name) if self.is(at + 1, ".") => (name, at + 3),
            Kind::Text(ref name) if self.is(at + 1, "[") && self.is(at + 3, "]") => (name.as_str(), at + 4),
            _ => return None,
        };
        let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        is_name.then(|| (Value::String(format!("${{{name}}}")), end))
    }

    fn object(&self, open: usize, depth: usize) -> Option<Value> {
        let mut fields = Map::new();
        for at in self.arguments(open) {
            let name = match &self.tokens[at].kind {
                Kind::Word(name) => name,
                Kind::Text(name) => literal(name)?,
                _ => return None,
            };
            let value = self.whole(if self.is(at + 1, ":") { at + 2 } else { at }, depth)?;
            fields.insert(Some(name).filter(|name| *name != "__proto__")?.to_owned(), value);
        }
        Some(Value::Object(fields))
    }
}

/// Returns a text that does not look like a parameter.
fn literal(text: &str) -> Option<&str> {
    (!text.contains("${")).then_some(text)
}

/// Returns a number that is written as JavaScript writes it.
fn number(text: &str) -> Option<Value> {
    let is_usual = text.len() <= 15 && text.parse::<f64>().ok()?.to_string() == text;
    serde_json::from_str(text).ok().filter(|_| is_usual)
}
