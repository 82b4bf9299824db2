//! `[kubernetes]` of a manifest: what runs in the Pod of a target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Name of the target's container in a Pod without a template.
const CONTAINER: &str = "target";

/// `[kubernetes]` in the file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesFile {
    /// The image, unless there is a template.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// A file with a Pod or a Pod template, as YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PathBuf>,
    /// The port on which the target listens.
    pub port: u16,
    /// Program and arguments, in place of those of the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Environment variables.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Labels that the node must have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that the Pod tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// The runtime class, e.g. `gvisor`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime_class: Option<String>,
    /// Secrets of the namespace that allow to pull the image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<String>,
    /// Whether the load goes through a Service and not directly to the Pod.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub service: bool,
}

/// A taint that is tolerated, in the words of Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// Key of the taint; all keys if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Value of the taint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; all effects if absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// What runs in the Pod of a target.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Metadata and specification of the Pod, with one container.
    pub template: Value,
    /// The image of that container.
    pub image: String,
    /// The port on which it listens.
    pub port: u16,
    /// Whether the load goes through a Service.
    pub service: bool,
}

impl KubernetesFile {
    /// Returns what is wrong; the sentence starts with the field.
    pub fn fault(&self) -> Option<String> {
        let Self { image, template, port, .. } = self;
        if *port == 0 {
            return Some("kubernetes.port: must be 1 to 65535".to_owned());
        }
        match (image, template) {
            (None, None) => Some("kubernetes.image: name an image, or a Pod template".to_owned()),
            (Some(_), Some(_)) => Some("kubernetes.image: remove it; the template names the image".to_owned()),
            (Some(image), None) if image.trim().is_empty() || image.contains(char::is_whitespace) => {
                Some("kubernetes.image: must be the name of an image".to_owned())
            }
            (None, Some(_)) => self.beside_template(),
            (Some(_), None) => None,
        }
    }

    /// Finds a field that a template has itself.
    fn beside_template(&self) -> Option<String> {
        let given = [
            ("command", !self.command.is_empty()),
            ("env", !self.env.is_empty()),
            ("node_selector", !self.node_selector.is_empty()),
            ("tolerations", !self.tolerations.is_empty()),
            ("runtime_class", self.runtime_class.is_some()),
            ("pull_secrets", !self.pull_secrets.is_empty()),
        ];
        let (field, _) = given.into_iter().find(|(_, is_given)| *is_given)?;
        Some(format!("kubernetes.{field}: write it in the template"))
    }

    /// Reads the template, if there is one. `folder` is that of the manifest.
    pub fn with(self, folder: &Path) -> Result<Workload, String> {
        let (template, image) = match &self.template {
            Some(file) => read_template(&folder.join(file))
                .map_err(|fault| format!("kubernetes.template: {}: {fault}", file.display()))?,
            None => self.pod(),
        };
        Ok(Workload { template, image, port: self.port, service: self.service })
    }

    fn pod(&self) -> (Value, String) {
        let Self { command, env, node_selector, tolerations, runtime_class, pull_secrets, .. } = self;
        let image = self.image.clone().unwrap_or_default();
        let env: Vec<Value> =
            env.iter().map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect();
        let secrets: Vec<Value> = pull_secrets.iter().map(|name| serde_json::json!({"name": name})).collect();
        let mut container = serde_json::json!({"name": CONTAINER, "image": image, "env": env});
        if !command.is_empty() {
            container["command"] = serde_json::json!(command);
        }
        let mut spec = serde_json::json!({
            "containers": [container], "nodeSelector": node_selector, "tolerations": tolerations,
            "imagePullSecrets": secrets, "automountServiceAccountToken": false, "enableServiceLinks": false,
        });
        if let Some(class) = runtime_class {
            spec["runtimeClassName"] = serde_json::json!(class);
        }
        (serde_json::json!({"metadata": {}, "spec": spec}), image)
    }
}

/// Reads a Pod, or the template of one. Returns it with the image of its only container.
fn read_template(file: &Path) -> Result<(Value, String), String> {
    let text = std::fs::read_to_string(file).map_err(|error| error.to_string())?;
    parse_template(&text)
}

