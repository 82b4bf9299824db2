//! Where a history changes: E-Divisive. Pure; the same history always gives the same changes.
//!
//! Source: Matteson and James, "A nonparametric approach for multiple change point analysis of multivariate data", Journal
//! of the American Statistical Association 109 (2014), sections 2 and 3; that it does for the histories of benchmarks is
//! shown by Daly et al., "The use of change point detection to identify software performance regressions in a continuous
//! integration system", ICPE 2020. For every split of a stretch into `X`, its first `m` runs, and `Y`, the `n` after them
//! (all the rest or fewer, so that a change that is undone later does not hide)
//!
//! ```text
//! Q = mn / (m + n) · ( 2 / mn · Σ|x − y|  −  1 / (m choose 2) · Σ|x − x′|  −  1 / (n choose 2) · Σ|y − y′| )
//! ```
//!
//! measures how far the two lie apart. The split with the greatest `Q` is a change if at most [`ALPHA`] of all orders of
//! the same runs have one as great, by a thousand drawn orders; then both sides are searched in turn.
//!
//! Why this and not a fence over the last runs: a fence asks of each run whether it is unusual, so it needs a difference
//! of several times the noise and takes one bad run for a change. E-Divisive asks where the runs on both sides differ as
//! a whole: it sees smaller changes, wants [`LEAST`] runs on each side, and assumes nothing of how the noise is
//! distributed. Runs far out are drawn in to five deviations of the median, so that one weighs no more than others. What it
//! costs: a place may move by a run or two when more history comes, which is why a judgement holds for its neighbourhood.

use rand::{SeedableRng, rngs::StdRng, seq::SliceRandom};

use crate::compare::statistics::{MIN_EFFECT, spread};

/// The least number of runs on each side of a change.
pub const LEAST: usize = 3;

/// How often chance alone may look like a change, for one search.
pub const ALPHA: f64 = 0.02;

/// Runs farther from the median of their stretch than so many deviations (told by the median of all, so that they don't
/// widen it) are drawn in to there.
const FAR: f64 = 5.0;

/// So far a split moves at most when it settles between its neighbours.
const NEAR: usize = 5;

/// How many orders are drawn.
const SHUFFLES: u32 = 999;

/// A change is sure when none of so many orders was better.
const SURE: u32 = 299;

/// A change in a series.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// The place of the first run after it.
    pub at: usize,
    /// The median of the stretch before it.
    pub before: f64,
    /// The median of the stretch after it.
    pub after: f64,
}

impl Shift {
    /// After ÷ before.
    pub fn ratio(&self) -> f64 {
        self.after / self.before
    }
}

/// The changes of a series in order of time, each with a difference that somebody would act upon.
pub fn changes(values: &[f64]) -> Vec<Shift> {
    let mut splits = Vec::new();
    search(values, 0, &mut splits);
    splits.sort_unstable();
    settle(values, &mut splits);
    // Without a split that is no change the stretches beside it are one, and their medians others.
    loop {
        let shifts = shifts(values, &splits);
        let size = |shift: &Shift| shift.ratio().ln().abs();
        let least = shifts.iter().enumerate().min_by(|(_, a), (_, b)| size(a).total_cmp(&size(b)));
        match least {
            Some((place, shift)) if size(shift) < MIN_EFFECT || size(shift).is_nan() => _ = splits.remove(place),
            _ => return shifts,
        }
    }
}

fn shifts(values: &[f64], splits: &[usize]) -> Vec<Shift> {
    let bounds: Vec<usize> = [0].into_iter().chain(splits.iter().copied()).chain([values.len()]).collect();
    let medians: Vec<f64> =
        bounds.windows(2).map(|pair| median(&values[pair[0]..pair[1]]).unwrap_or(f64::NAN)).collect();
    let shift = |(at, pair): (&usize, &[f64])| Shift { at: *at, before: pair[0], after: pair[1] };
    splits.iter().zip(medians.windows(2)).map(shift).collect()
}

fn search(values: &[f64], start: usize, splits: &mut Vec<usize>) {
    let drawn_in = drawn_in(values);
    let Some((at, strength)) = best_split(&drawn_in) else { return };
    if is_real(&drawn_in, strength) {
        splits.push(start + at);
        search(&values[..at], start, splits);
        search(&values[at..], start + at, splits);
    }
}

