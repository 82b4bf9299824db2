//! Stacks with their values: what every profile is decoded into, whatever profiler wrote it. Pure.

use std::collections::HashMap;

use crate::sanitize::is_obeyed;

/// Maximum characters of a name; the rest is cut off.
pub const MAX_NAME: usize = 500;

/// Maximum frames of a stack. A deeper one keeps both ends: see [`LEFT_OUT`].
pub const MAX_FRAMES: usize = 1_000;

/// The frame in place of the middle of a stack deeper than [`MAX_FRAMES`]. It has no number, so that recursions of
/// different depth are one stack.
pub const LEFT_OUT: &str = "[frames left out]";

/// The name of a function that has none.
pub const UNKNOWN: &str = "[unknown]";

/// The module of kernel frames.
pub const KERNEL: &str = "[kernel.kallsyms]";

/// Maximum bytes of all names together.
const MAX_NAME_BYTES: usize = 64 << 20;

/// Maximum frames of all stacks together.
const MAX_ENTRIES: usize = 16 << 20;

/// A function on a stack.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Its name, or [`UNKNOWN`].
    pub function: String,
    /// Its source file; empty if unknown.
    pub file: String,
    /// The program or library; empty if unknown.
    pub module: String,
    /// Whether it belongs to the kernel.
    pub kernel: bool,
}

impl Frame {
    /// Cleans foreign names and cuts them.
    pub fn new(function: &str, file: &str, module: &str) -> Self {
        let (function, module) = (name(function), name(module));
        let kernel = is_kernel(&module);
        let function = if function.is_empty() { UNKNOWN.to_owned() } else { function };
        Self { function, file: name(file), module, kernel }
    }

    /// A frame that stands for others.
    pub fn of_group(function: &str) -> Self {
        Self { function: function.to_owned(), ..Self::default() }
    }

    fn bytes(&self) -> usize {
        self.function.len() + self.file.len() + self.module.len() + size_of::<Self>()
    }
}

/// A stack and its share of the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Indexes into the frames, root first.
    pub stack: Vec<u32>,
    /// CPU time in nanoseconds, or bytes.
    pub value: u64,
}

/// The stacks of a profile: each once, with the frames that they use.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stacks {
    /// The functions, in the order of their first use.
    pub frames: Vec<Frame>,
    /// The stacks. None is empty, none has the value 0.
    pub samples: Vec<Sample>,
}

impl Stacks {
    /// Returns the sum of all values.
    pub fn total(&self) -> u64 {
        self.samples.iter().fold(0, |sum, sample| sum.saturating_add(sample.value))
    }

    /// Returns about how many bytes of memory they take.
    pub fn bytes(&self) -> usize {
        let stacks = self.samples.iter().map(|sample| size_of_val(sample.stack.as_slice()) + size_of::<Sample>());
        stacks.sum::<usize>() + self.frames.iter().map(Frame::bytes).sum::<usize>()
    }

    /// Returns the frames of a sample, root first.
    pub fn stack<'a>(&'a self, sample: &'a Sample) -> impl DoubleEndedIterator<Item = &'a Frame> {
        sample.stack.iter().filter_map(|&frame| self.frames.get(frame as usize))
    }

    /// Returns the sum of the values that meet a condition as a share of the total; 0 of nothing.
    pub fn share(&self, matches: impl Fn(&Sample) -> bool) -> f64 {
        let matching = self.samples.iter().filter(|sample| matches(sample)).map(|sample| sample.value as f64);
        let total = self.total() as f64;
        if total > 0.0 { (matching.fold(0.0, |sum: f64, value| sum + value) / total).min(1.0) } else { 0.0 }
    }
}

/// More names or stacks than a profile may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more than 64 MiB of names, or more than 16 million frames on its stacks")]
pub struct TooLarge;

/// Collects stacks: equal frames and equal stacks become one. Its memory is bounded.
#[derive(Debug, Default)]
pub struct Builder {
    frames: HashMap<Frame, u32>,
    /// Index of a stack in `samples`.
    known: HashMap<Vec<u32>, usize>,
    samples: Vec<Sample>,
    bytes: usize,
    entries: usize,
    /// Stacks deeper than [`MAX_FRAMES`].
    pub shortened: u64,
}

