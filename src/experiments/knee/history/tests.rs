//! What is shown of a search in each state.

use super::*;
use crate::{
    experiments::{
        describe::tests::{experiment, plan, queued},
        knee::model::tests::{at, knee},
    },
    runs::{load::tests::rate, model::RunSpec},
};

fn knee_experiment() -> Experiment {
    let plan = Plan { targets: vec!["servy".to_owned()], knee: Some(knee()), repetitions: 1, ..plan() };
    Experiment { is_open: true, ..experiment("night", plan) }
}

fn search_of(runs: &[Run]) -> Search {
    searches(&knee_experiment(), &knee(), runs).remove(0)
}

#[test]
fn a_search_lists_its_rates_and_its_end() {
    let mut runs = vec![at("servy", 1_000, 5.0), at("servy", 20_000, 90.0)];
    let search = search_of(&runs);
    assert_eq!((search.state, search.knee, search.description.as_str()), (State::Searching, None, "searching"));
    runs.extend([5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0].map(|p99| at("servy", 4_470, p99)));
    runs.extend([60.0, 70.0, 80.0, 90.0, 91.0, 92.0, 93.0, 94.0].map(|p99| at("servy", 4_600, p99)));
    runs.push(at("gosherve", 4_600, 6.0));
    let search = search_of(&runs);
    assert_eq!((search.state, search.knee), (State::Found, Some(4_530)));
    let (low, high) = (search.knee_low.expect("a rate"), search.knee_high.expect("a rate"));
    assert!((4_400..4_530).contains(&low) && (4_530..4_700).contains(&high), "{low} to {high}");
    let thousands = |rate: u32| format!("{},{:03}", rate / 1_000, rate % 1_000);
    assert_eq!(
        search.sentences(),
        format!(
            "The knee is at 4,530 iterations/s (95 % interval {} to {}): up to there the objective holds in at least \
             half of the runs",
            thousands(low),
            thousands(high)
        )
    );
    let measured: Vec<_> = search.path.iter().map(|rung| (rung.rate, rung.outcome.map(RateOutcome::as_str))).collect();
    let expected = [(1_000, "held"), (20_000, "missed"), (4_470, "held"), (4_600, "missed")];
    assert_eq!(measured, expected.map(|(rate, word)| (rate, Some(word))));
    assert_eq!(search.path[3].describe(), "missed, held in 0 of 8, confirmed");
}

#[test]
fn a_run_that_has_not_ended_has_no_outcome() {
    let waiting = Run { spec: RunSpec { load: Some(rate(20_000, 10.0)), ..queued("servy").spec }, ..queued("servy") };
    let search = search_of(&[at("servy", 1_000, 5.0), waiting]);
    assert_eq!(search.state, State::Searching);
    assert_eq!((search.path[1].outcome, search.path[1].describe().as_str()), (None, "–"));
}

#[test]
fn a_search_of_an_earlier_version_has_a_knee_with_a_wide_interval() {
    let closed = Experiment { is_open: false, ..knee_experiment() };
    let rates = [(1_000, 5.0), (20_000, 90.0), (4_470, 20.0), (4_600, 60.0)];
    let search = searches(&closed, &knee(), &rates.map(|(rate, p99)| at("servy", rate, p99))).remove(0);
    assert_eq!(search.state, State::Found);
    let [low, knee, high] = [search.knee_low, search.knee, search.knee_high].map(|rate| rate.expect("a rate"));
    assert!(low < 4_470 && (4_400..4_700).contains(&knee) && high > 4_600, "{low} {knee} {high}");
}

#[test]
fn a_closed_search_is_cancelled() {
    let closed = Experiment { is_open: false, ..knee_experiment() };
    let search = searches(&closed, &knee(), &[at("servy", 1_000, 5.0)]).remove(0);
    assert_eq!((search.state, search.description.as_str()), (State::Cancelled, "cancelled before the knee was found"));
}
