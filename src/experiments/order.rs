//! The order in which the runs of an experiment are measured. Pure.
//!
//! One repetition of every cell is a block, and two consecutive blocks are a pair. All runs of a pair are shuffled
//! together: with two cells, each of the six orders of AABB is equally likely. So the comparison, which permutes runs
//! within pairs of blocks, is exact for any machine: noise that drifts, jumps, or has a period of two, four or eight
//! runs favours no cell. A fixed scheme such as ABBA cancels a linear drift exactly, but resonates: noise with a period
//! of four runs makes up to one in four comparisons of equal programs show a difference. A block without a partner (the
//! last of an odd number, or one that was added alone) is shuffled by itself.
//!
//! The order depends on the seed alone, in this and every later version. The generator is the cipher `ChaCha8`, which
//! is published and fixed, and the shuffle (Fisher–Yates, Durstenfeld's variant) is implemented here, because the
//! standard generators and shuffles of libraries may change between releases.

use std::ops::RangeInclusive;

use crate::app::random::below;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

/// A planned run: indices into the plan's targets, sizes and loads, and its repetition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanIndices {
    /// Index of the target.
    pub target: usize,
    /// Index of the size.
    pub size: usize,
    /// Index of the load.
    pub load: usize,
    /// Repetition, from 1.
    pub repetition: u32,
}

/// The number of targets, sizes and loads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Number of targets.
    pub targets: usize,
    /// Number of machine sizes.
    pub sizes: usize,
    /// Number of loads.
    pub loads: usize,
}

/// Returns all cells of these repetitions in the order in which they are measured.
///
/// Complete pairs of blocks keep their order, regardless of the number of repetitions.
pub fn order(grid: Grid, seed: u32, repetitions: RangeInclusive<u32>) -> Vec<PlanIndices> {
    let (mut next, last) = (*repetitions.start(), *repetitions.end());
    let mut all = Vec::new();
    while next <= last {
        let is_pair = !next.is_multiple_of(2) && next < last;
        all.extend(if is_pair { pair(grid, seed, next) } else { block(grid, seed, next) });
        next += if is_pair { 2 } else { 1 };
    }
    all
}

/// Returns all cells of one repetition.
fn cells(grid: Grid, repetition: u32) -> Vec<PlanIndices> {
    let Grid { targets, sizes, loads } = grid;
    let mut cells = Vec::with_capacity(targets * sizes * loads);
    for load in 0..loads {
        for size in 0..sizes {
            cells.extend((0..targets).map(|target| PlanIndices { target, size, load, repetition }));
        }
    }
    cells
}

/// Returns the shuffled cells of a single block.
fn block(grid: Grid, seed: u32, repetition: u32) -> Vec<PlanIndices> {
    let mut cells = cells(grid, repetition);
    shuffle(&mut cells, seed, ALONE | u64::from(repetition));
    cells
}

/// Returns two blocks shuffled together. The first run of each cell belongs to the first repetition.
fn pair(grid: Grid, seed: u32, first: u32) -> Vec<PlanIndices> {
    let mut cells = [cells(grid, first), cells(grid, first)].concat();
    shuffle(&mut cells, seed, u64::from(first / 2));
    for place in 0..cells.len() {
        let (before, rest) = cells.split_at_mut(place);
        if before.contains(&rest[0]) {
            rest[0].repetition = first + 1;
        }
    }
    cells
}

/// Marks the random streams that shuffle single blocks.
const ALONE: u64 = 1 << 40;

/// Shuffles by a seed. Each stream of a seed gives an independent order.
pub fn shuffle<T>(items: &mut [T], seed: u32, stream: u64) {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    for place in (1..items.len()).rev() {
        items.swap(place, below(&mut random, place + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(targets: usize, sizes: usize, loads: usize) -> Grid {
        Grid { targets, sizes, loads }
    }

    fn targets(cells: &[PlanIndices]) -> Vec<usize> {
        cells.iter().map(|cell| cell.target).collect()
    }

    const GRIDS: [(usize, usize, usize); 7] =
        [(1, 1, 1), (2, 1, 1), (1, 3, 2), (2, 2, 1), (3, 2, 1), (2, 2, 9), (5, 1, 1)];

    #[test]
    fn each_repetition_has_every_cell_once_and_pairs_are_consecutive() {
        for (one, two, three) in GRIDS {
            let cells = order(grid(one, two, three), 7, 1..=5);
            assert_eq!(cells.len(), one * two * three * 5);
            for cell in &cells {
                assert_eq!(cells.iter().filter(|other| *other == cell).count(), 1);
            }
            let pairs: Vec<_> = cells.iter().map(|cell| (cell.repetition - 1) / 2).collect();
            assert!(pairs.is_sorted(), "one pair after the other");
        }
    }

    #[test]
    fn every_order_of_two_cells_in_a_pair_is_equally_likely() {
        let mut orders = std::collections::BTreeMap::<Vec<usize>, u32>::new();
        for seed in 0..6_000 {
            *orders.entry(targets(&order(grid(2, 1, 1), seed, 1..=2))).or_default() += 1;
        }
        // Within five standard deviations of a fair draw.
        assert!(orders.len() == 6 && orders.values().all(|count| (855..=1_145).contains(count)), "{orders:?}");
    }

    #[test]
    fn pairs_and_single_blocks_are_drawn_independently() {
        let (mut same, mut same_alone) = (0_u32, 0_u32);
        for seed in 0..6_000 {
            let cells = targets(&order(grid(2, 1, 1), seed, 1..=4));
            same += u32::from(cells[..4] == cells[4..]);
            let alone = |repetition| targets(&order(grid(2, 1, 1), seed, repetition..=repetition));
            same_alone += u32::from(alone(5) == alone(6));
        }
        assert!((855..=1_145).contains(&same), "one in six: {same}");
        assert!((2_800..=3_200).contains(&same_alone), "one in two: {same_alone}");
    }

    #[test]
    fn every_cell_takes_every_place_in_a_block() {
        let mut places = [[0_u32; 6]; 6];
        for seed in 0..6_000 {
            for (place, cell) in order(grid(1, 6, 1), seed, 1..=1).iter().enumerate() {
                places[cell.size][place] += 1;
            }
        }
        assert!(places.iter().flatten().all(|count| (840..=1_160).contains(count)), "{places:?}");
    }

    #[test]
    fn a_seed_determines_the_order_for_any_number_of_repetitions() {
        let cells = order(grid(3, 1, 1), 42, 1..=4);
        assert_eq!(targets(&cells), PINNED);
        assert_eq!(order(grid(3, 1, 1), 42, 1..=9)[..12], cells);
        assert_eq!(order(grid(3, 1, 1), 42, 3..=4), cells[6..]);
        assert_ne!(targets(&order(grid(3, 1, 1), 43, 1..=9)), targets(&order(grid(3, 1, 1), 42, 1..=9)));
    }

    /// The order that the first version produced.
    const PINNED: [usize; 12] = [1, 0, 0, 2, 1, 2, 0, 1, 2, 1, 2, 0];
}
