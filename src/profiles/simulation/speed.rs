//! How long the largest comparisons take: `cargo test --release -- --ignored --nocapture speed`.

use std::time::Instant;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use crate::profiles::{
    functions::Functions,
    max_t::MaxT,
    permutation::{Assignments, Sides},
    stacks::{Frame, Profile, Sample, Stacks},
    tree::Tree,
};

/// Returns a profile with about this many nodes and stacks of about 40 functions.
fn profile(nodes: usize, random: &mut ChaCha8Rng) -> Stacks {
    let functions = 5_000;
    let name =
        |number: u32| Frame { function: format!("app::module{number}::run<T>::h0123456789abcdef"), ..Frame::default() };
    let mut samples: Vec<Sample> = vec![Sample { stack: vec![0], value: 1 }];
    while samples.len() < nodes {
        let parent = &samples[random.next_u32() as usize % samples.len()];
        let parent = if parent.stack.len() < 40 { parent } else { &samples[random.next_u32() as usize % 40] };
        let mut stack = parent.stack.clone();
        let missing = if stack.len() < 20 { 3 } else { 1 };
        stack.extend((0..missing).map(|_| random.next_u32() % functions));
        samples.push(Sample { stack, value: u64::from(1 + random.next_u32() % 5) });
    }
    Stacks { frames: (0..functions).map(name).collect(), samples }
}

#[test]
#[ignore = "measures time"]
fn speed() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let same = profile(25_000, &mut random);
    let stacks: Vec<Stacks> = (0..8)
        .map(|_| {
            let mut own = profile(2_000, &mut random);
            own.samples.extend_from_slice(&same.samples);
            own
        })
        .collect();
    let profiles: Vec<Profile<'_>> = stacks.iter().map(|stacks| Profile { stacks, cpu_ms: Some(1.0) }).collect();
    let single = Tree::union(&profiles[..1]).nodes.len();
    let start = Instant::now();
    let tree = Tree::union(&profiles);
    println!("union of 8 profiles of {single} nodes, {} nodes: {:?}", tree.nodes.len(), start.elapsed());
    let start = Instant::now();
    let functions = Functions::new(&tree);
    println!("table of {} functions: {:?}", functions.functions.len(), start.elapsed());
    let start = Instant::now();
    println!("trimmed to {} nodes: {:?}", tree.trimmed(0.001).tree.nodes.len(), start.elapsed());
    for repetitions in [4, 6, 8, 10] {
        let sides = Sides { baseline: repetitions, candidate: repetitions };
        let mut values = || (0..sides.runs()).map(|_| f64::from(random.next_u32())).collect();
        let questions: Vec<Vec<f64>> = (0..2_000).map(|_| values()).collect();
        let start = Instant::now();
        let test = MaxT::new(&questions, Assignments::new(sides));
        let tested = start.elapsed();
        let intervals = test.intervals(&[0, 1, 2, 3, 4]).len();
        let count = test.assignments().count();
        println!(
            "2,000 questions, {count} assignments: {tested:?}; {intervals} intervals: {:?}",
            start.elapsed().saturating_sub(tested)
        );
    }
}
