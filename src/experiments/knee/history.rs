//! What a search for the knee has measured so far, and how it stands. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::search::{self, End, Outcome, Step, Tally, Tried};
use crate::{
    app::ids::RunId,
    experiments::{
        knee::model::{Knee, judge, rate_of},
        model::Experiment,
        plan::{Plan, sizes},
    },
    runs::model::Run,
    web::format,
};

/// The search of one target at one size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Search {
    /// Name of the target.
    pub target: String,
    /// Name of the machine size.
    pub size: String,
    /// How it stands.
    pub state: State,
    /// The highest rate at which the objective holds, iterations per second; null until it is found, and where there is
    /// none.
    pub knee: Option<u32>,
    /// All of that in a sentence.
    pub told: String,
    /// The rates that were measured, in the order in which they were first tried.
    pub path: Vec<Rung>,
}

/// How a search stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It goes on.
    Searching,
    /// There it is.
    Found,
    /// The objective holds at the highest rate.
    AboveRange,
    /// It does not hold at the lowest.
    BelowRange,
    /// The generator was at its limit before the target.
    Saturated,
    /// Runs of a rate came to nothing.
    NoFigures,
    /// Rates said now this and now that.
    Unsteady,
    /// It was ended before.
    Cancelled,
}

/// One rate of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Rung {
    /// Iterations per second.
    pub rate: u32,
    /// What most of its runs say: `held`, `missed` or `saturated`; null until one says something.
    pub outcome: Option<Word>,
    /// Runs in which the objective held.
    pub held: usize,
    /// Runs that say something.
    pub of: usize,
    /// Whether these are as many as are asked for.
    pub confirmed: bool,
    /// The median of requests/s.
    pub rps: Option<f64>,
    /// The median of p99, ms.
    pub p99_ms: Option<f64>,
    /// The median of the share of requests that failed.
    pub error_rate: Option<f64>,
    /// What is wrong with the first run that did not simply hold or miss.
    pub note: Option<String>,
    /// Its runs, those that have not ended too.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
}

/// What the runs of a rate say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// The objective held.
    Held,
    /// It did not.
    Missed,
    /// The generator was at its limit.
    Saturated,
}

impl Word {
    /// The word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Missed => "missed",
            Self::Saturated => "saturated",
        }
    }
}

impl Search {
    /// How it stands, as a sentence begins.
    pub fn sentence(&self) -> String {
        let mut letters = self.told.chars();
        letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
    }
}

impl Rung {
    /// The rate with its commas.
    pub fn rate_text(&self) -> String {
        format::count(Some(u64::from(self.rate))).text().to_owned()
    }

    /// What most of its runs say, and how many there are: `held in 3 of 3, confirmed`.
    pub fn words(&self) -> String {
        let Some(outcome) = self.outcome else { return "–".to_owned() };
        let confirmed = if self.confirmed { ", confirmed" } else { "" };
        match (outcome, self.of) {
            (outcome, 1) => format!("{}{confirmed}", outcome.as_str()),
            (Word::Held, of) => format!("held in {} of {of}{confirmed}", self.held),
            (outcome, of) => format!("{}, held in {} of {of}{confirmed}", outcome.as_str(), self.held),
        }
    }
}

/// All searches of an experiment, the smallest size first, the targets as in its plan.
pub fn searches(experiment: &Experiment, knee: &Knee, runs: &[Run]) -> Vec<Search> {
    let mut searches = Vec::new();
    for size in sizes(runs) {
        for target in &experiment.plan.targets {
            let own: Vec<&Run> = lane(runs, target, &size.name).collect();
            searches.push(of_lane(experiment, knee, [target, &size.name], &own));
        }
    }
    searches
}

/// The runs of one target at one size.
pub fn lane<'a>(runs: &'a [Run], target: &str, size: &str) -> impl Iterator<Item = &'a Run> {
    runs.iter().filter(move |run| run.target == target && run.size.as_ref().is_some_and(|own| own.name == size))
}

/// What is to be done next for one target at one size, whose runs have all ended.
pub fn next(plan: &Plan, knee: &Knee, own: &[&Run]) -> Step {
    search::next(&knee.rules(plan), &tried(knee, own))
}

fn tried(knee: &Knee, own: &[&Run]) -> Vec<Tried> {
    let ended = own.iter().filter(|run| run.has_ended());
    ended.filter_map(|run| Some(Tried { rate: rate_of(run)?, outcome: judge(run, &knee.objective) })).collect()
}

fn of_lane(experiment: &Experiment, knee: &Knee, [target, size]: [&str; 2], own: &[&Run]) -> Search {
    let Experiment { plan, is_open, .. } = experiment;
    let under_way = own.iter().any(|run| !run.has_ended());
    let step = next(plan, knee, own);
    let (state, found) = match &step {
        Step::End(end) if !under_way => ended(*end),
        Step::End(_) | Step::Measure(_) if under_way || *is_open => (State::Searching, None),
        Step::End(_) | Step::Measure(_) => (State::Cancelled, None),
    };
    let told = match step {
        Step::End(end) if !under_way => told(end, knee),
        _ if state == State::Cancelled => "ended before it was found".to_owned(),
        _ => "searching".to_owned(),
    };
    Search { target: target.to_owned(), size: size.to_owned(), state, knee: found, told, path: rungs(plan, knee, own) }
}

fn ended(end: End) -> (State, Option<u32>) {
    match end {
        End::Knee { rate, .. } => (State::Found, Some(rate)),
        End::AboveRange => (State::AboveRange, None),
        End::BelowRange => (State::BelowRange, None),
        End::Saturated { .. } => (State::Saturated, None),
        End::NoFigures { .. } => (State::NoFigures, None),
        End::Unsteady => (State::Unsteady, None),
    }
}

