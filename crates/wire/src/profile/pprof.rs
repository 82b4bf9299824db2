//! The pprof format: a gzipped protocol buffer, written by Go and many other runtimes, read by `go tool pprof`. Pure.
//!
//! - `messages`: the parts of `profile.proto` that are used.
//! - `decode`: reads foreign profiles, in bounded memory.
//! - `encode`: writes profiles to be stored.

mod decode;
mod encode;
mod messages;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use decode::{DecodeError, decode, decode_sent, decode_with_facts};
pub use encode::encode;

use crate::profile::ProfileKind;

/// What a profile says about itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Facts {
    /// When it began, unix milliseconds.
    pub began_ms: Option<i64>,
    /// How long it observed, milliseconds.
    pub duration_ms: Option<u64>,
    /// Samples per second of CPU time.
    pub rate_hz: Option<f64>,
    /// Number of samples, if the profile counts them.
    pub samples: Option<u64>,
    /// Build ids by module.
    pub build_ids: BTreeMap<String, String>,
    /// Sentences for who opens the file.
    pub comments: Vec<String>,
}

/// Returns the name and the unit of the samples of a kind.
fn sample_type(kind: ProfileKind) -> (&'static str, &'static str) {
    match kind {
        ProfileKind::Cpu => ("cpu", "nanoseconds"),
        ProfileKind::Heap => ("inuse_space", "bytes"),
        ProfileKind::Allocs => ("alloc_space", "bytes"),
    }
}
