//! What the past says of the cells of a comparison: the noise of each figure, and whether two cells were measured turn by
//! turn. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    cell::Cell,
    metric::Metric,
    statistics::{self, Noise},
};
use crate::runs::{Run, queries::cells::PastRun};

/// More runs of the past than this tell no more of a cell.
pub const MOST_RUNS: i64 = 200;

/// The figures that have a past. Failures have none: they are none, or something to look at.
pub const METRICS: [Metric; 5] = [Metric::Rps, Metric::P50Ms, Metric::P99Ms, Metric::CpuMs, Metric::Memory];

/// The past of cells, by what identifies them: see [`cell_id`].
pub type History = BTreeMap<String, Vec<PastRun>>;

/// Which runs have a past in common: all but the version is the same, and the load lasts as long.
pub fn cell_id(run: &Run) -> String {
    let size = run.size.as_ref().map(|size| (size.vcpus, size.memory_bytes));
    let Run { target, scenario_sha256, parameters, load, vus, agent, .. } = run;
    serde_json::json!([target, size, scenario_sha256, parameters, load, vus, agent]).to_string()
}

/// One run that counts of each cell, by which its past can be asked for.
pub fn representatives(runs: &[Run]) -> BTreeMap<String, String> {
    let counting = runs.iter().filter(|run| run.counts() && run.experiment.is_some());
    counting.map(|run| (cell_id(run), run.id.clone())).collect()
}

/// The noise of each figure of runs that belong together; of none where they have several pasts, or one that is too short.
pub fn of_runs<'a>(runs: impl Iterator<Item = &'a Run>, history: &History) -> BTreeMap<Metric, Noise> {
    let ids: BTreeSet<String> = runs.map(cell_id).collect();
    let past = ids.first().filter(|_| ids.len() == 1).and_then(|id| history.get(id));
    past.map_or_else(BTreeMap::new, |past| noises(past))
}

fn noises(past: &[PastRun]) -> BTreeMap<Metric, Noise> {
    // Ids of experiments are in the order of their submission.
    let mut experiments: BTreeMap<&str, Vec<&PastRun>> = BTreeMap::new();
    for run in past {
        experiments.entry(&run.experiment).or_default().push(run);
    }
    let noise = |metric: Metric| {
        let of = |runs: &Vec<&PastRun>| runs.iter().filter_map(|run| figure(run, metric)).collect();
        let values: Vec<Vec<f64>> = experiments.values().map(of).collect();
        Some((metric, statistics::noise(values.iter().map(Vec::as_slice))?))
    };
    METRICS.into_iter().filter_map(noise).collect()
}

fn figure(run: &PastRun, metric: Metric) -> Option<f64> {
    match metric {
        Metric::Rps => run.rps,
        Metric::P50Ms => run.p50_ms,
        Metric::P99Ms => run.p99_ms,
        Metric::CpuMs => run.cpu_ms,
        Metric::Memory => run.memory_bytes,
        _ => None,
    }
}

