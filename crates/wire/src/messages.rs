//! The protocol of the agent's WebSocket: JSON text frames, one message each.
//!
//! The agent starts with [`AgentMessage::Hello`]; the server responds with [`ServerMessage::Welcome`], or with
//! [`ServerMessage::Refused`] and closes the connection. Then both sides send heartbeats every `heartbeat_ms`; after
//! three missed ones the other side counts as disconnected. Results are sent separately: see [`super::outcome`].
//!
//! A key is for one process: while an agent is connected, another one with the same key but a different [`Hello::life`]
//! is refused; the same process replaces its earlier connection. An agent that receives [`ServerMessage::ChangeKey`]
//! creates a key, registers its hash by HTTP, and uses it.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::engine::EngineOffer;
use super::job::Job;
use super::outcome::Mechanism;
use super::profile::ProfileOffer;
use super::scenario::Scenario;
use super::series::Delta;
use super::target::Identity;
use super::{Phase, RunId};

/// A message from an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentMessage {
    /// Describes the agent; the first message of a connection.
    Hello(Box<Hello>),
    /// Shows that the connection is alive.
    Heartbeat {
        /// The current run, or both of a duet.
        running: Vec<RunId>,
        /// Why the agent takes no runs; absent if it does.
        #[serde(default)]
        fault: Option<String>,
    },
    /// A run entered a phase; never a final one, which follows from the result.
    Phase {
        /// The run.
        run: RunId,
        /// The phase.
        phase: Phase,
    },
    /// What takes long in the preparation of a run, such as pulling an image.
    Step {
        /// The run.
        run: RunId,
        /// A sentence without a full stop.
        step: String,
    },
    /// Points of the current run that this connection has not sent yet.
    Series(Box<Delta>),
    /// The job is over and its outcome is on disk; the agent is free.
    Done {
        /// The run.
        run: RunId,
    },
    /// The agent does not accept this job; another one may.
    Declined {
        /// The run.
        run: RunId,
        /// A sentence for the user.
        reason: String,
    },
    /// The agent waits at this gate of a distributed run for the other participants.
    At {
        /// The run.
        run: RunId,
        /// The gate.
        gate: Gate,
        /// Base URL of the target, e.g. `http://10.0.0.5:40123`; sent by the host.
        base_url: Option<String>,
    },
    /// The time of this machine, in response to [`ServerMessage::Clock`].
    Clock {
        /// Copied from the request.
        sent_ms: i64,
        /// Unix milliseconds.
        now_ms: i64,
    },
    /// The result of a script inspection.
    Inspected {
        /// Copied from the request.
        id: Uuid,
        /// The load generator's verdict.
        finding: Finding,
    },
}

/// A point where the participants of a distributed run wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Before the first load: the target serves, and each load generator is ready.
    Load,
    /// Before the measured load: all virtual users are created.
    Measure,
    /// After it: no load generator is running.
    End,
}

/// What a load generator has read of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ScriptReport {
    /// The names of its scenarios, in its order.
    pub scenarios: Vec<String>,
    /// Whether it sets a load: scenarios, stages, a duration or iterations.
    pub sets_load: bool,
    /// What looks like a mistake, in sentences.
    pub hints: Vec<String>,
}

/// The result of a script inspection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The load generator accepts the script.
    Valid(ScriptReport),
    /// The load generator rejects it, with a message.
    Invalid {
        /// Output of the load generator, which the script may influence.
        message: String,
    },
    /// Not inspected; another agent may do it.
    Declined {
        /// A sentence for the log.
        reason: String,
    },
}

