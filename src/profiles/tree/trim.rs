//! Folding of nodes that are too small to be drawn. Pure.

use super::{Node, Symbol, Tree};

/// Name of the node that stands for all small children of a node.
pub const OTHER: &str = "[other]";

/// A tree without its small nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Trimmed {
    /// The smaller tree.
    pub tree: Tree,
    /// The node of the complete tree for each node; None for `[other]`.
    pub origin: Vec<Option<usize>>,
}

impl Tree {
    /// Folds nodes whose value is below this share of the total in every run.
    ///
    /// The small children of a node become one child `[other]`, the last one, so that all sums stay what they are.
    pub fn trimmed(&self, share: f64) -> Trimmed {
        let mut trimming = Trimming::new(self);
        let mut node = 1;
        while let Some(Node { parent: Some(parent), symbol, end }) = self.nodes.get(node).copied() {
            trimming.close(|open| open != parent);
            if self.reaches(node, share) {
                trimming.keep(node, symbol);
                node += 1;
            } else {
                trimming.fold(node);
                node = end;
            }
        }
        trimming.close(|_| true);
        trimming.finish()
    }

    fn reaches(&self, node: usize, share: f64) -> bool {
        self.total(node).iter().zip(&self.whole).any(|(value, whole)| *value > 0.0 && *value >= share * whole)
    }
}

/// A kept node whose children are being visited.
struct Open {
    node: usize,
    kept: usize,
    folded: Vec<f64>,
}

/// A tree while it is being trimmed.
struct Trimming<'a> {
    full: &'a Tree,
    trimmed: Trimmed,
    open: Vec<Open>,
}

impl<'a> Trimming<'a> {
    fn new(full: &'a Tree) -> Self {
        let tree = Tree {
            symbols: full.symbols.clone(),
            whole: full.whole.clone(),
            empty: full.empty.clone(),
            nodes: Vec::new(),
            total: Vec::new(),
            own: Vec::new(),
            unit: full.unit,
        };
        let mut trimming = Self { full, trimmed: Trimmed { tree, origin: Vec::new() }, open: Vec::new() };
        trimming.keep(0, None);
        trimming
    }

    fn keep(&mut self, node: usize, symbol: Option<usize>) {
        let kept = self.push(symbol, self.full.own(node), Some(node));
        self.open.push(Open { node, kept, folded: vec![0.0; self.full.runs()] });
    }

    fn push(&mut self, symbol: Option<usize>, own: &[f64], origin: Option<usize>) -> usize {
        let tree = &mut self.trimmed.tree;
        tree.nodes.push(Node { parent: self.open.last().map(|open| open.kept), symbol, end: 0 });
        tree.own.extend_from_slice(own);
        self.trimmed.origin.push(origin);
        tree.nodes.len() - 1
    }

    fn fold(&mut self, node: usize) {
        if let Some(open) = self.open.last_mut() {
            open.folded.iter_mut().zip(self.full.total(node)).for_each(|(sum, value)| *sum += value);
        }
    }

    /// Closes the innermost nodes as long as a condition holds.
    fn close(&mut self, condition: impl Fn(usize) -> bool) {
        while self.open.last().is_some_and(|open| condition(open.node)) {
            let folded = self.open.last_mut().map(|open| std::mem::take(&mut open.folded)).unwrap_or_default();
            if folded.iter().any(|value| *value > 0.0) {
                self.push(Some(self.full.symbols.len()), &folded, None);
            }
            self.open.pop();
        }
    }

    fn finish(mut self) -> Trimmed {
        let other = Symbol { name: OTHER.to_owned(), module: String::new(), kernel: false };
        if self.trimmed.origin.contains(&None) {
            self.trimmed.tree.symbols.push(other);
        }
        self.trimmed.tree.finish();
        self.trimmed
    }
}
