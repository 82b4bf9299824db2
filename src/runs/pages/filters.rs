//! Search, filters, order and columns of the history. Template: `runs/_filters.html`. Pure.

use brewbench_wire::target::TargetKind;

use crate::runs::{
    column::{self, Column, Order},
    filter::{PHASES, RunQuery, VERDICTS, address},
    store::values::Values,
    view::pairs,
};

/// The form above the history. Its whole state is in the address, so it works without JavaScript.
#[derive(Debug)]
pub struct Finder {
    query: RunQuery,
    /// The active filters.
    pub chips: Vec<Chip>,
    /// The first four are visible, the rest is folded.
    pub(super) fields: [Field; 11],
    columns: Vec<Column>,
}

/// An active filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The name of the parameter.
    pub name: &'static str,
    /// The label, e.g. `target: servy`.
    pub text: String,
    /// The address without this filter.
    pub without: String,
}

/// A form field with suggested values.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) value: String,
    pub(super) offered: Vec<String>,
    /// Whether only the suggested values are valid.
    pub(super) closed: bool,
}

impl Finder {
    /// Creates the form for a query.
    pub fn new(query: &RunQuery, values: Values, columns: Vec<Column>, column_keys: Option<&str>) -> Self {
        let value = |name: &str| {
            let pair = query.filters().into_iter().find(|(known, _)| *known == name);
            pair.map_or_else(String::new, |(_, value)| value.to_owned())
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let open = |name, title, offered| Field { name, title, value: value(name), offered, closed: false };
        let closed = |name, title, offered| Field { name, title, value: value(name), offered, closed: true };
        let fields = [
            open("target", "Target", values.target),
            open("size", "Size", values.size),
            open("scenario", "Scenario", values.scenario),
            closed("verdict", "Verdict", words(&VERDICTS)),
            open("version", "Version", values.version),
            closed("kind", "Kind", words(&TargetKind::ALL.map(TargetKind::as_str))),
            open("agent", "Agent", values.agent),
            open("engine", "Load generator", values.engine),
            open("label", "Label", values.label),
            open("created_by", "Submitted by", values.created_by),
            closed("phase", "Phase", words(&PHASES)),
        ];
        Self { chips: chips(query, column_keys), query: query.clone(), fields, columns }
    }

    /// The search text.
    pub fn text(&self) -> &str {
        self.query.q.as_deref().unwrap_or_default()
    }

    /// The first day.
    pub fn from(&self) -> &str {
        self.query.from.as_deref().unwrap_or_default()
    }

    /// The last day.
    pub fn to(&self) -> &str {
        self.query.to.as_deref().unwrap_or_default()
    }

    /// The experiment that the list is filtered by.
    pub fn experiment(&self) -> &str {
        self.query.experiment.as_deref().unwrap_or_default()
    }

    /// All orders as (key, description); the default has no key.
    pub fn orders(&self) -> Vec<(String, String)> {
        let both = column::all().filter_map(Column::order).flat_map(|order| [order, order.reversed()]);
        let default = Order::default();
        let rest = both.filter(|order| *order != default).map(|order| (order.key(), order.describe()));
        [(String::new(), default.describe())].into_iter().chain(rest).collect()
    }

    /// Whether this is the current order.
    pub fn is_order(&self, key: &str) -> bool {
        self.query.sorted().unwrap_or_default() == key
    }

    /// Whether a column is shown.
    pub fn is_shown(&self, column: &Column) -> bool {
        self.columns.contains(column)
    }

    /// Keys of the default columns.
    pub fn usual(&self) -> String {
        column::DEFAULT.map(Column::key).join(",")
    }
}

/// Returns the active filters, each with the address without it.
pub fn chips(query: &RunQuery, columns: Option<&str>) -> Vec<Chip> {
    let chip = |(name, value): (&'static str, &str)| {
        let rest = query.without(name);
        let word = match name {
            "q" => "text",
            "created_by" => "submitted by",
            "from" => "since",
            "to" => "until",
            other => other,
        };
        Chip { name, text: format!("{word}: {value}"), without: address("/runs", &pairs(&rest, columns)) }
    };
    query.filters().into_iter().map(chip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_removes_only_its_own_filter() {
        let query = RunQuery {
            target: Some("servy".to_owned()),
            verdict: Some("valid".to_owned()),
            sort: Some("-rps".to_owned()),
            after: Some("x".to_owned()),
            ..RunQuery::default()
        };
        let chips = chips(&query, Some("rps,p99"));
        let [target, verdict] = chips.as_slice() else { panic!("two: {chips:?}") };
        assert_eq!(target.without, "/runs?verdict=valid&sort=-rps&columns=rps%2Cp99");
        assert_eq!(verdict.text, "verdict: valid");
    }

    #[test]
    fn every_order_is_offered_once() {
        let finder = Finder::new(&RunQuery::default(), Values::default(), Vec::new(), None);
        let mut keys: Vec<_> = finder.orders().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), 2 * column::sortable().len());
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 2 * column::sortable().len());
        assert!(finder.is_order("") && !finder.is_order("-rps"));
    }
}
