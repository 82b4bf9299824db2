//! Simulated comparisons: how often they show what is not there, find what is, and how good intervals are.
//!
//! The tests run a hundred comparisons. `BREWBENCH_ROUNDS=2000 cargo test --release --lib simulation -- --nocapture`
//! runs thousands.

mod model;

use std::collections::{BTreeMap, BTreeSet};

use model::{Model, Scenario};

use crate::profiles::{
    changes::{Change, Changes, Subject},
    explained::explained,
    functions::Functions,
    headline::Headline,
    permutation::{Assignments, Sides},
    stacks::{Profile, Stacks},
    tree::Tree,
};

/// Counts over all simulated comparisons.
#[derive(Debug, Default)]
struct Counts {
    comparisons: usize,
    /// Comparisons that show a difference of the total.
    whole: usize,
    /// Comparisons that show a difference of any other question.
    any: usize,
    /// Comparisons that show a difference of any kind.
    either: usize,
    /// Comparisons that show a difference of something that does not differ.
    wrong: usize,
    /// Comparisons in which the changed function's own time differs.
    found: usize,
    /// Comparisons whose headline says that the changed function explains the most.
    named: usize,
    questions: usize,
    intervals: usize,
    /// Intervals that contain the true difference.
    covering: usize,
    shares: usize,
    /// Intervals of the changed function's share that contain the true one.
    covering_shares: usize,
    named_shares: usize,
    /// The same for the function that explains the most, whichever that is.
    covering_named_shares: usize,
}

impl Counts {
    fn print(&self, name: &str) {
        let percent = |count: usize, of: usize| format!("{:.1} %", 100.0 * count as f64 / of.max(1) as f64);
        let rate = |count| percent(count, self.comparisons);
        println!("{name}: {} questions each", self.questions / self.comparisons);
        println!("  shown: total {}, others {}, any {}", rate(self.whole), rate(self.any), rate(self.either));
        println!("  wrong {}, found {}, named {}", rate(self.wrong), rate(self.found), rate(self.named));
        println!("  intervals {} of {}", percent(self.covering, self.intervals), self.intervals);
        println!("  shares {} of {}", percent(self.covering_shares, self.shares), self.shares);
        println!("  largest {} of {}", percent(self.covering_named_shares, self.named_shares), self.named_shares);
    }
}

/// What a question is about, in a form that does not depend on the tree.
fn key(tree: &Tree, subject: Subject) -> String {
    match subject {
        Subject::Whole => String::new(),
        Subject::Own(symbol) => format!("own {}", tree.symbols[symbol].name),
        Subject::Total(symbol) => format!("total {}", tree.symbols[symbol].name),
        Subject::Node(node) => {
            let names: Vec<&str> = std::iter::once(node)
                .chain(tree.callers(node))
                .filter_map(|node| Some(tree.symbol(node)?.name.as_str()))
                .collect();
            names.join(" < ")
        }
    }
}

fn union(runs: &[(Stacks, f64)]) -> (Tree, Functions) {
    let profiles: Vec<Profile<'_>> = runs.iter().map(|(stacks, ms)| Profile { stacks, cpu_ms: Some(*ms) }).collect();
    let tree = Tree::union(&profiles);
    let functions = Functions::new(&tree);
    (tree, functions)
}

/// Returns the true difference of everything.
fn truth(model: &Model, scenario: &Scenario) -> BTreeMap<String, f64> {
    let (tree, functions) = union(&[model.exact(&Scenario::default()), model.exact(scenario)]);
    let nodes = (0..tree.nodes.len()).map(|node| (Subject::Node(node), tree.total(node)));
    let own = functions.functions.iter().map(|one| (Subject::Own(one.symbol), one.own.as_slice()));
    let total = functions.functions.iter().map(|one| (Subject::Total(one.symbol), one.total.as_slice()));
    nodes.chain(own).chain(total).map(|(subject, values)| (key(&tree, subject), values[1] - values[0])).collect()
}

/// Differences below this are rounding of the exact profile.
const NONE: f64 = 1e-6;

struct Simulation {
    model: Model,
    scenario: Scenario,
    sides: Sides,
    truth: BTreeMap<String, f64>,
    /// Whether intervals are computed, which takes most of the time.
    with_intervals: bool,
    counts: Counts,
}

impl Simulation {
    fn new(scenario: Scenario, repetitions: usize) -> Self {
        let model = Model::new(300, 120);
        let truth = truth(&model, &scenario);
        let sides = Sides { baseline: repetitions, candidate: repetitions };
        Self { model, scenario, sides, truth, with_intervals: false, counts: Counts::default() }
    }

