//! The settings of containerd, its network and a kubelet. Pure.

use std::{net::Ipv4Addr, path::Path};

use serde_json::{Value, json};

/// The image of the container that holds the namespaces of a Pod.
const PAUSE: &str = "brewbench/pause:1";

/// Returns that image's name in archives and in containerd.
pub fn pause() -> (&'static str, String) {
    (PAUSE, format!("docker.io/{PAUSE}"))
}

/// Returns the settings of containerd.
///
/// Only root with `CAP_SYS_RESOURCE` may protect processes from the kernel's OOM killer. The disk usage of containers
/// is measured each second, so that a full one is noticed soon.
pub fn containerd(folder: &Path, programs: &Path) -> String {
    let (folder, programs, (_, pause)) = (folder.display(), programs.display(), pause());
    format!(
        "version = 3
[plugins.'io.containerd.cri.v1.images']
stats_collect_period = 1
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = \"{pause}\"
[plugins.'io.containerd.cri.v1.images'.registry]
config_path = \"{folder}/hosts\"
[plugins.'io.containerd.cri.v1.runtime']
restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
bin_dirs = [\"{programs}\"]
conf_dir = \"{folder}/network\"
use_internal_loopback = true
"
    )
}

/// Returns where containerd looks for all images.
pub fn registry(address: Ipv4Addr) -> String {
    format!("server = \"http://{address}:5000\"\n")
}

/// Returns the network of Pods: addresses from a range, on a bridge.
pub fn network(bridge: &str, subnet: &str, (first, last): (Ipv4Addr, Ipv4Addr), gateway: Ipv4Addr) -> Value {
    let range = json!({"subnet": subnet, "rangeStart": first, "rangeEnd": last, "gateway": gateway});
    let addresses = json!({"type": "host-local", "ranges": [[range]], "routes": [{"dst": "0.0.0.0/0"}]});
    json!({
        "cniVersion": "1.0.0",
        "name": "pods",
        "plugins": [{"type": "bridge", "bridge": bridge, "ipam": addresses}],
    })
}

/// Returns the settings of a kubelet.
///
/// Images can't be pulled again, so none may be removed; and the disk of a developer may be nearly full.
pub fn kubelet(address: Ipv4Addr, groups: &str) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": address,
        "healthzPort": 0,
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": groups,
        "failCgroupV1": false,
        "failSwapOn": false,
        "protectKernelDefaults": true,
        "makeIPTablesUtilChains": false,
        "resolvConf": "",
        // The controller manager of a test cluster gives up on a node after eight seconds.
        "nodeLeaseDurationSeconds": 8,
        "imageGCHighThresholdPercent": 100,
        "evictionHard": {"memory.available": "100Mi"},
    })
}
