//! Exact permutation test of aligned ranks: how often random order separates two cells at least as far.
//!
//! Runs measured in turn form strata: within a stratum every order of the two sides was equally likely. If both sides
//! were the same program, exchanging runs within a stratum would change nothing. So each stratum's median is
//! subtracted, the residuals of all strata are ranked together, and one side's ranks are added up (Hodges & Lehmann
//! 1962, "Rank methods for combination of independent experiments in analysis of variance"). The p-value is the share
//! of all assignments within the strata whose sum lies at least as far from its mean. With one stratum this is the
//! Wilcoxon rank-sum test (Lehmann 1975, "Nonparametrics", sections 1.2 and 1.4; ties by midranks). The distribution of
//! the sum is built one rank at a time, so it is exact for any ties. Subtracting the median removes what affects a
//! whole stratum, such as drift, steps or a noisy neighbour.

use std::{cell::RefCell, collections::HashMap};

use statrs::distribution::{ContinuousCDF, Normal};

use crate::rank_sum::{MAX_COUNTED, Sums, choose};

/// Maximum number of runs in several strata for exact counting, which takes O(n³).
const MAX_COUNTED_IN_STRATA: usize = 80;

/// Residuals closer than this are ties: subtracting a median leaves rounding errors of this order.
const TIE: f64 = 1e-11;

/// Runs of two sides among which every order was equally likely.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stratum {
    /// Values of the baseline.
    pub base: Vec<f64>,
    /// Values of the other side.
    pub other: Vec<f64>,
}

impl Stratum {
    /// Whether all values of both sides are equal.
    pub(crate) fn is_flat(&self) -> bool {
        let mut values = self.base.iter().chain(&self.other);
        let first = values.next();
        values.all(|value| first.is_none_or(|first| (value - first).abs() <= TIE))
    }

    fn len(&self) -> usize {
        self.base.len() + self.other.len()
    }
}

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankTest {
    /// Share of the assignments that separate the sides at least as far.
    pub p: f64,
    /// The smallest p-value that is possible without ties.
    pub untied_p: f64,
    /// Whether all values of both sides are equal.
    pub is_flat: bool,
    /// By how much the ranks of the other side exceed the expected sum: above 0 its values are greater.
    pub excess: f64,
}

/// Tests two sides. None if one has no values.
pub fn rank_test(strata: &[Stratum]) -> Option<RankTest> {
    let ranked = Ranked::new(strata, 0.0)?;
    let untied_p = untied(strata);
    let values = || strata.iter().flat_map(|stratum| stratum.base.iter().chain(&stratum.other));
    let first = *values().next()?;
    if values().all(|value| (value - first).abs() <= TIE) {
        return Some(RankTest { p: 1.0, untied_p, is_flat: true, excess: 0.0 });
    }
    let reference = Reference::new(&ranked);
    Some(RankTest { p: reference.p(&ranked), untied_p, is_flat: false, excess: ranked.sum() - ranked.mean() })
}

/// The test at different shifts. Caches distributions, as most shifts do not change the ranks.
pub(crate) struct Shifts<'a> {
    strata: &'a [Stratum],
    references: RefCell<HashMap<Ranks, Reference>>,
}

impl<'a> Shifts<'a> {
    pub(crate) fn new(strata: &'a [Stratum]) -> Self {
        Self { strata, references: RefCell::default() }
    }

    /// Returns the p-value if the other side were lower by `shift`.
    pub(crate) fn p_at(&self, shift: f64) -> f64 {
        let Some(ranked) = Ranked::new(self.strata, shift) else { return 1.0 };
        let mut references = self.references.borrow_mut();
        references.entry(ranked.unordered()).or_insert_with(|| Reference::new(&ranked)).p(&ranked)
    }

    /// Returns the rank sum of the other side minus its mean if that side were lower by `shift`.
    pub(crate) fn excess_at(&self, shift: f64) -> f64 {
        Ranked::new(self.strata, shift).map_or(0.0, |ranked| ranked.sum() - ranked.mean())
    }
}

