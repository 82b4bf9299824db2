//! The series of a run as it grows. Pure.

use std::sync::OnceLock;

use brewbench_agent::wire::series::{Damaged, Part, Portion, Second, Series, Stretch};

use crate::live::feed::{News, Rate, Tail};

/// What a portion may take unpacked; an honest one of a hundred points takes a tenth of it.
const MOST_UNPACKED: u64 = 2 << 20;

/// So many points of a kind a part may have: an agent makes 3,600 and then tells the past in less detail.
const MOST_POINTS: usize = 4_000;

/// So many buckets all histograms of a run may have; the seconds of an honest run have some dozens each.
const MOST_BUCKETS: usize = 2_000_000;

/// The series of one run so far.
#[derive(Debug, Default)]
pub struct Growing {
    series: Series,
    buckets: usize,
}

/// From when on points are replaced, ms after the start of their stretch; see [`Portion`].
#[derive(Clone, Copy, Debug)]
pub struct After {
    /// Seconds that end later.
    pub seconds_ms: u32,
    /// Samples that were taken later.
    pub usage_ms: i32,
}

impl After {
    /// As a portion says.
    pub fn of(portion: &Portion) -> Self {
        Self { seconds_ms: portion.seconds_after_ms, usage_ms: portion.usage_after_ms }
    }
}

/// The one part that a portion is about.
pub fn unpack(portion: &Portion) -> Result<(Part, Stretch), Damaged> {
    match portion.points.unpack_within(MOST_UNPACKED)? {
        Series { warm_up: Some(stretch), measured: None } => Ok((Part::WarmUp, stretch)),
        Series { warm_up: None, measured: Some(stretch) } => Ok((Part::Measured, stretch)),
        Series { .. } => Err(Damaged),
    }
}

impl From<Series> for Growing {
    fn from(series: Series) -> Self {
        Self { series, buckets: 0 }
    }
}

impl Growing {
    /// All of it.
    pub fn whole(&self) -> &Series {
        &self.series
    }

    /// Takes points in; gives what is new about them, if anything.
    pub fn put(&mut self, after: After, (part, points): (Part, Stretch)) -> Result<Option<News>, Damaged> {
        let Stretch { start_ms, seconds, usage, .. } = points;
        let known = self.series.part_mut(part).get_or_insert_default();
        if known.start_ms != start_ms {
            *known = Stretch { start_ms, ..Stretch::default() };
            if part == Part::WarmUp {
                self.series.measured = None;
            }
        }
        let known = self.series.part_mut(part).get_or_insert_default();
        let first_second = grow(&mut known.seconds, after.seconds_ms, seconds, |second| second.until_ms)?;
        let first_usage = grow(&mut known.usage, after.usage_ms, usage, |usage| usage.at_ms)?;
        self.buckets = self.series.parts().flat_map(|(_, stretch)| &stretch.seconds).map(buckets).sum();
        if self.buckets > MOST_BUCKETS {
            *self = Self::default();
            return Err(Damaged);
        }
        Ok(self.news(part, first_second, first_usage))
    }

    /// What somebody does not know who knows everything up to a mark, or nothing.
    pub fn since(&self, mark: Option<i64>) -> Vec<News> {
        let since = |(part, stretch): (Part, &Stretch)| {
            let is_later = |at_ms: i64| mark.is_none_or(|mark| stretch.start_ms.saturating_add(at_ms) > mark);
            let second = stretch.seconds.partition_point(|second| !is_later(second.until_ms.into()));
            let usage = stretch.usage.partition_point(|usage| !is_later(usage.at_ms.into()));
            self.news(part, second, usage)
        };
        self.series.parts().filter_map(since).collect()
    }

    /// How fast it was in its last second.
    pub fn rate(&self) -> Option<Rate> {
        let (_, stretch) = self.series.parts().last()?;
        let [.., last] = stretch.seconds.as_slice() else { return None };
        let before = stretch.seconds.iter().rev().nth(1).map_or(0, |second| second.until_ms);
        let length_s = f64::from(last.until_ms.saturating_sub(before)) / 1e3;
        let per_second = |count: u64| count as f64 / length_s;
        (length_s > 0.0).then(|| Rate { rps: per_second(last.requests()), failed_rps: per_second(last.failed.total()) })
    }

    /// The points of a part from these places on.
    fn news(&self, part: Part, first_second: usize, first_usage: usize) -> Option<News> {
        let (_, stretch) = self.series.parts().find(|(other, _)| *other == part)?;
        let start_ms = self.series.parts().next()?.1.start_ms;
        let offset_ms = stretch.start_ms.saturating_sub(start_ms);
        // The part ahead of it stays.
        let ahead = self.series.warm_up.as_ref().filter(|_| part == Part::Measured);
        let seconds = tail(&stretch.seconds, first_second, |second| second.until_ms);
        let usage = tail(&stretch.usage, first_usage, |usage| usage.at_ms);
        if seconds.points.is_empty() && usage.points.is_empty() {
            return None;
        }
        let second_ahead = ahead.and_then(|stretch| Some(i64::from(stretch.seconds.last()?.until_ms)));
        let usage_ahead = ahead.and_then(|stretch| Some(i64::from(stretch.usage.last()?.at_ms)));
        Some(News {
            part,
            start_ms,
            offset_ms,
            seconds: Tail { after_ms: seconds.before.map(|at| offset_ms + i64::from(at)).or(second_ahead), ..seconds },
            usage: Tail { after_ms: usage.before.map(|at| offset_ms + i64::from(at)).or(usage_ahead), ..usage },
            mark: mark(stretch),
            written: OnceLock::new(),
        })
    }
}

/// Up to where nothing of a stretch will change, unless it is told in less detail: its last second may still grow.
fn mark(stretch: &Stretch) -> i64 {
    let second = stretch.seconds.iter().rev().nth(1).map_or(0, |second| i64::from(second.until_ms));
    let usage = stretch.usage.last().map_or(i64::MAX, |usage| usage.at_ms.into());
    stretch.start_ms.saturating_add(second.min(usage))
}

fn buckets(second: &Second) -> usize {
    second.succeeded.buckets().len() + second.failed.buckets().len()
}

fn tail<T: Clone, At>(points: &[T], first: usize, end: impl Fn(&T) -> At) -> Tail<T, At> {
    let before = first.checked_sub(1).and_then(|last| points.get(last)).map(end);
    Tail { after_ms: None, before, points: points.get(first..).unwrap_or_default().to_vec() }
}

/// Puts points in the place of those that end later; gives the place of the first that is different.
fn grow<T: PartialEq, At: Ord + Copy>(
    known: &mut Vec<T>,
    after: At,
    new: Vec<T>,
    end: impl Fn(&T) -> At,
) -> Result<usize, Damaged> {
    let kept = known.partition_point(|point| end(point) <= after);
    let ascends = new.windows(2).all(|pair| end(&pair[0]) < end(&pair[1]));
    let follows = new.first().is_none_or(|first| end(first) > after);
    if !ascends || !follows || kept + new.len() > MOST_POINTS {
        return Err(Damaged);
    }
    let same = new.iter().zip(&known[kept..]).take_while(|(new, known)| new == known).count();
    // After a connection broke the past is told again, bit by bit; what is known of the rest is no worse for that.
    if same == new.len() {
        return Ok(known.len());
    }
    known.truncate(kept);
    known.extend(new);
    Ok(kept + same)
}