fn told(end: End, knee: &Knee) -> String {
    let rate = |rate: u32| format!("{} iterations/s", format::count(Some(u64::from(rate))).text());
    match end {
        End::Knee { rate: held, above } => {
            format!("the knee is at {}: the objective holds there, and no longer at {}", rate(held), rate(above))
        }
        End::AboveRange => {
            format!("no knee up to {}: the objective still holds there", rate(knee.to))
        }
        End::BelowRange => format!("no knee from {} on: the objective does not hold even there", rate(knee.from)),
        End::Saturated { rate: limit, held } => {
            let held = match held {
                Some(held) => format!("the objective holds up to {}", rate(held)),
                None => "nothing below was asked for".to_owned(),
            };
            format!("no knee: at {} the generator is at its limit, not the target; {held}", rate(limit))
        }
        End::NoFigures { rate: which } => format!("no knee: runs at {} came to nothing again and again", rate(which)),
        End::Unsteady => {
            format!("no knee: after {} runs it is still not clear where the objective holds", search::MOST_RUNS)
        }
    }
}

fn rungs(plan: &Plan, knee: &Knee, own: &[&Run]) -> Vec<Rung> {
    let mut rates: Vec<u32> = Vec::new();
    for rate in own.iter().filter_map(|run| rate_of(run)) {
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    let confirm = knee.rules(plan).confirm;
    let rung = |rate: u32| {
        let runs: Vec<&Run> = own.iter().copied().filter(|run| rate_of(run) == Some(rate)).collect();
        let mut tally = Tally::default();
        runs.iter().filter(|run| run.has_ended()).for_each(|run| tally.count(judge(run, &knee.objective)));
        let middle = |figure: fn(&Run) -> Option<f64>| median(runs.iter().filter_map(|run| figure(run)).collect());
        Rung {
            rate,
            outcome: tally.outcome().and_then(word),
            held: tally.held,
            of: tally.said(),
            confirmed: tally.said() >= confirm,
            rps: middle(|run| run.figures.rps),
            p99_ms: middle(|run| run.figures.p99_ms),
            error_rate: middle(|run| run.figures.error_rate),
            note: runs.iter().find_map(|run| note(run, knee)),
            runs: runs.iter().map(|run| run.id.clone()).collect(),
        }
    };
    rates.into_iter().map(rung).collect()
}

fn word(outcome: Outcome) -> Option<Word> {
    match outcome {
        Outcome::Held => Some(Word::Held),
        Outcome::Missed => Some(Word::Missed),
        Outcome::Saturated => Some(Word::Saturated),
        Outcome::Nothing => None,
    }
}

fn note(run: &Run, knee: &Knee) -> Option<String> {
    let odd = matches!(judge(run, &knee.objective), Outcome::Saturated | Outcome::Nothing);
    if !run.has_ended() || !odd {
        return None;
    }
    run.error.clone().or_else(|| run.because().map(|reason| reason.text.clone()))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let count = values.len();
    (count > 0).then(|| f64::midpoint(values[(count - 1) / 2], values[count / 2]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        experiments::{
            describe::tests::{experiment, plan, queued},
            knee::model::tests::{at, knee},
        },
        runs::load::tests::rate,
    };

    fn asked() -> Experiment {
        let plan = Plan { targets: vec!["servy".to_owned()], knee: Some(knee()), repetitions: 1, ..plan() };
        Experiment { is_open: true, ..experiment("night", plan) }
    }

    fn told_of(runs: &[Run]) -> Search {
        searches(&asked(), &knee(), runs).remove(0)
    }

    #[test]
    fn a_search_tells_its_path_and_where_it_ended() {
        let mut runs = vec![at("servy", 1_000, 5.0), at("servy", 20_000, 90.0)];
        let search = told_of(&runs);
        assert_eq!((search.state, search.knee, search.told.as_str()), (State::Searching, None, "searching"));
        runs.push(at("servy", 4_470, 20.0));
        runs.push(at("servy", 4_600, 60.0));
        runs.push(at("gosherve", 4_600, 6.0));
        let search = told_of(&runs);
        assert_eq!((search.state, search.knee), (State::Found, Some(4_470)));
        assert_eq!(
            search.told,
            "the knee is at 4,470 iterations/s: the objective holds there, and no longer at 4,600 iterations/s"
        );
        let tried: Vec<_> = search.path.iter().map(|rung| (rung.rate, rung.outcome.map(Word::as_str))).collect();
        let expected = [(1_000, "held"), (20_000, "missed"), (4_470, "held"), (4_600, "missed")];
        assert_eq!(tried, expected.map(|(rate, word)| (rate, Some(word))));
        assert_eq!((search.path[3].p99_ms, search.path[3].words().as_str()), (Some(60.0), "missed, confirmed"));
    }

    #[test]
    fn what_has_not_ended_says_nothing_yet() {
        let waits = Run { load: Some(rate(20_000, 10.0)), ..queued("servy") };
        let search = told_of(&[at("servy", 1_000, 5.0), waits]);
        assert_eq!(search.state, State::Searching);
        assert_eq!((search.path[1].outcome, search.path[1].words().as_str()), (None, "–"));
    }

    #[test]
    fn a_search_that_was_ended_is_told_as_that() {
        let closed = Experiment { is_open: false, ..asked() };
        let search = searches(&closed, &knee(), &[at("servy", 1_000, 5.0)]).remove(0);
        assert_eq!((search.state, search.told.as_str()), (State::Cancelled, "ended before it was found"));
    }
}