/// Returns the smallest p-value without ties: two of all assignments.
pub(crate) fn untied(strata: &[Stratum]) -> f64 {
    let ways: f64 = strata.iter().map(|stratum| choose(stratum.len(), stratum.other.len())).product();
    (2.0 / ways).min(1.0)
}

/// Doubled midranks of the aligned values by stratum, each with the number of runs of the other side.
type Ranks = Vec<(Vec<usize>, usize)>;

/// Ranks by stratum, those of the other side first.
pub(crate) struct Ranked {
    pub(crate) strata: Ranks,
}

impl Ranked {
    pub(crate) fn new(strata: &[Stratum], shift: f64) -> Option<Self> {
        let mut residuals: Vec<(f64, usize)> = Vec::with_capacity(strata.iter().map(Stratum::len).sum());
        let mut sorted = Vec::new();
        for stratum in strata {
            let values = || stratum.other.iter().map(|value| value - shift).chain(stratum.base.iter().copied());
            sorted.clear();
            sorted.extend(values());
            sorted.sort_unstable_by(f64::total_cmp);
            let median = super::describe::median_of_sorted(&sorted)?;
            residuals.extend(values().map(|value| value - median).zip(residuals.len()..));
        }
        if residuals.iter().any(|(value, _)| !value.is_finite()) || strata.iter().all(|one| one.other.is_empty()) {
            return None;
        }
        strata.iter().any(|stratum| !stratum.base.is_empty()).then_some(())?;
        let mut doubled = midranks(residuals).into_iter();
        let of = |stratum: &Stratum| (doubled.by_ref().take(stratum.len()).collect(), stratum.other.len());
        Some(Self { strata: strata.iter().map(of).collect() })
    }

    /// Returns the sorted ranks of each stratum, on which the distribution of the sum depends.
    fn unordered(&self) -> Ranks {
        let mut strata = self.strata.clone();
        for (ranks, _) in &mut strata {
            ranks.sort_unstable();
        }
        strata
    }

    fn sum(&self) -> f64 {
        self.strata.iter().map(|(ranks, count)| ranks[..*count].iter().sum::<usize>()).sum::<usize>() as f64
    }

    fn mean(&self) -> f64 {
        let of = |(ranks, count): &(Vec<usize>, usize)| {
            *count as f64 * ranks.iter().sum::<usize>() as f64 / ranks.len().max(1) as f64
        };
        self.strata.iter().map(of).sum()
    }

    /// Variance of the sum over all assignments (Lehmann 1975, section 1.5, added over the strata).
    fn variance(&self) -> f64 {
        let of = |(ranks, count): &(Vec<usize>, usize)| {
            let (n, k) = (ranks.len() as f64, *count as f64);
            if ranks.len() < 2 {
                return 0.0;
            }
            let mean = ranks.iter().sum::<usize>() as f64 / n;
            let squares: f64 = ranks.iter().map(|rank| (*rank as f64 - mean).powi(2)).sum();
            squares / (n - 1.0) * k * (n - k) / n
        };
        self.strata.iter().map(of).sum()
    }

    fn is_counted(&self) -> bool {
        let all: usize = self.strata.iter().map(|(ranks, _)| ranks.len()).sum();
        all <= if self.strata.len() > 1 { MAX_COUNTED_IN_STRATA } else { MAX_COUNTED }
    }
}

/// Returns the doubled midranks in the original order.
fn midranks(mut residuals: Vec<(f64, usize)>) -> Vec<usize> {
    residuals.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut doubled = vec![0; residuals.len()];
    let mut below = 0;
    for ties in residuals.chunk_by(|a, b| b.0 - a.0 <= TIE) {
        for (_, place) in ties {
            doubled[*place] = 2 * below + ties.len() + 1;
        }
        below += ties.len();
    }
    doubled
}

