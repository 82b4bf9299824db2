//! How complete a profile is, and sentences about what limits it. Pure.

use std::collections::BTreeMap;

use brewbench_wire::manifest::CallGraph;
use brewbench_wire::profile::pprof::Facts;
use brewbench_wire::profile::stacks::{LEFT_OUT, MAX_FRAMES, Sample, Stacks, UNKNOWN};
use brewbench_wire::profile::trim::{Trimmed, trim};
use brewbench_wire::profile::{ProfileKind, ProfileQuality, ProfileSource, RunProfile};

/// A stack of at most this many functions of the program is shallow.
const SHALLOW: usize = 2;

/// From this share of shallow stacks on, the program has probably no frame pointers.
const MANY_SHALLOW: f64 = 0.5;

/// Fewer samples are no reason to say so: a program that starts has few functions.
const ENOUGH: u64 = 100;

/// From this share of the total on, functions without a name are worth a sentence.
const MANY_UNKNOWN: f64 = 0.05;

/// Maximum sentences about modules.
const MAX_MODULES: usize = 3;

/// What a profiler has observed.
#[derive(Clone, Debug, PartialEq)]
pub struct RawProfile {
    /// What it counts.
    pub kind: ProfileKind,
    /// The kind of profiler.
    pub source: ProfileSource,
    /// The profiler and its version.
    pub profiler: String,
    /// The stacks.
    pub stacks: Stacks,
    /// What is known about them.
    pub facts: Facts,
    /// Samples that were lost; `None` if unknown.
    pub lost: Option<u64>,
    /// How perf unwound the stacks.
    pub call_graph: Option<CallGraph>,
    /// Sentences of the profiler.
    pub notes: Vec<String>,
}

impl RawProfile {
    /// Makes it small enough, and judges it. Fails with a sentence if it has no samples.
    pub fn complete(self) -> Result<RunProfile, String> {
        let Self { kind, source, .. } = self;
        if self.stacks.samples.is_empty() {
            let lost = self.lost.filter(|lost| *lost > 0);
            let all_lost = |lost| format!("{} lost all {lost} samples: take fewer with profile.rate_hz", self.profiler);
            return Err(lost.map_or_else(|| nothing(kind).to_owned(), all_lost));
        }
        let Trimmed { data, folded_share, .. } = self.trimmed()?;
        Ok(RunProfile { kind, source, data, quality: self.quality(folded_share) })
    }

    fn trimmed(&self) -> Result<Trimmed, String> {
        let comments = [format!("brewbench: {} profile by {}", self.kind, self.profiler)];
        let facts = Facts { comments: comments.into(), ..self.facts.clone() };
        trim(&self.stacks, self.kind, &facts).map_err(|error| format!("the profile is too large: {error}"))
    }

    fn quality(&self, trimmed_share: f64) -> ProfileQuality {
        let Self { profiler, stacks, facts, lost, call_graph, notes, .. } = self;
        let (unknown_share, shallow_share) = (unknown_share(stacks), shallow_share(stacks));
        let mut notes = notes.clone();
        let samples = facts.samples.unwrap_or(stacks.samples.len() as u64);
        if shallow_share >= MANY_SHALLOW && self.kind == ProfileKind::Cpu && samples >= ENOUGH {
            notes.extend(call_graph.map(|call_graph| shallow(shallow_share, call_graph)));
        }
        notes.extend(unknown_modules(stacks));
        notes.extend(left_out(stacks));
        ProfileQuality {
            profiler: Some(profiler.clone()),
            duration_ms: facts.duration_ms,
            samples,
            lost: *lost,
            rate_hz: facts.rate_hz,
            unknown_share,
            shallow_share,
            trimmed_share,
            notes,
        }
    }
}

/// Says why there is no profile.
fn nothing(kind: ProfileKind) -> &'static str {
    match kind {
        ProfileKind::Cpu => "the CPU profile has no samples: the target used no CPU time while it was observed",
        ProfileKind::Heap => "the profile of the heap has no samples: the target's runtime samples no allocations",
        ProfileKind::Allocs => "the profile of allocations has no samples: the target's runtime samples none",
    }
}

/// Returns the share of the total in functions without a name.
pub fn unknown_share(stacks: &Stacks) -> f64 {
    stacks.share(|sample| leaf(stacks, sample).is_some_and(|(function, _)| function == UNKNOWN))
}

/// Returns the share of the total in stacks with one or two functions of the program.
pub fn shallow_share(stacks: &Stacks) -> f64 {
    stacks.share(|sample| {
        let own = stacks.stack(sample).filter(|frame| !frame.kernel).take(SHALLOW + 1).count();
        (1..=SHALLOW).contains(&own)
    })
}

fn leaf<'a>(stacks: &'a Stacks, sample: &'a Sample) -> Option<(&'a str, &'a str)> {
    stacks.stack(sample).next_back().map(|frame| (frame.function.as_str(), frame.module.as_str()))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn shallow(share: f64, call_graph: CallGraph) -> String {
    let share = percent(share);
    match call_graph {
        CallGraph::Fp => format!(
            "{share} of the CPU time is in stacks of at most two functions: the program seems to have no frame pointers; \
             build it with them, or write call_graph = \"dwarf\" in [profile] of its manifest"
        ),
        CallGraph::Dwarf => format!(
            "{share} of the CPU time is in stacks of at most two functions: the program seems to have no unwind tables"
        ),
    }
}

