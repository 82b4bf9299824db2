//! What a knee search has measured so far, and its state. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    fit::{self, Fit},
    search::{self, End, Outcome, Step, Tally, Trial},
};
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
    /// State of the search.
    pub state: State,
    /// The highest rate at which the objective holds in at least half of the runs, in iterations per second; null if
    /// none was found (yet).
    pub knee: Option<u32>,
    /// Lower end of the 95 % interval of the knee.
    #[serde(default)]
    pub knee_low: Option<u32>,
    /// Upper end of the 95 % interval of the knee.
    #[serde(default)]
    pub knee_high: Option<u32>,
    /// Describes the state in a sentence.
    pub description: String,
    /// Describes runs that contradict the knee: more missed below its interval, or held above it, than noise explains.
    #[serde(default)]
    pub contradiction: Option<String>,
    /// The measured rates, in the order of their first runs.
    pub path: Vec<RateStep>,
}

/// State of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The search continues.
    Searching,
    /// The knee was found.
    Found,
    /// The objective holds at the highest rate.
    AboveRange,
    /// The objective does not hold at the lowest rate.
    BelowRange,
    /// The generator reached its limit before the target.
    Saturated,
    /// Too many runs of a rate were inconclusive.
    NoFigures,
    /// Too many runs of a rate were suspect. Suspect runs decide nothing.
    Suspect,
    /// The outcome changes more than once as the rate rises, so no single rate is the knee.
    Contradictory,
    /// The results vary too much.
    Unsteady,
    /// The search was cancelled.
    Cancelled,
}

/// One rate of a search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RateStep {
    /// Iterations per second.
    pub rate: u32,
    /// Outcome of the majority of its runs: `held`, `missed` or `saturated`; null until a run is conclusive.
    pub outcome: Option<RateOutcome>,
    /// Number of runs in which the objective held.
    pub held: usize,
    /// Number of conclusive runs.
    pub of: usize,
    /// Whether chance hardly explains its outcome: the rate is outside the 95 % interval of the knee, or, without a
    /// knee, at least three more runs agree than disagree.
    pub confirmed: bool,
    /// Number of suspect runs, which decide nothing.
    #[serde(default)]
    pub suspect: usize,
    /// Median of requests/s.
    pub rps: Option<f64>,
    /// Median of p99, ms.
    pub p99_ms: Option<f64>,
    /// Median of the share of failed requests.
    pub error_rate: Option<f64>,
    /// What is wrong with the first saturated, suspect or inconclusive run.
    pub note: Option<String>,
    /// All its runs, including those that have not ended.
    #[schema(value_type = Vec<String>)]
    pub runs: Vec<RunId>,
}

/// Outcome of the runs of a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RateOutcome {
    /// The objective held.
    Held,
    /// The objective did not hold.
    Missed,
    /// The generator was at its limit.
    Saturated,
}

impl RateOutcome {
    /// Returns the serialized name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Missed => "missed",
            Self::Saturated => "saturated",
        }
    }
}

impl Search {
    /// Returns the description and the contradiction as sentences.
    pub fn sentences(&self) -> String {
        [Some(&self.description), self.contradiction.as_ref()]
            .into_iter()
            .flatten()
            .map(|text| format::capitalize(text))
            .collect::<Vec<_>>()
            .join(". ")
    }
}

impl RateStep {
    /// Formats the rate with thousands separators.
    pub fn rate_text(&self) -> String {
        format::count(Some(u64::from(self.rate))).text().to_owned()
    }

    /// Describes the outcome and the number of runs: `held in 3 of 3, confirmed`.
    pub fn describe(&self) -> String {
        let suspect = match self.suspect {
            0 => String::new(),
            count => format!("{count} suspect"),
        };
        let Some(outcome) = self.outcome else {
            return if suspect.is_empty() { "–".to_owned() } else { suspect };
        };
        let confirmed = if self.confirmed { ", confirmed" } else { "" };
        let confirmed = if suspect.is_empty() { confirmed.to_owned() } else { format!("{confirmed}, {suspect}") };
        match (outcome, self.of) {
            (outcome, 1) => format!("{}{confirmed}", outcome.as_str()),
            (RateOutcome::Held, of) => format!("held in {} of {of}{confirmed}", self.held),
            (outcome, of) => format!("{}, held in {} of {of}{confirmed}", outcome.as_str(), self.held),
        }
    }
}

