//! The place of a difference in the call tree. Pure.

use std::collections::HashMap;

use serde::Serialize;

use super::share_of_whole;
use crate::profiles::{
    changes::{Change, Changes, Presence, Subject},
    explained::Explained,
    package::{PackageKind, package},
    tree::{Symbol, Tree},
};

/// Smallest share of the difference that a place holds.
const MIN_EXPLAINED: f64 = 0.5;

/// A node that holds at least half of a difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Index of the node in the tree.
    pub node: usize,
    /// The node's function.
    pub symbol: Symbol,
    /// The function above it that only one side calls there, or else the nearest caller worth naming.
    pub caller: Option<Symbol>,
    /// Share of the difference.
    pub explains: Explained,
}

/// Descends from the root to the last node that holds at least half of the difference.
pub(super) fn find(tree: &Tree, changes: &Changes) -> Option<Place> {
    let whole = changes.whole?.difference;
    let index_of = |(index, change): (usize, &Change)| match change.subject {
        Subject::Node(node) => Some((node, index)),
        _ => None,
    };
    let by_node: HashMap<usize, usize> = changes.changes.iter().enumerate().filter_map(index_of).collect();
    let share = |node: usize| {
        let change = &changes.changes[*by_node.get(&node)?];
        change.is_significant().then_some(change.difference / whole).filter(|share| *share >= MIN_EXPLAINED)
    };
    let below = |node: &usize| {
        let shares = tree.children(*node).filter_map(|child| Some((child, share(child)?)));
        Some(shares.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0)))?.0)
    };
    let path: Vec<usize> = std::iter::successors(below(&0), below).collect();
    let node = *path.last()?;
    let is_on_one_side = |node: &&usize| changes.changes[by_node[*node]].presence != Presence::Both;
    let added = path.iter().find(is_on_one_side).filter(|first| **first != node);
    let caller = added.and_then(|first| tree.symbol(*first)).or_else(|| caller(tree, node));
    Some(Place {
        node,
        symbol: tree.symbol(node)?.clone(),
        caller: caller.cloned(),
        explains: share_of_whole(changes, by_node[&node])?,
    })
}

/// Returns the nearest caller that is worth naming: of the target itself, or else of another package than the node, and
/// neither runtime nor kernel.
fn caller(tree: &Tree, node: usize) -> Option<&Symbol> {
    let own = package(tree.symbol(node)?);
    let named = || tree.callers(node).filter_map(|caller| tree.symbol(caller)).filter(|caller| !caller.is_unknown());
    let is_own = |caller: &&Symbol| package(caller).kind == PackageKind::App;
    let locates = |caller: &&Symbol| package(caller) != own && !is_scaffolding(caller);
    named()
        .find(is_own)
        .or_else(|| named().find(locates))
        .or_else(|| named().find(|caller| !is_scaffolding(caller)))
        .or_else(|| named().next())
}

/// Whether a function calls everything and so does not locate anything.
fn is_scaffolding(symbol: &Symbol) -> bool {
    matches!(package(symbol).kind, PackageKind::Runtime | PackageKind::Kernel)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str) -> Symbol {
        Symbol { name: name.to_owned(), module: "server".to_owned(), kernel: false }
    }

    #[test]
    fn scaffolding_locates_nothing() {
        for name in ["_start", "__libc_start_call_main", "std::rt::lang_start", "runtime.main", "core::ops::call_once"]
        {
            assert!(is_scaffolding(&symbol(name)), "{name}");
        }
        for name in ["main.main", "net/http.(*conn).serve", "hyper::server::serve", "server.py:<module>", "run"] {
            assert!(!is_scaffolding(&symbol(name)), "{name}");
        }
    }
}
