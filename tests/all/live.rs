//! Runs under way: what agents tell comes to whoever listens, once, whoever connects anew.

use std::ops::RangeInclusive;

use brewbench::{
    auth::model::Role,
    cli::events::{Event, Events},
    live::status::{Now, PointsBody, RunNow},
    results::series::model::SeriesBody,
    runs::model::RunList,
};
use brewbench_agent::wire::{
    Phase, RunId,
    job::Job,
    messages::AgentMessage,
    series::{Packed, Part, Portion},
};
use futures_util::future::join_all;
use reqwest::{Method, Response, StatusCode};
use tokio::time::timeout;

use crate::harness::{
    Actor, Agent, App, PATIENCE,
    series::portion,
    submit::{submit_one, text},
    summaries::good,
};

/// A run that is measured.
async fn measuring(app: &App, user: &Actor) -> (Agent, Job) {
    let mut agent = Agent::start(app, "rack").await;
    submit_one(user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Measuring);
    (agent, job)
}

fn tell(agent: &Agent, run: RunId, part: Part, seconds: RangeInclusive<u32>) {
    agent.send_message(&AgentMessage::Series(Box::new(portion(run, part, seconds))));
}

async fn ask(who: &Actor, run: RunId, last: Option<&str>) -> Response {
    let request = who.request(&Method::GET, &format!("/api/v1/runs/{run}/series/live"));
    let request = match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    };
    timeout(PATIENCE, request.send()).await.expect("in time").expect("an answer")
}

/// Somebody who follows a run, as a browser would.
struct Listener {
    events: Events,
    last: Option<String>,
    /// Ends of seconds and times of samples, as they would be drawn.
    seconds: Vec<f64>,
    samples: Vec<f64>,
    phase: Option<RunNow>,
    ended: Option<RunList>,
}

impl Listener {
    async fn new(who: &Actor, run: RunId) -> Self {
        let events = Events::from_response(ask(who, run, None).await);
        Self { events, last: None, seconds: Vec::new(), samples: Vec::new(), phase: None, ended: None }
    }

    /// Connects anew.
    async fn again(&mut self, who: &Actor, run: RunId) {
        self.events = Events::from_response(ask(who, run, self.last.as_deref()).await);
    }

