//! The simulated world: a server, its agents and the network between them.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_wire::{
    load::{Closed, Form, Load},
    now_ms,
    outcome::Outcome,
    scenarios,
};
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    super::{super::assign, AgentConnection},
    AGENTS, Event,
    agent::{LinkEnds, SimulatedAgent},
};
use crate::{
    app::{config::Config, ids::RunId, server::Server, state::RunChanged},
    dispatch::{
        renewal::{give_up_expired, renew_all},
        worker::handle_change,
    },
    distributed::{
        coordinate::{Barriers, Coordinator},
        ingest,
    },
    fleet::{model::NamedAgent, presence::Presence},
    results::store::endings,
    runs::{
        model::{RunSize, RunSpec},
        store::NewRun,
    },
};

pub struct World {
    pub server: Server,
    pub presence: Presence,
    barriers: Barriers,
    changes: broadcast::Receiver<RunChanged>,
    pub agents: Vec<SimulatedAgent>,
    /// Outcomes in transit, each with its agent.
    in_transit: Vec<(usize, Outcome)>,
    submitted: Vec<RunId>,
    /// Results that the server acknowledged as counting, with the phase of the run.
    pub acknowledged: BTreeMap<RunId, String>,
    /// Run and agent of each part that the server acknowledged as counting.
    pub acknowledged_parts: BTreeSet<(RunId, String)>,
    /// Runs that have reached a final phase, with that phase.
    pub ended: BTreeMap<RunId, String>,
    _folder: TempDir,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config::new(([127, 0, 0, 1], 0).into(), folder.path());
        let server = Server::start(config, CancellationToken::new()).await.expect("a server");
        let mut agents = Vec::new();
        for name in (0..AGENTS).map(|number| format!("agent-{number}")) {
            let id = "insert into agent (name, key_hash, created_at) values (?, ?, 0) returning id";
            let id = sqlx::query_scalar(id).bind(&name).bind(name.as_bytes());
            let id = id.fetch_one(&server.state.db.write).await.expect("a known agent");
            agents.push(SimulatedAgent::new(NamedAgent { id, name }));
        }
        Self {
            presence: Presence::default(),
            barriers: Barriers::default(),
            changes: server.state.events.listen(),
            server,
            agents,
            in_transit: Vec::new(),
            submitted: Vec::new(),
            acknowledged: BTreeMap::new(),
            acknowledged_parts: BTreeSet::new(),
            ended: BTreeMap::new(),
            _folder: folder,
        }
    }

    pub async fn apply(&mut self, event: Event) {
        match event {
            Event::Submit(retries) => self.submit(retries, None, &[]).await,
            Event::SubmitDistributed(host, retries) => self.submit_distributed(host, retries).await,
            Event::Calm(agent) => self.work_without_faults(agent).await,
            Event::Cancel(which) => self.cancel(which).await,
            Event::Assign => self.assign().await,
            Event::Connect(agent) => self.connect(agent).await,
            Event::ToServer(agent, line) => self.server_receives(agent, line).await,
            Event::ToAgent(agent) => self.agent_receives(agent),
            Event::Heartbeat(agent) => self.agents[agent].heartbeat(),
            Event::AgentHangsUp(agent) => self.agents[agent].is_connected = false,
            Event::ServerHangsUp(agent, line) => self.disconnect(agent, line).await,
            Event::Work(agent) => self.agents[agent].work(),
            Event::Fail(agent) => self.agents[agent].fail(),
            Event::Send(agent) => {
                self.in_transit
                    .extend(self.agents[agent].spool.values().next().map(|outcome| (agent, outcome.clone())));
            }
            Event::Arrive { which, again, acknowledged } => self.arrive(which, again, acknowledged).await,
            Event::Drop(which) => {
                if which < self.in_transit.len() {
                    self.in_transit.remove(which);
                }
            }
            Event::KillAgent(agent) => self.agents[agent].die(),
            Event::ShutDownAgent(agent) => self.agents[agent].shut_down(),
            Event::KillServer => self.kill_server().await,
            Event::Pass(seconds) => self.pass(seconds).await,
        }
        self.handle_changes().await;
    }

    async fn submit_distributed(&mut self, host: usize, retries: u32) {
        let name = self.agents[host].known.name.clone();
        let others: Vec<String> =
            self.agents.iter().map(|agent| agent.known.name.clone()).filter(|other| *other != name).collect();
        self.submit(retries, Some(&name), &others).await;
    }

    async fn submit(&mut self, retries: u32, required_agent: Option<&str>, generators: &[String]) {
        let scenario = scenarios::bundled().remove(0);
        let load = Load::Closed(Closed::new(Form::Constant { level: 2, duration_ms: 1_000 }).expect("a load"));
        let size = RunSize { name: "small".to_owned(), vcpus: 1.0, memory_bytes: 1 << 28, replicas: 1 };
        let spec = RunSpec {
            target: "fast".to_owned(),
            size: Some(size),
            scenario_sha256: Some(scenario.sha256()),
            scenario: Some(scenario.name),
            warm_up_s: Some(0.0),
            generators: generators.to_vec(),
            ..RunSpec::default()
        };
        let run = NewRun {
            id: RunId::now(),
            experiment: None,
            spec: &spec.under(load),
            repetition: 1,
            retries,
            required_agent,
            agent_label: None,
            block: 0,
            created_by: "test",
            now: now_ms(),
        };
        let mut connection = self.server.state.db.write.acquire().await.expect("a connection");
        crate::runs::store::queue(&mut connection, &run).await.expect("queued");
        self.submitted.push(run.id);
    }

    async fn cancel(&mut self, which: usize) {
        let Some(id) = self.submitted.get(which) else { return };
        let state = &self.server.state;
        if !endings::cancel(&state.db.write, id, "cancelled", now_ms()).await.expect("cancelled").is_empty() {
            state.events.publish(RunChanged { run: id.clone(), experiment: None });
        }
    }

    pub async fn assign(&mut self) {
        assign::assign(&self.server.state, &self.presence).await.expect("assigned");
    }

    async fn connect(&mut self, agent: usize) {
        let caller = &mut self.agents[agent];
        if caller.is_connected {
            return;
        }
        let (state, barriers) = (&self.server.state, &self.barriers);
        let entered =
            AgentConnection::enter(&caller.known, Box::new(caller.hello()), state, &self.presence, barriers).await;
        let (connection, from_server, _close) = entered.expect("entered");
        let line = LinkEnds {
            connection: connection.connection,
            heard: Some(connection.heard),
            to_server: std::collections::VecDeque::new(),
            from_server,
        };
        caller.lines.push(line);
        caller.is_connected = true;
        caller.connected();
    }

    /// Delivers a message to the server over one of the agent's lines, counted from the newest.
    async fn server_receives(&mut self, agent: usize, line: usize) {
        let SimulatedAgent { known: agent, lines, .. } = &mut self.agents[agent];
        let Some(line) = lines.iter_mut().rev().nth(line) else { return };
        let Some(message) = line.to_server.pop_front() else { return };
        let Some(heard) = line.heard.clone() else { return };
        let (state, presence, barriers) = (&self.server.state, &self.presence, &self.barriers);
        let connection = AgentConnection { agent, connection: line.connection, state, presence, barriers, heard };
        connection.handle(message).await.expect("handled");
    }

    fn agent_receives(&mut self, agent: usize) {
        let caller = &mut self.agents[agent];
        let line = caller.lines.last_mut().filter(|_| caller.is_connected);
        if let Some(message) = line.and_then(|line| line.from_server.try_recv().ok()) {
            caller.receive(message);
        }
    }

    async fn disconnect(&mut self, agent: usize, line: usize) {
        let SimulatedAgent { known: agent, lines, .. } = &mut self.agents[agent];
        let Some(line) = lines.iter_mut().rev().nth(line) else { return };
        let Some(heard) = line.heard.take() else { return };
        let (state, presence, barriers) = (&self.server.state, &self.presence, &self.barriers);
        let connection = AgentConnection { agent, connection: line.connection, state, presence, barriers, heard };
        connection.leave().await.expect("left");
    }

    async fn arrive(&mut self, which: usize, again: bool, acknowledged: bool) {
        if which >= self.in_transit.len() {
            return;
        }
        let (agent, outcome) = self.in_transit[which].clone();
        if !again {
            self.in_transit.remove(which);
        }
        let sender = &mut self.agents[agent];
        let state = &self.server.state;
        let settled = Box::pin(ingest::accept(&state.db, &sender.known, outcome.clone())).await;
        // A retry that was withdrawn from the queue no longer exists.
        let Ok(settled) = settled else { return };
        if acknowledged {
            sender.spool.remove(&outcome.run);
        }
        let (name, id) = (sender.known.name.clone(), RunId::from(outcome.run));
        let coordinator = Coordinator { state, presence: &self.presence, barriers: &self.barriers };
        coordinator.delivered(&name, outcome.run).await.expect("delivered");
        state.events.publish(RunChanged { run: id.clone(), experiment: None });
        if settled.counts {
            let run = self.stored().await.into_iter().find(|run| run.id == id).expect("a run");
            // A part may count for a run that is in progress or was given up.
            if run.is_distributed {
                self.acknowledged_parts.insert((id.clone(), name));
            }
            if !run.is_distributed || matches!(run.phase.as_str(), "finished" | "failed") {
                self.acknowledged.insert(id, run.phase);
            }
        }
    }

    async fn kill_server(&mut self) {
        (self.presence, self.barriers) = (Presence::default(), Barriers::default());
        for line in self.agents.iter_mut().flat_map(|agent| &mut agent.lines) {
            line.heard = None;
        }
        renew_all(&self.server.state).await.expect("renewed");
    }

    pub async fn pass(&mut self, seconds: u8) {
        let state = &self.server.state;
        let moved = sqlx::query("update lease set expires_at = expires_at - ?").bind(i64::from(seconds) * 1_000);
        moved.execute(&state.db.write).await.expect("moved");
        give_up_expired(state).await.expect("given up");
    }

    /// Handles every change as the dispatch task does.
    pub async fn handle_changes(&mut self) {
        while let Ok(event) = self.changes.try_recv() {
            let handled = handle_change(&self.server.state, &self.presence, &self.barriers, Some(&event)).await;
            handled.expect("handled");
        }
    }

    pub async fn work_without_faults(&mut self, agent: usize) {
        // Both sides notice dead lines; messages on them are lost.
        let newest = self.agents[agent].lines.len().saturating_sub(1);
        for line in (0..self.agents[agent].lines.len()).rev() {
            let is_used = self.agents[agent].is_connected && line == newest;
            let is_known = self.agents[agent].lines[line].heard.is_some();
            if is_used && !is_known {
                self.agents[agent].is_connected = false;
            } else if is_known && !is_used {
                self.disconnect(agent, newest - line).await;
            }
        }
        self.connect(agent).await;
        self.agents[agent].heartbeat();
        for _ in 0..8 {
            self.server_receives(agent, 0).await;
            self.agent_receives(agent);
        }
        self.agents[agent].work();
        for outcome in self.agents[agent].spool.values().cloned().collect::<Vec<_>>() {
            self.in_transit.push((agent, outcome));
        }
        while !self.in_transit.is_empty() {
            self.arrive(0, false, true).await;
        }
        self.handle_changes().await;
    }
}
