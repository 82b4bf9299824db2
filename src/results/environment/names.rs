//! Labels, groups and value formats of facts.

use crate::web::format;

/// The group of a fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Processor,
    Memory,
    System,
    Network,
    Limits,
    Mitigations,
    Target,
    Container,
    Guest,
    Node,
    Variables,
    Programs,
    Before,
    More,
}

impl Kind {
    /// All groups in display order.
    pub(super) const ALL: [Self; 14] = [
        Self::Processor,
        Self::Memory,
        Self::System,
        Self::Network,
        Self::Limits,
        Self::Mitigations,
        Self::Target,
        Self::Container,
        Self::Guest,
        Self::Node,
        Self::Variables,
        Self::Programs,
        Self::Before,
        Self::More,
    ];

    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Processor => "Processor",
            Self::Memory => "Memory",
            Self::System => "System",
            Self::Network => "Network",
            Self::Limits => "Limits",
            Self::Mitigations => "Mitigations",
            Self::Target => "Target",
            Self::Container => "Container",
            Self::Guest => "Virtual machine",
            Self::Node => "Kubernetes node",
            Self::Variables => "Target environment variables",
            Self::Programs => "Programs",
            Self::Before => "Before the run",
            Self::More => "Other",
        }
    }
}

/// Returns the group of a fact.
pub(super) fn kind(name: &str) -> Kind {
    if name.starts_with("target.env.") {
        return Kind::Variables;
    }
    match name.split('.').next().unwrap_or_default() {
        "cpu" => Kind::Processor,
        "memory" | "vm" => Kind::Memory,
        "kernel" if matches!(name, "kernel.pid_max" | "kernel.threads-max") => Kind::Limits,
        "kernel" | "machine" | "os" => Kind::System,
        "net" => Kind::Network,
        "limit" | "fs" => Kind::Limits,
        "mitigation" => Kind::Mitigations,
        "target" => Kind::Target,
        "container" => Kind::Container,
        "guest" => Kind::Guest,
        "node" => Kind::Node,
        "k6" | "brewbench" | "script" => Kind::Programs,
        "load" | "before" => Kind::Before,
        _ => Kind::More,
    }
}

/// Maps the fact names of 0.1.0 agents to the current names.
pub(super) fn current_name(name: &str) -> &str {
    match name {
        "kernel" => "kernel.release",
        "os" => "os.name",
        "cpu_model" => "cpu.model",
        "cores" => "cpu.usable",
        "memory_bytes" => "memory.bytes",
        "governor" => "cpu.governor",
        "turbo" => "cpu.turbo",
        "load_average" => "load.before",
        other => other,
    }
}

/// Returns the value of a fact without the folder of a build, `…/done/COMMIT-RECIPE`: agents before protocol 26 reported
/// where in their cache it is. None if nothing is left.
pub(super) fn without_build_folder(name: &str, value: &str) -> Option<String> {
    let parts: Vec<&str> = value.split('/').collect();
    let is_hex = |text: &str, lengths: &[usize]| {
        lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    let is_build = |name: &str| {
        name.split_once('-').is_some_and(|(commit, recipe)| is_hex(commit, &[40, 64]) && is_hex(recipe, &[12]))
    };
    let is_path = matches!(name, "target.executable" | "target.folder");
    let place = parts.windows(2).position(|pair| is_path && pair[0] == "done" && is_build(pair[1]));
    let left = place.map_or_else(|| value.to_owned(), |place| parts[place + 2..].join("/"));
    (place.is_none() || !left.is_empty()).then_some(left)
}

/// Returns the label of a fact within its group. Kernel settings keep their own names, which users can look up.
pub(super) fn label(name: &str) -> String {
    let known = match name {
        "cpu.usable" => "usable cores",
        "cpu.governor" => "frequency governor",
        "cpu.driver" => "frequency driver",
        "cpu.numa_nodes" => "NUMA nodes",
        "cpu.smt" => "SMT",
        "memory.bytes" => "total",
        "machine.virtual" => "virtual machine",
        "kernel.release" => "kernel",
        "kernel.cgroups" => "cgroups",
        "os.name" => "OS",
        "target.sha256" => "executable SHA-256",
        "target.code" => "code",
        "target.code_unknown" => "unknown part of the code",
        "target.base_url" => "base URL",
        "target.commit_subject" => "commit",
        "target.commit_time" => "commit time",
        "target.compare_url" => "compare URL",
        "target.image_id" => "image ID",
        "target.image_digests" => "registry digests",
        "container.cpus" | "guest.cpus" | "node.cpus" => "CPUs",
        "node.qos" => "QoS class",
        "node.cpu_manager" => "CPU manager policy",
        "target.initrd" => "RAM disk",
        "target.seed" => "cloud-init files",
        "guest.vcpu_placement" => "vCPU placement",
        "target.executable" => "executable path",
        "target.executable_bytes" => "executable size",
        "brewbench.protocol" => "protocol version",
        "brewbench.version" => "agent version",
        "k6.version" => "k6",
        "net.target_path" => "path to the target",
        "load.before" => "load average",
        "before.build" => "build",
        "load.node" => "Kubernetes node",
        "load.node_pods" => "Pods on the node",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    let families =
        [("cpu.cache.l", "cache L"), ("target.env.", ""), ("target.file.", "file "), ("script.", "script option ")];
    for (start, label) in families {
        if let Some(rest) = name.strip_prefix(start) {
            return format!("{label}{rest}");
        }
    }
    match name.split_once('.') {
        Some((
            "cpu" | "memory" | "machine" | "limit" | "mitigation" | "target" | "container" | "guest" | "node"
            | "kernel" | "os",
            rest,
        )) if kind(name) != Kind::Limits || name.starts_with("limit.") => {
            rest.strip_suffix("_bytes").unwrap_or(rest).replace(['_', '.'], " ")
        }
        _ => name.to_owned(),
    }
}

/// Formats a value with its unit.
pub(super) fn shown(name: &str, value: &str) -> String {
    let is_memory = name == "memory.bytes" || name.ends_with("_bytes");
    match value.parse::<f64>() {
        Ok(amount) if is_memory && !name.starts_with("target.env.") => format::bytes(Some(amount)).text().to_owned(),
        _ => value.to_owned(),
    }
}