/// Names the modules whose functions have no names, the largest first.
fn unknown_modules(stacks: &Stacks) -> Vec<String> {
    let mut by_module: BTreeMap<&str, u64> = BTreeMap::new();
    for sample in &stacks.samples {
        if let Some((UNKNOWN, module)) = leaf(stacks, sample) {
            let value = by_module.entry(if is_file(module) { module } else { "" }).or_default();
            *value = value.saturating_add(sample.value);
        }
    }
    let total = stacks.total() as f64;
    let mut shares: Vec<_> = by_module.into_iter().map(|(module, value)| (module, value as f64 / total)).collect();
    shares.retain(|(_, share)| *share >= MANY_UNKNOWN);
    shares.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sentence = |(module, share): &(&str, f64)| match (*module, percent(*share)) {
        ("", share) => format!(
            "{share} of the total is in code that belongs to no file, such as that of a JIT compiler; a runtime may name \
             it in /tmp/perf-PID.map"
        ),
        (kernel, share) if kernel.starts_with('[') => {
            format!("{share} of the total is in functions of the kernel without names: see kernel.kptr_restrict")
        }
        (file, share) => format!("{share} of the total is in functions of {file} without names: it may be stripped"),
    };
    shares.iter().take(MAX_MODULES).map(sentence).collect()
}

/// Whether a module is a file or the kernel, and not memory.
fn is_file(module: &str) -> bool {
    let is_memory = ["//anon", "[anon", "/memfd:", "/dev/zero", "[unknown]", "/SYSV", "[heap]", "[stack]"];
    let name = module.rsplit('/').next().unwrap_or_default();
    let is_map = name.strip_prefix("perf-").and_then(|rest| rest.strip_suffix(".map")).is_some();
    !module.is_empty() && !is_map && !is_memory.iter().any(|memory| module.starts_with(memory))
}

fn left_out(stacks: &Stacks) -> Option<String> {
    let middle = stacks.frames.iter().position(|frame| frame.function == LEFT_OUT && frame.module.is_empty())?;
    let middle = u32::try_from(middle).ok()?;
    let share = stacks.share(|sample| sample.stack.len() == MAX_FRAMES && sample.stack.contains(&middle));
    Some(format!(
        "{} of the total is in stacks of more than {MAX_FRAMES} frames, shown without their middle",
        percent(share)
    ))
}

#[cfg(test)]
mod tests {
    use brewbench_wire::profile::stacks::{Builder, Frame, KERNEL};

    use super::*;

    fn stacks(of: &[(&[(&str, &str)], u64)]) -> Stacks {
        let mut builder = Builder::default();
        for (stack, value) in of {
            let frames = stack.iter().map(|(function, module)| builder.frame(Frame::new(function, "", module)));
            let stack: Vec<u32> = frames.collect::<Result<_, _>>().expect("room");
            builder.add(&stack, *value).expect("room");
        }
        builder.build()
    }

    fn taken(stacks: Stacks) -> RawProfile {
        RawProfile {
            kind: ProfileKind::Cpu,
            source: ProfileSource::Perf,
            profiler: "perf 6.1".to_owned(),
            stacks,
            facts: Facts { samples: Some(700), ..Facts::default() },
            lost: Some(0),
            call_graph: Some(CallGraph::Fp),
            notes: vec!["first".to_owned()],
        }
    }

    #[test]
    fn a_program_without_frame_pointers_and_names_is_described() {
        let kernel = ("write", KERNEL);
        let stacks = stacks(&[
            (&[("main", "/a"), ("f", "/a"), ("g", "/a")], 20),
            (&[("x", "/a"), kernel, ("k", KERNEL)], 30),
            (&[("", "/b")], 30),
            (&[("y", "//anon"), ("", "//anon")], 10),
            (&[("", "/tmp/perf-1.map")], 9),
            (&[kernel], 1),
        ]);
        let quality = taken(stacks).complete().expect("a profile").quality;
        assert!((quality.unknown_share - 0.49).abs() < 1e-9 && (quality.shallow_share - 0.79).abs() < 1e-9);
        assert_eq!((quality.samples, quality.notes.len(), quality.notes[0].as_str()), (700, 4, "first"));
        assert!(quality.notes[1].starts_with("79 % of the CPU time is in stacks of at most two"), "{quality:?}");
        assert!(quality.notes[2].starts_with("30 % of the total is in functions of /b without names"), "{quality:?}");
        assert!(quality.notes[3].starts_with("19 % of the total is in code that belongs to no file"), "{quality:?}");
    }

    #[test]
    fn nothing_observed_is_an_error() {
        let fault = taken(Stacks::default()).complete().expect_err("nothing");
        assert!(fault.starts_with("the CPU profile has no samples"), "{fault}");
        let lost = RawProfile { lost: Some(9), ..taken(Stacks::default()) }.complete().expect_err("lost");
        assert_eq!(lost, "perf 6.1 lost all 9 samples: take fewer with profile.rate_hz");
    }

    #[test]
    fn a_complete_profile_has_no_notes() {
        let stacks = stacks(&[(&[("main", "/a"), ("f", "/a"), ("g", "/a")], 20)]);
        let quality = RawProfile { notes: Vec::new(), ..taken(stacks) }.complete().expect("a profile").quality;
        assert_eq!((quality.notes.as_slice(), quality.unknown_share, quality.shallow_share), (&[][..], 0.0, 0.0));
    }

    #[test]
    fn shortened_stacks_are_mentioned() {
        let mut builder = Builder::default();
        let frame = builder.frame(Frame::new("f", "", "")).expect("room");
        builder.add(&vec![frame; 5_000], 1).expect("room");
        builder.add(&[frame], 1).expect("room");
        let note = left_out(&builder.build()).expect("a note");
        assert!(note.starts_with("50 % of the total is in stacks of more than 1000 frames"), "{note}");
    }
}
