//! The table of functions: what each costs by itself and with everything it calls. Pure.

use crate::profiles::mean::mean;
use serde::Serialize;

use super::tree::{Symbol, Tree};

/// A function's values by run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Function {
    /// Index in the tree's symbols.
    pub symbol: usize,
    /// Name and module.
    pub name: Symbol,
    /// Values without what the function calls.
    pub own: Vec<f64>,
    /// Values with everything the function calls; calls of itself count once.
    pub total: Vec<f64>,
}

/// All functions of a tree, the one with the largest own mean first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Functions {
    /// Functions with any samples.
    pub functions: Vec<Function>,
}

impl Functions {
    /// Adds up the nodes of each function.
    pub fn new(tree: &Tree) -> Self {
        let runs = tree.runs();
        let empty = |(symbol, name): (usize, &Symbol)| Function {
            symbol,
            name: name.clone(),
            own: vec![0.0; runs],
            total: vec![0.0; runs],
        };
        let mut functions: Vec<Function> = tree.symbols.iter().enumerate().map(empty).collect();
        let mut path = Path::new(functions.len());
        for (node, symbol) in tree.nodes.iter().enumerate().filter_map(|(node, of)| Some((node, of.symbol?))) {
            let is_recursive = path.enter(tree, node, symbol);
            add(&mut functions[symbol].own, tree.own(node));
            if !is_recursive {
                add(&mut functions[symbol].total, tree.total(node));
            }
        }
        functions.retain(|function| function.total.iter().any(|value| *value > 0.0));
        functions.sort_by_cached_key(|function| (Descending(mean(&function.own)), function.symbol));
        Self { functions }
    }
}

fn add(sums: &mut [f64], values: &[f64]) {
    sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// Sorts larger values first.
#[derive(PartialEq)]
struct Descending(f64);

impl Eq for Descending {}

impl Ord for Descending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.0.total_cmp(&self.0)
    }
}

impl PartialOrd for Descending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The functions that are being called at one node.
struct Path {
    /// End of the subtree and function of each caller.
    open: Vec<(usize, usize)>,
    /// How often each function is among the callers.
    depth: Vec<usize>,
}

impl Path {
    fn new(symbols: usize) -> Self {
        Self { open: Vec::new(), depth: vec![0; symbols] }
    }

    /// Goes on to the next node. Returns whether its function is among its callers.
    fn enter(&mut self, tree: &Tree, node: usize, symbol: usize) -> bool {
        while let Some((_, left)) = self.open.pop_if(|(end, _)| *end <= node) {
            self.depth[left] -= 1;
        }
        self.open.push((tree.nodes[node].end, symbol));
        self.depth[symbol] += 1;
        self.depth[symbol] > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiles::{
        stacks::Profile,
        tree::testing::{run, stacks},
    };

    fn table(lines: &[&str]) -> Vec<(String, f64, f64)> {
        let stacks = stacks(lines);
        let functions = Functions::new(&Tree::union(&[run(&stacks, 10.0)]));
        functions.functions.into_iter().map(|one| (one.name.name, one.own[0], one.total[0])).collect()
    }

    #[test]
    fn a_function_that_recurses_counts_once() {
        let table = table(&["main;fib;fib;fib 4", "main;fib 1", "main;other;fib;other 5"]);
        let row = |name: &str, own, total| (name.to_owned(), own, total);
        assert_eq!(table, [row("fib", 5.0, 10.0), row("other", 5.0, 5.0), row("main", 0.0, 10.0)]);
    }

    #[test]
    fn functions_without_samples_are_not_listed() {
        let mut stacks = stacks(&["a;b 1"]);
        stacks.samples[0].stack.pop();
        let functions = Functions::new(&Tree::union(&[Profile { stacks: &stacks, cpu_ms: None }]));
        assert_eq!(functions.functions.len(), 1);
        assert_eq!(functions.functions[0].own, [100.0]);
    }
}
