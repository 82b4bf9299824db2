//! Normalised functions of several runs, numbered in the order of their names. Pure.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use crate::profiles::{
    normalize,
    stacks::{Frame, Stacks},
};

/// A function with the program or library that contains it, both normalised.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Symbol {
    /// Name of the function.
    pub name: String,
    /// Program or library.
    pub module: String,
    /// Whether the function belongs to the kernel.
    pub kernel: bool,
}

impl Symbol {
    fn new(frame: &Frame) -> Self {
        Self {
            name: normalize::function(&frame.function),
            module: normalize::module(&frame.module, frame.kernel),
            kernel: frame.kernel,
        }
    }

    /// Whether the function has no known name.
    pub fn is_unknown(&self) -> bool {
        self.name == normalize::UNKNOWN
    }
}

/// All functions of several runs.
pub(super) struct Symbols {
    /// Functions sorted by name and module.
    pub(super) sorted: Vec<Symbol>,
    /// Number of each run's frames in `sorted`.
    by_frame: Vec<Vec<u32>>,
    /// Number of the function for frames that do not exist.
    missing: u32,
}

impl Symbols {
    pub(super) fn new<'a>(runs: impl Iterator<Item = &'a Stacks>) -> Self {
        // Runs share most names: each is normalised once.
        let mut raw: HashMap<(&str, &str, bool), usize> = HashMap::new();
        let mut distinct: BTreeMap<Symbol, Vec<usize>> = BTreeMap::new();
        let by_raw: Vec<Vec<usize>> = runs
            .map(|stacks| {
                let number = |frame: &'a Frame| {
                    let count = raw.len();
                    *raw.entry((&frame.function, &frame.module, frame.kernel)).or_insert_with(|| {
                        distinct.entry(Symbol::new(frame)).or_default().push(count);
                        count
                    })
                };
                stacks.frames.iter().map(number).collect()
            })
            .collect();
        let missing = Symbol::new(&Frame::default());
        distinct.entry(missing.clone()).or_default();
        let mut place = vec![0; raw.len()];
        for (number, numbers) in (0_u32..).zip(distinct.values()) {
            for raw in numbers {
                place[*raw] = number;
            }
        }
        let sorted: Vec<Symbol> = distinct.into_keys().collect();
        let missing = (0_u32..).zip(&sorted).find(|(_, symbol)| **symbol == missing).map_or(0, |(number, _)| number);
        let by_frame = by_raw.into_iter().map(|raw| raw.into_iter().map(|raw| place[raw]).collect()).collect();
        Self { sorted, by_frame, missing }
    }

    /// Returns the number of a run's frame.
    pub(super) fn number_of(&self, run: usize, frame: u32) -> u32 {
        let known = usize::try_from(frame).ok().and_then(|frame| self.by_frame[run].get(frame));
        known.copied().unwrap_or(self.missing)
    }
}
