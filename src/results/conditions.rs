//! What an agent saw of a run and its machine, as stored. The wire has types of its own, so that it can change without what
//! is stored. Pure.

use brewbench_agent::wire::outcome;
use serde::{Deserialize, Serialize};

/// Under what circumstances a run was measured. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// From starting the target's process to its first verified answer, milliseconds.
    pub startup_ms: Option<f64>,
    /// Memory that the target used after the idle wait, before any load, bytes.
    pub idle_memory_bytes: Option<u64>,
    /// The idle wait before the load.
    pub ground: Option<Ground>,
    /// By how much the machine's clock was set while the run went on, milliseconds; negative if back.
    pub clock_jump_ms: Option<i64>,
    /// Processes of the target when the measurement began.
    pub processes: Option<u32>,
    /// How many of them were gone at its end.
    pub processes_gone: Option<u32>,
    /// How the processors of both sides lie on the machine's cores.
    pub placement: Option<Placement>,
    /// CPU time on the run's processors while it was measured.
    pub core_use: Option<CoreUse>,
    /// What crossed the network while it was measured.
    pub network: Option<NetworkUse>,
    /// In what the target's answer after the measurement differs from the one before it: a sentence; empty if it is the same.
    pub response_change: Option<String>,
    /// Whether the script may let time pass between its requests, as by `sleep`.
    pub script_may_wait: Option<bool>,
}

/// The idle wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// How long it took, milliseconds.
    pub waited_ms: u64,
    /// CPU time that others used in its last second, or in all of it where it was shorter, cores.
    pub busy_cores: f64,
    /// So much was allowed, cores.
    pub limit_cores: f64,
    /// Whether the machine was idle in the end.
    pub quiet: bool,
}

/// CPU time on the processors of a run, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreUse {
    /// How many processors target and load generator had.
    pub cores: u32,
    /// How long it was watched.
    pub elapsed_us: u64,
    /// By everything on these processors.
    pub busy_us: u64,
    /// By the target's processes.
    pub target_us: u64,
    /// By the load generator.
    pub generator_us: u64,
}

/// What crossed the network. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkUse {
    /// The interface that the load crosses; absent where it stays within the machine.
    pub interface: Option<String>,
    /// Its speed, bits a second.
    pub speed_bits: Option<u64>,
    /// The most that crossed it in one direction in a third of the time, bits a second.
    pub peak_bits: Option<u64>,
    /// TCP segments that the run's network namespace sent.
    pub segments: Option<u64>,
    /// Those of them that were sent again.
    pub retransmitted: Option<u64>,
}

/// How the processors of target and load generator lie on physical cores, from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each vCPU of the target has a physical core, and the load generator is on others.
    WholeCores,
    /// The target's vCPUs are hyperthreads of the same cores; the load generator is on others.
    SiblingThreads,
    /// The load generator has processors of its own, but they are hyperthreads of the target's cores.
    SharedPhysicalCore,
    /// Both use the same processors.
    SharedCores,
}

/// What the sandbox counted from the start of the target to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// CPU time used, microseconds.
    pub cpu_us: Option<u64>,
    /// Time in which the target wanted to run and its quota forbade it, microseconds.
    pub throttled_us: Option<u64>,
    /// Highest memory use.
    pub peak_memory_bytes: Option<u64>,
    /// Processes that the kernel killed because the memory limit was reached.
    pub oom_kills: Option<u64>,
}

/// Processor numbers by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// Where the target ran.
    pub target: Vec<usize>,
    /// Where the load generator ran.
    pub generator: Vec<usize>,
}

/// What an agent can say in a sentence about its target is cut here: pages and columns are no place for more.
const LONGEST_CHANGE: usize = 500;

impl From<outcome::Conditions> for Conditions {
    fn from(said: outcome::Conditions) -> Self {
        let outcome::Conditions { startup_ms, idle_memory_bytes, ground, clock_jump_ms, processes, .. } = said;
        let outcome::Conditions { processes_gone, placement, core_use, network, response_change, .. } = said;
        Self {
            startup_ms,
            idle_memory_bytes,
            ground: ground.map(Ground::from),
            clock_jump_ms,
            processes,
            processes_gone,
            placement: placement.map(Placement::from),
            core_use: core_use.map(CoreUse::from),
            network: network.map(NetworkUse::from),
            response_change: response_change.map(|text| text.chars().take(LONGEST_CHANGE).collect()),
            script_may_wait: said.script_may_wait,
        }
    }
}

impl From<outcome::Ground> for Ground {
    fn from(outcome::Ground { waited_ms, busy_cores, limit_cores, quiet }: outcome::Ground) -> Self {
        Self { waited_ms, busy_cores, limit_cores, quiet }
    }
}

impl From<outcome::CoreUse> for CoreUse {
    fn from(used: outcome::CoreUse) -> Self {
        let outcome::CoreUse { cores, elapsed_us, busy_us, target_us, generator_us } = used;
        Self { cores, elapsed_us, busy_us, target_us, generator_us }
    }
}

impl From<outcome::NetworkUse> for NetworkUse {
    fn from(used: outcome::NetworkUse) -> Self {
        let outcome::NetworkUse { interface, speed_bits, peak_bits, segments, retransmitted } = used;
        Self { interface, speed_bits, peak_bits, segments, retransmitted }
    }
}

impl From<outcome::Placement> for Placement {
    fn from(placement: outcome::Placement) -> Self {
        match placement {
            outcome::Placement::WholeCores => Self::WholeCores,
            outcome::Placement::SiblingThreads => Self::SiblingThreads,
            outcome::Placement::SharedPhysicalCore => Self::SharedPhysicalCore,
            outcome::Placement::SharedCores => Self::SharedCores,
        }
    }
}

impl From<outcome::Observed> for Observed {
    fn from(seen: outcome::Observed) -> Self {
        let outcome::Observed { cpu_us, throttled_us, peak_memory_bytes, oom_kills } = seen;
        Self { cpu_us, throttled_us, peak_memory_bytes, oom_kills }
    }
}

impl From<outcome::Cores> for Cores {
    fn from(outcome::Cores { target, generator }: outcome::Cores) -> Self {
        Self { target, generator }
    }
}
