//! What is known about a Pod and its node once it runs.

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde::Deserialize;

use super::cluster::{Cluster, sentence};
use crate::host::environment::Facts;

/// The label by which clouds name the type of a machine.
const TYPE: &str = "node.kubernetes.io/instance-type";

/// Returns facts about the Pod's place. What may not be read is left out.
pub async fn facts(cluster: &Cluster, pod: &Pod, node: &str) -> Facts {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let mut facts = Facts::new();
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(format!("target.{name}"), value);
        }
    };
    add("node", Some(node.to_owned()));
    add("qos", pod.status.as_ref().and_then(|status| status.qos_class.clone()));
    match nodes.get(node).await {
        Ok(found) => {
            let info = found.status.as_ref().and_then(|status| status.node_info.as_ref());
            let labels = found.metadata.labels.unwrap_or_default();
            add("node_type", labels.get(TYPE).cloned());
            add("node_kernel", info.map(|info| info.kernel_version.clone()));
            add("kubelet", info.map(|info| info.kubelet_version.clone()));
            add("runtime", info.map(|info| info.container_runtime_version.clone()));
            let capacity = found.status.and_then(|status| status.capacity).unwrap_or_default();
            add("node_cpus", capacity.get("cpu").map(|cpus| cpus.0.clone()));
            add("node_memory", capacity.get("memory").map(|memory| memory.0.clone()));
        }
        Err(error) => tracing::warn!(node, error = sentence(&error), "can't read the node of the target"),
    }
    add("cpu_manager", cpu_manager(cluster, node).await);
    facts
}

/// Returns the kubelet's policy: only `static` gives a Pod cores of its own.
async fn cpu_manager(cluster: &Cluster, node: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Config {
        kubeletconfig: Kubelet,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Kubelet {
        cpu_manager_policy: String,
    }
    let text = cluster.node(node, "configz").await.ok()?;
    let config: Config = serde_json::from_str(&text).ok()?;
    Some(config.kubeletconfig.cpu_manager_policy)
}