/// A message from a server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// The agent is accepted.
    Welcome {
        /// The server's protocol.
        protocol: u32,
        /// The name of this agent on the server.
        name: String,
        /// Heartbeat interval of both sides.
        heartbeat_ms: u64,
    },
    /// The agent is rejected; the connection is closed after this.
    Refused {
        /// A sentence with a remedy.
        reason: String,
    },
    /// Shows that the connection is alive.
    Heartbeat,
    /// Execute this job.
    Start(Box<Job>),
    /// Inspect this script without running its load.
    Inspect {
        /// Identifies the request.
        id: Uuid,
        /// The script and its files.
        scenario: Box<Scenario>,
    },
    /// Cancel this run in any phase.
    Cancel {
        /// The run.
        run: RunId,
    },
    /// All participants are at this gate: continue at this time.
    Pass {
        /// The run.
        run: RunId,
        /// The gate.
        gate: Gate,
        /// When to continue, on the receiving agent's clock; unix milliseconds.
        at_ms: i64,
        /// Base URL of the target.
        base_url: String,
    },
    /// Requests the time of the agent.
    Clock {
        /// The server's time; unix milliseconds.
        sent_ms: i64,
    },
    /// Create another key. Repeated at each connection until the new key is used.
    ChangeKey,
}

/// Description of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The agent's [`super::PROTOCOL`].
    pub protocol: u32,
    /// The agent's program version.
    pub version: String,
    /// The agent's clock, unix milliseconds.
    pub now_ms: i64,
    /// The machine.
    pub machine: Machine,
    /// Its load generators.
    pub engines: Vec<EngineOffer>,
    /// Targets it can start.
    pub targets: Vec<TargetOffer>,
    /// Whether it runs scripts that are not bundled.
    pub any_scenario: bool,
    /// The current run.
    pub running: Option<RunId>,
    /// The current run, and runs with an outcome still to upload.
    pub holds: Vec<RunId>,
    /// Identifies the process, to detect another one with the same key.
    pub life: Option<Uuid>,
    /// Address on which targets accept load from other machines; absent if not allowed.
    #[serde(default)]
    pub load_address: Option<IpAddr>,
    /// Load generators in a cluster; absent if not allowed.
    #[serde(default)]
    pub generators: Option<GeneratorsOffer>,
}

/// Load generators that an agent can start in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratorsOffer {
    /// How many a run may have.
    pub most: u32,
    /// CPU cores of each.
    pub vcpus: f64,
    /// Memory of each.
    pub memory_bytes: u64,
}

/// Reads the protocol of a hello, even if it is too old or too new to be parsed as [`AgentMessage::Hello`].
pub fn protocol_of(hello: &str) -> Option<u32> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum AnyHello {
        Hello { protocol: u32 },
    }
    let AnyHello::Hello { protocol } = serde_json::from_str(hello).ok()?;
    Some(protocol)
}

/// Description of the agent's machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Host name.
    pub hostname: String,
    /// CPUs that the agent may use.
    pub cores: u32,
    /// Physical cores of these CPUs, if known.
    pub physical_cores: Option<u32>,
    /// Total memory.
    pub memory_bytes: u64,
    /// E.g. `Linux 6.12.9`.
    pub kernel: String,
    /// E.g. `AMD EPYC 7B13`.
    pub cpu_model: String,
    /// How CPU time is limited.
    pub cpu: Mechanism,
    /// How memory is limited.
    pub memory: Mechanism,
}

