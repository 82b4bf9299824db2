//! The growing series of a run in progress. Pure.

use std::sync::OnceLock;

use brewbench_wire::series::{DecodeError, Delta, Second, Series, Window, WindowKind};

use crate::{
    live::feed::{Rate, Tail, Update},
    results::series::model::seconds_after,
};

/// Maximum unpacked size of a delta; an ordinary one of a hundred points takes a tenth of it.
const MAX_UNPACKED: u64 = 2 << 20;

/// Maximum points of a kind in a part; agents downsample beyond 3,600.
const MAX_POINTS: usize = 4_000;

/// Maximum buckets of all histograms of a run; a second of an ordinary run has some dozens.
const MAX_BUCKETS: usize = 2_000_000;

/// The series of one run so far.
#[derive(Debug, Default)]
pub struct SeriesBuffer {
    series: Series,
    buckets: usize,
}

/// A second of a run in progress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LiveSecond {
    /// Its end, seconds after the start of the run's first part.
    pub at_s: f64,
    /// Whether it belongs to the warm-up.
    pub is_warm_up: bool,
    /// Requests per second.
    pub rps: Option<f64>,
    /// 99th percentile of the latency of its successful requests.
    pub p99_ms: Option<f64>,
}

/// The times after which points are replaced, ms after the start of their part; see [`Delta`].
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// Seconds that end later are replaced.
    pub seconds_ms: u32,
    /// Samples that were taken later are replaced.
    pub usage_ms: i32,
}

impl After {
    /// Returns the times of a delta.
    pub fn from_portion(delta: &Delta) -> Self {
        Self { seconds_ms: delta.seconds_after_ms, usage_ms: delta.usage_after_ms }
    }
}

/// Unpacks the one part of a delta.
pub fn unpack(delta: &Delta) -> Result<(WindowKind, Window), DecodeError> {
    match delta.points.unpack_within(MAX_UNPACKED)? {
        Series { warm_up: Some(window), measured: None } => Ok((WindowKind::WarmUp, window)),
        Series { warm_up: None, measured: Some(window) } => Ok((WindowKind::Measured, window)),
        Series { .. } => Err(DecodeError),
    }
}

impl From<Series> for SeriesBuffer {
    fn from(series: Series) -> Self {
        Self { series, buckets: 0 }
    }
}

impl SeriesBuffer {
    /// Returns the series so far.
    pub fn series(&self) -> &Series {
        &self.series
    }

    /// Adds points; returns what is new, if anything.
    pub fn put(&mut self, after: After, (part, points): (WindowKind, Window)) -> Result<Option<Update>, DecodeError> {
        let Window { start_ms, seconds, usage, .. } = points;
        let known = self.series.part_mut(part).get_or_insert_default();
        if known.start_ms != start_ms {
            *known = Window { start_ms, ..Window::default() };
            if part == WindowKind::WarmUp {
                self.series.measured = None;
            }
        }
        let known = self.series.part_mut(part).get_or_insert_default();
        let first_second = replace_after(&mut known.seconds, after.seconds_ms, seconds, |second| second.until_ms)?;
        let first_usage = replace_after(&mut known.usage, after.usage_ms, usage, |usage| usage.at_ms)?;
        self.buckets = self.series.parts().flat_map(|(_, window)| &window.seconds).map(buckets).sum();
        if self.buckets > MAX_BUCKETS {
            *self = Self::default();
            return Err(DecodeError);
        }
        Ok(self.update(part, first_second, first_usage))
    }

    /// Returns what a subscriber with everything up to `mark` lacks; everything without a mark.
    pub fn since(&self, mark: Option<i64>) -> Vec<Update> {
        let since = |(part, window): (WindowKind, &Window)| {
            let is_later = |at_ms: i64| mark.is_none_or(|mark| window.start_ms.saturating_add(at_ms) > mark);
            let second = window.seconds.partition_point(|second| !is_later(second.until_ms.into()));
            let usage = window.usage.partition_point(|usage| !is_later(usage.at_ms.into()));
            self.update(part, second, usage)
        };
        self.series.parts().filter_map(since).collect()
    }

    /// Returns the rate of the last second.
    pub fn rate(&self) -> Option<Rate> {
        let (_, window) = self.series.parts().last()?;
        let [.., last] = window.seconds.as_slice() else { return None };
        let before = window.seconds.iter().rev().nth(1).map_or(0, |second| second.until_ms);
        let length_s = f64::from(last.until_ms.saturating_sub(before)) / 1e3;
        let per_second = |count: u64| count as f64 / length_s;
        (length_s > 0.0).then(|| Rate { rps: per_second(last.requests()), failed_rps: per_second(last.failed.total()) })
    }

