//! Live data of runs: every listener gets each sample once, even if it or the agent reconnects.

use std::ops::RangeInclusive;

use brewbench::{
    auth::model::Role,
    live::{
        feed::LiveFeed,
        status::{Now, PointsBody, RunNow},
    },
    results::series::model::SeriesBody,
    runs::model::RunList,
};
use brewbench_cli::events::{Event, Events};
use brewbench_wire::{
    Phase, RunId,
    job::Job,
    messages::AgentMessage,
    series::{Delta, Packed, WindowKind},
};
use futures_util::future::join_all;
use reqwest::{Method, Response, StatusCode};
use tokio::time::timeout;

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    series::delta,
    submit::{submit_one, text},
    summaries::good,
};

/// Submits a run whose agent measures it.
async fn measuring(app: &App, user: &Actor) -> (Agent, Job) {
    let mut agent = Agent::start(app, "rack").await;
    submit_one(user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Measuring);
    (agent, job)
}

fn report(agent: &Agent, run: RunId, part: WindowKind, seconds: RangeInclusive<u32>) {
    agent.send_message(&AgentMessage::Series(Box::new(delta(run, part, seconds))));
}

async fn open_stream(who: &Actor, run: RunId, last: Option<&str>) -> Response {
    let request = who.request(&Method::GET, &format!("/api/v1/runs/{run}/series/live"));
    let request = match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    };
    timeout(PATIENCE, request.send()).await.expect("in time").expect("an answer")
}

/// A client that follows a run like a browser.
struct Listener {
    events: Events,
    last: Option<String>,
    /// Ends of seconds and times of samples, as a browser would draw them.
    seconds: Vec<f64>,
    samples: Vec<f64>,
    phase: Option<RunNow>,
    ended: Option<RunList>,
}

impl Listener {
    async fn new(who: &Actor, run: RunId) -> Self {
        let events = Events::from_response(open_stream(who, run, None).await);
        Self { events, last: None, seconds: Vec::new(), samples: Vec::new(), phase: None, ended: None }
    }

    /// Reconnects.
    async fn reconnect(&mut self, who: &Actor, run: RunId) {
        self.events = Events::from_response(open_stream(who, run, self.last.as_deref()).await);
    }

    /// Reads one event; returns false at the end of the stream.
    async fn read_event(&mut self) -> bool {
        let event = timeout(PATIENCE, self.events.next()).await.expect("in time").ok().flatten();
        let Some(Event { name, id, data }) = event else { return false };
        match name.as_str() {
            "phase" => self.phase = Some(serde_json::from_str(&data).expect("a phase")),
            "points" => self.draw(&serde_json::from_str(&data).expect("points")),
            "end" => self.ended = Some(serde_json::from_str(&data).expect("a run")),
            other => panic!("an event {other}"),
        }
        self.last = id.or(self.last.take());
        true
    }

    fn draw(&mut self, points: &PointsBody) {
        let replace = |drawn: &mut Vec<f64>, after: Option<f64>, new: Vec<f64>| {
            if !new.is_empty() {
                drawn.retain(|at| after.is_some_and(|after| *at <= after));
                drawn.extend(new);
            }
        };
        let seconds = points.seconds.iter().map(|second| second.at_s).collect();
        replace(&mut self.seconds, points.seconds_after_s, seconds);
        replace(&mut self.samples, points.usage_after_s, points.usage.iter().map(|usage| usage.at_s).collect());
    }

    /// Reads events until this many seconds are drawn.
    async fn read_until(&mut self, seconds: usize) {
        while self.seconds.len() < seconds {
            assert!(self.read_event().await, "it ended at {:?}", self.seconds);
        }
    }
}

/// A run with three seconds of warm-up and four of measurement, and a listener that has drawn them.
async fn seven_seconds(app: &App, user: &Actor) -> (Agent, RunId, Listener) {
    let (agent, job) = measuring(app, user).await;
    report(&agent, job.run, WindowKind::WarmUp, 1..=3);
    report(&agent, job.run, WindowKind::Measured, 1..=4);
    let mut listener = Listener::new(user, job.run).await;
    listener.read_until(7).await;
    (agent, job.run, listener)
}

/// Reconnects an agent during a run; it resends its series from the start.
async fn reconnect_agent(agent: &mut Agent, app: &App, run: RunId) {
    (agent.hello.running, agent.hello.holds) = (Some(run), vec![run]);
    agent.connect(app).await.expect("a welcome");
    report(agent, run, WindowKind::WarmUp, 1..=3);
    report(agent, run, WindowKind::Measured, 1..=2);
}

/// The seconds 1 to `last`.
fn upto(last: u32) -> Vec<f64> {
    (1..=last).map(f64::from).collect()
}

