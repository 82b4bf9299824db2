//! Gates: within one experiment, with added repetitions, and across nights.

use super::table::{Table, change, few};
use crate::self_check::{
    bisection,
    compare::Nights,
    gate::{self, Gates},
    sequential::{self, Looked},
    world::{Metrics, Plan},
};

const RULE: [&str; 1] = ["rps<-5%"];
const THREE_RULES: [&str; 3] = ["rps<-5%", "p99>10%", "p50>5%"];

/// True changes to judge by a limit of −5 %; the first four are allowed.
const FACTORS: [f64; 7] = [1.0, 0.97, 0.96, 0.95, 0.92, 0.9, 0.8];

fn outcome(gates: Gates) -> String {
    assert_eq!(gates.open.hits, 0, "a gate passed although its interval extends beyond the limit");
    format!("{} / {}", gates.fine.percent(), gates.regression.percent())
}

fn columns(first: &'static str, factors: &[f64]) -> Vec<String> {
    [first.to_owned()].into_iter().chain(factors.iter().map(|factor| change(*factor))).collect()
}

/// Gates within one experiment.
pub fn limits(rounds: usize) -> String {
    let columns = columns("rules, noise, repetitions", &FACTORS);
    let mut table = Table::new(
        "The gate within one experiment, by the true change",
        "Passes / fails, %; the others are undecided",
        &columns.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let mut line = |rules: &[&str], plan: Plan, name: String| {
        let gates = FACTORS.iter().map(|factor| {
            let rounds = if *factor > 0.94 { rounds } else { few(rounds) };
            outcome(gate::interleaved(rules, Plan { factor: *factor, ..plan }, rounds, 5))
        });
        table.line(name, &gates.collect::<Vec<_>>());
    };
    for (noise, noisier) in [(2, 1.0), (5, 2.5), (14, 7.0)] {
        for repetitions in [5, 10, 20] {
            let plan = Plan { repetitions, noisier, ..Plan::USUAL };
            line(&RULE, plan, format!("`rps<-5%`, {noise} %, {repetitions}"));
        }
    }
    let plan = Plan { repetitions: 10, metrics: Metrics::Five, ..Plan::USUAL };
    line(&THREE_RULES, plan, format!("`{}`, 2 %, 10", THREE_RULES.join("`, `")));
    table.into_text()
}

/// Gates that add repetitions.
pub fn until_decided(rounds: usize) -> String {
    let mut table = Table::new(
        "The gate with added repetitions",
        "Percent of gates; the last two columns are numbers of reported regressions",
        &[
            "rule, noise, maximum, true change",
            "passes",
            "fails",
            "mean repetitions",
            "not confirmed by a plain gate",
            "page does not say worse",
        ],
    );
    let mut line = |name: String, looked: Looked| {
        let of = |share: crate::self_check::tally::Share| format!("{} of {}", share.hits, share.total);
        let Gates { fine, regression, .. } = looked.gates;
        let figures = [fine.percent(), regression.percent(), format!("{:.1}", looked.mean())];
        table.line(name, &[figures.to_vec(), vec![of(looked.unconfirmed), of(looked.unlike_page)]].concat());
    };
    for (noise, noisier) in [(2, 1.0), (5, 2.5)] {
        for factor in FACTORS {
            let rounds = if factor > 0.94 { rounds } else { few(rounds) };
            let plan = Plan { noisier, factor, ..Plan::USUAL };
            let name = format!("`rps<-5%`, {noise} %, 20, {}", change(factor));
            line(name, sequential::until_decided(&RULE, plan, &[20], rounds, 7));
        }
        let equal = Plan { noisier, factor: 0.999, ..Plan::USUAL };
        for maxima in [[20].as_slice(), &[10, 20, 40]] {
            let name = format!("`rps<-0.1%`, {noise} %, {}, −0.1 %", arrows(maxima));
            line(name, sequential::until_decided(&["rps<-0.1%"], equal, maxima, rounds, 7));
        }
        let at_limit = Plan { factor: 0.95, ..equal };
        for (looks, max_repeat) in [([6, 10, 14, 20, 28, 40].as_slice(), Some(40)), (&[10, 20, 40], None)] {
            let how = if max_repeat.is_some() { "planned" } else { "added" };
            let name = format!("`rps<-5%`, {noise} %, {how} {}, whatever it advises, −5 %", arrows(looks));
            line(name, sequential::regardless(&RULE, at_limit, looks, max_repeat, rounds, 7));
        }
    }
    table.into_text()
}

fn arrows(maxima: &[usize]) -> String {
    maxima.iter().map(ToString::to_string).collect::<Vec<_>>().join(" → ")
}

/// Gates on experiments of two nights.
pub fn nights(rounds: usize) -> String {
    let factors = [1.0, 0.95, 0.8, 0.6];
    let columns = columns("cells, past experiments", &factors);
    let mut table = Table::new(
        "The gate `rps<-5%` on two nights that differ by 3 %, run noise 2 %, n = 5, by the true change",
        "Passes / fails, %; the others are undecided",
        &columns.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    for sizes in [1, 12] {
        for past in [0, 2, 5, 20] {
            let gates = factors.map(|factor| {
                let rounds = if factor > 0.94 && sizes == 1 { rounds } else { few(rounds) };
                outcome(gate::across(&RULE, Nights { past, sizes, factor, ..Nights::USUAL }, rounds, 8))
            });
            table.line(format!("{sizes}, {past}"), &gates);
        }
    }
    table.into_text()
}

/// Bisections of 32 commits.
pub fn bisections(rounds: usize) -> String {
    let mut table = Table::new(
        "Bisections of 32 commits, one of which changes throughput",
        "Percent of bisections with half of the change as the limit; the others are undecided and name the commits that are left",
        &["noise, true change", "found", "a wrong commit", "most steps", "mean repetitions of all steps"],
    );
    for (noise, noisier) in [(2, 1.0), (5, 2.5)] {
        for factor in [0.9, 0.8] {
            let bisections = bisection::among(32, Plan { noisier, factor, ..Plan::USUAL }, 20, few(rounds), 9);
            let figures = [
                bisections.found.percent(),
                bisections.wrong.percent(),
                bisections.most_steps.to_string(),
                format!("{:.0}", bisections.mean()),
            ];
            table.line(format!("{noise} %, {}", change(factor)), &figures);
        }
    }
    table.into_text()
}
