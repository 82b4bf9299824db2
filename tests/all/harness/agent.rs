//! An agent controlled by the test, which speaks the real protocol.

use std::{collections::BTreeMap, path::Path, time::Duration};

use brewbench::results::settlement::Settled;
use brewbench_agent::engine;
use brewbench_wire::{
    PROTOCOL, Phase, RunId,
    engine::EngineVersion,
    job::Job,
    messages::{AgentMessage, Finding, Hello, Machine, ScriptReport, ServerMessage, TargetOffer},
    now_ms,
    outcome::{Conditions, Cores, Ended, Enforced, Mechanism, Outcome, PhaseTime},
    profile::{ProfileOffer, ProfileSource},
    target::Identity,
    work_done::WorkDone,
};
use futures_util::{
    SinkExt, StreamExt,
    stream::{SplitSink, SplitStream},
};
use tokio::{
    net::TcpStream,
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, interval_at, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{Error as WsError, Message, client::IntoClientRequest, http::StatusCode},
};

use super::{Actor, Answer, App, PATIENCE, series};

/// An agent, connected or not.
pub struct Agent {
    /// The name of its key.
    pub name: String,
    /// The introduction it sends when it connects.
    pub hello: Hello,
    /// Its HTTP client.
    pub http: Actor,
    /// Its connection to the server.
    pub connection: Option<Connection>,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection that sends heartbeats, but renews no lease.
pub struct Connection {
    outgoing: mpsc::UnboundedSender<String>,
    incoming: mpsc::UnboundedReceiver<Event>,
    tasks: [JoinHandle<()>; 2],
}

/// A message or event of the connection.
enum Event {
    Message(ServerMessage),
    /// An inspection of a script that asks for no reply.
    Inspection,
    Close(Option<u16>),
}

impl Connection {
    fn new(socket: Socket) -> Self {
        let (sink, stream) = socket.split();
        let (outgoing, messages) = mpsc::unbounded_channel();
        let (events, incoming) = mpsc::unbounded_channel();
        let tasks = [tokio::spawn(write(sink, messages)), tokio::spawn(read(stream, events, outgoing.clone()))];
        Self { outgoing, incoming, tasks }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// Sends messages and heartbeats.
async fn write(mut sink: SplitSink<Socket, Message>, mut messages: mpsc::UnboundedReceiver<String>) {
    let second = Duration::from_secs(1);
    let mut clock = interval_at(Instant::now() + second, second);
    // A fault lasts until another message says otherwise.
    let mut lasting = None;
    loop {
        let text = tokio::select! {
            message = messages.recv() => message,
            _ = clock.tick() => serde_json::to_string(&AgentMessage::Heartbeat { running: Vec::new(), fault: lasting.clone() }).ok(),
        };
        let Some(text) = text else { return };
        if let Ok(AgentMessage::Heartbeat { fault, .. }) = serde_json::from_str(&text) {
            lasting = fault;
        }
        if sink.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

/// Forwards messages, but answers inspections of scripts itself.
async fn read(
    mut stream: SplitStream<Socket>,
    events: mpsc::UnboundedSender<Event>,
    outgoing: mpsc::UnboundedSender<String>,
) {
    while let Some(Ok(message)) = stream.next().await {
        let event = match message {
            Message::Close(frame) => Event::Close(frame.map(|frame| frame.code.into())),
            Message::Text(text) => match serde_json::from_str(&text).expect("a valid message") {
                ServerMessage::Heartbeat => continue,
                ServerMessage::Inspect { id, scenario } => {
                    let Some(finding) = finding(scenario.script()) else {
                        let _ = events.send(Event::Inspection);
                        continue;
                    };
                    let answer = AgentMessage::Inspected { id, finding };
                    let _ = outgoing.send(serde_json::to_string(&answer).expect("JSON"));
                    continue;
                }
                message => Event::Message(message),
            },
            _ => continue,
        };
        let _ = events.send(event);
    }
}

/// Returns the finding that a script asks for; it is valid by default.
fn finding(script: &str) -> Option<Finding> {
    let (word, rest) = script.split_once(' ').unwrap_or((script, ""));
    match word {
        "invalid" => Some(Finding::Invalid { message: rest.to_owned() }),
        "declined" => Some(Finding::Declined { reason: rest.to_owned() }),
        "silent" => None,
        _ => Some(Finding::Valid(ScriptReport::default())),
    }
}

/// The introduction of an agent on a big machine with the targets `fast` and `slow`.
pub fn hello() -> Hello {
    let offer = |name: &str| TargetOffer {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        description: format!("the {name} one"),
        identity: Identity::Process { sha256: "ab".repeat(32), code: None },
        anywhere: true,
        profile: Some(ProfileOffer::Ready { source: ProfileSource::Perf }),
        compiles_at_run_time: false,
        revisions: Vec::new(),
    };
    Hello {
        generators: None,
        protocol: PROTOCOL,
        version: "0.1.0".to_owned(),
        now_ms: now_ms(),
        machine: Machine {
            hostname: "rack-1".to_owned(),
            cores: 8,
            physical_cores: Some(8),
            memory_bytes: 32 << 30,
            kernel: "Linux 6.12".to_owned(),
            cpu_model: "a CPU".to_owned(),
            cpu: Mechanism::Cgroup2,
            memory: Mechanism::Cgroup2,
        },
        targets: vec![offer("fast"), offer("slow")],
        any_scenario: false,
        running: None,
        holds: Vec::new(),
        life: Some(RunId::now().0),
        load_address: None,
        engines: vec![engine::k6::offer(Path::new("/usr/bin/k6"), "1.8.1", None)],
    }
}

/// The outcome of a successful job with a summary.
pub fn outcome(job: &Job, summary: &str) -> Outcome {
    let now = now_ms();
    let phases = [Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting, Phase::Finished];
    Outcome {
        generators: Vec::new(),
        profiled: None,
        run: job.run,
        ended: Ended::Finished,
        times: phases.into_iter().map(|phase| PhaseTime { phase, at_ms: now }).collect(),
        sent_at_ms: now,
        summary: Some(summary.to_owned()),
        series: Some(series::matching_series(summary)),
        warm_up: None,
        work: WorkDone::default(),
        target_log: "listening\n".to_owned(),
        generator_log: String::new(),
        enforced: Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 },
        observed: None,
        cores: Cores { target: vec![0], generator: vec![1] },
        engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
        target: Some(Identity::Process { sha256: "ab".repeat(32), code: None }),
        target_version: "1.0".to_owned(),
        environment: environment(job),
        conditions: Conditions::default(),
    }
}

/// Facts about a machine; some differ between jobs.
pub fn environment(job: &Job) -> BTreeMap<String, String> {
    let threads = format!("{:.0}", job.spec.size.as_ref().expect("a size").vcpus.ceil());
    let command = format!("bin/{} --listen {{port}}", job.spec.target);
    let load = format!("0.{:02} 0.05 0.01", job.run.0.as_bytes()[15] % 50);
    let facts = [
        ("brewbench.protocol", "5"),
        ("cpu.cache.l2", "2048K"),
        ("cpu.governor", "performance"),
        ("cpu.model", "a CPU"),
        ("cpu.threads", "8"),
        ("cpu.usable", "8"),
        ("k6.version", "1.8.1"),
        ("kernel.release", "Linux 6.12"),
        ("limit.open_files", "1024, at most 1048576"),
        ("load.before", &load),
        ("machine.virtual", "no"),
        ("memory.bytes", "34359738368"),
        (
            "mitigation.spectre_v2",
            "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; RSB filling; PBRSB-eIBRS: SW sequence",
        ),
        ("net.core.somaxconn", "4096"),
        ("net.ipv4.tcp_rmem", "4096 131072 6291456"),
        ("target.command", &command),
        ("target.env.GOMAXPROCS", &threads),
        ("target.env.PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/brewbench/targets/bin"),
        ("target.env.SESSION_TOKEN", "(left out)"),
    ];
    facts.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
}

impl Agent {
    /// Creates and connects an agent.
    pub async fn start(app: &App, name: &str) -> Self {
        Self::start_with(app, name, |_| ()).await
    }

    /// Creates and connects an agent with a modified introduction.
    pub async fn start_with(app: &App, name: &str, change: impl FnOnce(&mut Hello)) -> Self {
        let mut agent = Self::disconnected(app, name).await;
        change(&mut agent.hello);
        agent.connect(app).await.expect("accepted");
        agent
    }

    /// Creates an agent with a key that is not connected.
    pub async fn disconnected(app: &App, name: &str) -> Self {
        let http = app.anonymous().with_secret(&app.key(name).await);
        Self { name: name.to_owned(), hello: hello(), http, connection: None }
    }

    /// Connects or reconnects. Fails with the server's reason.
    pub async fn connect(&mut self, app: &App) -> Result<(), String> {
        let hello = AgentMessage::Hello(Box::new(self.hello.clone()));
        self.connect_with(app, &serde_json::to_string(&hello).expect("JSON")).await
    }

    /// Connects with any introduction.
    pub async fn connect_with(&mut self, app: &App, introduction: &str) -> Result<(), String> {
        let mut url = app.url.join("/api/v1/agent/channel").expect("a valid path");
        url.set_scheme("ws").expect("a scheme");
        let mut request = url.as_str().into_client_request().expect("a request");
        let key = format!("Bearer {}", self.http.secret()).parse().expect("a header");
        request.headers_mut().insert("authorization", key);
        let (socket, _) = connect_async(request).await.map_err(|fault| match fault {
            WsError::Http(answer) if answer.status() == StatusCode::UNAUTHORIZED => "401".to_owned(),
            other => other.to_string(),
        })?;
        self.connection = Some(Connection::new(socket));
        self.http = self.http.clone().at(&app.url);
        self.send_text(introduction);
        match self.receive().await {
            Some(ServerMessage::Welcome { name, .. }) => {
                assert_eq!(name, self.name);
                Ok(())
            }
            Some(ServerMessage::Refused { reason }) => {
                assert_eq!(self.receive().await, None, "the server closes a refused connection");
                Err(reason)
            }
            other => panic!("expected a welcome or a refusal: {other:?}"),
        }
    }

    /// Drops the connection.
    pub fn disconnect(&mut self) {
        self.connection = None;
    }

    /// Sends a message.
    pub fn send_message(&self, message: &AgentMessage) {
        self.send_text(&serde_json::to_string(message).expect("JSON"));
    }

    /// Sends text.
    pub fn send_text(&self, text: &str) {
        let connection = self.connection.as_ref().expect("a connected agent");
        connection.outgoing.send(text.to_owned()).expect("an open connection");
    }

    /// Returns the next message that is not a heartbeat; `None` when the server closes.
    pub async fn receive(&mut self) -> Option<ServerMessage> {
        let connection = self.connection.as_mut().expect("a connected agent");
        let message = timeout(PATIENCE, async {
            while let Some(event) = connection.incoming.recv().await {
                if let Event::Message(message) = event {
                    return Some(message);
                }
            }
            None
        });
        message.await.expect("a message in time")
    }

    /// Waits for the end of the connection. Returns the code of the server's close frame.
    pub async fn close_code(&mut self) -> Option<u16> {
        let connection = self.connection.as_mut().expect("a connected agent");
        let code = timeout(PATIENCE, async {
            while let Some(event) = connection.incoming.recv().await {
                if let Event::Close(code) = event {
                    return code;
                }
            }
            None
        });
        code.await.expect("an end in time")
    }

    /// Waits for an inspection that it does not answer.
    pub async fn inspection_requested(&mut self) {
        let connection = self.connection.as_mut().expect("a connected agent");
        let requested = timeout(PATIENCE, async {
            while !matches!(connection.incoming.recv().await, Some(Event::Inspection) | None) {}
        });
        requested.await.expect("an inspection in time");
    }

    /// Returns the next job. Cancellations of runs that have ended are ignored.
    pub async fn job(&mut self) -> Job {
        loop {
            match self.receive().await {
                Some(ServerMessage::Start(job)) => return *job,
                Some(ServerMessage::Cancel { .. }) => {}
                other => panic!("expected a job: {other:?}"),
            }
        }
    }

    /// Returns the run of the next cancellation.
    pub async fn cancelled(&mut self) -> RunId {
        match self.receive().await {
            Some(ServerMessage::Cancel { run }) => run,
            other => panic!("expected a cancellation: {other:?}"),
        }
    }

    /// Reports a phase.
    pub fn enter(&self, run: RunId, phase: Phase) {
        self.send_message(&AgentMessage::Phase { run, phase });
    }

    /// Uploads a result.
    pub async fn send(&self, outcome: &Outcome) -> Answer {
        self.http.put(&format!("/api/v1/agent/runs/{}/result", outcome.run), outcome).await
    }

    /// Uploads a result. Returns how the server settled it.
    pub async fn settle(&self, outcome: &Outcome) -> Settled {
        self.send(outcome).await.ok().read()
    }

    /// Finishes a job successfully.
    pub async fn finish(&self, job: &Job, summary: &str) {
        self.end(outcome(job, summary)).await;
    }

    /// Reports a cancelled job as stopped, and becomes free.
    pub async fn end_cancelled(&self, job: &Job) {
        let stopped = Outcome { ended: Ended::Cancelled, summary: None, ..outcome(job, "") };
        assert!(!self.settle(&stopped).await.counts);
        self.send_message(&AgentMessage::Done { run: job.run });
    }

    /// Uploads a result that the server accepts, and becomes free.
    pub async fn end(&self, outcome: Outcome) {
        let run = outcome.run;
        assert_eq!(self.settle(&outcome).await, Settled { counts: true, reason: None });
        self.send_message(&AgentMessage::Done { run });
    }
}
