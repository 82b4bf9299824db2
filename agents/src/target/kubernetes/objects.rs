//! The objects of a run: a Deployment, and a Service if the load goes through one. Pure.

use brewbench_wire::job::Size;
use serde_json::{Value, json};

use super::cluster::RUN;
use crate::target::manifest::Workload;

/// Seconds for the target to exit after SIGTERM.
const GRACE_S: u32 = 1;

/// Returns a Deployment of one Pod for each replica. Its only container has the size as its request and its limit.
pub fn deployment(workload: &Workload, size: &Size, metadata: &Value, run: &str) -> Value {
    let mut template = workload.template.clone();
    let labels = template["metadata"]["labels"].take();
    let mut labels = if labels.is_object() { labels } else { json!({}) };
    for (name, value) in metadata["labels"].as_object().into_iter().flatten() {
        labels[name] = value.clone();
    }
    template["metadata"]["labels"] = labels;
    let spec = &mut template["spec"];
    spec["restartPolicy"] = json!("Always");
    spec["terminationGracePeriodSeconds"] = json!(GRACE_S);
    let container = &mut spec["containers"][0];
    let amounts = json!({"cpu": format!("{:.0}m", size.vcpus * 1_000.0), "memory": size.memory_bytes.to_string()});
    container["resources"] = json!({"requests": amounts, "limits": amounts});
    // Kubernetes then reports the last output of a container that fails.
    container["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
        "spec": {
            "replicas": size.replicas, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 0,
            "selector": {"matchLabels": {RUN: run}}, "template": template,
        },
    })
}

/// Returns a Service in front of it.
pub fn service(workload: &Workload, metadata: &Value, run: &str) -> Value {
    let port = workload.port;
    json!({
        "apiVersion": "v1", "kind": "Service", "metadata": metadata,
        "spec": {"selector": {RUN: run}, "ports": [{"port": port, "targetPort": port}]},
    })
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::Service;

    use super::*;

    #[test]
    fn requests_and_limits_are_the_machine_size() {
        let template =
            json!({"metadata": {"labels": {"team": "shop"}}, "spec": {"containers": [{"name": "x", "image": "a"}]}});
        let workload = Workload { template, image: "a".to_owned(), port: 80, service: true };
        let size = Size { name: "0.5/64MiB".to_owned(), vcpus: 0.5, memory_bytes: 64 << 20, replicas: 1 };
        let metadata = json!({"name": "brewbench-1", "labels": {RUN: "1"}});
        let built = deployment(&workload, &size, &metadata, "1");
        let container = &built["spec"]["template"]["spec"]["containers"][0];
        let amounts = json!({"cpu": "500m", "memory": "67108864"});
        assert_eq!(container["resources"], json!({"requests": amounts, "limits": amounts}));
        assert_eq!(built["spec"]["template"]["metadata"]["labels"], json!({"team": "shop", RUN: "1"}));
        serde_json::from_value::<Deployment>(built).expect("a Deployment");
        serde_json::from_value::<Service>(service(&workload, &metadata, "1")).expect("a Service");
    }
}
