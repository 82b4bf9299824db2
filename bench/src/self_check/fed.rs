//! What comparisons are fed besides numbers: sides that never met, zeros, and values that were rounded when printed.

use brewbench::{
    compare::{
        cell::Cell, comparison_context::ComparisonContext, metric::Metric, statistics::Decision, view::Comparison,
    },
    gate::model::Outcome,
    metrics,
    runs::{model::Run, verdict::Verdict},
};
use rand::rngs::StdRng;

use super::{
    compare::compare,
    gate::{decide_on, rules},
    noise::normal,
    tally::{Share, rounds},
    world::{BASE, Metrics, OTHER, Plan, at_ms, experiment, history, only},
};

/// Results of simulated pages and of gates on the same runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fed {
    /// Pages that name a difference.
    pub named: Share,
    /// Gates that fail.
    pub fails: Share,
    /// Gates that pass.
    pub passes: Share,
}

/// Runs of a page, whose baseline and candidate a gate judges by a rule, with what is known besides.
struct World {
    baseline: Vec<Run>,
    candidate: Vec<Run>,
    rule: &'static str,
    known: ComparisonContext,
}

fn judged(world: World) -> Fed {
    let World { baseline, candidate, rule, known } = world;
    let mut fed = Fed::default();
    let key = baseline.first().map(|run| match &run.version {
        Some(version) => format!("{}@{version}", run.spec.target),
        None => run.spec.target.clone(),
    });
    let page = compare([baseline.clone(), candidate.clone()].concat(), key.as_deref(), &known);
    fed.named.count(names_any(&page));
    let gate = decide_on(&rules(&[rule]), (baseline, candidate), &known, None);
    fed.fails.count(gate.outcome == Outcome::Regression);
    fed.passes.count(gate.outcome == Outcome::Fine);
    fed
}

fn names_any(page: &Comparison) -> bool {
    let cells = || page.rows.iter().flat_map(|row| &row.cells);
    let names =
        |metric: Metric| cells().any(|cell: &Cell| cell.stat(metric).decision.is_some_and(Decision::is_difference));
    metrics::judged().any(names)
}

fn simulated(count: usize, seed: u64, world: impl Fn(&mut StdRng) -> World + Sync) -> Fed {
    rounds(count, seed, |random| judged(world(random))).into_iter().fold(Fed::default(), |sum, one| Fed {
        named: sum.named.plus(one.named),
        fails: sum.fails.plus(one.fails),
        passes: sum.passes.plus(one.passes),
    })
}

/// One program whose new version is measured by repetitions that are added on the next night; nights differ by 3 %.
pub fn new_version(past: usize, count: usize, seed: u64) -> Fed {
    simulated(count, seed, |random| {
        let night = |number: usize, repetitions: usize, random: &mut StdRng| {
            let offset = 0.03 * normal(random);
            let plan = Plan { repetitions, ..Plan::USUAL };
            only(experiment(&format!("night-{number:03}"), plan, at_ms(number, 0), offset, random), BASE)
        };
        let nightly: Vec<Run> = (0..past).flat_map(|number| night(number, 5, random)).collect();
        let of = |runs: Vec<Run>, version: &str, first: u32| -> Vec<Run> {
            let own = |run: Run| Run {
                experiment: Some("grown".to_owned().into()),
                version: Some(version.to_owned()),
                id: format!("{version}-{}", run.id.as_str()).into(),
                repetition: run.repetition + first,
                ..run
            };
            runs.into_iter().map(own).collect()
        };
        let baseline = of(night(past, 5, random), "1", 0);
        let candidate = of(night(past + 1, 5, random), "2", 5);
        let history = history(&baseline, &nightly);
        World { baseline, candidate, rule: "rps<-1%", known: ComparisonContext { history, ..Default::default() } }
    })
}

/// Equal programs on a machine that is 10 % slower half way; one side's runs are valid before, the other's after.
pub fn halves(count: usize, seed: u64) -> Fed {
    simulated(count, seed, |random| {
        let mut runs = experiment("tonight", Plan { repetitions: 12, ..Plan::USUAL }, at_ms(0, 0), 0.0, random);
        for run in &mut runs {
            let is_late = run.repetition > 6;
            run.figures.rps = run.figures.rps.map(|rps| if is_late { rps * 0.9 } else { rps });
            if is_late == (run.spec.target == BASE) {
                run.verdict = Some(Verdict::Invalid);
            }
        }
        of_both(runs, "rps<-5%")
    })
}

/// Another program takes `factor` times as much CPU time; one of its runs none.
pub fn zeros(factor: f64, count: usize, seed: u64) -> Fed {
    simulated(count, seed, |random| {
        let plan = Plan { repetitions: 8, metrics: Metrics::Five, ..Plan::USUAL };
        let mut runs = experiment("tonight", plan, at_ms(0, 0), 0.0, random);
        for run in runs.iter_mut().filter(|run| run.spec.target == OTHER) {
            run.figures.cpu_ms_per_request = run.figures.cpu_ms_per_request.map(|cpu| cpu * factor);
        }
        if let Some(run) = runs.iter_mut().find(|run| run.spec.target == OTHER) {
            run.figures.cpu_ms_per_request = Some(0.0);
        }
        of_both(runs, "cpu>5%")
    })
}

/// A median latency of `ms` against one of `factor` times as much, printed as whole milliseconds.
pub fn whole_milliseconds(ms: f64, factor: f64, count: usize, seed: u64) -> Fed {
    simulated(count, seed, |random| {
        let plan = Plan { repetitions: 8, noisier: 0.25, metrics: Metrics::Five, ..Plan::USUAL };
        let mut runs = experiment("tonight", plan, at_ms(0, 0), 0.0, random);
        for run in &mut runs {
            let own = if run.spec.target == OTHER { factor } else { 1.0 };
            run.figures.p50_ms = run.figures.p50_ms.map(|p50| (p50 / 4.0 * ms * own).round());
            run.figures.resolution.insert(Metric::P50Ms, 0.5);
        }
        of_both(runs, "p50>20%")
    })
}

fn of_both(runs: Vec<Run>, rule: &'static str) -> World {
    let (baseline, candidate) = (only(runs.clone(), BASE), only(runs, OTHER));
    World { baseline, candidate, rule, known: ComparisonContext::default() }
}
