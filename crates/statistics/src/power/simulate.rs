//! Simulates comparisons of normal noise with the deciding test: the source of the table of [`super::factors`].
//!
//! A simulated comparison keeps its estimate, its scatter and its p-value at a grid of true differences. A quantile of
//! a row is the multiple of the scatter whose power is 80 %: with the scatter known, or with that of another, equally
//! planned comparison, as it is shown for one comparison and has to hold for the next.

use std::{collections::BTreeMap, f64::consts::TAU, fmt::Write, fs, iter, thread};

use rand::{Rng, SeedableRng, rngs::StdRng};

use super::{
    Order, POWER, least_p, shape_of,
    table::{self, MAX_TABULATED, Row, min_tabulated},
    within,
};
use crate::{Stratum, describe::sorted, effect::shift, rank_test, rank_test::untied, scatter::scatter};

/// Simulated comparisons for each row of the table.
const ROUNDS: usize = 24_000;

/// Threads that simulate the table.
const WORKERS: usize = 2;

/// Step of the grid of true differences, in standard errors of a mean difference.
const STEP: f64 = 0.2;

/// The grid begins at this step, as smaller differences are rarely found.
const FIRST_STEP: usize = 2;

/// Number of differences in the grid.
const STEPS: usize = 40;

/// Draws a standard normal number by the Box–Muller transform.
pub(crate) fn normal(random: &mut StdRng) -> f64 {
    let (radius, angle): (f64, f64) = (1.0 - random.random::<f64>(), random.random());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

/// Draws the runs of a comparison.
pub(super) fn draw(blocks: usize, order: Order, mut value: impl FnMut() -> f64) -> Vec<Stratum> {
    let mut values = |count: usize| (0..count).map(|_| value()).collect();
    shape_of(blocks, order)
        .into_iter()
        .map(|(base, other)| Stratum { base: values(base), other: values(other) })
        .collect()
}

/// Comparisons of cells that do not differ, with noise of one standard deviation.
struct Simulated {
    step: f64,
    estimates: Vec<f64>,
    scatters: Vec<f64>,
    p: Vec<Vec<f64>>,
}

impl Simulated {
    fn new(blocks: usize, order: Order, rounds: usize, seed: u64) -> Self {
        let mut random = StdRng::seed_from_u64(seed.wrapping_mul(1_000) + blocks as u64);
        let step = (2.0 / blocks as f64).sqrt() * STEP;
        let mut all = Self { step, estimates: Vec::new(), scatters: Vec::new(), p: Vec::new() };
        for _ in 0..rounds {
            let strata = draw(blocks, order, || normal(&mut random));
            let estimate = shift(&strata);
            all.scatters.push(scatter(&within(&strata, estimate)).expect("noise"));
            all.estimates.push(estimate);
            all.p.push(p_values(&strata, step));
        }
        all
    }

    /// Returns the smallest true difference that each comparison finds at a level.
    fn limits(&self, level: f64) -> Vec<f64> {
        let first = |p: &Vec<f64>| p.iter().rposition(|p| *p > level * (1.0 + 1e-9)).map_or(0, |place| place + 1);
        self.p.iter().map(|p| (first(p) + FIRST_STEP) as f64 * self.step).collect()
    }

    /// Returns the scale that makes the mean square of the scatter one.
    fn scale(&self) -> f64 {
        (self.scatters.len() as f64 / self.scatters.iter().map(|one| one * one).sum::<f64>()).sqrt()
    }

    /// Returns the degrees of freedom of a standard deviation that is as precise as the scatter.
    fn degrees(&self) -> f64 {
        let logs: Vec<f64> = self.scatters.iter().map(|one| one.ln()).collect();
        let mean = logs.iter().sum::<f64>() / logs.len() as f64;
        0.5 / (logs.iter().map(|one| (one - mean).powi(2)).sum::<f64>() / logs.len() as f64)
    }

    /// Returns the scatter of other comparisons, scaled.
    fn others(&self) -> impl Fn(usize) -> f64 {
        let scale = self.scale();
        move |place| self.scatters[(place + 1) % self.scatters.len()] * scale
    }

    /// Returns the quantile of how much the estimate falls short, in units of `scatter`.
    fn shortfall(&self, scatter: impl Fn(usize) -> f64) -> f64 {
        let all = sorted(self.estimates.iter().enumerate().map(|(place, estimate)| -estimate / scatter(place)));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a place in a list")]
        let place = (all.len() as f64 * POWER) as usize;
        all[place]
    }

    /// Returns the share of comparisons that find a true difference of `factor` scatters, and estimate at least
    /// `least`.
    fn power(&self, limits: &[f64], factor: f64, least: f64, scatter: impl Fn(usize) -> f64) -> f64 {
        let found = |(place, limit): (usize, &f64)| {
            let at = factor * scatter(place);
            // The limit lies anywhere in the step before.
            let share = ((at - limit) / self.step + 1.0).clamp(0.0, 1.0);
            if at + self.estimates[place] >= least { share } else { 0.0 }
        };
        limits.iter().enumerate().map(found).sum::<f64>() / limits.len() as f64
    }

    /// Returns the factor with a power of 80 %.
    fn factor(&self, limits: &[f64], least: f64, scatter: impl Fn(usize) -> f64 + Copy) -> f64 {
        let (mut low, mut high) = (0.0, (STEPS * 2) as f64 * self.step);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if self.power(limits, middle, least, scatter) >= POWER { high = middle } else { low = middle }
        }
        high
    }
}

