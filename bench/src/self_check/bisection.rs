//! Bisections by simulated gates: how often they find the commit, name a wrong one, and how much they measure.

use brewbench::gate::{
    bisection::{Finding, Next, Search},
    model::Outcome,
};
use rand::{Rng, rngs::StdRng};

use super::{
    gate::rules,
    sequential::decided,
    tally::{Share, rounds},
    world::Plan,
};

/// Results of simulated bisections; the others are undecided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bisections {
    /// Found the commit.
    pub found: Share,
    /// Named another one.
    pub wrong: Share,
    /// The most steps of one.
    pub most_steps: usize,
    /// Total repetitions of each side of all steps.
    pub repetitions: usize,
}

impl Bisections {
    /// Returns the mean number of repetitions.
    pub fn mean(self) -> f64 {
        self.repetitions as f64 / self.found.total.max(1) as f64
    }

    fn add(self, other: Self) -> Self {
        Self {
            found: self.found.plus(other.found),
            wrong: self.wrong.plus(other.wrong),
            most_steps: self.most_steps.max(other.most_steps),
            repetitions: self.repetitions + other.repetitions,
        }
    }
}

/// Simulates bisections among commits, one of which changes throughput by the factor of the plan, with half of the change
/// as the limit and at most `max_repeat` repetitions a step.
pub fn among(commits: usize, plan: Plan, max_repeat: usize, count: usize, seed: u64) -> Bisections {
    let round = |random: &mut StdRng| {
        let culprit = random.random_range(1..=commits);
        bisect(commits, culprit, plan, max_repeat, random)
    };
    rounds(count, seed, round).into_iter().fold(Bisections::default(), Bisections::add)
}

fn bisect(commits: usize, culprit: usize, plan: Plan, max_repeat: usize, random: &mut StdRng) -> Bisections {
    let rules = rules(&[&format!("rps<{:.0}%", (plan.factor - 1.0) * 50.0)]);
    let (mut search, mut bisections, mut steps) = (Search::new(commits + 1), Bisections::default(), 0);
    let mut judge = |base: usize, commit: usize| -> Outcome {
        let factor = if base < culprit && culprit <= commit { plan.factor } else { 1.0 };
        let decided = decided(&rules, Plan { factor, ..plan }, &[max_repeat], random);
        bisections.repetitions += decided.repetitions;
        decided.gate.outcome
    };
    let end = loop {
        match search.next() {
            Next::Measure(commit) => {
                // The first step shows the bad end, too.
                let both = [Some(commit), (steps == 0 && commit != commits).then_some(commits)];
                for commit in both.into_iter().flatten() {
                    search.note(commit, Finding::Judged(judge(0, commit)));
                }
            }
            Next::Confirm(commit) => search.confirm(judge(commit - 1, commit)),
            end => break end,
        }
        steps += 1;
    };
    bisections.most_steps = steps;
    bisections.found.count(end == Next::Found(culprit));
    bisections.wrong.count(matches!(end, Next::Found(other) if other != culprit));
    bisections
}
