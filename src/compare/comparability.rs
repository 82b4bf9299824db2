//! Whether the runs of a row were made under like conditions: what was not alike may be the difference that is seen.
//! Pure.
//!
//! Of an experiment that was spread over several machines the cells are balanced: each has as many runs from each machine
//! as the others ([`is_balanced`]). Then the machines differ within every cell and not between them, and as a block is
//! measured by one machine, their difference cancels in the test.

use std::{
    collections::{BTreeMap, BTreeSet},
    str::FromStr,
};

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    cell::{Cell, Row},
    metric::Metric,
    selection::By,
};
use crate::{
    metrics,
    results::environment::{
        difference::{EnvironmentDifference, FactDifference, Weight},
        facts::RunEnvironment,
    },
    runs::model::{Origin, Run},
    web::format,
};

/// Facts about the machines of runs, by the runs' ids, as far as they were looked up.
pub type Environments = BTreeMap<String, RunEnvironment>;

/// Something that should have been alike within a row and was not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct Unlike {
    /// What, e.g. `Agents`.
    pub what: String,
    /// What there is of it, in words.
    pub values: Vec<String>,
    /// Ids of two runs that differ in it.
    pub runs: [String; 2],
}

/// What should be alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circumstance {
    /// The machines that measured.
    Agents,
    /// The machines that the load came from, where it was not the target's own.
    Generators,
    /// Versions of k6.
    K6,
    /// How long was measured.
    Durations,
    /// How long the load lasted before that.
    WarmUps,
    /// What held the targets to their sizes.
    Limits,
    /// Measured by an agent or imported.
    Origins,
    /// Facts of the machine that matter, such as its kernel; not those of the targets.
    Environments,
    /// What requests asked for and got; [`super::equal_work`] says in what it differs.
    Work,
}

impl Circumstance {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Agents,
        Self::Generators,
        Self::K6,
        Self::Durations,
        Self::WarmUps,
        Self::Limits,
        Self::Origins,
        Self::Environments,
        Self::Work,
    ];

    /// The word for addresses and flags.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agents => "agents",
            Self::Generators => "generators",
            Self::K6 => "k6",
            Self::Durations => "durations",
            Self::WarmUps => "warm-ups",
            Self::Limits => "limits",
            Self::Origins => "origins",
            Self::Environments => "environments",
            Self::Work => "work",
        }
    }

    /// At the head of a sentence.
    pub fn title(self) -> &'static str {
        match self {
            Self::Agents => "Agents",
            Self::Generators => "Generators",
            Self::K6 => "k6 versions",
            Self::Durations => "Durations",
            Self::WarmUps => "Warm-ups",
            Self::Limits => "Limits",
            Self::Origins => "Origins",
            Self::Environments => "Machines",
            Self::Work => "Work",
        }
    }

    /// What it was in a run; none where [`unlike_machines`] or [`super::equal_work`] tells.
    pub fn of(self, run: &Run) -> Option<String> {
        let seconds = |seconds: f64| format::duration(Some(seconds)).text().to_owned();
        let known = |value: Option<String>| Some(value.unwrap_or_else(|| "not known".to_owned()));
        match self {
            Self::Agents => known(run.agent.clone()),
            Self::Generators => Some(load_from(run)),
            Self::K6 => known(run.k6_version.clone()),
            Self::Durations => known(run.duration_s.map(seconds)),
            Self::WarmUps if run.warm_up_auto => Some("until the target was steady".to_owned()),
            Self::WarmUps => known(run.warm_up_s.map(seconds)),
            Self::Limits => known(run.enforced.as_ref().map(|by| format!("CPU {}, memory {}", by.cpu, by.memory))),
            Self::Origins => Some(match run.origin {
                Origin::Agent => "measured by an agent".to_owned(),
                Origin::Import => "imported".to_owned(),
            }),
            Self::Environments | Self::Work => None,
        }
    }
}

/// Where the load of a run came from.
fn load_from(run: &Run) -> String {
    if run.generators.is_empty() { "the target’s machine".to_owned() } else { run.generators.join(", ") }
}

impl FromStr for Circumstance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            let all = Self::ALL.map(Self::as_str).join(", ");
            format!("{text:?} can't be accepted; there are {all}")
        })
    }
}

