//! A thousand agents on one server: cost while idle, delay from a submission to an agent's response, and time until all
//! have reconnected after the server was killed. Runs are simulated; the connections are real, each with its own key,
//! heartbeat and reconnection.

use std::{
    collections::HashMap,
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Context;
use brewbench::{
    auth::secret::{self, Kind},
    experiments::{model::ExperimentWithRuns, plan::Plan},
    runs::load::LoadBody,
};
use brewbench_agent::{
    connection::{
        link::{Condition, Link, LinkEvent, State},
        spool::Spool,
        uploader::Uploader,
    },
    engine,
    series::live::Live,
};
use brewbench_io::client::Client;
use brewbench_wire::{
    PROTOCOL, Phase, RunId,
    engine::EngineVersion,
    job::Job,
    messages::{AgentMessage, Hello, Machine, ServerMessage, TargetOffer},
    now_ms,
    outcome::{Cause, Conditions, Cores, Ended, Enforced, Mechanism, Outcome},
    target::Identity,
    work_done::WorkDone,
};
use reqwest::Method;
use sqlx::{SqlitePool, sqlite::SqliteConnectOptions};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, interval_at, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    figures::{Figure, p50_p99},
    site::Site,
};

/// Returns the title of the table.
pub fn title() -> String {
    format!("{AGENTS} agents on one server")
}

/// Connected agents.
const AGENTS: usize = 1_000;
/// Submitted experiments, of one run each.
const SUBMISSIONS: u32 = 150;
/// Submissions per second.
const RATE: u32 = 10;
/// Time without any work.
const IDLE: Duration = Duration::from_secs(10);
/// Time without a server, after which the agents have reached their longest reconnection delay.
const AWAY: Duration = Duration::from_secs(6);

const PATIENCE: Duration = Duration::from_mins(2);
const TARGET: &str = "simulated";

/// Messages that the agents have received.
struct Received {
    /// When each agent last received a message.
    heard: Mutex<Vec<Option<Instant>>>,
    /// When an agent first received each run.
    begun: Mutex<HashMap<RunId, Instant>>,
}

