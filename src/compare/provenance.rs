//! Where imported runs come from, in a sentence: one wording for pages, lists, reports, gates and commands. Pure.

use std::collections::BTreeSet;

use super::notes::listed;
use crate::{
    runs::model::{Origin, Run},
    web::{format::plural, time_ago::day},
};

/// Returns the sentence: `All 8 runs were imported from k6 summaries by ada on 2026-11-27; order as stated.` None if no run
/// was imported.
pub fn sentence<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<String> {
    let (imported, measured): (Vec<&Run>, Vec<&Run>) = runs.partition(|run| run.origin == Origin::Import);
    let all = plural(imported.len() + measured.len(), "run");
    let count = match (imported.len(), measured.len()) {
        (0, _) => return None,
        (1, 0) => "The only run was".to_owned(),
        (1, _) => format!("1 of {all} was"),
        (_, 0) => format!("All {all} were"),
        (some, _) => format!("{some} of {all} were"),
    };
    let distinct = |of: fn(&Run) -> String| imported.iter().map(|run| of(run)).collect::<BTreeSet<String>>();
    let results = listed(distinct(results).into_iter());
    // Outside a login, users are not named.
    let users = listed(distinct(|run| run.created_by.clone()).into_iter().filter(|name| !name.is_empty()));
    let by = if users.is_empty() { users } else { format!(" by {users}") };
    let order = if imported.len() > 1 { order(&imported) } else { String::new() };
    Some(format!("{count} imported from {results}{by}{}{order}.", days(&imported)))
}

/// What was imported: `k6 summaries`, `wrk results`.
fn results(run: &Run) -> String {
    match run.engine.as_ref().map(|engine| engine.name.as_str()) {
        Some("k6") => "k6 summaries".to_owned(),
        Some(name) if name != "unknown" => format!("{name} results"),
        _ => "results of an unknown tool".to_owned(),
    }
}

/// When, in UTC.
fn days(imported: &[&Run]) -> String {
    let days: BTreeSet<String> = imported.iter().filter_map(|run| day(run.queued_at_ms)).collect();
    match (days.first(), days.last()) {
        (Some(first), Some(last)) if first == last => format!(" on {first}"),
        (Some(first), Some(last)) => format!(" between {first} and {last}"),
        _ => String::new(),
    }
}

/// Nobody here saw in which order they were measured; the index of a folder may state it.
fn order(imported: &[&Run]) -> String {
    match imported.iter().filter(|run| run.interleaved).count() {
        0 => "; order unknown".to_owned(),
        stated if stated == imported.len() => "; order as stated".to_owned(),
        stated => format!("; order as stated for {stated}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::model::Engine, runs::testing::finished};

    fn imported(target: &str, repetition: u32) -> Run {
        Run { origin: Origin::Import, queued_at_ms: 1_795_760_432_295, ..finished(target, repetition) }
    }

    fn of(runs: &[Run]) -> Option<String> {
        sentence(runs.iter())
    }

    #[test]
    fn measured_runs_have_no_sentence() {
        assert_eq!(of(&[finished("a", 1)]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn format_user_date_and_order_are_named() {
        let two = [imported("a", 1), imported("b", 1)];
        let expected = "All 2 runs were imported from k6 summaries by ada on 2026-11-27; order as stated.";
        assert_eq!(of(&two).as_deref(), Some(expected));
        let engine = Some(Engine { name: "wrk".to_owned(), version: None });
        let other = Run {
            engine,
            created_by: "bob".to_owned(),
            queued_at_ms: two[0].queued_at_ms + 86_400_000,
            interleaved: false,
            ..two[1].clone()
        };
        let mixed = [two[0].clone(), other, finished("c", 1)];
        let expected = "2 of 3 runs were imported from k6 summaries and wrk results by ada and bob between 2026-11-27 and \
                        2026-11-28; order as stated for 1.";
        assert_eq!(of(&mixed).as_deref(), Some(expected));
    }

    #[test]
    fn what_is_not_known_is_left_out() {
        let unnamed = Run { created_by: String::new(), engine: None, ..imported("a", 1) };
        let expected = "The only run was imported from results of an unknown tool on 2026-11-27.";
        assert_eq!(of(&[unnamed]).as_deref(), Some(expected));
        let apart = [1, 2].map(|n| Run { interleaved: false, ..imported("a", n) });
        let expected = "All 2 runs were imported from k6 summaries by ada on 2026-11-27; order unknown.";
        assert_eq!(of(&apart).as_deref(), Some(expected));
    }
}
