//! `brewbench target new`

use std::{
    collections::BTreeMap,
    fs::File,
    io::{ErrorKind, Write},
    path::PathBuf,
};

use anyhow::{Context, bail};
use brewbench::catalog::manifest::TargetManifest;
use brewbench_wire::{
    manifest::{
        Accelerator, Container, KubernetesFile, ManifestFile, MetricsFile, Mount, Network, Preset, ProfileFile, Pull,
        Ready, STATUS, Sandbox, Tap, UrlFile, Verify, VmFile,
    },
    profile::ProfileKind,
};
use clap::Args;

use crate::{common::pair, duration};

/// Fields of the manifest.
#[derive(Debug, Args)]
pub struct New {
    /// Name of the target: letters, digits, -, _ and .
    name: String,
    /// The program and its arguments, or the arguments of a container. {port} and {host} are replaced with the address
    /// to listen on
    #[arg(last = true, required_unless_present_any = ["image", "url", "disk", "kernel"], value_name = "COMMAND")]
    command: Vec<String>,
    /// Image of a container, instead of a program
    #[arg(long, value_name = "IMAGE", conflicts_with_all = ["read", "write"])]
    image: Option<String>,
    /// A virtual machine. The command is its launcher, in which {vcpus} and `{memory_mib}` are replaced with the machine
    /// size; without a command, QEMU boots --disk or --kernel
    #[arg(long, conflicts_with = "image")]
    vm: bool,
    #[command(flatten)]
    boot: Boot,
    /// The port that the container always listens on, for images without {port}, or the server in a virtual machine
    #[arg(long, value_name = "PORT", conflicts_with = "url")]
    port: Option<u16>,
    /// Network of the container: `host` or `bridge`
    #[arg(long, value_name = "NETWORK", requires = "image", default_value_t = Network::default())]
    network: Network,
    /// When the image is pulled: `never`, `missing` or `always`
    #[arg(long, value_name = "WHEN", requires = "image", default_value_t = Pull::default())]
    pull: Pull,
    /// Seccomp profile of the container: `default`, `unconfined` or a file
    #[arg(long, value_name = "PROFILE", requires = "image")]
    seccomp: Option<String>,
    /// User and group of the container, instead of those of its image
    #[arg(long, value_name = "USER[:GROUP]", requires = "image")]
    user: Option<String>,
    /// A file or folder that the container may read; repeatable
    #[arg(long, value_name = "SOURCE:TARGET", requires = "image", value_parser = mount)]
    mount: Vec<Mount>,
    /// Run the image as a Pod of a Kubernetes cluster; needs --port
    #[arg(long, requires_all = ["image", "port"], conflicts_with_all = ["vm", "pull", "seccomp", "user", "mount"])]
    kubernetes: bool,
    /// A label that the Pod's node must have; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "kubernetes", value_parser = pair)]
    node_selector: Vec<(String, String)>,
    /// Runtime class of the Pod, such as gvisor
    #[arg(long, value_name = "CLASS", requires = "kubernetes")]
    runtime_class: Option<String>,
    /// A secret of the namespace that allows to pull the image; repeatable
    #[arg(long, value_name = "NAME", requires = "kubernetes")]
    pull_secret: Vec<String>,
    /// Load the Pod through a Service
    #[arg(long, requires = "kubernetes")]
    service: bool,
    /// URL of a server that already runs, instead of a program
    #[arg(long, value_name = "URL", conflicts_with_all = ["command", "image", "vm", "env", "read", "write"])]
    url: Option<String>,
    /// A host to which redirects of that server are followed; repeatable
    #[arg(long, value_name = "HOST", requires = "url")]
    redirect: Vec<String>,
    /// URL of its Prometheus metrics, for CPU time and memory
    #[arg(long, value_name = "URL", requires = "url")]
    metrics: Option<String>,
    /// Names of the metrics: `process`, `cadvisor` or `node_exporter` [default: the first found]
    #[arg(long, value_name = "PRESET", requires = "metrics", value_parser = preset)]
    metrics_preset: Option<Preset>,
    /// A label of the metrics that count; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "metrics", value_parser = pair)]
    metrics_label: Vec<(String, String)>,
    /// Version
    #[arg(long, default_value = "1")]
    version: String,
    /// Source revision, such as a commit
    #[arg(long)]
    revision: Option<String>,
    /// One-line description
    #[arg(long, default_value = "", hide_default_value = true)]
    description: String,
    /// An environment variable, with {port} and {host}; repeatable
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    env: Vec<(String, String)>,
    /// Path that answers once the target is ready
    #[arg(long, value_name = "PATH", default_value = "/")]
    ready_path: String,
    /// Status of that answer
    #[arg(long, value_name = "STATUS", default_value_t = STATUS)]
    ready_status: u16,
    /// Longest time from start to ready
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration::seconds)]
    ready_timeout: f64,
    /// Path to request before and after the load
    #[arg(long, value_name = "PATH")]
    verify_path: Option<String>,
    /// Status of that answer
    #[arg(long, value_name = "STATUS", default_value_t = STATUS, requires = "verify_path")]
    verify_status: u16,
    /// Text in that answer
    #[arg(long, value_name = "TEXT", requires = "verify_path")]
    verify_contains: Option<String>,
    /// Path or URL of the target that returns profiles in the pprof format, with {s} for the seconds [default: perf]
    #[arg(long, value_name = "PATH")]
    pprof: Option<String>,
    /// What that endpoint's profiles count: cpu, heap or allocs; repeatable [default: cpu]
    #[arg(long, value_name = "KIND", requires = "pprof")]
    profile_kind: Vec<ProfileKind>,
    /// A file or folder that the target may also read and run; repeatable
    #[arg(long, value_name = "PATH")]
    read: Vec<PathBuf>,
    /// A file or folder that it may also write; repeatable
    #[arg(long, value_name = "PATH")]
    write: Vec<PathBuf>,
    /// Write to this new file instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// What QEMU boots.
