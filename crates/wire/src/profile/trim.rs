//! Makes a profile small enough to be stored: folds what hardly counts. Pure.

use std::ops::Range;

use super::pprof::{Facts, encode};
use super::stacks::{Builder, Frame, Sample, Stacks, TooLarge};
use crate::profile::{MAX_BYTES, ProfileData, ProfileKind};

/// The frame into which callees are folded.
pub const OTHER: &str = "[other]";

/// Callees below one part in this of the total are folded at first: 0.01 %.
const FIRST: u64 = 10_000;

/// A profile that is small enough.
#[derive(Clone, Debug, PartialEq)]
pub struct Trimmed {
    /// What is left.
    pub stacks: Stacks,
    /// The same as a file.
    pub data: ProfileData,
    /// Share of the total in folded frames, 0 to 1.
    pub folded_share: f64,
}

/// The memory that the stacks of a stored profile take at most: [`MIN_MEMORY`], and this many times the bytes of its
/// file, up to [`MAX_MEMORY`]. A file of equal parts is far smaller than what it unpacks to.
pub const MEMORY_PER_BYTE: usize = 64;

/// What a small file may take.
pub const MIN_MEMORY: usize = 1 << 20;

/// What any file may take.
pub const MAX_MEMORY: usize = 8 << 20;

/// Folds callees below 0.01 % of the total into a frame [`OTHER`] under their caller, and then larger ones until the
/// file has at most [`MAX_BYTES`], and its stacks take little memory.
pub fn trim(stacks: &Stacks, kind: ProfileKind, facts: &Facts) -> Result<Trimmed, TooLarge> {
    within(stacks, kind, facts, MAX_BYTES)
}

fn within(stacks: &Stacks, kind: ProfileKind, facts: &Facts, most_bytes: usize) -> Result<Trimmed, TooLarge> {
    let total = stacks.total();
    let mut threshold = total / FIRST;
    loop {
        let (folded, value) = fold(stacks, threshold)?;
        let data = encode(&folded, kind, facts);
        let size = data.as_bytes().len();
        let memory = (MIN_MEMORY + MEMORY_PER_BYTE * size).min(MAX_MEMORY);
        if size <= most_bytes && folded.bytes() <= memory || threshold >= total {
            let folded_share = if total > 0 { value as f64 / total as f64 } else { 0.0 };
            return Ok(Trimmed { stacks: folded, data, folded_share });
        }
        threshold = threshold.saturating_mul(2).max(threshold + 1);
    }
}

/// Folds subtrees of less than `threshold`; returns also the value that was folded.
fn fold(stacks: &Stacks, threshold: u64) -> Result<(Stacks, u64), TooLarge> {
    let mut sorted: Vec<&Sample> = stacks.samples.iter().collect();
    sorted.sort_by(|a, b| a.stack.cmp(&b.stack));
    let mut builder = Builder::default();
    let other = builder.frame(Frame::of_group(OTHER))?;
    let indexes: Vec<u32> = stacks.frames.iter().map(|frame| builder.frame(frame.clone())).collect::<Result<_, _>>()?;
    let renumbered = |stack: &[u32]| stack.iter().map(|&frame| indexes[frame as usize]).collect::<Vec<u32>>();
    let mut folded = 0_u64;
    // Ranges of samples that share their first frames, and how many those are: no recursion, as stacks may be deep.
    let mut open: Vec<(Range<usize>, usize)> = vec![(0..sorted.len(), 0)];
    while let Some((range, depth)) = open.pop() {
        for group in groups(&sorted[range.clone()], depth) {
            let group = range.start + group.start..range.start + group.end;
            let samples = &sorted[group.clone()];
            let value = samples.iter().fold(0_u64, |sum, sample| sum.saturating_add(sample.value));
            let first = &samples[0].stack;
            if first.len() == depth {
                builder.add(&renumbered(first), value)?;
            } else if value < threshold {
                folded = folded.saturating_add(value);
                let mut stack = renumbered(&first[..depth]);
                stack.push(other);
                builder.add(&stack, value)?;
            } else {
                open.push((group, depth + 1));
            }
        }
    }
    Ok((builder.build(), folded))
}

