//! A JSON document, of which only the keys are read until its format is known. Pure.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::reports::validate::{Fault, Place};

/// An object, or a list of which the first item is read.
pub struct Document<'a> {
    /// Its text.
    pub text: &'a str,
    keys: HashMap<String, &'a RawValue>,
    /// How many items it has, if it is a list.
    items: Vec<&'a RawValue>,
}

impl<'a> Document<'a> {
    /// Reads the keys; a value that is neither an object nor a list has none.
    pub fn new(text: &'a str) -> Self {
        let keys = serde_json::from_str(text).unwrap_or_default();
        let items = if text.trim_start().starts_with('[') {
            serde_json::from_str(text).unwrap_or_default()
        } else {
            Vec::new()
        };
        Self { text, keys, items }
    }

    /// Whether it is an object with all of these keys.
    pub fn has(&self, keys: &[&str]) -> bool {
        keys.iter().all(|key| self.keys.contains_key(*key))
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &str) -> Option<Document<'a>> {
        self.keys.get(key).map(|value| Document::new(value.get()))
    }

    /// Whether the object at a key has all of these keys.
    pub fn has_in(&self, key: &str, keys: &[&str]) -> bool {
        self.get(key).is_some_and(|inner| inner.has(keys))
    }

    /// Returns an item, if it is a list.
    pub fn item(&self, index: usize) -> Option<Document<'a>> {
        self.items.get(index).map(|value| Document::new(value.get()))
    }

    /// Returns the items and keys with their texts.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.keys.iter().map(|(key, value)| (key.as_str(), value.get()))
    }

    /// Returns the string at a key.
    pub fn string(&self, key: &str) -> Option<String> {
        serde_json::from_str(self.keys.get(key)?.get()).ok()
    }

    /// Reads all of it.
    pub fn read<T: Deserialize<'a>>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.text).map_err(|error| {
            let place = format!("line {}, column {}", error.line(), error.column());
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or_default();
            Place::root(&place).fault(what)
        })
    }

    /// Returns what it is, for a message.
    pub fn what(&self) -> &'static str {
        match self.text.trim_start().as_bytes().first() {
            Some(b'{') => "an object",
            Some(b'[') => "a list",
            Some(b'"') => "a string",
            Some(b't' | b'f') => "a boolean",
            Some(b'n') => "null",
            _ => "a number",
        }
    }
}