/// How far two sides may lie apart because they were not measured turn by turn, as a share of the baseline's: as far as
/// the one that moves more usually moves from one experiment to the next. None where all their runs are of the same
/// experiments, which move both, or the past does not say.
pub fn drift<'a>(
    one: (impl Iterator<Item = &'a Run>, Option<Noise>),
    other: (impl Iterator<Item = &'a Run>, Option<Noise>),
) -> Option<f64> {
    let ((runs, noise), (others, other_noise)) = (one, other);
    let experiments: BTreeSet<_> = runs.map(|run| &run.experiment).collect();
    if experiments == others.map(|run| &run.experiment).collect() && !experiments.contains(&None) {
        return None;
    }
    let moves = [noise, other_noise].into_iter().flatten().filter_map(|noise| noise.moves);
    moves.max_by(f64::total_cmp)
}

/// The drift of a metric between two cells.
pub fn between(one: &Cell, other: &Cell, metric: Metric) -> Option<f64> {
    let noise = |cell: &Cell| cell.noise.get(&metric).copied();
    drift((one.counting(), noise(one)), (other.counting(), noise(other)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            Comparison, Wishes,
            known::Known,
            made_up::{faster, repeated, run},
            statistics::Standing,
        },
        web::mark::Marks,
    };

    fn of_experiment(experiment: &str, target: &str, factor: f64) -> Vec<Run> {
        let within = |run: Run| Run { experiment: Some(experiment.to_owned()), ..faster(run, factor) };
        repeated(|n| within(run(target, n)))
    }

    /// Twelve experiments, of which every other one was so much faster.
    fn moving(runs: &[Run], by: f64) -> Known {
        let past = |number: u32| {
            let level = if number.is_multiple_of(2) { 10_000.0 } else { 10_000.0 * (1.0 + by) };
            [0.99, 1.0, 1.01].map(|factor| PastRun {
                experiment: format!("past-{number}"),
                rps: Some(level * factor),
                p50_ms: None,
                p99_ms: None,
                cpu_ms: None,
                memory_bytes: None,
            })
        };
        let past: Vec<PastRun> = (0..12).flat_map(past).collect();
        let history = representatives(runs).into_keys().map(|cell| (cell, past.clone())).collect();
        Known { history, ..Known::default() }
    }

    fn throughput(runs: Vec<Run>, known: &Known) -> super::super::cell::Stat {
        let comparison = Comparison::by(runs, &Marks::default(), &Wishes::default(), known);
        comparison.rows[0].cells[1].stat(Metric::Rps).clone()
    }

    #[test]
    fn what_moves_between_experiments_is_no_difference_between_two_of_them() {
        let runs = [of_experiment("monday", "gosherve", 1.0), of_experiment("tuesday", "servy", 1.04)].concat();
        assert_eq!(throughput(runs.clone(), &Known::default()).standing, Some(Standing::Better));
        let told = throughput(runs.clone(), &moving(&runs, 0.05));
        assert_eq!(told.standing, Some(Standing::Unclear));
        assert_eq!(told.hidden().map(|text| text.replace('\u{a0}', " ")).as_deref(), Some("5 %"));
        let calm = throughput(runs.clone(), &moving(&runs, 0.02));
        assert_eq!((calm.standing, calm.hidden()), (Some(Standing::Better), None));
    }

    #[test]
    fn what_was_measured_in_turn_moves_together() {
        let runs = [of_experiment("monday", "gosherve", 1.0), of_experiment("monday", "servy", 1.04)].concat();
        let told = throughput(runs.clone(), &moving(&runs, 0.05));
        assert_eq!((told.standing, told.drift), (Some(Standing::Better), None));
    }

    #[test]
    fn a_page_says_from_where_on_a_difference_is_one() {
        let runs = [of_experiment("monday", "gosherve", 1.0), of_experiment("tuesday", "servy", 1.04)].concat();
        let known = moving(&runs, 0.05);
        let comparison = Comparison::by(runs, &Marks::default(), &Wishes::default(), &known);
        let note = comparison.notes.iter().find(|note| note.title == "Not measured in turn.").expect("a note");
        assert!(note.text.replace('\u{a0}', " ").contains("servy by up to 5 %"), "{}", note.text);
        assert!(comparison.cards[0].detail.contains("not more than from one experiment to the next"));
        assert!(comparison.scatters()[0].1.iter().any(|line| line.noise.is_some()));
    }

    #[test]
    fn runs_of_two_machines_have_no_past_in_common() {
        let mut runs = of_experiment("monday", "servy", 1.0);
        let known = moving(&runs, 0.05);
        assert!(!of_runs(runs.iter(), &known.history).is_empty());
        runs[0].agent = Some("laptop".to_owned());
        assert!(of_runs(runs.iter(), &known.history).is_empty());
    }
}
