//! A server, agents and what is between them.

use std::collections::{BTreeMap, BTreeSet};

use brewbench_agent::{
    scenarios,
    wire::{
        load::{Closed, Form, Load},
        now_ms,
        outcome::Outcome,
    },
};
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    super::{super::assign, Visit},
    AGENTS, Event,
    agent::{Line, SimulatedAgent},
};
use crate::{
    app::{config::Config, ids::RunId, server::Server, state::RunChanged},
    dispatch::{
        renewal::{give_up_expired, prolong_all},
        worker::hear,
    },
    distributed::{
        coordinate::{Meetings, Together},
        ingest,
    },
    fleet::presence::Presence,
    results::store::endings,
    runs::{model::RunSize, store::NewRun},
};

pub struct World {
    pub server: Server,
    pub presence: Presence,
    meetings: Meetings,
    changes: broadcast::Receiver<RunChanged>,
    pub agents: Vec<SimulatedAgent>,
    /// Outcomes on their way, and whose.
    under_way: Vec<(usize, Outcome)>,
    submitted: Vec<RunId>,
    /// Results that count, by what the server answered.
    pub kept: BTreeMap<RunId, String>,
    /// Parts that count, by the same: of which run, and whose.
    pub kept_parts: BTreeSet<(RunId, String)>,
    /// Ends that nothing changes any more.
    pub ended: BTreeMap<RunId, String>,
    _folder: TempDir,
}

