//! The limits that verdicts depend on, each with its reason. A scenario may override them. Pure.

mod table;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use table::{About, Limit};

use crate::runs::verdict::Unit;

impl Limit {
    /// Finds a limit by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|limit| limit.definition().name == name)
    }

    /// Parses user input: `0.9` or `90 %`, `5` or `5 s`, `100` or `100 ms`. The error starts with the limit's name.
    pub fn parse(self, text: &str) -> Result<f64, String> {
        let About { name, unit, .. } = self.definition();
        let text = text.trim();
        let (number, factor) = match unit {
            Unit::Share => text.strip_suffix('%').map_or((text, 1.0), |number| (number, 0.01)),
            other => (text.strip_suffix(other.sign()).unwrap_or(text), 1.0),
        };
        let number = number.trim().replace(',', ".").parse::<f64>();
        let value = number.map_err(|_| format!("{name}: {text:?} is not a {}", self.kind()))?;
        // 90 × 0.01 is not quite 0.9.
        self.checked((value * factor * 1e9).round() / 1e9)
    }

    /// Checks that a value is in range. The error starts with the limit's name.
    pub fn checked(self, value: f64) -> Result<f64, String> {
        let About { name, most, .. } = self.definition();
        if (0.0..=most).contains(&value) { Ok(value) } else { Err(format!("{name}: {value} is not a {}", self.kind())) }
    }

    fn kind(self) -> String {
        let About { unit, most, .. } = self.definition();
        match unit {
            Unit::Share => format!("share between 0 and {most}, such as 0.25 or 25 %"),
            other => format!("number of {} between 0 and {most}", other.unit_name()),
        }
    }
}

/// A value for every limit; in JSON an object of numbers by name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(into = "BTreeMap<String, f64>", from = "BTreeMap<String, f64>")]
#[schema(value_type = BTreeMap<String, f64>)]
pub struct Limits([f64; Limit::ALL.len()]);

impl Default for Limits {
    fn default() -> Self {
        Self(Limit::ALL.map(|limit| limit.definition().default))
    }
}

impl Limits {
    /// Returns the defaults with some values replaced. The error names the invalid limit.
    pub fn with(set: &BTreeMap<String, f64>) -> Result<Self, String> {
        let mut limits = Self::default();
        for (name, value) in set {
            let limit = Limit::find(name).ok_or_else(|| unknown(name))?;
            limits.set(limit, limit.checked(*value)?);
        }
        Ok(limits)
    }

    /// Returns the value of a limit.
    pub fn get(&self, limit: Limit) -> f64 {
        self.0[limit as usize]
    }

    /// Sets a limit to a checked value.
    pub fn set(&mut self, limit: Limit, value: f64) {
        self.0[limit as usize] = value;
    }

    /// Returns the limits that differ from their defaults, by name.
    pub fn changed(&self) -> BTreeMap<String, f64> {
        let differs = |limit: &Limit| self.get(*limit).total_cmp(&limit.definition().default).is_ne();
        Limit::ALL
            .into_iter()
            .filter(differs)
            .map(|limit| (limit.definition().name.to_owned(), self.get(limit)))
            .collect()
    }
}

/// Returns the error for an unknown limit; it lists all names.
pub fn unknown(name: &str) -> String {
    let names: Vec<&str> = Limit::ALL.into_iter().map(|limit| limit.definition().name).collect();
    format!("{name:?} is not a limit; the limits are {}", names.join(", "))
}

impl From<Limits> for BTreeMap<String, f64> {
    fn from(limits: Limits) -> Self {
        Limit::ALL.into_iter().map(|limit| (limit.definition().name.to_owned(), limits.get(limit))).collect()
    }
}

/// Reads limits of any version: missing ones get their defaults, and removed or invalid ones are ignored.
impl From<BTreeMap<String, f64>> for Limits {
    fn from(map: BTreeMap<String, f64>) -> Self {
        let mut limits = Self::default();
        for (name, value) in map {
            if let Some(limit) = Limit::find(&name)
                && let Ok(value) = limit.checked(value)
            {
                limits.set(limit, value);
            }
        }
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_place_a_name_and_a_valid_default() {
        for (place, limit) in Limit::ALL.into_iter().enumerate() {
            let About { name, default, .. } = limit.definition();
            assert_eq!(limit as usize, place, "{name}");
            assert_eq!(Limit::find(name), Some(limit));
            assert_eq!(limit.checked(default), Ok(default), "{name}");
        }
        assert_eq!(Limit::find("beauty"), None);
    }

    #[test]
    fn user_input_is_parsed() {
        assert_eq!(Limit::GeneratorBusy.parse(" 95 % "), Ok(0.95));
        assert_eq!(Limit::GeneratorBusy.parse("0.95"), Ok(0.95));
        assert_eq!(Limit::GeneratorBusy.parse("0,95"), Ok(0.95));
        assert_eq!(Limit::TooShort.parse("3 s"), Ok(3.0));
        assert_eq!(Limit::ClockJumped.parse("250ms"), Ok(250.0));
    }

    #[test]
    fn invalid_input_is_refused_with_the_limits_name() {
        for text in ["", "x", "95", "-0.1", "NaN", "inf", "1e999", "5 s"] {
            let fault = Limit::GeneratorBusy.parse(text).expect_err(text);
            assert!(fault.starts_with("generator_busy: ") && fault.contains("share between 0 and 1"), "{fault}");
        }
        let fault = Limit::TooShort.parse("soon").expect_err("no number");
        assert_eq!(fault, "too_short: \"soon\" is not a number of seconds between 0 and 86400");
    }

    #[test]
    fn limits_survive_json_and_unknown_or_invalid_ones_get_defaults() {
        let mut limits = Limits::default();
        limits.set(Limit::TooShort, 2.0);
        let text = serde_json::to_string(&limits).expect("written");
        assert_eq!(serde_json::from_str::<Limits>(&text).expect("read"), limits);
        assert_eq!(limits.changed(), BTreeMap::from([("too_short".to_owned(), 2.0)]));
        let odd: Limits = serde_json::from_str("{\"old\": 1, \"too_short\": -3}").expect("read");
        assert_eq!(odd, Limits::default());
        assert!(Limits::with(&BTreeMap::from([("old".to_owned(), 1.0)])).expect_err("unknown").contains("too_short"));
    }
}