/// Returns the p-values if the other side were higher by each difference of the grid.
fn p_values(strata: &[Stratum], step: f64) -> Vec<f64> {
    let least = untied(strata);
    let p_at = |place: usize| {
        let shift = step * (place + FIRST_STEP) as f64;
        let moved = |one: &Stratum| Stratum { other: one.other.iter().map(|v| v + shift).collect(), ..one.clone() };
        rank_test(&strata.iter().map(moved).collect::<Vec<_>>()).expect("two sides").p
    };
    let mut all: Vec<f64> = Vec::with_capacity(STEPS);
    for place in 0..STEPS {
        let is_least = all.last().is_some_and(|p| *p <= least * (1.0 + 1e-9));
        all.push(if is_least { least } else { p_at(place) });
    }
    all
}

/// Returns the levels of a row in descending order: what the test can reach with few blocks, powers with many.
fn levels(blocks: usize, order: Order) -> Vec<f64> {
    let least = least_p(blocks, order);
    let multiples = |counts: &[u32]| counts.iter().rev().map(|count| f64::from(*count) * least).collect();
    match blocks {
        _ if order == Order::AtOnce && blocks <= 10 => {
            let all: Vec<u32> = [1, 2, 3, 4, 5, 6, 8, 12, 16, 25].into();
            let reached: Vec<u32> = all.into_iter().filter(|count| f64::from(*count) * least <= 0.05).collect();
            multiples(&reached)
        }
        4 => multiples(&[1, 2]),
        5 => multiples(&[1, 2, 3, 4, 5, 6, 7]),
        6 => multiples(&[1, 2, 3, 4, 5, 6]),
        7 => multiples(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
        8 => multiples(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 33]),
        9 => multiples(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 65]),
        10 => multiples(&[1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 195]),
        _ => {
            let round = [0.05, 0.025, 0.01, 0.005, 0.0025, 0.001, 5e-4, 2.5e-4, 1e-4, 1e-5, 1e-6];
            round.into_iter().filter(|level| *level > 1.2 * least).chain((least > 1e-6).then_some(least)).collect()
        }
    }
}

/// Formats a row of the table.
fn row(blocks: usize, order: Order) -> String {
    let all = Simulated::new(blocks, order, ROUNDS, 1);
    let (others, known) = (all.others(), |_: usize| 1.0);
    let shortfall = [all.shortfall(known), all.shortfall(&others)];
    let mut text = format!(
        "    // {blocks} repetitions\n    Row {{ scale: {:.3}, degrees: {:.2}, shortfall: [{:.3}, {:.3}], points: &[\n",
        all.scale(),
        all.degrees(),
        shortfall[0],
        shortfall[1]
    );
    for level in levels(blocks, order) {
        let limits = all.limits(level);
        let find = all.factor(&limits, 0.0, known);
        let both = all.factor(&limits, find - shortfall[0], known);
        let own = all.factor(&limits, 0.0, &others);
        let _ = writeln!(text, "        [{level:.3e}, {find:.3}, {own:.3}, {both:.3}],");
    }
    text + "    ] },\n"
}

/// Writes the tables if `BREWBENCH_WRITE_POWER` is set, otherwise simulates parts of them again.
#[test]
fn the_table_is_that_of_the_test() {
    let (in_turn, at_once) = ([(4, 2_000), (6, 1_000), (7, 1_000), (12, 300)], [(6, 1_000), (8, 1_000), (12, 300)]);
    check(Order::InTurn, "factors.rs", &in_turn);
    check(Order::AtOnce, "factors_at_once.rs", &at_once);
}

fn check(order: Order, file: &str, samples: &[(usize, usize)]) {
    if std::env::var_os("BREWBENCH_WRITE_POWER").is_some() {
        let path = format!("{}/src/power/{file}", env!("CARGO_MANIFEST_DIR"));
        let old = fs::read_to_string(&path).expect("the table");
        let head = old.split_inclusive("= [\n").next().expect("a head");
        let rows: BTreeMap<usize, String> = thread::scope(|scope| {
            let all = |first| {
                (first..=MAX_TABULATED).step_by(WORKERS).map(|blocks| (blocks, row(blocks, order))).collect::<Vec<_>>()
            };
            let workers: Vec<_> = (0..WORKERS).map(|n| scope.spawn(move || all(min_tabulated(order) + n))).collect();
            workers.into_iter().flat_map(|worker| worker.join().expect("rows")).collect()
        });
        let rows: String = rows.into_values().collect();
        return fs::write(&path, format!("{head}{rows}];\n")).expect("writable");
    }
    for &(blocks, rounds) in samples {
        let all = Simulated::new(blocks, order, rounds, 2);
        let Row { scale, degrees, shortfall, points } = table::row(blocks, order).expect("a row");
        assert!((all.scale() / scale - 1.0).abs() < 3.0 / (2.0 * degrees * rounds as f64).sqrt(), "{blocks}");
        let others = all.others();
        let levels = levels(blocks, order);
        assert_eq!(levels.len(), points.len(), "{blocks}");
        for (level, [rounded, known, own, both]) in iter::zip(levels, *points) {
            assert!((level / rounded - 1.0).abs() < 1e-3);
            let limits = all.limits(level);
            let found = [
                all.power(&limits, *known, 0.0, |_| 1.0),
                all.power(&limits, *own, 0.0, &others),
                all.power(&limits, *both, known - shortfall[0], |_| 1.0),
            ];
            let error = 4.0 * (POWER * (1.0 - POWER) / rounds as f64).sqrt();
            assert!(found.iter().all(|power| (power - POWER).abs() < error), "{blocks}, {level}: {found:?}");
        }
    }
}
