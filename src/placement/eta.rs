//! When those that wait will begin, as far as it can be told. Pure.

use std::collections::BTreeMap;

/// A run that waits, as far as its beginning depends on it.
#[derive(Clone, Debug)]
pub struct Wait<'a> {
    /// Who can do it and takes runs.
    pub agents: &'a [String],
    /// Who has to be free too, because the load comes from them.
    pub with: &'a [String],
    /// How long it takes, seconds; none if that can't be told.
    pub takes_s: Option<f64>,
}

/// In how many seconds each begins, in the order of the queue; none where nobody can do it, or where that depends on
/// something that takes nobody knows how long. `free_in` says of each agent in how many seconds it is free.
pub fn starts(queue: &[Wait<'_>], free_in: &BTreeMap<String, Option<f64>>) -> Vec<Option<f64>> {
    let mut free_in = free_in.clone();
    queue.iter().map(|wait| start(wait, &mut free_in)).collect()
}

/// In how many seconds one begins; who does it is taken for as long.
fn start(wait: &Wait<'_>, free_in: &mut BTreeMap<String, Option<f64>>) -> Option<f64> {
    let times: Vec<(&String, Option<f64>)> =
        wait.agents.iter().filter_map(|name| Some((name, *free_in.get(name)?))).collect();
    // One of which nobody knows when it is free may be faster than any other, unless another is free now.
    let is_sure = times.iter().all(|(_, free)| free.is_some());
    let first = times
        .iter()
        .min_by(|(_, one), (_, other)| one.unwrap_or(f64::INFINITY).total_cmp(&other.unwrap_or(f64::INFINITY)));
    let (name, start) = first.map(|(name, free)| ((*name).clone(), *free))?;
    let start = start.filter(|start| is_sure || *start <= 0.0);
    // All who do it together begin when the last of them is free.
    let others = wait.with.iter().map(|name| free_in.get(name).copied().flatten());
    let start = others.fold(start, |start, free| start.zip(free).map(|(start, free)| start.max(free)));
    let end = start.zip(wait.takes_s).map(|(start, takes)| start + takes);
    for name in [&name].into_iter().chain(wait.with) {
        free_in.insert(name.clone(), end);
    }
    start
}

#[cfg(test)]
mod tests {
    use super::*;

    fn free(agents: &[(&str, Option<f64>)]) -> BTreeMap<String, Option<f64>> {
        agents.iter().map(|(name, free)| ((*name).to_owned(), *free)).collect()
    }

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn each_begins_where_an_agent_is_free_first() {
        let (both, one, nobody) = (names(&["a", "b"]), names(&["a"]), names(&[]));
        let wait = |agents| Wait { agents, with: &[], takes_s: Some(10.0) };
        let queue = [wait(&both), wait(&both), wait(&nobody), wait(&one), wait(&both)];
        let told = starts(&queue, &free(&[("a", Some(0.0)), ("b", Some(4.0))]));
        assert_eq!(told, [Some(0.0), Some(4.0), None, Some(10.0), Some(14.0)]);
    }

    #[test]
    fn those_who_do_it_together_begin_when_the_last_of_them_is_free() {
        let (rack, load) = (names(&["rack"]), names(&["one", "two"]));
        let wait = |with| Wait { agents: &rack, with, takes_s: Some(10.0) };
        let now = [("rack", Some(0.0)), ("one", Some(0.0)), ("two", Some(7.0))];
        assert_eq!(starts(&[wait(&load), wait(&[])], &free(&now)), [Some(7.0), Some(17.0)]);
        assert_eq!(starts(&[wait(&load)], &free(&now[..2])), [None], "two is not there");
    }

    #[test]
    fn what_is_behind_something_of_unknown_length_is_not_guessed() {
        let one = names(&["a"]);
        let queue =
            [Wait { agents: &one, with: &[], takes_s: None }, Wait { agents: &one, with: &[], takes_s: Some(1.0) }];
        assert_eq!(starts(&queue, &free(&[("a", Some(3.0))])), [Some(3.0), None]);
        let both = names(&["a", "b"]);
        let queue = [Wait { agents: &both, with: &[], takes_s: Some(1.0) }];
        assert_eq!(starts(&queue, &free(&[("a", None), ("b", Some(9.0))])), [None], "a may be faster");
        assert_eq!(starts(&queue, &free(&[("a", None), ("b", Some(0.0))])), [Some(0.0)]);
        assert_eq!(starts(&queue, &free(&[])), [None]);
    }
}
