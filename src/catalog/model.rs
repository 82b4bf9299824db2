//! Targets, machine sizes, scenarios and their revisions. Pure.

use std::{collections::BTreeMap, fmt};

use brewbench_agent::wire::engine::EngineVersion;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A target in one version, as some agent offered it.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// From the manifest.
    pub name: String,
    /// From the manifest.
    pub version: String,
    /// SHA-256 of the executable.
    pub sha256: String,
    /// One line for people.
    pub description: String,
    /// Unix ms.
    pub first_seen_at_ms: i64,
    /// Unix ms.
    pub last_seen_at_ms: i64,
}

/// A page of targets.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TargetList {
    /// By name, newest version first.
    pub targets: Vec<Target>,
    /// What `after` must be for the next page; null where there is none.
    #[serde(default)]
    pub next: Option<String>,
}

/// What a target may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MachineSize {
    /// Unique, e.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores; 0.5 is half of one.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
}

/// All machine sizes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct SizeList {
    /// Smallest first.
    pub sizes: Vec<MachineSize>,
}

/// A scenario's newest revision, without its text.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioInfo {
    /// Unique.
    pub name: String,
    /// Names the newest revision.
    pub sha256: String,
    /// How many revisions there are.
    pub revisions: i64,
    /// When the newest came, unix ms.
    pub created_at_ms: i64,
    /// What k6 says to the newest; null if nobody has let it look.
    pub check: Option<Check>,
}

/// A load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Engine {
    /// Its kind: `k6`, or `wrk` of an imported report.
    pub name: String,
    /// Its version, e.g. `1.8.1`; null where a report does not say it.
    pub version: Option<String>,
}

impl Engine {
    /// As an agent reports it; an empty version is not known.
    pub fn of(EngineVersion { name, version }: &EngineVersion) -> Self {
        Self { name: name.clone(), version: Some(version.clone()).filter(|version| !version.is_empty()) }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, version } = self;
        match version {
            Some(version) => write!(f, "{name} {version}"),
            None => f.write_str(name),
        }
    }
}

/// A look of a load generator at a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Check {
    /// The agent whose load generator it was.
    pub agent: String,
    /// The load generator.
    pub engine: Engine,
    /// When, unix ms.
    pub at_ms: i64,
    /// Why k6 can't run it; null if it can.
    pub fault: Option<String>,
}

/// All scenarios.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioList {
    /// By name.
    pub scenarios: Vec<ScenarioInfo>,
}

/// One revision of a scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Revision {
    /// Names it.
    pub sha256: String,
    /// When it was stored last, unix ms.
    pub created_at_ms: i64,
    /// What k6 says to it; null if nobody has let it look.
    pub check: Option<Check>,
}

/// All revisions of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionList {
    /// The one that counts first.
    pub revisions: Vec<Revision>,
}

/// A scenario whole: to be stored, or as stored.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioText {
    /// Unique; another revision keeps the name.
    pub name: String,
    /// A k6 script. `__ENV.BASE_URL` is where the target listens.
    pub script: String,
    /// Files that the script opens, by plain name.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// Parameters (`__ENV`) and the values they have unless a submission says otherwise.
    #[serde(default)]
    pub defaults: BTreeMap<String, String>,
}

pub(crate) const MIB: u64 = 1024 * 1024;

pub(crate) const GIB: u64 = 1024 * MIB;

/// The sizes of a first start, as vCPUs and bytes.
pub const FIRST_SIZES: [(u32, u64); 6] =
    [(1, 256 * MIB), (1, 512 * MIB), (2, 4 * GIB), (4, 8 * GIB), (8, 16 * GIB), (16, 16 * GIB)];

/// What a size is called unless somebody says otherwise, e.g. `2 vCPU / 4 GiB`.
pub fn size_name(vcpus: f64, memory_bytes: u64) -> String {
    if memory_bytes.is_multiple_of(GIB) {
        format!("{vcpus} vCPU / {} GiB", memory_bytes / GIB)
    } else {
        format!("{vcpus} vCPU / {} MiB", memory_bytes as f64 / MIB as f64)
    }
}

/// Bytes from text such as `256MiB`, `4 GiB` or `1073741824`.
pub fn parse_memory(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "m" | "mb" | "mib" => MIB,
        "g" | "gb" | "gib" => GIB,
        _ => return Err(format!("memory {text:?}: write it as 256MiB or 4GiB")),
    };
    let bytes = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    bytes.filter(|bytes| *bytes > 0).ok_or_else(|| format!("memory {text:?}: write it as 256MiB or 4GiB"))
}

/// The size that is meant: by its name, or short as `2/4GiB`.
pub fn find_size<'a>(sizes: &'a [MachineSize], meant: &str) -> Option<&'a MachineSize> {
    sizes.iter().find(|size| size.name == meant).or_else(|| {
        let (vcpus, memory) = parse_size(meant)?;
        sizes.iter().find(|size| size.vcpus.total_cmp(&vcpus).is_eq() && size.memory_bytes == memory)
    })
}

/// Cores and bytes of a size that is written like `2/4GiB`.
pub fn parse_size(text: &str) -> Option<(f64, u64)> {
    let (vcpus, memory) = text.split_once('/')?;
    Some((vcpus.trim().trim_end_matches("vCPU").trim().parse().ok()?, parse_memory(memory).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_by_name_and_in_short() {
        let sizes = [
            MachineSize { name: size_name(1.0, 256 * MIB), vcpus: 1.0, memory_bytes: 256 * MIB },
            MachineSize { name: "big".to_owned(), vcpus: 2.0, memory_bytes: 4 * GIB },
        ];
        let found = |meant| find_size(&sizes, meant).map(|size| size.name.as_str());
        assert_eq!(found("1 vCPU / 256 MiB"), Some("1 vCPU / 256 MiB"));
        assert_eq!(found("1/256MiB"), Some("1 vCPU / 256 MiB"));
        assert_eq!(found("2/4G"), Some("big"));
        assert_eq!(found("big"), Some("big"));
        assert_eq!(found("2/5GiB"), None);
    }

    #[test]
    fn memory_that_makes_no_sense_is_refused() {
        for text in ["", "0", "4 TiB", "-1", "x", "99999999999GiB"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
        assert_eq!(parse_memory("256 MiB"), Ok(256 * MIB));
    }
}