#[derive(Debug, Args)]
struct Boot {
    /// Disk image for QEMU, qcow2 or raw; it is never changed
    #[arg(long, value_name = "FILE", requires = "vm")]
    disk: Option<PathBuf>,
    /// cloud-init files for QEMU: a folder with `user-data` and `meta-data`, or an image
    #[arg(long, value_name = "PATH", requires = "vm")]
    seed: Option<PathBuf>,
    /// Kernel that QEMU boots, instead of the disk's boot loader
    #[arg(long, value_name = "FILE", requires = "vm")]
    kernel: Option<PathBuf>,
    /// Its initial RAM disk
    #[arg(long, value_name = "FILE", requires = "kernel")]
    initrd: Option<PathBuf>,
    /// Added to its command line
    #[arg(long, value_name = "OPTIONS", requires = "kernel", default_value = "", hide_default_value = true)]
    append: String,
    /// What runs the guest's CPUs: `auto` (KVM if guests start with it), `kvm` or `tcg` (emulation)
    #[arg(long, value_name = "NAME", requires = "vm", default_value_t)]
    accelerator: Accelerator,
    /// A tap interface and the guest's address behind it, instead of QEMU's user-mode network
    #[arg(long, value_name = "INTERFACE=ADDRESS", requires = "vm", value_parser = tap)]
    tap: Option<Tap>,
}

impl Boot {
    fn machine(self, command: Vec<String>, env: BTreeMap<String, String>, port: Option<u16>) -> VmFile {
        let Self { disk, seed, kernel, initrd, append, accelerator, tap } = self;
        VmFile { command, env, kernel, initrd, append, disk, seed, port, accelerator, tap }
    }
}

