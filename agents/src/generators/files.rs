//! How the archive of a scenario gets into Pods: as one `ConfigMap`; or, if that is too small, in parts that an init
//! container puts together. Pure.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::manifest::Generators;
use super::names::Names;

/// Where the files are, for own Jobs and for those of k6-operator.
pub const FOLDER: &str = "/test";

/// Where an init container finds the parts.
const PARTS: &str = "/parts";

/// Kubernetes limits the content of a `ConfigMap` to this.
const MAX_BYTES: usize = 1 << 20;

/// The maximum size of a part, which with its name fits into a `ConfigMap`.
const PART_BYTES: usize = MAX_BYTES - 64;

/// The archive of a scenario as Pods mount it.
#[derive(Debug)]
pub struct Files {
    /// The content of each `ConfigMap`: a name and bytes.
    maps: Vec<(String, Vec<u8>)>,
    /// Creates the file from the parts; `None` if there is one `ConfigMap` with the file itself.
    assembly: Option<String>,
}

impl Files {
    /// Packs a file, whose name is a key of a `ConfigMap`.
    pub fn pack(name: &str, bytes: &[u8]) -> Self {
        if bytes.len() <= PART_BYTES {
            return Self { maps: vec![(name.to_owned(), bytes.to_owned())], assembly: None };
        }
        let parts = bytes.chunks(PART_BYTES).enumerate();
        let maps: Vec<_> = parts.map(|(number, part)| (number.to_string(), part.to_owned())).collect();
        let names: Vec<String> = maps.iter().map(|(number, _)| format!("{PARTS}/{number}")).collect();
        Self { maps, assembly: Some(format!("cat {} > {FOLDER}/{name}", names.join(" "))) }
    }

    /// Returns the `ConfigMap`s.
    pub fn config_maps(&self, names: &Names) -> Vec<Value> {
        let map = |(index, (name, bytes)): (usize, &(String, Vec<u8>))| {
            let metadata = names.metadata_for(&map_name(names, index));
            let data = json!({name.as_str(): BASE64_STANDARD.encode(bytes)});
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "binaryData": data})
        };
        self.maps.iter().enumerate().map(map).collect()
    }

    /// Whether the file is that of the only `ConfigMap`.
    pub fn is_whole(&self) -> bool {
        self.assembly.is_none()
    }

    /// Returns the volumes of a Pod.
    pub fn volumes(&self, names: &Names) -> Vec<Value> {
        if self.is_whole() {
            return vec![json!({"name": "scenario", "configMap": {"name": map_name(names, 0)}})];
        }
        let sources: Vec<Value> =
            (0..self.maps.len()).map(|index| json!({"configMap": {"name": map_name(names, index)}})).collect();
        vec![json!({"name": "scenario", "emptyDir": {}}), json!({"name": "parts", "projected": {"sources": sources}})]
    }

    /// Returns the mounts of k6's container.
    pub fn mounts() -> Value {
        json!([{"name": "scenario", "mountPath": FOLDER, "readOnly": true}])
    }

    /// Returns the container that puts the parts together, if there are any. k6's image has a shell.
    pub fn init_container(&self, generators: &Generators) -> Option<Value> {
        let command = self.assembly.as_ref()?;
        Some(json!({
            "name": "scenario", "image": generators.image, "command": ["sh", "-c", command],
            "resources": generators.resources(),
            "volumeMounts": [
                {"name": "parts", "mountPath": PARTS, "readOnly": true}, {"name": "scenario", "mountPath": FOLDER},
            ],
        }))
    }
}

fn map_name(names: &Names, index: usize) -> String {
    if index == 0 { names.name.clone() } else { format!("{}-{}", names.name, index + 1) }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn names() -> Names {
        Names { name: "brewbench-1-m".to_owned(), metadata: json!({"labels": {}}) }
    }

    #[test]
    fn a_small_archive_is_one_config_map() {
        let files = Files::pack("a.tar", b"{}");
        let maps = files.config_maps(&names());
        assert_eq!((maps.len(), maps[0]["binaryData"]["a.tar"].as_str()), (1, Some("e30=")));
        assert_eq!(maps[0]["metadata"]["name"], "brewbench-1-m");
        assert!(files.is_whole() && files.init_container(&Generators::parse("", "1.8.1").expect("a file")).is_none());
    }

    #[test]
    fn a_large_archive_is_put_together_from_parts_without_loss() {
        let bytes: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
        let files = Files::pack("a.tar", &bytes);
        let maps = files.config_maps(&names());
        let (mut whole, mut paths) = (Vec::new(), Vec::new());
        for map in &maps {
            let map: ConfigMap = serde_json::from_value(map.clone()).expect("a ConfigMap");
            for (key, part) in map.binary_data.expect("data") {
                assert!(key.len() + part.0.len() <= MAX_BYTES);
                paths.push(format!("{PARTS}/{key}"));
                whole.extend(part.0);
            }
        }
        assert_eq!(files.assembly, Some(format!("cat {} > /test/a.tar", paths.join(" "))));
        assert!(whole == bytes);
        assert_eq!(files.volumes(&names())[1]["projected"]["sources"].as_array().map(Vec::len), Some(maps.len()));
    }
}
