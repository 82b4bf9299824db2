//! The manifest of a new target, written from the fields of a form, of the API or of a command. Pure.
//!
//! The agent's own type checks the fields and writes the text, so that an agent reads the file as it was meant.

pub mod draft;
pub mod fields;

use std::{collections::BTreeMap, net::IpAddr, path::PathBuf};

use brewbench_agent::{
    target::{
        Sandbox,
        manifest::{
            Accelerator, CallGraph, Container, KubernetesFile, ManifestFile, MetricsFile, Mount, Network, Preset,
            ProfileFile, Pull, Ready, Tap, Toleration, UrlFile, Verify, VmFile,
        },
    },
    wire::profile::ProfileKind,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Status that a check expects by default.
pub const STATUS: u16 = 200;
/// Longest time from start to ready by default, seconds.
pub const READY_TIMEOUT_S: f64 = 10.0;

/// A target that an agent does not know yet.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTarget {
    /// 1 to 64 letters, digits, `-`, `_` or `.`.
    pub name: String,
    /// In any format.
    pub version: String,
    /// Source revision, such as a commit.
    #[serde(default)]
    pub revision: Option<String>,
    /// One line.
    #[serde(default)]
    pub description: String,
    /// The program and its arguments; `{port}` and `{host}` are replaced with the address to listen on. Empty for other
    /// kinds of targets.
    #[serde(default)]
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// A container; null for other kinds of targets.
    #[serde(default)]
    pub container: Option<ContainerTarget>,
    /// A virtual machine; null for other kinds of targets.
    #[serde(default)]
    pub vm: Option<VirtualMachine>,
    /// A server that already runs; null for other kinds of targets.
    #[serde(default)]
    pub url: Option<RunningServer>,
    /// A Pod of a Kubernetes cluster; null for other kinds of targets.
    #[serde(default)]
    pub kubernetes: Option<KubernetesTarget>,
    /// Where the CPU time and memory of a server that already runs are read; null if nowhere.
    #[serde(default)]
    pub metrics: Option<ServerMetrics>,
    /// When it is ready.
    pub ready: ReadyCheck,
    /// A response that shows that the right program serves; null for none.
    #[serde(default)]
    pub verify: Option<ResponseCheck>,
    /// How it is profiled; null for perf.
    #[serde(default)]
    pub profile: Option<TargetProfile>,
    /// Files that it may use besides its own folder.
    #[serde(default)]
    pub sandbox: Access,
}

/// A container that the agent starts.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerTarget {
    /// Name of its image, with a tag or a digest.
    pub image: String,
    /// Arguments instead of those of the image; `{port}` and `{host}` are replaced with the address to listen on.
    #[serde(default)]
    pub command: Vec<String>,
    /// Additional environment variables, with the same placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The port it always listens on; null if it takes `{port}`.
    #[serde(default)]
    pub port: Option<u16>,
    /// `host`, the default, or `bridge`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub network: Network,
    /// When the image is pulled: `never`, `missing`, the default, or `always`.
    #[serde(default)]
    #[schema(value_type = String)]
    pub pull: Pull,
    /// `default`, `unconfined` or the path of a profile; null for `default`.
    #[serde(default)]
    pub seccomp: Option<String>,
    /// User and group instead of those of the image.
    #[serde(default)]
    pub user: Option<String>,
    /// Files and folders of the agent's machine that it may read.
    #[serde(default)]
    pub mounts: Vec<ContainerMount>,
}

/// A file or folder of the agent's machine in a container, read-only.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ContainerMount {
    /// Its path on the machine, absolute or relative to the manifest's folder.
    pub source: String,
    /// Its path in the container.
    pub target: String,
}

impl From<ContainerTarget> for Container {
    fn from(target: ContainerTarget) -> Self {
        let ContainerTarget { image, command, env, port, network, pull, seccomp, user, mounts } = target;
        let mount = |ContainerMount { source, target }| Mount { source: source.into(), target };
        let mounts = mounts.into_iter().map(mount).collect();
        Self { image, command, port, network, pull, seccomp, user, mounts, env }
    }
}

