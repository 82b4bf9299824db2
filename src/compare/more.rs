//! How many more repetitions would show a smaller difference. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    compare::{
        cell::Row,
        chosen::Options,
        significance,
        statistics::power::{Scatter, detectable_with},
    },
    runs::{
        model::{Origin, Run},
        progress::Typical,
    },
    web::format::{self, plural},
};

/// The differences that are offered, as shares, the largest first.
const GOALS: [f64; 6] = [0.5, 0.2, 0.1, 0.05, 0.02, 0.01];

/// At most this many times the repetitions so far are proposed.
const MAX_GROWTH: usize = 3;

/// At least this many repetitions may be proposed, however few there are.
const MIN_PROPOSED: usize = 12;

/// Repetitions to add to each side.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MoreRepetitions {
    /// How many.
    pub repetitions: usize,
    /// The difference found in 80 % of such comparisons, as a share; null if there are too few for any.
    pub shows: Option<f64>,
}

impl MoreRepetitions {
    /// Returns the fewest that find a smaller difference, of round size, than the `now` repetitions so far.
    pub fn for_less(now: usize, found: f64, scatter: Scatter, level: f64, min_effect: f64) -> Option<Self> {
        let most = (now * MAX_GROWTH).max(MIN_PROPOSED);
        let finds = |repetitions: usize| detectable_with(repetitions, scatter, level, min_effect);
        let best = finds(most)?;
        let goal = GOALS.into_iter().filter(|goal| *goal >= best && *goal < found).next_back()?;
        let needed = (now + 1..=most).find(|repetitions| finds(*repetitions).is_some_and(|found| found <= goal))?;
        Some(Self { repetitions: needed - now, shows: Some(goal) })
    }
}

/// What to add to an experiment whose comparison is not decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Proposal {
    /// The experiment.
    #[schema(value_type = String)]
    pub experiment: ExperimentId,
    /// How many repetitions to add.
    pub repetitions: usize,
    /// What they take and show, e.g. `6 more repetitions (about 2 min) would show a difference of 10 %.`
    pub text: String,
}

impl Proposal {
    /// Proposes what most of the undecided questions need; none unless all runs belong to one experiment.
    pub fn new(rows: &[Row], options: &Options) -> Option<Self> {
        let cells = || rows.iter().flat_map(|row| &row.cells);
        let runs: Vec<&Run> = cells().flat_map(|cell| &cell.runs).collect();
        let experiment = runs.first()?.experiment.clone()?;
        let is_its = |run: &&Run| run.experiment.as_ref() == Some(&experiment) && run.origin == Origin::Agent;
        if !runs.iter().all(is_its) || runs.iter().any(|run| !run.has_ended()) {
            return None;
        }
        let of_row = |row: &Row| {
            let primary = significance::primary(row, options);
            row.compared_cells().filter_map(|cell| cell.stat(primary).more).collect::<Vec<_>>()
        };
        let all: Vec<MoreRepetitions> = rows.iter().flat_map(of_row).collect();
        let most = all.iter().max_by_key(|more| more.repetitions)?;
        let typical = Typical::from_runs(&runs);
        let once: Option<f64> = cells().filter_map(|cell| cell.runs.first()).map(|run| typical.total_s(run)).sum();
        let time = once.map_or_else(String::new, |once| about(once * most.repetitions as f64));
        let shows = match (all.as_slice(), most.shows) {
            ([_], Some(shows)) => format!("a difference of {}", format::percent(Some(shows)).text()),
            (_, Some(_)) => "smaller differences".to_owned(),
            (_, None) => "whether they differ".to_owned(),
        };
        let added = plural(most.repetitions, "more repetition");
        Some(Self { experiment, repetitions: most.repetitions, text: format!("{added}{time} would show {shows}.") })
    }
}

/// ` (about 2 min)`, rounded up to what matters.
fn about(seconds: f64) -> String {
    let step = if seconds < 60.0 { 10.0 } else { 60.0 };
    format!(" (about {})", format::duration(Some((seconds / step).ceil() * step)).text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_and_smaller_difference_is_proposed() {
        let of = |now, found, deviation| MoreRepetitions::for_less(now, found, Scatter::known(deviation), 0.05, 0.01);
        let more = of(6, 0.4, 0.08).expect("more would help");
        let shows = more.shows.expect("a difference");
        assert!(GOALS.contains(&shows) && shows < 0.4 && more.repetitions <= 12, "{more:?}");
        let finds = |repetitions| detectable_with(repetitions, Scatter::known(0.08), 0.05, 0.01).expect("known");
        assert!(finds(6 + more.repetitions) <= shows && finds(5 + more.repetitions) > shows, "{more:?}");
        assert_eq!(of(6, 0.02, 0.08), None, "three times as many find nothing smaller");
        assert_eq!(of(6, 0.011, 0.000_1), None, "what is found already is the smallest that counts");
    }
}
