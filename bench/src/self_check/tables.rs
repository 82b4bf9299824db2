//! The tables of the self-check for the documentation.

use std::fmt::Write;

use super::{
    change_points,
    compare::{self, Nights, Pages},
    gate::{self, Gates, Simulated},
    noise::{Between, Within},
    power,
    tally::Share,
    world::{Metrics, Plan},
};

/// Returns all tables, with `rounds` rounds per row.
pub fn all(rounds: usize) -> anyhow::Result<String> {
    let mut text = String::new();
    for table in [interleaved, detectable, questions, across, gates, gates_across] {
        let _ = writeln!(text, "{}", table(rounds));
        eprintln!("{text}");
        text.push('\n');
    }
    let _ = write!(text, "{}", change_points::markdown(&change_points::table(rounds, 1)?));
    Ok(text)
}

fn plan(within: Within, repetitions: usize, factor: f64) -> Plan {
    Plan { sizes: 1, repetitions, within, metrics: Metrics::One, factor }
}

/// Throughput of two targets within one experiment.
fn interleaved(rounds: usize) -> String {
    let mut text = "Within one experiment, two targets, one question: pages that name a difference, %\n\n\
        | noise | repetitions | A/A | true 2 % | true 5 % | true 10 % | interval contains the truth, % | rank sum of all runs: \
        A/A | true 2 % |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for within in Within::ALL {
        for repetitions in [4, 5, 6, 10, 20] {
            let [none, two, five, ten] =
                [1.0, 1.02, 1.05, 1.1].map(|factor| compare::interleaved(plan(within, repetitions, factor), rounds, 1));
            let covers = [none, two, five, ten].into_iter().fold(Share::default(), |sum, one| sum.plus(one.covers));
            let percent = |pages: Pages| pages.any.percent();
            let _ = writeln!(
                text,
                "| {} | {repetitions} | {} | {} | {} | {} | {} | {} | {} |",
                within.name(),
                percent(none),
                percent(two),
                percent(five),
                percent(ten),
                covers.percent(),
                none.runs_alone.percent(),
                two.runs_alone.percent()
            );
        }
    }
    text
}

/// Differences of the size of the minimum detectable effect.
fn detectable(rounds: usize) -> String {
    let mut text =
        "Minimum detectable effect: share of true differences of that size that are found (goal: 78 to 82 % with \
        log-normal noise), %\n\n| noise | repetitions | minimum detectable effect, mean | found |\n|---|--:|--:|--:|\n"
            .to_owned();
    for within in Within::ALL {
        for repetitions in [4, 5, 6, 8, 10, 14, 20] {
            let power = power::detectable(within, repetitions, rounds, 9);
            let mean = power.mean().map_or_else(|| "–".to_owned(), |mean| format!("{:.1}", mean * 100.0));
            let _ = writeln!(text, "| {} | {repetitions} | {mean} | {} |", within.name(), power.found.percent());
        }
    }
    text
}

/// Pages with more than one test.
fn questions(rounds: usize) -> String {
    let mut text = "Pages with more questions, log-normal noise of 2 %: a difference in throughput is found, %\n\n\
        | questions | repetitions | A/A, any difference | true 2 % | true 5 % | true 10 % |\n|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for (questions, sizes, metrics) in [(1, 1, Metrics::One), (5, 1, Metrics::Five), (20, 4, Metrics::Five)] {
        for repetitions in [5, 6, 8, 10, 20] {
            let plan = |factor| Plan { sizes, metrics, ..plan(Within::LogNormal, repetitions, factor) };
            let [none, two, five, ten] =
                [1.0, 1.02, 1.05, 1.1].map(|factor| compare::interleaved(plan(factor), rounds, 2));
            let _ = writeln!(
                text,
                "| {questions} | {repetitions} | {} | {} | {} | {} |",
                none.any.percent(),
                two.throughput.percent(),
                five.throughput.percent(),
                ten.throughput.percent()
            );
        }
    }
    text
}