/// Whether few enough orders of the same runs have a split as strong.
fn is_real(values: &[f64], strength: f64) -> bool {
    let mut random = StdRng::seed_from_u64(values.len() as u64);
    let mut order = values.to_vec();
    let mut stronger = 0;
    for drawn in 1..=SHUFFLES {
        order.shuffle(&mut random);
        if best_split(&order).is_some_and(|(_, other)| other >= strength * (1.0 - 1e-12)) {
            stronger += 1;
        }
        if f64::from(stronger + 1) / f64::from(SHUFFLES + 1) > ALPHA {
            return false;
        }
        if stronger == 0 && drawn >= SURE {
            return true;
        }
    }
    true
}

/// The place with the greatest `Q`, and that; none where there are too few runs.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    let all = values.len();
    if all < 2 * LEAST {
        return None;
    }
    let sums = sums(values);
    // Of run `j`, the distances to the runs before place `i`.
    let to = |j: usize, i: usize| sums[j * (all + 1) + i];
    let choose = |count: f64| count * (count - 1.0) / 2.0;
    let (mut left, mut best): (f64, Option<(usize, f64)>) = (0.0, None);
    for at in 1..=all - LEAST {
        left += to(at - 1, at - 1);
        if at < LEAST {
            continue;
        }
        let (mut between, mut right) = (0.0, 0.0);
        for end in at..all {
            between += to(end, at);
            right += to(end, end) - to(end, at);
            let (m, n) = (at as f64, (end + 1 - at) as f64);
            if end + 1 - at < LEAST {
                continue;
            }
            let q = m * n / (m + n) * (2.0 / (m * n) * between - left / choose(m) - right / choose(n));
            if best.is_none_or(|(_, known)| q > known) {
                best = Some((at, q));
            }
        }
    }
    best
}

/// For each run the sums of its distances to the first 0, 1, 2, … runs.
fn sums(values: &[f64]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(values.len() * (values.len() + 1));
    for value in values {
        let mut sum = 0.0;
        sums.push(sum);
        for other in values {
            sum += (value - other).abs();
            sums.push(sum);
        }
    }
    sums
}

/// The same with those far out drawn in. Where more than half are alike nothing is far.
fn drawn_in(values: &[f64]) -> Vec<f64> {
    let Some(median) = median(values) else { return Vec::new() };
    // As wide as a standard deviation if the noise were normal.
    let deviation =
        1.4826 * self::median(&values.iter().map(|value| (value - median).abs()).collect::<Vec<_>>()).unwrap_or(0.0);
    let (low, high) = (median - FAR * deviation, median + FAR * deviation);
    values.iter().map(|value| if deviation > 0.0 { value.clamp(low, high) } else { *value }).collect()
}

/// Puts each split between its neighbours where the runs lie nearest to the medians of their sides: while others were not
/// found yet, a stretch may have had three levels.
fn settle(values: &[f64], splits: &mut [usize]) {
    for place in 0..splits.len() {
        let from = if place == 0 { 0 } else { splits[place - 1] };
        let to = splits.get(place + 1).copied().unwrap_or(values.len());
        let candidates =
            (from + LEAST).max(splits[place].saturating_sub(NEAR))..=(to - LEAST).min(splits[place] + NEAR);
        let spread_of = |at: &usize| distance_to_median(&values[from..*at]) + distance_to_median(&values[*at..to]);
        if let Some(best) = candidates.min_by(|a, b| spread_of(a).total_cmp(&spread_of(b))) {
            splits[place] = best;
        }
    }
}

fn distance_to_median(values: &[f64]) -> f64 {
    median(values).map_or(0.0, |median| values.iter().map(|value| (value - median).abs()).sum())
}

fn median(values: &[f64]) -> Option<f64> {
    spread(values.iter().copied()).map(|spread| spread.median)
}

#[cfg(test)]
mod tests {
    use rand::Rng;

    use super::*;