/// Splits sorted samples into ranges with the same frame at a depth; those that end there are the first.
fn groups(samples: &[&Sample], depth: usize) -> Vec<Range<usize>> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for end in 1..=samples.len() {
        let frame = |index: usize| samples.get(index).map(|sample| sample.stack.get(depth));
        if frame(end) != frame(begin) {
            groups.push(begin..end);
            begin = end;
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::pprof::decode;

    fn stacks(of: impl IntoIterator<Item = (Vec<String>, u64)>) -> Stacks {
        let mut builder = Builder::default();
        for (stack, value) in of {
            let frames = stack.iter().map(|name| builder.frame(Frame::new(name, "", "")).expect("room"));
            let stack: Vec<u32> = frames.collect();
            builder.add(&stack, value).expect("room");
        }
        builder.build()
    }

    fn split(text: &str) -> Vec<String> {
        text.split(';').map(str::to_owned).collect()
    }

    fn named(stacks: &Stacks) -> Vec<(String, u64)> {
        let name = |sample| stacks.stack(sample).map(|frame| frame.function.as_str()).collect::<Vec<_>>().join(";");
        let mut named: Vec<_> = stacks.samples.iter().map(|sample| (name(sample), sample.value)).collect();
        named.sort();
        named
    }

    #[test]
    fn what_hardly_counts_is_folded_under_its_caller() {
        let all =
            [("main", 4), ("main;a", 10_000_000), ("main;b;c", 400), ("main;d", 500), ("main;a;x;y", 3), ("z", 9)];
        let original = stacks(all.map(|(stack, value)| (split(stack), value)));
        let trimmed = trim(&original, ProfileKind::Cpu, &Facts::default()).expect("room");
        let expected =
            [("[other]", 9), ("main", 4), ("main;[other]", 900), ("main;a", 10_000_000), ("main;a;[other]", 3)];
        assert_eq!(named(&trimmed.stacks), expected.map(|(stack, value)| (stack.to_owned(), value)));
        assert_eq!(trimmed.stacks.total(), original.total());
        assert!((trimmed.folded_share - 912.0 / 10_000_916.0).abs() < 1e-12);
        assert_eq!(decode(trimmed.data.as_bytes(), ProfileKind::Cpu), Ok(trimmed.stacks));
    }

    #[test]
    fn a_small_profile_is_kept_whole() {
        let original = stacks([(split("a;b"), 1), (split("a;c"), 2)]);
        let trimmed = trim(&original, ProfileKind::Heap, &Facts::default()).expect("room");
        assert_eq!((named(&trimmed.stacks), trimmed.folded_share), (named(&original), 0.0));
        let nothing = trim(&Stacks::default(), ProfileKind::Cpu, &Facts::default()).expect("room");
        assert_eq!((nothing.stacks, nothing.folded_share), (Stacks::default(), 0.0));
    }

    #[test]
    fn a_large_profile_is_folded_until_it_fits() {
        let many = (0..20_000_u64).map(|n| {
            let random = n.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (split(&format!("main;function-{:x};callee-{random:x}", n % 100)), 1_000 + random % 1_000)
        });
        let original = stacks(many);
        let whole = encode(&original, ProfileKind::Cpu, &Facts::default()).as_bytes().len();
        let trimmed = within(&original, ProfileKind::Cpu, &Facts::default(), whole / 10).expect("room");
        assert!(trimmed.data.as_bytes().len() <= whole / 10);
        assert_eq!(trimmed.stacks.total(), original.total());
        assert!(trimmed.folded_share > 0.5 && trimmed.folded_share <= 1.0, "{}", trimmed.folded_share);
        let tiny = within(&original, ProfileKind::Cpu, &Facts::default(), 1).expect("room");
        assert_eq!(tiny.stacks.samples.len(), 1, "it ends");
    }

    #[test]
    fn deep_stacks_need_no_recursion() {
        let deep = (0..50_u64).map(|n| {
            let mut stack = vec!["f".to_owned(); 900];
            stack.push(format!("leaf {n}"));
            (stack, 1 + n % 2 * 1_000_000)
        });
        let trimmed = trim(&stacks(deep), ProfileKind::Cpu, &Facts::default()).expect("room");
        assert_eq!(trimmed.stacks.samples.len(), 26);
    }
}