fn parse_template(text: &str) -> Result<(Value, String), String> {
    let parsed: Value = serde_saphyr::from_str(text).map_err(|error| error.to_string().trim().to_owned())?;
    let kind = parsed.get("kind").and_then(Value::as_str);
    let pod = match kind {
        None | Some("Pod" | "PodTemplate") => parsed.get("template").unwrap_or(&parsed),
        Some(kind) => return Err(format!("it is a {kind}: write a Pod, or a template with metadata and spec")),
    };
    let spec = pod.get("spec").ok_or("spec is missing")?;
    let containers = spec.get("containers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let [container] = containers else {
        // Otherwise nobody could say whose CPU time and memory are those of the target.
        return Err(format!("spec.containers: one container is needed, it has {}", containers.len()));
    };
    if container.get("resources").is_some() {
        return Err("spec.containers[0].resources: remove it; the machine size sets it".to_owned());
    }
    let image = container.get("image").and_then(Value::as_str).ok_or("spec.containers[0].image is missing")?;
    let metadata = pod.get("metadata").cloned().unwrap_or_else(|| serde_json::json!({}));
    Ok((serde_json::json!({"metadata": metadata, "spec": spec}), image.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> KubernetesFile {
        toml::from_str(text).expect("TOML")
    }

    #[test]
    fn an_image_becomes_a_pod() {
        let text = "image = \"shop:1\"\nport = 80\ncommand = [\"shop\"]\nenv = { A = \"1\" }\nruntime_class = \"gvisor\"\n\
            node_selector = { pool = \"bench\" }\ntolerations = [{ key = \"bench\", operator = \"Exists\" }]\n";
        let file = file(text);
        assert_eq!(file.fault(), None);
        let Workload { template, image, port, service } = file.with(Path::new("/")).expect("a workload");
        assert_eq!((image.as_str(), port, service), ("shop:1", 80, false));
        let spec = &template["spec"];
        assert_eq!(spec["containers"][0]["command"], serde_json::json!(["shop"]));
        assert_eq!(spec["containers"][0]["env"], serde_json::json!([{"name": "A", "value": "1"}]));
        assert_eq!((&spec["nodeSelector"]["pool"], &spec["runtimeClassName"]), (&"bench".into(), &"gvisor".into()));
        assert_eq!(spec["tolerations"], serde_json::json!([{"key": "bench", "operator": "Exists"}]));
    }

    #[test]
    fn faults_name_their_field() {
        for (text, words) in [
            ("port = 80", "kubernetes.image: name an image"),
            ("port = 0\nimage = \"a\"", "kubernetes.port: "),
            ("port = 80\nimage = \"a b\"", "kubernetes.image: must be"),
            ("port = 80\nimage = \"a\"\ntemplate = \"b\"", "kubernetes.image: remove it"),
            ("port = 80\ntemplate = \"b\"\nenv = { A = \"1\" }", "kubernetes.env: write it in the template"),
        ] {
            let fault = file(text).fault().unwrap_or_default();
            assert!(fault.starts_with(words), "{text}: {fault}");
        }
    }

    #[test]
    fn a_template_has_one_container_without_resources() {
        let pod = "apiVersion: v1\nkind: Pod\nmetadata: {labels: {a: b}}\nspec:\n  containers:\n  - {name: x, image: 'shop:2'}\n";
        let (template, image) = parse_template(pod).expect("a template");
        assert_eq!((image.as_str(), &template["metadata"]["labels"]["a"]), ("shop:2", &"b".into()));
        for (text, words) in [
            ("kind: Deployment\nspec: {}", "it is a Deployment"),
            ("metadata: {}", "spec is missing"),
            ("spec: {containers: []}", "one container is needed, it has 0"),
            ("spec: {containers: [{image: a, resources: {}}]}", "resources: remove it"),
            ("spec: {containers: [{name: a}]}", "image is missing"),
            ("{", ""),
        ] {
            let fault = parse_template(text).expect_err(text);
            assert!(fault.contains(words), "{text}: {fault}");
        }
    }
}