    /// Runs at levels, with log-normal noise, by Box and Muller's transform.
    fn noisy(random: &mut StdRng, levels: &[(usize, f64)], sigma: f64) -> Vec<f64> {
        let mut value = |level: f64| {
            let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
            level * (sigma * (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()).exp()
        };
        levels.iter().flat_map(|(count, level)| vec![*level; *count]).map(&mut value).collect()
    }

    fn places(values: &[f64]) -> Vec<usize> {
        changes(values).iter().map(|shift| shift.at).collect()
    }

    #[test]
    fn the_sums_are_those_of_the_formula() {
        let values = [3.0, 1.0, 2.0, 8.0, 9.0, 7.0, 8.5];
        let (at, q) = best_split(&values).expect("a split");
        let (left, right) = values.split_at(3);
        assert_eq!(at, 3);
        let mean = |pairs: Vec<f64>| pairs.iter().sum::<f64>() / pairs.len() as f64;
        let cross = left.iter().flat_map(|x| right.iter().map(move |y| (x - y).abs())).collect();
        let within = |side: &[f64]| {
            let pair =
                |(place, x): (usize, &f64)| side[place + 1..].iter().map(move |y| (x - y).abs()).collect::<Vec<_>>();
            side.iter().enumerate().flat_map(pair).collect::<Vec<_>>()
        };
        let by_hand = 12.0 / 7.0 * (2.0 * mean(cross) - mean(within(left)) - mean(within(right)));
        assert!((q - by_hand).abs() < 1e-9, "{q} {by_hand}");
    }

    #[test]
    fn a_change_is_found_where_it_is_with_both_medians() {
        let mut random = StdRng::seed_from_u64(7);
        let values = noisy(&mut random, &[(20, 10_000.0), (12, 9_300.0), (25, 9_900.0)], 0.01);
        let shifts = changes(&values);
        assert_eq!(places(&values), [20, 32]);
        assert!(
            (shifts[0].ratio() - 0.93).abs() < 0.01 && (shifts[1].ratio() - 9_900.0 / 9_300.0).abs() < 0.01,
            "{shifts:?}"
        );
    }

    #[test]
    fn a_change_that_was_undone_is_found_on_both_sides() {
        let mut random = StdRng::seed_from_u64(2);
        let values = noisy(&mut random, &[(12, 100.0), (20, 90.0), (12, 100.0)], 0.005);
        assert_eq!(places(&values), [12, 32]);
    }

    #[test]
    fn few_runs_one_outlier_or_no_noise_at_all_are_no_change() {
        for values in [vec![], vec![1.0], vec![1.0, 1.0, 9.0], vec![5.0; 40], vec![0.0; 40]] {
            assert_eq!(places(&values), Vec::<usize>::new(), "{values:?}");
        }
        let mut random = StdRng::seed_from_u64(3);
        let mut values = noisy(&mut random, &[(30, 100.0)], 0.01);
        values[17] = 20.0;
        assert_eq!(places(&values), Vec::<usize>::new());
    }

    #[test]
    fn less_than_one_percent_is_told_by_nobody() {
        let mut random = StdRng::seed_from_u64(5);
        assert_eq!(places(&noisy(&mut random, &[(40, 100.0), (40, 100.5)], 0.001)), Vec::<usize>::new());
        assert_eq!(places(&noisy(&mut random, &[(40, 100.0), (40, 101.5)], 0.001)), [40]);
    }

    #[test]
    fn ten_runs_before_and_three_after_are_enough_for_a_clear_change() {
        let values = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 101.2, 98.9, 100.1, 90.0, 90.5, 89.5];
        assert_eq!(places(&values), [10]);
        assert_eq!(places(&values[..12]), Vec::<usize>::new(), "two are not");
    }

    #[test]
    fn histories_without_a_change_seldom_have_one_and_those_with_one_mostly() {
        const ROUNDS: usize = 300;
        let mut random = StdRng::seed_from_u64(1);
        let alarms = (0..ROUNDS).filter(|_| !places(&noisy(&mut random, &[(40, 100.0)], 0.03)).is_empty()).count();
        let near = |places: Vec<usize>| places.iter().any(|at| at.abs_diff(20) <= 2);
        let found = (0..ROUNDS).filter(|_| near(places(&noisy(&mut random, &[(20, 100.0), (10, 95.0)], 0.02)))).count();
        println!("{alarms} of {ROUNDS} without a change have one; {found} of {ROUNDS} with 5 % at 2 % noise are found");
        assert!(alarms * 100 <= ROUNDS * 4, "{alarms} false alarms in {ROUNDS}");
        assert!(found * 100 >= ROUNDS * 95, "{found} of {ROUNDS}");
    }
}
