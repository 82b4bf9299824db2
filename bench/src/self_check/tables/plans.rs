//! Plans of several targets and sizes.

use super::table::{Table, percent};
use crate::self_check::{
    plans::{Against, decided, enough, named},
    world::{Differ, Plan},
};

/// Noise of 0.5 %, as a factor on that of [`Plan::USUAL`].
const CALM: f64 = 0.25;

/// Pages that all have to decide everything.
const PAGES: usize = 30;

/// The fewest repetitions that decide a threefold difference in every row and metric.
pub fn fewest(_rounds: usize) -> String {
    let mut table = Table::new(
        "Repetitions that a plan needs",
        "Fewest repetitions with which 30 of 30 pages decide a threefold difference in every row and all five metrics, noise \
         0.5 %; \"guaranteed\" is what the page itself asks for so that everything can be decided, whatever else is found",
        &[
            "targets × sizes",
            "all differ",
            "one differs",
            "guaranteed",
            "with a baseline: all differ",
            "one differs",
            "guaranteed",
        ],
    );
    for targets in 2..=5 {
        for sizes in 1..=3 {
            let plan = Plan { targets, sizes, noisier: CALM, factor: 3.0, ..Plan::USUAL };
            let figures = [Against::Each, Against::Baseline].map(|against| {
                let enough = enough(plan, against, 10).to_string();
                [repetitions(plan, Differ::Each, against), repetitions(plan, Differ::Last, against), enough]
            });
            table.line(format!("{targets} × {sizes}"), &figures.concat());
        }
    }
    table.into_text()
}

fn repetitions(plan: Plan, differ: Differ, against: Against) -> String {
    let decides = |repetitions: &usize| {
        let plan = Plan { repetitions: *repetitions, differ, ..plan };
        // Most plans that do not decide fail at once.
        [1, PAGES - 1].into_iter().zip(11..).all(|(pages, seed)| decided(plan, against, pages, seed).hits == pages)
    };
    (4..=10).find(decides).map_or_else(|| "> 10".to_owned(), |repetitions| repetitions.to_string())
}

/// Pages of equal programs.
pub fn equal(rounds: usize) -> String {
    let mut table = Table::new(
        "Pages of equal programs, 3 sizes and five metrics, log-normal noise of 2 %",
        "Pages that name any difference, %",
        &["targets, repetitions", "all pairs", "with a baseline"],
    );
    for targets in [3, 5] {
        for repetitions in [5, 6] {
            let plan = Plan { targets, sizes: 3, repetitions, ..Plan::USUAL };
            let pages = [Against::Each, Against::Baseline].map(|against| named(plan, against, rounds, 12));
            table.line(format!("{targets}, {repetitions}"), &percent(&pages));
        }
    }
    table.into_text()
}
