//! Pages of one experiment: error rates, power and the minimum detectable effect.

use super::table::{Table, few, percent};
use crate::self_check::{
    compare::{self, Pages},
    noise::Within,
    power,
    tally::Share,
    world::{Metrics, Plan},
};

/// Throughput of two targets within one experiment.
pub fn interleaved(rounds: usize) -> String {
    let mut table = Table::new(
        "Within one experiment, two targets, one question",
        "Pages that name a difference, %",
        &[
            "noise, repetitions",
            "A/A",
            "true 2 %",
            "true 5 %",
            "interval contains the truth, %",
            "rank sum of all runs: A/A",
        ],
    );
    for within in Within::ALL {
        for repetitions in [5, 6, 10, 20] {
            let pages =
                |factor, rounds| compare::interleaved(Plan { repetitions, within, factor, ..Plan::USUAL }, rounds, 1);
            let (none, two, five) = (pages(1.0, rounds), pages(1.02, few(rounds)), pages(1.05, few(rounds)));
            let covers = [none, two, five].into_iter().fold(Share::default(), |sum, one| sum.plus(one.covers));
            let figures = percent(&[none.any, two.any, five.any, covers, none.runs_alone]);
            table.line(format!("{}, {repetitions}", within.name()), &figures);
        }
    }
    table.into_text()
}

/// Differences of the size of the minimum detectable effect.
pub fn detectable(rounds: usize) -> String {
    let mut table = Table::new(
        "Minimum detectable effect",
        "True differences of that size that are found (goal: 78 to 82 % with log-normal noise), %",
        &[
            "noise, repetitions",
            "mean of the minimum detectable effect, %",
            "found",
            "with five related metrics, %",
            "found",
        ],
    );
    for within in Within::ALL {
        let repetitions: &[usize] = if within == Within::LogNormal { &[4, 5, 6, 8, 10, 14, 20] } else { &[5, 10, 20] };
        for repetitions in repetitions {
            let power = |metrics| power::detectable(within, *repetitions, metrics, few(rounds), 9);
            let mean = |power: power::Power| {
                power.mean().map_or_else(|| "–".to_owned(), |mean| format!("{:.1}", mean * 100.0))
            };
            let (one, five) = (power(Metrics::One), power(Metrics::Related));
            let figures = [mean(one), one.found.percent(), mean(five), five.found.percent()];
            table.line(format!("{}, {repetitions}", within.name()), &figures);
        }
    }
    table.into_text()
}

/// Pages with more than one question.
pub fn questions(rounds: usize) -> String {
    let mut table = Table::new(
        "Pages with more questions, log-normal noise of 2 %",
        "Pages that name any difference, and comparisons that find a true one in throughput, %",
        &["questions, repetitions", "A/A", "true 2 %", "true 5 %", "true 10 %"],
    );
    for (questions, sizes, metrics) in
        [(1, 1, Metrics::One), (5, 1, Metrics::Five), (15, 3, Metrics::Five), (20, 4, Metrics::Five)]
    {
        for repetitions in [5, 6, 10, 20] {
            let pages = |factor, rounds| -> Pages {
                compare::interleaved(Plan { sizes, repetitions, metrics, factor, ..Plan::USUAL }, rounds, 2)
            };
            let [two, five, ten] = [1.02, 1.05, 1.1].map(|factor| pages(factor, few(rounds)).throughput);
            table.line(format!("{questions}, {repetitions}"), &percent(&[pages(1.0, rounds).any, two, five, ten]));
        }
    }
    table.into_text()
}
