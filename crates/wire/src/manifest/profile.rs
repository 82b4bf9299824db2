//! `[profile]` of a manifest: how the target is profiled. Pure.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use url::Url;
use utoipa::ToSchema;

use crate::profile::{ProfileKind, ProfileSource};

/// Placeholder for the whole seconds of an observation, in the path of an endpoint and in a command.
pub const SECONDS: &str = "{s}";
/// Placeholder for the id of the target's main process, in a command.
pub const PID: &str = "{pid}";
/// Placeholder for the ids of all its processes, separated by commas.
pub const PIDS: &str = "{pids}";
/// Placeholder for the samples per second.
pub const HZ: &str = "{hz}";

/// Placeholder for the file that a profiler writes; without it, the profiler prints the profile.
pub const OUTPUT: &str = "{output}";

/// Samples per second of perf with frame pointers. Not 1000, because a target that does something every millisecond
/// would do it in every sample or in none.
const FRAME_POINTER_HZ: u32 = 999;
/// With DWARF, each sample copies 16 KiB of the stack.
const DWARF_HZ: u32 = 99;
/// What commands take by default, such as py-spy.
const COMMAND_HZ: u32 = 100;
/// What the kernel accepts by default is 100,000; more than this measures perf.
const MAX_HZ: u32 = 9_999;

/// How a target is profiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    /// With which profiler.
    pub by: Profiler,
    /// What is counted; each kind once.
    pub kinds: Vec<ProfileKind>,
}

/// A profiler, as a manifest configures it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Profiler {
    /// An endpoint of the target: a path, or a URL of the same host with placeholders [`SECONDS`] and `{host}`.
    Pprof(String),
    /// `perf record`.
    Perf {
        /// How stacks are unwound.
        call_graph: CallGraph,
        /// Samples per second.
        rate_hz: u32,
    },
    /// A command that prints a profile.
    Command {
        /// The program and its arguments, with placeholders.
        command: Vec<String>,
        /// The manifest's folder, in which it runs.
        folder: PathBuf,
        /// Samples per second.
        rate_hz: u32,
    },
}

/// How perf unwinds stacks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallGraph {
    /// By frame pointers.
    #[default]
    Fp,
    /// By a copy of the stack and the program's unwind tables: larger, and slower.
    Dwarf,
}

impl CallGraph {
    fn rate_hz(self) -> u32 {
        match self {
            Self::Fp => FRAME_POINTER_HZ,
            Self::Dwarf => DWARF_HZ,
        }
    }
}

impl Profile {
    /// Returns how a target is profiled whose manifest does not say it, if the agent can see its processes.
    pub fn by_perf() -> Self {
        let by = Profiler::Perf { call_graph: CallGraph::Fp, rate_hz: FRAME_POINTER_HZ };
        Self { by, kinds: vec![ProfileKind::Cpu] }
    }

    /// Returns the source of the profiles.
    pub fn source(&self) -> ProfileSource {
        match self.by {
            Profiler::Pprof(_) => ProfileSource::Pprof,
            Profiler::Perf { .. } => ProfileSource::Perf,
            Profiler::Command { .. } => ProfileSource::Command,
        }
    }
}

/// `[profile]` in the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProfileFile {
    /// Path or URL of an endpoint that returns pprof; `{s}` becomes the seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pprof: Option<String>,
    /// A command that writes or prints pprof or collapsed stacks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// perf; also without this if there is neither of the above.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub perf: bool,
    /// `cpu`, `heap` and `allocs`; empty for `cpu`.
    #[serde(default = "cpu", skip_serializing_if = "is_cpu")]
    pub kinds: Vec<ProfileKind>,
    /// How perf unwinds stacks: `fp`, the default, or `dwarf`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_graph: Option<CallGraph>,
    /// Samples per second of perf or a command; null for its default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<u32>,
}

