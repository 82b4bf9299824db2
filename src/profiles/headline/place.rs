//! The place of a difference in the call tree. Pure.

use std::collections::HashMap;

use serde::Serialize;

use super::share_of_whole;
use crate::profiles::{
    changes::{Change, Changes, Subject},
    explained::Explained,
    tree::{Symbol, Tree},
};

/// Smallest share of the difference that a place holds.
const MIN_EXPLAINED: f64 = 0.5;

/// Packages and prefixes of functions that call everything and so do not locate anything.
const SCAFFOLDING: [&str; 10] =
    ["_start", "__libc_", "start_thread", "clone", "__clone", "core", "std", "alloc", "runtime", "entry_SYSCALL"];

/// A node that holds at least half of a difference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Index of the node in the tree.
    pub node: usize,
    /// The node's function.
    pub symbol: Symbol,
    /// The nearest caller in another package, which says why the function runs.
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
    let node = std::iter::successors(below(&0), below).last()?;
    Some(Place {
        node,
        symbol: tree.symbol(node)?.clone(),
        caller: caller(tree, node).cloned(),
        explains: share_of_whole(changes, by_node[&node])?,
    })
}

/// Returns the nearest caller that is worth naming: known, of another package, and not scaffolding.
fn caller(tree: &Tree, node: usize) -> Option<&Symbol> {
    let own = package(tree.symbol(node)?);
    let named = || tree.callers(node).filter_map(|caller| tree.symbol(caller)).filter(|caller| !caller.is_unknown());
    let locates = |caller: &&Symbol| package(caller) != own && !is_scaffolding(caller);
    named().find(locates).or_else(|| named().find(|caller| !is_scaffolding(caller))).or_else(|| named().next())
}

fn is_scaffolding(symbol: &Symbol) -> bool {
    let package = package(symbol);
    symbol.kernel
        || SCAFFOLDING.iter().any(|word| package == *word || (word.contains('_') && package.starts_with(word)))
}

/// Returns what a function belongs to: crate, Go package, namespace, source file, or else its module.
fn package(symbol: &Symbol) -> &str {
    if symbol.kernel {
        return "kernel";
    }
    let name = symbol.name.trim_start_matches(['<', '&', '(', '[', '*']);
    let name = name.strip_prefix("mut ").unwrap_or(name).trim_start_matches("dyn ").trim_start_matches("impl ");
    let word = |end: usize| &name[..end];
    let is_path = |letter: char| letter.is_alphanumeric() || "_-./$%~@".contains(letter);
    let path = name.find(|letter: char| !is_path(letter)).map_or(name, word);
    match (name.get(path.len()..), path.rfind('/')) {
        // Rust, C++, Python and Node: crate::module::function, file.py:function.
        (Some(rest), _) if rest.starts_with(':') => path,
        // Go: net/http.(*conn).serve, runtime.mallocgc. JVM: com.example.Server.handle.
        (_, slash) => match package_end(path, slash.unwrap_or(0)) {
            Some(end) if end > 0 => &path[..end],
            _ if symbol.module.is_empty() => path,
            _ if SCAFFOLDING.iter().any(|word| path.starts_with(word)) => path,
            _ => &symbol.module,
        },
    }
}

/// Returns where the package ends: before a class, which begins with a capital, or else before the first dot.
fn package_end(path: &str, slash: usize) -> Option<usize> {
    let dots = || path.match_indices('.').map(|(dot, _)| dot).filter(|dot| *dot >= slash);
    let is_class = |dot: &usize| path[dot + 1..].starts_with(|letter: char| letter.is_uppercase());
    dots().find(is_class).or_else(|| dots().next())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbol(name: &str) -> Symbol {
        Symbol { name: name.to_owned(), module: "server".to_owned(), kernel: false }
    }

    #[test]
    fn packages_are_those_of_each_language() {
        for (name, expected) in [
            ("tokio::runtime::task::poll", "tokio"),
            ("<hyper::proto::Conn<…> as core::future::Future>::poll", "hyper"),
            ("net/http.(*conn).serve", "net/http"),
            ("runtime.mallocgc", "runtime"),
            ("github.com/valyala/fasthttp.(*Server).serveConn", "github.com/valyala/fasthttp"),
            ("main.main.func1.2", "main"),
            ("com.example.Server.handle", "com.example"),
            ("server.py:handle", "server.py"),
            ("std::vector<…>::push_back", "std"),
            ("handle_request", "server"),
            ("__libc_start_main", "__libc_start_main"),
        ] {
            assert_eq!(package(&symbol(name)), expected, "{name}");
        }
        assert_eq!(package(&Symbol { kernel: true, ..symbol("tcp_sendmsg") }), "kernel");
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