    /// Returns the last seconds, at most `most`, in ascending order.
    pub fn recent(&self, most: usize) -> Vec<LiveSecond> {
        let Some(start_ms) = self.series.parts().next().map(|(_, stretch)| stretch.start_ms) else { return Vec::new() };
        let mut all = Vec::new();
        for (part, stretch) in self.series.parts() {
            let first = stretch.seconds.len().saturating_sub(most);
            let before_ms = first.checked_sub(1).map_or(0, |last| stretch.seconds[last].until_ms);
            let offset_ms = stretch.start_ms.saturating_sub(start_ms);
            let seconds = seconds_after(offset_ms, before_ms, &stretch.seconds[first..]).into_iter();
            let is_warm_up = part == WindowKind::WarmUp;
            all.extend(seconds.map(|second| LiveSecond {
                at_s: second.at_s,
                is_warm_up,
                rps: second.rps,
                p99_ms: second.succeeded.p99_ms,
            }));
        }
        all.split_off(all.len().saturating_sub(most))
    }

    /// Returns the points of a part from these indices on.
    fn update(&self, part: WindowKind, first_second: usize, first_usage: usize) -> Option<Update> {
        let (_, window) = self.series.parts().find(|(other, _)| *other == part)?;
        let start_ms = self.series.parts().next()?.1.start_ms;
        let offset_ms = window.start_ms.saturating_sub(start_ms);
        // The warm-up before it is kept.
        let ahead = self.series.warm_up.as_ref().filter(|_| part == WindowKind::Measured);
        let seconds = tail(&window.seconds, first_second, |second| second.until_ms);
        let usage = tail(&window.usage, first_usage, |usage| usage.at_ms);
        if seconds.points.is_empty() && usage.points.is_empty() {
            return None;
        }
        let second_ahead = ahead.and_then(|window| Some(i64::from(window.seconds.last()?.until_ms)));
        let usage_ahead = ahead.and_then(|window| Some(i64::from(window.usage.last()?.at_ms)));
        Some(Update {
            part,
            start_ms,
            offset_ms,
            seconds: Tail { after_ms: seconds.before.map(|at| offset_ms + i64::from(at)).or(second_ahead), ..seconds },
            usage: Tail { after_ms: usage.before.map(|at| offset_ms + i64::from(at)).or(usage_ahead), ..usage },
            mark: mark(window),
            json: OnceLock::new(),
        })
    }
}

/// Returns the time up to which a part no longer changes, except by downsampling: its last second may still grow.
fn mark(window: &Window) -> i64 {
    let second = window.seconds.iter().rev().nth(1).map_or(0, |second| i64::from(second.until_ms));
    let usage = window.usage.last().map_or(i64::MAX, |usage| usage.at_ms.into());
    window.start_ms.saturating_add(second.min(usage))
}

fn buckets(second: &Second) -> usize {
    second.succeeded.buckets().len() + second.failed.buckets().len()
}

fn tail<T: Clone, At>(points: &[T], first: usize, end: impl Fn(&T) -> At) -> Tail<T, At> {
    let before = first.checked_sub(1).and_then(|last| points.get(last)).map(end);
    Tail { after_ms: None, before, points: points.get(first..).unwrap_or_default().to_vec() }
}

/// Replaces all points that end after `after`; returns the index of the first changed one.
fn replace_after<T: PartialEq, At: Ord + Copy>(
    known: &mut Vec<T>,
    after: At,
    new: Vec<T>,
    end: impl Fn(&T) -> At,
) -> Result<usize, DecodeError> {
    let kept = known.partition_point(|point| end(point) <= after);
    let ascends = new.windows(2).all(|pair| end(&pair[0]) < end(&pair[1]));
    let follows = new.first().is_none_or(|first| end(first) > after);
    if !ascends || !follows || kept + new.len() > MAX_POINTS {
        return Err(DecodeError);
    }
    let same = new.iter().zip(&known[kept..]).take_while(|(new, known)| new == known).count();
    // After a reconnect the agent sends the past again in parts; later points that are already known stay valid.
    if same == new.len() {
        return Ok(known.len());
    }
    known.truncate(kept);
    known.extend(new);
    Ok(kept + same)
}