    /// Hears one event; false when the stream has ended.
    async fn hear(&mut self) -> bool {
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

    /// Hears until so many seconds are drawn.
    async fn draws(&mut self, seconds: usize) {
        while self.seconds.len() < seconds {
            assert!(self.hear().await, "it ended at {:?}", self.seconds);
        }
    }
}

/// A run of which three seconds of warm-up and four of measurement are known, and drawn.
async fn seven_seconds(app: &App, user: &Actor) -> (Agent, RunId, Listener) {
    let (agent, job) = measuring(app, user).await;
    tell(&agent, job.run, Part::WarmUp, 1..=3);
    tell(&agent, job.run, Part::Measured, 1..=4);
    let mut listener = Listener::new(user, job.run).await;
    listener.draws(7).await;
    (agent, job.run, listener)
}

/// An agent connects anew in the middle of a run, and begins to tell its past.
async fn dial_again(agent: &mut Agent, app: &App, run: RunId) {
    (agent.hello.running, agent.hello.holds) = (Some(run), vec![run]);
    agent.connect(app).await.expect("a welcome");
    tell(agent, run, Part::WarmUp, 1..=3);
    tell(agent, run, Part::Measured, 1..=2);
}

/// Whole seconds from 1, each once.
fn upto(last: u32) -> Vec<f64> {
    (1..=last).map(f64::from).collect()
}

#[tokio::test]
async fn whoever_comes_late_gets_the_past_first_and_then_what_comes() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    tell(&agent, job.run, Part::WarmUp, 1..=3);
    tell(&agent, job.run, Part::Measured, 1..=2);
    let of_run = async || user.get(&format!("/api/v1/runs/{}/series", job.run)).await;
    app.until("the series so far", async || {
        let so_far = of_run().await;
        let body = (so_far.status == StatusCode::OK).then(|| so_far.read::<SeriesBody>())?;
        body.measured.filter(|measured| measured.seconds.len() == 2)
    })
    .await;
    let mut listener = Listener::new(&app.reader().await, job.run).await;
    listener.draws(5).await;
    assert_eq!(listener.phase.as_ref().map(|now| now.phase.as_str()), Some("measuring"));
    assert_eq!(listener.seconds, upto(5));
    assert_eq!(listener.samples, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    for second in 3..=6 {
        tell(&agent, job.run, Part::Measured, second..=second);
        listener.draws(3 + second as usize).await;
    }
    agent.finish(&job, &good()).await;
    while listener.hear().await {}
    let ended = listener.ended.expect("an end");
    assert_eq!((&ended.runs[0].id, ended.runs[0].phase.as_str()), (&job.run.into(), "finished"));
    assert_eq!(ask(&user, job.run, listener.last.as_deref()).await.status(), StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn who_listens_before_a_run_begins_hears_all_of_it() {
    let app = App::start().await;
    let user = app.user().await;
    // Another has the agent first.
    let (mut agent, before) = measuring(&app, &user).await;
    let run: RunId = submit_one(&user).await.parse().expect("an id");
    let mut listener = Listener::new(&user, run).await;
    assert!(listener.hear().await);
    assert_eq!(listener.phase.as_ref().map(|now| (now.phase.as_str(), now.rps)), Some(("queued", None)));
    agent.finish(&before, &good()).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::WarmingUp);
    tell(&agent, run, Part::WarmUp, 1..=1);
    listener.draws(1).await;
    agent.enter(job.run, Phase::Measuring);
    tell(&agent, run, Part::WarmUp, 2..=3);
    tell(&agent, run, Part::Measured, 1..=1);
    listener.draws(4).await;
    assert_eq!(listener.seconds, upto(4));
    let cancelled = user.post(&format!("/api/v1/runs/{run}/cancel"), &()).await.ok().json();
    assert_eq!(cancelled["runs"][0]["phase"], "cancelled");
    while listener.hear().await {}
    assert_eq!(listener.ended.expect("an end").runs[0].phase, Phase::Cancelled);
    app.until("nothing to be left", async || app.state.live_feed.open_runs().is_empty().then_some(())).await;
}

#[tokio::test]
async fn nothing_is_doubled_when_the_agent_or_the_listener_connects_anew() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut agent, run, mut listener) = seven_seconds(&app, &user).await;
    agent.disconnect();
    dial_again(&mut agent, &app, run).await;
    tell(&agent, run, Part::Measured, 3..=5);
    listener.draws(8).await;
    assert_eq!(listener.seconds, upto(8));
    listener.again(&user, run).await;
    tell(&agent, run, Part::Measured, 6..=6);
    listener.draws(9).await;
    assert_eq!((listener.seconds, listener.samples.len()), (upto(9), 10));
}

#[tokio::test]
async fn nothing_is_doubled_when_the_server_was_started_anew() {
    let app = App::start().await;
    let user = app.user().await;
    let (mut agent, run, mut listener) = seven_seconds(&app, &user).await;
    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| config.listen.set_port(port)).await;
    while listener.hear().await {}
    assert!(listener.ended.is_none(), "the run goes on");
    listener.again(&user, run).await;
    dial_again(&mut agent, &app, run).await;
    tell(&agent, run, Part::Measured, 3..=6);
    listener.draws(9).await;
    assert_eq!((listener.seconds, listener.samples.len()), (upto(9), 10));
}

#[tokio::test]
async fn what_came_while_nobody_could_listen_is_told_at_the_end() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    agent.finish(&job, &good()).await;
    let mut listener = Listener::new(&user, job.run).await;
    while listener.hear().await {}
    assert_eq!((listener.seconds.len(), listener.samples.len()), (3, 4));
    assert!(listener.ended.is_some());
}

