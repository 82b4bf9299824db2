//! Reads the table of the power of the deciding test. Pure.

use statrs::distribution::{Continuous, ContinuousCDF, Normal};

use super::{Order, POWER, factors, factors_at_once, least_p};

/// Most repetitions in the tables.
pub(super) const MAX_TABULATED: usize = 24;

/// Returns the fewest repetitions in a table; with fewer no difference can be found.
pub(super) const fn min_tabulated(order: Order) -> usize {
    match order {
        Order::InTurn => 4,
        Order::AtOnce => 6,
    }
}

/// Returns the number of rows of a table.
pub(super) const fn row_count(order: Order) -> usize {
    MAX_TABULATED - min_tabulated(order) + 1
}

/// Returns the row for a number of repetitions; none with too few.
pub(super) fn row(blocks: usize, order: Order) -> Option<&'static Row> {
    let rows: &[Row] = match order {
        Order::InTurn => &factors::ROWS,
        Order::AtOnce => &factors_at_once::ROWS,
    };
    rows.get(blocks.min(MAX_TABULATED).checked_sub(min_tabulated(order))?)
}

/// What comparisons with one number of repetitions find, in units of the scatter.
///
/// Pairs are for a known scatter and for one that is estimated from equally many runs.
pub(super) struct Row {
    /// Factor that makes the mean square of the estimated scatter that of the noise.
    pub scale: f64,
    /// Degrees of freedom of the estimated scatter.
    pub degrees: f64,
    /// How much the estimate falls short of the true difference at most in 80 % of cases.
    pub shortfall: [f64; 2],
    /// By descending level: the level, the pair of true differences that are found in 80 % of cases, and the difference
    /// found with a known scatter if it must also exceed a minimum effect that is just as hard to exceed.
    pub points: &'static [[f64; 4]],
}

/// What a comparison finds, in units of its scatter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Factors {
    /// The true difference for which the test rejects in 80 % of cases.
    find: f64,
    /// How much the estimate falls short of the true difference at most in 80 % of cases.
    shortfall: f64,
    /// Standard deviation of the width of the interval.
    width: f64,
}

/// Returns the scale of the scatter of a comparison and its degrees of freedom.
pub(super) fn own_scatter(blocks: usize, order: Order) -> (f64, f64) {
    let more = (blocks as f64 / MAX_TABULATED as f64).max(1.0);
    let row = row(blocks.max(min_tabulated(order)), order);
    row.map_or((1.0, 1.0), |row| (row.scale, row.degrees * more))
}

/// Returns the factors of a comparison with `blocks` repetitions at `level`. None with fewer than the table has.
///
/// `degrees` are those of the scatter. The more it has beyond those of the comparison itself, the better it is known.
/// Above [`MAX_TABULATED`] all decreases with the square root of the repetitions.
pub(super) fn factors(blocks: usize, order: Order, level: f64, degrees: f64) -> Option<Factors> {
    let row = row(blocks, order)?;
    let unknown = (own_scatter(blocks, order).1 / degrees).clamp(0.0, 1.0);
    let [known, own, both] = at_level(row.points, least_p(blocks.min(MAX_TABULATED), order), level)?;
    let narrower = (MAX_TABULATED as f64 / blocks as f64).sqrt().min(1.0);
    // With more blocks the scatter is known better, too.
    let gain = narrower * narrower;
    let between = |known: f64, own: f64| known + (own - known) * unknown * gain;
    let density = Normal::standard().pdf(0.0);
    Some(Factors {
        find: between(known, own) * narrower,
        shortfall: between(row.shortfall[0], row.shortfall[1]) * narrower,
        width: (both - known).max(0.0) / density * (1.0 - unknown).sqrt() * narrower * gain.sqrt(),
    })
}

/// Interpolates the points of a row at the logarithm of the level.
///
/// With few repetitions the p-value is a multiple of the smallest one. Levels below all points are reached by other
/// shapes or by many blocks, where the normal distribution extrapolates.
fn at_level(points: &[[f64; 4]], least: f64, level: f64) -> Option<[f64; 3]> {
    const ROUNDING: f64 = 1e-3;
    let steps = (level / least * (1.0 + ROUNDING)).floor();
    let level = if (1.0..1e6).contains(&steps) { steps * least } else { level };
    let of = |[_, known, own, both]: &[f64; 4]| [*known, *own, *both];
    let place = points.iter().position(|point| point[0] <= level * (1.0 + ROUNDING));
    match place {
        Some(0) => points.first().map(of),
        Some(place) => {
            let (above, below) = (&points[place - 1], &points[place]);
            let share = ((above[0] / level).ln() / (above[0] / below[0]).ln()).clamp(0.0, 1.0);
            Some([1, 2, 3].map(|n| above[n] + (below[n] - above[n]) * share))
        }
        None => {
            let strictest = points.last()?;
            let reach = |level: f64| quantile(1.0 - level / 2.0) + quantile(POWER);
            Some(of(strictest).map(|factor| factor * reach(level) / reach(strictest[0])))
        }
    }
}

fn quantile(share: f64) -> f64 {
    Normal::standard().inverse_cdf(share)
}

impl Factors {
    /// Returns the logarithm of the smallest true difference that is found and is estimated as at least `least`.
    ///
    /// The interval must exclude zero and the estimate must reach the minimum effect, so what counts is the greater of
    /// the interval's half width, which varies, and the minimum effect: `E max(w, r) = w + s (φ(z) + z Φ(z))`.
    pub(super) fn detectable(self, scatter: f64, least: f64) -> f64 {
        let found = self.find * scatter;
        let more = least + self.shortfall * scatter - found;
        let width = self.width * scatter;
        if width <= 1e-3 * scatter {
            return found + more.max(0.0);
        }
        let (z, normal) = (more / width, Normal::standard());
        found + width * (normal.pdf(z) + z * normal.cdf(z))
    }
}
