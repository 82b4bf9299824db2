//! The union of the call trees of several runs, with the values of each run. Pure.
//!
//! All stacks are sorted, so a tree is built in one pass: what two neighbours share is a path that exists already. That
//! needs no recursion however deep stacks are, and the result does not depend on the order of runs and samples.

mod symbols;
#[cfg(test)]
pub(super) mod testing;
mod trim;

use std::ops::Range;

use serde::Serialize;

pub use symbols::Symbol;
pub use trim::Trimmed;

use super::stacks::{Profile, Stacks, Unit};
use symbols::Symbols;

/// A node of the tree: a function with everything that called it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The caller's node; None for the root.
    pub parent: Option<usize>,
    /// Index of the function in the tree's symbols; None for the root.
    pub symbol: Option<usize>,
    /// Index after the last node below this one.
    pub end: usize,
}

/// The union of the call trees of several runs.
///
/// Node 0 is the root, which stands for the complete run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tree {
    /// Unit of all values.
    pub unit: Unit,
    /// Functions, sorted by name and module.
    pub symbols: Vec<Symbol>,
    /// Nodes in preorder; children sorted by name and module.
    pub nodes: Vec<Node>,
    /// CPU time of each run; known even if the run has no samples.
    pub whole: Vec<f64>,
    /// Runs whose profile has no samples; their values are 0 everywhere.
    pub empty: Vec<usize>,
    total: Vec<f64>,
    own: Vec<f64>,
}

impl Tree {
    /// Builds the union tree of several runs.
    pub fn union(profiles: &[Profile<'_>]) -> Self {
        let unit = Unit::common(profiles);
        let symbols = Symbols::new(profiles.iter().map(|profile| profile.stacks));
        let sorted = SortedStacks::new(profiles, &symbols);
        let mut tree = Self {
            unit,
            symbols: symbols.sorted,
            nodes: vec![Node { parent: None, symbol: None, end: 1 }],
            whole: profiles.iter().map(|profile| unit.whole(profile)).collect(),
            empty: Vec::new(),
            total: Vec::new(),
            own: vec![0.0; profiles.len()],
        };
        tree.add(&sorted, profiles.len());
        tree.finish();
        tree.scale();
        tree
    }

    /// Adds sorted stacks to a tree that has only its root.
    fn add(&mut self, sorted: &SortedStacks, runs: usize) {
        let mut path = vec![0];
        let mut last: &[u32] = &[];
        for entry in &sorted.entries {
            let stack = &sorted.symbols[entry.stack.clone()];
            let shared = stack.iter().zip(last).take_while(|(one, other)| one == other).count();
            path.truncate(shared + 1);
            for symbol in &stack[shared..] {
                let parent = path.last().copied();
                path.push(self.nodes.len());
                self.nodes.push(Node { parent, symbol: Some(*symbol as usize), end: 0 });
                self.own.resize(self.own.len() + runs, 0.0);
            }
            let node = path.last().copied().unwrap_or_default();
            self.own[node * runs + entry.run] += entry.value;
            last = stack;
        }
    }

    /// Computes totals and the ends of subtrees from own values. Children come after their parents.
    fn finish(&mut self) {
        let runs = self.runs();
        self.total = self.own.clone();
        for place in (0..self.nodes.len()).rev() {
            self.nodes[place].end = self.nodes[place].end.max(place + 1);
            let Node { parent: Some(parent), end, .. } = self.nodes[place] else { continue };
            self.nodes[parent].end = self.nodes[parent].end.max(end);
            let (above, below) = self.total.split_at_mut(place * runs);
            for (sum, value) in above[parent * runs..].iter_mut().zip(&below[..runs]) {
                *sum += value;
            }
        }
    }

    /// Turns samples into the tree's unit.
    fn scale(&mut self) {
        let runs = self.runs();
        self.empty = (0..runs).filter(|run| self.total[*run] <= 0.0).collect();
        let factor = |run: usize| if self.total[run] > 0.0 { self.whole[run] / self.total[run] } else { 0.0 };
        let factors: Vec<f64> = (0..runs).map(factor).collect();
        for values in [&mut self.total, &mut self.own] {
            for of_node in values.chunks_exact_mut(runs.max(1)) {
                of_node.iter_mut().zip(&factors).for_each(|(value, factor)| *value *= factor);
            }
        }
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        self.whole.len()
    }

    /// Returns the values of a node with everything it calls, by run.
    pub fn total(&self, node: usize) -> &[f64] {
        &self.total[node * self.runs()..][..self.runs()]
    }

    /// Returns the values of a node without what it calls, by run.
    pub fn own(&self, node: usize) -> &[f64] {
        &self.own[node * self.runs()..][..self.runs()]
    }

    /// Returns the function of a node; None for the root.
    pub fn symbol(&self, node: usize) -> Option<&Symbol> {
        self.symbols.get(self.nodes[node].symbol?)
    }

    /// Iterates over the nodes that a node calls, sorted by name.
    pub fn children(&self, node: usize) -> impl Iterator<Item = usize> {
        let end = self.nodes[node].end;
        let first = Some(node + 1).filter(|first| *first < end);
        std::iter::successors(first, move |child| Some(self.nodes[*child].end).filter(|next| *next < end))
    }

    /// Iterates over the callers of a node, the nearest first, without the root.
    pub fn callers(&self, node: usize) -> impl Iterator<Item = usize> {
        let above = |node: &usize| self.nodes[*node].parent.filter(|parent| *parent > 0);
        std::iter::successors(above(&node), above)
    }
}

/// A distinct stack of one run.
struct Entry {
    stack: Range<usize>,
    run: usize,
    value: f64,
}

/// Stacks of all runs as symbols, sorted.
struct SortedStacks {
    symbols: Vec<u32>,
    entries: Vec<Entry>,
}

impl SortedStacks {
    fn new(profiles: &[Profile<'_>], known: &Symbols) -> Self {
        let samples = || profiles.iter().map(|profile| &profile.stacks.samples);
        let mut symbols = Vec::with_capacity(samples().flatten().map(|sample| sample.stack.len()).sum());
        let mut entries = Vec::with_capacity(samples().map(Vec::len).sum());
        for (run, Profile { stacks: Stacks { samples, .. }, .. }) in profiles.iter().enumerate() {
            for sample in samples.iter().filter(|sample| sample.value > 0) {
                let start = symbols.len();
                symbols.extend(sample.stack.iter().map(|frame| known.number_of(run, *frame)));
                entries.push(Entry { stack: start..symbols.len(), run, value: sample.value as f64 });
            }
        }
        // The run breaks ties, so sums are added in the same order whatever sorts them.
        entries
            .sort_unstable_by(|a, b| symbols[a.stack.clone()].cmp(&symbols[b.stack.clone()]).then(a.run.cmp(&b.run)));
        Self { symbols, entries }
    }
}

#[cfg(test)]
mod tests;
