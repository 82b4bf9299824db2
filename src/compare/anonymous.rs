//! Hides names from readers without access to the site: of agents, because they name machines, and of users. Pure.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem,
};

use super::{
    chosen::Options,
    past::{History, cell_id},
    selection::By,
};
use crate::{differences::AcceptedDifference, runs::model::Run};

/// Numbers the agents of runs instead of naming them: before the runs are compared, so that nothing derived from them
/// has a name. The numbers have the order of the names, so that the comparison is the same.
pub fn hide_agents(runs: &mut [Run], history: &mut History, options: &mut Options) {
    let names = numbered(runs);
    let hide = |name: &mut String| {
        if let Some(number) = names.get(name) {
            name.clone_from(number);
        }
    };
    if options.by == By::Agent {
        options.baseline.iter_mut().for_each(hide);
    }
    // A number may be the name of another agent, so the past is not renamed in place.
    let past = mem::take(history);
    for run in runs {
        let own = past.get(&cell_id(run)).cloned();
        run.agent.iter_mut().chain(&mut run.spec.generators).for_each(hide);
        history.extend(own.map(|own| (cell_id(run), own)));
        let reasons = run.reasons.iter_mut().map(|reason| &mut reason.text);
        for text in run.error.iter_mut().chain(reasons) {
            *text = without(text, &names);
        }
    }
}

/// Removes the names of users: who imported runs, and who accepted differences.
pub fn hide_users(runs: &mut [Run], accepted: &mut [AcceptedDifference]) {
    for run in runs {
        run.created_by.clear();
    }
    for difference in accepted {
        difference.accepted_by.clear();
    }
}

fn numbered(runs: &[Run]) -> BTreeMap<String, String> {
    let all: BTreeSet<&String> = runs.iter().flat_map(|run| run.agent.iter().chain(&run.spec.generators)).collect();
    let width = all.len().to_string().len();
    all.into_iter().zip(1..).map(|(name, number)| (name.clone(), format!("agent {number:0width$}"))).collect()
}

/// Replaces names that are words of a text, the longest first.
fn without(text: &str, names: &BTreeMap<String, String>) -> String {
    let (mut rest, mut hidden) = (text, String::with_capacity(text.len()));
    while let Some(letter) = rest.chars().next() {
        let starts_word = !hidden.ends_with(char::is_alphanumeric);
        let ends_word = |name: &str| !rest[name.len()..].starts_with(char::is_alphanumeric);
        let found = names.iter().filter(|(name, _)| starts_word && rest.starts_with(*name) && ends_word(name));
        let (taken, shown) = found
            .max_by_key(|(name, _)| name.len())
            .map_or_else(|| (letter.len_utf8(), &rest[..letter.len_utf8()]), |(name, shown)| (name.len(), shown));
        hidden.push_str(shown);
        rest = &rest[taken..];
    }
    hidden
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_hidden_where_they_are_words() {
        let names = ["rack", "rack-1", "\u{e4}"].map(|name| (name.to_owned(), name.replace(name, "agent X")));
        let names = BTreeMap::from(names);
        for (text, hidden) in [
            ("rack stopped", "agent X stopped"),
            ("rack-1: lost, rack: lost", "agent X: lost, agent X: lost"),
            ("\u{e4}", "agent X"),
            ("racks, b\u{e4}r and crack", "racks, b\u{e4}r and crack"),
            ("", ""),
        ] {
            assert_eq!(without(text, &names), hidden);
        }
    }
}
