//! The result of a job, uploaded by HTTP `PUT` until the server has acknowledged it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::engine::EngineVersion;
use super::load_record::LoadRecord;
use super::load_time::LoadTime;
use super::profile::Profiled;
use super::series::Packed;
use super::target::Identity;
use super::traffic::Traffic;
use super::work_done::WorkDone;
use super::{Phase, RunId};

/// The complete result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// How it ended.
    pub ended: Ended,
    /// Start of each phase, on the agent's clock.
    pub times: Vec<PhaseTime>,
    /// The agent's clock when this was sent: the server uses it to convert `times` to its own clock.
    pub sent_at_ms: i64,
    /// The load generator's report, verbatim.
    pub summary: Option<String>,
    /// Per-second data of warm-up and measurement, as far as recorded; `None` from older agents.
    #[serde(default)]
    pub series: Option<Packed>,
    /// Outcome of a warm-up until the target was level; `None` from older agents, or if not requested.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// Requests of the measured phase by status, protocol and new connections.
    #[serde(default)]
    pub work: WorkDone,
    /// Output of the target; only the end if it was long.
    pub target_log: String,
    /// Output of the load generator during the measurement; only the end if it was long.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// How the machine size was enforced.
    pub enforced: Enforced,
    /// Usage counted by the sandbox, if there was one.
    pub observed: Option<Observed>,
    /// CPU numbers that each side was pinned to; empty if it was not.
    pub cores: Cores,
    /// The load generator; `None` if this agent generated no load.
    #[serde(alias = "k6_version")]
    pub engine: Option<EngineVersion>,
    /// What identifies the target; `None` if this agent ran none.
    #[serde(default)]
    pub target: Option<Identity>,
    /// The target's version in its manifest.
    pub target_version: String,
    /// Facts about the machine, by name: kernel, CPU model, governor, …
    pub environment: BTreeMap<String, String>,
    /// Conditions of the measurement; empty from older agents.
    #[serde(default)]
    pub conditions: Conditions,
    /// Profiles of the target; `None` if the job did not request them.
    #[serde(default)]
    pub profiled: Option<Profiled>,
    /// The load generators in a cluster, in the order of their segments; empty if the agent itself generated the load.
    #[serde(default)]
    pub generators: Vec<Generator>,
}

/// The result of one load generator in a cluster.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Number and node: `Pod 1 (node-3)`.
    pub name: String,
    /// Its report, verbatim.
    pub summary: String,
    /// Its series, on the agent's clock.
    pub series: Packed,
    /// Requests of the measured phase by status, protocol and new connections.
    pub work: WorkDone,
    /// The end of its output.
    pub log: String,
    /// The program; `None` if unknown.
    pub engine: Option<EngineVersion>,
    /// Facts about its node, by name.
    pub environment: BTreeMap<String, String>,
    /// How much later than its series says it may have started, milliseconds.
    pub start_error_ms: f64,
}

/// Conditions of a measurement that only the agent can observe. Unknown values are absent. Stored as sent, [`checked`].
///
/// [`checked`]: Conditions::checked
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// Time from the start of the target's process to its first verified response, milliseconds.
    pub startup_ms: Option<f64>,
    /// Time to open a connection to a target that was running already, milliseconds.
    pub round_trip_ms: Option<f64>,
    /// Whether the target is a virtual machine whose CPU is emulated; `None` for other kinds.
    pub emulated: Option<bool>,
    /// Whether other Pods of the target's node may use its cores; `None` for other kinds, or if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shares_cores: Option<bool>,
    /// Working set of the target after the idle wait, before any load, bytes.
    pub idle_memory_bytes: Option<u64>,
    /// Memory that it holds then, without file cache; `None` if unknown, or from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_held_memory_bytes: Option<u64>,
    /// The idle wait before the load.
    #[serde(alias = "ground")]
    pub idle_wait: Option<IdleWaitResult>,
    /// By how much the machine's clock was set during the run, milliseconds; negative if back.
    pub clock_jump_ms: Option<i64>,
    /// Number of the target's processes at the start of the measurement.
    pub processes: Option<u32>,
    /// How many of them were gone at its end.
    pub processes_gone: Option<u32>,
    /// How the CPUs of both sides are placed on physical cores; `None` from older agents.
    pub placement: Option<Placement>,
    /// CPU time on the run's CPUs during the measurement.
    pub core_use: Option<CoreUse>,
    /// Network usage during the measurement.
    pub network: Option<NetworkUse>,
    /// How the target's response after the measurement differs from the verified one before it: a sentence; empty if
    /// it is of the same kind. From agents before protocol 26 also how its text differs.
    pub response_change: Option<String>,
    /// How only the text of that response differs: a sentence; empty if it does not. `None` if it varied before the
    /// load, or from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_text_change: Option<String>,
    /// Bytes of the status line and the headers of the verified response; `None` if they are not sent as text, differ
    /// from one response to the next, or from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_head_bytes: Option<u64>,
    /// Whether the script may wait between its requests, e.g. by `sleep`.
    pub script_may_wait: Option<bool>,
    /// The CPU quota of this agent, which bounds its k6, cores; `None` without one, or from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub generator_quota: Option<f64>,
    /// What was counted for the target during the measurement; `None` from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub counters: Option<Counters>,
    /// What the load generator reported about its load; `None` from older agents, or if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_record: Option<LoadRecord>,
    /// How long the load lasted; `None` if only k6's time is known, or from older agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_time: Option<LoadTime>,
    /// TCP traffic of the load; `None` from older agents, or if the kernel does not show it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
}