/// All that is unlike between the runs of a row that count. How long was measured is a doubt, and holds nothing back.
pub fn unlike(row: &Row, by: By, environments: &Environments) -> Vec<Unlike> {
    if row.rivals().count() < 2 {
        return Vec::new();
    }
    let runs: Vec<&Run> = row.cells.iter().flat_map(Cell::counting).collect();
    let cells: Vec<Vec<&Run>> = row.rivals().map(|cell| cell.counting().collect()).collect();
    let holds_back = |circumstance: &Circumstance| match circumstance {
        Circumstance::Durations => false,
        // Who compares agents knows that they are not the same.
        Circumstance::Agents => by != By::Agent && !is_balanced(&cells),
        _ => true,
    };
    let parts = Circumstance::ALL.into_iter().filter(holds_back);
    let machines = match by {
        // Those of one agent are to be alike nevertheless.
        By::Agent => cells.iter().find_map(|cell| machines(std::slice::from_ref(cell), environments)),
        _ => unlike_machines(&cells, environments),
    };
    let machines = machines.map(|Machines { facts, runs }| Unlike {
        what: Circumstance::Environments.title().to_owned(),
        values: facts.iter().map(|fact| format!("{} ({})", fact.label, fact.group)).collect(),
        runs,
    });
    parts.filter_map(|part| of_part(&runs, part)).chain(machines).collect()
}

/// Whether every cell has as many runs as the others from each agent within each experiment, for each figure: a figure
/// that only some runs have could be one machine's in one cell and another's in the next. What nobody knows the agent or
/// the experiment of is not balanced: it would have to be taken for the same.
pub fn is_balanced(cells: &[Vec<&Run>]) -> bool {
    metrics::compared().all(|metric| {
        let mut all = cells.iter().map(|cell| shares(cell, metric));
        let first = all.next().flatten();
        first.is_some() && all.all(|other| other == first)
    })
}

/// How many runs of a cell have a figure, by experiment and agent; none where somebody's are not known.
fn shares<'a>(cell: &[&'a Run], metric: Metric) -> Option<BTreeMap<(&'a str, &'a str), usize>> {
    let mut shares = BTreeMap::new();
    for run in cell.iter().filter(|run| metric.of(run).is_some()) {
        *shares.entry((run.experiment.as_deref()?, run.agent.as_deref()?)).or_default() += 1;
    }
    Some(shares)
}

/// Runs of cells that are held against each other, whose machines differ in what matters. Where the cells are balanced,
/// the runs of one agent are to be alike, and not those of several.
pub fn unlike_machines(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
    if !is_balanced(cells) {
        return machines(cells, environments);
    }
    let agents: BTreeSet<&Option<String>> = cells.iter().flatten().map(|run| &run.agent).collect();
    agents.into_iter().find_map(|agent| {
        let of_it = |run: &&Run| run.agent == *agent;
        let own: Vec<Vec<&Run>> = cells.iter().map(|cell| cell.iter().copied().filter(of_it).collect()).collect();
        machines(&own, environments)
    })
}

fn of_part(runs: &[&Run], circumstance: Circumstance) -> Option<Unlike> {
    let mut values: BTreeMap<String, &Run> = BTreeMap::new();
    for run in runs {
        values.entry(circumstance.of(run)?).or_insert(run);
    }
    let mut firsts = values.values();
    let pair = [firsts.next()?.id.clone(), firsts.next()?.id.clone()];
    Some(Unlike { what: circumstance.title().to_owned(), values: values.into_keys().collect(), runs: pair })
}

/// Machines that differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Machines {
    /// In what: each fact once, by name.
    pub facts: Vec<FactDifference>,
    /// Ids of two runs that differ.
    pub runs: [String; 2],
}

