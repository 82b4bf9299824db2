//! The relevant changes of a series. Deterministic. Pure.
//!
//! The change points come from [`change_points`]. Those whose medians differ by less than the minimum effect are
//! dropped. A change that is undone within a few points is one finding, an episode: a machine was disturbed for some
//! days, or a regression was reverted.
//!
//! Why E-Divisive and not a threshold on single points: a threshold needs a difference of several times the noise and
//! reports one bad day as a change. E-Divisive compares all points on both sides: it finds smaller changes, needs a few
//! points on each side, and assumes nothing about the distribution of the noise. Its cost: a change may move by a point
//! or two as more runs arrive, which is why an annotation applies to nearby points, too.
//!
//! A series is searched again with each new point, and each search is another chance of a false change. So a change is
//! new until it has been found in `LOOKS` searches in a row and withstands the autocorrelation of usual nights.

use crate::compare::statistics::{
    MIN_EFFECT,
    change_points::{MIN_SIDE, change_points, withstand},
    spread,
};

/// An episode has at most this many points.
pub const EPISODE: usize = 2 * MIN_SIDE;

/// A series is back at its level if at most this share of the change remains.
const REMAINDER: f64 = 0.25;

/// The number of points that a change may move by as more points arrive.
pub const MAX_MOVE: usize = 3;

/// A change is supported if as many searches in a row have found it: the first one and those after two more points.
const LOOKS: usize = 3;

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The index of the first point after it.
    pub at: usize,
    /// The median of the segment before it.
    pub before: f64,
    /// The median of the segment after it.
    pub after: f64,
    /// The end of an episode: the index of the first point back at the previous level.
    pub returned: Option<usize>,
    /// Whether it is significant although neighbouring points may resemble each other.
    pub withstands: bool,
}

/// What a series shows now, and what it showed before its last points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Looks {
    /// The changes, each with whether later points support it.
    pub found: Vec<(Shift, bool)>,
    /// Changes that were found before the last points and no longer are.
    pub lost: Vec<Shift>,
}

impl Shift {
    /// Returns after ÷ before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }

    /// Whether values are higher after it.
    pub fn is_rise(&self) -> bool {
        self.after > self.before
    }

    /// Returns how far a change at a point is from it or, in the other direction, from its return; none if it is too
    /// far to be the same one.
    pub fn distance(&self, at: usize, is_rise: bool) -> Option<usize> {
        let own = if is_rise == self.is_rise() { Some(self.at) } else { self.returned };
        own.map(|own| own.abs_diff(at)).filter(|away| *away <= MAX_MOVE)
    }

    fn is_in(&self, others: &[Self]) -> bool {
        others.iter().any(|other| other.distance(self.at, self.is_rise()).is_some())
    }

    /// Returns the size of the change, equal for a fall and the rise that undoes it.
    fn size(&self) -> f64 {
        self.ratio().ln().abs()
    }
}

/// Returns the changes of a series now, compared with those that it had before its last points.
pub fn looks(values: &[f64]) -> Looks {
    let found = shifts(values);
    let before: Vec<Vec<Shift>> = (1..LOOKS).map(|less| shifts(&values[..values.len().saturating_sub(less)])).collect();
    let mut lost: Vec<Shift> = Vec::new();
    for shift in before.iter().flatten() {
        if !shift.is_in(&found) && !shift.is_in(&lost) {
            lost.push(*shift);
        }
    }
    let is_supported = |shift: &Shift| shift.withstands && before.iter().all(|before| shift.is_in(before));
    Looks { found: found.into_iter().map(|shift| (shift, is_supported(&shift))).collect(), lost }
}

/// Returns the changes of a series in order of time that reach the minimum effect.
pub fn shifts(values: &[f64]) -> Vec<Shift> {
    let mut points = change_points(values);
    // Removing a split joins its segments and changes their medians, so every change is computed again.
    loop {
        let shifts = between(values, &points);
        let least = shifts.iter().enumerate().min_by(|(_, a), (_, b)| a.size().total_cmp(&b.size()));
        match least {
            Some((place, shift)) if shift.size() < MIN_EFFECT || shift.size().is_nan() => {
                points.remove(place);
            }
            _ => return merge_episodes(&shifts),
        }
    }
}

fn between(values: &[f64], points: &[usize]) -> Vec<Shift> {
    let bounds: Vec<usize> = [0].into_iter().chain(points.iter().copied()).chain([values.len()]).collect();
    let medians: Vec<f64> =
        bounds.windows(2).map(|pair| median(&values[pair[0]..pair[1]]).unwrap_or(f64::NAN)).collect();
    let shift = |((at, pair), withstands): ((&usize, &[f64]), bool)| Shift {
        at: *at,
        before: pair[0],
        after: pair[1],
        returned: None,
        withstands,
    };
    points.iter().zip(medians.windows(2)).zip(withstand(values, points)).map(shift).collect()
}

