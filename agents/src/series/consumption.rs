//! What a target or a load generator has used so far.

use std::collections::BTreeSet;
use std::fs;

use brewbench_wire::series::Consumption;

use super::kernel;
use crate::sandbox::{MemoryUse, Watch};
use crate::target::Monitor;

/// Returns the usage of a group, from its control groups or else from its processes.
pub fn consumption(watch: &Watch, processes: &BTreeSet<i32>) -> Consumption {
    let file = |pid: &i32, name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).ok();
    let stats: Vec<_> = processes.iter().filter_map(|pid| kernel::process(&file(pid, "stat")?)).collect();
    let alive = !stats.is_empty();
    let observed = watch.observed().unwrap_or_default();
    let memory = match watch.memory() {
        MemoryUse { working_set_bytes: None, .. } if alive => {
            kernel::memory(processes.iter().filter_map(|pid| file(pid, "status")))
        }
        memory => memory,
    };
    let used = Consumption {
        cpu_us: observed.cpu_us.or_else(|| alive.then(|| stats.iter().map(|process| process.cpu_us).sum())),
        throttled_us: observed.throttled_us,
        peak_memory_bytes: observed.peak_memory_bytes,
        threads: alive.then(|| stats.iter().map(|process| process.threads).sum()),
        open_files: alive.then(|| processes.iter().filter_map(|&pid| open_files(pid)).sum()),
        ..Consumption::default()
    };
    with_memory(used, memory)
}

/// Replaces the memory that a virtual machine takes from its host by that which its guest uses. On the host, the
/// monitor holds the file cache of its guest, too.
pub async fn in_guest(on_host: Consumption, monitor: Option<&Monitor>) -> Consumption {
    let Some(monitor) = monitor else {
        return Consumption { held_memory_bytes: None, file_cache_bytes: None, ..on_host };
    };
    // The guest reports no peak with its file cache, as control groups do.
    with_memory(Consumption { peak_memory_bytes: None, ..on_host }, monitor.memory().await)
}

fn with_memory(used: Consumption, memory: MemoryUse) -> Consumption {
    let MemoryUse { working_set_bytes, held_bytes, file_cache_bytes } = memory;
    Consumption { memory_bytes: working_set_bytes, held_memory_bytes: held_bytes, file_cache_bytes, ..used }
}

/// Newer kernels report the number as the folder's size; listing a thousand connections every second is costly.
fn open_files(pid: i32) -> Option<u64> {
    let folder = format!("/proc/{pid}/fd");
    match fs::metadata(&folder).ok()?.len() {
        0 => Some(fs::read_dir(&folder).ok()?.count() as u64),
        number => Some(number),
    }
}
