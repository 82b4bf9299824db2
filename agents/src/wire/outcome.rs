//! What came of a job: sent home by HTTP `PUT`, as often as it takes until the server has acknowledged it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::engine::EngineVersion;
use super::series::Packed;
use super::work_done::WorkDone;
use super::{Phase, RunId};

/// The whole result of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The run that it belongs to.
    pub run: RunId,
    /// How it ended.
    pub ended: Ended,
    /// When each phase began, by the agent's clock.
    pub times: Vec<PhaseTime>,
    /// The agent's clock when this was sent: lets the server translate `times` into its own.
    pub sent_at_ms: i64,
    /// The load generator's report, verbatim.
    pub summary: Option<String>,
    /// What happened second by second in warm-up and measurement, as far as they came; nothing from agents that did not
    /// record it.
    #[serde(default)]
    pub series: Option<Packed>,
    /// What a warm-up until the target is steady came to; nothing from agents that know none, or where none was asked for.
    #[serde(default)]
    pub warm_up: Option<WarmUp>,
    /// What the requests of the measured phase were.
    #[serde(default)]
    pub work: WorkDone,
    /// What the target wrote to stdout and stderr; the last part if it was long.
    pub target_log: String,
    /// What the load generator wrote while measuring; the last part if it was long.
    #[serde(alias = "k6_log")]
    pub generator_log: String,
    /// What held the target to its size.
    pub enforced: Enforced,
    /// What the sandbox saw, where there was one.
    pub observed: Option<Observed>,
    /// The processor numbers that each side was pinned to; empty when it was not.
    pub cores: Cores,
    /// The load generator; none where this agent generated no load.
    #[serde(alias = "k6_version")]
    pub engine: Option<EngineVersion>,
    /// SHA-256 of the target's executable, in hex.
    pub target_sha256: Option<String>,
    /// The target's version from its manifest.
    pub target_version: String,
    /// Facts about the machine, by name: kernel, CPU model, governor, …
    pub environment: BTreeMap<String, String>,
    /// What speaks for or against the circumstances; nothing from agents that did not look.
    #[serde(default)]
    pub conditions: Conditions,
}

/// Under what circumstances a run was measured, as far as only its agent can see. What is not known is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conditions {
    /// From starting the target's process to its first verified answer, milliseconds.
    pub startup_ms: Option<f64>,
    /// Memory that the target used after the idle wait, before any load, bytes.
    pub idle_memory_bytes: Option<u64>,
    /// The wait for a quiet machine before the load.
    pub ground: Option<Ground>,
    /// By how much the machine's clock was set while the run went on, milliseconds; negative if back.
    pub clock_jump_ms: Option<i64>,
    /// Processes of the target that were there when the measurement began.
    pub processes: Option<u32>,
    /// How many of them were gone at its end.
    pub processes_gone: Option<u32>,
    /// How the processors of both sides lie on the machine's cores; nothing from agents that dealt them without regard
    /// to that.
    pub placement: Option<Placement>,
    /// CPU time on the run's processors while it was measured.
    pub core_use: Option<CoreUse>,
    /// What crossed the network while it was measured.
    pub network: Option<NetworkUse>,
    /// In what the target's answer after the measurement differs from the one that was verified before it: a sentence;
    /// empty if it is the same.
    pub response_change: Option<String>,
    /// Whether the script may let time pass between its requests, as by `sleep`.
    pub script_may_wait: Option<bool>,
}

/// What waiting for a quiet machine came to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ground {
    /// How long was waited, milliseconds.
    pub waited_ms: u64,
    /// CPU time that others used in the last second of it, or in all of it where it was shorter, cores.
    pub busy_cores: f64,
    /// So much was allowed, cores.
    pub limit_cores: f64,
    /// Whether it was quiet in the end.
    pub quiet: bool,
}

