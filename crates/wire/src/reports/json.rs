//! JSON as a tree that preserves the order of keys and rejects duplicates.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::reports::validate::{Fault, Place, shown};

/// Maximum number of values in a document. A small file can contain very many, and each takes memory: k6 needs fewer
/// than 100,000 for 5,000 metrics.
const VALUES_MAX: usize = 1_000_000;

/// Objects with fewer keys are searched linearly.
const SMALL: usize = 16;

/// Top-level keys of a summary's own data; others, such as the result of `setup()`, are skipped.
const TOP_KEYS: [&str; 6] = ["config", "metadata", "metrics", "results", "root_group", "state"];

/// A value.
#[derive(Debug)]
pub(super) enum Node<'de> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'de, str>),
    List(Vec<Node<'de>>),
    Map(Vec<(Cow<'de, str>, Node<'de>)>),
}

/// Reads a document. Fails on invalid JSON, duplicate keys and too many values.
pub(super) fn read(bytes: &[u8]) -> Result<Node<'_>, Fault> {
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Place::root("the document").fault("is empty"));
    }
    let left = Cell::new(VALUES_MAX);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let seed = Seed { left: &left, wanted: |key| TOP_KEYS.contains(&key) };
    let read = seed.deserialize(&mut reader).and_then(|node| reader.end().map(|()| node));
    read.map_err(|error| to_fault(bytes, &error))
}

impl<'de> Node<'de> {
    /// Returns the value of a key; `None` if this is not an object.
    pub(super) fn get(&self, key: &str) -> Option<&Node<'de>> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(name, _)| name == key).map(|(_, node)| node)
    }

    pub(super) fn entries(&self, place: &Place<'_>) -> Result<&[(Cow<'de, str>, Node<'de>)], Fault> {
        match self {
            Self::Map(entries) => Ok(entries),
            _ => Err(place.fault(format_args!("is {}, expected an object", self.what()))),
        }
    }

    pub(super) fn list(&self, place: &Place<'_>) -> Result<&[Node<'de>], Fault> {
        match self {
            Self::List(nodes) => Ok(nodes),
            _ => Err(place.fault(format_args!("is {}, expected a list", self.what()))),
        }
    }

    pub(super) fn text(&self, place: &Place<'_>) -> Result<&str, Fault> {
        match self {
            Self::Text(text) => Ok(text),
            _ => Err(place.fault(format_args!("is {}, expected a string", self.what()))),
        }
    }

    pub(super) fn number(&self, place: &Place<'_>) -> Result<f64, Fault> {
        match self {
            // Adding zero turns -0 into 0.
            Self::Number(number) => Ok(number + 0.0),
            _ => Err(place.fault(format_args!("is {}, expected a number", self.what()))),
        }
    }

    pub(super) fn bool(&self, place: &Place<'_>) -> Result<bool, Fault> {
        match self {
            Self::Bool(bool) => Ok(*bool),
            _ => Err(place.fault(format_args!("is {}, expected true or false", self.what()))),
        }
    }

    /// Returns its type, for messages.
    pub(super) fn what(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
        }
    }
}

/// Returns the value of a required key.
pub(super) fn required<'n, 'de>(node: &'n Node<'de>, key: &str, place: &Place<'_>) -> Result<&'n Node<'de>, Fault> {
    node.entries(place)?;
    node.get(key).ok_or_else(|| place.key(key).fault("is missing"))
}

/// Reads one value; `left` counts down over the document, `wanted` selects the keys of this object.
struct Seed<'a> {
    left: &'a Cell<usize>,
    wanted: fn(&str) -> bool,
}

