//! Merges the time series of several machines into one by the server's clock: completely ([`merged`]), and while it
//! grows ([`fresh`]). Pure.
//!
//! Counts and histograms of the generators are added on one grid of seconds. Each second of a generator is assigned as
//! a whole to the grid line nearest to its end, so every total is exact. Samples of target and machine come from the
//! host; those of the generators' machines are stored with each generator.

use brewbench_wire::series::{
    Gaps, Series, Usage, Window, WindowKind,
    merge::{GRID_MS, add_up, gaps, line, lines, moved},
};

use crate::results::clock::{Clocked, clamped};

/// Merges all series by the server's clock. `host` has the samples of the target's machine, `generators` the load.
pub fn merged(host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Series {
    let mut merged = Series::default();
    for part in [WindowKind::WarmUp, WindowKind::Measured] {
        *merged.part_mut(part) = window(part, host, generators);
    }
    merged
}

fn window(part: WindowKind, host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Option<Window> {
    let parts: Vec<Clocked<'_>> = generators.iter().filter(|one| one.window(part).is_some()).copied().collect();
    let start_ms = start_ms(part, host, &parts)?;
    let windows = || parts.iter().filter_map(|one| Some((one.window(part)?, one.after_ms(part, start_ms))));
    let seconds = add_up(windows().map(|(window, after)| lines(&window.seconds, after, 0)).collect());
    let mut usage = host.map_or_else(Vec::new, |host| host.usage_after(part, start_ms, i32::MIN));
    if let Some(last) = seconds.last().filter(|_| part == WindowKind::Measured) {
        keep_until(&mut usage, last.until_ms);
    }
    Some(Window {
        start_ms,
        seconds,
        usage,
        gaps: windows().fold(Gaps::default(), |sum, (window, _)| gaps(sum, window.gaps)),
    })
}

/// Keeps the samples of the host during the load, and the ones at its edges: it records while generators are in
/// `setup()` and `teardown()`, too.
fn keep_until(usage: &mut Vec<Usage>, until_ms: u32) {
    let first = usage.partition_point(|sample| sample.at_ms <= 0).saturating_sub(1);
    let last = usage.partition_point(|sample| i64::from(sample.at_ms) < i64::from(until_ms));
    usage.truncate(last + 1);
    usage.drain(..first.min(usage.len()));
    if let Some(first) = usage.first_mut() {
        *first = first.without_counts();
    }
}

/// Returns when a part began, by the server's clock: when the first generator began.
pub fn start_ms(part: WindowKind, host: Option<Clocked<'_>>, generators: &[Clocked<'_>]) -> Option<i64> {
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
pub fn fresh(part: WindowKind, host: Option<Clocked<'_>>, generators: &[Clocked<'_>], since: Since) -> Option<Fresh> {
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
        seconds: add_up(generators.iter().filter_map(complete_lines).collect()),
        usage: host.map_or_else(Vec::new, |host| host.usage_after(part, start_ms, usage_after_ms)),
        gaps: Gaps::default(),
    };
    // Seconds of a line end less than half a line after it.
    let half = if after_line == 0 { 0 } else { GRID_MS / 2 - 1 };
    let seconds_after_ms = after_line.saturating_mul(GRID_MS).saturating_add(half);
    Some(Fresh { seconds_after_ms, usage_after_ms, points })
}

#[cfg(test)]
mod tests;
