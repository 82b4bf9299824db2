//! Targets, machine sizes, scenarios and their revisions. Pure.

use std::{collections::BTreeMap, fmt, marker::PhantomData};

use brewbench_wire::{
    engine::EngineVersion,
    messages::ScriptReport,
    scenario::{Content, SCRIPT, Scenario, addresses::Address},
    target::TargetKind,
};
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error as _, MapAccess, Visitor},
};
use utoipa::ToSchema;

/// Addresses that a note names.
const MAX_ADDRESSES: usize = 4;

/// One version of a target that an agent offered.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Target {
    /// Name from the manifest.
    pub name: String,
    /// Version from the manifest.
    pub version: String,
    /// How it is provided.
    #[schema(value_type = String)]
    pub kind: TargetKind,
    /// What identifies it: `code:` and a digest of everything that decides how it behaves, `part:` if something of that
    /// can't be read, an image, or a URL. Older agents report the SHA-256 of the executable.
    pub identity: String,
    /// Whether the same version was also offered with other code.
    #[serde(default)]
    pub has_other_code: bool,
    /// One-line description.
    pub description: String,
    /// When an agent first offered it, unix ms.
    pub first_seen_at_ms: i64,
    /// When an agent last offered it, unix ms.
    pub last_seen_at_ms: i64,
}

/// A page of targets.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct TargetList {
    /// By name, newest version first.
    pub targets: Vec<Target>,
    /// Value of `after` for the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// CPU and memory that a target may use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct MachineSize {
    /// Unique, e.g. `2 vCPU / 4 GiB`.
    pub name: String,
    /// Cores; 0.5 is half a core.
    pub vcpus: f64,
    /// Memory without swap.
    pub memory_bytes: u64,
    /// Number of instances that share the load, each with these cores and this memory; more than one only for targets
    /// of kind `kubernetes`.
    #[serde(default = "one_replica")]
    pub replicas: u32,
}

pub(crate) const fn one_replica() -> u32 {
    1
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
    /// Hash of the newest revision.
    pub sha256: String,
    /// Number of revisions.
    pub revisions: i64,
    /// When the newest revision was stored, unix ms.
    pub created_at_ms: i64,
    /// Result of checking the newest revision; null if it was never checked.
    pub check: Option<ScriptCheck>,
    /// What in its files may be the target's address, which runs set by a default; null if they get the address.
    #[serde(default)]
    pub addresses: Option<Vec<Address>>,
}

/// A load generator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Engine {
    /// Its kind: `k6`, or `wrk` for an imported report.
    pub name: String,
    /// Its version, e.g. `1.8.1`; null if unknown.
    pub version: Option<String>,
}

impl Engine {
    /// Converts what an agent reports; an empty version is unknown.
    pub fn from_report(EngineVersion { name, version }: &EngineVersion) -> Self {
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

/// Result of a load generator's check of a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ScriptCheck {
    /// The agent that ran the load generator.
    pub agent: String,
    /// The load generator.
    pub engine: Engine,
    /// When, unix ms.
    pub at_ms: i64,
    /// Why k6 can't run the script; null if it can.
    pub fault: Option<String>,
    /// What the load generator has read of the script.
    #[serde(default)]
    pub report: ScriptReport,
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
    /// Hash of the content.
    pub sha256: String,
    /// When it was last stored, unix ms.
    pub created_at_ms: i64,
    /// Result of the last check; null if it was never checked.
    pub check: Option<ScriptCheck>,
    /// What in its files may be the target's address, which runs set by a default; null if they get the address.
    #[serde(default)]
    pub addresses: Option<Vec<Address>>,
}

/// Returns what to do about a script whose runs do not get the target's address: the end of a sentence on its name.
pub fn address_note(addresses: &[Address]) -> String {
    let default = |Address { name, default }: &Address| format!("{name}={default}");
    let all: Vec<String> = addresses.iter().take(MAX_ADDRESSES).map(default).collect();
    let remedy = match all.as_slice() {
        [] => String::new(),
        [one] => format!("if it loads the target, add the parameter {one}; "),
        several => format!("add the parameters of these that are the target: {}; ", several.join(", ")),
    };
    format!(
        "the script does not read BASE_URL, the address of the target; {remedy}runs that load another server are invalid"
    )
}

/// All revisions of a scenario.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct RevisionList {
    /// Newest first.
    pub revisions: Vec<Revision>,
}

/// A scenario with its files and defaults.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct ScenarioText {
    /// Unique; all revisions share it.
    pub name: String,
    /// The path of the k6 script in `files`, or of the request list, `requests.toml`. `__ENV.BASE_URL` is where the
    /// target listens.
    #[serde(default = "script_name")]
    pub entry: String,
    /// The text of the k6 script, if it is not in `files`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// All files by path, relative to one folder: a text, or `{"base64": "…"}`. Modules that the script imports from
    /// the network are here by URL.
    #[serde(default, deserialize_with = "each_once")]
    #[schema(value_type = std::collections::HashMap<String, serde_json::Value>)]
    pub files: BTreeMap<String, Content>,
    /// Parameters (`__ENV`) with their default values.
    #[serde(default, deserialize_with = "each_once")]
    pub defaults: BTreeMap<String, String>,
}

impl ScenarioText {
    /// Returns the scenario as it is submitted and shown.
    pub fn of(Scenario { name, entry, files, elsewhere: _, defaults }: Scenario) -> Self {
        Self { name, entry, script: None, files, defaults }
    }
}

