//! Values for tests, of this crate and of others.

use std::collections::BTreeMap;
use std::net::IpAddr;

use crate::counters::Counters;
use crate::engine::{Capability, EngineOffer, EngineVersion};
use crate::job::{Job, Role, Size};
use crate::messages::{GeneratorsOffer, Hello, Machine, TargetOffer};
use crate::outcome::{
    Cause, Conditions, CoreUse, Cores, Ended, Enforced, Generator, Mechanism, NetworkUse, Observed, Outcome, PhaseTime,
    Placement, WarmUp,
};
use crate::profile::{ProfileOffer, Profiled};
use crate::run_spec::RunSpec;
use crate::series::{Packed, Series};
use crate::target::Identity;
use crate::work_done::WorkDone;
use crate::{PROTOCOL, Phase, RunId};

/// Returns the first message of an agent, with all parts.
pub fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: "0.1.0".to_owned(),
        now_ms: 1,
        machine: Machine {
            hostname: "bench-01".to_owned(),
            cores: 2,
            physical_cores: Some(1),
            memory_bytes: 1 << 34,
            kernel: "Linux 6.12".to_owned(),
            cpu_model: "a CPU".to_owned(),
            cpu: Mechanism::Cgroup2,
            memory: Mechanism::None,
        },
        targets: vec![TargetOffer {
            name: "t".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            identity: Identity::Process { sha256: "00".to_owned(), code: None },
            anywhere: true,
            profile: Some(ProfileOffer::Impossible { reason: "no perf".to_owned() }),
            compiles_at_run_time: false,
            revisions: Vec::new(),
        }],
        any_scenario: false,
        running: None,
        holds: vec![RunId::now()],
        life: Some(RunId::now().0),
        load_address: Some(IpAddr::from([10, 0, 0, 5])),
        generators: Some(GeneratorsOffer { most: 20, vcpus: 2.0, memory_bytes: 1 << 30 }),
        engines: vec![EngineOffer {
            name: "k6".to_owned(),
            version: "1.8.1".to_owned(),
            path: "/usr/bin/k6".to_owned(),
            supported: "1.x … 2.x".to_owned(),
            fault: Some("it is too new".to_owned()),
            capabilities: vec![Capability::Scripts, Capability::Percentiles],
        }],
    }
}

/// Returns a job for a complete run, with the load of a bundled script.
pub fn a_job() -> Job {
    let size = Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 1, replicas: 1 };
    Job {
        run: RunId::now(),
        experiment: None,
        targets: Vec::new(),
        spec: RunSpec { target: "t".to_owned(), size: Some(size), ..RunSpec::default() },
        scenario: crate::scenarios::bundled().remove(0),
        role: Role::Alone,
        partner: None,
    }
}

/// Returns an outcome with all parts.
pub fn an_outcome() -> Outcome {
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
        target: None,
        target_version: "1".to_owned(),
        environment: BTreeMap::from([("kernel".to_owned(), "Linux".to_owned())]),
        conditions: Conditions {
            clock_jump_ms: Some(-3),
            placement: Some(Placement::SharedPhysicalCore),
            core_use: Some(CoreUse {
                cores: 2,
                elapsed_us: 5,
                busy_us: 4,
                target_us: 1,
                generator_us: 2,
                target_waited_us: Some(3),
                generator_waited_us: None,
            }),
            counters: Some(Counters { page_faults: Some(7), ..Counters::default() }),
            network: Some(NetworkUse { interface: Some("eth0".to_owned()), ..NetworkUse::default() }),
            ..Conditions::default()
        },
        profiled: Some(Profiled { faults: vec!["no samples".to_owned()], ..Profiled::default() }),
        generators: vec![Generator {
            name: "Pod 1 (node-3)".to_owned(),
            summary: "{}".to_owned(),
            series: Packed::pack(&Series::default()),
            work: WorkDone::default(),
            log: "up".to_owned(),
            engine: None,
            environment: BTreeMap::new(),
            start_error_ms: 1.5,
        }],
    }
}