impl New {
    /// Runs the command.
    pub fn run(mut self) -> anyhow::Result<()> {
        let output = self.output.take();
        let TargetManifest { toml, file: _ } = TargetManifest::write(&self.file()).map_err(anyhow::Error::msg)?;
        let Some(path) = output else {
            print!("{toml}");
            return Ok(());
        };
        let mut output = match File::create_new(&path) {
            Ok(output) => output,
            Err(fault) if fault.kind() == ErrorKind::AlreadyExists => {
                bail!("{} exists; choose another file or remove it", path.display())
            }
            Err(fault) => return Err(fault).with_context(|| format!("failed to create {}", path.display())),
        };
        output.write_all(toml.as_bytes()).with_context(|| format!("failed to write {}", path.display()))?;
        eprintln!("wrote {0}; `brewbench target check {0}` tries the target once", path.display());
        Ok(())
    }

    /// Returns the manifest that the flags describe.
    fn file(self) -> ManifestFile {
        let Self { name, command, version, revision, description, env, .. } = self;
        let Self { ready_path, ready_status, ready_timeout, verify_path, verify_status, verify_contains, .. } = self;
        let env = env.into_iter().collect();
        let (none, nothing) = (Vec::new(), BTreeMap::new());
        let is_container = self.image.is_some();
        // The command and the variables belong to the kind.
        let (own, command, env) = match (is_container || self.vm, command, env) {
            (true, command, env) => ((command, env), none, nothing),
            (false, command, env) => ((none, nothing), command, env),
        };
        let vm = self.vm.then(|| self.boot.machine(own.0.clone(), own.1.clone(), self.port));
        let kubernetes = self.kubernetes.then(|| KubernetesFile {
            image: self.image.clone(),
            port: self.port.unwrap_or_default(),
            command: own.0.clone(),
            env: own.1.clone(),
            node_selector: self.node_selector.into_iter().collect(),
            runtime_class: self.runtime_class,
            pull_secrets: self.pull_secret,
            service: self.service,
            ..KubernetesFile::default()
        });
        let container = self.image.filter(|_| kubernetes.is_none()).map(|image| Container {
            image,
            command: own.0,
            port: self.port,
            network: self.network,
            pull: self.pull,
            seccomp: self.seccomp,
            user: self.user,
            mounts: self.mount,
            env: own.1,
        });
        ManifestFile {
            name,
            version,
            revision,
            description,
            command,
            env,
            identity: None,
            container,
            vm,
            url: self.url.map(|base| UrlFile { base, redirects: self.redirect }),
            kubernetes,
            metrics: self.metrics.map(|scrape| MetricsFile {
                scrape,
                preset: self.metrics_preset,
                labels: self.metrics_label.into_iter().collect(),
            }),
            ready: Ready { path: ready_path, status: ready_status, timeout_s: ready_timeout },
            verify: verify_path.map(|path| Verify { path, status: verify_status, contains: verify_contains }),
            profile: profile(self.pprof, self.profile_kind),
            sandbox: Sandbox { read: self.read, write: self.write },
        }
    }
}

fn mount(text: &str) -> Result<Mount, String> {
    let (source, target) = text.split_once(':').ok_or("write SOURCE:TARGET")?;
    Ok(Mount { source: source.into(), target: target.to_owned() })
}

fn tap(text: &str) -> Result<Tap, String> {
    let (interface, address) = text.split_once('=').ok_or("write INTERFACE=ADDRESS")?;
    let address = address.parse().map_err(|_| format!("{address:?} is not an IP address"))?;
    Ok(Tap { interface: interface.to_owned(), address })
}

fn preset(text: &str) -> Result<Preset, String> {
    let names = Preset::ALL.map(Preset::as_str);
    let found = Preset::ALL.into_iter().find(|preset| preset.as_str() == text);
    found.ok_or_else(|| format!("use one of {}", names.join(", ")))
}
/// Returns how the target is profiled, unless by perf.
fn profile(pprof: Option<String>, kinds: Vec<ProfileKind>) -> Option<ProfileFile> {
    let usual = ProfileFile::default();
    let kinds = if kinds.is_empty() { usual.kinds.clone() } else { kinds };
    pprof.map(|path| ProfileFile { pprof: Some(path), kinds, ..usual })
}
