//! Settings that may change between two runs: frequencies, kernel settings, limits, memory, load.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::{Facts, line, numbered, put};

/// Kernel settings that affect servers.
const SYSCTLS: [&str; 22] = [
    "fs.file-max",
    "fs.nr_open",
    "kernel.pid_max",
    "kernel.threads-max",
    "net.core.netdev_max_backlog",
    "net.core.rmem_max",
    "net.core.somaxconn",
    "net.core.wmem_max",
    "net.core.busy_poll",
    "net.core.default_qdisc",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_max_syn_backlog",
    "net.ipv4.tcp_max_tw_buckets",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_tw_reuse",
    "net.ipv4.tcp_wmem",
    "vm.overcommit_memory",
    "vm.swappiness",
];

/// Limits inherited by every process that the agent starts: the line in `/proc/self/limits` and the fact's name.
const LIMITS: [(&str, &str); 4] = [
    ("Max open files", "limit.open_files"),
    ("Max processes", "limit.processes"),
    ("Max locked memory", "limit.locked_memory"),
    ("Max stack size", "limit.stack"),
];

/// Returns the current settings.
pub fn facts(root: &Path) -> Facts {
    let sys = root.join("sys");
    let memory = fs::read_to_string(root.join("proc/meminfo")).unwrap_or_default();
    let mut facts = Facts::new();
    put(
        &mut facts,
        [
            ("cpu.governor", policies(&sys, "scaling_governor")),
            ("cpu.driver", policies(&sys, "scaling_driver")),
            ("cpu.energy_preference", policies(&sys, "energy_performance_preference")),
            ("cpu.turbo", turbo(&sys)),
            ("memory.bytes", kib(&memory, "MemTotal:")),
            ("memory.swap_bytes", kib(&memory, "SwapTotal:")),
            ("memory.transparent_hugepages", chosen(&sys.join("kernel/mm/transparent_hugepage/enabled"))),
            ("kernel.release", kernel(root)),
            ("kernel.clocksource", line(sys.join("devices/system/clocksource/clocksource0/current_clocksource"))),
            ("kernel.cgroups", Some(cgroups(&sys).to_owned())),
            ("os.name", os_name(root)),
            ("load.before", line(root.join("proc/loadavg")).map(|text| first_three(&text))),
        ],
    );
    put(&mut facts, SYSCTLS.map(|name| (name, line(root.join("proc/sys").join(name.replace('.', "/"))))));
    facts.extend(mitigations(&sys.join("devices/system/cpu/vulnerabilities")));
    facts.extend(limits(&fs::read_to_string(root.join("proc/self/limits")).unwrap_or_default()));
    facts
}

/// Returns a setting of the frequency policies of all CPUs; several values if they differ.
fn policies(sys: &Path, file: &str) -> Option<String> {
    let policies = numbered(&sys.join("devices/system/cpu/cpufreq"), "policy");
    let values: BTreeSet<_> = policies.iter().filter_map(|policy| line(policy.join(file))).collect();
    (!values.is_empty()).then(|| values.into_iter().collect::<Vec<_>>().join(", "))
}

fn turbo(sys: &Path) -> Option<String> {
    let on = match line(sys.join("devices/system/cpu/intel_pstate/no_turbo")) {
        Some(no_turbo) => no_turbo == "0",
        None => line(sys.join("devices/system/cpu/cpufreq/boost"))? == "1",
    };
    Some(if on { "on" } else { "off" }.to_owned())
}

fn kib(meminfo: &str, name: &str) -> Option<String> {
    let kib = meminfo.lines().find_map(|line| line.strip_prefix(name)?.trim().strip_suffix(" kB"))?;
    Some((kib.parse::<u64>().ok()? * 1024).to_string())
}

/// Returns the word in brackets of `always [madvise] never`.
fn chosen(path: &Path) -> Option<String> {
    let text = line(path)?;
    text.split(' ').find_map(|word| word.strip_prefix('[')?.strip_suffix(']').map(str::to_owned))
}

/// Returns name and version of the kernel, e.g. `Linux 6.12.1`.
pub fn kernel(root: &Path) -> Option<String> {
    let part = |name: &str| line(root.join("proc/sys/kernel").join(name));
    Some(format!("{} {}", part("ostype")?, part("osrelease")?))
}