impl Received {
    fn note(&self, agent: usize) {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)[agent] = Some(Instant::now());
    }

    fn begin(&self, run: RunId) {
        self.begun.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_insert_with(Instant::now);
    }

    /// Waits until all have received a message after `since` and returns the time that took, s.
    async fn all(&self, since: Instant) -> anyhow::Result<f64> {
        let all = async {
            loop {
                let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if heard.iter().all(|at| at.is_some_and(|at| at > since)) {
                    return since.elapsed().as_secs_f64();
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, all).await.context("not all agents are connected")
    }
}

/// Measures all figures.
pub async fn measure() -> anyhow::Result<Vec<Figure>> {
    eprintln!("fleet: {AGENTS} agents, {IDLE:?} idle, {SUBMISSIONS} submissions at {RATE} a second, a killed server");
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("site");
    let mut site = Site::start(&data).await?;
    let keys = enrol(&data).await?;
    let received = Arc::new(Received { heard: Mutex::new(vec![None; AGENTS]), begun: Mutex::default() });
    let (end, mut agents) = (CancellationToken::new(), JoinSet::new());
    let started = Instant::now();
    for (number, key) in keys.into_iter().enumerate() {
        let client = Client::new(&site.url, Some(key))?;
        let link = link(number, client, &folder.path().join("spool"))?;
        agents.spawn(simulate_agent(number, link, Arc::clone(&received), end.clone()));
    }
    let first_s = received.all(started).await?;
    sleep(Duration::from_secs(3)).await;
    let (before, begun) = (site.process.cpu_s()?, Instant::now());
    sleep(IDLE).await;
    let idle_cores = (site.process.cpu_s()? - before) / begun.elapsed().as_secs_f64();
    let idle_mib = site.process.anonymous_mib()?;
    let (before, begun) = (site.process.cpu_s()?, Instant::now());
    let dispatch_ms = dispatch(&site.client, &received).await?;
    // Heartbeats cost the same with and without submissions.
    let heartbeats_s = idle_cores * begun.elapsed().as_secs_f64();
    let dispatch_cpu_ms = (site.process.cpu_s()? - before - heartbeats_s) * 1e3 / f64::from(SUBMISSIONS);

    let port = site.url.port().context("a port")?;
    site.process.kill().await?;
    sleep(AWAY).await;
    let away = Instant::now();
    site.process = Site::restart(&data, port).await?;
    let back_s = received.all(away).await?;
    end.cancel();
    while agents.join_next().await.is_some() {}
    site.process.stop().await?;
    let mut figures = vec![
        Figure::new("CPU of the server while nothing happens", "% of a core", idle_cores * 100.0).at_most(10.0),
        Figure::new("anonymous memory of the server then", "MiB", idle_mib).at_most(64.0),
    ];
    figures.extend(p50_p99("from a submission to the agent's answer", &dispatch_ms, Some(100.0)));
    figures.extend([
        Figure::new("CPU of the server for a submission and its result", "ms", dispatch_cpu_ms).at_most(6.0),
        Figure::new("until all are connected that connect at once", "s", first_s),
        Figure::new(format!("the same after a kill and {} s without a server", AWAY.as_secs()), "s", back_s)
            .at_most(10.0),
    ]);
    Ok(figures)
}

/// Inserts agents into the database, each with its own key, and returns the keys.
async fn enrol(data: &Path) -> anyhow::Result<Vec<String>> {
    let pool = SqlitePool::connect_with(SqliteConnectOptions::new().filename(data.join("brewbench.db"))).await?;
    let (mut transaction, mut keys) = (pool.begin().await?, Vec::new());
    for number in 0..AGENTS {
        let key = secret::generate(Kind::AgentKey);
        sqlx::query("insert into agent (name, key_hash, created_at, key_at) values (?, ?, ?3, ?3)")
            .bind(format!("agent-{number:04}"))
            .bind(secret::hash(&key))
            .bind(now_ms())
            .execute(&mut *transaction)
            .await?;
        keys.push(key);
    }
    transaction.commit().await?;
    pool.close().await;
    Ok(keys)
}

fn link(number: usize, client: Client, spool: &Path) -> anyhow::Result<Link> {
    let offer = |name: &str| TargetOffer {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        description: "one of several that an agent offers".to_owned(),
        identity: Identity::Process { sha256: "ab".repeat(32), code: None },
        anywhere: false,
        profile: None,
        compiles_at_run_time: false,
        revisions: Vec::new(),
    };
    let hello = Hello {
        generators: None,
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now_ms: now_ms(),
        machine: Machine {
            hostname: format!("rack-{number}"),
            cores: 8,
            physical_cores: Some(8),
            memory_bytes: 32 << 30,
            kernel: "Linux 6.12.9".to_owned(),
            cpu_model: "a CPU with a name of the usual length @ 2.50GHz".to_owned(),
            cpu: Mechanism::Cgroup2,
            memory: Mechanism::Cgroup2,
        },
        targets: [TARGET, "go-nethttp", "rust-hyper"].map(offer).to_vec(),
        any_scenario: false,
        running: None,
        holds: Vec::new(),
        life: Some(RunId::now().0),
        load_address: None,
        engines: vec![engine::k6::offer(Path::new("/usr/bin/k6"), "1.8.1", None)],
    };
    let uploader = Uploader::new(client.clone(), Spool::open(spool)?);
    let targets = watch::channel(hello.targets.clone()).1;
    Ok(Link {
        client,
        hello,
        targets,
        uploader,
        condition: watch::channel(Condition::default()).1,
        live: Live::default(),
    })
}

/// Simulates one agent. All agents share the threads of this program.
async fn simulate_agent(number: usize, link: Link, received: Arc<Received>, end: CancellationToken) {
    let client = link.client.clone();
    let (mut outbox, _) = mpsc::unbounded_channel();
    let (hear, mut heard) = mpsc::unbounded_channel();
    let connection = tokio::spawn({
        let end = end.clone();
        async move { link.keep(&hear, &end).await }
    });
    while let Some(heard) = heard.recv().await {
        match heard {
            LinkEvent::Connected(reply) => {
                let (say, to_say) = mpsc::unbounded_channel();
                outbox = say;
                let _ = reply.send(State { running: None, holds: Vec::new(), outbox: to_say });
            }
            LinkEvent::Message(ServerMessage::Start(job)) => {
                received.begin(job.run);
                let _ = outbox.send(AgentMessage::Phase { run: job.run, phase: Phase::Preparing });
                let path = format!("api/v1/agent/runs/{}/result", job.run);
                let sent = client.send(client.request(Method::PUT, &path).json(&outcome(&job))).await;
                if let Err(fault) = sent {
                    eprintln!("  agent {number}: {fault}");
                }
                let _ = outbox.send(AgentMessage::Done { run: job.run });
            }
            LinkEvent::Message(_) => received.note(number),
            LinkEvent::Rejected(reason) => eprintln!("  agent {number}: {reason}"),
        }
    }
    let _ = connection.await;
}

/// Returns the outcome of a run that fails at once, because results do not matter here.
fn outcome(job: &Job) -> Outcome {
    let none = Mechanism::None;
    Outcome {
        generators: Vec::new(),
        profiled: None,
        run: job.run,
        ended: Ended::Failed { reason: "it is simulated".to_owned(), cause: Cause::default() },
        times: Vec::new(),
        sent_at_ms: now_ms(),
        summary: None,
        series: None,
        target_log: String::new(),
        generator_log: String::new(),
        enforced: Enforced { cpu: none, memory: none },
        observed: None,
        cores: Cores { target: Vec::new(), generator: Vec::new() },
        engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
        target: None,
        target_version: "1.0".to_owned(),
        environment: std::collections::BTreeMap::new(),
        conditions: Conditions::default(),
        warm_up: None,
        work: WorkDone::default(),
    }
}

/// Submits at a constant rate (open loop) and returns the time from each request to the agent's response, ms.
async fn dispatch(client: &Client, received: &Received) -> anyhow::Result<Vec<f64>> {
    let mut clock = interval_at(Instant::now(), Duration::from_secs(1) / RATE);
    let mut submissions = JoinSet::new();
    for _ in 0..SUBMISSIONS {
        clock.tick().await;
        submissions.spawn(submit(client.clone()));
    }
    let mut submitted = Vec::new();
    while let Some(done) = submissions.join_next().await {
        submitted.push(done??);
    }
    let mut took = Vec::new();
    for (run, at) in submitted {
        let begun = async {
            loop {
                if let Some(begun) = received.begun.lock().unwrap_or_else(PoisonError::into_inner).get(&run) {
                    return *begun;
                }
                sleep(Duration::from_millis(20)).await;
            }
        };
        let begun = timeout(PATIENCE, begun).await.context("no agent received a run")?;
        took.push((begun - at).as_secs_f64() * 1e3);
    }
    Ok(took)
}

/// Submits one run and returns its id and the time of the request.
async fn submit(client: Client) -> anyhow::Result<(RunId, Instant)> {
    let plan = Plan {
        targets: vec![TARGET.to_owned()],
        sizes: vec!["1 vCPU / 256 MiB".to_owned()],
        scenario: "hash".to_owned(),
        loads: vec![LoadBody::Vus { vus: 10, duration_s: 1.0 }.try_into()?],
        warm_up_s: Some(0.0),
        repetitions: 1,
        retries: 0,
        ..Plan::default()
    };
    let at = Instant::now();
    let created: ExperimentWithRuns = client.post("api/v1/experiments", &plan).await?;
    let run = created.runs.first().context("one run")?;
    Ok((run.id.to_wire()?, at))
}
