//! Estimates when waiting runs start. Pure.

use std::collections::BTreeMap;

/// What the start of a waiting run depends on.
#[derive(Clone, Debug)]
pub struct Wait<'a> {
    /// The agents that can do it and accept runs.
    pub agents: &'a [String],
    /// The agents that generate its load, which have to be free, too.
    pub with: &'a [String],
    /// Its duration in seconds, if known.
    pub takes_s: Option<f64>,
}

/// Returns in how many seconds each run starts, in queue order.
///
/// `None` if no agent can do the run, or if its start depends on a run of unknown duration. `free_in` has the seconds
/// until each agent is free.
pub fn starts(queue: &[Wait<'_>], free_in: &BTreeMap<String, Option<f64>>) -> Vec<Option<f64>> {
    let mut free_in = free_in.clone();
    queue.iter().map(|wait| start(wait, &mut free_in)).collect()
}

/// Returns in how many seconds a run starts, and marks its agents as busy until its end.
fn start(wait: &Wait<'_>, free_in: &mut BTreeMap<String, Option<f64>>) -> Option<f64> {
    let times: Vec<(&String, Option<f64>)> =
        wait.agents.iter().filter_map(|name| Some((name, *free_in.get(name)?))).collect();
    // An agent that becomes free at an unknown time may be the first, unless another one is free now.
    let is_sure = times.iter().all(|(_, free)| free.is_some());
    let first = times
        .iter()
        .min_by(|(_, one), (_, other)| one.unwrap_or(f64::INFINITY).total_cmp(&other.unwrap_or(f64::INFINITY)));
    let (name, start) = first.map(|(name, free)| ((*name).clone(), *free))?;
    let start = start.filter(|start| is_sure || *start <= 0.0);
    // A distributed run starts when the last of its agents is free.
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
    fn each_run_starts_on_the_agent_that_is_free_first() {
        let (both, one, none) = (names(&["a", "b"]), names(&["a"]), names(&[]));
        let wait = |agents| Wait { agents, with: &[], takes_s: Some(10.0) };
        let queue = [wait(&both), wait(&both), wait(&none), wait(&one), wait(&both)];
        let starts = starts(&queue, &free(&[("a", Some(0.0)), ("b", Some(4.0))]));
        assert_eq!(starts, [Some(0.0), Some(4.0), None, Some(10.0), Some(14.0)]);
    }

    #[test]
    fn a_distributed_run_starts_when_the_last_participant_is_free() {
        let (rack, load) = (names(&["rack"]), names(&["one", "two"]));
        let wait = |with| Wait { agents: &rack, with, takes_s: Some(10.0) };
        let now = [("rack", Some(0.0)), ("one", Some(0.0)), ("two", Some(7.0))];
        assert_eq!(starts(&[wait(&load), wait(&[])], &free(&now)), [Some(7.0), Some(17.0)]);
        assert_eq!(starts(&[wait(&load)], &free(&now[..2])), [None], "two is not connected");
    }

    #[test]
    fn a_start_after_a_run_of_unknown_duration_is_unknown() {
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