impl World {
    pub async fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = Config::new(([127, 0, 0, 1], 0).into(), folder.path());
        let server = Server::start(config, CancellationToken::new()).await.expect("a server");
        let agents: Vec<_> = (0..AGENTS).map(|number| SimulatedAgent::new(&format!("agent-{number}"))).collect();
        for agent in &agents {
            let known = "insert into agent (name, key_hash, created_at) values (?, ?, 0)";
            let known = sqlx::query(known).bind(&agent.name).bind(agent.name.as_bytes());
            known.execute(&server.state.db.write).await.expect("a known agent");
        }
        Self {
            presence: Presence::default(),
            meetings: Meetings::default(),
            changes: server.state.events.listen(),
            server,
            agents,
            under_way: Vec::new(),
            submitted: Vec::new(),
            kept: BTreeMap::new(),
            kept_parts: BTreeSet::new(),
            ended: BTreeMap::new(),
            _folder: folder,
        }
    }

    pub async fn happen(&mut self, event: Event) {
        match event {
            Event::Submit(retries) => self.submit(retries, None, &[]).await,
            Event::SubmitTogether(host, retries) => self.submit_together(host, retries).await,
            Event::Calm(agent) => self.work_well(agent).await,
            Event::Cancel(which) => self.cancel(which).await,
            Event::HandOut => self.hand_out().await,
            Event::Dial(agent) => self.dial(agent).await,
            Event::ToServer(agent, line) => self.server_hears(agent, line).await,
            Event::ToAgent(agent) => self.agent_hears(agent),
            Event::Beat(agent) => self.agents[agent].beat(),
            Event::AgentHangsUp(agent) => self.agents[agent].is_connected = false,
            Event::ServerHangsUp(agent, line) => self.hang_up(agent, line).await,
            Event::Work(agent) => self.agents[agent].work(),
            Event::Fail(agent) => self.agents[agent].fail(),
            Event::Send(agent) => {
                self.under_way.extend(self.agents[agent].spool.values().next().map(|outcome| (agent, outcome.clone())));
            }
            Event::Arrive { which, again, acknowledged } => self.arrive(which, again, acknowledged).await,
            Event::Drop(which) => {
                if which < self.under_way.len() {
                    self.under_way.remove(which);
                }
            }
            Event::KillAgent(agent) => self.agents[agent].die(),
            Event::EndAgent(agent) => self.agents[agent].end(),
            Event::KillServer => self.kill_server().await,
            Event::Pass(seconds) => self.pass(seconds).await,
        }
        self.hear_changes().await;
    }

    async fn submit_together(&mut self, host: usize, retries: u32) {
        let name = self.agents[host].name.clone();
        let others: Vec<String> =
            self.agents.iter().map(|agent| agent.name.clone()).filter(|other| *other != name).collect();
        self.submit(retries, Some(&name), &others).await;
    }

    async fn submit(&mut self, retries: u32, wanted_agent: Option<&str>, generators: &[String]) {
        let scenario = scenarios::bundled().remove(0);
        let load = Load::Closed(Closed::new(Form::Constant { level: 2, duration_ms: 1_000 }).expect("a load"));
        let size = RunSize { name: "small".to_owned(), vcpus: 1.0, memory_bytes: 1 << 28 };
        let run = NewRun {
            id: RunId::now(),
            experiment: None,
            target: "fast",
            size: Some(&size),
            scenario: Some(&scenario.name),
            scenario_sha256: Some(&scenario.sha256()),
            parameters: "{}",
            load: &load,
            warm_up_ms: Some(0),
            warm_up_auto: false,
            repetition: 1,
            retries,
            wanted_agent,
            agent_label: None,
            block: 0,
            generators,
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
        if endings::cancel(&state.db.write, id, "cancelled", now_ms()).await.expect("asked") {
            state.events.tell(RunChanged { run: id.clone(), experiment: None });
        }
    }

    pub async fn hand_out(&mut self) {
        assign::assign(&self.server.state, &self.presence).await.expect("handed out");
    }

    async fn dial(&mut self, agent: usize) {
        let caller = &mut self.agents[agent];
        if caller.is_connected {
            return;
        }
        let (state, meetings) = (&self.server.state, &self.meetings);
        let entered = Visit::enter(&caller.name, Box::new(caller.hello()), state, &self.presence, meetings).await;
        let (visit, from_server, _close) = entered.expect("entered");
        let line = Line {
            connection: visit.connection,
            heard: Some(visit.heard),
            to_server: std::collections::VecDeque::new(),
            from_server,
        };
        caller.lines.push(line);
        caller.is_connected = true;
        caller.connected();
    }

    /// Over one of its lines, the newest first.
    async fn server_hears(&mut self, agent: usize, line: usize) {
        let SimulatedAgent { name, lines, .. } = &mut self.agents[agent];
        let Some(line) = lines.iter_mut().rev().nth(line) else { return };
        let Some(message) = line.to_server.pop_front() else { return };
        let Some(heard) = line.heard.clone() else { return };
        let (state, presence, meetings) = (&self.server.state, &self.presence, &self.meetings);
        let visit = Visit { name, connection: line.connection, state, presence, meetings, heard };
        visit.take(message).await.expect("taken");
    }

    fn agent_hears(&mut self, agent: usize) {
        let caller = &mut self.agents[agent];
        let line = caller.lines.last_mut().filter(|_| caller.is_connected);
        if let Some(message) = line.and_then(|line| line.from_server.try_recv().ok()) {
            caller.hear(message);
        }
    }

    async fn hang_up(&mut self, agent: usize, line: usize) {
        let SimulatedAgent { name, lines, .. } = &mut self.agents[agent];
        let Some(line) = lines.iter_mut().rev().nth(line) else { return };
        let Some(heard) = line.heard.take() else { return };
        let (state, presence, meetings) = (&self.server.state, &self.presence, &self.meetings);
        let visit = Visit { name, connection: line.connection, state, presence, meetings, heard };
        visit.leave().await.expect("left");
    }

    async fn arrive(&mut self, which: usize, again: bool, acknowledged: bool) {
        if which >= self.under_way.len() {
            return;
        }
        let (agent, outcome) = self.under_way[which].clone();
        if !again {
            self.under_way.remove(which);
        }
        let sender = &mut self.agents[agent];
        let state = &self.server.state;
        let settled = ingest::accept(&state.db, &sender.name, &outcome).await;
        // Its place-holder has left the queue.
        let Ok(settled) = settled else { return };
        if acknowledged {
            sender.spool.remove(&outcome.run);
        }
        let (name, id) = (sender.name.clone(), RunId::from(outcome.run));
        let together = Together { state, presence: &self.presence, meetings: &self.meetings };
        together.delivered(&name, outcome.run).await.expect("told");
        state.events.tell(RunChanged { run: id.clone(), experiment: None });
        if settled.kept {
            let run = self.stored().await.into_iter().find(|run| run.id == id).expect("a run");
            // A part may count for a run that goes on, or that was given up.
            if run.is_together {
                self.kept_parts.insert((id.clone(), name));
            }
            if !run.is_together || matches!(run.phase.as_str(), "finished" | "failed") {
                self.kept.insert(id, run.phase);
            }
        }
    }

    async fn kill_server(&mut self) {
        (self.presence, self.meetings) = (Presence::default(), Meetings::default());
        for line in self.agents.iter_mut().flat_map(|agent| &mut agent.lines) {
            line.heard = None;
        }
        prolong_all(&self.server.state).await.expect("prolonged");
    }

    pub async fn pass(&mut self, seconds: u8) {
        let state = &self.server.state;
        let moved = sqlx::query("update lease set expires_at = expires_at - ?").bind(i64::from(seconds) * 1_000);
        moved.execute(&state.db.write).await.expect("moved");
        give_up_expired(state).await.expect("given up");
    }

    /// As the dispatch does, which is told of every change.
    pub async fn hear_changes(&mut self) {
        while let Ok(event) = self.changes.try_recv() {
            let heard = hear(&self.server.state, &self.presence, &self.meetings, Some(&event)).await;
            heard.expect("passed on");
        }
    }

    pub async fn work_well(&mut self, agent: usize) {
        // Old lines are found dead, with what was on them.
        let newest = self.agents[agent].lines.len().saturating_sub(1);
        for line in (0..self.agents[agent].lines.len()).rev() {
            let is_used = self.agents[agent].is_connected && line == newest;
            let is_known = self.agents[agent].lines[line].heard.is_some();
            if is_used && !is_known {
                self.agents[agent].is_connected = false;
            } else if is_known && !is_used {
                self.hang_up(agent, newest - line).await;
            }
        }
        self.dial(agent).await;
        self.agents[agent].beat();
        for _ in 0..8 {
            self.server_hears(agent, 0).await;
            self.agent_hears(agent);
        }
        self.agents[agent].work();
        for outcome in self.agents[agent].spool.values().cloned().collect::<Vec<_>>() {
            self.under_way.push((agent, outcome));
        }
        while !self.under_way.is_empty() {
            self.arrive(0, false, true).await;
        }
        self.hear_changes().await;
    }
}