/// The longest sentence of an agent, characters: pages have no room for more.
const MAX_CHARS: usize = 500;

fn shortened(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

impl Conditions {
    /// Removes implausible values and shortens texts, which an unmodified agent does not send.
    #[must_use]
    pub fn checked(self) -> Self {
        Self {
            round_trip_ms: self.round_trip_ms.filter(|ms| ms.is_finite() && *ms >= 0.0),
            response_change: self.response_change.as_deref().map(shortened),
            response_text_change: self.response_text_change.as_deref().map(shortened),
            generator_quota: self.generator_quota.filter(|cores| cores.is_finite() && *cores > 0.0),
            counters: self.counters.map(|counters| counters.checked(MAX_CHARS)),
            load_record: self.load_record.map(LoadRecord::checked),
            traffic: self.traffic.map(Traffic::checked),
            ..self
        }
    }

    /// Returns how many of these cores the load generator may use.
    pub fn generator_cores(&self, assigned: f64) -> f64 {
        self.generator_quota.map_or(assigned, |quota| quota.min(assigned))
    }
}

/// The result of an idle wait.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct IdleWaitResult {
    /// Duration of the wait, milliseconds.
    pub waited_ms: u64,
    /// CPU time of other programs in the last second of the wait, or in all of it if shorter, cores.
    pub busy_cores: f64,
    /// The limit, cores.
    pub limit_cores: f64,
    /// Whether the machine was idle at the end.
    #[serde(alias = "quiet")]
    pub idle: bool,
}

/// The outcome of a warm-up until the target is level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Duration, milliseconds.
    pub took_ms: u64,
    /// Whether the target was level at the end; otherwise the warm-up took the maximum time.
    pub steady: bool,
}

/// CPU time on the CPUs of a run, microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CoreUse {
    /// Number of CPUs of target and load generator.
    pub cores: u32,
    /// Length of the observation.
    pub elapsed_us: u64,
    /// Used by everything on these CPUs.
    pub busy_us: u64,
    /// Used by the target's processes.
    pub target_us: u64,
    /// Used by the load generator.
    pub generator_us: u64,
    /// How long the target's threads waited for a CPU although they could run, summed over them; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_waited_us: Option<u64>,
    /// How long those of the load generator did; absent if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generator_waited_us: Option<u64>,
}

/// Network usage. Unknown values are absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NetworkUse {
    /// Network interface of the load; absent if it stays within the machine.
    pub interface: Option<String>,
    /// Its speed, bit/s.
    pub speed_bits: Option<u64>,
    /// Highest rate in one direction over a third of the time, bit/s.
    pub peak_bits: Option<u64>,
    /// TCP segments sent in the run's network namespace.
    pub segments: Option<u64>,
    /// Retransmitted ones among them.
    pub retransmitted: Option<u64>,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ended {
    /// The load generator ended normally and its report is complete. The server decides whether the result is valid.
    Finished,
    /// There is no usable result.
    Failed {
        /// A sentence for the user: what failed and, if known, what helps.
        reason: String,
        /// The cause.
        #[serde(default)]
        cause: Cause,
    },
    /// Cancelled by the server or by the owner of the agent.
    Cancelled,
}

