//! A server, agents and what is between them; what must hold at any time and in the end.

use std::collections::BTreeMap;

use brewbench_agent::{
    scenarios,
    wire::{
        RunId,
        load::{Closed, Form, Load},
        now_ms,
        outcome::Outcome,
    },
};
use proptest::{prelude::TestCaseError, prop_assert, prop_assert_eq};
use tempfile::TempDir;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        super::{assign, give_up_expired, lease_end, pass_cancellation_on, together::Meetings},
        Visit,
    },
    AGENTS, Event,
    agent::{Line, SimulatedAgent},
};
use crate::{
    config::Config,
    fleet::Presence,
    runs::{
        RunSize, ingest,
        queries::{self, NewRun, endings, leases},
    },
    server::Server,
    state::RunChanged,
};

/// After so many rounds in which everything works, everything has ended.
const ROUNDS: usize = 120;

pub struct World {
    server: Server,
    presence: Presence,
    changes: broadcast::Receiver<RunChanged>,
    agents: Vec<SimulatedAgent>,
    /// Outcomes on their way, and whose.
    under_way: Vec<(usize, Outcome)>,
    submitted: Vec<String>,
    /// Results that count, by what the server answered.
    kept: BTreeMap<String, String>,
    /// Ends that nothing changes any more.
    ended: BTreeMap<String, String>,
    _folder: TempDir,
}

/// A run as it stands.
#[derive(sqlx::FromRow)]
struct Stored {
    id: String,
    retry_of: Option<String>,
    phase: String,
    verdict: Option<String>,
    leased: bool,
}

impl Stored {
    fn counts(&self) -> bool {
        self.phase == "finished" && self.verdict.as_deref() != Some("invalid")
    }

