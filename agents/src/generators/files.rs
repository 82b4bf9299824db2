//! How the files of a scenario get into Pods: as one `ConfigMap`; or, if that is too small, in parts that an init
//! container puts together. Pure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::manifest::Generators;
use super::names::Names;

/// Where the files are, for own Jobs and for those of k6-operator.
pub const FOLDER: &str = "/test";

/// Where an init container finds the parts.
const PARTS: &str = "/parts";

/// Kubernetes limits the content of a `ConfigMap` to this.
const MAX_BYTES: usize = 1 << 20;

/// The maximum size of a part. Two of them and their names fit into a `ConfigMap`.
const PART_BYTES: usize = 500 << 10;
const PARTS_PER_MAP: usize = 2;

/// The files of a scenario as Pods mount them.
#[derive(Debug)]
pub struct Files {
    /// The content of each `ConfigMap`.
    maps: Vec<BTreeMap<String, String>>,
    /// Creates the files from the parts; `None` if there is one `ConfigMap` with the files themselves.
    assembly: Option<String>,
}

impl Files {
    /// Packs files, whose names are keys of a `ConfigMap`.
    pub fn pack(files: &BTreeMap<String, String>) -> Self {
        let bytes: usize = files.iter().map(|(name, text)| name.len() + text.len()).sum();
        if bytes <= MAX_BYTES {
            return Self { maps: vec![files.clone()], assembly: None };
        }
        let (mut parts, mut commands) = (Vec::new(), Vec::new());
        for (name, text) in files {
            let first = parts.len();
            parts.extend(split(text).into_iter().map(str::to_owned));
            let names: Vec<String> = (first..parts.len()).map(|part| format!("{PARTS}/{part}")).collect();
            commands.push(format!("cat {} > {FOLDER}/{name}", names.join(" ")));
        }
        let mut numbered = parts.into_iter().enumerate().map(|(number, part)| (number.to_string(), part)).peekable();
        let mut maps = Vec::new();
        while numbered.peek().is_some() {
            maps.push(numbered.by_ref().take(PARTS_PER_MAP).collect());
        }
        Self { maps, assembly: Some(commands.join(" && ")) }
    }

    /// Returns the `ConfigMap`s.
    pub fn config_maps(&self, names: &Names) -> Vec<Value> {
        let map = |(index, data): (usize, &BTreeMap<String, String>)| {
            let metadata = names.metadata_for(&map_name(names, index));
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
        };
        self.maps.iter().enumerate().map(map).collect()
    }

    /// Whether the files are those of the only `ConfigMap`.
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

/// Splits a text into parts of at most [`PART_BYTES`]; one, if it is empty.
fn split(text: &str) -> Vec<&str> {
    let (mut parts, mut rest) = (Vec::new(), text);
    while rest.len() > PART_BYTES {
        let (part, after) = rest.split_at(rest.floor_char_boundary(PART_BYTES));
        parts.push(part);
        rest = after;
    }
    parts.push(rest);
    parts
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn names() -> Names {
        Names { name: "brewbench-1-m".to_owned(), metadata: json!({"labels": {}}) }
    }

    fn packed(text: &str) -> Files {
        Files::pack(&BTreeMap::from([("a.js".to_owned(), "x".to_owned()), ("data.json".to_owned(), text.to_owned())]))
    }

    #[test]
    fn a_small_scenario_is_one_config_map() {
        let files = packed("{}");
        let maps = files.config_maps(&names());
        assert_eq!((maps.len(), maps[0]["data"]["data.json"].as_str()), (1, Some("{}")));
        assert_eq!(maps[0]["metadata"]["name"], "brewbench-1-m");
        assert!(files.is_whole() && files.init_container(&Generators::parse("", "1.8.1").expect("a file")).is_none());
    }

    #[test]
    fn a_large_scenario_is_put_together_from_parts_without_loss() {
        // No part ends within a character.
        let text = "ä€𝄞x".repeat(300_000);
        let files = packed(&text);
        let maps = files.config_maps(&names());
        let mut parts = BTreeMap::new();
        for map in &maps {
            let map: ConfigMap = serde_json::from_value(map.clone()).expect("a ConfigMap");
            let data = map.data.expect("data");
            assert!(data.iter().map(|(key, part)| key.len() + part.len()).sum::<usize>() <= MAX_BYTES);
            parts.extend(data);
        }
        let command = files.assembly.clone().expect("a command");
        let last = command.split(" && ").last().expect("the last file");
        let words = last.strip_prefix("cat ").and_then(|rest| rest.strip_suffix(" > /test/data.json"));
        let names: Vec<&str> = words.expect(last).split(' ').map(|path| &path[PARTS.len() + 1..]).collect();
        let whole: String = names.iter().map(|name| parts[*name].as_str()).collect();
        assert_eq!(whole, text);
        assert_eq!(parts.len(), names.len() + 1, "and the small file");
        assert_eq!(files.volumes(&self::names())[1]["projected"]["sources"].as_array().map(Vec::len), Some(maps.len()));
    }
}
