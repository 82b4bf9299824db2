//! The conversation over the agent's WebSocket: JSON text frames, one message each.
//!
//! The agent speaks first ([`AgentMessage::Hello`]); the server answers [`ServerMessage::Welcome`] or
//! [`ServerMessage::Refused`] and closes. From then on both sides send heartbeats every `heartbeat_ms`; three missed
//! ones mean that the other side is gone. Results don't travel here: see [`super::outcome`].
//!
//! A key is for one process: an agent whose [`Hello::life`] is another than that of the one that is connected under the
//! same key, and is alive, is refused; the same life takes the place of its own connection before. An agent that is asked
//! to change its key ([`ServerMessage::ChangeKey`]) makes one, tells its hash by HTTP, and uses it: see
//! [`crate::connection::key`].

use std::net::IpAddr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::engine::EngineOffer;
use super::job::{Job, Scenario};
use super::outcome::Mechanism;
use super::series::Portion;
use super::{Phase, RunId};

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentMessage {
    /// Who I am and what I can do; the first message of a connection.
    Hello(Box<Hello>),
    /// I am alive.
    Heartbeat {
        /// The run that I work on.
        running: Option<RunId>,
    },
    /// A run entered a phase (never a final one: those follow from the result).
    Phase {
        /// The run.
        run: RunId,
        /// What it does now.
        phase: Phase,
    },
    /// What has happened in the run in work that this connection has not told yet.
    Series(Box<Portion>),
    /// The job is over and its outcome is on my disk; I am free.
    Done {
        /// The run.
        run: RunId,
    },
    /// I can't take this job; it should be given to somebody else.
    Declined {
        /// The run.
        run: RunId,
        /// A sentence for the user.
        reason: String,
    },
    /// I am at this gate of a run that several do, and go on when all others are there too.
    At {
        /// The run.
        run: RunId,
        /// Where.
        gate: Gate,
        /// Where the target serves, e.g. `http://10.0.0.5:40123`; told by who runs it.
        base_url: Option<String>,
    },
    /// What my clock says, asked by [`ServerMessage::Clock`].
    Clock {
        /// As it was asked.
        asked_ms: i64,
        /// Unix milliseconds.
        now_ms: i64,
    },
    /// What I say to a script that I was asked to look at.
    Inspected {
        /// As it was asked.
        id: Uuid,
        /// What the load generator says.
        finding: Finding,
    },
}

/// Where those who do a run together wait for each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gate {
    /// Before the first load: the target serves, each load generator could run.
    Load,
    /// Before the measured load; all load generators have started their virtual users.
    Measure,
    /// After it: no load generator runs any more.
    End,
}

/// What came of looking at a script.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// The load generator can run it.
    Valid,
    /// It can't: a sentence with the load generator's own message.
    Invalid {
        /// As the load generator wrote it, which is what the script wanted it to be.
        message: String,
    },
    /// I did not look at it: somebody else may.
    Declined {
        /// A sentence for the log.
        reason: String,
    },
}

/// What a server says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ServerMessage {
    /// You are known; these are the terms.
    Welcome {
        /// The server's protocol.
        protocol: u32,
        /// The name that the server's owner gave this agent.
        name: String,
        /// How often both sides say that they are alive.
        heartbeat_ms: u64,
    },
    /// You can't stay; the connection ends after this.
    Refused {
        /// A sentence that says what to do.
        reason: String,
    },
    /// I am alive.
    Heartbeat,
    /// Do this.
    Start(Box<Job>),
    /// Check this script, without running its load.
    Inspect {
        /// Names the question.
        id: Uuid,
        /// The script and what it opens.
        scenario: Box<Scenario>,
    },
    /// Stop this run, whatever it does.
    Cancel {
        /// The run.
        run: RunId,
    },
    /// All are at this gate: go on, at this time.
    Pass {
        /// The run.
        run: RunId,
        /// Which gate.
        gate: Gate,
        /// When, by the clock of the agent that this is said to; unix milliseconds.
        at_ms: i64,
        /// Where the target serves.
        base_url: String,
    },
    /// What does your clock say?
    Clock {
        /// What the server's says; unix milliseconds.
        asked_ms: i64,
    },
    /// Make yourself another key. Said again at each connection until it was used.
    ChangeKey,
}

/// An agent's introduction.
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
    /// What it can start.
    pub targets: Vec<TargetOffer>,
    /// Whether it runs scripts that did not come with it.
    pub any_scenario: bool,
    /// The run that it works on.
    pub running: Option<RunId>,
    /// Runs that it still holds: the one in work, and those whose outcome waits to be sent.
    pub holds: Vec<RunId>,
    /// Names this process: another one with the same key is somebody else.
    pub life: Option<Uuid>,
    /// Where targets listen for load from other machines; absent where its owner allows none.
    #[serde(default)]
    pub load_address: Option<IpAddr>,
}

/// The protocol of an introduction, also of one that is too old or too new to be read as [`AgentMessage::Hello`].
pub fn protocol_of(introduction: &str) -> Option<u32> {
    #[derive(Deserialize)]
    #[serde(tag = "type", rename_all = "snake_case")]
    enum Introduction {
        Hello { protocol: u32 },
    }
    let Introduction::Hello { protocol } = serde_json::from_str(introduction).ok()?;
    Some(protocol)
}

