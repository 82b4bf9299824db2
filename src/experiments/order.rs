//! In which order the runs of an experiment are done. Pure.
//!
//! One repetition of every cell makes a block; blocks follow each other, and every other block runs backwards (ABBA).
//! So a machine that slowly becomes warmer or busier does not favour the target that happens to be named first.

/// One run to be: indices into the plan's targets and sizes, and the repetition from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Index of the target.
    pub target: usize,
    /// Index of the size.
    pub size: usize,
    /// From 1.
    pub repetition: u32,
}

/// All cells in the order in which they are done.
pub fn order(targets: usize, sizes: usize, repetitions: u32) -> Vec<Cell> {
    let mut cells = Vec::new();
    for repetition in 1..=repetitions {
        let mut block: Vec<_> =
            (0..sizes).flat_map(|size| (0..targets).map(move |target| Cell { target, size, repetition })).collect();
        if repetition % 2 == 0 {
            block.reverse();
        }
        cells.extend(block);
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_comes_once_a_repetition_and_blocks_alternate() {
        let cells = order(2, 1, 3);
        let targets: Vec<_> = cells.iter().map(|cell| cell.target).collect();
        assert_eq!(targets, [0, 1, 1, 0, 0, 1]);
        let all = order(3, 2, 4);
        assert_eq!(all.len(), 24);
        for cell in &all {
            assert_eq!(all.iter().filter(|other| *other == cell).count(), 1);
        }
    }
}