/// Returns all searches of an experiment, smallest size first, targets in the order of the plan.
pub fn searches(experiment: &Experiment, knee: &Knee, runs: &[Run]) -> Vec<Search> {
    let mut searches = Vec::new();
    for size in sizes(runs) {
        for target in &experiment.plan.targets {
            let own: Vec<&Run> = search_runs(runs, target, &size.name).collect();
            searches.push(search_state(experiment, knee, [target, &size.name], &own));
        }
    }
    searches
}

/// Returns the runs of one target at one size.
pub fn search_runs<'a>(runs: &'a [Run], target: &str, size: &str) -> impl Iterator<Item = &'a Run> {
    runs.iter()
        .filter(move |run| run.spec.target == target && run.spec.size.as_ref().is_some_and(|own| own.name == size))
}

/// Returns the next step for one target at one size, whose runs have all ended.
pub fn next(plan: &Plan, knee: &Knee, own: &[&Run]) -> Step {
    search::next(&knee.rules(plan), &trials(knee, own))
}

fn trials(knee: &Knee, own: &[&Run]) -> Vec<Trial> {
    let ended = own.iter().filter(|run| run.has_ended());
    ended.filter_map(|run| Some(Trial { rate: rate_of(run)?, outcome: judge(run, &knee.objective) })).collect()
}

fn search_state(experiment: &Experiment, knee: &Knee, [target, size]: [&str; 2], own: &[&Run]) -> Search {
    let Experiment { plan, is_open, .. } = experiment;
    let in_progress = own.iter().any(|run| !run.has_ended());
    let mut step = next(plan, knee, own);
    if !in_progress
        && !*is_open
        && matches!(step, Step::Measure(_))
        && let Some(fit) = search::knee_so_far(&knee.rules(plan), &trials(knee, own))
    {
        step = Step::End(End::Knee(fit));
    }
    let (path, is_over) = (rungs(knee, own), !in_progress);
    let state = match &step {
        Step::End(End::Knee(Fit { contradiction: Some(_), .. })) if is_over => State::Contradictory,
        Step::End(end) if is_over => end_state(*end),
        Step::End(_) | Step::Measure(_) if in_progress || *is_open => State::Searching,
        Step::End(_) | Step::Measure(_) => State::Cancelled,
    };
    let fit = match &step {
        Step::End(End::Knee(fit)) if is_over => Some(*fit),
        _ => None,
    };
    let description = match step {
        _ if state == State::Contradictory => "undecided: no single rate is the knee".to_owned(),
        Step::End(end) if is_over => describe_end(end, knee, &path),
        _ if state == State::Cancelled => "cancelled before the knee was found".to_owned(),
        _ => "searching".to_owned(),
    };
    let found = fit.filter(|fit| fit.contradiction.is_none());
    let confirmed = |rung: RateStep| RateStep { confirmed: is_confirmed(&rung, state, found), ..rung };
    Search {
        target: target.to_owned(),
        size: size.to_owned(),
        state,
        knee: found.map(|fit| fit.rate),
        knee_low: found.map(|fit| fit.low),
        knee_high: found.map(|fit| fit.high),
        description,
        contradiction: fit.and_then(|fit| fit.contradiction).map(fit::describe),
        path: path.into_iter().map(confirmed).collect(),
    }
}

/// Whether chance hardly explains the outcome of a rate; only its own runs say so until the search is over.
fn is_confirmed(rung: &RateStep, state: State, found: Option<Fit>) -> bool {
    match found {
        Some(fit) => match rung.outcome {
            Some(RateOutcome::Held) => rung.rate < fit.low,
            Some(RateOutcome::Missed | RateOutcome::Saturated) => rung.rate > fit.high,
            None => false,
        },
        None => rung.confirmed && state != State::Contradictory,
    }
}

