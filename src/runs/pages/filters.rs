//! How runs are found: the search, the filters, the order, the columns. Template: `runs/_finder.html`. Pure.

use crate::runs::{
    column::{self, Column, Order},
    filter::{PHASES, VERDICTS, Wanted, address},
    store::values::Values,
    view::kept,
};

/// The form above the history. It works as a plain form; all of it is in the address.
#[derive(Debug)]
pub struct Finder {
    wanted: Wanted,
    /// One a filter that is set.
    pub chips: Vec<Chip>,
    pub(super) fields: Vec<Field>,
    columns: Vec<Column>,
}

/// A filter that is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chip {
    /// The parameter's name.
    pub name: &'static str,
    /// E.g. `target: servy`.
    pub text: String,
    /// The address without it.
    pub without: String,
}

/// A field with what it may say.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) name: &'static str,
    pub(super) title: &'static str,
    pub(super) value: String,
    pub(super) offered: Vec<String>,
    /// Nothing but what is offered makes sense.
    pub(super) closed: bool,
}

impl Finder {
    /// For what is wanted now.
    pub fn new(wanted: &Wanted, values: Values, columns: Vec<Column>, chosen: Option<&str>) -> Self {
        let value = |name: &str| {
            let pair = wanted.narrows().into_iter().find(|(known, _)| *known == name);
            pair.map_or_else(String::new, |(_, value)| value.to_owned())
        };
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let open = |name, title, offered| Field { name, title, value: value(name), offered, closed: false };
        let closed = |name, title, offered| Field { name, title, value: value(name), offered, closed: true };
        let fields = vec![
            open("target", "Target", values.target),
            open("version", "Version", values.version),
            open("size", "Size", values.size),
            open("scenario", "Scenario", values.scenario),
            open("agent", "Agent", values.agent),
            open("engine", "Load generator", values.engine),
            open("label", "Label", values.label),
            open("person", "Submitted by", values.person),
            closed("phase", "Phase", words(&PHASES)),
            closed("verdict", "Verdict", words(&VERDICTS)),
        ];
        Self { chips: chips(wanted, chosen), wanted: wanted.clone(), fields, columns }
    }

    /// The text that is searched for.
    pub fn text(&self) -> &str {
        self.wanted.q.as_deref().unwrap_or_default()
    }

    /// The first day.
    pub fn from(&self) -> &str {
        self.wanted.from.as_deref().unwrap_or_default()
    }

    /// The last day.
    pub fn to(&self) -> &str {
        self.wanted.to.as_deref().unwrap_or_default()
    }

    /// The experiment that it is narrowed to.
    pub fn experiment(&self) -> &str {
        self.wanted.experiment.as_deref().unwrap_or_default()
    }

    /// Every order as (key, words); the usual one has no key.
    pub fn orders(&self) -> Vec<(String, String)> {
        let both = column::all().filter_map(Column::order).flat_map(|order| [order, order.reversed()]);
        let usual = Order::default();
        let rest = both.filter(|order| *order != usual).map(|order| (order.key(), order.words()));
        [(String::new(), usual.words())].into_iter().chain(rest).collect()
    }

    /// Whether it is ordered like this.
    pub fn is_order(&self, key: &str) -> bool {
        self.wanted.sorted().unwrap_or_default() == key
    }

    /// Whether a column is shown.
    pub fn is_shown(&self, column: &Column) -> bool {
        self.columns.contains(column)
    }

    /// Keys of the columns that need not be said.
    pub fn usual(&self) -> String {
        column::USUAL.map(Column::key).join(",")
    }
}

/// The filters that are set, each with the address without it.
pub fn chips(wanted: &Wanted, columns: Option<&str>) -> Vec<Chip> {
    let chip = |(name, value): (&'static str, &str)| {
        let rest = wanted.without(name);
        let word = match name {
            "q" => "text",
            "person" => "submitted by",
            "from" => "since",
            "to" => "until",
            other => other,
        };
        Chip { name, text: format!("{word}: {value}"), without: address("/runs", &kept(&rest, columns)) }
    };
    wanted.narrows().into_iter().map(chip).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chip_takes_its_own_filter_away_and_keeps_the_rest() {
        let wanted = Wanted {
            target: Some("servy".to_owned()),
            verdict: Some("valid".to_owned()),
            sort: Some("-rps".to_owned()),
            before: Some("x".to_owned()),
            ..Wanted::default()
        };
        let chips = chips(&wanted, Some("rps,p99"));
        let [target, verdict] = chips.as_slice() else { panic!("two: {chips:?}") };
        assert_eq!(target.without, "/runs?verdict=valid&sort=-rps&columns=rps%2Cp99");
        assert_eq!(verdict.text, "verdict: valid");
    }

    #[test]
    fn every_order_is_offered_once() {
        let finder = Finder::new(&Wanted::default(), Values::default(), Vec::new(), None);
        let mut keys: Vec<_> = finder.orders().into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), 2 * column::sortable().len());
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 2 * column::sortable().len());
        assert!(finder.is_order("") && !finder.is_order("-rps"));
    }
}