/// What a warm-up until the target is steady came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// How long it took, milliseconds.
    pub took_ms: u64,
    /// Whether the target was steady at its end; else it took the longest time that was allowed.
    pub steady: bool,
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

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Ended {
    /// The load generator ended by itself and its report is complete. Whether it is worth anything is for the server to judge.
    Finished,
    /// There is no result, or none that means anything.
    Failed {
        /// A sentence for the user: what failed and, where known, what helps.
        reason: String,
        /// What the reason is about.
        #[serde(default)]
        cause: Cause,
    },
    /// The server or the owner of the agent asked for its end.
    Cancelled,
}

/// What a job failed at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The target did not serve in time, or not as its manifest says.
    TargetNotReady,
    /// The target ended while it was needed.
    TargetDied,
    /// The kernel killed the target for want of memory.
    TargetOutOfMemory,
    /// The load generator could not do it.
    Generator,
    /// The agent could not do it, or did not say.
    #[default]
    Other,
}

/// When a phase began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhaseTime {
    /// The phase.
    pub phase: Phase,
    /// Unix milliseconds.
    pub at_ms: i64,
}

/// What limits a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mechanism {
    /// Control groups, unified hierarchy.
    Cgroup2,
    /// Control groups, one hierarchy per controller.
    Cgroup1,
    /// Nothing: the target could use the whole machine.
    None,
}

impl Mechanism {
    /// The word for columns and JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cgroup2 => "cgroup2",
            Self::Cgroup1 => "cgroup1",
            Self::None => "none",
        }
    }
}

/// What held a target to its size, as read back from the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// For CPU time.
    pub cpu: Mechanism,
    /// For memory, swap included.
    pub memory: Mechanism,
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

#[cfg(test)]
pub(crate) mod tests {
    use super::super::series::Series;
    use super::*;

    /// An outcome with everything in it.
    pub(crate) fn an_outcome() -> Outcome {
        Outcome {
            run: RunId::now(),
            ended: Ended::Failed { reason: "it \"broke\"".to_owned(), cause: Cause::TargetDied },
            times: vec![PhaseTime { phase: Phase::Preparing, at_ms: 1 }],
            sent_at_ms: 2,
            summary: Some("{\n}".to_owned()),
            series: Some(Packed::pack(&Series::default())),
            warm_up: Some(WarmUp { took_ms: 9_000, steady: true }),
            work: WorkDone { new_connections: Some(4), ..WorkDone::default() },
            target_log: "up\n".to_owned(),
            generator_log: String::new(),
            enforced: Enforced { cpu: Mechanism::Cgroup1, memory: Mechanism::None },
            observed: Some(Observed { oom_kills: Some(1), ..Observed::default() }),
            cores: Cores { target: vec![0], generator: vec![1] },
            engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
            target_sha256: None,
            target_version: "1".to_owned(),
            environment: BTreeMap::from([("kernel".to_owned(), "Linux".to_owned())]),
            conditions: Conditions {
                clock_jump_ms: Some(-3),
                placement: Some(Placement::SharedPhysicalCore),
                core_use: Some(CoreUse { cores: 2, elapsed_us: 5, busy_us: 4, target_us: 1, generator_us: 2 }),
                network: Some(NetworkUse { interface: Some("eth0".to_owned()), ..NetworkUse::default() }),
                ..Conditions::default()
            },
        }
    }

    #[test]
    fn what_an_agent_of_protocol_5_saw_is_read() {
        let old = r#"{"ground": null, "clock_jump_ms": 7, "processes": 1, "processes_gone": 0, "response_change": ""}"#;
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
    fn an_outcome_of_protocol_6_that_waited_on_disk_is_read() {
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
    fn an_outcome_survives_the_wire() {
        for ended in
            [Ended::Finished, Ended::Cancelled, Ended::Failed { reason: "why".to_owned(), cause: Cause::Other }]
        {
            let outcome = Outcome { ended, ..an_outcome() };
            let text = serde_json::to_string(&outcome).expect("written");
            assert_eq!(serde_json::from_str::<Outcome>(&text).expect("read"), outcome);
        }
    }
}
