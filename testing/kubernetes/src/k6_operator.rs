//! A stand-in for k6-operator 1.x: creates the Jobs of a `TestRun` and starts its runners, as the real one does.
//!
//! It has no initializer and no Services. Its starter Pod does nothing; once that has ended, it sends the requests itself, one
//! after the other.

use std::time::Duration;

use k8s_openapi::{
    api::{batch::v1::Job, core::v1::Pod},
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, PostParams},
};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinHandle,
    time::timeout,
};

use crate::Cluster;

const PAUSE: Duration = Duration::from_millis(200);
/// The image of the starter.
pub const STARTER: &str = "ghcr.io/grafana/k6-operator:latest-starter";
const RESUME: &str = r#"{"data":{"type":"status","id":"default","attributes":{"paused":false}}}"#;

/// The controller, until dropped.
#[derive(Debug)]
pub struct K6Operator(JoinHandle<()>);

impl K6Operator {
    /// Installs the resource `TestRun`, and starts the controller.
    ///
    /// # Panics
    /// If the API server refuses the resource.
    pub async fn install(cluster: &Cluster) -> Self {
        install_resource(cluster, "v1alpha1").await;
        let client = cluster.client();
        Self(tokio::spawn(async move {
            loop {
                // The next round tries again.
                let _ = reconcile(&client).await;
                tokio::time::sleep(PAUSE).await;
            }
        }))
    }
}

impl Drop for K6Operator {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Installs the resource `TestRun` in a version, without a controller.
///
/// # Panics
/// If the API server refuses it.
pub async fn install_resource(cluster: &Cluster, version: &str) {
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names = json!({"kind": "TestRun", "listKind": "TestRunList", "plural": "testruns", "singular": "testrun"});
    let resource = json!({
        "metadata": {"name": "testruns.k6.io"},
        "spec": {
            "group": "k6.io", "scope": "Namespaced", "names": names,
            "versions": [{"name": version, "served": true, "storage": true, "schema": schema}],
        },
    });
    let resource = serde_json::from_value(resource).expect("a resource");
    let all: Api<CustomResourceDefinition> = Api::all(cluster.client());
    all.create(&PostParams::default(), &resource).await.expect("a resource");
    let path = format!("k6.io/{version}");
    while cluster.client().list_api_group_resources(&path).await.map_or(true, |found| found.resources.is_empty()) {
        tokio::time::sleep(PAUSE).await;
    }
}

async fn reconcile(client: &Client) -> kube::Result<()> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("k6.io", "v1alpha1", "TestRun"));
    let runs: Api<DynamicObject> = Api::all_with(client.clone(), &kind);
    for run in runs.list(&ListParams::default()).await? {
        let namespace = run.namespace().unwrap_or_default();
        let jobs: Api<Job> = Api::namespaced(client.clone(), &namespace);
        let parallelism = run.data["spec"]["parallelism"].as_u64().unwrap_or(1);
        for index in 1..=parallelism {
            create(&jobs, runner(&run, index, parallelism)).await?;
        }
        let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
        let own = ListParams::default().labels(&format!("k6_cr={},runner=true", run.name_any()));
        let pods = pods.list(&own).await?.items;
        let addresses: Vec<String> = pods.iter().filter_map(|pod| pod.status.as_ref()?.pod_ip.clone()).collect();
        if addresses.len() as u64 != parallelism || !are_ready(&addresses).await {
            continue;
        }
        create(&jobs, starter(&run)).await?;
        if has_succeeded(&jobs, &starter_name(&run)).await? {
            for address in &addresses {
                let _ = ask(address, "PATCH", RESUME).await;
            }
        }
    }
    Ok(())
}

/// Creates a Job unless it exists.
async fn create(jobs: &Api<Job>, job: Value) -> kube::Result<()> {
    let job = serde_json::from_value(job).expect("a Job");
    match jobs.create(&PostParams::default(), &job).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
        created => created.map(drop),
    }
}

async fn has_succeeded(jobs: &Api<Job>, name: &str) -> kube::Result<bool> {
    let job = jobs.get_opt(name).await?;
    Ok(job.and_then(|job| job.status?.succeeded).is_some_and(|count| count > 0))
}

fn starter_name(run: &DynamicObject) -> String {
    format!("{}-starter", run.name_any())
}

/// Builds the Job of the starter.
fn starter(run: &DynamicObject) -> Value {
    let spec = &run.data["spec"]["starter"];
    let container = json!({
        "name": "k6-curl", "image": STARTER, "command": ["sh", "-c", "true"],
        "securityContext": spec["containerSecurityContext"],
    });
    job_of(
        run,
        &starter_name(run),
        json!({"app": "k6", "k6_cr": run.name_any()}),
        spec,
        json!({"containers": [container]}),
    )
}