/// A virtual machine that the agent starts: by a launcher, or with QEMU, which boots a disk or a kernel.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct VirtualMachine {
    /// The launcher and its arguments; `{vcpus}`, `{memory_mib}`, `{host}` and `{port}` are replaced with the machine size
    /// and the address where the server is reached. Empty for QEMU.
    #[serde(default)]
    pub command: Vec<String>,
    /// Additional environment variables of the launcher, with the same placeholders.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Kernel that QEMU boots; null for the boot loader of the disk. Paths are absolute or relative to the manifest's
    /// folder.
    #[serde(default)]
    pub kernel: Option<String>,
    /// Initial RAM disk of the kernel; null for none.
    #[serde(default)]
    pub initrd: Option<String>,
    /// Added to the kernel's command line.
    #[serde(default)]
    pub append: String,
    /// Disk image, qcow2 or raw, which is never changed; null for none.
    #[serde(default)]
    pub disk: Option<String>,
    /// cloud-init files: a folder with `user-data` and `meta-data`, or an image; null for none.
    #[serde(default)]
    pub seed: Option<String>,
    /// Port of the server in the guest that QEMU boots; null for a launcher.
    #[serde(default)]
    pub port: Option<u16>,
    /// What runs the guest's CPUs: `auto`, the default, for KVM if guests start with it, `kvm`, or `tcg`, the emulation.
    #[serde(default)]
    #[schema(value_type = String)]
    pub accelerator: Accelerator,
    /// A tap interface of the agent's machine; null for QEMU's user-mode network.
    #[serde(default)]
    pub tap: Option<TapInterface>,
}

/// A tap interface that the owner of the agent's machine has set up.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TapInterface {
    /// Its name.
    pub interface: String,
    /// IP address of the guest behind it.
    #[schema(value_type = String)]
    pub address: IpAddr,
}

impl From<VirtualMachine> for VmFile {
    fn from(target: VirtualMachine) -> Self {
        let VirtualMachine { command, env, kernel, initrd, append, disk, seed, port, accelerator, tap } = target;
        let path = |path: Option<String>| path.map(PathBuf::from);
        let (kernel, initrd, disk, seed) = (path(kernel), path(initrd), path(disk), path(seed));
        let tap = tap.map(|TapInterface { interface, address }| Tap { interface, address });
        Self { command, env, kernel, initrd, append, disk, seed, port, accelerator, tap }
    }
}

/// A Pod that a cluster runs, with the machine size as its requests and limits.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct KubernetesTarget {
    /// Name of its image; null with a template.
    #[serde(default)]
    pub image: Option<String>,
    /// A file with a Pod or a Pod template, as YAML, relative to the manifest's folder; null with an image.
    #[serde(default)]
    pub template: Option<String>,
    /// The port it listens on.
    pub port: u16,
    /// Program and arguments instead of those of the image.
    #[serde(default)]
    pub command: Vec<String>,
    /// Environment variables.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Labels that its node must have.
    #[serde(default)]
    pub node_selector: BTreeMap<String, String>,
    /// Taints of nodes that it tolerates.
    #[serde(default)]
    pub tolerations: Vec<PodToleration>,
    /// Runtime class; null for the cluster's default.
    #[serde(default)]
    pub runtime_class: Option<String>,
    /// Secrets of the namespace that allow to pull the image.
    #[serde(default)]
    pub pull_secrets: Vec<String>,
    /// Whether the load goes through a Service and not directly to the Pod.
    #[serde(default)]
    pub service: bool,
}

/// A taint that a Pod tolerates, in the words of Kubernetes.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PodToleration {
    /// Key of the taint; null for all.
    #[serde(default)]
    pub key: Option<String>,
    /// `Equal` or `Exists`.
    #[serde(default)]
    pub operator: Option<String>,
    /// Value of the taint.
    #[serde(default)]
    pub value: Option<String>,
    /// `NoSchedule`, `PreferNoSchedule` or `NoExecute`; null for all.
    #[serde(default)]
    pub effect: Option<String>,
}

impl From<KubernetesTarget> for KubernetesFile {
    fn from(target: KubernetesTarget) -> Self {
        let KubernetesTarget { image, template, port, command, env, node_selector, .. } = target;
        let KubernetesTarget { tolerations, runtime_class, pull_secrets, service, .. } = target;
        let toleration = |PodToleration { key, operator, value, effect }| Toleration { key, operator, value, effect };
        let tolerations = tolerations.into_iter().map(toleration).collect();
        let template = template.map(PathBuf::from);
        Self { image, template, port, command, env, node_selector, tolerations, runtime_class, pull_secrets, service }
    }
}

/// A server that already runs.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunningServer {
    /// Its URL; paths are appended.
    pub base: String,
    /// Hosts to which checks and load follow redirects; empty to follow none.
    #[serde(default)]
    pub redirects: Vec<String>,
}