fn script_name() -> String {
    SCRIPT.to_owned()
}

/// Reads an object and refuses a name that occurs twice, of which JSON readers usually keep the last.
fn each_once<'de, V: Deserialize<'de>, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<String, V>, D::Error> {
    struct Names<V>(PhantomData<V>);
    impl<'de, V: Deserialize<'de>> Visitor<'de> for Names<V> {
        type Value = BTreeMap<String, V>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object of texts")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
            let mut all = BTreeMap::new();
            while let Some((name, text)) = entries.next_entry::<String, V>()? {
                if all.contains_key(&name) {
                    return Err(A::Error::custom(format!("{name:?} occurs twice")));
                }
                all.insert(name, text);
            }
            Ok(all)
        }
    }
    from.deserialize_map(Names(PhantomData))
}

pub(crate) const MIB: u64 = 1024 * 1024;

pub(crate) const GIB: u64 = 1024 * MIB;

/// Sizes created on the first start, as vCPUs and bytes.
pub const FIRST_SIZES: [(u32, u64); 6] =
    [(1, 256 * MIB), (1, 512 * MIB), (2, 4 * GIB), (4, 8 * GIB), (8, 16 * GIB), (16, 16 * GIB)];

/// Returns the default name of a size, e.g. `2 vCPU / 4 GiB`, or `3 x 2 vCPU / 4 GiB` with replicas.
pub fn size_name(vcpus: f64, memory_bytes: u64, replicas: u32) -> String {
    if replicas > 1 {
        return format!("{replicas} x {}", size_name(vcpus, memory_bytes, 1));
    }
    if memory_bytes.is_multiple_of(GIB) {
        format!("{vcpus} vCPU / {} GiB", memory_bytes / GIB)
    } else {
        format!("{vcpus} vCPU / {} MiB", memory_bytes as f64 / MIB as f64)
    }
}

/// Parses bytes from text such as `256MiB`, `4 GiB` or `1073741824`.
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

/// Returns the short form of a size, e.g. `2/4GiB` or `3x2/4GiB`.
pub fn short_size(vcpus: f64, memory_bytes: u64, replicas: u32) -> String {
    let times = if replicas > 1 { format!("{replicas}x") } else { String::new() };
    let mib = memory_bytes / MIB;
    if mib >= 1024 && mib.is_multiple_of(1024) {
        format!("{times}{vcpus}/{}GiB", mib / 1024)
    } else {
        format!("{times}{vcpus}/{mib}MiB")
    }
}

/// Finds a size by its name or its short form, e.g. `2/4GiB` or `3x2/4GiB`.
pub fn find_size<'a>(sizes: &'a [MachineSize], text: &str) -> Option<&'a MachineSize> {
    sizes.iter().find(|size| size.name == text).or_else(|| {
        let (vcpus, memory, replicas) = parse_size(text)?;
        let is_it = |size: &&MachineSize| {
            size.vcpus.total_cmp(&vcpus).is_eq() && (size.memory_bytes, size.replicas) == (memory, replicas)
        };
        sizes.iter().find(is_it)
    })
}

/// Parses cores, bytes and replicas from text such as `2/4GiB` or `3x2/4GiB`.
pub fn parse_size(text: &str) -> Option<(f64, u64, u32)> {
    let (replicas, each) = match text.split_once('x') {
        Some((replicas, each)) => (replicas.trim().parse().ok()?, each),
        None => (1, text),
    };
    let (vcpus, memory) = each.split_once('/')?;
    Some((vcpus.trim().trim_end_matches("vCPU").trim().parse().ok()?, parse_memory(memory).ok()?, replicas))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_found_by_name_and_short_form() {
        let sizes = [
            MachineSize { name: size_name(1.0, 256 * MIB, 1), vcpus: 1.0, memory_bytes: 256 * MIB, replicas: 1 },
            MachineSize { name: "big".to_owned(), vcpus: 2.0, memory_bytes: 4 * GIB, replicas: 1 },
            MachineSize { name: size_name(2.0, 4 * GIB, 3), vcpus: 2.0, memory_bytes: 4 * GIB, replicas: 3 },
        ];
        let found = |text| find_size(&sizes, text).map(|size| size.name.as_str());
        assert_eq!(found("1 vCPU / 256 MiB"), Some("1 vCPU / 256 MiB"));
        assert_eq!(found("1/256MiB"), Some("1 vCPU / 256 MiB"));
        assert_eq!(found("2/4G"), Some("big"));
        assert_eq!(found("big"), Some("big"));
        assert_eq!(found("2/5GiB"), None);
        assert_eq!(found("3x2/4GiB"), Some("3 x 2 vCPU / 4 GiB"));
        assert_eq!(short_size(2.0, 4 * GIB, 3), "3x2/4GiB");
        for invalid in ["2x2/4GiB", "x2/4GiB", "-3x2/4GiB", "3x"] {
            assert_eq!(found(invalid), None, "{invalid}");
        }
    }

    #[test]
    fn invalid_memory_is_rejected() {
        for text in ["", "0", "4 TiB", "-1", "x", "99999999999GiB"] {
            assert!(parse_memory(text).is_err(), "{text}");
        }
        assert_eq!(parse_memory("256 MiB"), Ok(256 * MIB));
    }
}
