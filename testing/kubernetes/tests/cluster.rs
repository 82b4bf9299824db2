//! The fixture itself: a control plane, and Pods on a test node.

use std::{
    collections::BTreeMap,
    net::Ipv4Addr,
    time::{Duration, Instant},
};

use brewbench_kubernetes_testing::{Cluster, Image, Kubelet, NodeOptions};
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client,
    api::{DeleteParams, LogParams, PostParams},
};
use serde_json::{Value, json};

fn node(name: &str) -> NodeOptions {
    NodeOptions::new(name).with_image("busybox:1", Image::new(&["/bin/sh"]))
}

/// A Pod with one container that runs this script.
fn pod(name: &str, script: &str, change: Value) -> Pod {
    let mut container = json!({"name": "main", "image": "busybox:1", "command": ["sh", "-c", script]});
    if let (Some(container), Some(change)) = (container.as_object_mut(), change.as_object()) {
        container.extend(change.clone());
    }
    let spec = json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]});
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).expect("a Pod")
}

struct Pods(Api<Pod>);

impl Pods {
    fn of(cluster: &Cluster) -> Self {
        Self(Api::namespaced(cluster.client(), "default"))
    }

    async fn create(&self, pod: Pod) {
        self.0.create(&PostParams::default(), &pod).await.expect("created");
    }

    /// Waits until a Pod is as expected, and returns it.
    async fn wait(&self, name: &str, expected: impl Fn(&Value) -> bool) -> Value {
        let begun = Instant::now();
        loop {
            let pod = self.0.get(name).await.map(|pod| serde_json::to_value(pod).expect("JSON"));
            match pod {
                Ok(pod) if expected(&pod) => return pod,
                other => assert!(begun.elapsed() < Duration::from_secs(30), "{name}: {other:#?}"),
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

async fn get(client: &Client, path: &str) -> String {
    let request = hyper::Request::get(path).body(Vec::new()).expect("a request");
    client.request_text(request).await.expect(path)
}

#[tokio::test]
async fn a_pod_runs_answers_and_is_measured() {
    let Some(cluster) = Cluster::start().await else { return };
    let _kubelet = Kubelet::start(&cluster, node("node-1")).await;
    let pods = Pods::of(&cluster);
    let serve = "echo hello; cd /tmp; echo content > page; exec python3 -m http.server 8000";
    pods.create(pod("web", serve, json!({"readinessProbe": {"httpGet": {"path": "/page", "port": 8000}}}))).await;
    let ready = pods.wait("web", is_ready).await;
    println!("{ready:#}");
}