impl Builder {
    /// Returns the index of a frame for [`Self::add`].
    pub fn frame(&mut self, frame: Frame) -> Result<u32, TooLarge> {
        if let Some(&known) = self.frames.get(&frame) {
            return Ok(known);
        }
        self.bytes = self.bytes.saturating_add(frame.bytes());
        if self.bytes > MAX_NAME_BYTES {
            return Err(TooLarge);
        }
        let index = u32::try_from(self.frames.len()).map_err(|_| TooLarge)?;
        self.frames.insert(frame, index);
        Ok(index)
    }

    /// Adds the value of a stack, root first. One without frames is unknown; one without a value does not count.
    pub fn add(&mut self, stack: &[u32], value: u64) -> Result<(), TooLarge> {
        if value == 0 {
            return Ok(());
        }
        let stack = match stack {
            [] => vec![self.frame(Frame::of_group(UNKNOWN))?],
            stack if stack.len() > MAX_FRAMES => {
                self.shortened += 1;
                let root = MAX_FRAMES / 2;
                let leaf = stack.len() - (MAX_FRAMES - root - 1);
                [&stack[..root], &[self.frame(Frame::of_group(LEFT_OUT))?], &stack[leaf..]].concat()
            }
            stack => stack.to_vec(),
        };
        if let Some(sample) = self.known.get(&stack).and_then(|&index| self.samples.get_mut(index)) {
            sample.value = sample.value.saturating_add(value);
            return Ok(());
        }
        // A short stack needs memory, too.
        self.entries = self.entries.saturating_add(stack.len() + 8);
        if self.entries > MAX_ENTRIES {
            return Err(TooLarge);
        }
        self.known.insert(stack.clone(), self.samples.len());
        self.samples.push(Sample { stack, value });
        Ok(())
    }

    /// Returns the stacks in the order in which they were added, with the frames that they use.
    pub fn build(self) -> Stacks {
        let Self { frames, mut samples, known, .. } = self;
        drop(known);
        let mut by_index: Vec<Option<Frame>> = vec![None; frames.len()];
        for (frame, index) in frames {
            by_index[index as usize] = Some(frame);
        }
        let mut renumbered: Vec<Option<u32>> = vec![None; by_index.len()];
        let mut used = Vec::new();
        for frame in samples.iter_mut().flat_map(|sample| &mut sample.stack) {
            let old = *frame as usize;
            *frame = *renumbered[old].get_or_insert_with(|| {
                used.extend(by_index[old].take());
                u32::try_from(used.len() - 1).unwrap_or(u32::MAX)
            });
        }
        Stacks { frames: used, samples }
    }
}

/// Whether a module, as perf names it, belongs to the kernel: itself, or a loaded part of it, such as `[nf_tables]`.
pub fn is_kernel(module: &str) -> bool {
    const OF_PROGRAMS: [&str; 9] =
        ["[vdso]", "[vdso32]", "[vsyscall]", "[heap]", "[stack]", "[anon]", "[unknown]", "[uprobes]", "[other]"];
    let is_bracketed = module.starts_with('[') && module.ends_with(']');
    is_bracketed && !OF_PROGRAMS.contains(&module) && !module.starts_with("[anon")
}

