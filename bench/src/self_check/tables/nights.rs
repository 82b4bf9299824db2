//! Pages of experiments of two nights.

use super::table::{Table, few, percent};
use crate::self_check::{
    compare::{Nights, across},
    gate,
    noise::Between,
};

/// A baseline of one night and a candidate of the next.
pub fn two(rounds: usize) -> String {
    let mut table = Table::new(
        "Two experiments on two nights, n = 5, run noise 2 %",
        "Pages that name a difference, and gates, %",
        &[
            "nights, past experiments",
            "A/A",
            "true 10 %",
            "true 20 %",
            "too little data",
            "interval contains the truth, %",
            "rank sum of the runs alone: A/A",
            "gate `rps<-5%` fails A/A",
        ],
    );
    let kinds = [
        Between::Nights(0.01),
        Between::Nights(0.03),
        Between::RandomWalk(0.01),
        Between::TwoLevels(0.04),
        Between::HeavyTails(0.03),
        Between::BadNights(0.15),
    ];
    for between in kinds {
        for past in [1, 2, 3, 5, 9, 20, 50] {
            let nights = |factor| Nights { past, between, factor, ..Nights::USUAL };
            let at = |factor, rounds| across(nights(factor), rounds, 3);
            let (none, ten, twenty) = (at(1.0, rounds), at(1.1, few(rounds)), at(1.2, few(rounds)));
            let fails = gate::across(&["rps<-5%"], nights(1.0), rounds, 15).regression;
            let pages = [none.any, ten.any, twenty.any, none.cannot_say, none.covers, none.runs_alone, fails];
            table.line(format!("{}, {past}", between.name()), &percent(&pages));
        }
    }
    let mut equal = |name: String, nights: Nights| {
        let none = across(nights, rounds, 4);
        let mut figures =
            percent(&[none.any, none.any, none.any, none.cannot_say, none.covers, none.runs_alone, none.any]);
        for place in [1, 2, 6] {
            "–".clone_into(&mut figures[place]);
        }
        table.line(name, &figures);
    };
    for gap in [7, 14] {
        let between = Between::RandomWalk(0.01);
        let nights = Nights { past: 50, gap, between, ..Nights::USUAL };
        equal(format!("{}, {gap} nights apart, 50", between.name()), nights);
    }
    for (between, past) in
        [(Between::TwoLevels(0.04), 3), (Between::TwoLevels(0.04), 9), (Between::HeavyTails(0.03), 9)]
    {
        let nights = Nights { past, between, shifted_ms: 2 * 3_600_000, ..Nights::USUAL };
        equal(format!("{}, starts 2 h earlier or later, {past}", between.name()), nights);
    }
    table.into_text()
}

/// Several experiments a side in one night.
pub fn together(rounds: usize) -> String {
    let mut table = Table::new(
        "Several experiments a side in one night, nights 3 %, n = 5, past 12",
        "Pages that name a difference, and gates `rps<-5%`, %",
        &[
            "experiments a side",
            "A/A",
            "true 20 %",
            "interval contains the truth, %",
            "gate passes a true −5 %",
            "gate fails A/A",
        ],
    );
    for together in [1, 2, 3, 5] {
        let nights = |factor| Nights { past: 12, together, factor, ..Nights::USUAL };
        let gates = |factor| gate::across(&["rps<-5%"], nights(factor), rounds, 14);
        let none = across(nights(1.0), rounds, 13);
        let found = across(nights(1.2), few(rounds), 13);
        let figures = [none.any, found.any, none.covers, gates(0.95).fine, gates(1.0).regression];
        table.line(together, &percent(&figures));
    }
    table.into_text()
}