    fn run(mut self, comparisons: usize) -> Counts {
        for _ in 0..comparisons {
            let none = Scenario::default();
            let scenario = |run: usize| if run < self.sides.baseline { &none } else { &self.scenario };
            let runs: Vec<(Stacks, f64)> =
                (0..self.sides.runs()).map(|run| self.model.sampled(scenario(run))).collect();
            let (tree, functions) = union(&runs);
            let changes = Changes::new(&tree, &functions, self.sides.baseline);
            self.count_changes(&tree, &changes);
            if self.with_intervals {
                self.count_intervals(&tree, &changes);
                self.count_shares(&tree, &changes);
            }
        }
        self.counts
    }

    fn count_changes(&mut self, tree: &Tree, changes: &Changes) {
        let significant: BTreeSet<String> = changes
            .changes
            .iter()
            .filter(|change| change.is_significant())
            .map(|change| key(tree, change.subject))
            .collect();
        let whole = changes.whole.is_some_and(|whole| whole.is_significant());
        let is_wrong = |key: &String| self.truth[key].abs() < NONE;
        let counts = &mut self.counts;
        counts.comparisons += 1;
        counts.questions += changes.changes.len();
        counts.whole += usize::from(whole);
        counts.any += usize::from(!significant.is_empty());
        counts.either += usize::from(whole || !significant.is_empty());
        counts.wrong += usize::from(significant.iter().any(is_wrong));
        counts.found += usize::from(significant.contains(&format!("own {}", model::CHANGED)));
    }

    fn count_intervals(&mut self, tree: &Tree, changes: &Changes) {
        let all: Vec<usize> = (0..changes.changes.len()).collect();
        for (change, interval) in changes.changes.iter().zip(changes.intervals(&all)) {
            let Some(interval) = interval else { continue };
            self.counts.intervals += 1;
            self.counts.covering += usize::from(interval.contains(self.truth[&key(tree, change.subject)]));
        }
    }

    fn count_shares(&mut self, tree: &Tree, changes: &Changes) {
        let share = |name: &str| self.truth[&format!("own {name}")] / self.truth[""];
        let is_changed = |change: &Change| key(tree, change.subject) == format!("own {}", model::CHANGED);
        let number = changes.changes.iter().position(is_changed).expect("ten percent is enough");
        let assignments = Assignments::new(self.sides);
        let whole = changes.whole.is_some_and(|whole| whole.is_significant());
        let of = explained(changes.values(number), changes.wholes(), &assignments);
        if let Some(interval) = of.and_then(|explained| explained.interval).filter(|_| whole) {
            self.counts.shares += 1;
            self.counts.covering_shares += usize::from(interval.contains(share(model::CHANGED)));
        }
        let headline = Headline::new(tree, changes);
        let Some(most) = headline.explains_most else { return };
        self.counts.named += usize::from(most.symbol.name == model::CHANGED);
        if let Some(interval) = most.explains.and_then(|explained| explained.interval) {
            self.counts.named_shares += 1;
            self.counts.covering_named_shares += usize::from(interval.contains(share(&most.symbol.name)));
        }
    }
}

fn changed_by(factor: f64) -> Scenario {
    Scenario { changed: factor, ..Scenario::default() }
}

/// Returns the number of simulated comparisons, which `BREWBENCH_ROUNDS` raises.
fn rounds(usual: usize) -> usize {
    std::env::var("BREWBENCH_ROUNDS").map_or(usual, |text| text.parse().expect("a number"))
}

#[test]
fn equal_programs_seldom_seem_to_differ() {
    let counts = Simulation::new(Scenario::default(), 4).run(rounds(80));
    counts.print("equal");
    // Exactly 2 of 70 assignments are as extreme; four standard errors allow for chance.
    let (count, share) = (counts.comparisons as f64, 2.0 / 70.0);
    let most = share * count + 4.0 * (share * (1.0 - share) * count).sqrt();
    assert!(counts.any as f64 <= most && counts.whole as f64 <= most, "at most {most}: {counts:?}");
}

#[test]
fn a_slower_function_is_found_and_intervals_contain_the_truth() {
    let simulation = Simulation { with_intervals: true, ..Simulation::new(changed_by(1.8), 4) };
    let counts = simulation.run(rounds(16));
    counts.print("one function +80 %");
    let share = |count: usize| count as f64 / counts.comparisons as f64;
    assert!(share(counts.found) >= 0.85 && share(counts.wrong) <= 0.2 && share(counts.named) >= 0.5, "{counts:?}");
    assert!(counts.covering as f64 >= 0.95 * counts.intervals as f64, "{counts:?}");
}