#[tokio::test]
async fn a_late_listener_gets_past_samples_first_and_then_new_ones() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    report(&agent, job.run, WindowKind::WarmUp, 1..=3);
    report(&agent, job.run, WindowKind::Measured, 1..=2);
    let series = async || user.get(&format!("/api/v1/runs/{}/series", job.run)).await;
    app.until("the series so far", async || {
        let so_far = series().await;
        let body = (so_far.status == StatusCode::OK).then(|| so_far.read::<SeriesBody>())?;
        body.measured.filter(|measured| measured.seconds.len() == 2)
    })
    .await;
    let mut listener = Listener::new(&app.reader().await, job.run).await;
    listener.read_until(5).await;
    assert_eq!(listener.phase.as_ref().map(|now| now.phase.as_str()), Some("measuring"));
    assert_eq!(listener.seconds, upto(5));
    assert_eq!(listener.samples, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for second in 3..=6 {
        report(&agent, job.run, WindowKind::Measured, second..=second);
        listener.read_until(3 + second as usize).await;
    }
    agent.finish(&job, &good()).await;
    while listener.read_event().await {}
    let ended = listener.ended.expect("an end");
    assert_eq!((&ended.runs[0].id, ended.runs[0].phase.as_str()), (&job.run.into(), "finished"));
    assert_eq!(open_stream(&user, job.run, listener.last.as_deref()).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_listener_of_a_queued_run_gets_all_of_it() {
    let app = App::start().await;
    let user = app.user().await;
    // Another run occupies the agent first.
    let (mut agent, before) = measuring(&app, &user).await;
    let run: RunId = submit_one(&user).await.parse().expect("an id");
    let mut listener = Listener::new(&user, run).await;
    assert!(listener.read_event().await);
    assert_eq!(listener.phase.as_ref().map(|now| (now.phase.as_str(), now.rps)), Some(("queued", None)));
    agent.finish(&before, &good()).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::WarmingUp);
    report(&agent, run, WindowKind::WarmUp, 1..=1);
    listener.read_until(1).await;
    agent.enter(job.run, Phase::Measuring);
    report(&agent, run, WindowKind::WarmUp, 2..=3);
    report(&agent, run, WindowKind::Measured, 1..=1);
    listener.read_until(4).await;
    assert_eq!(listener.seconds, upto(4));
    let cancelled = user.post(&format!("/api/v1/runs/{run}/cancel"), &()).await.ok().json();
    assert_eq!(cancelled["runs"][0]["phase"], "cancelled");
    while listener.read_event().await {}
    assert_eq!(listener.ended.expect("an end").runs[0].phase, Phase::Cancelled);
    app.until("no live run", async || app.state.memory::<LiveFeed>().open_runs().is_empty().then_some(())).await;
}

#[tokio::test]
async fn reconnects_of_agent_and_listener_duplicate_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut agent, run, mut listener) = seven_seconds(&app, &user).await;
    agent.disconnect();
    reconnect_agent(&mut agent, &app, run).await;
    report(&agent, run, WindowKind::Measured, 3..=5);
    listener.read_until(8).await;
    assert_eq!(listener.seconds, upto(8));
    listener.reconnect(&user, run).await;
    report(&agent, run, WindowKind::Measured, 6..=6);
    listener.read_until(9).await;
    assert_eq!((listener.seconds, listener.samples.len()), (upto(9), 10));
}

#[tokio::test]
async fn a_restart_of_the_server_duplicates_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut agent, run, mut listener) = seven_seconds(&app, &user).await;
    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| config.listen.set_port(port)).await;
    while listener.read_event().await {}
    assert!(listener.ended.is_none(), "the run goes on");
    listener.reconnect(&user, run).await;
    reconnect_agent(&mut agent, &app, run).await;
    report(&agent, run, WindowKind::Measured, 3..=6);
    listener.read_until(9).await;
    assert_eq!((listener.seconds, listener.samples.len()), (upto(9), 10));
}

#[tokio::test]
async fn samples_that_arrive_with_the_result_are_sent_at_the_end() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    agent.finish(&job, &good()).await;
    let mut listener = Listener::new(&user, job.run).await;
    while listener.read_event().await {}
    assert_eq!((listener.seconds.len(), listener.samples.len()), (3, 4));
    assert!(listener.ended.is_some());
}

