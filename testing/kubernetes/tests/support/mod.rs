//! Pods, and how tests wait for them.

use std::{
    fmt::Debug,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use brewbench_kubernetes_testing::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kube::{
    Api, Client, Config,
    api::{DeleteParams, PostParams},
    config::{KubeConfigOptions, Kubeconfig},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

const PATIENCE: Duration = Duration::from_secs(40);
const STEP: Duration = Duration::from_millis(50);

/// A Pod with one container that runs this script.
pub fn pod(name: &str, script: &str, changes: Value) -> Value {
    let mut container = json!({"name": "main", "image": "busybox:1", "command": ["sh", "-c", script]});
    if let (Some(container), Value::Object(changes)) = (container.as_object_mut(), changes) {
        container.extend(changes);
    }
    let spec = json!({"restartPolicy": "Never", "terminationGracePeriodSeconds": 1, "containers": [container]});
    json!({"metadata": {"name": name}, "spec": spec})
}

/// The Pods of the default namespace.
pub struct Pods(pub Api<Pod>);

impl Pods {
    pub fn of(cluster: &Cluster) -> Self {
        Self(Api::namespaced(cluster.client(), "default"))
    }

    pub async fn create(&self, pod: Value) {
        let pod = serde_json::from_value(pod).expect("a Pod");
        self.0.create(&PostParams::default(), &pod).await.expect("created");
    }

    pub async fn delete(&self, name: &str) {
        self.0.delete(name, &DeleteParams::default()).await.expect("deleted");
    }

    /// Waits until a Pod is as expected, and returns it.
    pub async fn wait(&self, name: &str, expected: impl Fn(&Value) -> bool) -> Value {
        wait(&self.0, name, expected).await
    }

    pub async fn wait_until_gone(&self, name: &str) {
        let begun = Instant::now();
        while let Some(pod) = self.0.get_opt(name).await.expect("an answer") {
            assert!(begun.elapsed() < PATIENCE, "{pod:#?}");
            tokio::time::sleep(STEP).await;
        }
    }
}

/// Waits until an object is as expected, and returns it.
pub async fn wait<K>(api: &Api<K>, name: &str, expected: impl Fn(&Value) -> bool) -> Value
where
    K: Clone + Debug + DeserializeOwned + Serialize,
{
    let begun = Instant::now();
    loop {
        match api.get(name).await.map(|object| serde_json::to_value(object).expect("JSON")) {
            Ok(object) if expected(&object) => return object,
            other => assert!(begun.elapsed() < PATIENCE, "{name}: {other:#?}"),
        }
        tokio::time::sleep(STEP).await;
    }
}

/// Whether a Pod is ready.
pub fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
}

/// Returns the state of a Pod's only container.
pub fn state(pod: &Value) -> &Value {
    &pod["status"]["containerStatuses"][0]["state"]
}

/// Returns a client with the rights of a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Client {
    let config = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("valid");
    Client::try_from(config).expect("a client")
}

/// Returns what the API answers to the admin.
pub async fn get(cluster: &Cluster, path: &str) -> String {
    let request = hyper::Request::get(path).body(Vec::new()).expect("a request");
    cluster.client().request_text(request).await.expect(path)
}

/// Returns the body of a page.
pub async fn page(address: &str, port: u16, path: &str) -> String {
    let mut stream = TcpStream::connect((address, port)).await.expect("a connection");
    let request = format!("GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    answer.split_once("\r\n\r\n").expect("a body").1.to_owned()
}

/// Returns the devices on the bridge of a cluster.
pub fn devices(subnet: u8) -> Vec<String> {
    names(&Path::new("/sys/class/net").join(format!("brewbench-k{subnet}/brif"))).collect()
}

/// Returns what this machine still has of a cluster: folders, processes, devices and control groups.
///
/// `folder` is that of the control plane, `subnet` the third part of all its addresses. Other tests run at the same time.
pub fn leftovers(folder: &Path, subnet: u8, devices: &[String]) -> Vec<String> {
    let addresses = format!("-10.77.{subnet}.");
    let group = format!("brewbench-kubelet-{}{addresses}", std::process::id());
    let mut left: Vec<_> = folder.exists().then(|| folder.display().to_string()).into_iter().collect();
    left.extend(names(&std::env::temp_dir()).filter(|name| name.contains(&addresses)));
    for controller in names(Path::new("/sys/fs/cgroup")) {
        left.extend(names(&Path::new("/sys/fs/cgroup").join(controller)).filter(|name| name.starts_with(&group)));
    }
    let is_device = |name: &String| *name == format!("brewbench-k{subnet}") || devices.contains(name);
    left.extend(names(Path::new("/sys/class/net")).filter(is_device));
    let own = folder.display().to_string();
    for process in names(Path::new("/proc")) {
        let read = |name: &str| fs::read_to_string(Path::new("/proc").join(&process).join(name)).unwrap_or_default();
        let command = read("cmdline").replace('\0', " ");
        if command.contains(&own) || command.contains(&addresses) || read("cgroup").contains(&group) {
            left.push(command);
        }
    }
    left
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned())
}
