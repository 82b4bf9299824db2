//! The current step and the series so far of the current run, or of both runs of a duet, for the connection to the server. The connection pulls
//! when it can send, so no queue builds up and a slow line delays nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brewbench_wire::RunId;
use brewbench_wire::series::{Delta, Packed, Second, Series, Usage, Window, WindowKind};
use tokio::sync::watch;

use super::recording::SoFar;

/// Maximum points of a kind in one delta. A second takes a few kilobytes at most, so a delta stays far below the
/// server's message limit.
const MAX_SAMPLES: usize = 100;

/// The live series of the current run; cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Live {
    shown: Arc<Mutex<[Option<LiveState>; 2]>>,
    news: watch::Sender<()>,
    /// Which of the two runs it shows.
    place: usize,
}

#[derive(Debug)]
struct LiveState {
    run: RunId,
    step: Option<String>,
    warm_up: Option<Source>,
    measured: Option<Source>,
}

/// Where the points of a window come from.
#[derive(Clone, Debug)]
enum Source {
    InProgress(SoFar),
    Finished(Arc<Window>),
}

impl Live {
    /// Returns that of the second run of a duet. Connections read both from either.
    #[must_use]
    pub fn of_partner(&self) -> Self {
        Self { place: 1, ..self.clone() }
    }

    /// Returns the sender that announces new points.
    pub fn notifier(&self) -> watch::Sender<()> {
        self.news.clone()
    }

    /// Subscribes to new points; those from before count as new.
    pub fn listen(&self) -> watch::Receiver<()> {
        let mut news = self.news.subscribe();
        news.mark_changed();
        news
    }

    /// Starts a run.
    pub fn begin(&self, run: RunId) {
        self.shown()[self.place] = Some(LiveState { run, step: None, warm_up: None, measured: None });
    }

    /// Stores the current step of a long preparation.
    pub fn set_step(&self, step: String) {
        if let Some(shown) = &mut self.shown()[self.place] {
            shown.step = Some(step);
        }
        self.news.send_replace(());
    }

    /// Returns the step that a connection has not sent, and marks it as sent.
    pub fn step(&self, sent: &mut Sent) -> Option<(RunId, String)> {
        let shown = self.shown();
        shown.iter().zip(&mut sent.0).find_map(|(shown, sent)| {
            let LiveState { run, step, .. } = shown.as_ref()?;
            let now = (*run, step.clone()?);
            (sent.step.as_ref() != Some(&now)).then(|| sent.step.insert(now).clone())
        })
    }

    /// Starts a part of the run.
    pub fn follow(&self, part: WindowKind, so_far: SoFar) {
        self.set(part, Source::InProgress(so_far));
    }

    /// Stores a finished part of the run.
    pub fn store(&self, part: WindowKind, window: Window) {
        self.set(part, Source::Finished(Arc::new(window)));
        self.news.send_replace(());
    }

    /// Ends the run.
    pub fn end(&self) {
        self.shown()[self.place] = None;
    }

    /// Returns the next points that a connection has not sent, and marks them as sent.
    pub fn delta(&self, sent: &mut Sent) -> Option<Delta> {
        let sources = self.shown().each_ref().map(|shown| {
            let LiveState { run, warm_up, measured, .. } = shown.as_ref()?;
            Some((*run, [(WindowKind::WarmUp, warm_up.clone()), (WindowKind::Measured, measured.clone())]))
        });
        sources.into_iter().zip(&mut sent.0).find_map(|(sources, sent)| {
            let (run, sources) = sources?;
            if sent.run != Some(run) {
                *sent = SentRun { run: Some(run), step: sent.step.take(), ..SentRun::default() };
            }
            sources.into_iter().find_map(|(part, source)| sent.part(part).next(run, part, &source?))
        })
    }

    fn set(&self, part: WindowKind, source: Source) {
        if let Some(shown) = &mut self.shown()[self.place] {
            match part {
                WindowKind::WarmUp => shown.warm_up = Some(source),
                WindowKind::Measured => shown.measured = Some(source),
            }
        }
    }