fn end_state(end: End) -> State {
    match end {
        End::Knee(_) => State::Found,
        End::AboveRange => State::AboveRange,
        End::BelowRange => State::BelowRange,
        End::Saturated { .. } => State::Saturated,
        End::NoFigures { .. } => State::NoFigures,
        End::Suspect { .. } => State::Suspect,
        End::Unsteady => State::Unsteady,
    }
}

fn describe_end(end: End, knee: &Knee, path: &[RateStep]) -> String {
    let count = |rate: u32| format::count(Some(u64::from(rate))).text().to_owned();
    let rate = |rate: u32| format!("{} iterations/s", count(rate));
    match end {
        End::Knee(Fit { rate: knee, low, high, .. }) => format!(
            "the knee is at {} (95 % interval {} to {}): up to there the objective holds in at least half of the runs",
            rate(knee),
            count(low),
            count(high)
        ),
        End::AboveRange => {
            format!("no knee up to {}: the objective still holds there", rate(knee.to))
        }
        End::BelowRange => format!("no knee: the objective does not hold even at {}", rate(knee.from)),
        End::Saturated { rate: limit, held } => {
            let held = match held {
                Some(held) => format!("the objective holds up to {}", rate(held)),
                None => "no lower rate is in the range".to_owned(),
            };
            format!("no knee: at {} the generator, not the target, is at its limit; {held}", rate(limit))
        }
        End::NoFigures { rate: which } => format!("no knee: too many runs at {} were inconclusive", rate(which)),
        End::Suspect { rate: which } => {
            let rung = path.iter().find(|rung| rung.rate == which);
            let why = rung.and_then(|rung| rung.note.as_deref()).map_or_else(String::new, |why| format!(": {why}"));
            let (suspect, all) = rung.map_or((0, 0), |rung| (rung.suspect, rung.suspect + rung.of));
            format!("undecided: {suspect} of {all} runs at {} were suspect, the first{why}", rate(which))
        }
        End::Unsteady => {
            format!("undecided: the results still vary too much after {} runs", search::MAX_RUNS)
        }
    }
}

fn rungs(knee: &Knee, own: &[&Run]) -> Vec<RateStep> {
    let mut rates: Vec<u32> = Vec::new();
    for rate in own.iter().filter_map(|run| rate_of(run)) {
        if !rates.contains(&rate) {
            rates.push(rate);
        }
    }
    let rung = |rate: u32| {
        let runs: Vec<&Run> = own.iter().copied().filter(|run| rate_of(run) == Some(rate)).collect();
        let mut tally = Tally::default();
        runs.iter().filter(|run| run.has_ended()).for_each(|run| tally.count(judge(run, &knee.objective)));
        let median_of = |figure: fn(&Run) -> Option<f64>| median(runs.iter().filter_map(|run| figure(run)).collect());
        RateStep {
            rate,
            outcome: tally.outcome().and_then(word),
            held: tally.held,
            of: tally.conclusive(),
            confirmed: tally.is_sure(),
            suspect: tally.suspect,
            rps: median_of(|run| run.figures.rps),
            p99_ms: median_of(|run| run.figures.p99_ms),
            error_rate: median_of(|run| run.figures.error_rate),
            note: runs.iter().find_map(|run| explain(run, knee)),
            runs: runs.iter().map(|run| run.id.clone()).collect(),
        }
    };
    rates.into_iter().map(rung).collect()
}

fn word(outcome: Outcome) -> Option<RateOutcome> {
    match outcome {
        Outcome::Held => Some(RateOutcome::Held),
        Outcome::Missed => Some(RateOutcome::Missed),
        Outcome::Saturated => Some(RateOutcome::Saturated),
        Outcome::Suspect | Outcome::Inconclusive => None,
    }
}

fn explain(run: &Run, knee: &Knee) -> Option<String> {
    let needs_note =
        matches!(judge(run, &knee.objective), Outcome::Saturated | Outcome::Suspect | Outcome::Inconclusive);
    if !run.has_ended() || !needs_note {
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
mod tests;