impl Default for ProfileFile {
    fn default() -> Self {
        Self { pprof: None, command: Vec::new(), perf: false, kinds: cpu(), call_graph: None, rate_hz: None }
    }
}

fn cpu() -> Vec<ProfileKind> {
    vec![ProfileKind::Cpu]
}

fn is_cpu(kinds: &[ProfileKind]) -> bool {
    kinds == [ProfileKind::Cpu]
}

impl ProfileFile {
    /// Explains what is wrong; the sentence starts with the field. `is_elsewhere` is whether the target runs outside
    /// the agent's machine.
    pub(super) fn fault(&self, is_elsewhere: bool) -> Option<String> {
        let Self { pprof, command, perf, kinds, call_graph, rate_hz } = self;
        let given = [("pprof", pprof.is_some()), ("command", !command.is_empty()), ("perf", *perf)];
        let mut given = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name);
        let (first, second) = (given.next(), given.next());
        if let Some(second) = second {
            return Some(format!("profile.{second}: remove it; a target has one of pprof, command and perf"));
        }
        let source = first.unwrap_or("perf");
        if is_elsewhere && source != "pprof" {
            return Some(format!("profile.{source}: a target with [url] or [kubernetes] can only have profile.pprof"));
        }
        if call_graph.is_some() && source != "perf" {
            return Some("profile.call_graph: only for perf".to_owned());
        }
        if let Some(rate_hz) = rate_hz {
            if source == "pprof" {
                return Some("profile.rate_hz: only for perf and command; the target chooses its own".to_owned());
            }
            if !(1..=MAX_HZ).contains(rate_hz) {
                return Some(format!("profile.rate_hz: {rate_hz} must be from 1 to {MAX_HZ}"));
            }
        }
        bad_kinds(kinds, source)
            .or_else(|| pprof.as_ref().and_then(|place| bad_place(place, kinds)))
            .or_else(|| bad_command(command))
    }

    /// Completes it.
    pub fn with(self, folder: &Path) -> Profile {
        let Self { pprof, command, perf: _, kinds, call_graph, rate_hz } = self;
        let by = if let Some(pprof) = pprof {
            Profiler::Pprof(pprof)
        } else if command.is_empty() {
            let call_graph = call_graph.unwrap_or_default();
            Profiler::Perf { call_graph, rate_hz: rate_hz.unwrap_or(call_graph.rate_hz()) }
        } else {
            Profiler::Command { command, folder: folder.to_owned(), rate_hz: rate_hz.unwrap_or(COMMAND_HZ) }
        };
        Profile { by, kinds }
    }
}

fn bad_kinds(kinds: &[ProfileKind], source: &str) -> Option<String> {
    let mut sorted = kinds.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    if kinds.is_empty() || sorted.len() != kinds.len() {
        return Some("profile.kinds: some of cpu, heap and allocs, each once".to_owned());
    }
    match source {
        "perf" if !is_cpu(kinds) => Some("profile.kinds: perf has only cpu".to_owned()),
        "command" if kinds.len() > 1 => Some("profile.kinds: a command prints one".to_owned()),
        _ => None,
    }
}

fn bad_place(place: &str, kinds: &[ProfileKind]) -> Option<String> {
    let is_url = place.starts_with("http://") || place.starts_with("https://");
    let url = if is_url { place.replace("{host}", "host") } else { format!("http://host{place}") };
    if !(is_url || place.starts_with('/')) || place.contains(char::is_control) || Url::parse(&url).is_err() {
        return Some(format!("profile.pprof: {place:?} must be a path that starts with '/', or an http URL"));
    }
    let needs_seconds = kinds.contains(&ProfileKind::Cpu) && !place.contains(SECONDS);
    needs_seconds.then(|| {
        format!("profile.pprof: {SECONDS}, the seconds to observe, is missing; Go has /debug/pprof/profile?seconds={SECONDS}")
    })
}

