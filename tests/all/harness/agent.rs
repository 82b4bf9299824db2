//! An agent that does what a test says, in the real words of the wire.

use std::{collections::BTreeMap, path::Path, time::Duration};

use brewbench::results::settlement::Settled;
use brewbench_agent::{
    engine,
    wire::{
        PROTOCOL, Phase, RunId,
        engine::EngineVersion,
        job::Job,
        messages::{AgentMessage, Finding, Hello, Machine, ServerMessage, TargetOffer},
        now_ms,
        outcome::{Conditions, Cores, Ended, Enforced, Mechanism, Outcome, PhaseTime},
        work_done::WorkDone,
    },
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

/// One agent, connected or not.
pub struct Agent {
    /// The name of its key.
    pub name: String,
    /// What it says of itself.
    pub hello: Hello,
    /// The same by HTTP.
    pub home: Actor,
    /// To the server.
    pub line: Option<Line>,
}

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// A connection that shows that somebody is there, but not that a run is worked on: leases run out all the same.
pub struct Line {
    to_say: mpsc::UnboundedSender<String>,
    heard: mpsc::UnboundedReceiver<Heard>,
    tasks: [JoinHandle<()>; 2],
}

/// What comes from the server.
enum Heard {
    Said(ServerMessage),
    /// About a script that says that it shall not be answered.
    Asked,
    Goodbye(Option<u16>),
}

impl Line {
    fn new(socket: Socket) -> Self {
        let (sink, stream) = socket.split();
        let (to_say, said) = mpsc::unbounded_channel();
        let (hear, heard) = mpsc::unbounded_channel();
        let tasks = [tokio::spawn(speak(sink, said)), tokio::spawn(listen(stream, hear, to_say.clone()))];
        Self { to_say, heard, tasks }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn speak(mut sink: SplitSink<Socket, Message>, mut to_say: mpsc::UnboundedReceiver<String>) {
    let second = Duration::from_secs(1);
    let mut clock = interval_at(Instant::now() + second, second);
    loop {
        let text = tokio::select! {
            said = to_say.recv() => said,
            _ = clock.tick() => serde_json::to_string(&AgentMessage::Heartbeat { running: None }).ok(),
        };
        let Some(text) = text else { return };
        if sink.send(Message::text(text)).await.is_err() {
            return;
        }
    }
}

/// Hands on what is said, but answers by itself what it is asked about scripts.
async fn listen(
    mut stream: SplitStream<Socket>,
    hear: mpsc::UnboundedSender<Heard>,
    to_say: mpsc::UnboundedSender<String>,
) {
    while let Some(Ok(message)) = stream.next().await {
        let heard = match message {
            Message::Close(frame) => Heard::Goodbye(frame.map(|frame| frame.code.into())),
            Message::Text(text) => match serde_json::from_str(&text).expect("a message of the wire") {
                ServerMessage::Heartbeat => continue,
                ServerMessage::Inspect { id, scenario } => {
                    let Some(finding) = finding(&scenario.script) else {
                        let _ = hear.send(Heard::Asked);
                        continue;
                    };
                    let answer = AgentMessage::Inspected { id, finding };
                    let _ = to_say.send(serde_json::to_string(&answer).expect("JSON"));
                    continue;
                }
                message => Heard::Said(message),
            },
            _ => continue,
        };
        let _ = hear.send(heard);
    }
}

/// What it says of a script: what the script asks for, and that it is valid if it asks for nothing.
fn finding(script: &str) -> Option<Finding> {
    let (word, rest) = script.split_once(' ').unwrap_or((script, ""));
    match word {
        "invalid" => Some(Finding::Invalid { message: rest.to_owned() }),
        "declined" => Some(Finding::Declined { reason: rest.to_owned() }),
        "silent" => None,
        _ => Some(Finding::Valid),
    }
}

/// What a big machine with the targets `fast` and `slow` says of itself.
pub fn hello() -> Hello {
    let offer = |name: &str| TargetOffer {
        name: name.to_owned(),
        version: "1.0".to_owned(),
        description: format!("the {name} one"),
        sha256: "ab".repeat(32),
        anywhere: true,
    };
    Hello {
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
        engines: vec![engine::offer(Path::new("/usr/bin/k6"), "1.8.1", None)],
    }
}

/// What comes of a job that went well, with the figures of a summary.
pub fn outcome(job: &Job, summary: &str) -> Outcome {
    let now = now_ms();
    let phases = [Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting, Phase::Finished];
    Outcome {
        run: job.run,
        ended: Ended::Finished,
        times: phases.into_iter().map(|phase| PhaseTime { phase, at_ms: now }).collect(),
        sent_at_ms: now,
        summary: Some(summary.to_owned()),
        series: Some(series::fitting(summary)),
        warm_up: None,
        work: WorkDone::default(),
        target_log: "listening\n".to_owned(),
        generator_log: String::new(),
        enforced: Enforced { cpu: Mechanism::Cgroup2, memory: Mechanism::Cgroup2 },
        observed: None,
        cores: Cores { target: vec![0], generator: vec![1] },
        engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
        target_sha256: Some("ab".repeat(32)),
        target_version: "1.0".to_owned(),
        environment: environment(job),
        conditions: Conditions::default(),
    }
}

/// Facts about a machine, some of which are others for another job.
pub fn environment(job: &Job) -> BTreeMap<String, String> {
    let threads = format!("{:.0}", job.size.vcpus.ceil());
    let command = format!("bin/{} --listen {{port}}", job.target);
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
    /// A new agent that has dialled in.
    pub async fn start(app: &App, name: &str) -> Self {
        Self::start_with(app, name, |_| ()).await
    }

    /// A new agent that has dialled in and is not like the others.
    pub async fn start_with(app: &App, name: &str, change: impl FnOnce(&mut Hello)) -> Self {
        let mut agent = Self::away(app, name).await;
        change(&mut agent.hello);
        agent.dial(app).await.expect("a welcome");
        agent
    }

    /// A new agent that has a key and has not dialled in.
    pub async fn away(app: &App, name: &str) -> Self {
        let home = app.nobody().with_secret(&app.key(name).await);
        Self { name: name.to_owned(), hello: hello(), home, line: None }
    }

    /// Dials in, also again, and says what it holds; fails with the server's reason.
    pub async fn dial(&mut self, app: &App) -> Result<(), String> {
        let hello = AgentMessage::Hello(Box::new(self.hello.clone()));
        self.dial_saying(app, &serde_json::to_string(&hello).expect("written")).await
    }

    /// The same with any introduction.
    pub async fn dial_saying(&mut self, app: &App, introduction: &str) -> Result<(), String> {
        let mut url = app.url.join("/api/v1/agent/channel").expect("a path");
        url.set_scheme("ws").expect("a scheme");
        let mut request = url.as_str().into_client_request().expect("a request");
        let key = format!("Bearer {}", self.home.secret()).parse().expect("a header");
        request.headers_mut().insert("authorization", key);
        let (socket, _) = connect_async(request).await.map_err(|fault| match fault {
            WsError::Http(answer) if answer.status() == StatusCode::UNAUTHORIZED => "401".to_owned(),
            other => other.to_string(),
        })?;
        self.line = Some(Line::new(socket));
        self.home = self.home.clone().at(&app.url);
        self.say_raw(introduction);
        match self.hear().await {
            Some(ServerMessage::Welcome { name, .. }) => {
                assert_eq!(name, self.name);
                Ok(())
            }
            Some(ServerMessage::Refused { reason }) => {
                assert_eq!(self.hear().await, None, "who is refused is not kept");
                Err(reason)
            }
            other => panic!("neither welcome nor refused: {other:?}"),
        }
    }

    /// Falls off the network.
    pub fn hang_up(&mut self) {
        self.line = None;
    }

    /// Says something.
    pub fn say(&self, message: &AgentMessage) {
        self.say_raw(&serde_json::to_string(message).expect("JSON"));
    }

    /// Says some text.
    pub fn say_raw(&self, text: &str) {
        let line = self.line.as_ref().expect("a connected agent");
        line.to_say.send(text.to_owned()).expect("an open connection");
    }

    /// What the server says next besides heartbeats; none when it closes.
    pub async fn hear(&mut self) -> Option<ServerMessage> {
        let line = self.line.as_mut().expect("a connected agent");
        let said = timeout(PATIENCE, async {
            while let Some(heard) = line.heard.recv().await {
                if let Heard::Said(message) = heard {
                    return Some(message);
                }
            }
            None
        });
        said.await.expect("a word of the server in time")
    }

    /// Waits for the end of the connection; gives the code of the server's goodbye, if it says one.
    pub async fn goodbye(&mut self) -> Option<u16> {
        let line = self.line.as_mut().expect("a connected agent");
        let said = timeout(PATIENCE, async {
            while let Some(heard) = line.heard.recv().await {
                if let Heard::Goodbye(code) = heard {
                    return code;
                }
            }
            None
        });
        said.await.expect("an end in time")
    }

    /// Waits until it is asked about a script that it does not answer.
    pub async fn asked(&mut self) {
        let line = self.line.as_mut().expect("a connected agent");
        let asked = timeout(PATIENCE, async { while !matches!(line.heard.recv().await, Some(Heard::Asked) | None) {} });
        asked.await.expect("a question in time");
    }

    /// The job that it gets next. To be told to stop what it no longer does is nothing to an agent.
    pub async fn job(&mut self) -> Job {
        loop {
            match self.hear().await {
                Some(ServerMessage::Start(job)) => return *job,
                Some(ServerMessage::Cancel { .. }) => {}
                other => panic!("not a job: {other:?}"),
            }
        }
    }

    /// The run that it is told to stop next.
    pub async fn cancelled(&mut self) -> RunId {
        match self.hear().await {
            Some(ServerMessage::Cancel { run }) => run,
            other => panic!("not a cancellation: {other:?}"),
        }
    }

    /// Reports a phase.
    pub fn enter(&self, run: RunId, phase: Phase) {
        self.say(&AgentMessage::Phase { run, phase });
    }

    /// Sends a result home.
    pub async fn send(&self, outcome: &Outcome) -> Answer {
        self.home.put(&format!("/api/v1/agent/runs/{}/result", outcome.run), outcome).await
    }

    /// Sends a result home, and what became of it.
    pub async fn settle(&self, outcome: &Outcome) -> Settled {
        self.send(outcome).await.ok().read()
    }

    /// Does a job to its good end.
    pub async fn finish(&self, job: &Job, summary: &str) {
        self.end(outcome(job, summary)).await;
    }

    /// Has stopped a cancelled job, and is free again.
    pub async fn end_cancelled(&self, job: &Job) {
        let stopped = Outcome { ended: Ended::Cancelled, summary: None, ..outcome(job, "") };
        assert!(!self.settle(&stopped).await.kept);
        self.say(&AgentMessage::Done { run: job.run });
    }

    /// Sends a result that counts, and is free again.
    pub async fn end(&self, outcome: Outcome) {
        let run = outcome.run;
        assert_eq!(self.settle(&outcome).await, Settled { kept: true, why: None });
        self.say(&AgentMessage::Done { run });
    }
}
