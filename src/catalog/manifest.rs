//! The manifest of a new target, written from the fields of a form, of the API or of a command. Pure.
//!
//! The agent's own type checks the fields and writes the text, so that an agent reads the file as it was meant.

pub mod draft;

use std::{collections::BTreeMap, path::PathBuf};

use brewbench_agent::target::{
    Sandbox,
    manifest::{ManifestFile, Ready, Verify},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Status that a check expects by default.
pub const STATUS: u16 = 200;
/// Longest time from start to ready by default, seconds.
pub const READY_TIMEOUT_S: f64 = 10.0;

/// A target that an agent does not know yet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTarget {
    /// 1 to 64 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// In any format.
    pub version: String,
    /// Source revision, such as a commit.
    #[serde(default)]
    pub revision: Option<String>,
    /// One line.
    #[serde(default)]
    pub description: String,
    /// The program and its arguments; `{port}` and `{host}` are replaced with the address to listen on.
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// When it is ready.
    pub ready: ReadyCheck,
    /// A response that shows that the right program serves; null for none.
    #[serde(default)]
    pub verify: Option<ResponseCheck>,
    /// Files that it may use besides its own folder.
    #[serde(default)]
    pub sandbox: Access,
}

/// The request that a target answers once it is ready.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyCheck {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default)]
    pub status: Option<u16>,
    /// Longest time since the start, 10 seconds by default.
    #[serde(default)]
    pub timeout_s: Option<f64>,
}

/// A request that is sent before and after the load.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseCheck {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default)]
    pub status: Option<u16>,
    /// Text that the body must contain; null for any.
    #[serde(default)]
    pub contains: Option<String>,
}

/// Files and folders, absolute or relative to the manifest's folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// What it may read and run.
    #[serde(default)]
    pub read: Vec<String>,
    /// What it may also write.
    #[serde(default)]
    pub write: Vec<String>,
}

/// A manifest and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TargetManifest {
    /// Name of the file in the agent's manifests folder.
    pub file: String,
    /// Its text.
    pub toml: String,
}

impl From<NewTarget> for ManifestFile {
    fn from(target: NewTarget) -> Self {
        let NewTarget { name, version, revision, description, command, env, ready, verify, sandbox } = target;
        let ReadyCheck { path, status, timeout_s } = ready;
        let (status, timeout_s) = (status.unwrap_or(STATUS), timeout_s.unwrap_or(READY_TIMEOUT_S));
        let verify = verify.map(|ResponseCheck { path, status, contains }| Verify {
            path,
            status: status.unwrap_or(STATUS),
            contains,
        });
        let Access { read, write } = sandbox;
        let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
        let sandbox = Sandbox { read: paths(read), write: paths(write) };
        let ready = Ready { path, status, timeout_s };
        Self { name, version, revision, description, command, env, ready, verify, sandbox }
    }
}

impl TargetManifest {
    /// Writes a manifest. Fails with all faults, each of which begins with its field.
    pub fn write(file: &ManifestFile) -> Result<Self, String> {
        let faults = file.faults();
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
        let toml = file.to_toml()?;
        // What an agent would read.
        match ManifestFile::parse(&toml) {
            Ok(read) if read == *file => Ok(Self { file: format!("{}.toml", file.name), toml }),
            Ok(_) => Err("the manifest would be read differently".to_owned()),
            Err(fault) => Err(fault),
        }
    }
}