fn bad_command(command: &[String]) -> Option<String> {
    let program = command.first()?;
    if program.is_empty() {
        return Some("profile.command: program is missing".to_owned());
    }
    if command.iter().any(|word| word.contains('\0')) {
        return Some("profile.command: contains the character NUL".to_owned());
    }
    let has_process = command.iter().any(|word| word.contains(PID) || word.contains(PIDS));
    (!has_process).then(|| format!("profile.command: {PID} or {PIDS} is missing, so it can't know the target"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ProfileFile {
        toml::from_str(text).expect("a table")
    }

    #[test]
    fn the_source_follows_from_the_fields() {
        let read = |text| {
            assert_eq!(file(text).fault(false), None, "{text}");
            file(text).with(Path::new("/m"))
        };
        let pprof = read("pprof = \"/debug/pprof/profile?seconds={s}\"\nkinds = [\"cpu\", \"heap\", \"allocs\"]");
        assert_eq!((pprof.source(), pprof.kinds.len()), (ProfileSource::Pprof, 3));
        let perf = |call_graph, rate_hz| Profiler::Perf { call_graph, rate_hz };
        assert_eq!(read("").by, perf(CallGraph::Fp, 999));
        assert_eq!(read("perf = true\nrate_hz = 499").by, perf(CallGraph::Fp, 499));
        assert_eq!(read("call_graph = \"dwarf\"").by, perf(CallGraph::Dwarf, 99));
        let command = read("command = [\"py-spy\", \"--pid\", \"{pid}\"]");
        let Profiler::Command { folder, rate_hz, .. } = &command.by else { panic!("{command:?}") };
        assert_eq!((folder.as_path(), *rate_hz), (Path::new("/m"), 100));
        assert_eq!(read("pprof = \"http://{host}:6060/debug/pprof/heap\"\nkinds = [\"heap\"]").kinds.len(), 1);
    }

    #[test]
    fn every_fault_names_its_field() {
        for (text, words) in [
            ("pprof = \"/p?{s}\"\nperf = true", "profile.perf: remove it"),
            ("pprof = \"/p?{s}\"\ncommand = [\"x\", \"{pid}\"]", "profile.command: remove it"),
            ("pprof = \"/p\"", "profile.pprof: {s}"),
            ("pprof = \"p?{s}\"", "profile.pprof: \"p?{s}\" must be a path"),
            ("pprof = \"ftp://x/{s}\"", "profile.pprof: "),
            ("pprof = \"http://:x/{s}\"", "profile.pprof: "),
            ("pprof = \"/{s}\"\ncall_graph = \"fp\"", "profile.call_graph: only"),
            ("pprof = \"/{s}\"\nrate_hz = 9", "profile.rate_hz: only"),
            ("rate_hz = 0", "profile.rate_hz: 0 must be"),
            ("rate_hz = 10000", "profile.rate_hz: 10000 must be"),
            ("kinds = []", "profile.kinds: some of"),
            ("pprof = \"/{s}\"\nkinds = [\"cpu\", \"cpu\"]", "profile.kinds: some of"),
            ("kinds = [\"heap\"]", "profile.kinds: perf"),
            ("command = [\"x\", \"{pid}\"]\nkinds = [\"heap\", \"cpu\"]", "profile.kinds: a command"),
            ("command = [\"x\"]", "profile.command: {pid}"),
            ("command = [\"\", \"{pid}\"]", "profile.command: program"),
            ("command = [\"x\", \"{pid}\\u0000\"]", "profile.command: contains"),
        ] {
            let fault = file(text).fault(false).expect(text);
            assert!(fault.starts_with(words), "{text}: {fault}");
        }
        for text in ["", "perf = true", "command = [\"x\", \"{pid}\"]"] {
            assert!(file(text).fault(true).is_some_and(|fault| fault.contains("[url]")), "{text}");
        }
        assert_eq!(file("pprof = \"/p?{s}\"").fault(true), None);
        assert!(toml::from_str::<ProfileFile>("source = \"perf\"").is_err());
    }
}
