//! The file with which an agent's owner allows load from a cluster: what its generators are, and how many.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};

use brewbench_wire::job::MAX_CLUSTER_GENERATORS;
use brewbench_wire::manifest::Toleration;
use brewbench_wire::messages::GeneratorsOffer;

/// The user of k6's own images.
const USER: u32 = 12_345;

/// The file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    image: Option<String>,
    vcpus: f64,
    memory_mib: u64,
    most: u32,
    port: u16,
    node_selector: BTreeMap<String, String>,
    tolerations: Vec<Toleration>,
    runtime_class: Option<String>,
    pull_secrets: Vec<String>,
}

impl Default for File {
    fn default() -> Self {
        Self {
            image: None,
            vcpus: 1.0,
            memory_mib: 1_024,
            most: 20,
            port: 0,
            node_selector: BTreeMap::new(),
            tolerations: Vec::new(),
            runtime_class: None,
            pull_secrets: Vec::new(),
        }
    }
}

/// What the generators of a cluster are.
#[derive(Clone, Debug, PartialEq)]
pub struct Generators {
    /// An image with k6 in its `PATH`.
    pub image: String,
    /// CPU cores of each, its request and its limit.
    pub vcpus: f64,
    /// Memory of each, its request and its limit.
    pub memory_bytes: u64,
    /// How many a run may have.
    pub most: u32,
    /// The port on which the agent receives their series; 0 for any.
    pub port: u16,
    /// Node selector, tolerations and the rest of the Pod.
    place: Value,
}

impl Generators {
    /// Reads a file. `k6_version` is that of the agent's own k6. The error is a sentence.
    pub fn load(path: &Path, k6_version: &str) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
        Self::parse(&text, k6_version).map_err(|fault| format!("{}: {fault}", path.display()))
    }

    /// Parses the text of a file.
    pub fn parse(text: &str, k6_version: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
        if !(file.vcpus >= 0.1 && file.vcpus <= 1_024.0) {
            return Err("vcpus: must be at least 0.1".to_owned());
        }
        if !(64..=1 << 20).contains(&file.memory_mib) {
            return Err("memory_mib: must be at least 64".to_owned());
        }
        if !(1..=MAX_CLUSTER_GENERATORS).contains(&file.most) {
            return Err(format!("most: must be 1 to {MAX_CLUSTER_GENERATORS}"));
        }
        let image = file.image.clone().unwrap_or_else(|| format!("grafana/k6:{k6_version}"));
        if image.trim().is_empty() || image.contains(char::is_whitespace) {
            return Err("image: must be the name of an image".to_owned());
        }
        let (vcpus, memory_bytes) = (file.vcpus, file.memory_mib << 20);
        Ok(Self { image, vcpus, memory_bytes, most: file.most, port: file.port, place: scheduling(&file) })
    }

    /// Describes them for the server.
    pub fn offer(&self) -> GeneratorsOffer {
        GeneratorsOffer { most: self.most, vcpus: self.vcpus, memory_bytes: self.memory_bytes }
    }

    /// Returns requests and limits of a container.
    pub fn resources(&self) -> Value {
        let amounts = json!({"cpu": format!("{:.0}m", self.vcpus * 1_000.0), "memory": self.memory_bytes.to_string()});
        json!({"requests": amounts, "limits": amounts})
    }

    /// Whether its Pods need a runtime other than the node's default one.
    pub fn has_runtime_class(&self) -> bool {
        self.place.get("runtimeClassName").is_some()
    }

    /// Returns the parts of a Pod that say where it may run.
    pub fn scheduling(&self) -> Value {
        self.place.clone()
    }

    /// Returns the security context of a Pod.
    pub fn pod_security() -> Value {
        json!({"runAsNonRoot": true, "runAsUser": USER, "seccompProfile": {"type": "RuntimeDefault"}})
    }

    /// Returns the security context of a container.
    pub fn container_security() -> Value {
        json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}})
    }
}

fn scheduling(file: &File) -> Value {
    let File { node_selector, tolerations, runtime_class, pull_secrets, .. } = file;
    let secrets: Vec<Value> = pull_secrets.iter().map(|name| json!({"name": name})).collect();
    let mut place = json!({"nodeSelector": node_selector, "tolerations": tolerations, "imagePullSecrets": secrets});
    if let Some(class) = runtime_class {
        place["runtimeClassName"] = json!(class);
    }
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_allows_the_agents_own_k6() {
        let generators = Generators::parse("", "1.8.1").expect("defaults");
        assert_eq!((generators.image.as_str(), generators.most, generators.port), ("grafana/k6:1.8.1", 20, 0));
        assert_eq!(generators.resources()["limits"], json!({"cpu": "1000m", "memory": (1_u64 << 30).to_string()}));
    }

    #[test]
    fn faults_name_the_field() {
        let fault = |text: &str| Generators::parse(text, "1").expect_err("refused");
        assert!(fault("vcpus = 0").starts_with("vcpus:"));
        assert!(fault("vcpus = nan").starts_with("vcpus:"));
        assert!(fault("memory_mib = 1").starts_with("memory_mib:"));
        assert!(fault("most = 101").starts_with("most: must be 1 to 100"));
        assert!(fault("image = \"a b\"").starts_with("image:"));
        assert!(fault("replicas = 3").contains("replicas"));
    }

    #[test]
    fn the_place_is_taken_over() {
        let text = "node_selector = { pool = \"load\" }\nruntime_class = \"gvisor\"\n[[tolerations]]\nkey = \"load\"\n";
        let place = Generators::parse(text, "1").expect("a file").scheduling();
        assert_eq!(place["nodeSelector"], json!({"pool": "load"}));
        assert_eq!((&place["tolerations"][0]["key"], &place["runtimeClassName"]), (&json!("load"), &json!("gvisor")));
    }
}
