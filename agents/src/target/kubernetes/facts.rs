//! What is known about Pods and their nodes once they run.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Api;
use serde::Deserialize;

use super::cluster::{Cluster, describe_error};
use super::pods::Placed;
use crate::host::environment::Facts;
use crate::host::machine;

/// The label by which clouds name the type of a machine.
const TYPE: &str = "node.kubernetes.io/instance-type";

/// The kubelet's policy that gives Pods with whole cores cores of their own.
const STATIC: &str = "static";

/// Where the Pods of a target run.
#[derive(Debug, Default)]
pub struct PodPlacement {
    /// Facts about their nodes, as far as they may be read. Where nodes differ, a fact lists all values.
    pub facts: Facts,
    /// Whether other Pods may use the cores of one of them; `None` if unknown.
    pub shares_cores: Option<bool>,
    /// Nodes that are the machine of this agent; `None` if unknown.
    pub here: Option<BTreeSet<String>>,
}

/// Describes where Pods run.
pub async fn describe_placement(cluster: &Cluster, pods: &[Pod], vcpus: f64) -> PodPlacement {
    let mut values: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (mut policies, mut here, mut is_known) = (Vec::new(), BTreeSet::new(), true);
    for node in pods.iter().map(|pod| Placed::from_pod(pod).node).collect::<BTreeSet<_>>() {
        let Described { facts, is_here } = of_node(cluster, &node).await;
        is_known &= is_here.is_some();
        if is_here == Some(true) {
            here.insert(node);
        }
        policies.push(facts.get("node.cpu_manager").cloned());
        for (name, value) in facts {
            values.entry(name).or_default().insert(value);
        }
    }
    for qos in pods.iter().filter_map(|pod| pod.status.as_ref()?.qos_class.clone()) {
        values.entry("node.qos".to_owned()).or_default().insert(qos);
    }
    let listed = |values: BTreeSet<String>| values.into_iter().collect::<Vec<_>>().join(", ");
    let facts = values.into_iter().map(|(name, values)| (name, listed(values))).collect();
    let policies: Option<Vec<String>> = policies.into_iter().collect();
    let shares = |policies: Vec<String>| policies.iter().any(|policy| policy != STATIC) || vcpus.fract() > 0.0;
    PodPlacement { facts, shares_cores: policies.map(shares), here: is_known.then_some(here) }
}

/// A node, as far as it may be read.
#[derive(Debug)]
pub struct Described {
    /// What is known about it.
    pub facts: Facts,
    /// Whether it is the machine of this agent; `None` if unknown.
    pub is_here: Option<bool>,
}

/// Describes a node.
pub async fn of_node(cluster: &Cluster, node: &str) -> Described {
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let (mut facts, mut is_here) = (Facts::new(), None);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            facts.insert(name.to_owned(), value);
        }
    };
    add("load.node", Some(node.to_owned()));
    add("load.node_pods", pods(cluster, node).await.map(|pods| pods.to_string()));
    match nodes.get(node).await {
        Ok(found) => {
            let info = found.status.as_ref().and_then(|status| status.node_info.as_ref());
            let boot = info.map(|info| info.boot_id.as_str()).filter(|boot| !boot.is_empty());
            is_here = boot.map(|boot| boot == machine::boot_id());
            let labels = found.metadata.labels.unwrap_or_default();
            add("node.type", labels.get(TYPE).cloned());
            add("node.kernel", info.map(|info| info.kernel_version.clone()));
            add("node.kubelet", info.map(|info| info.kubelet_version.clone()));
            add("node.runtime", info.map(|info| info.container_runtime_version.clone()));
            let capacity = found.status.and_then(|status| status.capacity).unwrap_or_default();
            add("node.cpus", capacity.get("cpu").map(|cpus| cpus.0.clone()));
            add("node.memory", capacity.get("memory").map(|memory| memory.0.clone()));
        }
        Err(error) => tracing::warn!(node, error = describe_error(&error), "can't read a node"),
    }
    add("node.cpu_manager", cpu_manager(cluster, node).await);
    Described { facts, is_here }
}

/// Returns the number of Pods on a node.
async fn pods(cluster: &Cluster, node: &str) -> Option<usize> {
    let text = cluster.node(node, "stats/summary?only_cpu_and_memory=true").await.ok()?;
    let summary: serde_json::Value = serde_json::from_str(&text).ok()?;
    summary.get("pods").and_then(|pods| pods.as_array()).map(Vec::len)
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

/// Returns the digest of the image that all Pods run; `None` if it is unknown. Fails if they run several.
pub fn only_image(pods: &[Pod]) -> Result<Option<String>, String> {
    let statuses = pods.iter().filter_map(|pod| pod.status.as_ref()?.container_statuses.as_ref()?.first());
    let images: BTreeSet<&str> = statuses.map(|container| digest(&container.image_id)).collect();
    let mut known = images.into_iter().filter(|image| !image.is_empty());
    match (known.next(), known.next()) {
        (Some(one), Some(other)) => Err(format!("its Pods run different images: {one} and {other}")),
        (image, _) => Ok(image.map(str::to_owned)),
    }
}

/// Returns the digest of an image id such as `docker.io/library/nginx@sha256:…`.
fn digest(image_id: &str) -> &str {
    image_id.rsplit_once('@').map_or(image_id, |(_, digest)| digest)
}
