//! What this machine is, for the server's list of agents and for the record of each run.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::sandbox::{Sandbox, cores};
use crate::wire::messages::Machine;

/// The machine as it introduces itself.
pub fn facts(sandbox: &Sandbox) -> Machine {
    let mechanisms = sandbox.mechanisms();
    Machine {
        hostname: line("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
        cores: u32::try_from(cores::allowed().len()).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(),
        kernel: kernel(),
        cpu_model: cpu_model(),
        cpu: mechanisms.cpu,
        memory: mechanisms.memory,
    }
}

/// Memory of the machine in all; 0 when the kernel does not say.
pub fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0_u64) * 1024
}

/// What may have an influence on a run, as it is now. What the machine does not say is left out.
pub fn environment() -> BTreeMap<String, String> {
    let cpufreq = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
    let facts = [
        ("kernel", Some(kernel())),
        ("os", os_name()),
        ("cpu_model", Some(cpu_model())),
        ("cores", Some(cores::allowed().len().to_string())),
        ("memory_bytes", Some(memory_bytes().to_string())),
        ("governor", line(cpufreq)),
        ("turbo", turbo()),
        ("load_average", line("/proc/loadavg").map(|text| text.split(' ').take(3).collect::<Vec<_>>().join(" "))),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn kernel() -> String {
    let part = |name: &str| line(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    format!("{} {}", part("ostype"), part("osrelease")).trim().to_owned()
}

/// The first name that the processor has; ARM kernels give none, only numbers of its parts.
fn cpu_model() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |wanted: &str| {
        text.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == wanted).then(|| value.trim().to_owned())
        })
    };
    let parts = || Some(format!("{} part {}", field("CPU implementer")?, field("CPU part")?));
    field("model name").or_else(parts).unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

fn turbo() -> Option<String> {
    let on = match line("/sys/devices/system/cpu/intel_pstate/no_turbo") {
        Some(no_turbo) => no_turbo == "0",
        None => line("/sys/devices/system/cpu/cpufreq/boost")? == "1",
    };
    Some(if on { "on" } else { "off" }.to_owned())
}

fn os_name() -> Option<String> {
    let text = fs::read_to_string("/etc/os-release").ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    Some(name.trim_matches('"').to_owned())
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_says_what_it_is() {
        let facts = facts(&Sandbox::none("test"));
        assert!(facts.cores > 0 && facts.memory_bytes > 0, "{facts:?}");
        assert!(facts.kernel.starts_with("Linux "), "{facts:?}");
        assert!(!facts.cpu_model.is_empty());
    }

    #[test]
    fn the_environment_has_what_every_linux_tells() {
        let environment = environment();
        for name in ["kernel", "cpu_model", "cores", "memory_bytes", "load_average"] {
            assert!(environment.get(name).is_some_and(|value| !value.is_empty()), "{name}: {environment:?}");
        }
        assert_eq!(environment["load_average"].split(' ').count(), 3);
    }
}
