//! A program whose profiles are simulated.
//!
//! Each run has two percent of noise that all functions share, noise of each node, and the sampling noise of 3,000
//! samples.

use std::f64::consts::TAU;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use crate::profiles::stacks::{Frame, Sample, Stacks};

/// The function that changes. It takes ten percent of the time.
pub(super) const CHANGED: &str = "f007";

/// Another function that takes ten percent.
const OTHER: &str = "f011";

/// Number of samples of a run.
const SAMPLES: usize = 3_000;

/// Factors of own time on the candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    /// Of [`CHANGED`].
    pub(super) changed: f64,
    /// Of [`OTHER`].
    pub(super) other: f64,
    /// Of each function with an even number.
    pub(super) half: f64,
}

impl Default for Scenario {
    fn default() -> Self {
        Self { changed: 1.0, other: 1.0, half: 1.0 }
    }
}

struct Node {
    stack: Vec<u32>,
    /// Own time in milliseconds per request.
    own: f64,
    /// Relative noise of the own time in each run.
    noise: f64,
}

/// A program, and the source of all its random numbers.
pub(super) struct Model {
    frames: Vec<Frame>,
    nodes: Vec<Node>,
    random: ChaCha8Rng,
}

impl Model {
    pub(super) fn new(nodes: usize, functions: usize) -> Self {
        let name = |number: usize| Frame { function: format!("f{number:03}"), ..Frame::default() };
        let mut model = Self {
            frames: (0..functions).map(name).collect(),
            nodes: Vec::new(),
            random: ChaCha8Rng::seed_from_u64(7),
        };
        for number in 0..nodes {
            let node = model.node(number, functions);
            model.nodes.push(node);
        }
        for name in [CHANGED, OTHER] {
            model.set_share(name, 0.1);
        }
        model
    }

    fn node(&mut self, number: usize, functions: usize) -> Node {
        let parent = number.saturating_sub(1 + self.below(12));
        let mut stack = self.nodes.get(parent).map(|node| node.stack.clone()).unwrap_or_default();
        let function = if number < functions { number } else { self.below(functions) };
        stack.push(u32::try_from(function).expect("few functions"));
        Node { stack, own: 0.001 * (1.6 * self.normal()).exp(), noise: 0.02 + 0.06 * self.uniform() }
    }

    /// Scales a function's own time to a share of the total.
    fn set_share(&mut self, name: &str, share: f64) {
        let is_it: Vec<bool> = self.nodes.iter().map(|node| self.name(node) == name).collect();
        let sum = |of: bool| {
            self.nodes.iter().zip(&is_it).filter(|(_, is)| **is == of).map(|(node, _)| node.own).sum::<f64>()
        };
        let factor = share / (1.0 - share) * sum(false) / sum(true);
        self.nodes.iter_mut().zip(is_it).filter(|(_, is)| *is).for_each(|(node, _)| node.own *= factor);
    }

    fn name(&self, node: &Node) -> &str {
        let function = node.stack.last().and_then(|frame| self.frames.get(usize::try_from(*frame).ok()?));
        function.map_or("", |frame| &frame.function)
    }

    fn own(&self, node: &Node, scenario: &Scenario) -> f64 {
        let name = self.name(node);
        let is_even = name.ends_with(['0', '2', '4', '6', '8']);
        let specific = match name {
            CHANGED => scenario.changed,
            OTHER => scenario.other,
            _ => 1.0,
        };
        node.own * specific * if is_even { scenario.half } else { 1.0 }
    }

    /// Returns the profile without any noise.
    pub(super) fn exact(&self, scenario: &Scenario) -> (Stacks, f64) {
        let own: Vec<f64> = self.nodes.iter().map(|node| self.own(node, scenario)).collect();
        let whole: f64 = own.iter().sum();
        (self.stacks(own.iter().map(|own| to_count(own / whole * 1e12))), whole)
    }

    /// Returns the profile of one run, and its CPU time per request.
    pub(super) fn sampled(&mut self, scenario: &Scenario) -> (Stacks, f64) {
        let common = 1.0 + 0.02 * self.normal();
        let mut sums = Vec::with_capacity(self.nodes.len());
        let mut whole = 0.0;
        for number in 0..self.nodes.len() {
            let noise = (1.0 + self.nodes[number].noise * self.normal()).max(0.0);
            whole += self.own(&self.nodes[number], scenario) * common * noise;
            sums.push(whole);
        }
        let mut counts = vec![0; sums.len()];
        for _ in 0..SAMPLES {
            let drawn = self.uniform() * whole;
            counts[sums.partition_point(|sum| *sum <= drawn).min(sums.len() - 1)] += 1;
        }
        (self.stacks(counts.into_iter()), whole)
    }

    fn stacks(&self, counts: impl Iterator<Item = u64>) -> Stacks {
        let sample = |(node, value): (&Node, u64)| Sample { stack: node.stack.clone(), value };
        Stacks { frames: self.frames.clone(), samples: self.nodes.iter().zip(counts).map(sample).collect() }
    }

    fn uniform(&mut self) -> f64 {
        f64::from(self.random.next_u32()) / (f64::from(u32::MAX) + 1.0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u32()).unwrap_or_default() % bound
    }

    /// Draws from the standard normal distribution (Box & Muller 1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (TAU * self.uniform()).cos()
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "far below 2^52 and never negative")]
fn to_count(value: f64) -> u64 {
    value.round() as u64
}
