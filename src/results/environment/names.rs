//! What facts are called, where they belong, and how their values are shown.

use crate::web::format;

/// What a fact is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Processor,
    Memory,
    System,
    Network,
    Limits,
    Mitigations,
    Target,
    Variables,
    Programs,
    Before,
    More,
}

impl Kind {
    /// In the order in which they are shown.
    pub(super) const ALL: [Self; 11] = [
        Self::Processor,
        Self::Memory,
        Self::System,
        Self::Network,
        Self::Limits,
        Self::Mitigations,
        Self::Target,
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
            Self::Variables => "Variables of the target",
            Self::Programs => "Programs",
            Self::Before => "Before the start",
            Self::More => "More",
        }
    }
}

/// Where a fact belongs.
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
        "k6" | "brewbench" => Kind::Programs,
        "load" => Kind::Before,
        _ => Kind::More,
    }
}

/// The names of facts that agents of 0.1.0 told, in the names of today.
pub(super) fn modern(name: &str) -> &str {
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

/// What a fact is called within its group. Settings of the kernel keep their own names, by which people look them up.
pub(super) fn label(name: &str) -> String {
    let known = match name {
        "cpu.usable" => "cores for the agent",
        "cpu.governor" => "frequency governor",
        "cpu.driver" => "frequency driver",
        "cpu.numa_nodes" => "NUMA nodes",
        "cpu.smt" => "SMT",
        "memory.bytes" => "in all",
        "machine.virtual" => "virtual machine",
        "kernel.release" => "kernel",
        "kernel.cgroups" => "cgroups",
        "os.name" => "OS",
        "target.sha256" => "SHA-256 of the executable",
        "target.executable" => "path of the executable",
        "target.executable_bytes" => "executable",
        "brewbench.protocol" => "protocol of the wire",
        "brewbench.version" => "brewbench of the agent",
        "k6.version" => "k6",
        "load.before" => "load average",
        _ => "",
    };
    if !known.is_empty() {
        return known.to_owned();
    }
    if let Some(level) = name.strip_prefix("cpu.cache.l") {
        return format!("cache L{level}");
    }
    if let Some(name) = name.strip_prefix("target.env.") {
        return name.to_owned();
    }
    match name.split_once('.') {
        Some(("cpu" | "memory" | "machine" | "limit" | "mitigation" | "target" | "kernel" | "os", rest))
            if kind(name) != Kind::Limits || name.starts_with("limit.") =>
        {
            rest.strip_suffix("_bytes").unwrap_or(rest).replace(['_', '.'], " ")
        }
        _ => name.to_owned(),
    }
}

/// A value with its unit.
pub(super) fn shown(name: &str, value: &str) -> String {
    let is_memory = name == "memory.bytes" || name.ends_with("_bytes");
    match value.parse::<f64>() {
        Ok(amount) if is_memory && !name.starts_with("target.env.") => format::bytes(Some(amount)).text().to_owned(),
        _ => value.to_owned(),
    }
}