/// Builds a Job whose Pod is what a `TestRun` says of it, and these parts.
fn job_of(run: &DynamicObject, name: &str, mut labels: Value, pod: &Value, parts: Value) -> Value {
    for (label, value) in pod["metadata"]["labels"].as_object().into_iter().flatten() {
        labels[label] = value.clone();
    }
    let owner = json!({
        "apiVersion": "k6.io/v1alpha1", "kind": "TestRun", "name": run.name_any(), "uid": run.uid(), "controller": true,
    });
    let mut spec = json!({
        "restartPolicy": "Never", "nodeSelector": pod["nodeSelector"], "tolerations": pod["tolerations"],
        "imagePullSecrets": pod["imagePullSecrets"], "securityContext": pod["securityContext"],
    });
    if let (Some(spec), Value::Object(parts)) = (spec.as_object_mut(), parts) {
        spec.extend(parts);
    }
    json!({
        "metadata": {"name": name, "labels": labels, "ownerReferences": [owner]},
        "spec": {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": spec}},
    })
}

/// Builds the Job of a runner.
fn runner(run: &DynamicObject, index: u64, parallelism: u64) -> Value {
    let (name, spec) = (run.name_any(), &run.data["spec"]);
    let runner = &spec["runner"];
    let mut command = vec!["k6".to_owned(), "run".to_owned(), "--quiet".to_owned()];
    if parallelism > 1 {
        let edge = |at: u64| match at {
            0 => "0".to_owned(),
            at if at == parallelism => "1".to_owned(),
            at => format!("{at}/{parallelism}"),
        };
        let all: Vec<String> = (0..=parallelism).map(edge).collect();
        command.push(format!("--execution-segment={}:{}", edge(index - 1), edge(index)));
        command.push(format!("--execution-segment-sequence={}", all.join(",")));
    }
    command.push(match spec["script"]["localFile"].as_str() {
        Some(path) => path.to_owned(),
        None => format!("/test/{}", spec["script"]["configMap"]["file"].as_str().unwrap_or("test.js")),
    });
    command.extend(["--address=0.0.0.0:6565".to_owned(), "--paused".to_owned()]);
    command.extend(["--tag".to_owned(), format!("instance_id={index}")]);
    command.extend(["--tag".to_owned(), format!("testrun_name={name}")]);
    // A local file comes with volumes and mounts of the runner's own.
    let (mut volumes, mut mounts) = (Vec::new(), Vec::new());
    if let Some(map) = spec["script"]["configMap"]["name"].as_str() {
        volumes.push(json!({"name": "k6-test-volume", "configMap": {"name": map}}));
        mounts.push(json!({"name": "k6-test-volume", "mountPath": "/test", "readOnly": true}));
    }
    volumes.extend(runner["volumes"].as_array().into_iter().flatten().cloned());
    mounts.extend(runner["volumeMounts"].as_array().into_iter().flatten().cloned());
    let security = &runner["containerSecurityContext"];
    let container = json!({
        "name": "k6", "image": runner["image"], "command": command, "env": runner["env"],
        "resources": runner["resources"], "ports": [{"containerPort": 6565}], "volumeMounts": mounts,
        "securityContext": security,
    });
    let init = runner["initContainers"].as_array().into_iter().flatten().cloned().map(|mut init| {
        init["securityContext"] = security.clone();
        init
    });
    let parts = json!({"containers": [container], "volumes": volumes, "initContainers": init.collect::<Vec<Value>>()});
    let labels = json!({"app": "k6", "k6_cr": name, "runner": "true"});
    job_of(run, &format!("{name}-{index}"), labels, runner, parts)
}

/// Whether every k6 answers and is still paused.
async fn are_ready(addresses: &[String]) -> bool {
    for address in addresses {
        if !ask(address, "GET", "").await.is_some_and(|answer| answer.contains(r#""paused":true"#)) {
            return false;
        }
    }
    true
}

/// Sends a request to the status of a k6, which may be gone.
async fn ask(address: &str, method: &str, body: &str) -> Option<String> {
    timeout(Duration::from_millis(500), request(address, method, body)).await.ok()?
}

async fn request(address: &str, method: &str, body: &str) -> Option<String> {
    let mut stream = TcpStream::connect((address, 6565)).await.ok()?;
    let head = format!("{method} /v1/status HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).await.ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.ok()?;
    Some(answer)
}