    fn has_ended(&self) -> bool {
        matches!(self.phase.as_str(), "finished" | "failed" | "cancelled" | "lost")
    }
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
            changes: server.state.events.listen(),
            server,
            agents,
            under_way: Vec::new(),
            submitted: Vec::new(),
            kept: BTreeMap::new(),
            ended: BTreeMap::new(),
            _folder: folder,
        }
    }

    pub async fn happen(&mut self, event: Event) {
        match event {
            Event::Submit(retries) => self.submit(retries).await,
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

    async fn submit(&mut self, retries: u32) {
        let scenario = scenarios::bundled().remove(0);
        let load = Load::Closed(Closed::new(Form::Constant { level: 2, duration_ms: 1_000 }).expect("a load"));
        let size = RunSize { name: "small".to_owned(), vcpus: 1.0, memory_bytes: 1 << 28 };
        let run = NewRun {
            id: RunId::now().to_string(),
            experiment: None,
            target: "fast",
            size: Some(&size),
            scenario: Some(&scenario.name),
            scenario_sha256: Some(&scenario.sha256()),
            parameters: "{}",
            load: &load,
            warm_up_ms: Some(0),
            repetition: 1,
            retries,
            wanted_agent: None,
            agent_label: None,
            block: 0,
            generators: &[],
            created_by: "test",
            now: now_ms(),
        };
        let mut connection = self.server.state.db.write.acquire().await.expect("a connection");
        queries::queue(&mut connection, &run).await.expect("queued");
        self.submitted.push(run.id);
    }

    async fn cancel(&mut self, which: usize) {
        let Some(id) = self.submitted.get(which) else { return };
        let state = &self.server.state;
        if endings::cancel(&state.db.write, id, "cancelled", now_ms()).await.expect("asked") {
            state.events.tell(RunChanged { run: id.parse().expect("an id"), experiment: None });
        }
    }

    async fn hand_out(&mut self) {
        assign::assign(&self.server.state, &self.presence).await.expect("handed out");
    }

    async fn dial(&mut self, agent: usize) {
        let caller = &mut self.agents[agent];
        if caller.is_connected {
            return;
        }
        let (state, meetings) = (&self.server.state, Meetings::default());
        let entered = Visit::enter(&caller.name, Box::new(caller.hello()), state, &self.presence, &meetings).await;
        let (visit, from_server, _close) = entered.expect("entered");
        let line = Line {
            connection: visit.connection,
            heard: Some(visit.heard),
            to_server: std::collections::VecDeque::new(),
            from_server,
        };
        caller.lines.push(line);
        caller.is_connected = true;
    }

    /// Over one of its lines, the newest first.
    async fn server_hears(&mut self, agent: usize, line: usize) {
        let SimulatedAgent { name, lines, .. } = &mut self.agents[agent];
        let Some(line) = lines.iter_mut().rev().nth(line) else { return };
        let Some(message) = line.to_server.pop_front() else { return };
        let Some(heard) = line.heard.clone() else { return };
        let (state, presence, meetings) = (&self.server.state, &self.presence, &Meetings::default());
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
        let (state, presence, meetings) = (&self.server.state, &self.presence, &Meetings::default());
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
        let settled = ingest::settle(&self.server.state.db, &sender.name, &outcome).await;
        // Its place-holder has left the queue.
        let Ok(settled) = settled else { return };
        if acknowledged {
            sender.spool.remove(&outcome.run);
        }
        if settled.kept {
            let phase = self.stored().await.into_iter().find(|run| run.id == outcome.run.to_string());
            self.kept.insert(outcome.run.to_string(), phase.expect("a run").phase);
        }
    }

    async fn kill_server(&mut self) {
        self.presence = Presence::default();
        for line in self.agents.iter_mut().flat_map(|agent| &mut agent.lines) {
            line.heard = None;
        }
        let state = &self.server.state;
        leases::prolong_all(&state.db.write, lease_end(state)).await.expect("prolonged");
    }

    async fn pass(&mut self, seconds: u8) {
        let state = &self.server.state;
        let moved =
            sqlx::query("update run set lease_expires_at = lease_expires_at - ?").bind(i64::from(seconds) * 1_000);
        moved.execute(&state.db.write).await.expect("moved");
        give_up_expired(state).await.expect("given up");
    }

    /// As the dispatch does, which is told of every change.
    async fn hear_changes(&mut self) {
        while let Ok(event) = self.changes.try_recv() {
            pass_cancellation_on(&self.server.state, &self.presence, Some(event)).await.expect("passed on");
        }
    }

    async fn stored(&self) -> Vec<Stored> {
        let all = "select id, retry_of, phase, verdict, lease_expires_at is not null as leased from run order by seq";
        sqlx::query_as(all).fetch_all(&self.server.state.db.read).await.expect("runs")
    }

    /// What must hold at any time.
    pub async fn check(&mut self) -> Result<(), TestCaseError> {
        let stored = self.stored().await;
        for (id, phase) in &self.kept {
            let now = stored.iter().find(|run| run.id == *id).map(|run| run.phase.as_str());
            prop_assert_eq!(now, Some(phase.as_str()), "an acknowledged result is gone");
        }
        for run in &stored {
            let final_phase = matches!(run.phase.as_str(), "finished" | "failed" | "cancelled");
            let before = self.ended.get(&run.id);
            prop_assert!(before.is_none_or(|before| *before == run.phase), "{} became {}", run.id, run.phase);
            if final_phase {
                self.ended.insert(run.id.clone(), run.phase.clone());
            }
            prop_assert!(!(run.has_ended() && run.leased), "a run that has ended is leased");
        }
        let mut counting: BTreeMap<&str, usize> = BTreeMap::new();
        for run in stored.iter().filter(|run| run.counts()) {
            *counting.entry(cell(&stored, run)).or_default() += 1;
        }
        prop_assert!(counting.values().all(|count| *count == 1), "a cell counts twice");
        Ok(())
    }

    /// From now on everything works: then every run ends, every outcome comes home and everybody is free.
    pub async fn come_to_rest(&mut self) -> Result<(), TestCaseError> {
        for round in 0..ROUNDS {
            for agent in 0..AGENTS {
                self.work_well(agent).await;
            }
            self.hand_out().await;
            self.hear_changes().await;
            if round % 10 == 9 {
                // Whoever holds something has said so in the meantime.
                self.pass(10).await;
                self.hear_changes().await;
            }
            self.check().await?;
            if self.is_at_rest().await {
                return Ok(());
            }
        }
        let stored = self.stored().await;
        let open: Vec<_> = stored.iter().filter(|run| !run.has_ended()).map(|run| (&run.id, &run.phase)).collect();
        let busy: Vec<_> =
            self.presence.list().into_iter().map(|(name, agent)| (name, agent.busy, agent.declined)).collect();
        let known: Vec<_> = self.agents.iter().map(|agent| (agent.running(), agent.knows())).collect();
        Err(TestCaseError::fail(format!("it does not come to rest: {open:?}, {busy:?}, {known:?}")))
    }

    async fn work_well(&mut self, agent: usize) {
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

    async fn is_at_rest(&self) -> bool {
        let free = |(_, agent): &(String, crate::fleet::Connected)| agent.is_free();
        self.stored().await.iter().all(Stored::has_ended)
            && self.agents.iter().all(|agent| agent.is_idle() && agent.spool.is_empty())
            && self.presence.list().iter().all(free)
    }
}

/// The first of those that were done in place of each other.
fn cell<'a>(stored: &'a [Stored], run: &'a Stored) -> &'a str {
    let before = run.retry_of.as_ref().and_then(|before| stored.iter().find(|other| other.id == *before));
    before.map_or(run.id.as_str(), |before| cell(stored, before))
}
