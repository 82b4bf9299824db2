//! What an agent observed about a run and its machine, as stored. Pure.
//!
//! The wire has its own types, so that it can change without the stored form.

use brewbench_wire::{load_record::LoadRecord, load_time::LoadTime, outcome, traffic::Traffic};
use serde::{Deserialize, Serialize};

use crate::metrics::counters::Counts;

/// The conditions of a measurement. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// From starting the target's process to its first verified response, milliseconds.
    pub startup_ms: Option<f64>,
    /// Time to open a connection to a target that was running already, milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Whether the target was a virtual machine whose CPU was emulated; None for other kinds.
    pub emulated: Option<bool>,
    /// Whether other Pods of its node could use the target's cores; None for other kinds, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_cores: Option<bool>,
    /// Memory that the target used after the idle wait, before any load, bytes.
    pub idle_memory_bytes: Option<u64>,
    /// The idle wait before the load.
    #[serde(alias = "ground")]
    pub idle_wait: Option<IdleWaitResult>,
    /// How far the machine's clock was set during the run, milliseconds; negative if back.
    pub clock_jump_ms: Option<i64>,
    /// Processes of the target at the start of the measurement.
    pub processes: Option<u32>,
    /// How many of them had exited by its end.
    pub processes_gone: Option<u32>,
    /// How target and load generator are placed on physical cores.
    pub placement: Option<Placement>,
    /// CPU time on the run's processors during the measurement.
    pub core_use: Option<CoreUse>,
    /// Network traffic during the measurement.
    pub network: Option<NetworkUse>,
    /// How the target's response changed during the measurement: a sentence; empty if it did not.
    pub response_change: Option<String>,
    /// Bytes of the status line and the headers of the verified response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_head_bytes: Option<u64>,
    /// Whether the script may pause between its requests, for example with `sleep`.
    pub script_may_wait: Option<bool>,
    /// CPU quota of k6's agent, which bounds k6, cores; None without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_quota: Option<f64>,
    /// What was counted for the target during the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// What the load generator reported about its load. Stored as sent: every field is optional.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_record: Option<LoadRecord>,
    /// How long the load lasted; None if only k6's time of the test is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_time: Option<LoadTime>,
    /// TCP traffic of the load. Stored as sent, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// What the kernel and the processor counted for the target during the measurement.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counters {
    /// The counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Why counts are absent, as sentences.
    pub missing: Vec<String>,
}

/// The idle wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleWaitResult {
    /// How long it took, milliseconds.
    pub waited_ms: u64,
    /// CPU that other processes used in its last second, or in all of it if shorter, cores.
    pub busy_cores: f64,
    /// The limit, cores.
    pub limit_cores: f64,
    /// Whether the machine was idle at its end.
    #[serde(alias = "quiet")]
    pub idle: bool,
}

/// CPU time on the processors of a run, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreUse {
    /// How many processors target and load generator had.
    pub cores: u32,
    /// Length of the observation.
    pub elapsed_us: u64,
    /// Used by everything on these processors.
    pub busy_us: u64,
    /// Used by the target's processes.
    pub target_us: u64,
    /// Used by the load generator.
    pub generator_us: u64,
    /// How long the target's threads waited for a processor although they could run, summed over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_waited_us: Option<u64>,
    /// How long those of the load generator did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_waited_us: Option<u64>,
}

/// Network traffic of a run. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkUse {
    /// The interface that the load crosses; absent if it stays within the machine.
    pub interface: Option<String>,
    /// Its speed, bits per second.
    pub speed_bits: Option<u64>,
    /// The highest rate in one direction over a third of the measurement, bits per second.
    pub peak_bits: Option<u64>,
    /// TCP segments that the run's network namespace sent.
    pub segments: Option<u64>,
    /// How many of them were retransmitted.
    pub retransmitted: Option<u64>,
}

/// How target and load generator are placed on physical cores, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each vCPU of the target has its own physical core; the load generator uses others.
    WholeCores,
    /// The target's vCPUs are hyperthreads of the same cores; the load generator uses others.
    SiblingThreads,
    /// The load generator's processors are hyperthreads of the target's cores.
    SharedPhysicalCore,
    /// Both use the same processors.
    SharedCores,
}