/// The cause of a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The target did not serve in time, or not as its manifest requires.
    TargetNotReady,
    /// The target exited while it was needed.
    TargetDied,
    /// The kernel OOM-killed the target.
    TargetOutOfMemory,
    /// The load generator failed.
    Generator,
    /// The load generator refuses the script or its options, whenever it is asked.
    Script,
    /// The target can't be built.
    Build,
    /// The target refused every request of the warm-up, as it would refuse those of the measurement.
    NoSuccess,
    /// The agent failed, or gave no cause.
    #[default]
    Other,
}

/// The start of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// Unix milliseconds.
    pub at_ms: i64,
}

/// How a resource is limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// cgroup v2.
    Cgroup2,
    /// cgroup v1.
    Cgroup1,
    /// The size of a virtual machine, as its guest sees it.
    Guest,
    /// The limits of a Pod, which its node enforces.
    Pod,
    /// Not limited: the target can use the whole machine.
    None,
}

impl Mechanism {
    /// Returns the name used in columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cgroup2 => "cgroup2",
            Self::Cgroup1 => "cgroup1",
            Self::Guest => "guest",
            Self::Pod => "pod",
            Self::None => "none",
        }
    }
}

/// How a machine size was enforced, as read back from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// CPU time.
    pub cpu: Mechanism,
    /// Memory including swap.
    pub memory: Mechanism,
}

impl Enforced {
    /// Nothing is limited.
    pub const NONE: Self = Self { cpu: Mechanism::None, memory: Mechanism::None };
}

/// Usage counted by the sandbox from the target's start to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// CPU time used, microseconds.
    pub cpu_us: Option<u64>,
    /// Time in which the target was throttled by its CPU quota, microseconds.
    pub throttled_us: Option<u64>,
    /// Highest memory use, file cache included; of a guest, without what it can reclaim.
    pub peak_memory_bytes: Option<u64>,
    /// Processes killed by the kernel because the memory limit was reached.
    pub oom_kills: Option<u64>,
}

/// CPU numbers by side.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cores {
    /// CPUs of the target.
    pub target: Vec<usize>,
    /// CPUs of the load generator.
    pub generator: Vec<usize>,
}

impl Cores {
    /// Returns those of both sides; shared ones twice.
    pub fn all(&self) -> impl Iterator<Item = usize> {
        self.target.iter().chain(&self.generator).copied()
    }
}

/// How the CPUs of target and load generator are placed on physical cores, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Each vCPU of the target has a physical core, and the load generator is on others.
    WholeCores,
    /// The target's vCPUs are hyperthreads of the same cores; the load generator uses other cores.
    SiblingThreads,
    /// The load generator has its own CPUs, but they are hyperthreads of the target's cores.
    SharedPhysicalCore,
    /// Both use the same CPUs.
    SharedCores,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::an_outcome;

    #[test]
    fn conditions_of_protocol_5_are_read() {
        let old =
            r#"{"idle_wait": null, "clock_jump_ms": 7, "processes": 1, "processes_gone": 0, "response_change": ""}"#;
        let expected = Conditions {
            clock_jump_ms: Some(7),
            processes: Some(1),
            processes_gone: Some(0),
            response_change: Some(String::new()),
            ..Conditions::default()
        };
        assert_eq!(serde_json::from_str::<Conditions>(old).expect("read"), expected);
    }

    #[test]
    fn an_outcome_of_protocol_6_left_on_disk_is_read() {
        let outcome = Outcome { generator_log: "up".to_owned(), ..an_outcome() };
        let mut old = serde_json::to_value(&outcome).expect("written");
        let fields = old.as_object_mut().expect("an object");
        fields.remove("engine");
        fields.remove("generator_log");
        fields.insert("k6_version".to_owned(), "1.8.1".into());
        fields.insert("k6_log".to_owned(), "up".into());
        assert_eq!(serde_json::from_value::<Outcome>(old).expect("read"), outcome);
    }

    #[test]
    fn an_outcome_survives_a_round_trip() {
        for ended in
            [Ended::Finished, Ended::Cancelled, Ended::Failed { reason: "why".to_owned(), cause: Cause::Other }]
        {
            let outcome = Outcome { ended, ..an_outcome() };
            let text = serde_json::to_string(&outcome).expect("written");
            assert_eq!(serde_json::from_str::<Outcome>(&text).expect("read"), outcome);
        }
    }
}
