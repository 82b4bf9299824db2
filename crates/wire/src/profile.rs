//! Profiles of a target: which part of its CPU time, or of its memory, each function takes.

pub mod pprof;
pub mod stacks;
pub mod trim;

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};

/// Maximum bytes of a compressed profile that is stored.
pub const MAX_BYTES: usize = 1 << 20;

/// Where a profile comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProfileSource {
    /// An endpoint of the target, which returns pprof.
    Pprof,
    /// `perf record`, attached to the target's processes.
    Perf,
    /// A command of the manifest, which writes or prints pprof or collapsed stacks.
    Command,
}

impl ProfileSource {
    /// All sources.
    pub const ALL: [Self; 3] = [Self::Pprof, Self::Perf, Self::Command];

    /// Returns the name in manifests, columns and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pprof => "pprof",
            Self::Perf => "perf",
            Self::Command => "command",
        }
    }
}

impl fmt::Display for ProfileSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProfileSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|source| source.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a profiler: use some of {names}"))
    }
}

/// What a profile counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProfileKind {
    /// CPU time during the measurement, nanoseconds.
    Cpu,
    /// Memory in use at the end of the measurement, bytes.
    Heap,
    /// Memory allocated since the start of the target, bytes.
    Allocs,
}

impl ProfileKind {
    /// All kinds.
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Heap, Self::Allocs];

    /// Returns the name in manifests, columns and commands.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Heap => "heap",
            Self::Allocs => "allocs",
        }
    }
}

impl fmt::Display for ProfileKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for ProfileKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let names = Self::ALL.map(Self::as_str).join(", ");
        let found = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        found.ok_or_else(|| format!("{text:?} is not a kind of profile: use one of {names}"))
    }
}

/// A profile in the pprof format, compressed with gzip: bytes for the disk, base64 in JSON.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProfileData(Vec<u8>);

impl ProfileData {
    /// Stores the bytes of a file.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for ProfileData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProfileData({} bytes)", self.0.len())
    }
}

impl TryFrom<String> for ProfileData {
    type Error = base64::DecodeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        BASE64_STANDARD.decode(text).map(Self)
    }
}

impl From<ProfileData> for String {
    fn from(data: ProfileData) -> Self {
        BASE64_STANDARD.encode(data.0)
    }
}

/// A profile of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunProfile {
    /// What it counts.
    pub kind: ProfileKind,
    /// Where it comes from.
    pub source: ProfileSource,
    /// The stacks.
    pub data: ProfileData,
    /// How complete it is.
    pub quality: ProfileQuality,
}

/// How complete a profile is. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ProfileQuality {
    /// The profiler and its version, e.g. `perf 6.1`.
    pub profiler: Option<String>,
    /// Length of the observation, milliseconds.
    pub duration_ms: Option<u64>,
    /// Number of samples.
    pub samples: u64,
    /// Samples that the profiler lost.
    pub lost: Option<u64>,
    /// Requested samples per second of CPU time.
    pub rate_hz: Option<f64>,
    /// Share of the total in functions without a name, 0 to 1.
    pub unknown_share: f64,
    /// Share of the total in stacks of at most two frames, 0 to 1: high if a program has no frame pointers.
    pub shallow_share: f64,
    /// Share of the total that was folded into larger frames to limit the size, 0 to 1.
    pub trimmed_share: f64,
    /// Sentences about what limits the profile, e.g. missing kernel symbols.
    pub notes: Vec<String>,
}

/// What profiling one target gave: profiles, or a sentence why there are none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Profiled {
    /// One of each kind at most.
    pub profiles: Vec<RunProfile>,
    /// Why one is missing: sentences.
    pub faults: Vec<String>,
}

/// Whether an agent can profile a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum ProfileOffer {
    /// It can, with this profiler.
    Ready {
        /// The profiler.
        source: ProfileSource,
    },
    /// It can't.
    Impossible {
        /// A sentence with a remedy.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_survives_a_round_trip() {
        let profile = RunProfile {
            kind: ProfileKind::Cpu,
            source: ProfileSource::Perf,
            data: ProfileData::new(vec![0, 159, 255]),
            quality: ProfileQuality { lost: Some(3), samples: 100, ..ProfileQuality::default() },
        };
        let text = serde_json::to_string(&profile).expect("written");
        assert_eq!(serde_json::from_str::<RunProfile>(&text).expect("read"), profile);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for source in ProfileSource::ALL {
            assert_eq!(source.as_str().parse(), Ok(source));
        }
        for kind in ProfileKind::ALL {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert!("gdb".parse::<ProfileSource>().expect_err("unknown").contains("pprof, perf, command"));
    }
}