/// What the sandbox counted over the lifetime of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// CPU time used, microseconds.
    pub cpu_us: Option<u64>,
    /// Time for which the CPU quota throttled the target, microseconds.
    pub throttled_us: Option<u64>,
    /// Highest memory use.
    pub peak_memory_bytes: Option<u64>,
    /// Processes that the kernel killed because the memory limit was reached.
    pub oom_kills: Option<u64>,
}

/// Processor numbers of target and load generator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// Where the target ran.
    pub target: Vec<usize>,
    /// Where the load generator ran.
    pub generator: Vec<usize>,
}

/// Longer sentences of an agent are cut: pages have no room for more.
const MAX_CHARS: usize = 500;
/// The most reasons for absent counts; there is one per counter.
const MAX_REASONS: usize = 10;

impl Conditions {
    /// Returns how many of these cores k6 may use.
    pub fn generator_cores(&self, assigned: f64) -> f64 {
        self.generator_quota.map_or(assigned, |quota| quota.min(assigned))
    }
}

impl From<outcome::Conditions> for Conditions {
    fn from(reported: outcome::Conditions) -> Self {
        let outcome::Conditions { startup_ms, idle_memory_bytes, idle_wait, clock_jump_ms, processes, .. } = reported;
        let outcome::Conditions { processes_gone, placement, core_use, network, response_change, .. } = reported;
        Self {
            startup_ms,
            emulated: reported.emulated,
            shares_cores: reported.shares_cores,
            round_trip_ms: reported.round_trip_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
            idle_memory_bytes,
            idle_wait: idle_wait.map(IdleWaitResult::from),
            clock_jump_ms,
            processes,
            processes_gone,
            placement: placement.map(Placement::from),
            core_use: core_use.map(CoreUse::from),
            network: network.map(NetworkUse::from),
            response_change: response_change.map(|text| text.chars().take(MAX_CHARS).collect()),
            response_head_bytes: reported.response_head_bytes,
            script_may_wait: reported.script_may_wait,
            generator_quota: reported.generator_quota.filter(|cores| cores.is_finite() && *cores > 0.0),
            counters: reported.counters.map(Counters::from),
            load_record: reported.load_record.map(LoadRecord::checked),
            load_time: reported.load_time,
            traffic: reported.traffic.map(Traffic::checked),
        }
    }
}

impl From<brewbench_wire::counters::Counters> for Counters {
    fn from(reported: brewbench_wire::counters::Counters) -> Self {
        let brewbench_wire::counters::Counters { voluntary_switches, involuntary_switches, page_faults, .. } = reported;
        let brewbench_wire::counters::Counters { instructions, cycles, cache_misses, branch_misses, missing, .. } =
            reported;
        let counts = Counts {
            voluntary_switches,
            involuntary_switches,
            page_faults,
            instructions,
            cycles,
            cache_misses,
            branch_misses,
        };
        let missing = missing.into_iter().take(MAX_REASONS);
        Self { counts, missing: missing.map(|text| text.chars().take(MAX_CHARS).collect()).collect() }
    }
}

impl From<outcome::IdleWaitResult> for IdleWaitResult {
    fn from(outcome::IdleWaitResult { waited_ms, busy_cores, limit_cores, idle }: outcome::IdleWaitResult) -> Self {
        Self { waited_ms, busy_cores, limit_cores, idle }
    }
}

impl From<outcome::CoreUse> for CoreUse {
    fn from(used: outcome::CoreUse) -> Self {
        let outcome::CoreUse { cores, elapsed_us, busy_us, target_us, generator_us, .. } = used;
        let outcome::CoreUse { target_waited_us, generator_waited_us, .. } = used;
        Self { cores, elapsed_us, busy_us, target_us, generator_us, target_waited_us, generator_waited_us }
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
    fn from(observed: outcome::Observed) -> Self {
        let outcome::Observed { cpu_us, throttled_us, peak_memory_bytes, oom_kills } = observed;
        Self { cpu_us, throttled_us, peak_memory_bytes, oom_kills }
    }
}

impl From<outcome::Cores> for Cores {
    fn from(outcome::Cores { target, generator }: outcome::Cores) -> Self {
        Self { target, generator }
    }
}
