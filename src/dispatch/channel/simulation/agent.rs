//! A simulated agent: a real session, with simulated disk, run and connections.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use brewbench_agent::{
    connection::session::{Accepts, Effect, Input, Session},
    engine,
};
use brewbench_wire::{
    PROTOCOL, Phase,
    engine::EngineVersion,
    job::{Job, Role},
    messages::{AgentMessage, Gate, Hello, Machine, ServerMessage, TargetOffer},
    now_ms,
    outcome::{Cause, Conditions, Cores, Ended, Enforced, Mechanism, Outcome},
    target::Identity,
    work_done::WorkDone,
};
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::fleet::model::NamedAgent;

const SUMMARY: &str = include_str!("../../../../tests/fixtures/k6/summary-export-hash-v1.8.1.json");

/// Both ends of one connection.
pub struct LinkEnds {
    pub connection: Uuid,
    /// Present until the server notices that the connection is dead.
    pub heard: Option<watch::Sender<()>>,
    pub to_server: VecDeque<AgentMessage>,
    pub from_server: mpsc::UnboundedReceiver<ServerMessage>,
}

/// The run in progress.
struct Work {
    job: Job,
    step: usize,
    /// The gate that it waits for.
    waits: Option<Gate>,
    stopped: bool,
}

/// A step of a job.
#[derive(Clone, Copy)]
enum Step {
    Enter(Phase),
    /// Announces its arrival at a gate, and waits for the others.
    Wait(Gate),
    /// Announces its arrival at a gate, and continues.
    Announce(Gate),
}

const ALONE: [Step; 4] = [
    Step::Enter(Phase::Preparing),
    Step::Enter(Phase::WarmingUp),
    Step::Enter(Phase::Measuring),
    Step::Enter(Phase::Collecting),
];

const HOST: [Step; 7] = [
    Step::Enter(Phase::Preparing),
    Step::Wait(Gate::Load),
    Step::Enter(Phase::WarmingUp),
    Step::Wait(Gate::Measure),
    Step::Enter(Phase::Measuring),
    Step::Wait(Gate::End),
    Step::Enter(Phase::Collecting),
];

const GENERATOR: [Step; 3] = [Step::Wait(Gate::Load), Step::Wait(Gate::Measure), Step::Announce(Gate::End)];

/// Returns the steps of a job without faults.
fn steps(role: Role) -> &'static [Step] {
    match role {
        Role::Alone => &ALONE,
        Role::Host => &HOST,
        Role::Generator(_) => &GENERATOR,
    }
}

pub struct SimulatedAgent {
    pub known: NamedAgent,
    pub life: Uuid,
    session: Session,
    /// Outcomes on disk, which survive a restart.
    pub spool: BTreeMap<brewbench_wire::RunId, Outcome>,
    work: Option<Work>,
    /// The newest is last; the agent uses that one while it believes to be connected.
    pub lines: Vec<LinkEnds>,
    pub is_connected: bool,
}

impl SimulatedAgent {
    pub fn new(known: NamedAgent) -> Self {
        Self {
            known,
            life: Uuid::new_v4(),
            session: Session::new(Accepts::AnyScenario),
            spool: BTreeMap::new(),
            work: None,
            lines: Vec::new(),
            is_connected: false,
        }
    }

    /// Returns the `Hello` that the daemon would send now.
    pub fn hello(&self) -> Hello {
        let offer = TargetOffer {
            name: "fast".to_owned(),
            version: "1".to_owned(),
            description: String::new(),
            identity: Identity::Process { sha256: "ab".repeat(32), code: None },
            anywhere: true,
            profile: None,
            compiles_at_run_time: false,
            revisions: Vec::new(),
        };
        let running = self.session.running();
        let mut holds: Vec<brewbench_wire::RunId> = self.spool.keys().copied().collect();
        holds.extend(running);
        Hello {
            protocol: PROTOCOL,
            version: "1".to_owned(),
            now_ms: now_ms(),
            machine: Machine {
                hostname: "rack".to_owned(),
                cores: 8,
                physical_cores: Some(8),
                memory_bytes: 32 << 30,
                kernel: String::new(),
                cpu_model: String::new(),
                cpu: Mechanism::Cgroup2,
                memory: Mechanism::Cgroup2,
            },
            targets: vec![offer],
            any_scenario: true,
            running,
            holds,
            life: Some(self.life),
            load_address: Some([10, 0, 0, 5].into()),
            generators: None,
            engines: vec![engine::k6::offer(Path::new("/usr/bin/k6"), "1.8.1", None)],
        }
    }

    pub fn running(&self) -> Option<brewbench_wire::RunId> {
        self.session.running()
    }