#[tokio::test]
async fn an_agent_can_only_report_on_its_own_run() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    let mut stranger = Agent::disconnected(&app, "stranger").await;
    // It claims to do the run of the other agent.
    (stranger.hello.running, stranger.hello.holds) = (Some(job.run), vec![job.run]);
    stranger.hello.targets.clear();
    stranger.connect(&app).await.expect("a welcome");
    assert_eq!(stranger.cancelled().await, job.run);
    report(&stranger, job.run, WindowKind::Measured, 1..=9);
    let garbled = Delta { points: Packed::from_bytes(vec![7; 99]), ..delta(job.run, WindowKind::Measured, 1..=1) };
    agent.send_message(&AgentMessage::Series(Box::new(garbled)));
    report(&agent, job.run, WindowKind::Measured, 1..=2);
    // Messages of both agents are handled in order.
    let mut listener = Listener::new(&user, job.run).await;
    listener.read_until(2).await;
    report(&stranger, job.run, WindowKind::Measured, 1..=9);
    stranger.enter(job.run, Phase::Collecting);
    assert_eq!(stranger.cancelled().await, job.run, "its earlier messages have been handled, too");
    let series = app.state.memory::<LiveFeed>().series(job.run).expect("a series");
    assert_eq!(series.measured.expect("seconds").seconds.len(), 2);
    assert_eq!(app.state.memory::<LiveFeed>().open_runs(), [(job.run, "rack".to_owned())]);
    agent.finish(&job, &good()).await;
    app.until("no live run", async || app.state.memory::<LiveFeed>().open_runs().is_empty().then_some(())).await;
    report(&agent, job.run, WindowKind::Measured, 1..=9);
    agent.enter(job.run, Phase::Collecting);
    let mut agent = agent;
    while agent.cancelled().await != job.run {}
    assert_eq!(app.state.memory::<LiveFeed>().open_runs(), [], "an ended run is not live");
}

#[tokio::test]
async fn a_hundred_listeners_get_the_same_and_a_stalled_one_delays_none() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    // Responses that are never read.
    let _stalled = join_all((0..20).map(|_| open_stream(&user, job.run, None))).await;
    let mut listeners = join_all((0..100).map(|_| Listener::new(&user, job.run))).await;
    for second in 1..=60 {
        report(&agent, job.run, WindowKind::Measured, second..=second);
    }
    join_all(listeners.iter_mut().map(|listener| listener.read_until(60))).await;
    for listener in &listeners {
        assert_eq!(listener.seconds, upto(60));
    }
    agent.finish(&job, &good()).await;
    join_all(listeners.iter_mut().map(async |listener| while listener.read_event().await {})).await;
    assert!(listeners.iter().all(|listener| listener.ended.is_some()));
}

#[tokio::test]
async fn running_runs_are_listed_with_their_current_rate() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    submit_one(&user).await;
    report(&agent, job.run, WindowKind::Measured, 1..=2);
    let rate = app.until("a rate", async || {
        let now: Now = user.get("/api/v1/runs/now").await.ok().read();
        assert_eq!((now.running.len(), now.queued, &now.running[0].run), (1, 1, &job.run.into()));
        now.running[0].rps
    });
    assert!((rate.await - 1_000.0).abs() < 1e-6);
    for page in ["/", "/runs", &format!("/runs/{}", job.run)] {
        let html = app.signed_in(Role::Viewer).await.get(page).await.ok().text();
        assert!(html.replace("&#38;nbsp;", " ").replace('\u{a0}', " ").contains("1,000 requests/s"), "{page}: {html}");
    }
    let listed = crate::harness::program::as_user(&app, user.secret(), &["run", "list"]).await.ok();
    assert!(listed.contains("now 1,000"), "{listed}");
}

#[tokio::test]
async fn without_a_terminal_watch_prints_a_line_a_second_or_json_lines() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    report(&agent, job.run, WindowKind::WarmUp, 1..=3);
    report(&agent, job.run, WindowKind::Measured, 1..=2);
    agent.finish(&job, &good()).await;
    let id = job.run.to_string();
    let watch = async |more: &[&str]| {
        let arguments = [&["run", "watch", id.as_str()], more].concat();
        crate::harness::program::as_user(&app, user.secret(), &arguments).await
    };
    let watched = watch(&[]).await;
    assert_eq!(watched.code, Some(0), "{}", watched.err);
    let lines: Vec<&str> = watched.err.lines().filter(|line| line.contains("req/s")).collect();
    assert_eq!(lines.len(), 3, "{}", watched.err);
    assert!(lines.iter().all(|line| line.chars().count() <= 80) && lines[0].contains("17,077 req/s"), "{lines:#?}");
    assert!(watched.out.contains("fast"), "{}", watched.out);

    let out = watch(&["--json"]).await.ok();
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("second"), of("usage"), of("run"), lines.len()), (3, 4, 1, 8));
    let last = lines.last().expect("a run");
    assert_eq!((text(&last["kind"]), text(&last["id"])), ("run".to_owned(), id.clone()));
    let missing =
        crate::harness::program::as_user(&app, user.secret(), &["run", "watch", &RunId::now().to_string()]).await;
    assert!(missing.refused(1).contains("run"), "it does not wait for a missing run");
}
