//! Trends that are searched each night, and knees of sweeps.

use super::table::{Table, few, percent};
use crate::self_check::{
    nightly::{World, looks, quantile},
    sweep_knees::sweeps,
};

/// Histories of 60 experiments, searched after each.
pub fn nightly(rounds: usize) -> String {
    let mut table = Table::new(
        "Trends: nightly looks",
        "Histories of 60 experiments, searched after each, that show a change in some night, %; nights from a true change until it is shown and confirmed: median (nine of ten)",
        &["history", "shown", "confirmed", "nights until shown", "nights until confirmed"],
    );
    for world in World::ALL {
        let is_step = matches!(world, World::Step(_));
        let found = looks(world, if is_step { few(rounds) } else { rounds }, 21);
        let nights = |all: &[usize]| match (quantile(all, 0.5), quantile(all, 0.9)) {
            (Some(half), Some(most)) if is_step => format!("{half} ({most})"),
            _ => "–".to_owned(),
        };
        let shares = percent(&[found.shown, found.confirmed]);
        let times = [nights(&found.until_shown), nights(&found.until_confirmed)];
        table.line(world.name(), &[shares, times.to_vec()].concat());
    }
    table.into_text()
}

/// Sweeps of six loads and two targets.
pub fn knees(rounds: usize) -> String {
    let mut table = Table::new(
        "Sweep knees",
        "Sweeps of six loads and two targets, %; \"medians\": the lowest load whose median is within 5 % of the highest",
        &[
            "noise, repetitions",
            "equal targets: knees differ",
            "the same by medians",
            "range holds the knee",
            "one load",
            "mean loads in the range",
            "knees two loads apart: differ",
        ],
    );
    for noise in [0.01, 0.03, 0.08, 0.15] {
        for repetitions in [5, 6, 8] {
            let equal = sweeps(false, noise, repetitions, rounds, 22);
            let later = sweeps(true, noise, repetitions, few(rounds), 23);
            let mut figures = percent(&[equal.differ, equal.medians_differ, equal.covers, equal.single]);
            figures.extend([format!("{:.1}", equal.mean()), later.differ.percent()]);
            table.line(format!("log-normal {:.0} %, {repetitions}", noise * 100.0), &figures);
        }
    }
    table.into_text()
}
