//! Stacks for tests. Pure.

use crate::profiles::stacks::{Frame, Profile, Sample, Stacks};

/// Reads stacks in the format of flame graphs: `main;serve;read 12`.
pub fn stacks(lines: &[&str]) -> Stacks {
    let mut stacks = Stacks::default();
    for line in lines {
        let (names, value) = line.rsplit_once(' ').expect("a stack and a value");
        let number = |name: &str| {
            let known = stacks.frames.iter().position(|frame| frame.function == name);
            let place = known.unwrap_or(stacks.frames.len());
            if known.is_none() {
                stacks.frames.push(Frame { function: name.to_owned(), module: "app".to_owned(), ..Frame::default() });
            }
            u32::try_from(place).expect("few functions")
        };
        let stack = names.split(';').map(number).collect();
        stacks.samples.push(Sample { stack, value: value.parse().expect("a number") });
    }
    stacks
}

/// Returns a run with this CPU time per request.
pub fn run(stacks: &Stacks, ms: f64) -> Profile<'_> {
    Profile { stacks, cpu_ms: Some(ms) }
}