fn cgroups(sys: &Path) -> &'static str {
    let mounted = sys.join("fs/cgroup");
    if mounted.join("cgroup.controllers").exists() {
        "v2"
    } else if mounted.join("cpu").exists() || mounted.join("memory").exists() {
        "v1"
    } else {
        "none"
    }
}

fn os_name(root: &Path) -> Option<String> {
    let text = fs::read_to_string(root.join("etc/os-release")).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn first_three(loadavg: &str) -> String {
    loadavg.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the kernel's mitigations of CPU vulnerabilities, which cost performance.
fn mitigations(folder: &Path) -> Facts {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let fact = |entry: fs::DirEntry| Some((entry.file_name().to_str()?.to_owned(), line(entry.path())?));
    entries.filter_map(fact).map(|(name, text)| (format!("mitigation.{name}"), text)).collect()
}

/// Parses soft and hard limit of lines like `Max open files            1024                 1048576
/// files`.
fn limits(text: &str) -> Facts {
    let values = |wanted: &str| {
        let rest = text.lines().find_map(|line| line.strip_prefix(wanted))?;
        let mut words = rest.split_whitespace();
        let (soft, hard) = (words.next()?, words.next()?);
        Some(if soft == hard { soft.to_owned() } else { format!("{soft}, at most {hard}") })
    };
    LIMITS.into_iter().filter_map(|(wanted, name)| Some((name.to_owned(), values(wanted)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    #[test]
    fn settings_are_read_from_the_kernels_files() {
        let cpu = "sys/devices/system/cpu";
        let policy = |number: u32, file: &str| format!("{cpu}/cpufreq/policy{number}/{file}");
        let owned = [
            (policy(0, "scaling_governor"), "powersave\n"),
            (policy(1, "scaling_governor"), "performance\n"),
            (policy(0, "scaling_driver"), "intel_pstate\n"),
            (policy(1, "scaling_driver"), "intel_pstate\n"),
            (format!("{cpu}/intel_pstate/no_turbo"), "1\n"),
            (format!("{cpu}/vulnerabilities/spectre_v2"), "Mitigation: Retpolines\n"),
            ("sys/kernel/mm/transparent_hugepage/enabled".to_owned(), "always [madvise] never\n"),
            ("sys/fs/cgroup/cgroup.controllers".to_owned(), "cpu memory\n"),
            ("proc/meminfo".to_owned(), "MemTotal:        4096 kB\nSwapTotal:           0 kB\n"),
            ("proc/sys/net/core/somaxconn".to_owned(), "4096\n"),
            ("proc/sys/net/ipv4/tcp_rmem".to_owned(), "4096\t131072\t6291456\n"),
            ("proc/loadavg".to_owned(), "0.10 0.20 0.30 1/99 7\n"),
            ("proc/self/limits".to_owned(), "Max open files   1024   1048576   files\nMax stack size  8 8 bytes\n"),
            ("etc/os-release".to_owned(), "NAME=x\nPRETTY_NAME=\"Debian 12\"\n"),
            ("proc/sys/kernel/ostype".to_owned(), "Linux\n"),
            ("proc/sys/kernel/osrelease".to_owned(), "6.1\n"),
        ];
        let files: Vec<_> = owned.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        let root = machine(&files);
        let lines: Vec<_> = facts(root.path()).into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(
            lines,
            [
                "cpu.driver: intel_pstate",
                "cpu.governor: performance, powersave",
                "cpu.turbo: off",
                "kernel.cgroups: v2",
                "kernel.release: Linux 6.1",
                "limit.open_files: 1024, at most 1048576",
                "limit.stack: 8",
                "load.before: 0.10 0.20 0.30",
                "memory.bytes: 4194304",
                "memory.swap_bytes: 0",
                "memory.transparent_hugepages: madvise",
                "mitigation.spectre_v2: Mitigation: Retpolines",
                "net.core.somaxconn: 4096",
                "net.ipv4.tcp_rmem: 4096 131072 6291456",
                "os.name: Debian 12",
            ]
        );
    }

    #[test]
    fn boost_of_other_cpus_is_turbo_too() {
        let root = machine(&[("sys/devices/system/cpu/cpufreq/boost", "1\n"), ("sys/fs/cgroup/memory/tasks", "")]);
        let facts = facts(root.path());
        assert_eq!((facts["cpu.turbo"].as_str(), facts["kernel.cgroups"].as_str()), ("on", "v1"));
    }
}