/// A baseline of one night and a candidate of the next.
fn across(rounds: usize) -> String {
    let mut text = "Two experiments on two nights, n = 5, run noise 2 %: pages that name a difference, %\n\n\
        | nights | past experiments | A/A | true 5 % | true 10 % | true 20 % | cannot say | interval contains the truth, % | \
        rank sum of the runs alone: A/A |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let kinds = [Between::Nights(0.01), Between::Nights(0.03), Between::RandomWalk(0.01), Between::TwoLevels(0.04)];
    for between in kinds {
        for past in [0, 1, 2, 3, 5, 10, 20, 50] {
            let at = |factor| compare::across(Nights { past, between, factor, ..Nights::USUAL }, rounds, 3);
            let [none, five, ten, twenty] = [1.0, 1.05, 1.1, 1.2].map(at);
            let _ = writeln!(
                text,
                "| {} | {past} | {} | {} | {} | {} | {} | {} | {} |",
                between.name(),
                none.any.percent(),
                five.any.percent(),
                ten.any.percent(),
                twenty.any.percent(),
                none.cannot_say.percent(),
                none.covers.percent(),
                none.runs_alone.percent()
            );
        }
    }
    for gap in [7, 14] {
        let between = Between::RandomWalk(0.01);
        let none = compare::across(Nights { past: 50, gap, between, ..Nights::USUAL }, rounds, 4);
        let _ = writeln!(
            text,
            "| {}, {gap} nights apart | 50 | {} | – | – | – | {} | {} | {} |",
            between.name(),
            none.any.percent(),
            none.cannot_say.percent(),
            none.covers.percent(),
            none.runs_alone.percent()
        );
    }
    text
}

fn line(text: &mut String, what: &str, gates: Gates) {
    let Gates { fine, regression, cannot_say, open, repetitions } = gates;
    let mean =
        if repetitions == 0 { "–".to_owned() } else { format!("{:.1}", repetitions as f64 / fine.total as f64) };
    let _ = writeln!(
        text,
        "| {what} | {} | {} | {} | {} | {mean} |",
        fine.percent(),
        regression.percent(),
        cannot_say.percent(),
        open.hits
    );
}

const GATE_HEAD: &str = "| gate | passes | fails | cannot say | passes with an open interval | mean repetitions |\n\
    |---|--:|--:|--:|--:|--:|\n";

/// Gates within one experiment.
fn gates(rounds: usize) -> String {
    let mut text = format!("The gate within one experiment: exit codes, %\n\n{GATE_HEAD}");
    let three = ["rps<-5%", "p99>10%", "p50>5%"];
    for (noise, noisier) in [(2, 1.0), (14, 7.0)] {
        for repetitions in [5, 10, 20] {
            for factor in [1.0_f64, 0.95, 0.9, 0.8] {
                let simulated = Simulated { repetitions, noisier, factor };
                let change = (factor - 1.0) * 100.0;
                let what = format!("rps<-5%, noise {noise} %, n = {repetitions}, true {change:+.0} %");
                line(&mut text, &what, gate::interleaved(&three[..1], simulated, rounds, 5));
            }
        }
    }
    for factor in [1.0, 0.95, 0.9] {
        let simulated = Simulated { repetitions: 10, noisier: 1.0, factor };
        let what = format!("three rules, noise 2 %, n = 10, true {:+.0} %", (factor - 1.0) * 100.0);
        line(&mut text, &what, gate::interleaved(&three, simulated, rounds, 6));
    }
    for factor in [1.0, 0.97, 0.95, 0.9] {
        let simulated = Simulated { repetitions: 20, noisier: 1.0, factor };
        let what = format!("until decided, at most 20, noise 2 %, true {:+.0} %", (factor - 1.0) * 100.0);
        line(&mut text, &what, gate::until_decided(&three[..1], simulated, rounds, 7));
    }
    text
}

/// Gates on experiments of two nights.
fn gates_across(rounds: usize) -> String {
    let mut text =
        format!("The gate on two nights that differ by 3 %, run noise 2 %, n = 5: exit codes, %\n\n{GATE_HEAD}");
    for sizes in [1, 12] {
        for past in [0, 2, 5, 20] {
            for factor in [1.0, 0.95, 0.8] {
                let nights = Nights { past, sizes, factor, ..Nights::USUAL };
                let change = (factor - 1.0) * 100.0;
                let what = format!("rps<-5%, {sizes} cells, {past} past experiments, true {change:+.0} %");
                line(&mut text, &what, gate::across(&["rps<-5%"], nights, rounds, 8));
            }
        }
    }
    text
}
