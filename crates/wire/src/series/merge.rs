//! Adds up the series of several load generators on one grid of seconds. Pure.
//!
//! Each second of a generator is assigned as a whole to the grid line nearest to its end, so every total is exact.

use std::collections::BTreeMap;

use crate::series::{Gaps, Second};

/// The distance between grid lines.
pub const GRID_MS: u32 = 1_000;

/// Returns the grid line of a second that ends at this time, ms after the start.
pub fn line(until_ms: u32) -> u32 {
    (until_ms.saturating_add(GRID_MS / 2) / GRID_MS).max(1)
}

/// Moves a time by this much.
pub fn moved(until_ms: u32, after_ms: i64) -> u32 {
    u32::try_from(i64::from(until_ms).saturating_add(after_ms).max(0)).unwrap_or(u32::MAX)
}

/// The seconds of a generator by grid line.
pub type Lines = BTreeMap<u32, Second>;

/// Returns the seconds after a grid line.
pub fn lines(seconds: &[Second], after_ms: i64, after_line: u32) -> Lines {
    let mut lines = Lines::new();
    for second in seconds {
        let until_ms = moved(second.until_ms, after_ms);
        let line = line(until_ms);
        if line > after_line {
            let moved = Second { until_ms, ..second.clone() };
            lines.entry(line).and_modify(|known| known.add(moved.clone())).or_insert(moved);
        }
    }
    lines
}

/// Adds up the lines of all generators.
pub fn add_up(generators: Vec<Lines>) -> Vec<Second> {
    let all = generators.len();
    let mut grid: BTreeMap<u32, (Second, usize)> = BTreeMap::new();
    for (line, second) in generators.into_iter().flatten() {
        match grid.get_mut(&line) {
            Some((sum, count)) => {
                add(sum, &second);
                *count += 1;
            }
            None => drop(grid.insert(line, (second, 1))),
        }
    }
    // The number of virtual users is unknown unless all generators have reported it.
    let known = |(second, count): (Second, usize)| Second { vus: second.vus.filter(|_| count == all), ..second };
    grid.into_values().map(known).collect()
}

/// Adds the second of another generator.
fn add(sum: &mut Second, other: &Second) {
    let vus = sum.vus.zip(other.vus).map(|(a, b)| a.saturating_add(b));
    sum.add(other.clone());
    sum.vus = vus;
}

/// Merges gaps. Each generator has as many seconds as the sum, so the worst count of missing and doubled seconds
/// applies.
pub fn gaps(sum: Gaps, other: Gaps) -> Gaps {
    let Gaps { missing_seconds, doubled_seconds, restarts, damaged, dropped_values, unfinished } = other;
    Gaps {
        missing_seconds: sum.missing_seconds.max(missing_seconds),
        doubled_seconds: sum.doubled_seconds.max(doubled_seconds),
        restarts: sum.restarts.saturating_add(restarts),
        damaged: sum.damaged.saturating_add(damaged),
        dropped_values: sum.dropped_values.saturating_add(dropped_values),
        unfinished: sum.unfinished.saturating_add(unfinished),
    }
}
