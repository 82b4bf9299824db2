//! Describes this machine for the server's list of agents. [`crate::host::environment`] records more for each run.

use std::fs;
use std::path::Path;

use brewbench_wire::messages::{Machine, TargetOffer};
use brewbench_wire::target::TargetKind;

use crate::host::environment::{cpu, settings};
use crate::sandbox::{Sandbox, cores};

/// Returns the description that `Hello` contains.
pub fn facts(sandbox: &Sandbox) -> Machine {
    let mechanisms = sandbox.mechanisms();
    Machine {
        hostname: line("/proc/sys/kernel/hostname").unwrap_or_else(|| "unknown".to_owned()),
        cores: u32::try_from(cores::allowed().len()).unwrap_or(u32::MAX),
        physical_cores: u32::try_from(cores::physical().len()).ok(),
        memory_bytes: memory_bytes(),
        kernel: settings::kernel(Path::new("/")).unwrap_or_default(),
        cpu_model: cpu::model(&fs::read_to_string("/proc/cpuinfo").unwrap_or_default()),
        cpu: mechanisms.cpu,
        memory: mechanisms.memory,
    }
}

/// Returns the total memory of the machine; 0 if unknown.
pub fn memory_bytes() -> u64 {
    let text = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text.lines().find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0_u64) * 1024
}

/// Returns the id of the current boot.
pub fn boot_id() -> String {
    line("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

fn line(path: impl AsRef<Path>) -> Option<String> {
    Some(fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Whether this machine has to enforce machine sizes. A cluster does that for its Pods.
pub fn enforces_sizes(has_cluster: bool, targets: &[TargetOffer]) -> bool {
    !has_cluster || targets.iter().any(|target| target.identity.kind() == TargetKind::Process)
}

/// Warns that machine sizes can't be enforced, if so.
pub fn warn_of_missing_limits(machine: &Machine) {
    use brewbench_wire::outcome::Mechanism::None;
    if machine.cpu == None || machine.memory == None {
        let (cpu, memory) = (machine.cpu.as_str(), machine.memory.as_str());
        tracing::warn!(cpu, memory, "machine sizes can't be fully enforced here; runs will be marked suspect");
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::target::Identity;

    use super::*;

    #[test]
    fn a_cluster_enforces_the_sizes_of_its_pods_only() {
        let offer = |identity| TargetOffer {
            name: "servy".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            identity,
            anywhere: false,
            profile: None,
            compiles_at_run_time: false,
            revisions: Vec::new(),
        };
        let pod = offer(Identity::Kubernetes { image: "servy:1".to_owned(), id: None, settings: None });
        let program = offer(Identity::Process { sha256: String::new(), code: None });
        assert!(enforces_sizes(false, &[]) && enforces_sizes(true, &[pod.clone(), program]));
        assert!(!enforces_sizes(true, &[pod]));
    }

    #[test]
    fn this_machine_is_described() {
        let facts = facts(&Sandbox::none("test"));
        assert!(facts.cores > 0 && facts.memory_bytes > 0, "{facts:?}");
        assert!(facts.physical_cores.is_some_and(|physical| (1..=facts.cores).contains(&physical)), "{facts:?}");
        assert!(facts.kernel.starts_with("Linux "), "{facts:?}");
        assert!(!facts.cpu_model.is_empty());
    }
}