/// What the agent's machine is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// Its name on the network.
    pub hostname: String,
    /// Processors that the agent may use.
    pub cores: u32,
    /// Physical cores that these are on, where that is known.
    pub physical_cores: Option<u32>,
    /// Memory in all.
    pub memory_bytes: u64,
    /// E.g. `Linux 6.12.9`.
    pub kernel: String,
    /// E.g. `AMD EPYC 7B13`.
    pub cpu_model: String,
    /// What it can limit CPU time with.
    pub cpu: Mechanism,
    /// What it can limit memory with.
    pub memory: Mechanism,
}

/// A target that an agent can start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TargetOffer {
    /// From the manifest.
    pub name: String,
    /// From the manifest.
    pub version: String,
    /// One line for people.
    pub description: String,
    /// SHA-256 of the executable, in hex.
    pub sha256: String,
    /// Whether it can be told to listen elsewhere than on loopback.
    #[serde(default)]
    pub anywhere: bool,
}

#[cfg(test)]
pub(crate) mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::wire::engine::Capability;
    use crate::wire::job::{Role, Scenario, ScenarioKind, Segment, Size};
    use crate::wire::load::{Closed, Form, Load, Open, Stage};
    use crate::wire::series::{Packed, Series, Stretch};

    fn survives<T: Serialize + for<'a> Deserialize<'a> + PartialEq + std::fmt::Debug>(message: &T) {
        let text = serde_json::to_string(message).expect("written");
        assert_eq!(&serde_json::from_str::<T>(&text).expect("read"), message, "{text}");
    }

    pub(crate) fn hello() -> Hello {
        Hello {
            protocol: super::super::PROTOCOL,
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
                sha256: "00".to_owned(),
                anywhere: true,
            }],
            any_scenario: false,
            running: None,
            holds: vec![RunId::now()],
            life: Some(RunId::now().0),
            load_address: Some(IpAddr::from([10, 0, 0, 5])),
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

    #[test]
    fn every_message_of_an_agent_survives_the_wire() {
        let run = RunId::now();
        survives(&AgentMessage::Hello(Box::new(hello())));
        survives(&AgentMessage::Heartbeat { running: Some(run) });
        survives(&AgentMessage::Phase { run, phase: Phase::WarmingUp });
        let points = Packed::pack(&Series { measured: Some(Stretch::default()), ..Series::default() });
        let portion = Portion { run, seconds_after_ms: 0, usage_after_ms: i32::MIN, points };
        survives(&AgentMessage::Series(Box::new(portion)));
        for gate in [Gate::Load, Gate::Measure, Gate::End] {
            survives(&AgentMessage::At { run, gate, base_url: Some("http://10.0.0.5:1".to_owned()) });
        }
        survives(&AgentMessage::Clock { asked_ms: 1, now_ms: -2 });
        survives(&AgentMessage::Done { run });
        survives(&AgentMessage::Declined { run, reason: "busy".to_owned() });
        let (message, reason) = ("no".to_owned(), "busy".to_owned());
        for finding in [Finding::Valid, Finding::Invalid { message }, Finding::Declined { reason }] {
            survives(&AgentMessage::Inspected { id: run.0, finding });
        }
    }

    #[test]
    fn the_protocol_of_any_introduction_is_read() {
        let message = serde_json::to_string(&AgentMessage::Hello(Box::new(hello()))).expect("written");
        assert_eq!(protocol_of(&message), Some(super::super::PROTOCOL));
        assert_eq!(protocol_of(r#"{"type": "hello", "protocol": 6, "k6_version": "1.8.1"}"#), Some(6));
        assert_eq!(protocol_of(r#"{"type": "heartbeat", "running": null}"#), None);
    }

    #[test]
    fn every_message_of_a_server_survives_the_wire() {
        let run = RunId::now();
        let (files, defaults) = (BTreeMap::new(), BTreeMap::from([("PAYLOAD".to_owned(), "1k".to_owned())]));
        let scenario = Scenario {
            name: "hash".to_owned(),
            kind: ScenarioKind::K6,
            script: "export default 1".to_owned(),
            files,
            defaults,
        };
        let constant = Form::Constant { level: 10, duration_ms: 1_000 };
        let stages = Form::Stages(vec![Stage { duration_ms: 1_000, target: 10 }, Stage { duration_ms: 0, target: 0 }]);
        let closed = |form| Load::Closed(Closed::new(form).expect("a load"));
        let open = |form| Load::Open(Open::new(form, None).expect("a load"));
        let (steady, ramp) = (constant.clone(), stages.clone());
        for load in [Load::Script, closed(constant), closed(stages), open(steady), open(ramp)] {
            survives(&ServerMessage::Start(Box::new(Job {
                run,
                target: "t".to_owned(),
                size: Size { name: "s".to_owned(), vcpus: 0.5, memory_bytes: 1 << 28 },
                scenario: scenario.clone(),
                parameters: BTreeMap::new(),
                load,
                warm_up_ms: 2_000,
                warm_up_max_ms: None,
                role: Role::Generator(Segment { index: 1, of: 2 }),
            })));
        }
        survives(&ServerMessage::Welcome { protocol: 1, name: "a".to_owned(), heartbeat_ms: 2_000 });
        survives(&ServerMessage::Refused { reason: "upgrade".to_owned() });
        survives(&ServerMessage::Heartbeat);
        survives(&ServerMessage::Cancel { run });
        let base_url = "http://10.0.0.5:1".to_owned();
        survives(&ServerMessage::Pass { run, gate: Gate::Measure, at_ms: 1, base_url });
        survives(&ServerMessage::Clock { asked_ms: 1 });
        survives(&ServerMessage::ChangeKey);
        survives(&ServerMessage::Inspect { id: run.0, scenario: Box::new(scenario) });
    }
}