/// Merges each change and its return into one finding.
fn merge_episodes(shifts: &[Shift]) -> Vec<Shift> {
    let mut merged = Vec::with_capacity(shifts.len());
    let mut rest = shifts;
    while let [shift, after @ ..] = rest {
        rest = after;
        match after {
            [back, later @ ..] if is_episode(shift, back) => {
                merged.push(Shift { returned: Some(back.at), ..*shift });
                rest = later;
            }
            _ => merged.push(*shift),
        }
    }
    merged
}

fn is_episode(shift: &Shift, back: &Shift) -> bool {
    let remainder = (back.after / shift.before).ln().abs();
    back.at - shift.at <= EPISODE && remainder <= (REMAINDER * shift.size()).max(MIN_EFFECT)
}

fn median(values: &[f64]) -> Option<f64> {
    spread(values.iter().copied()).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points at levels, with a fixed wobble of ±0.4 %.
    fn series(levels: &[(usize, f64)]) -> Vec<f64> {
        let all = levels.iter().flat_map(|(count, level)| vec![*level; *count]);
        all.enumerate().map(|(place, level)| level * (1.0 + 0.004 * ((place * 7919 % 13) as f64 - 6.0) / 6.0)).collect()
    }

    fn places(levels: &[(usize, f64)]) -> Vec<(usize, Option<usize>)> {
        shifts(&series(levels)).iter().map(|shift| (shift.at, shift.returned)).collect()
    }

    #[test]
    fn a_change_has_the_medians_of_both_sides() {
        let found = shifts(&series(&[(20, 10_000.0), (12, 9_300.0), (25, 9_900.0)]));
        let [fall, rise] = found.as_slice() else { panic!("two: {found:?}") };
        assert_eq!((fall.at, rise.at), (20, 32));
        assert!((fall.ratio() - 0.93).abs() < 0.005 && (rise.ratio() - 9_900.0 / 9_300.0).abs() < 0.005, "{found:?}");
    }

    #[test]
    fn a_change_is_new_until_two_more_points_support_it() {
        let all = series(&[(20, 100.0), (12, 90.0)]);
        let first = (20..=all.len()).find(|count| !shifts(&all[..*count]).is_empty()).expect("a change");
        let supported = |count: usize| looks(&all[..count]).found[0].1;
        assert_eq!([first, first + 1, first + 2, 32].map(supported), [false, false, true, true]);
    }

    #[test]
    fn a_change_that_later_points_do_not_support_is_lost_for_two_looks() {
        let all = series(&[(24, 100.0), (3, 97.0), (12, 100.0)]);
        let state = |count: usize| looks(&all[..count]);
        let kinds: Vec<_> = (26..=33).map(state).map(|looks| (looks.found.len(), looks.lost.len())).collect();
        assert_eq!(kinds, [(0, 0), (1, 0), (1, 0), (1, 0), (0, 1), (0, 1), (0, 0), (0, 0)]);
        assert_eq!(state(30).lost[0].at, 24);
    }

    #[test]
    fn a_change_below_the_minimum_effect_is_dropped() {
        let step = |level: f64| {
            let calm = series(&[(80, 100.0)]).into_iter().enumerate();
            // A fifth of the wobble: both steps are certain.
            calm.map(|(place, value)| (100.0 + (value - 100.0) / 5.0) * if place < 40 { 1.0 } else { level })
                .collect::<Vec<_>>()
        };
        assert_eq!(change_points(&step(1.005)), [40]);
        assert_eq!(shifts(&step(1.005)), []);
        assert_eq!(shifts(&step(1.015)).len(), 1);
    }

    #[test]
    fn a_change_that_returns_within_a_few_points_is_one_finding() {
        assert_eq!(places(&[(15, 100.0), (5, 90.0), (15, 100.0)]), [(15, Some(20))]);
        assert_eq!(
            places(&[(15, 100.0), (5, 90.0), (15, 110.0)]),
            [(15, None), (20, None)],
            "it returns to another level"
        );
        assert_eq!(
            places(&[(15, 100.0), (12, 90.0), (15, 100.0)]),
            [(15, None), (27, None)],
            "the return came too late"
        );
        let twice = [(15, 100.0), (5, 90.0), (15, 100.0), (15, 80.0)];
        assert_eq!(places(&twice), [(15, Some(20)), (35, None)]);
    }
}