/// Metrics in the text format of Prometheus.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerMetrics {
    /// Their URL.
    pub scrape: String,
    /// Their names: `process`, `cadvisor` or `node_exporter`; null for the first of these that is found.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub preset: Option<Preset>,
    /// Only series with these labels count.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// How a target is profiled: with one of `pprof`, `command` and, without both, perf.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TargetProfile {
    /// Path or URL of an endpoint that returns pprof; `{s}` becomes the seconds.
    #[serde(default)]
    pub pprof: Option<String>,
    /// A command that writes or prints pprof or collapsed stacks.
    #[serde(default)]
    pub command: Vec<String>,
    /// `cpu`, `heap` and `allocs`; empty for `cpu`.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    pub kinds: Vec<ProfileKind>,
    /// How perf unwinds stacks: `fp`, the default, or `dwarf`.
    #[serde(default)]
    #[schema(value_type = Option<String>)]
    pub call_graph: Option<CallGraph>,
    /// Samples per second of perf or a command; null for its default.
    #[serde(default)]
    pub rate_hz: Option<u32>,
}

impl From<TargetProfile> for ProfileFile {
    fn from(profile: TargetProfile) -> Self {
        let TargetProfile { pprof, command, kinds, call_graph, rate_hz } = profile;
        let usual = Self::default();
        let kinds = if kinds.is_empty() { usual.kinds.clone() } else { kinds };
        Self { perf: pprof.is_none() && command.is_empty(), pprof, command, kinds, call_graph, rate_hz }
    }
}

/// The request that a target answers once it is ready.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ReadyCheck {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default)]
    pub status: Option<u16>,
    /// Longest time since the start, 10 seconds by default.
    #[serde(default)]
    pub timeout_s: Option<f64>,
}

/// A request that is sent before and after the load.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResponseCheck {
    /// Path of a `GET`.
    pub path: String,
    /// Expected status, 200 by default.
    #[serde(default)]
    pub status: Option<u16>,
    /// Text that the body must contain; null for any.
    #[serde(default)]
    pub contains: Option<String>,
}

/// Files and folders, absolute or relative to the manifest's folder.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Access {
    /// What it may read and run.
    #[serde(default)]
    pub read: Vec<String>,
    /// What it may also write.
    #[serde(default)]
    pub write: Vec<String>,
}

/// A manifest and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TargetManifest {
    /// Name of the file in the agent's manifests folder.
    pub file: String,
    /// Its text.
    pub toml: String,
}

impl From<NewTarget> for ManifestFile {
    fn from(target: NewTarget) -> Self {
        let NewTarget { name, version, revision, description, command, env, container, vm, url, metrics, .. } = target;
        let NewTarget { kubernetes, ready, verify, profile, sandbox, .. } = target;
        let url = url.map(|RunningServer { base, redirects }| UrlFile { base, redirects });
        let metrics = metrics.map(|ServerMetrics { scrape, preset, labels }| MetricsFile { scrape, preset, labels });
        let ReadyCheck { path, status, timeout_s } = ready;
        let (status, timeout_s) = (status.unwrap_or(STATUS), timeout_s.unwrap_or(READY_TIMEOUT_S));
        let verify = verify.map(|ResponseCheck { path, status, contains }| Verify {
            path,
            status: status.unwrap_or(STATUS),
            contains,
        });
        let Access { read, write } = sandbox;
        let paths = |paths: Vec<String>| paths.into_iter().map(PathBuf::from).collect();
        let sandbox = Sandbox { read: paths(read), write: paths(write) };
        let ready = Ready { path, status, timeout_s };
        let (container, vm, kubernetes) = (container.map(Into::into), vm.map(Into::into), kubernetes.map(Into::into));
        let profile = profile.map(Into::into);
        Self {
            name,
            version,
            revision,
            description,
            command,
            env,
            identity: None,
            container,
            vm,
            url,
            kubernetes,
            metrics,
            ready,
            verify,
            profile,
            sandbox,
        }
    }
}

impl TargetManifest {
    /// Writes a manifest. Fails with all faults, each of which begins with its field.
    pub fn write(file: &ManifestFile) -> Result<Self, String> {
        let faults = file.faults();
        if !faults.is_empty() {
            return Err(faults.join("; "));
        }
        let toml = file.to_toml()?;
        // What an agent would read.
        match ManifestFile::parse(&toml) {
            Ok(read) if read == *file => Ok(Self { file: format!("{}.toml", file.name), toml }),
            Ok(_) => Err("the manifest would be read differently".to_owned()),
            Err(fault) => Err(fault),
        }
    }
}