    fn shown(&self) -> MutexGuard<'_, [Option<LiveState>; 2]> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a connection has sent; nothing at first.
#[derive(Debug, Default)]
pub struct Sent([SentRun; 2]);

#[derive(Debug, Default)]
struct SentRun {
    run: Option<RunId>,
    step: Option<(RunId, String)>,
    warm_up: SentPart,
    measured: SentPart,
}

#[derive(Debug)]
struct SentPart {
    seconds: Column<Second, u32>,
    usage: Column<Usage, i32>,
}

impl Default for SentPart {
    fn default() -> Self {
        Self { seconds: Column::new(0), usage: Column::new(i32::MIN) }
    }
}

impl SentRun {
    fn part(&mut self, part: WindowKind) -> &mut SentPart {
        match part {
            WindowKind::WarmUp => &mut self.warm_up,
            WindowKind::Measured => &mut self.measured,
        }
    }
}

impl SentPart {
    fn next(&mut self, run: RunId, part: WindowKind, source: &Source) -> Option<Delta> {
        let start_ms = source.start_ms()?;
        let (halvings, usage_halvings) = source.halvings();
        let seconds = self.seconds.next(halvings, |after| source.seconds_after(after), |second| second.until_ms);
        let usage = self.usage.next(usage_halvings, |after| source.usage_after(start_ms, after), |sample| sample.at_ms);
        if seconds.is_none() && usage.is_none() {
            return None;
        }
        // A time after all points replaces nothing.
        let (seconds_after_ms, seconds) = seconds.unwrap_or((u32::MAX, Vec::new()));
        let (usage_after_ms, usage) = usage.unwrap_or((i32::MAX, Vec::new()));
        let mut series = Series::default();
        *series.part_mut(part) = Some(Window { start_ms, seconds, usage, ..Window::default() });
        Some(Delta { run, seconds_after_ms, usage_after_ms, points: Packed::pack(&series) })
    }
}

impl Source {
    /// Returns the start, known once the first second has ended.
    fn start_ms(&self) -> Option<i64> {
        match self {
            Self::InProgress(so_far) => so_far.start_ms(),
            Self::Finished(window) => Some(window.start_ms),
        }
    }

    fn halvings(&self) -> (u32, u32) {
        match self {
            Self::InProgress(so_far) => so_far.halvings(),
            // If the series was halved at the very end, it is sent again unchanged.
            Self::Finished(_) => (0, 0),
        }
    }

    fn seconds_after(&self, until_ms: u32) -> Vec<Second> {
        match self {
            Self::InProgress(so_far) => so_far.seconds_after(until_ms, MAX_SAMPLES + 1),
            Self::Finished(window) => window.seconds_after(until_ms).iter().take(MAX_SAMPLES + 1).cloned().collect(),
        }
    }

    fn usage_after(&self, start_ms: i64, at_ms: i32) -> Vec<Usage> {
        match self {
            Self::InProgress(so_far) => so_far.usage_after(start_ms, at_ms, MAX_SAMPLES + 1),
            Self::Finished(window) => window.usage_after(at_ms).iter().take(MAX_SAMPLES + 1).copied().collect(),
        }
    }
}

/// How much of one kind of points was sent, by the times of their ends.
#[derive(Debug)]
struct Column<T, At> {
    halvings: u32,
    /// A time before all points.
    beginning: At,
    /// End of the last sent point that can't change any more.
    after: At,
    /// The sent point after that, which may still grow.
    last: Option<T>,
}

impl<T: Clone + PartialEq, At: Copy> Column<T, At> {
    fn new(beginning: At) -> Self {
        Self { halvings: 0, beginning, after: beginning, last: None }
    }

    /// Returns the next points to send and the time after which they come. `later` returns the points after a time.
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
        points.truncate(MAX_SAMPLES);
        self.last = Some(points.last()?.clone());
        self.after = points.len().checked_sub(2).map_or(after, |last_but_one| end(&points[last_but_one]));
        Some((after, points))
    }
}

#[cfg(test)]
mod tests;
