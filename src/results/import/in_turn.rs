//! Decides whether the files of an import were measured in turn, by their order. Pure.
//!
//! A comparison of runs measured in turn permutes them within pairs of blocks, as an experiment shuffles them
//! (`experiments::order`). An import may have any order. AABB in every pair favours A while the machine slows down:
//! with six repetitions a drift alone makes a significant difference. So the test of the comparison is applied to the
//! places instead of the values, which is what it would find of a linear drift without noise. The order is refused
//!
//! - if that test finds a difference between two targets, at 5 % divided by the number of pairs of targets. One in
//!   twenty random orders is refused, too.
//! - if all pairs of blocks have the same order and the p-value is below [`MIN_IF_REPEATED`]: a fixed scheme is not
//!   random, and half of such a drift together with noise makes more than 6 % false differences.
//!
//! Mirrored orders (ABBA) are always accepted. With fewer than six repetitions no order of whole pairs of blocks can
//! make a difference.

use brewbench_statistics::{ALPHA, Design, Observation, Stratum, design, rank_test};

/// Least p-value of the places if all pairs of blocks have the same order; the tests simulate its effect.
const MIN_IF_REPEATED: f64 = 0.2;

/// What to do about an order that is refused.
const ADVICE: &str = "measure each pair of repetitions in mirrored order (A B B A) or in random order";

/// A file's place in the order of measurement.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Placed {
    /// What is compared with each other: everything but the target.
    pub row: String,
    /// Target and version.
    pub side: String,
    /// Repetition, from 1.
    pub repetition: u32,
    /// Position, unique.
    pub order: u32,
}

/// Returns why files do not count as measured in turn, or None if they do.
pub(super) fn fault(mut files: Vec<Placed>) -> Option<String> {
    files.sort_by_key(|file| file.order);
    let pair = |file: &Placed| file.repetition.saturating_sub(1) / 2;
    if let Some([one, next]) = files.array_windows().find(|[one, next]| pair(one) > pair(next)) {
        return Some(format!(
            "repetition {} ({}, order {}) was measured after repetition {} ({}, order {}); {ADVICE}",
            next.repetition, next.side, next.order, one.repetition, one.side, one.order
        ));
    }
    let mut rows: Vec<&str> = files.iter().map(|file| file.row.as_str()).collect();
    rows.sort_unstable();
    rows.dedup();
    rows.into_iter().find_map(|row| unbalanced(&files, row))
}

/// Returns which two targets of a row have places that a drift would show as a difference.
fn unbalanced(files: &[Placed], row: &str) -> Option<String> {
    let own = || files.iter().filter(|file| file.row == row);
    let mut sides: Vec<&str> = own().map(|file| file.side.as_str()).collect();
    sides.sort_unstable();
    sides.dedup();
    let pairs = sides.len() * sides.len().saturating_sub(1) / 2;
    let places = |side: &str| -> Vec<Observation<'static>> {
        own().zip(0_u32..).filter(|(file, _)| file.side == side).map(|(file, place)| observation(file, place)).collect()
    };
    for (number, one) in sides.iter().enumerate() {
        for other in &sides[number + 1..] {
            if let Some(lean) = lean(&places(one), &places(other), pairs) {
                let (earlier, later) = if lean > 0.0 { (one, other) } else { (other, one) };
                return Some(format!(
                    "{earlier} was measured earlier than {later} too often, so that a machine that slows down would \
                     favour {earlier}; {ADVICE}"
                ));
            }
        }
    }
    None
}

fn observation(file: &Placed, place: u32) -> Observation<'static> {
    let (block, value) = (file.repetition, f64::from(place));
    Observation { experiment: Some("import"), block, agent: None, at_ms: None, interleaved: true, paired: false, value }
}

/// Returns how far the other side's mean place lies behind, if a drift would show as a difference.
fn lean(base: &[Observation], other: &[Observation], pairs: usize) -> Option<f64> {
    // Without a common block the comparison does not treat them as measured in turn.
    let Design::InTurn { strata, .. } = design(base, other) else { return None };
    let p = rank_test(&strata)?.p;
    let is_unfair = p < ALPHA / pairs as f64 || p < MIN_IF_REPEATED && is_repeated(&strata);
    let mean = |side: &[Observation]| side.iter().map(|one| one.value).sum::<f64>() / side.len().max(1) as f64;
    is_unfair.then(|| mean(other) - mean(base))
}

