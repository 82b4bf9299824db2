//! Events of Pods, as `kubectl describe` shows them.

use k8s_openapi::{
    api::core::v1::{Event, Pod},
    jiff::Timestamp,
};
use kube::{Api, ResourceExt, api::PostParams};
use serde_json::json;
use uuid::Uuid;

use super::node::{Node, time};

/// Reports an event in the background. It is lost while the API server is away.
pub fn report(node: &Node, pod: &Pod, kind: &str, reason: &str, message: &str) {
    let (name, namespace) = (pod.name_any(), pod.namespace().unwrap_or_default());
    let now = time(Timestamp::now());
    let event = json!({
        "metadata": {"name": format!("{name}.{}", Uuid::new_v4().simple()), "namespace": namespace},
        "involvedObject": {
            "apiVersion": "v1", "kind": "Pod", "name": name, "namespace": namespace, "uid": pod.uid(),
        },
        "type": kind,
        "reason": reason,
        "message": message,
        "source": {"component": "kubelet", "host": node.options.name},
        "reportingComponent": "kubelet",
        "reportingInstance": node.options.name,
        "count": 1,
        "firstTimestamp": now,
        "lastTimestamp": now,
    });
    let Ok(event) = serde_json::from_value::<Event>(event) else { return };
    let events: Api<Event> = Api::namespaced(node.client.clone(), &namespace);
    tokio::spawn(async move { events.create(&PostParams::default(), &event).await });
}
