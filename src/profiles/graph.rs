//! A flame graph for the browser: the tree of a profile or of a comparison in compact arrays. Pure.

use crate::profiles::mean::mean;
use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    model::Scale,
    package::{Package, package},
};
use crate::profiles::{
    changes::{Change, Changes, Subject},
    tree::Tree,
};

/// The most nodes that a browser gets.
pub const MAX_NODES: usize = 50_000;

/// Share of the total below which nodes are folded: a hundredth of a pixel.
pub const MIN_SHARE: f64 = 0.000_01;

/// Resolution of values: a millionth of the total.
const STEPS: f64 = 1_000_000.0;

/// A tree in preorder. Its readers: `static/flamegraph.js`, and everyone who uses the API.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Graph {
    /// Unit of `value × scale`.
    pub unit: &'static str,
    /// Factor of all values.
    pub scale: f64,
    /// Names of functions.
    pub names: Vec<String>,
    /// Packages of functions.
    pub modules: Vec<Package>,
    /// Pairs of an index into `names` and one into `modules`.
    pub frames: Vec<usize>,
    /// Depth of each node; the root has 0.
    pub depth: Vec<u32>,
    /// Index of each node's pair in `frames`.
    pub frame: Vec<usize>,
    /// Total of each node; of a comparison, that of the candidate.
    pub value: Vec<u64>,
    /// Total of the baseline; only in a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<Vec<u64>>,
    /// 1 and −1 where more or less is significant, else 0; only in a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Vec<i8>>,
    /// Names of baseline and candidate; only in a comparison.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sides: Option<[String; 2]>,
}

/// Folds small nodes until a browser can show the tree.
pub fn drawable(tree: &Tree) -> Tree {
    let mut share = MIN_SHARE;
    loop {
        let folded = tree.trimmed(share).tree;
        if folded.nodes.len() <= MAX_NODES {
            return folded;
        }
        share *= 2.0;
    }
}

/// Returns the graph of runs of one cell.
pub fn graph(tree: &Tree, scale: Scale) -> Graph {
    let means: Vec<f64> = (0..tree.nodes.len()).map(|node| mean(tree.total(node))).collect();
    Graph { value: steps(&means, largest(&means)), ..outline(tree, scale, largest(&means)) }
}

/// Returns the graph of a comparison; `changes` are those of this tree.
pub fn compared(tree: &Tree, changes: &Changes, baseline_runs: usize, sides: [String; 2], scale: Scale) -> Graph {
    let of = |first: bool| -> Vec<f64> {
        let pick = |node| {
            let (baseline, candidate) = tree.total(node).split_at(baseline_runs);
            mean(if first { baseline } else { candidate })
        };
        (0..tree.nodes.len()).map(pick).collect()
    };
    let (baseline, candidate) = (of(true), of(false));
    let top = largest(&baseline).max(largest(&candidate));
    let mut change = vec![0; tree.nodes.len()];
    for one in changes.changes.iter().filter(|one| one.is_significant()) {
        if let Subject::Node(node) = one.subject {
            change[node] = if one.difference > 0.0 { 1 } else { -1 };
        }
    }
    // The root stands for the total, which is tested alone.
    if let Some(whole) = changes.whole.filter(Change::is_significant) {
        change[0] = if whole.difference > 0.0 { 1 } else { -1 };
    }
    Graph {
        value: steps(&candidate, top),
        base: Some(steps(&baseline, top)),
        change: Some(change),
        sides: Some(sides),
        ..outline(tree, scale, top)
    }
}

/// Returns everything but values. `top` is the largest value.
fn outline(tree: &Tree, scale: Scale, top: f64) -> Graph {
    // The root stands for everything.
    let mut names = vec!["all".to_owned()];
    names.extend(tree.symbols.iter().map(|symbol| symbol.name.clone()));
    let mut modules: Vec<Package> = vec![Package { name: String::new(), kind: super::package::PackageKind::Other }];
    let mut known: BTreeMap<Package, usize> = BTreeMap::new();
    let mut frames = vec![0, 0];
    for (place, symbol) in tree.symbols.iter().enumerate() {
        let package = package(symbol);
        let module = *known.entry(package).or_insert_with_key(|package| {
            modules.push(package.clone());
            modules.len() - 1
        });
        frames.extend([place + 1, module]);
    }
    let mut depth: Vec<u32> = Vec::with_capacity(tree.nodes.len());
    for node in &tree.nodes {
        depth.push(node.parent.map_or(0, |parent| depth[parent] + 1));
    }
    Graph {
        unit: scale.unit,
        scale: top * scale.factor / STEPS,
        names,
        modules,
        frames,
        frame: tree.nodes.iter().map(|node| node.symbol.map_or(0, |symbol| symbol + 1)).collect(),
        depth,
        value: Vec::new(),
        base: None,
        change: None,
        sides: None,
    }
}

fn largest(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a million")]
fn steps(values: &[f64], top: f64) -> Vec<u64> {
    let step = |value: &f64| if top > 0.0 { (value / top * STEPS).round() as u64 } else { 0 };
    values.iter().map(step).collect()
}
