//! The headline as sentences. Pure.

use super::{
    ChangedFunction, Difference, Headline, Place, Verdict,
    number::{amount, percent, signed},
};
use crate::profiles::{changes::Presence, explained::Explained, max_t::Interval, stacks::Unit, tree::Symbol};

impl Headline {
    /// Writes the headline as one or more sentences. Names are in backticks.
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = vec![self.first()];
        if !self.functions.is_empty() {
            sentences.push(self.functions_sentence());
        }
        if let Some((function, explains)) = self.explains_most.as_ref().and_then(|one| Some((one, one.explains?))) {
            let name = name(&function.symbol);
            sentences.push(format!("{name} itself explains {} of the difference.", with_interval(explains)));
        }
        sentences
    }

    fn first(&self) -> String {
        let [baseline, candidate] = self.runs;
        match (self.verdict, self.difference) {
            (Verdict::NotComparable, _) => "Not compared: no samples on one side.".to_owned(),
            (Verdict::TooFew, _) => {
                format!("Too few profiles ({baseline} and {candidate}): a difference needs {} a side.", self.fewest)
            }
            (Verdict::Difference, Some(difference)) => self.located(difference),
            (Verdict::NoDifference, Some(difference)) => {
                let amounts = self.described(difference);
                format!("No difference in CPU time per request is shown ({amounts}).")
            }
            _ => {
                "The CPU time per request is unknown, so shares of the CPU time are compared: where one grows, others \
                  shrink."
                    .to_owned()
            }
        }
    }

    fn located(&self, difference: Difference) -> String {
        let value = signed(difference.value, self.unit);
        match &self.place {
            Some(place) => {
                let share = percent(place.explains.share);
                format!("{share} of the difference of {value} per request is in {}.", path(place))
            }
            None if self.functions.is_empty() => {
                let amounts = self.described(difference);
                format!(
                    "CPU time per request differs ({amounts}), spread over many functions: none differs significantly \
                     by itself."
                )
            }
            None => {
                let amounts = self.described(difference);
                format!("CPU time per request differs ({amounts}), spread over several places: none holds half of it.")
            }
        }
    }

    fn described(&self, difference: Difference) -> String {
        let value = signed(difference.value, self.unit);
        match difference.interval {
            Some(Interval { low, high }) => {
                format!("{value}, 95 % interval {} to {}", signed(low, self.unit), signed(high, self.unit))
            }
            None => value,
        }
    }

    fn functions_sentence(&self) -> String {
        let listed: Vec<String> = self.functions.iter().map(|one| change(one, self.unit)).collect();
        format!("Own time: {}.", listed.join(", "))
    }
}

/// Writes a place: "`caller` → `function`".
fn path(place: &Place) -> String {
    let caller = place.caller.as_ref().map(|caller| format!("{} → ", name(caller)));
    format!("{}{}", caller.unwrap_or_default(), name(&place.symbol))
}

fn change(function: &ChangedFunction, unit: Unit) -> String {
    let name = name(&function.symbol);
    let value = function.difference.value;
    match (function.presence, function.relative) {
        (Presence::New, _) => format!("{name} is new ({})", amount(value, unit)),
        (Presence::Vanished, _) => format!("{name} is gone ({})", amount(value, unit)),
        (Presence::Both, Some(relative)) => {
            let plus = if relative > 0.0 { "+" } else { "" };
            format!("{name} {} ({plus}{})", signed(value, unit), percent(relative))
        }
        (Presence::Both, None) => format!("{name} {}", signed(value, unit)),
    }
}

fn with_interval(explained: Explained) -> String {
    match explained.interval {
        Some(Interval { low, high }) => format!("{} ({} to {})", percent(explained.share), percent(low), percent(high)),
        None => percent(explained.share),
    }
}

/// Writes a name in backticks, an unknown one with its module.
fn name(symbol: &Symbol) -> String {
    let plain = symbol.name.replace('`', "'");
    if symbol.is_unknown() && !symbol.module.is_empty() {
        format!("`{plain} {}`", symbol.module.replace('`', "'"))
    } else {
        format!("`{plain}`")
    }
}
