//! A node: the real containerd and kubelet, in namespaces and control groups of their own.
//!
//! They share the network of this machine, so each node and each Pod has an address that the tests reach.

mod image;
mod options;
mod settings;

use std::{
    fmt, fs, io,
    net::Ipv4Addr,
    path::Path,
    time::{Duration, Instant},
};

use k8s_openapi::api::core::v1;
use kube::{Api, Client};
use tempfile::TempDir;

pub use self::{image::Image, options::NodeOptions};
use crate::{
    Cluster,
    cgroup::Groups,
    network::Address,
    process::{Daemon, command, folder, run},
};

/// How long a node may take to become ready, beside other tests on a small machine.
const PATIENCE: Duration = Duration::from_secs(90);
const STEP: Duration = Duration::from_millis(50);

/// How often the kubelet reads its containers; the default of ten seconds is long for a test.
const HOUSEKEEPING: &str = "1s";

/// More than any test permits a container to write.
const FILLER: usize = 64 << 20;

/// A running node of a [`Cluster`].
///
/// Dropping it kills its Pods abruptly, like [`Node::kill`], and removes their files and control groups.
pub struct Node {
    name: String,
    address: Ipv4Addr,
    client: Client,
    running: Option<(Daemon, Address)>,
    groups: Groups,
    folder: TempDir,
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}

impl Node {
    /// Registers a node and waits until it is ready for Pods and has its images.
    ///
    /// # Panics
    /// If that fails.
    pub async fn start(cluster: &Cluster, options: NodeOptions) -> Self {
        let mut node = Self::begin(cluster, &options).unwrap_or_else(|error| panic!("a node: {error}"));
        let nodes: Api<v1::Node> = Api::all(node.client.clone());
        let begun = Instant::now();
        while !(node.folder.path().join("imported").exists()
            && nodes.get_opt(&node.name).await.is_ok_and(|found| found.as_ref().is_some_and(is_ready)))
        {
            let failure = node.running.as_mut().and_then(|(daemon, _)| daemon.failure());
            let log = || fs::read_to_string(node.folder.path().join("log/kubelet.log")).unwrap_or_default();
            assert!(failure.is_none(), "the node has ended: {failure:?}");
            assert!(begun.elapsed() < PATIENCE, "the node is not ready: {}", log());
            tokio::time::sleep(STEP).await;
        }
        node
    }

    fn begin(cluster: &Cluster, options: &NodeOptions) -> io::Result<Self> {
        let address = cluster.network().reserve()?;
        let ip = address.ip();
        let groups = Groups::create(ip)?;
        let folder = folder(&format!("node-{ip}"))?;
        write(folder.path(), cluster, options, &address, &groups)?;
        let mut start = command("unshare");
        start.args([
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            include_str!("start.sh"),
        ]);
        start.arg("start.sh").arg(folder.path()).arg(cluster.programs()).arg(ip.to_string());
        start.arg("--kubeconfig").arg(cluster.kubeconfig_for("admin"));
        start.args(["--hostname-override", &options.name, "--node-ip", &ip.to_string()]);
        let labels: Vec<_> = options.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        start.args(["--node-labels", &labels.join(","), "--housekeeping-interval", HOUSEKEEPING]);
        let daemon = Daemon::start(start, &folder.path().join("log/start.log"))?;
        let (name, client) = (options.name.clone(), cluster.client());
        Ok(Self { name, address: ip, client, running: Some((daemon, address)), groups, folder })
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the address of the node.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Returns the id on this machine of a container's first process.
    ///
    /// # Panics
    /// If it does not run on this node.
    pub async fn pid(&self, pod: &str, container: &str) -> i32 {
        let pods: Api<v1::Pod> = Api::default_namespaced(self.client.clone());
        let status = pods.get(pod).await.expect("a Pod").status.unwrap_or_default();
        let found = status.container_statuses.into_iter().flatten().find(|status| status.name == container);
        let id = found.and_then(|status| status.container_id).unwrap_or_default();
        let processes = self.groups.processes(id.trim_start_matches("containerd://"));
        let first = processes.into_iter().find(|pid| is_first(*pid));
        first.unwrap_or_else(|| panic!("{container} of {pod} does not run: {id}"))
    }

    /// Writes into a container until its limit of ephemeral storage is exceeded, for which the kubelet evicts its Pod.
    ///
    /// # Panics
    /// If it does not run on this node.
    pub async fn fill_disk(&self, pod: &str, container: &str) {
        let file = format!("/proc/{}/root/tmp/filler", self.pid(pod, container).await);
        fs::write(file, vec![0; FILLER]).expect("space");
    }

    /// Kills the kubelet, which is then started again as by systemd. Its Pods keep running.
    ///
    /// # Panics
    /// If it does not run.
    pub fn kill_kubelet(&self) {
        let init = self.running.as_ref().and_then(|(daemon, _)| daemon.child()).expect("a node that runs");
        let inside = ["--mount", "--pid", "--target", &init.to_string(), "busybox", "killall", "-9", "kubelet"];
        run("nsenter", &inside).expect("a kubelet");
    }

    /// Kills all Pods and stops, as if the machine had lost its power.
    ///
    /// Nothing is reported: the node and the Pods stay in the API until the cluster notices.
    pub fn kill(&mut self) {
        if let Some((mut daemon, _)) = self.running.take() {
            daemon.kill_namespace();
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes the settings and images of a node, and the folders that it takes for those of a machine.
fn write(
    folder: &Path,
    cluster: &Cluster,
    options: &NodeOptions,
    address: &Address,
    groups: &Groups,
) -> io::Result<()> {
    for name in ["lib", "log", "run", "kernel", "registry", "hosts/_default", "network", "images"] {
        fs::create_dir_all(folder.join(name))?;
    }
    let (network, ip) = (cluster.network(), address.ip());
    let pods = settings::network(&network.bridge(), &network.subnet(), address.pods(), network.gateway());
    for (file, content) in [
        ("containerd.toml", settings::containerd(folder, cluster.programs())),
        ("hosts/_default/hosts.toml", settings::registry(ip)),
        ("network/pods.conflist", pods.to_string()),
        ("kubelet.json", settings::kubelet(ip, &groups.path()).to_string()),
    ] {
        fs::write(folder.join(file), content)?;
    }
    let pause = Image::new(&["sleep", "infinity"]);
    let images = options.images.iter().map(|(name, image)| (name.as_str(), image));
    for (number, (name, image)) in images.chain([(settings::pause().0, &pause)]).enumerate() {
        image.write(name, &folder.join(format!("images/{number}.tar")))?;
    }
    Ok(())
}

fn is_ready(node: &v1::Node) -> bool {
    let conditions = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether a process is the first one of its pid namespace.
fn is_first(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    ids.and_then(|ids| ids.split_whitespace().last()) == Some("1")
}