#[tokio::test]
async fn an_agent_is_heard_only_about_the_run_that_it_works_on() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    let mut stranger = Agent::disconnected(&app, "stranger").await;
    // It may claim what it likes.
    (stranger.hello.running, stranger.hello.holds) = (Some(job.run), vec![job.run]);
    stranger.hello.targets.clear();
    stranger.connect(&app).await.expect("a welcome");
    assert_eq!(stranger.cancelled().await, job.run);
    tell(&stranger, job.run, Part::Measured, 1..=9);
    let garbled = Portion { points: Packed::from_bytes(vec![7; 99]), ..portion(job.run, Part::Measured, 1..=1) };
    agent.send_message(&AgentMessage::Series(Box::new(garbled)));
    tell(&agent, job.run, Part::Measured, 1..=2);
    // What both said was heard before the next phase is.
    let mut listener = Listener::new(&user, job.run).await;
    listener.draws(2).await;
    tell(&stranger, job.run, Part::Measured, 1..=9);
    stranger.enter(job.run, Phase::Collecting);
    assert_eq!(stranger.cancelled().await, job.run, "it was heard, and so was what it said before");
    let series = app.state.live_feed.series(job.run).expect("a series");
    assert_eq!(series.measured.expect("seconds").seconds.len(), 2);
    assert_eq!(app.state.live_feed.open_runs(), [(job.run, "rack".to_owned())]);
    agent.finish(&job, &good()).await;
    app.until("nothing to be left", async || app.state.live_feed.open_runs().is_empty().then_some(())).await;
    tell(&agent, job.run, Part::Measured, 1..=9);
    agent.enter(job.run, Phase::Collecting);
    let mut agent = agent;
    while agent.cancelled().await != job.run {}
    assert_eq!(app.state.live_feed.open_runs(), [], "a run that has ended is not told of");
}

#[tokio::test]
async fn a_hundred_listeners_hear_the_same_and_who_does_not_read_holds_nobody_up() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    // Answers that nobody reads.
    let _deaf = join_all((0..20).map(|_| ask(&user, job.run, None))).await;
    let mut listeners = join_all((0..100).map(|_| Listener::new(&user, job.run))).await;
    for second in 1..=60 {
        tell(&agent, job.run, Part::Measured, second..=second);
    }
    join_all(listeners.iter_mut().map(|listener| listener.draws(60))).await;
    for listener in &listeners {
        assert_eq!(listener.seconds, upto(60));
    }
    agent.finish(&job, &good()).await;
    join_all(listeners.iter_mut().map(async |listener| while listener.hear().await {})).await;
    assert!(listeners.iter().all(|listener| listener.ended.is_some()));
}

#[tokio::test]
async fn what_runs_is_told_with_its_present_rate() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    submit_one(&user).await;
    tell(&agent, job.run, Part::Measured, 1..=2);
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
async fn without_a_terminal_watching_is_a_line_a_second_or_json_a_point() {
    let app = App::start().await;
    let user = app.user().await;
    let (agent, job) = measuring(&app, &user).await;
    tell(&agent, job.run, Part::WarmUp, 1..=3);
    tell(&agent, job.run, Part::Measured, 1..=2);
    agent.finish(&job, &good()).await;
    let id = job.run.to_string();
    let watch = async |more: &[&str]| {
        let arguments = [&["run", "watch", id.as_str()], more].concat();
        crate::harness::program::as_user(&app, user.secret(), &arguments).await
    };
    let told = watch(&[]).await;
    assert_eq!(told.code, Some(0), "{}", told.err);
    let lines: Vec<&str> = told.err.lines().filter(|line| line.contains("req/s")).collect();
    assert_eq!(lines.len(), 3, "{}", told.err);
    assert!(lines.iter().all(|line| line.chars().count() <= 80) && lines[0].contains("17,077 req/s"), "{lines:#?}");
    assert!(told.out.contains("fast"), "{}", told.out);

    let out = watch(&["--json"]).await.ok();
    let lines: Vec<serde_json::Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("second"), of("usage"), of("run"), lines.len()), (3, 4, 1, 8));
    let last = lines.last().expect("a run");
    assert_eq!((text(&last["kind"]), text(&last["id"])), ("run".to_owned(), id.clone()));
    let missing =
        crate::harness::program::as_user(&app, user.secret(), &["run", "watch", &RunId::now().to_string()]).await;
    assert!(missing.refused(1).contains("run"), "it does not wait for what is not there");
}
