//! Which questions are asked, and how their answers look.

use super::*;
use crate::profiles::{
    stacks::{Profile, Stacks},
    tree::testing::{run, stacks},
};

/// Builds stacks of `main;a`, `main;b` and `main;c` with these samples.
fn with_samples(a: u32, b: u32, c: u32) -> Stacks {
    stacks(&[&format!("main;a {a}"), &format!("main;b {b}"), &format!("main;c {c}")])
}

fn compare(stacks: &[(Stacks, f64)], baseline: usize) -> (Tree, Changes) {
    let runs: Vec<Profile<'_>> = stacks.iter().map(|(stacks, ms)| run(stacks, *ms)).collect();
    let tree = Tree::union(&runs);
    let functions = Functions::new(&tree);
    let changes = Changes::new(&tree, &functions, baseline);
    (tree, changes)
}

/// Four runs of 1 ms against four of 1.5 ms: `b` takes twice the time, `c` is new.
fn example() -> Vec<(Stacks, f64)> {
    let baseline = [0.99, 1.01, 1.0, 1.02].into_iter().zip([500, 502, 498, 501]);
    let candidate = [1.52, 1.51, 1.5, 1.48].into_iter().zip([330, 334, 333, 331]);
    let before = baseline.map(|(ms, a)| (with_samples(a, 1000 - a, 0), ms));
    before.chain(candidate.map(|(ms, a)| (with_samples(a, 970 - a, 30), ms))).collect()
}

fn own<'a>(tree: &Tree, changes: &'a Changes, name: &str) -> &'a Change {
    let is_asked = |change: &&Change| match change.subject {
        Subject::Own(symbol) => tree.symbols[symbol].name == name,
        _ => false,
    };
    changes.changes.iter().find(is_asked).expect("a question")
}

#[test]
fn a_function_that_got_slower_is_found() {
    let (tree, changes) = compare(&example(), 4);
    let whole = changes.whole.expect("CPU time is known");
    assert!((whole.difference - 0.4975).abs() < 1e-9 && (whole.p - 2.0 / 70.0).abs() < 1e-12, "{whole:?}");
    assert!(changes.whole_interval().is_some_and(|interval| interval.low > 0.4 && interval.high < 0.6));
    let (slower, same) = (own(&tree, &changes, "b"), own(&tree, &changes, "a"));
    assert!(slower.is_significant() && !same.is_significant(), "{slower:?} {same:?}");
    assert!((slower.baseline - 0.5).abs() < 0.01 && slower.presence == Presence::Both);
    assert_eq!(changes.significant_own().len(), 2);
}

#[test]
fn functions_of_one_side_are_new_or_vanished() {
    let mut runs = example();
    let (tree, changes) = compare(&runs, 4);
    assert_eq!((own(&tree, &changes, "c").presence, own(&tree, &changes, "c").baseline), (Presence::New, 0.0));
    runs.rotate_left(4);
    let (tree, changes) = compare(&runs, 4);
    let gone = own(&tree, &changes, "c");
    assert!(gone.presence == Presence::Vanished && gone.difference < 0.0 && gone.is_significant());
}

#[test]
fn small_parts_are_not_asked_about() {
    let mut runs = example();
    for (stacks, _) in &mut runs {
        stacks.samples[2].value = 4;
    }
    let (tree, changes) = compare(&runs, 4);
    let subjects: Vec<Subject> = changes.changes.iter().map(|change| change.subject).collect();
    let symbol = |name: &str| tree.symbols.iter().position(|symbol| symbol.name == name).expect("a function");
    assert!(subjects.contains(&Subject::Own(symbol("b"))) && subjects.contains(&Subject::Node(1)));
    assert!(subjects.contains(&Subject::Total(symbol("main"))) && !subjects.contains(&Subject::Own(symbol("main"))));
    assert!(!subjects.contains(&Subject::Own(symbol("c"))), "4 of 974 samples are less than 0.5 %");
}

#[test]
fn three_repetitions_a_side_show_nothing() {
    let mut runs = example();
    runs.remove(7);
    runs.remove(0);
    let (_, changes) = compare(&runs, 3);
    assert!(!changes.can_show() && changes.fewest == 4 && changes.significant_own().is_empty());
    assert!(changes.changes.iter().all(|change| !change.is_significant()) && changes.whole_interval().is_none());
}

#[test]
fn runs_without_samples_do_not_count() {
    let mut runs = example();
    runs.insert(2, (Stacks::default(), 9.0));
    let (_, changes) = compare(&runs, 5);
    assert_eq!(changes.sides, Sides { baseline: 4, candidate: 4 });
    assert!(changes.whole.is_some_and(|whole| whole.baseline < 1.1));
    let empty = vec![(Stacks::default(), 1.0), (with_samples(1, 1, 1), 1.0)];
    let (_, changes) = compare(&empty, 1);
    assert!(changes.whole.is_none() && changes.changes.is_empty() && !changes.can_show());
    let (_, nothing) = compare(&[], 0);
    assert!(nothing.whole.is_none() && nothing.intervals(&[]).is_empty());
}

#[test]
fn shares_have_no_total_to_be_tested() {
    let mut runs = example();
    runs[3].1 = f64::NAN;
    let (tree, changes) = compare(&runs, 4);
    assert!(changes.unit == Unit::Percent && changes.whole.is_none() && changes.whole_interval().is_none());
    let slower = own(&tree, &changes, "b");
    assert!(slower.is_significant() && (slower.baseline - 50.0).abs() < 0.5, "{slower:?}");
}
