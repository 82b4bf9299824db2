//! The fields of the form for a new target. Pure.

use brewbench_agent::wire::target::TargetKind;

/// A field of the form.
#[derive(Debug)]
pub struct Field {
    /// Its name in the manifest, so that an error of the agent finds its field.
    pub name: &'static str,
    /// Its label.
    pub label: &'static str,
    /// What to enter.
    pub hint: &'static str,
    /// An example.
    pub example: &'static str,
    /// Whether it takes several lines.
    pub is_long: bool,
}

const fn line(name: &'static str, label: &'static str, example: &'static str, hint: &'static str) -> Field {
    Field { name, label, hint, example, is_long: false }
}

const fn lines(name: &'static str, label: &'static str, example: &'static str, hint: &'static str) -> Field {
    Field { name, label, hint, example, is_long: true }
}

/// Fields that describe the target.
pub const IDENTITY: [Field; 3] = [
    line("name", "Name", "python-hello", "1 to 64 letters, digits, -, _ or ."),
    line("version", "Version", "1.0.3", "as you count versions; stored with each run"),
    line("description", "Description", "Python’s http.server with threads", "optional, one line"),
];

/// Fields that describe how to start it.
pub const START: [Field; 2] = [
    line(
        "command",
        "Command",
        "/usr/bin/python3 hello.py {host} {port}",
        "full path of the program, and arguments, quoted as in a shell, but run without one. {port} becomes a free port, \
         {host} the address to listen on. Without {host}, load comes from the target’s own machine only",
    ),
    lines("env", "Environment variables", "LOG_LEVEL=warn\nPORT={port}", "optional, one NAME=VALUE per line"),
];

/// Fields that describe a server that already runs.
pub const REMOTE: [Field; 2] = [
    line(
        "url.base",
        "Base URL",
        "https://staging.example.com",
        "paths are appended; reachable from the agent’s machine",
    ),
    line(
        "metrics.scrape",
        "Metrics",
        "http://staging.example.com:9100/metrics",
        "optional: its Prometheus metrics, for CPU time and memory",
    ),
];

/// Fields that describe a container.
pub const CONTAINER: [Field; 6] = [
    line(
        "container.image",
        "Image",
        "ghcr.io/acme/shop:1.4",
        "pulled if it is not on the agent’s machine. The agent needs Docker or Podman",
    ),
    line(
        "container.command",
        "Arguments",
        "--listen {host}:{port}",
        "optional, instead of those of the image. {port} becomes a free port, {host} the address to listen on",
    ),
    line("container.port", "Port", "8080", "the port that the server always listens on; leave it empty with {port}"),
    line("container.network", "Network", "host", "host (default) or bridge, behind which the port is published"),
    lines("container.env", "Environment variables", "LOG_LEVEL=warn\nPORT={port}", "optional, one NAME=VALUE per line"),
    lines(
        "container.mounts",
        "Files",
        "/srv/www:/data",
        "optional, read-only: path on the agent’s machine and in the container, one pair per line",
    ),
];

/// Fields that describe a virtual machine.
pub const VM: [Field; 8] = [
    line(
        "vm.command",
        "Launcher",
        "./run-shop-vm -smp {vcpus} -m {memory_mib} -port {host}:{port}",
        "starts the virtual machine in the foreground, with its console as output. {vcpus} and {memory_mib} become the \
         machine size, {host} and {port} the address where the server is reached. Leave it empty if the agent is to boot \
         a disk or a kernel with QEMU",
    ),
    lines(
        "vm.env",
        "Environment variables",
        "QEMU_OPTS=-smp {vcpus}",
        "optional, for a launcher: one NAME=VALUE per line",
    ),
    line("vm.disk", "Disk image", "shop.qcow2", "for QEMU: qcow2 or raw; it is never changed"),
    line(
        "vm.seed",
        "cloud-init files",
        "seed",
        "optional, for QEMU: a folder with user-data and meta-data, or an image",
    ),
    line("vm.kernel", "Kernel", "vmlinuz", "for QEMU, instead of the disk’s boot loader"),
    line("vm.initrd", "RAM disk", "initrd.img", "optional, for a kernel"),
    line("vm.append", "Kernel options", "root=/dev/vda1", "optional, for a kernel"),
    line("vm.port", "Port", "8080", "for QEMU: the port of the server in the guest"),
];

/// Fields that describe a Pod.
pub const KUBERNETES: [Field; 5] = [
    line(
        "kubernetes.image",
        "Image",
        "ghcr.io/acme/shop:1.4",
        "started as a Pod of its own for each run. The agent needs --kubernetes",
    ),
    line("kubernetes.port", "Port", "8080", "the port that the server listens on"),
    line("kubernetes.command", "Command", "/shop --listen :8080", "optional, instead of that of the image"),
    lines("kubernetes.env", "Environment variables", "LOG_LEVEL=warn", "optional, one NAME=VALUE per line"),
    lines("kubernetes.node_selector", "Labels of the node", "pool=bench", "optional, one NAME=VALUE per line"),
];

/// The choice between [`START`], [`CONTAINER`], [`VM`], [`REMOTE`] and [`KUBERNETES`].
pub(super) const KIND: Field = line("kind", "Kind", "", "");

/// Fields that describe how to check it.
pub const CHECKS: [Field; 3] = [
    line("ready.path", "Ready path", "/health", "the target is ready when this path answers"),
    line("verify.path", "Verify path", "/hello", "optional: requested before and after the load"),
    line("verify.contains", "Expected text", "hello", "optional: text in the answer to the verify path"),
];

/// Fields that few targets need.
pub const ADVANCED: [Field; 7] = [
    line("revision", "Revision", "4f1c2ab", "optional, such as a commit"),
    line("ready.status", "Status when ready", "200", "default: 200"),
    line("ready.timeout_s", "Time to get ready, seconds", "10", "default: 10, at most 600"),
    line("verify.status", "Status of the verify path", "200", "default: 200"),
    lines("sandbox.read", "May also read", "/srv/www", "files and folders, one per line"),
    line(
        "profile.pprof",
        "Profile endpoint",
        "/debug/pprof/profile?seconds={s}",
        "optional: path that returns CPU profiles as pprof; without it, perf attaches to the target",
    ),
    lines("sandbox.write", "May also write", "/var/tmp/cache", "files and folders, one per line"),
];

/// Fields that every target of a kind needs. A virtual machine needs its launcher only without a disk and a kernel.
pub(super) fn required(kind: TargetKind) -> Vec<&'static str> {
    let own = match kind {
        TargetKind::Process => &["command"][..],
        TargetKind::Container => &["container.image"],
        TargetKind::Vm => &["vm.command"],
        TargetKind::Url => &["url.base"],
        TargetKind::Kubernetes => &["kubernetes.image", "kubernetes.port"],
    };
    [&["name", "version"], own, &["ready.path"]].concat()
}

/// Returns the fields of all kinds.
pub(super) fn all_fields() -> impl Iterator<Item = &'static Field> {
    [&KIND]
        .into_iter()
        .chain(&IDENTITY)
        .chain(&START)
        .chain(&CONTAINER)
        .chain(&VM)
        .chain(&REMOTE)
        .chain(&KUBERNETES)
        .chain(&CHECKS)
        .chain(&ADVANCED)
}
