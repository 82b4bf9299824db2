//! Checks that the measured phase was steady: no trend or step beyond its own noise. Pure.
//!
//! Under a constant number of virtual users only the rate is judged. It determines the mean latency (Little's law:
//! users = rate × latency), and the median of a throttled target jumps between requests with and without a pause,
//! although nothing drifts. At a constant arrival rate only latency can drift.
//!
//! A run is judged alone if it is long enough to show a drift by itself; [`drift`](mod@drift) separates drift from
//! noise, and [`ramp`](mod@ramp) knows which changes are too large for noise. The runs of a cell are judged together,
//! however short they are: [`super::cell`]. A drift below the limit is ignored.

use brewbench_statistics::{
    drift::{self, Drift, MAX_POINTS},
    ramp,
};
use brewbench_wire::{
    histogram::Histogram,
    load::{Form, Load},
    series::{Second, Series},
};

use crate::{
    results::verdict::{
        limits::{Limit, Limits},
        model::{Context, SeriesState},
    },
    runs::verdict::{Reason, Unit, Verdict},
};

/// A point with fewer requests is noise and has no usable median.
const MIN_REQUESTS: usize = 20;

/// Seconds without the first and last that one run needs to show a drift: those of a run of 15 s.
const MIN_SECONDS: f64 = 12.5;

/// The shortest run that is judged alone.
pub(super) const ALONE_S: f64 = 15.0;

/// The first and the last second of a run, which are not judged.
pub(super) const ENDS_S: f64 = 2.0;

/// In a run with fewer seconds, a burst of two looks like a step, so its halves must differ, too. Those of a run of
/// 20 s.
const SHORT_SECONDS: f64 = 17.5;

/// What may drift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aspect {
    /// Throughput.
    Rate,
    /// Median latency.
    Median,
}

/// The seconds of a measured phase without the first and last, in which k6 starts and stops, each with its length.
pub(super) struct Inner<'a>(Vec<(f64, &'a Second)>);

/// Several neighbouring seconds.
#[derive(Default)]
pub(super) struct Point {
    requests: u64,
    seconds: f64,
    latencies: Histogram,
}

pub(super) fn judge(context: &Context<'_>, limits: &Limits, reasons: &mut Vec<Reason>) {
    let SeriesState::Series(series) = context.series else { return };
    let Some(aspect) = context.load.and_then(Aspect::from_load) else { return };
    let inner = inner(series);
    let seconds = inner.0.iter().map(|(seconds, _)| seconds).sum::<f64>();
    let points = inner.seconds_per_point().map(|seconds| inner.points(seconds)).unwrap_or_default();
    let found = aspect.values(&points).and_then(|values| change(&values, seconds, limits.get(aspect.limit())));
    reasons.extend(found.and_then(|found| reason(aspect, found, limits)));
}

/// Finds a change within one run: one that no noise explains, in any run, or a drift beyond the run's own noise.
fn change(values: &[f64], seconds: f64, limit: f64) -> Option<Drift> {
    ramp::ramp(values).or_else(|| {
        let found = drift::drift(values).filter(|_| seconds >= MIN_SECONDS)?;
        let lasting = ramp::lasting_change(values);
        let lasts = lasting.abs() > limit && (lasting > 0.0) == (found.change() > 0.0);
        (seconds >= SHORT_SECONDS || lasts).then_some(found)
    })
}

impl Aspect {
    /// Returns what drifts under a load; none if it is not constant: stages are not meant to be steady, and a script's
    /// own load is unknown.
    pub(super) fn from_load(load: &Load) -> Option<Self> {
        load.shape().filter(|shape| matches!(shape.form(), Form::Constant { .. }))?;
        Some(if matches!(load, Load::Closed(_)) { Self::Rate } else { Self::Median })
    }

    /// Returns its value at each point; none if it is unknown at one.
    pub(super) fn values(self, points: &[Point]) -> Option<Vec<f64>> {
        let value = |point: &Point| match self {
            Self::Rate => Some(point.requests as f64 / point.seconds),
            Self::Median => point.latencies.quantile(0.5).map(|median| median.estimate),
        };
        points.iter().map(value).collect()
    }

    fn limit(self) -> Limit {
        match self {
            Self::Rate => Limit::NotSteadyRate,
            Self::Median => Limit::NotSteadyP50,
        }
    }

    pub(super) fn what(self) -> &'static str {
        match self {
            Self::Rate => "throughput",
            Self::Median => "the median latency",
        }
    }

    pub(super) fn level(self, value: f64) -> String {
        match self {
            Self::Rate => format!("{} requests/s", Unit::Count.text(value.round())),
            Self::Median => format!("{value:.2} ms"),
        }
    }

    /// Whether a target that becomes faster changes in this direction.
    pub(super) fn is_warm_up(self, change: f64) -> bool {
        (change > 0.0) == (self == Self::Rate)
    }
}

pub(super) fn inner(series: &Series) -> Inner<'_> {
    let seconds = series.measured.as_ref().map_or(&[][..], |window| &window.seconds);
    let timed = seconds
        .windows(2)
        .map(|pair| ((f64::from(pair[1].until_ms) - f64::from(pair[0].until_ms)) / 1_000.0, &pair[1]));
    let mut inner: Vec<_> = timed.collect();
    inner.pop();
    Inner(inner)
}

impl Inner<'_> {
    /// Returns how many seconds a point needs for enough requests; none without any.
    pub(super) fn seconds_per_point(&self) -> Option<usize> {
        let requests = self.0.iter().fold(0_u64, |sum, (_, second)| sum.saturating_add(second.requests()));
        let requests = usize::try_from(requests).ok().filter(|requests| *requests > 0)?;
        let count = self.0.len();
        Some(count.div_ceil(MAX_POINTS).max((MIN_REQUESTS * count).div_ceil(requests)))
    }

    /// Merges seconds into points. The incomplete one at the end is left out.
    pub(super) fn points(&self, seconds: usize) -> Vec<Point> {
        self.0.chunks_exact(seconds).map(Point::merged).filter(|point| point.seconds > 0.0).collect()
    }
}

impl Point {
    fn merged(part: &[(f64, &Second)]) -> Self {
        let mut point = Self::default();
        for (seconds, second) in part {
            point.requests = point.requests.saturating_add(second.requests());
            point.seconds += seconds;
            point.latencies.add(&second.succeeded);
        }
        point
    }
}

fn reason(aspect: Aspect, found: Drift, limits: &Limits) -> Option<Reason> {
    let code = match aspect {
        Aspect::Rate => "not_steady",
        Aspect::Median => "not_steady_p50",
    };
    let (change, limit) = (found.change(), limits.get(aspect.limit()));
    if change.abs() <= limit {
        return None;
    }
    let verb = if change > 0.0 { "rose" } else { "fell" };
    let (size, first, last) = (Unit::Share.text(change.abs()), aspect.level(found.first), aspect.level(found.last));
    let what = aspect.what();
    let text = format!("not steady: {what} {verb} by {size} during the measured phase, from {first} to {last}");
    Some(Reason::new(code, Verdict::Suspect, text).with(change.abs(), limit, Unit::Share))
}
