//! The node: what its parts share, its registration and its heartbeat.

use std::{
    collections::BTreeMap,
    fs,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use k8s_openapi::{
    api::{coordination::v1::Lease, core::v1},
    jiff::Timestamp,
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{options::NodeOptions, stats::Cached};
use crate::{
    cgroup::{Group, Groups},
    control_plane::VERSION,
    network::{Address, Network},
};

/// The port of kubelets. The address is of this node alone.
pub const PORT: u16 = 10250;

/// Well below the time after which the controller manager of a test cluster gives a node up.
const HEARTBEAT: Duration = Duration::from_secs(2);

/// What the parts of a kubelet share.
pub struct Node {
    pub options: NodeOptions,
    pub client: Client,
    /// Host and port of the API server.
    pub api: (String, String),
    pub address: Address,
    pub network: Arc<Network>,
    pub groups: Groups,
    pub folder: TempDir,
    pub pods: Mutex<BTreeMap<String, PodView>>,
    pub summary: Cached,
    pub cadvisor: Cached,
}

/// What is visible of a Pod from outside, by its uid.
#[derive(Debug, Default)]
pub struct PodView {
    pub namespace: String,
    pub name: String,
    pub containers: BTreeMap<String, ContainerView>,
}

/// What is visible of a container from outside.
#[derive(Clone, Debug)]
pub struct ContainerView {
    pub id: String,
    pub image: String,
    pub log: PathBuf,
    pub previous_log: Option<PathBuf>,
    /// While it runs, the process that waits for its first one, and its control group.
    pub running: Option<(u32, Arc<Group>)>,
}

impl Node {
    /// Returns the Pods that this node has.
    pub fn pods(&self) -> MutexGuard<'_, BTreeMap<String, PodView>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the view of a container.
    pub fn container(&self, namespace: &str, pod: &str, container: &str) -> Option<ContainerView> {
        let pods = self.pods();
        let pod = pods.values().find(|view| view.namespace == namespace && view.name == pod)?;
        pod.containers.get(container).cloned()
    }

    /// Registers the node, or reports that it is ready if it is registered.
    pub async fn register(&self) -> kube::Result<()> {
        let nodes: Api<v1::Node> = Api::all(self.client.clone());
        let name = &self.options.name;
        let object = self.object();
        let node = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
        match nodes.create(&PostParams::default(), &node).await {
            Err(kube::Error::Api(status)) if status.is_already_exists() => {
                let patch = Patch::Merge(json!({"status": object["status"]}));
                nodes.patch_status(name, &PatchParams::default(), &patch).await.map(drop)
            }
            result => result.map(drop),
        }
    }

    /// Keeps the node alive for the controller manager, for ever. While the API server is away, it tries again.
    pub async fn keep_alive(self: Arc<Self>) {
        for beat in 0_u64.. {
            let _ = self.renew().await;
            if beat % 5 == 0 {
                let _ = self.register().await;
            }
            tokio::time::sleep(HEARTBEAT).await;
        }
    }

    async fn renew(&self) -> kube::Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), "kube-node-lease");
        let name = &self.options.name;
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name},
            "spec": {
                "holderIdentity": name,
                "leaseDurationSeconds": 40,
                "renewTime": Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string(),
            },
        });
        let params = PatchParams::apply("brewbench-kubelet").force();
        leases.patch(name, &params, &Patch::Apply(lease)).await.map(drop)
    }

    fn object(&self) -> Value {
        let NodeOptions { name, cpus, memory_bytes, labels, .. } = &self.options;
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let mut all = labels.clone();
        for (label, value) in [("hostname", name.as_str()), ("os", "linux"), ("arch", architecture)] {
            all.insert(format!("kubernetes.io/{label}"), value.to_owned());
        }
        let resources = json!({
            "cpu": cpus.to_string(),
            "memory": memory_bytes.to_string(),
            "ephemeral-storage": (32_u64 << 30).to_string(),
            "pods": "110",
        });
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": all},
            "status": {
                "capacity": resources,
                "allocatable": resources,
                "addresses": [
                    {"type": "InternalIP", "address": self.address.ip()},
                    {"type": "Hostname", "address": name},
                ],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": PORT}},
                "nodeInfo": {
                    "architecture": architecture,
                    "bootID": read("/proc/sys/kernel/random/boot_id"),
                    "containerRuntimeVersion": "brewbench://0.1.0",
                    "kernelVersion": read("/proc/sys/kernel/osrelease"),
                    "kubeProxyVersion": "",
                    "kubeletVersion": VERSION,
                    "machineID": read("/etc/machine-id"),
                    "operatingSystem": "linux",
                    "osImage": "brewbench test node",
                    "systemUUID": "",
                },
                "conditions": conditions(),
            },
        })
    }
}

fn conditions() -> Value {
    let now = time(Timestamp::now());
    let condition = |(kind, status, reason): (&str, &str, &str)| {
        let message = "reported by a test node";
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": now, "lastTransitionTime": now,
        })
    };
    [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    .map(condition)
    .into_iter()
    .collect()
}

/// Formats a time as the API does, in seconds.
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