impl Seed<'_> {
    fn below(&self) -> Seed<'_> {
        Seed { left: self.left, wanted: |_| true }
    }
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Node<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Node<'de>, D::Error> {
        match self.left.get().checked_sub(1) {
            Some(left) => self.left.set(left),
            None => return Err(D::Error::custom(format_args!("more than {VALUES_MAX} values in one summary"))),
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Node<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_unit<E>(self) -> Result<Node<'de>, E> {
        Ok(Node::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Node<'de>, E> {
        Ok(Node::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Node<'de>, E> {
        Ok(Node::Number(value))
    }

    fn visit_borrowed_str<E>(self, value: &'de str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Borrowed(value)))
    }

    fn visit_str<E>(self, value: &str) -> Result<Node<'de>, E> {
        Ok(Node::Text(Cow::Owned(value.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Node<'de>, A::Error> {
        let mut nodes = Vec::new();
        while let Some(node) = list.next_element_seed(self.below())? {
            nodes.push(node);
        }
        Ok(Node::List(nodes))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node<'de>, A::Error> {
        let mut entries: Vec<(Cow<'de, str>, Node<'de>)> = Vec::new();
        let mut seen = HashSet::new();
        while let Some(Key(key)) = map.next_key()? {
            // Most objects are small, where a linear search is faster than a hash set.
            let twice = if entries.len() < SMALL {
                entries.iter().any(|(other, _)| *other == key)
            } else {
                if seen.is_empty() {
                    seen.extend(entries.iter().map(|(key, _)| key.clone()));
                }
                !seen.insert(key.clone())
            };
            if twice {
                return Err(A::Error::custom(format_args!("the key \"{}\" is duplicated in one object", shown(&key))));
            }
            let node = if (self.wanted)(&key) {
                map.next_value_seed(self.below())?
            } else {
                map.next_value::<IgnoredAny>()?;
                Node::Null
            };
            entries.push((key, node));
        }
        Ok(Node::Map(entries))
    }
}

/// A key of an object, borrowed from the document unless it contains escapes.
struct Key<'de>(Cow<'de, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;

        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a key")
            }

            fn visit_borrowed_str<E>(self, key: &'de str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Borrowed(key)))
            }

            fn visit_str<E>(self, key: &str) -> Result<Key<'de>, E> {
                Ok(Key(Cow::Owned(key.to_owned())))
            }
        }

        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Turns a parser error into a sentence.
fn to_fault(bytes: &[u8], error: &serde_json::Error) -> Fault {
    let (line, column) = (error.line(), error.column());
    let text = error.to_string();
    let text = text.strip_suffix(&format!(" at line {line} column {column}")).unwrap_or(&text);
    let what = match text {
        _ if error.is_eof() => format!("the JSON is truncated ({text})"),
        "recursion limit exceeded" => "nested deeper than 128 levels".to_owned(),
        "number out of range" => "a number too large for a 64-bit float".to_owned(),
        "trailing characters" => "unexpected characters after the end of the JSON".to_owned(),
        "expected value" | "invalid number" => match non_finite(bytes, line, column) {
            Some(token) => format!("{token} is not a JSON number"),
            None => text.to_owned(),
        },
        _ => text.to_owned(),
    };
    Fault { place: format!("line {line}, column {column}"), what, is_of_no_format: false }
}

/// Returns the token at this position if it is one that other programs write for non-finite numbers.
fn non_finite(bytes: &[u8], line: usize, column: usize) -> Option<&'static str> {
    let line = bytes.split(|byte| *byte == b'\n').nth(line.checked_sub(1)?)?;
    // For `-Infinity` the column is that of the `I`, after the sign.
    let (before, rest) = line.split_at_checked(column.checked_sub(1)?)?;
    let signed = before.ends_with(b"-") || rest.starts_with(b"-");
    let rest = rest.strip_prefix(b"-").unwrap_or(rest);
    match rest {
        _ if rest.starts_with(b"NaN") => Some("NaN"),
        _ if rest.starts_with(b"Inf") && signed => Some("-Infinity"),
        _ if rest.starts_with(b"Inf") => Some("Infinity"),
        _ => None,
    }
}
