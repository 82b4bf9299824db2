//! What the run in work has come to so far, for the connection to the server: it asks when it can send something, so
//! that nothing waits in a queue and a slow line slows nothing but itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::recording::SoFar;
use crate::wire::RunId;
use crate::wire::series::{Packed, Part, Portion, Second, Series, Stretch, Usage};

/// So many points of a kind go into one portion. A second takes some kilobytes at most, so a portion stays far below
/// what the server takes as one message.
const MOST: usize = 100;

/// The run in work, seen from outside; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Live {
    shown: Arc<Mutex<Option<Shown>>>,
    news: watch::Sender<()>,
}

#[derive(Debug)]
struct Shown {
    run: RunId,
    warm_up: Option<Source>,
    measured: Option<Source>,
}

/// Where a stretch is to be had.
#[derive(Clone, Debug)]
enum Source {
    Going(SoFar),
    Over(Arc<Stretch>),
}

impl Live {
    /// Rung whenever there is more to tell.
    pub fn bell(&self) -> watch::Sender<()> {
        self.news.clone()
    }

    /// Hears the bell; what has happened before is news as well.
    pub fn listen(&self) -> watch::Receiver<()> {
        let mut news = self.news.subscribe();
        news.mark_changed();
        news
    }

    /// A run begins.
    pub fn begin(&self, run: RunId) {
        *self.shown() = Some(Shown { run, warm_up: None, measured: None });
    }

    /// A part of it begins.
    pub fn follow(&self, part: Part, so_far: SoFar) {
        self.set(part, Source::Going(so_far));
    }

    /// A part of it is over.
    pub fn keep(&self, part: Part, stretch: Stretch) {
        self.set(part, Source::Over(Arc::new(stretch)));
        self.news.send_replace(());
    }

    /// The run is over.
    pub fn end(&self) {
        *self.shown() = None;
    }

    /// The next that a listener has not been told, who then has been.
    pub fn portion(&self, told: &mut Told) -> Option<Portion> {
        let (run, sources) = {
            let shown = self.shown();
            let Shown { run, warm_up, measured } = shown.as_ref()?;
            (*run, [(Part::WarmUp, warm_up.clone()), (Part::Measured, measured.clone())])
        };
        if told.run != Some(run) {
            *told = Told { run: Some(run), ..Told::default() };
        }
        sources.into_iter().find_map(|(part, source)| told.part(part).next(run, part, &source?))
    }

    fn set(&self, part: Part, source: Source) {
        if let Some(shown) = self.shown().as_mut() {
            match part {
                Part::WarmUp => shown.warm_up = Some(source),
                Part::Measured => shown.measured = Some(source),
            }
        }
    }

    fn shown(&self) -> MutexGuard<'_, Option<Shown>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a listener knows; a new one knows nothing.
#[derive(Debug, Default)]
pub struct Told {
    run: Option<RunId>,
    warm_up: ToldPart,
    measured: ToldPart,
}

#[derive(Debug)]
struct ToldPart {
    seconds: Column<Second, u32>,
    usage: Column<Usage, i32>,
}

impl Default for ToldPart {
    fn default() -> Self {
        Self { seconds: Column::new(0), usage: Column::new(i32::MIN) }
    }
}

impl Told {
    fn part(&mut self, part: Part) -> &mut ToldPart {
        match part {
            Part::WarmUp => &mut self.warm_up,
            Part::Measured => &mut self.measured,
        }
    }
}

impl ToldPart {
    fn next(&mut self, run: RunId, part: Part, source: &Source) -> Option<Portion> {
        let start_ms = source.start_ms()?;
        let (halvings, usage_halvings) = source.halvings();
        let seconds = self.seconds.next(halvings, |after| source.seconds_after(after), |second| second.until_ms);
        let usage = self.usage.next(usage_halvings, |after| source.usage_after(start_ms, after), |sample| sample.at_ms);
        if seconds.is_none() && usage.is_none() {
            return None;
        }
        // Where there is nothing new, nothing is replaced.
        let (seconds_after_ms, seconds) = seconds.unwrap_or((u32::MAX, Vec::new()));
        let (usage_after_ms, usage) = usage.unwrap_or((i32::MAX, Vec::new()));
        let mut series = Series::default();
        *series.part_mut(part) = Some(Stretch { start_ms, seconds, usage, ..Stretch::default() });
        Some(Portion { run, seconds_after_ms, usage_after_ms, points: Packed::pack(&series) })
    }
}

impl Source {
    /// Not known before the first second has ended.
    fn start_ms(&self) -> Option<i64> {
        match self {
            Self::Going(so_far) => so_far.start_ms(),
            Self::Over(stretch) => Some(stretch.start_ms),
        }
    }

    fn halvings(&self) -> (u32, u32) {
        match self {
            Self::Going(so_far) => so_far.halvings(),
            // It is told anew, should it have been halved at the very end; that changes nothing.
            Self::Over(_) => (0, 0),
        }
    }

    fn seconds_after(&self, until_ms: u32) -> Vec<Second> {
        match self {
            Self::Going(so_far) => so_far.seconds_after(until_ms, MOST + 1),
            Self::Over(stretch) => stretch.seconds_after(until_ms).iter().take(MOST + 1).cloned().collect(),
        }
    }

    fn usage_after(&self, start_ms: i64, at_ms: i32) -> Vec<Usage> {
        match self {
            Self::Going(so_far) => so_far.usage_after(start_ms, at_ms, MOST + 1),
            Self::Over(stretch) => stretch.usage_after(at_ms).iter().take(MOST + 1).copied().collect(),
        }
    }
}

/// How far one kind of points has been told, by the times of their ends.
#[derive(Debug)]
struct Column<T, At> {
    halvings: u32,
    /// A time before all points.
    beginning: At,
    /// The end of the last point that can't change any more.
    after: At,
    /// The point after that, which may still grow.
    last: Option<T>,
}

impl<T: Clone + PartialEq, At: Copy> Column<T, At> {
    fn new(beginning: At) -> Self {
        Self { halvings: 0, beginning, after: beginning, last: None }
    }

    /// The next points that have not been told, and after which time they come. `later` gives those that end later.
    fn next(
        &mut self,
        halvings: u32,
        later: impl FnOnce(At) -> Vec<T>,
        end: impl Fn(&T) -> At,
    ) -> Option<(At, Vec<T>)> {
        if halvings != self.halvings {
            *self = Self { halvings, ..Self::new(self.beginning) };
        }
        let (mut points, mut after) = (later(self.after), self.after);
        if self.last.is_some() && points.first() == self.last.as_ref() {
            after = end(&points.remove(0));
        }
        points.truncate(MOST);
        self.last = Some(points.last()?.clone());
        self.after = points.len().checked_sub(2).map_or(after, |last_but_one| end(&points[last_but_one]));
        Some((after, points))
    }
}

#[cfg(test)]
mod tests;
