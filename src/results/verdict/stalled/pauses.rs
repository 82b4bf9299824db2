//! Finds the pauses in a series: time with virtual users and without a response. Pure.

use brewbench_wire::{histogram::Histogram, series::Second};

/// Longer between two reports of k6, milliseconds, and a report is missing.
const LATE_MS: f64 = 1_900.0;

/// Fewer points with responses show no rhythm.
const MIN_POINTS: usize = 3;

/// Time without a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// Its start, milliseconds since the start of the load.
    pub from_ms: f64,
    /// Its end; the exact place is unknown if k6 was silent.
    pub to_ms: f64,
    /// How much of it had no response, milliseconds.
    idle_ms: f64,
    /// Whether the load generator reported nothing, although it does so once a second.
    pub is_silent: bool,
    /// How it ended.
    pub end: End,
}

/// How a pause ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// With responses, the slowest of which took this long.
    Response {
        /// Milliseconds.
        slowest_ms: f64,
    },
    /// With the load.
    Load,
}

/// The pauses of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// In order.
    pub pauses: Vec<Pause>,
    /// The median time without a response between two points with responses, milliseconds.
    pub usual_ms: f64,
    /// How long there was load, milliseconds.
    pub loaded_ms: f64,
    /// The highest number of virtual users.
    pub peak_users: u64,
    /// The slowest response of each point, milliseconds.
    pub slowest_ms: Vec<f64>,
}

impl Pause {
    /// Returns how long nothing was answered, milliseconds.
    pub fn idle_ms(&self) -> f64 {
        self.idle_ms
    }

    /// Returns its place: `from second 3 to 7`.
    pub fn describe(&self) -> String {
        let from = (self.from_ms / 1_000.0).round();
        match self.end {
            End::Response { .. } => format!("from second {from} to {}", (self.to_ms / 1_000.0).round()),
            End::Load => format!("from second {from} to the end"),
        }
    }
}

/// A point of the series.
struct Point<'a> {
    from_ms: f64,
    to_ms: f64,
    second: &'a Second,
}

impl Point<'_> {
    fn length_ms(&self) -> f64 {
        self.to_ms - self.from_ms
    }

    /// Whether there were virtual users, as far as known.
    fn has_load(&self) -> bool {
        let Second { vus, iterations, .. } = self.second;
        vus.is_none_or(|vus| vus > 0) || *iterations > 0 || self.second.requests() > 0
    }

    fn slowest_ms(&self) -> f64 {
        let Second { succeeded, failed, .. } = self.second;
        [succeeded, failed].into_iter().filter_map(Histogram::max).map(|most| most.high).fold(0.0, f64::max)
    }
}

/// Observes the load of this planned length; what comes after it is the end of iterations in progress. None if too few
/// points have responses.
pub fn observe(seconds: &[Second], length_ms: Option<f64>) -> Option<Observed> {
    let points = loaded(seconds, length_ms);
    if points.iter().filter(|point| point.second.requests() > 0).count() < MIN_POINTS {
        return None;
    }
    let usual_rate = usual_rate(&points);
    let mut found = Vec::new();
    let mut open: Option<Pause> = None;
    // A point without load ends a pause, and is none.
    let mut before_ms = 0.0;
    for point in &points {
        if point.from_ms > before_ms {
            found.extend(open.take());
        }
        before_ms = point.to_ms;
        if point.second.requests() == 0 {
            let pause = open.get_or_insert(Pause {
                from_ms: point.from_ms,
                to_ms: point.to_ms,
                idle_ms: 0.0,
                is_silent: false,
                end: End::Load,
            });
            (pause.to_ms, pause.idle_ms) = (point.to_ms, pause.idle_ms + point.length_ms());
            pause.is_silent |= point.length_ms() > LATE_MS;
            continue;
        }
        let end = End::Response { slowest_ms: point.slowest_ms() };
        match open.take() {
            Some(pause) => found.push(Pause { end, ..pause }),
            None => found.extend(silence(point, usual_rate, end)),
        }
    }
    found.extend(open);
    let loaded_ms = points.iter().map(Point::length_ms).sum();
    let peak_users = points.iter().filter_map(|point| point.second.vus).max().unwrap_or(0);
    let usual_ms = usual_pause(&points);
    let slowest_ms = points.iter().map(Point::slowest_ms).collect();
    Some(Observed { pauses: found, usual_ms, loaded_ms, peak_users, slowest_ms })
}

/// Returns the points with load, from its start to its planned end.
fn loaded(seconds: &[Second], length_ms: Option<f64>) -> Vec<Point<'_>> {
    let mut from_ms = 0.0;
    let points = seconds.iter().map(|second| {
        let point = Point { from_ms, to_ms: f64::from(second.until_ms), second };
        from_ms = point.to_ms;
        point
    });
    let points: Vec<Point<'_>> = points.skip_while(|point| point.second.is_idle()).filter(Point::has_load).collect();
    let end_ms =
        length_ms.map_or(f64::INFINITY, |length_ms| points.first().map_or(0.0, |first| first.from_ms) + length_ms);
    let within = points.into_iter().filter(|point| point.from_ms < end_ms);
    within.map(|point| Point { to_ms: point.to_ms.min(end_ms), ..point }).collect()
}

/// Returns the time without responses in a late point: k6 counts on while it is late, unless it stands still.
fn silence(point: &Point<'_>, usual_rate: f64, end: End) -> Option<Pause> {
    let explained_ms = point.second.requests() as f64 / usual_rate;
    let idle_ms = point.length_ms() - explained_ms;
    (point.length_ms() > LATE_MS && idle_ms > 0.0).then_some(Pause {
        from_ms: point.from_ms,
        to_ms: point.to_ms,
        idle_ms,
        is_silent: true,
        end,
    })
}

/// Returns the median rate of the points with responses, per millisecond.
fn usual_rate(points: &[Point<'_>]) -> f64 {
    let answered = points.iter().filter(|point| point.second.requests() > 0 && point.length_ms() > 0.0);
    median(answered.map(|point| point.second.requests() as f64 / point.length_ms()).collect()).max(f64::MIN_POSITIVE)
}

/// Returns the median time without a response between two points with responses.
fn usual_pause(points: &[Point<'_>]) -> f64 {
    let (mut pauses, mut idle_ms, mut has_begun) = (Vec::new(), 0.0, false);
    for point in points {
        if point.second.requests() == 0 {
            idle_ms += point.length_ms();
            continue;
        }
        if has_begun {
            pauses.push(idle_ms);
        }
        (idle_ms, has_begun) = (0.0, true);
    }
    median(pauses)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