/// Runs whose machines differ in what matters, though their agents may be the same: every run of a cell is held against
/// its first, and the firsts against each other. Facts of the targets tell only within a cell, where they should be one
/// program; that those of two cells differ is what is looked at. Which k6 it was is a circumstance of its own.
fn machines(cells: &[Vec<&Run>], environments: &Environments) -> Option<Machines> {
    let known = |run: &&Run| environments.get(&run.id).filter(|known| !known.facts.is_empty());
    let cells: Vec<Vec<&RunEnvironment>> = cells
        .iter()
        .map(|runs| runs.iter().filter_map(known).collect::<Vec<_>>())
        .filter(|cell| !cell.is_empty())
        .collect();
    let within = cells.iter().flat_map(|cell| cell.iter().skip(1).map(|other| (cell[0], *other, true)));
    let between = cells.iter().skip(1).map(|cell| (cells[0][0], cell[0], false));
    let mut facts: BTreeMap<String, FactDifference> = BTreeMap::new();
    let mut pair = None;
    for (one, other, is_one_cell) in within.chain(between) {
        let matters = |fact: &str| !fact.starts_with("k6.") && (is_one_cell || !fact.starts_with("target."));
        let difference = EnvironmentDifference::new(one.clone(), other.clone());
        for fact in difference.of(Weight::Matters).into_iter().filter(|found| matters(&found.fact)) {
            pair.get_or_insert_with(|| [one.run.clone(), other.run.clone()]);
            facts.entry(fact.fact.clone()).or_insert_with(|| fact.clone());
        }
    }
    Some(Machines { facts: facts.into_values().collect(), runs: pair? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            chosen::Options,
            context::Known,
            metric::Metric,
            statistics::{Decision, Lead},
            testing::{faster, judged, repeated, run},
            view::Comparison,
        },
        runs::verdict::Verdict,
        web::series_style::Marks,
    };

    fn both() -> Vec<Run> {
        let mut runs = repeated(|n| run("gosherve", n));
        runs.extend(repeated(|n| faster(run("servy", n), 1.25)));
        runs
    }

    fn knowing(environments: &Environments) -> Known {
        Known { environments: environments.clone(), ..Known::default() }
    }

    fn of(runs: Vec<Run>, environments: &Environments, allow_confounders: bool) -> Comparison {
        let options = Options { allow_confounders, ..Options::default() };
        Comparison::by(runs, &Marks::default(), &options, &knowing(environments))
    }

    fn environment(run: &Run, kernel: &str) -> (String, RunEnvironment) {
        let facts = BTreeMap::from([("kernel".to_owned(), kernel.to_owned())]);
        (run.id.clone(), RunEnvironment { facts, ..RunEnvironment::new(run, None) })
    }

    #[test]
    fn runs_of_two_machines_have_no_winner_until_somebody_says_so() {
        let mut runs = both();
        runs[11].agent = Some("laptop".to_owned());
        let asked = of(runs.clone(), &Environments::new(), false);
        let servy = asked.rows[0].cells[1].stat(Metric::Rps);
        assert_eq!((servy.decision, servy.best), (Some(Decision::NotComparable), false));
        assert_eq!(asked.rows[0].lead(Metric::Rps), Lead::NotComparable);
        assert!(asked.with_confounders.as_deref().is_some_and(|link| link.contains("allow_confounders=true")));
        assert_eq!(asked.rows[0].unlike[0].values, ["bench-01", "laptop"]);
        let told = of(runs, &Environments::new(), true);
        assert_eq!(told.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
        assert!(told.with_confounders.is_none() && told.notes.iter().any(|note| note.title == "Agents differ."));
    }

    /// Runs of one experiment, those of even repetitions on a machine that is a tenth slower.
    fn spread() -> Vec<Run> {
        let of = |run: Run| {
            let run = Run { experiment: Some("night".to_owned()), ..run };
            if run.repetition.is_multiple_of(2) {
                Run { agent: Some("slow".to_owned()), ..faster(run, 0.9) }
            } else {
                run
            }
        };
        both().into_iter().map(of).collect()
    }

    /// What stands of the throughput of the second target, and what was unlike.
    fn verdict(runs: Vec<Run>, environments: &Environments) -> (Option<Decision>, Vec<String>) {
        let row = of(runs, environments, false).rows.remove(0);
        (row.cells[1].stat(Metric::Rps).decision, row.unlike.into_iter().map(|unlike| unlike.what).collect())
    }

    #[test]
    fn cells_with_as_many_runs_from_each_machine_have_a_winner() {
        assert_eq!(verdict(spread(), &Environments::new()), (Some(Decision::Better), Vec::new()));
        let row = of(spread(), &Environments::new(), false).rows.remove(0);
        let of_one_machine = of(both(), &Environments::new(), false).rows.remove(0);
        let width = |row: &Row| row.cells[1].stat(Metric::Rps).effect.and_then(|known| known.width());
        let apart = (width(&row).expect("an interval") - width(&of_one_machine).expect("an interval")).abs();
        assert!(apart < 0.02, "what differs between the machines cancels within the blocks: {apart}");
    }

    #[test]
    fn cells_that_are_out_of_balance_have_none() {
        let held_back = (Some(Decision::NotComparable), vec!["Agents".to_owned()]);
        let told = |change: fn(&mut Vec<Run>)| {
            let mut runs = spread();
            change(&mut runs);
            verdict(runs, &Environments::new())
        };
        let moved = told(|runs| runs[0].agent = Some("slow".to_owned()));
        assert_eq!(moved, held_back, "as many runs, but not of each machine");
        assert_eq!(told(|runs| drop(runs.remove(3))), held_back, "one less of the slow machine");
        assert_eq!(told(|runs| runs.truncate(11)), held_back, "one less of the other target");
        let of_one = told(|runs| {
            for run in &mut runs[..6] {
                run.agent = Some("bench-01".to_owned());
            }
        });
        assert_eq!(of_one, held_back, "one target was measured on one machine only");
        let third = told(|runs| runs[11].agent = Some("third".to_owned()));
        assert_eq!(third, held_back, "a machine that measured one target only");
        let invalid = told(|runs| runs[2] = judged(runs[2].clone(), Verdict::Invalid, "all failed"));
        assert_eq!(invalid, held_back, "one that does not count");
        let unknown = told(|runs| {
            for run in runs.iter_mut().filter(|run| run.repetition == 1) {
                run.agent = None;
            }
        });
        assert_eq!(unknown, held_back, "nobody knows whether it was the same");
        let apart = told(|runs| {
            for run in &mut runs[..6] {
                run.experiment = Some("other".to_owned());
            }
        });
        assert_eq!(apart, held_back, "each target in an experiment of its own");
        assert_eq!(told(|runs| runs[1].figures.p99_ms = None), held_back, "one figure is another mix of machines");
    }

    #[test]
    fn where_cells_are_balanced_each_machine_is_held_against_itself() {
        let kernel = |run: &Run| if run.agent.as_deref() == Some("slow") { "5.10" } else { "6.1" };
        let runs = spread();
        let mut known: Environments = runs.iter().map(|run| environment(run, kernel(run))).collect();
        assert_eq!(verdict(runs.clone(), &known), (Some(Decision::Better), Vec::new()));
        known.extend([environment(&runs[7], "6.2")]);
        assert_eq!(verdict(runs, &known), (Some(Decision::NotComparable), vec!["Machines".to_owned()]));
    }

    #[test]
    fn a_machine_that_got_another_kernel_meanwhile_is_another_machine() {
        let runs = both();
        let alike: Environments = runs.iter().map(|run| environment(run, "6.1")).collect();
        assert!(of(runs.clone(), &alike, false).rows[0].unlike.is_empty());
        let mut changed = alike;
        changed.extend([environment(&runs[7], "6.2")]);
        let unlike = of(runs.clone(), &changed, false).rows[0].unlike.clone();
        assert_eq!(
            (unlike[0].what.as_str(), unlike[0].values.as_slice()),
            ("Machines", ["kernel (System)".to_owned()].as_slice())
        );
        assert_eq!(unlike[0].runs, [runs[6].id.clone(), runs[7].id.clone()], "a cell is held against its first run");
    }

    #[test]
    fn another_program_is_looked_at_between_two_cells_and_told_within_one() {
        let runs = both();
        let of = |sum: fn(&Run) -> String| -> Environments {
            let known = |run: &Run| {
                let facts =
                    BTreeMap::from([("kernel".to_owned(), "6.1".to_owned()), ("target.sha256".to_owned(), sum(run))]);
                // As where one version was built twice.
                let (target, version) = ("servy".to_owned(), None);
                (run.id.clone(), RunEnvironment { target, version, facts, ..RunEnvironment::new(run, None) })
            };
            runs.iter().map(known).collect()
        };
        let unlike = |environments: &Environments| {
            let known = knowing(environments);
            let comparison = Comparison::by(runs.clone(), &Marks::default(), &Options::default(), &known);
            comparison.rows[0].unlike.clone()
        };
        assert_eq!(unlike(&of(|run| run.target.clone())), []);
        assert_eq!(unlike(&of(|run| run.repetition.to_string()))[0].what, "Machines");
    }

    #[test]
    fn runs_whose_circumstances_nobody_knows_are_compared() {
        let unknown = |run: Run| Run { agent: None, k6_version: None, enforced: None, origin: Origin::Import, ..run };
        let comparison = of(both().into_iter().map(unknown).collect(), &Environments::new(), false);
        assert_eq!(comparison.rows[0].cells[1].stat(Metric::Rps).decision, Some(Decision::Better));
    }
}
