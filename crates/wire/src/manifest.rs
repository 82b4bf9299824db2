//! The manifest of a target as its file: which fields it has, and what is wrong with them. Pure.

mod container;
mod file;
pub mod fill;
mod kubernetes;
mod profile;
mod remote;
pub mod source;
mod vm;

use std::path::PathBuf;
use std::time::Duration;

pub use container::{BUILT, Container, Mount, Network, Pull};
pub use file::ManifestFile;
pub use kubernetes::{KubernetesFile, Toleration};
pub use profile::{CallGraph, HZ, OUTPUT, PID, PIDS, Profile, ProfileFile, Profiler, SECONDS};
pub use remote::{Metrics, MetricsFile, Preset, Remote, UrlFile};
use serde::{Deserialize, Serialize};
pub use source::{Build, Source};
use utoipa::ToSchema;
pub use vm::{Accelerator, Tap, VmFile};

/// Placeholder for the port in the command and the environment.
pub const PORT: &str = "{port}";

/// Placeholder for the listen address: 127.0.0.1 unless load comes from other machines. IPv6 addresses are in brackets.
pub const HOST: &str = "{host}";

/// Placeholder in the name of an image for what a run names after the target: `api@VERSION`.
pub const VERSION: &str = "{version}";

/// Placeholder for the number of vCPUs in the command and the environment of a virtual machine.
pub const VCPUS: &str = "{vcpus}";

/// Placeholder for its memory, MiB.
pub const MEMORY_MIB: &str = "{memory_mib}";

/// Status that a check expects by default.
pub const STATUS: u16 = 200;

/// What identifies the code of a program, instead of the folder of its script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum IdentityScope {
    /// Files in the manifest's folder: paths with `*`, `?` and `**`.
    Files(Vec<String>),
    /// What a command prints.
    Command(ScopeCommand),
}

/// `identity = { command = […] }`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeCommand {
    /// A program and its arguments, run in the manifest's folder by the agent before each run.
    pub command: Vec<String>,
}

impl IdentityScope {
    /// Explains why it is invalid; the sentence starts with the field.
    fn fault(&self) -> Option<String> {
        match self {
            Self::Files(patterns) => patterns
                .iter()
                .any(|pattern| {
                    pattern.is_empty() || pattern.starts_with('/') || pattern.split('/').any(|name| name == "..")
                })
                .then(|| "identity: write paths below the manifest's folder".to_owned()),
            Self::Command(ScopeCommand { command }) => {
                command.first().is_none_or(String::is_empty).then(|| "identity.command: program is missing".to_owned())
            }
        }
    }
}

/// A target is ready when it answers this request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Ready {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    /// Longest time since the start, 10 seconds by default.
    #[serde(default = "ten_seconds", skip_serializing_if = "is_ten_seconds")]
    pub timeout_s: f64,
}

impl Ready {
    /// Returns the timeout since the start.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.timeout_s)
    }
}

/// Files that a target needs in addition to the system's and those in the manifest's folder. Paths are absolute, or
/// relative to the manifest's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Sandbox {
    /// What it may read and run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub read: Vec<PathBuf>,
    /// What it may also write.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(value_type = Vec<String>)]
    pub write: Vec<PathBuf>,
}

impl Sandbox {
    fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }
}

/// A request whose response shows that the right program serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Verify {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default = "ok", skip_serializing_if = "is_ok")]
    pub status: u16,
    /// Text that the body must contain; null for any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

fn ok() -> u16 {
    STATUS
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_ok(status: &u16) -> bool {
    *status == ok()
}

fn ten_seconds() -> f64 {
    10.0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_ten_seconds(timeout_s: &f64) -> bool {
    timeout_s.total_cmp(&ten_seconds()).is_eq()
}