/// The p-value of each rank sum.
pub(crate) enum BySum {
    /// From this sum on.
    Counted { min: usize, p: Vec<f64> },
    /// By the normal approximation, from the mean and the variance.
    Normal { mean: f64, deviation: f64 },
}

impl BySum {
    /// Returns the p-value of a sum.
    pub(crate) fn p(&self, sum: usize) -> f64 {
        match self {
            Self::Counted { min, p } => sum.checked_sub(*min).and_then(|place| p.get(place)).copied().unwrap_or(1.0),
            Self::Normal { mean, deviation } => normal_p((sum as f64 - mean).abs(), *deviation),
        }
    }

    /// Returns the possible p-values in ascending order; a fine grid for the normal approximation.
    pub(crate) fn possible(&self) -> Vec<f64> {
        let mut all = match self {
            Self::Counted { p, .. } => p.iter().copied().filter(|p| p.is_finite()).collect(),
            Self::Normal { .. } => {
                (0..=600).map(|step| 10.0_f64.powf(f64::from(step) / 50.0 - 12.0)).collect::<Vec<_>>()
            }
        };
        all.sort_by(f64::total_cmp);
        all.dedup();
        all
    }
}

/// Returns the p-value of a distance from the mean. Doubled ranks change in steps of two: one is the continuity
/// correction.
fn normal_p(distance: f64, deviation: f64) -> f64 {
    let z = (distance - 1.0).max(0.0) / deviation.max(f64::MIN_POSITIVE);
    Normal::new(0.0, 1.0).map_or(1.0, |normal| (2.0 * normal.sf(z)).min(1.0))
}

/// The distribution of the rank sum over all assignments.
pub(crate) enum Reference {
    /// Number of assignments, by sum. Counts are whole numbers, so equal p-values of different metrics are equal.
    Counted(Sums),
    /// Normal approximation for many runs.
    Normal,
}

impl Reference {
    pub(crate) fn new(ranked: &Ranked) -> Self {
        if !ranked.is_counted() {
            return Self::Normal;
        }
        let mut all = Sums { min: 0, ways: vec![1.0] };
        for (ranks, count) in &ranked.strata {
            all = all.plus(&Sums::choosing(ranks, *count));
        }
        Self::Counted(all)
    }

    /// Returns the p-value of every possible sum; infinite for an impossible one.
    pub(crate) fn by_sum(&self, ranked: &Ranked) -> BySum {
        let mean = ranked.mean();
        let Self::Counted(sums) = self else { return BySum::Normal { mean, deviation: ranked.variance().sqrt() } };
        let mut far: Vec<(f64, usize)> =
            sums.by_sum().enumerate().map(|(place, (sum, _))| ((sum - mean).abs(), place)).collect();
        far.sort_by(|one, other| other.0.total_cmp(&one.0));
        let total = sums.total();
        let mut p = vec![f64::INFINITY; sums.ways.len()];
        let mut beyond = 0.0;
        for tied in far.chunk_by(|one, other| one.0 - other.0 <= 1e-9) {
            beyond += tied.iter().map(|(_, place)| sums.ways[*place]).sum::<f64>();
            for (_, place) in tied.iter().filter(|(_, place)| sums.ways[*place] > 0.0) {
                p[*place] = (beyond / total).min(1.0);
            }
        }
        BySum::Counted { min: sums.min, p }
    }

    fn p(&self, ranked: &Ranked) -> f64 {
        self.beyond((ranked.sum() - ranked.mean()).abs(), ranked)
    }

    /// Share of the assignments at least this far from the mean.
    fn beyond(&self, distance: f64, ranked: &Ranked) -> f64 {
        let mean = ranked.mean();
        match self {
            Self::Counted(sums) => {
                let far = sums.by_sum().filter(|(sum, _)| (sum - mean).abs() >= distance - 1e-9);
                (far.map(|(_, ways)| ways).sum::<f64>() / sums.total()).min(1.0)
            }
            Self::Normal => normal_p(distance, ranked.variance().sqrt()),
        }
    }
}

#[cfg(test)]
mod tests;
