//! What trees are, for stacks of any shape.

use proptest::prelude::*;

use super::{testing::*, *};
use crate::profiles::stacks::Sample;

/// Writes a tree as lines of depth, name, total and own value of the first run.
fn lines(tree: &Tree) -> Vec<String> {
    let line = |node: usize| {
        let name = tree.symbol(node).map_or("all", |symbol| symbol.name.as_str());
        let depth = tree.callers(node).count();
        format!("{depth} {name} {} {}", tree.total(node)[0], tree.own(node)[0])
    };
    (0..tree.nodes.len()).map(line).collect()
}

#[test]
fn stacks_become_a_tree_with_sorted_children() {
    let stacks = stacks(&["main;z 2", "main;a;b 3", "main 1", "other 4", "main;z 0"]);
    let tree = Tree::union(&[run(&stacks, 20.0)]);
    assert_eq!(lines(&tree), ["0 all 20 0", "0 main 12 2", "1 a 6 0", "2 b 6 6", "1 z 4 4", "0 other 8 8"]);
    assert_eq!(tree.children(0).collect::<Vec<_>>(), [1, 5]);
    assert_eq!(tree.children(1).collect::<Vec<_>>(), [2, 4]);
    assert_eq!(tree.callers(3).collect::<Vec<_>>(), [2, 1]);
}

#[test]
fn shares_are_compared_if_one_run_has_no_cpu_time() {
    let stacks = stacks(&["a 1", "b 3"]);
    let runs = [run(&stacks, 20.0), Profile { stacks: &stacks, cpu_ms: None }];
    let tree = Tree::union(&runs);
    assert_eq!((tree.unit, tree.total(0), tree.total(1)), (Unit::Percent, [100.0; 2].as_slice(), [25.0; 2].as_slice()));
    let invalid = [run(&stacks, f64::NAN), run(&stacks, 0.0)];
    assert!(invalid.iter().all(|run| Unit::common(&[*run]) == Unit::Percent));
}

#[test]
fn functions_of_two_builds_are_one() {
    let one = stacks(&["app::main::h0123456789abcdef;app::f<u8> 1"]);
    let other = stacks(&["app::main::hfedcba9876543210;app::f<u16>.llvm.17 1"]);
    let tree = Tree::union(&[run(&one, 1.0), run(&other, 2.0)]);
    assert_eq!((tree.nodes.len(), tree.own(2)), (3, [1.0, 2.0].as_slice()));
}

#[test]
fn functions_of_different_modules_are_different() {
    let mut stacks = stacks(&["main;read 1", "main;read2 1"]);
    for (frame, module) in stacks.frames.iter_mut().zip(["app", "libc.so", "app"]) {
        (frame.function, frame.module) = (frame.function.replace('2', ""), module.to_owned());
    }
    let tree = Tree::union(&[run(&stacks, 1.0)]);
    let modules: Vec<&str> = tree.children(1).filter_map(|node| Some(tree.symbol(node)?.module.as_str())).collect();
    assert_eq!(modules, ["app", "libc.so"]);
}

#[test]
fn profiles_without_samples_are_marked() {
    let (none, some) = (Stacks::default(), stacks(&["a 1"]));
    let tree = Tree::union(&[run(&none, 3.0), run(&some, 2.0)]);
    assert_eq!((tree.empty.as_slice(), tree.whole.as_slice()), ([0].as_slice(), [3.0, 2.0].as_slice()));
    assert_eq!(tree.total(0), [0.0, 2.0]);
    assert_eq!(Tree::union(&[]).nodes.len(), 1);
    assert_eq!(Tree::union(&[]).trimmed(0.1).tree.nodes.len(), 1);
}

#[test]
fn frames_that_do_not_exist_are_unknown() {
    let mut stacks = stacks(&["a 1"]);
    stacks.samples[0].stack.push(9);
    let tree = Tree::union(&[run(&stacks, 1.0)]);
    assert!(tree.symbol(2).is_some_and(Symbol::is_unknown));
    stacks.samples[0].stack.clear();
    assert_eq!(Tree::union(&[run(&stacks, 1.0)]).own(0), [1.0], "a sample without a stack belongs to the root");
}

