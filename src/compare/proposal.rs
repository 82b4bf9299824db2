//! What to measure next if a comparison is not decided. Pure.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    app::ids::ExperimentId,
    compare::{cell::Row, chosen::Options, more::MoreRepetitions, significance},
    runs::{
        model::{Origin, Run},
        progress::Typical,
    },
    web::format::{self, plural},
};

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
    use crate::{
        compare::{
            comparison_context::ComparisonContext,
            testing::{faster, run},
            view::Comparison,
        },
        web::series_style::Marks,
    };

    fn proposed(change: impl Fn(Run) -> Run, is_knee_search: bool) -> Option<Proposal> {
        let runs = vec![run("gosherve", 1), change(faster(run("servy", 1), 2.0))];
        let known = ComparisonContext { is_knee_search, ..ComparisonContext::default() };
        Comparison::by(runs, &Marks::default(), &Options::default(), &known).answer.more
    }

    #[test]
    fn an_undecided_experiment_is_offered_repetitions_with_their_time() {
        let proposal = proposed(|run| run, false).expect("a proposal");
        assert_eq!((proposal.repetitions, proposal.experiment.as_str()), (4, "night"));
        let expected = "4 more repetitions (about 3 min) would show whether they differ.";
        assert_eq!(proposal.text.replace('\u{a0}', " "), expected);
    }

    #[test]
    fn nothing_is_offered_where_repetitions_cannot_be_added() {
        assert_eq!(proposed(|run| run, true), None, "a knee search");
        let elsewhere = |run: Run| Run { experiment: Some("day".to_owned().into()), ..run };
        assert_eq!(proposed(elsewhere, false), None, "two experiments");
        assert_eq!(proposed(|run| Run { origin: Origin::Import, ..run }, false), None, "an import");
    }
}