/// Whether all complete pairs of blocks have the same order.
fn is_repeated(strata: &[Stratum]) -> bool {
    let pattern = |stratum: &Stratum| {
        let sides = [(&stratum.base, true), (&stratum.other, false)];
        let mut places: Vec<(f64, bool)> =
            sides.into_iter().flat_map(|(places, is_base)| places.iter().map(move |place| (*place, is_base))).collect();
        places.sort_by(|a, b| a.0.total_cmp(&b.0));
        places.into_iter().map(|(_, is_base)| is_base).collect::<Vec<_>>()
    };
    let patterns: Vec<_> = strata.iter().filter(|one| one.base.len() + one.other.len() == 4).map(pattern).collect();
    patterns.windows(2).all(|two| two[0] == two[1])
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};

    use super::*;

    const NAMES: [&str; 4] = ["A", "B", "C", "D"];

    /// Returns files measured in this order of targets; each target's repetitions are counted.
    fn files(order: &[usize]) -> Vec<Placed> {
        let mut counts = [0; 4];
        let mut place = |(&target, order): (&usize, u32)| {
            counts[target] += 1;
            Placed { row: String::new(), side: NAMES[target].to_owned(), repetition: counts[target], order }
        };
        order.iter().zip(1..).map(&mut place).collect()
    }

    /// Returns `blocks` blocks of a repeated pattern, whose last block has every target once.
    fn repeated(pattern: &str, blocks: usize) -> Vec<usize> {
        let pattern: Vec<usize> =
            pattern.bytes().filter(u8::is_ascii_uppercase).map(|letter| usize::from(letter - b'A')).collect();
        let targets = pattern.iter().max().map_or(0, |most| most + 1);
        let whole = targets * 2 * (blocks / 2);
        let mut order: Vec<usize> = pattern.iter().copied().cycle().take(whole).collect();
        order.extend((0..targets).take(targets * (blocks % 2)));
        order
    }

    /// Returns an order as experiments draw it.
    fn random_order(targets: usize, blocks: usize, random: &mut StdRng) -> Vec<usize> {
        let mut order = Vec::new();
        for first in (0..blocks).step_by(2) {
            let mut pair: Vec<usize> = (0..targets).cycle().take(targets * 2.min(blocks - first)).collect();
            pair.shuffle(random);
            order.extend(pair);
        }
        order
    }

    fn normal(random: &mut StdRng) -> f64 {
        let (one, two): (f64, f64) = (random.random(), random.random());
        (-2.0 * one.max(f64::MIN_POSITIVE).ln()).sqrt() * (std::f64::consts::TAU * two).cos()
    }

    /// Whether a page shows a difference between equal targets measured in this order under a drift.
    fn shows_difference(order: &[usize], drift: f64, noise: f64, random: &mut StdRng) -> bool {
        let all = files(order);
        let last = (order.len() - 1) as f64;
        let values: Vec<(usize, Observation)> = all
            .iter()
            .zip(order)
            .map(|(file, target)| {
                let level = (1.0 + drift * f64::from(file.order - 1) / last).ln() + noise * normal(random);
                (*target, Observation { value: level, ..observation(file, 0) })
            })
            .collect();
        let side = |target: usize| -> Vec<Observation> {
            values.iter().filter(|(own, _)| *own == target).map(|(_, one)| *one).collect()
        };
        let targets = order.iter().max().map_or(0, |most| most + 1);
        let pairs = (targets * (targets - 1) / 2) as f64;
        (0..targets).any(|one| {
            (one + 1..targets).any(|other| {
                let Design::InTurn { strata, .. } = design(&side(one), &side(other)) else { return false };
                rank_test(&strata).is_some_and(|test| test.p <= ALPHA / pairs)
            })
        })
    }

    /// Drift over the import, and standard deviation of a run.
    const MACHINES: [(f64, f64); 6] =
        [(-0.1, 0.005), (-0.1, 0.01), (-0.1, 0.02), (-0.2, 0.01), (-0.2, 0.02), (-0.2, 0.04)];

    #[test]
    fn an_order_that_a_drift_would_show_as_a_difference_is_refused() {
        for blocks in 6..=10 {
            for pattern in ["AABB", "BBAA", "AABBCC", "AABBCCDD"] {
                assert!(fault(files(&repeated(pattern, blocks))).is_some(), "{pattern} {blocks}");
            }
        }
        for (pattern, blocks) in [("ABAB", 8), ("BABA", 10), ("ABAB", 10), ("ABCABC", 8), ("ABCDABCD", 10)] {
            assert!(fault(files(&repeated(pattern, blocks))).is_some(), "{pattern} {blocks}");
        }
        let random = &mut StdRng::seed_from_u64(3);
        let false_differences = (0..200).filter(|_| shows_difference(&repeated("AABB", 6), -0.1, 0.01, random)).count();
        assert!(false_differences > 100, "{false_differences} of 200");
    }

    #[test]
    fn balanced_orders_are_accepted_and_make_few_false_differences() {
        let random = &mut StdRng::seed_from_u64(4);
        let patterns = ["ABBA", "ABBA BAAB", "ABBA ABBA BAAB BAAB", "AABB BBAA", "ABCCBA", "ABCDDCBA"];
        let always = patterns.into_iter().flat_map(|pattern| [4, 6, 7, 10].map(|blocks| (pattern, blocks)));
        // With so few repetitions a fixed order is harmless.
        let few = [("AABB", 4), ("AABB", 5), ("ABAB", 4), ("ABAB", 5), ("ABAB", 6), ("ABCABC", 5)];
        for (pattern, blocks) in always.chain(few) {
            let order = repeated(pattern, blocks);
            assert_eq!(fault(files(&order)), None, "{pattern} {blocks}");
            for (drift, noise) in MACHINES {
                let shown = (0..100).filter(|_| shows_difference(&order, drift, noise, random)).count();
                // 6 % and two and a half standard errors.
                assert!(shown <= 12, "{pattern} {blocks}, drift {drift}, noise {noise}: {shown} of 100");
            }
        }
    }

    #[test]
    fn orders_of_experiments_are_accepted_and_make_few_false_differences() {
        let random = &mut StdRng::seed_from_u64(5);
        let (mut all, mut shown_in_all) = (0_u32, 0);
        for targets in 2..=4 {
            for blocks in 4..=10 {
                let orders: Vec<_> = (0..50).map(|_| random_order(targets, blocks, random)).collect();
                let accepted: Vec<_> = orders.iter().filter(|order| fault(files(order)).is_none()).collect();
                assert!(accepted.len() >= if blocks < 6 { 50 } else { 43 }, "{targets} {blocks}: {}", accepted.len());
                let shown = accepted
                    .iter()
                    .zip(MACHINES.iter().cycle())
                    .filter(|(order, (drift, noise))| shows_difference(order, *drift, *noise, random))
                    .count();
                all += u32::try_from(accepted.len()).expect("at most 50");
                shown_in_all += shown;
                // 6 % and two and a half standard errors.
                assert!(shown <= 7, "{targets} targets, {blocks} blocks: {shown} of {}", accepted.len());
            }
        }
        assert!(all > 900 && shown_in_all as f64 / f64::from(all) <= 0.06, "{shown_in_all} of {all}");
    }

    #[test]
    fn blocks_measured_one_side_after_the_other_are_refused_with_their_place() {
        let order = repeated("AAAABBBB", 4);
        assert_eq!(
            fault(files(&order)).as_deref(),
            Some(
                "repetition 1 (B, order 5) was measured after repetition 4 (A, order 4); measure each pair of \
                 repetitions in mirrored order (A B B A) or in random order"
            )
        );
        let sentence = fault(files(&repeated("BBAA", 6))).expect("unbalanced");
        assert!(sentence.starts_with("B was measured earlier than A too often"), "{sentence}");
    }

    #[test]
    fn only_targets_that_are_compared_must_be_balanced() {
        let in_row = |mut file: Placed, row: &str| {
            row.clone_into(&mut file.row);
            file
        };
        // Each target in a row of its own: nothing is compared.
        let apart = files(&repeated("AABB", 8)).into_iter().map(|file| {
            let row = file.side.clone();
            in_row(file, &row)
        });
        assert_eq!(fault(apart.collect()), None);
        assert_eq!(fault(files(&[0, 0, 0])), None, "one target");
    }
}
