//! The verdict limits of a scenario: each with its default and its reason, and its form.

use std::collections::BTreeMap;

use crate::{
    results::{
        store::verdicts::ScenarioLimits,
        verdict::limits::{Limit, Limits},
    },
    web::time_ago::{self, RelativeTime},
};

/// The section of the page with the limits.
#[derive(Debug)]
pub struct LimitsPart {
    /// In display order.
    pub rows: Vec<LimitRow>,
    /// When the limits were last changed, and by whom.
    changed: Option<(i64, String)>,
    /// What is wrong with the input.
    pub fault: Option<String>,
}

/// One limit.
#[derive(Debug)]
pub struct LimitRow {
    /// Key of the limit.
    pub name: &'static str,
    /// Short description.
    pub what: &'static str,
    /// Reason for the default.
    pub why: &'static str,
    /// Current value or rejected input.
    pub value: String,
    /// Default value.
    pub default: String,
    /// Whether the value differs from the default.
    pub is_set: bool,
}

impl LimitsPart {
    /// Shows the stored limits.
    pub fn new(stored: ScenarioLimits) -> Self {
        let row = |limit: Limit| {
            let (about, value) = (limit.definition(), stored.limits.get(limit));
            let text = |value| about.unit.text(value);
            let is_set = value.total_cmp(&about.default).is_ne();
            let (value, default) = (text(value), text(about.default));
            LimitRow { name: about.name, what: about.what, why: about.why, value, default, is_set }
        };
        Self { rows: Limit::ALL.into_iter().map(row).collect(), changed: stored.changed, fault: None }
    }

    /// Shows rejected input and what is wrong with it.
    #[must_use]
    pub fn with_input(self, input: &BTreeMap<String, String>, fault: String) -> Self {
        let filled = |row: LimitRow| LimitRow { value: input.get(row.name).cloned().unwrap_or(row.value), ..row };
        Self { rows: self.rows.into_iter().map(filled).collect(), fault: Some(fault), ..self }
    }

    /// Whether any limit differs from its default.
    pub fn any_set(&self) -> bool {
        self.rows.iter().any(|row| row.is_set)
    }

    /// Who last changed the limits, and when.
    pub fn changed_by(&self) -> Option<(&str, RelativeTime)> {
        self.changed.as_ref().map(|(at_ms, who)| (who.as_str(), time_ago::ago(Some(*at_ms))))
    }
}

/// Parses the form; an empty field means the default.
pub fn parse(form: &BTreeMap<String, String>) -> Result<Limits, String> {
    let mut limits = Limits::default();
    if form.contains_key("reset") {
        return Ok(limits);
    }
    for limit in Limit::ALL {
        if let Some(text) = form.get(limit.definition().name).filter(|text| !text.trim().is_empty()) {
            limits.set(limit, limit.parse(text)?);
        }
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn the_form_accepts_the_values_that_it_shows() {
        let mut limits = Limits::default();
        limits.set(Limit::GeneratorBusy, 0.95);
        let part = LimitsPart::new(ScenarioLimits { limits: limits.clone(), revision: 1, changed: None });
        let shown: BTreeMap<String, String> =
            part.rows.iter().map(|row| (row.name.to_owned(), row.value.clone())).collect();
        assert_eq!(parse(&shown), Ok(limits));
        assert!(part.any_set() && part.rows.iter().filter(|row| row.is_set).count() == 1);
    }

    #[test]
    fn empty_fields_and_a_reset_mean_the_defaults() {
        assert_eq!(parse(&form(&[("too_short", " ")])), Ok(Limits::default()));
        assert_eq!(parse(&form(&[("too_short", "7 s"), ("reset", "1")])), Ok(Limits::default()));
        assert!(parse(&form(&[("too_short", "soon")])).expect_err("an invalid duration").starts_with("too_short: "));
    }
}
