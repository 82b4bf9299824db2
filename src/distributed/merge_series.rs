//! Merges the time series of several machines into one by the server's clock: completely ([`merged`]), and while it
//! grows ([`fresh`]). Pure.
//!
//! Counts and histograms of the generators are added on one grid of seconds. Each second of a generator is assigned as
//! a whole to the grid line nearest to its end, so every total is exact. Samples of target and machine come from the
//! host; those of the generators' machines are stored with each generator.

use std::collections::BTreeMap;

use brewbench_agent::wire::series::{Gaps, Part, Second, Series, Window};

use crate::results::clock::{Clocked, clamped};

/// The distance between grid lines.
const GRID_MS: u32 = 1_000;

/// Merges all series by the server's clock. `host` has the samples of the target's machine, `generators` the load.
pub fn merged(host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Series {
    let mut merged = Series::default();
    for part in [Part::WarmUp, Part::Measured] {
        *merged.part_mut(part) = window(part, host, generators);
    }
    merged
}

fn window(part: Part, host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Option<Window> {
    let parts: Vec<Clocked<'_>> = generators.iter().filter(|one| one.window(part).is_some()).copied().collect();
    let start_ms = start_ms(part, host, &parts)?;
    let windows = || parts.iter().filter_map(|one| Some((one.window(part)?, one.after_ms(part, start_ms))));
    Some(Window {
        start_ms,
        seconds: added(windows().map(|(window, after)| lines(&window.seconds, after, 0)).collect()),
        usage: host.map_or_else(Vec::new, |host| host.usage_after(part, start_ms, i32::MIN)),
        gaps: windows().fold(Gaps::default(), |sum, (window, _)| gaps(sum, window.gaps)),
    })
}

/// Returns when a part began, by the server's clock: when the first generator began.
pub fn start_ms(part: Part, host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Option<i64> {
    let first = generators.iter().filter_map(|one| one.start_ms(part)).min();
    let unclocked = || generators.iter().chain(&host).filter_map(|one| Some(one.window(part)?.start_ms)).min();
    first.or_else(|| host?.start_ms(part)).or_else(unclocked)
}

/// Which points of a part are new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Since {
    /// All points.
    All,
    /// The seconds of a generator that end later than this, ms after its own start.
    Seconds {
        /// The index of the generator.
        generator: usize,
        /// 0 for all.
        after_ms: u32,
    },
    /// The samples of the host that were taken later than this, ms after its own start.
    Usage {
        /// [`i32::MIN`] for all.
        after_ms: i32,
    },
}

/// New points of a part of the merged series during the run. They replace all points after the two times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fresh {
    /// Seconds that end later than this are replaced, ms after the start of the part.
    pub seconds_after_ms: u32,
    /// Samples that were taken later than this are replaced.
    pub usage_after_ms: i32,
    /// The points, with the start of their part.
    pub points: Window,
}

/// Returns the new points of a part: grid lines that every generator has reported completely, and samples of the host.
/// Returns none until each generator has reported something of the part.
pub fn fresh(part: Part, host: Option<Clocked<'_>>, generators: &[Clocked<'_>], since: Since) -> Option<Fresh> {
    let start_ms = start_ms(part, host, generators)?;
    let last_line = |one: &Clocked<'_>| {
        let last = one.window(part)?.seconds.last()?;
        Some(line(moved(last.until_ms, one.after_ms(part, start_ms))))
    };
    let complete = generators.iter().map(last_line).collect::<Option<Vec<u32>>>()?.into_iter().min()?;
    let (after_line, usage_after_ms) = match since {
        Since::All | Since::Seconds { after_ms: 0, .. } => (0, i32::MAX),
        Since::Seconds { generator, after_ms } => {
            (line(moved(after_ms, generators.get(generator)?.after_ms(part, start_ms))) - 1, i32::MAX)
        }
        Since::Usage { after_ms } => (u32::MAX, clamped(after_ms, host?.after_ms(part, start_ms))),
    };
    let usage_after_ms = if since == Since::All { i32::MIN } else { usage_after_ms };
    let complete_lines = |one: &Clocked<'_>| {
        let mut lines = lines(&one.window(part)?.seconds, one.after_ms(part, start_ms), after_line);
        lines.retain(|line, _| *line <= complete);
        Some(lines)
    };
    let points = Window {
        start_ms,
        seconds: added(generators.iter().filter_map(complete_lines).collect()),
        usage: host.map_or_else(Vec::new, |host| host.usage_after(part, start_ms, usage_after_ms)),
        gaps: Gaps::default(),
    };
    // Seconds of a line end less than half a line after it.
    let half = if after_line == 0 { 0 } else { GRID_MS / 2 - 1 };
    let seconds_after_ms = after_line.saturating_mul(GRID_MS).saturating_add(half);
    Some(Fresh { seconds_after_ms, usage_after_ms, points })
}

/// Returns the grid line of a second that ends at this time, ms after the start.
fn line(until_ms: u32) -> u32 {
    (until_ms.saturating_add(GRID_MS / 2) / GRID_MS).max(1)
}

fn moved(until_ms: u32, after_ms: i64) -> u32 {
    u32::try_from(i64::from(until_ms).saturating_add(after_ms).max(0)).unwrap_or(u32::MAX)
}

/// The seconds of a generator by grid line.
type Lines = BTreeMap<u32, Second>;

/// Returns the seconds after a grid line.
fn lines(seconds: &[Second], after_ms: i64, after_line: u32) -> Lines {
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

fn added(generators: Vec<Lines>) -> Vec<Second> {
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
fn gaps(sum: Gaps, other: Gaps) -> Gaps {
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

#[cfg(test)]
mod tests;
