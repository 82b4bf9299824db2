//! In which order the runs of an experiment are done. Pure.
//!
//! One repetition of every cell makes a block. The blocks come in pairs: the first of a pair is shuffled, the second is
//! the same backwards. So over a pair every cell stands in the middle on average, and a machine that slowly becomes
//! warmer or busier favours none (with two cells it is the known order ABBA); and what comes and goes by the clock does
//! not always meet the same cell, as each pair is shuffled anew. Where there are several targets, the two blocks of a pair
//! begin with different ones.
//!
//! The order follows from the seed alone, today and with every later version: the generator is the cipher `ChaCha8`, which
//! is published and fixed, and the shuffle (Fisher and Yates, Durstenfeld's form) stands here, because generators "of the
//! standard" and the shuffles of libraries may change from one release to the next.

use std::ops::RangeInclusive;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

/// One run to be: indices into the plan's targets, sizes and loads, and the repetition from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the target.
    pub target: usize,
    /// Index of the size.
    pub size: usize,
    /// Index of the load.
    pub load: usize,
    /// From 1.
    pub repetition: u32,
}

/// How many there are of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Targets.
    pub targets: usize,
    /// Machine sizes.
    pub sizes: usize,
    /// Loads.
    pub loads: usize,
}

/// All cells of these repetitions in the order in which they are done. Later repetitions don't change earlier ones.
pub fn order(grid: Grid, seed: u32, repetitions: RangeInclusive<u32>) -> Vec<Cell> {
    repetitions.flat_map(|repetition| block(grid, seed, repetition)).collect()
}

fn block(grid: Grid, seed: u32, repetition: u32) -> Vec<Cell> {
    let Grid { targets, sizes, loads } = grid;
    let mut cells = Vec::with_capacity(targets * sizes * loads);
    for load in 0..loads {
        for size in 0..sizes {
            cells.extend((0..targets).map(|target| Cell { target, size, load, repetition }));
        }
    }
    shuffle(&mut cells, seed, u64::from(repetition.saturating_sub(1) / 2));
    part_the_ends(&mut cells);
    if repetition.is_multiple_of(2) {
        cells.reverse();
    }
    cells
}

/// The last of a block opens the block after it: it shall be another target than the first.
fn part_the_ends(cells: &mut [Cell]) {
    let (Some(first), Some(last)) = (cells.first(), cells.len().checked_sub(1)) else { return };
    let opens = first.target;
    if let Some(other) = cells.iter().rposition(|cell| cell.target != opens) {
        cells.swap(other, last);
    }
}

/// Shuffles by a seed; each stream of a seed gives an order of its own.
pub fn shuffle<T>(items: &mut [T], seed: u32, stream: u64) {
    let mut key = [0; 32];
    key[..4].copy_from_slice(&seed.to_le_bytes());
    let mut random = ChaCha8Rng::from_seed(key);
    random.set_stream(stream);
    for place in (1..items.len()).rev() {
        items.swap(place, below(&mut random, place + 1));
    }
}

/// A number below a bound, all equally likely: what is left over at the top of the range is thrown again.
fn below(random: &mut ChaCha8Rng, bound: usize) -> usize {
    let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
    let fair = u64::MAX - u64::MAX % bound;
    loop {
        let thrown = random.next_u64();
        if thrown < fair {
            return usize::try_from(thrown % bound).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grid(targets: usize, sizes: usize, loads: usize) -> Grid {
        Grid { targets, sizes, loads }
    }

    fn targets(cells: &[Cell]) -> Vec<usize> {
        cells.iter().map(|cell| cell.target).collect()
    }

    const GRIDS: [(usize, usize, usize); 7] =
        [(1, 1, 1), (2, 1, 1), (1, 3, 2), (2, 2, 1), (3, 2, 1), (2, 2, 9), (5, 1, 1)];

    #[test]
    fn each_block_holds_every_cell_once() {
        for (one, two, three) in GRIDS {
            let cells = order(grid(one, two, three), 7, 1..=5);
            assert_eq!(cells.len(), one * two * three * 5);
            for cell in &cells {
                assert_eq!(cells.iter().filter(|other| *other == cell).count(), 1);
            }
            let blocks: Vec<_> = cells.iter().map(|cell| cell.repetition).collect();
            assert!(blocks.is_sorted(), "one after the other");
        }
    }

    #[test]
    fn over_a_pair_of_blocks_every_cell_stands_in_the_middle() {
        for (one, two, three) in GRIDS {
            for seed in 0..50 {
                let cells = order(grid(one, two, three), seed, 1..=6);
                let size = one * two * three;
                for pair in cells.chunks(2 * size) {
                    for place in 0..size {
                        let same = |cell: &Cell| Cell { repetition: 0, ..*cell };
                        assert_eq!(same(&pair[place]), same(&pair[2 * size - 1 - place]));
                    }
                }
            }
        }
    }

    #[test]
    fn two_cells_are_done_in_the_order_abba() {
        let mut begins = [0, 0];
        for seed in 0..100 {
            let done = targets(&order(grid(2, 1, 1), seed, 1..=2));
            assert!(done == [0, 1, 1, 0] || done == [1, 0, 0, 1], "{done:?}");
            begins[done[0]] += 1;
        }
        assert!(begins.iter().all(|count| (30..=70).contains(count)), "{begins:?}");
    }

    #[test]
    fn no_target_opens_both_blocks_of_a_pair_and_all_open_about_as_many() {
        for (one, two, three) in GRIDS.into_iter().filter(|(targets, ..)| *targets > 1) {
            let mut opened = vec![0_u32; one];
            for seed in 0..600 {
                let cells = order(grid(one, two, three), seed, 1..=2);
                let firsts = [cells[0].target, cells[one * two * three].target];
                assert_ne!(firsts[0], firsts[1], "seed {seed}");
                for target in firsts {
                    opened[target] += 1;
                }
            }
            // Five standard deviations of a fair draw.
            let fair = 1_200.0 / one as f64;
            assert!(opened.iter().all(|count| (f64::from(*count) - fair).abs() < 5.0 * fair.sqrt()), "{opened:?}");
        }
    }

    #[test]
    fn every_place_in_a_block_is_had_by_every_cell() {
        let mut places = [[0_u32; 6]; 6];
        for seed in 0..6_000 {
            for (place, cell) in order(grid(1, 6, 1), seed, 1..=1).iter().enumerate() {
                places[cell.size][place] += 1;
            }
        }
        assert!(places.iter().flatten().all(|count| (840..=1_160).contains(count)), "{places:?}");
    }

    #[test]
    fn a_seed_gives_the_same_order_for_ever_however_many_repetitions_follow() {
        let cells = order(grid(3, 1, 1), 42, 1..=4);
        assert_eq!(targets(&cells), PINNED);
        assert_eq!(order(grid(3, 1, 1), 42, 1..=9)[..12], cells);
        assert_eq!(order(grid(3, 1, 1), 42, 3..=4), cells[6..]);
        assert_ne!(targets(&order(grid(3, 1, 1), 43, 1..=9)), targets(&order(grid(3, 1, 1), 42, 1..=9)));
    }

    /// As the first version made it.
    const PINNED: [usize; 12] = [0, 1, 2, 2, 1, 0, 2, 1, 0, 0, 1, 2];
}