/// Returns a foreign name on one line, without characters that a terminal or a browser interprets, cut to its maximum.
fn name(text: &str) -> String {
    let is_plain = |text: &str| text.len() <= MAX_NAME && !text.contains(is_obeyed);
    if is_plain(text) {
        return text.trim().to_owned();
    }
    // Only as much as can be left is cleaned: a name may have megabytes.
    let start: String = text.chars().take(MAX_NAME * 4).collect();
    let plain = crate::sanitize::plain(&start);
    match plain.char_indices().nth(MAX_NAME) {
        Some((end, _)) => {
            let end = plain[..end].char_indices().next_back().map_or(end, |(last, _)| last);
            format!("{}…", &plain[..end])
        }
        None => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn build(stacks: &[(&[&str], u64)]) -> Stacks {
        let mut builder = Builder::default();
        for (stack, value) in stacks {
            let stack: Vec<u32> =
                stack.iter().map(|name| builder.frame(Frame::new(name, "", "")).expect("a frame")).collect();
            builder.add(&stack, *value).expect("room");
        }
        builder.build()
    }

    #[test]
    fn equal_stacks_are_merged_and_unused_frames_left_out() {
        let stacks = build(&[(&["unused"], 0), (&["main", "a"], 1), (&["main"], 2), (&["main", "a"], 3), (&[], 4)]);
        let names: Vec<&str> = stacks.frames.iter().map(|frame| frame.function.as_str()).collect();
        assert_eq!(names, ["main", "a", UNKNOWN]);
        let samples: Vec<_> = stacks.samples.iter().map(|sample| (sample.stack.as_slice(), sample.value)).collect();
        assert_eq!(samples, [(&[0, 1][..], 4), (&[0], 2), (&[2], 4)]);
        assert_eq!(stacks.total(), 10);
        assert!((stacks.share(|sample| sample.stack == [0]) - 0.2).abs() < 1e-9);
    }

    #[test]
    fn a_deep_recursion_keeps_both_ends() {
        let mut builder = Builder::default();
        let frames: Vec<u32> =
            ["main", "recurse", "leaf"].map(|name| builder.frame(Frame::new(name, "", "")).expect("a frame")).to_vec();
        for depth in [5_000, 4_000, 100_000] {
            let stack = [&[frames[0]][..], &vec![frames[1]; depth], &[frames[2]]].concat();
            builder.add(&stack, 7).expect("room");
        }
        assert_eq!(builder.shortened, 3);
        let stacks = builder.build();
        assert_eq!((stacks.samples.len(), stacks.samples[0].stack.len(), stacks.total()), (1, MAX_FRAMES, 21));
        let mut names = stacks.stack(&stacks.samples[0]).map(|frame| frame.function.as_str());
        assert_eq!((names.next(), names.next_back()), (Some("main"), Some("leaf")));
        assert_eq!(names.filter(|name| *name == LEFT_OUT).count(), 1);
    }

    #[test]
    fn hostile_names_are_cleaned_and_cut() {
        let hostile = Frame::new("<script>\u{1b}[31mred\u{1b}[0m\n\u{202e}x", "\u{7}", "a\0b");
        assert_eq!(hostile.function, "<script>red x", "markup is text: pages escape it");
        assert_eq!((hostile.file.as_str(), hostile.module.as_str()), ("", "a b"));
        for long in ["x".repeat(10_000), "é".repeat(10_000), "\u{1b}[".repeat(10_000)] {
            let function = Frame::new(&long, "", "").function;
            assert!(function.chars().count() <= MAX_NAME, "{function}");
        }
        assert_eq!(Frame::new("\u{1b}", "", "").function, UNKNOWN);
        assert_eq!(Frame::new(&"x".repeat(500), "", "").function, "x".repeat(500));
    }

    #[test]
    fn the_kernel_is_recognised_by_its_modules() {
        for module in ["[kernel.kallsyms]", "[nf_tables]", "[guest.kernel.kallsyms]", "[kernel.vmlinux]"] {
            assert!(is_kernel(module), "{module}");
        }
        for module in ["", "[vdso]", "[anon:jit]", "/usr/lib/libc.so.6", "[heap]"] {
            assert!(!is_kernel(module), "{module}");
        }
    }

    #[test]
    fn what_has_no_end_is_too_large() {
        let mut builder = Builder::default();
        let frame = builder.frame(Frame::new("a", "", "")).expect("a frame");
        let added = (1..100_000).try_for_each(|depth| builder.add(&vec![frame; depth % 900 + 1], depth as u64));
        assert_eq!(added, Ok(()), "equal ones take no room");
        let named = (0..400_000).try_for_each(|n| builder.frame(Frame::new(&format!("{n:0400}"), "", "")).map(drop));
        assert_eq!(named, Err(TooLarge));
    }
}
