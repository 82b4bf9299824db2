//! What the memory of a control group is used for.

/// Memory of a control group. What the kernel does not say is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// All of it without inactive file cache, the working set in Kubernetes terms. Files that were used more than once
    /// count, so it depends on what else needs memory.
    pub working_set_bytes: Option<u64>,
    /// What its processes hold: anonymous and shared memory, and that of the kernel for them.
    pub held_bytes: Option<u64>,
    /// Cached files, without shared memory.
    pub file_cache_bytes: Option<u64>,
}