/// A target that an agent can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetOffer {
    /// From the manifest.
    pub name: String,
    /// From the manifest.
    pub version: String,
    /// One-line description.
    pub description: String,
    /// What identifies it.
    pub identity: Identity,
    /// Whether other machines can load it.
    #[serde(default)]
    pub anywhere: bool,
    /// Whether it can be profiled; `None` from older agents.
    #[serde(default)]
    pub profile: Option<ProfileOffer>,
    /// Whether its program is known to compile while it runs, so that it needs a warm-up until it is steady.
    #[serde(default)]
    pub compiles_at_run_time: bool,
    /// The branches and tags whose commits its agent builds, as patterns; empty for a program that is there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revisions: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::{Partner, Role, Segment, Size};
    use crate::load::{Closed, Form, Load, Open, Stage};
    use crate::run_spec::RunSpec;
    use crate::samples::hello;
    use crate::series::{Packed, Series, Window};

    fn round_trips<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(message: &T) {
        let text = serde_json::to_string(message).expect("written");
        assert_eq!(&serde_json::from_str::<T>(&text).expect("read"), message, "{text}");
    }

    #[test]
    fn agent_messages_survive_a_round_trip() {
        let run = RunId::now();
        round_trips(&AgentMessage::Hello(Box::new(hello())));
        round_trips(&AgentMessage::Heartbeat { running: vec![run], fault: Some("the disk is full".to_owned()) });
        round_trips(&AgentMessage::Phase { run, phase: Phase::WarmingUp });
        round_trips(&AgentMessage::Step { run, step: "Pulling x: 1 of 2 MiB".to_owned() });
        let points = Packed::pack(&Series { measured: Some(Window::default()), ..Series::default() });
        let delta = Delta { run, seconds_after_ms: 0, usage_after_ms: i32::MIN, points };
        round_trips(&AgentMessage::Series(Box::new(delta)));
        for gate in [Gate::Load, Gate::Measure, Gate::End] {
            round_trips(&AgentMessage::At { run, gate, base_url: Some("http://10.0.0.5:1".to_owned()) });
        }
        round_trips(&AgentMessage::Clock { sent_ms: 1, now_ms: -2 });
        round_trips(&AgentMessage::Done { run });
        round_trips(&AgentMessage::Declined { run, reason: "busy".to_owned() });
        let (message, reason) = ("no".to_owned(), "busy".to_owned());
        let report = ScriptReport { sets_load: true, ..ScriptReport::default() };
        for finding in [Finding::Valid(report), Finding::Invalid { message }, Finding::Declined { reason }] {
            round_trips(&AgentMessage::Inspected { id: run.0, finding });
        }
    }

    #[test]
    fn the_protocol_of_any_hello_is_read() {
        let message = serde_json::to_string(&AgentMessage::Hello(Box::new(hello()))).expect("written");
        assert_eq!(protocol_of(&message), Some(super::super::PROTOCOL));
        assert_eq!(protocol_of(r#"{"type": "hello", "protocol": 6, "k6_version": "1.8.1"}"#), Some(6));
        assert_eq!(protocol_of(r#"{"type": "heartbeat", "running": null}"#), None);
    }

    #[test]
    fn server_messages_survive_a_round_trip() {
        let run = RunId::now();
        let scenario = Scenario::of_script("hash", "export default 1").with_default("PAYLOAD", "1k");
        let constant = Form::Constant { level: 10, duration_ms: 1_000 };
        let stages = Form::Stages(vec![Stage { duration_ms: 1_000, target: 10 }, Stage { duration_ms: 0, target: 0 }]);
        let closed = |form| Load::Closed(Closed::new(form).expect("a load"));
        let open = |form| Load::Open(Open::new(form, None).expect("a load"));
        let (flat, ramp) = (constant.clone(), stages.clone());
        for load in [Load::Script, closed(constant), closed(stages), open(flat), open(ramp)] {
            round_trips(&ServerMessage::Start(Box::new(Job {
                run,
                experiment: None,
                targets: Vec::new(),
                scenario: scenario.clone(),
                role: Role::Generator(Segment { index: 1, of: 2 }),
                partner: Some(Partner { run: RunId::now(), target: "u".to_owned() }),
                spec: RunSpec {
                    target: "t".to_owned(),
                    size: Some(Size { name: "s".to_owned(), vcpus: 0.5, memory_bytes: 1 << 28, replicas: 1 }),
                    load: Some(load),
                    warm_up_s: Some(2.0),
                    profiled: true,
                    cluster_generators: 4,
                    ..RunSpec::default()
                },
            })));
        }
        round_trips(&ServerMessage::Welcome { protocol: 1, name: "a".to_owned(), heartbeat_ms: 2_000 });
        round_trips(&ServerMessage::Refused { reason: "upgrade".to_owned() });
        round_trips(&ServerMessage::Heartbeat);
        round_trips(&ServerMessage::Cancel { run });
        let base_url = "http://10.0.0.5:1".to_owned();
        round_trips(&ServerMessage::Pass { run, gate: Gate::Measure, at_ms: 1, base_url });
        round_trips(&ServerMessage::Clock { sent_ms: 1 });
        round_trips(&ServerMessage::ChangeKey);
        round_trips(&ServerMessage::Inspect { id: run.0, scenario: Box::new(scenario) });
    }
}