    pub fn is_idle(&self) -> bool {
        self.work.is_none() && self.session.running().is_none()
    }

    /// Is killed: its disk stays, and its last messages may still be in transit.
    pub fn die(&mut self) {
        self.is_connected = false;
        self.life = Uuid::new_v4();
        self.session = Session::new(Accepts::AnyScenario);
        self.work = None;
    }

    pub fn receive(&mut self, message: ServerMessage) {
        self.step(Input::Server(message), None);
    }

    /// Reports a new connection to the session.
    pub fn connected(&mut self) {
        self.step(Input::Connected, None);
    }

    pub fn heartbeat(&mut self) {
        let running = self.session.running();
        self.send(AgentMessage::Heartbeat { running: running.into_iter().collect(), fault: None });
    }

    pub fn shut_down(&mut self) {
        self.step(Input::Shutdown, None);
        self.restart_if_over();
    }

    /// Continues the job by one step.
    pub fn work(&mut self) {
        let Some(work) = &mut self.work else { return };
        if work.stopped {
            return self.finish(Ended::Cancelled);
        }
        if work.waits.is_some() {
            return;
        }
        let (run, role) = (work.job.run, work.job.role);
        let next = steps(role).get(work.step).copied();
        work.step += 1;
        let serves = (role == Role::Host).then(|| "http://10.0.0.5:1".to_owned());
        match next {
            Some(Step::Enter(phase)) => self.step(Input::Phase(run, phase), None),
            Some(Step::Announce(gate)) => self.step(Input::At(run, gate, serves), None),
            Some(Step::Wait(gate)) => {
                work.waits = Some(gate);
                self.step(Input::At(run, gate, serves), None);
            }
            None => self.finish(Ended::Finished),
        }
    }

    pub fn fail(&mut self) {
        let reason = "the target died".to_owned();
        let ended = match &self.work {
            Some(work) if work.stopped => Ended::Cancelled,
            _ => Ended::Failed { reason, cause: Cause::Other },
        };
        self.finish(ended);
    }

    fn finish(&mut self, ended: Ended) {
        let Some(Work { job, .. }) = self.work.take() else { return };
        let outcome = outcome(&job, ended);
        self.step(Input::Over(job.run), Some(outcome));
        self.restart_if_over();
    }

    /// Restarts the agent after it has shut down.
    fn restart_if_over(&mut self) {
        if self.session.is_over() {
            self.die();
        }
    }

    fn step(&mut self, input: Input, outcome: Option<Outcome>) {
        let mut outcome = outcome;
        for effect in self.session.step(input) {
            match effect {
                Effect::Send(message) => self.send(message),
                Effect::Start(job) => {
                    assert!(self.work.is_none(), "two jobs at once");
                    self.work = Some(Work { job: *job, step: 0, waits: None, stopped: false });
                }
                Effect::Stop => self.work.iter_mut().for_each(|work| work.stopped = true),
                Effect::Keep(run) => {
                    self.spool.extend(outcome.take().map(|outcome| (run, outcome)));
                    self.send(AgentMessage::Done { run });
                }
                Effect::Open(opening) => {
                    for work in self.work.iter_mut().filter(|work| work.waits == Some(opening.gate)) {
                        work.waits = None;
                    }
                }
                Effect::ReportClock { sent_ms } => self.send(AgentMessage::Clock { sent_ms, now_ms: now_ms() }),
                Effect::Forget | Effect::Inspect(..) | Effect::StopInspecting | Effect::ChangeKey => {}
            }
        }
    }

    fn send(&mut self, message: AgentMessage) {
        if let Some(line) = self.lines.last_mut().filter(|_| self.is_connected) {
            line.to_server.push_back(message);
        }
    }

    /// Returns the run in progress and the runs with a stored outcome.
    pub fn known_runs(&self) -> BTreeSet<brewbench_wire::RunId> {
        self.spool.keys().copied().chain(self.work.as_ref().map(|work| work.job.run)).collect()
    }
}

fn outcome(job: &Job, ended: Ended) -> Outcome {
    Outcome {
        generators: Vec::new(),
        run: job.run,
        summary: (ended == Ended::Finished && job.role != Role::Host).then(|| SUMMARY.to_owned()),
        ended,
        times: Vec::new(),
        sent_at_ms: now_ms(),
        series: None,
        warm_up: None,
        work: WorkDone::default(),
        target_log: String::new(),
        generator_log: String::new(),
        enforced: Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 },
        observed: None,
        cores: Cores::default(),
        engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
        target: None,
        target_version: String::new(),
        environment: BTreeMap::new(),
        conditions: Conditions::default(),
        profiled: None,
    }
}