#[test]
fn deep_stacks_need_no_recursion() {
    let mut deep = stacks(&["a;b 1"]);
    deep.samples = (1..=20).map(|cut| Sample { stack: vec![0; 5_000 - cut], value: 1 }).collect();
    let tree = Tree::union(&[run(&deep, 1.0)]);
    assert_eq!(tree.nodes.len(), 5_000);
    assert_eq!(tree.trimmed(0.5).tree.nodes.len(), 4_992, "the last levels are one node");
    assert_eq!(crate::profiles::functions::Functions::new(&tree).functions[0].total, [1.0]);
}

#[test]
fn small_nodes_are_folded_into_one() {
    let (one, other) = (stacks(&["main;a 1", "main;b;c 1", "main;d 98"]), stacks(&["main;a 9", "main;d 90", "e 1"]));
    let tree = Tree::union(&[run(&one, 100.0), run(&other, 100.0)]);
    let trimmed = tree.trimmed(0.05);
    let names: Vec<&str> =
        trimmed.tree.nodes.iter().filter_map(|node| Some(trimmed.tree.symbols[node.symbol?].name.as_str())).collect();
    assert_eq!(names, ["main", "a", "d", "[other]", "[other]"], "a is large enough in one of the runs");
    assert_eq!(trimmed.origin, [Some(0), Some(2), Some(3), Some(6), None, None]);
    assert_eq!((trimmed.tree.total(4), trimmed.tree.total(5)), ([1.0, 0.0].as_slice(), [0.0, 1.0].as_slice()));
    assert_eq!(tree.trimmed(0.0).tree, tree, "nothing is folded");
}

/// Profiles of a few functions with random stacks.
fn profiles() -> impl Strategy<Value = Vec<Stacks>> {
    let sample = (prop::collection::vec(0..5_u32, 0..6), 0..100_u64);
    let sample = sample.prop_map(|(stack, value)| Sample { stack, value });
    let one = prop::collection::vec(sample, 0..12).prop_map(|samples| Stacks { samples, ..stacks(&["a;b;c;d;e 0"]) });
    prop::collection::vec(one, 1..4)
}

fn union(stacks: &[Stacks]) -> Tree {
    let runs: Vec<Profile<'_>> = stacks.iter().zip(1..).map(|(stacks, ms)| run(stacks, f64::from(ms))).collect();
    Tree::union(&runs)
}

/// Whether own values add up to the totals, at each node and in sum.
fn adds_up(tree: &Tree) -> bool {
    let near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    let at = |node: usize, run: usize| {
        let below: f64 = tree.children(node).map(|child| tree.total(child)[run]).sum();
        near(tree.own(node)[run] + below, tree.total(node)[run])
    };
    let own = |run: usize| (0..tree.nodes.len()).map(|node| tree.own(node)[run]).sum::<f64>();
    let whole = |run: usize| if tree.empty.contains(&run) { 0.0 } else { tree.whole[run] };
    (0..tree.runs()).all(|run| near(own(run), whole(run)) && (0..tree.nodes.len()).all(|node| at(node, run)))
}

proptest! {
    #[test]
    fn own_values_add_up_to_the_total(stacks in profiles(), share in 0.0..0.4_f64) {
        let tree = union(&stacks);
        prop_assert!(adds_up(&tree));
        let trimmed = tree.trimmed(share);
        prop_assert!(adds_up(&trimmed.tree) && trimmed.origin.len() == trimmed.tree.nodes.len());
        let kept = trimmed.origin.iter().enumerate().filter_map(|(node, origin)| Some((node, (*origin)?)));
        for (node, origin) in kept {
            prop_assert_eq!(trimmed.tree.symbol(node), tree.symbol(origin));
            prop_assert_eq!(trimmed.tree.own(node), tree.own(origin));
        }
    }

    #[test]
    fn the_union_does_not_depend_on_the_order_of_runs_and_samples(stacks in profiles()) {
        let tree = union(&stacks);
        let mut runs: Vec<Profile<'_>> = stacks.iter().zip(1..).map(|(stacks, ms)| run(stacks, f64::from(ms))).collect();
        runs.reverse();
        let reversed = Tree::union(&runs);
        prop_assert_eq!(&tree.nodes, &reversed.nodes);
        for node in 0..tree.nodes.len() {
            let mirrored: Vec<f64> = reversed.total(node).iter().rev().copied().collect();
            prop_assert_eq!(tree.total(node), mirrored);
        }
        let mut shuffled = stacks.clone();
        for one in &mut shuffled {
            one.samples.reverse();
        }
        prop_assert_eq!(tree, union(&shuffled));
    }
}
