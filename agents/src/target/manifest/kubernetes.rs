//! What runs in the Pod of a target: its image, or a template.

use std::path::Path;

use serde_json::Value;

use brewbench_wire::manifest::KubernetesFile;

/// Name of the target's container in a Pod without a template.
const CONTAINER: &str = "target";

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

/// Reads the template, if there is one. `folder` is that of the manifest.
pub(super) fn resolve(file: &KubernetesFile, folder: &Path) -> Result<Workload, String> {
    let (template, image) = match &file.template {
        Some(path) => read_template(&folder.join(path))
            .map_err(|fault| format!("kubernetes.template: {}: {fault}", path.display()))?,
        None => pod(file),
    };
    Ok(Workload { template, image, port: file.port, service: file.service })
}

/// Returns a Pod without a template, and its image.
fn pod(file: &KubernetesFile) -> (Value, String) {
    let KubernetesFile { command, env, node_selector, tolerations, runtime_class, pull_secrets, .. } = file;
    let image = file.image.clone().unwrap_or_default();
    let env: Vec<Value> = env.iter().map(|(name, value)| serde_json::json!({"name": name, "value": value})).collect();
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
        let Workload { template, image, port, service } = resolve(&file, Path::new("/")).expect("a workload");
        assert_eq!((image.as_str(), port, service), ("shop:1", 80, false));
        let spec = &template["spec"];
        assert_eq!(spec["containers"][0]["command"], serde_json::json!(["shop"]));
        assert_eq!(spec["containers"][0]["env"], serde_json::json!([{"name": "A", "value": "1"}]));
        assert_eq!((&spec["nodeSelector"]["pool"], &spec["runtimeClassName"]), (&"bench".into(), &"gvisor".into()));
        assert_eq!(spec["tolerations"], serde_json::json!([{"key": "bench", "operator": "Exists"}]));
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
