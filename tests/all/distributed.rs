//! Distributed runs: assigned to all participants or none, started at the same time, ended for all.

use brewbench_wire::{
    Phase, RunId,
    job::{Job, Role, Segment},
    messages::{AgentMessage, Gate, ServerMessage},
    now_ms,
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    program::{Running, Tools, brewbench},
    submit::{plan_with, reaches, retry_of, submit, text, vus},
};

const URL: &str = "http://10.0.0.5:40123";

/// Starts an agent that accepts load from others.
async fn host(app: &App, name: &str) -> Agent {
    Agent::start_with(app, name, |hello| hello.load_address = Some([10, 0, 0, 5].into())).await
}

fn plan(generators: &[&str], changes: &Value) -> Value {
    let mut plan = plan_with(changes);
    plan["generators"] = json!(generators);
    plan
}

/// A run that is assigned to its host, `rack`, and to two generators.
struct Three {
    app: App,
    user: Actor,
    run: RunId,
    rack: Agent,
    one: Agent,
    two: Agent,
}

impl Three {
    async fn start(app: App) -> Self {
        let user = app.admin().await;
        let (mut rack, mut one, mut two) = (
            Box::pin(host(&app, "rack")).await,
            Box::pin(Agent::start(&app, "one")).await,
            Agent::start(&app, "two").await,
        );
        let (_, runs) = submit(&user, &plan(&["one", "two"], &json!({}))).await;
        let run = runs[0].parse().expect("an id");
        let mut roles = Vec::new();
        for agent in [&mut rack, &mut one, &mut two] {
            let job = agent.job().await;
            assert_eq!(job.run, run);
            roles.push(job.role);
        }
        let part = |index| Role::Generator(Segment { index, of: 2 });
        assert_eq!(roles, [Role::Host, part(0), part(1)]);
        Self { app, user, run, rack, one, two }
    }

    /// Takes all three through a barrier; returns its times by the generators' clocks, which are off by `off_ms`.
    async fn pass(&mut self, gate: Gate, off_ms: [i64; 2]) -> [i64; 2] {
        let Self { run, rack, one, two, .. } = self;
        arrive(rack, *run, gate, Some(URL));
        arrive(one, *run, gate, None);
        arrive(two, *run, gate, None);
        let (_, first, second) =
            tokio::join!(passed(rack, gate, 0), passed(one, gate, off_ms[0]), passed(two, gate, off_ms[1]));
        [first, second]
    }
}

fn arrive(agent: &Agent, run: RunId, gate: Gate, base_url: Option<&str>) {
    agent.send_message(&AgentMessage::At { run, gate, base_url: base_url.map(str::to_owned) });
}

/// Answers with a clock that is off by `off_ms` until the barrier opens; returns the time to continue.
async fn passed(agent: &mut Agent, wanted: Gate, off_ms: i64) -> i64 {
    loop {
        match agent.receive().await {
            Some(ServerMessage::Clock { sent_ms }) => {
                agent.send_message(&AgentMessage::Clock { sent_ms, now_ms: now_ms() + off_ms });
            }
            Some(ServerMessage::Pass { gate, at_ms, base_url, .. }) => {
                assert_eq!((gate, base_url.as_str()), (wanted, URL));
                return at_ms;
            }
            other => panic!("neither a clock request nor a pass: {other:?}"),
        }
    }
}

#[tokio::test]
async fn generators_start_at_the_same_time_despite_wrong_clocks() {
    let mut three = Three::start(App::start().await).await;
    assert_eq!(three.pass(Gate::Load, [0, 0]).await, [0, 0]);
    three.rack.enter(three.run, Phase::WarmingUp);
    let (hour, second) = (3_600_000, 1_000);
    let [first, other] = three.pass(Gate::Measure, [hour, -second]).await;
    let apart = (first - hour) - (other + second);
    assert!(apart.abs() <= 200, "{apart} ms: limited by the latency of this machine");
    three.rack.enter(three.run, Phase::Measuring);
    reaches(&three.app, &three.user, &three.run.to_string(), "measuring").await;
    three.pass(Gate::End, [0, 0]).await;
    let run = three.user.run(&three.run.to_string()).await;
    assert_eq!((&run["agent"], &run["generators"]), (&json!("rack"), &json!(["one", "two"])));
}

#[tokio::test]
async fn a_run_continues_after_a_reconnection_and_a_restart_of_the_server() {
    let mut three = Three::start(App::start().await).await;
    three.pass(Gate::Load, [0, 0]).await;
    let Three { app, mut rack, mut one, mut two, run, .. } = three;
    // The connection breaks: the generator arrives at the barrier again.
    one.disconnect();
    one.hello.running = Some(run);
    one.hello.holds = vec![run];
    one.connect(&app).await.expect("a welcome");
    arrive(&one, run, Gate::Load, None);
    assert_eq!(passed(&mut one, Gate::Load, 0).await, 0);

    let folder = app.stop().await;
    let app = App::on(folder, |_| ()).await;
    for agent in [&mut rack, &mut one, &mut two] {
        agent.disconnect();
        agent.hello.running = Some(run);
        agent.hello.holds = vec![run];
        agent.connect(&app).await.expect("a welcome");
    }
    let user = app.admin().await;
    let mut three = Three { app, user, run, rack, one, two };
    three.pass(Gate::Measure, [0, 0]).await;
}

#[tokio::test]
async fn a_lost_generator_ends_the_run_for_all_and_it_is_retried() {
    let mut three = Three::start(App::start().await).await;
    let id = three.run.to_string();
    // Expires its lease at once.
    let expire =
        "update lease set expires_at = 0 where run_id = ? and agent_id = (select id from agent where name = 'two')";
    let expire = sqlx::query(expire).bind(&id);
    expire.execute(&three.app.state.db.write).await.expect("a part");
    let failed = reaches(&three.app, &three.user, &id, "failed").await;
    assert_eq!(failed["verdict"], "invalid", "{failed}");
    assert_eq!(failed["reasons"][0]["code"], "generator_lost");
    assert!(text(&failed["error"]).starts_with("two, which generated load, sent no heartbeat"), "{failed}");
    for agent in [&mut three.rack, &mut three.one] {
        assert_eq!(stopped(agent).await, three.run);
    }
    let again = retry_of(&three.user, &id).await.expect("a retry");
    assert_eq!(again["generators"], json!(["one", "two"]));
}

/// Waits for the next cancellation, skips other messages and returns its run.
async fn stopped(agent: &mut Agent) -> RunId {
    loop {
        match agent.receive().await {
            Some(ServerMessage::Cancel { run }) => return run,
            Some(_) => {}
            None => panic!("the connection is closed"),
        }
    }
}

#[tokio::test]
async fn a_restarted_or_declining_generator_ends_the_run_for_all() {
    let mut three = Three::start(App::start().await).await;
    three.two.disconnect();
    three.two.connect(&three.app).await.expect("a welcome");
    let id = three.run.to_string();
    let failed = reaches(&three.app, &three.user, &id, "failed").await;
    assert!(text(&failed["error"]).contains("two, which generated load, was restarted"), "{failed}");
    assert_eq!(stopped(&mut three.rack).await, three.run);

    let mut three = Three::start(App::start().await).await;
    three.one.send_message(&AgentMessage::Declined { run: three.run, reason: "it is ending".to_owned() });
    let failed = reaches(&three.app, &three.user, &three.run.to_string(), "failed").await;
    assert_eq!(failed["error"], "one declined: it is ending");
    assert_eq!(stopped(&mut three.two).await, three.run);
}

#[tokio::test]
async fn a_cancelled_run_stops_everywhere_and_frees_all_agents() {
    let mut three = Three::start(App::start().await).await;
    let id = three.run.to_string();
    three.user.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).await.ok();
    for agent in [&mut three.rack, &mut three.one, &mut three.two] {
        assert_eq!(stopped(agent).await, three.run);
        agent.send_message(&AgentMessage::Done { run: three.run });
    }
    let (_, runs) = submit(&three.user, &plan(&["one", "two"], &json!({}))).await;
    assert_eq!(three.rack.job().await.run.to_string(), runs[0]);
}

/// Cancels a run and frees its participants.
async fn cancel(user: &Actor, job: &Job, participants: &mut [&mut Agent]) {
    user.post(&format!("/api/v1/runs/{}/cancel", job.run), &json!({})).await.ok();
    for agent in participants {
        assert_eq!(stopped(agent).await, job.run);
        agent.send_message(&AgentMessage::Done { run: job.run });
    }
}

#[tokio::test]
async fn runs_that_need_each_others_agents_never_deadlock() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut a, mut b) = (host(&app, "a").await, host(&app, "b").await);
    // The host of each generates the load of the other.
    for _ in 0..2 {
        submit(&user, &plan(&["b"], &json!({"agent": "a", "repetitions": 2}))).await;
        submit(&user, &plan(&["a"], &json!({"agent": "b", "repetitions": 2}))).await;
    }
    for _ in 0..8 {
        let (job, part) = (a.job().await, b.job().await);
        assert_eq!(job.run, part.run, "both do the same run");
        assert_ne!(job.role, part.role);
        cancel(&user, &job, &mut [&mut a, &mut b]).await;
    }
    let queue = user.get("/api/v1/queue").await.ok().json();
    assert_eq!(queue["total"], 0, "{queue}");
}

#[tokio::test]
async fn runs_of_one_agent_do_not_starve_a_distributed_run() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut rack, mut one) = (host(&app, "rack").await, Agent::start(&app, "one").await);
    submit(&user, &plan_with(&json!({"agent": "rack"}))).await;
    let first = rack.job().await;
    let (_, both) = submit(&user, &plan(&["one"], &json!({"agent": "rack"}))).await;
    // Its generator could start these at once.
    submit(&user, &plan_with(&json!({"agent": "one", "repetitions": 5}))).await;
    let queue = user.get("/api/v1/queue").await.ok().json();
    assert_eq!((&queue["waiting"][0]["run"]["id"], &queue["waiting"][0]["reason"]), (&json!(both[0]), &json!("busy")));
    cancel(&user, &first, &mut [&mut rack]).await;
    assert_eq!(rack.job().await.run.to_string(), both[0]);
    assert_eq!(one.job().await.run.to_string(), both[0], "it was reserved for this run");
}

#[tokio::test]
async fn an_impossible_distributed_run_is_refused_with_its_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let _rack = host(&app, "rack").await;
    let _closed = Agent::start_with(&app, "closed", |_| ()).await;
    let table: [(&[&str], Value, u16, &str); 6] = [
        (&["unknown"], json!({}), 409, "generators: \"unknown\" is not connected"),
        (&["closed", "closed"], json!({}), 422, "generators: one is named twice"),
        (
            &["rack"],
            json!({"agent": "rack"}),
            422,
            "generators: rack runs the target; name other agents, or omit generators",
        ),
        (
            &["rack"],
            json!({"agent": "closed"}),
            409,
            "target: other agents can't load \"fast\": closed accepts no load from other agents: start it with \
            --load-address",
        ),
        (
            &["closed", "rack"],
            json!({"load": vus(1, 1.0)}),
            422,
            "generators: a load of 1 can't be split between 2 agents",
        ),
        (&["rack"], json!({"agent": "gone"}), 409, "agent: \"gone\" is not connected"),
    ];
    for (generators, changes, status, expected) in table {
        let error = user.post("/api/v1/experiments", &plan(generators, &changes)).await.refused(status);
        assert_eq!(error, expected, "{generators:?} {changes}");
    }
}

#[tokio::test]
async fn an_agent_without_the_run_cannot_open_its_barrier() {
    let mut three = Three::start(App::start().await).await;
    let mut stranger = Agent::start(&three.app, "stranger").await;
    arrive(&stranger, three.run, Gate::Load, Some("http://10.9.9.9:1"));
    assert_eq!(stranger.cancelled().await, three.run);
    stranger.send_message(&AgentMessage::Clock { sent_ms: i64::MAX, now_ms: i64::MIN });
    // Only the host sets the target's address.
    arrive(&three.one, three.run, Gate::Load, Some("http://10.9.9.9:1"));
    three.pass(Gate::Load, [0, 0]).await;
}

#[tokio::test]
async fn a_renamed_generator_has_its_new_name_in_waiting_runs() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut rack, _one) = (host(&app, "rack").await, Agent::start(&app, "one").await);
    submit(&user, &plan_with(&json!({"agent": "rack"}))).await;
    rack.job().await;
    let (experiment, runs) = submit(&user, &plan(&["one"], &json!({"agent": "rack"}))).await;
    user.put("/api/v1/agents/one/name", &json!({"name": "gen"})).await.ok();
    assert_eq!(user.run(&runs[0]).await["generators"], json!(["gen"]));
    let shown = user.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
    assert_eq!(shown["experiment"]["plan"]["generators"], json!(["gen"]));
}

/// Starts a real agent on this machine, whose targets listen on an address of their own.
async fn real_agent(app: &App, tools: &Tools, folder: &std::path::Path, name: &str) -> Running {
    let (url, key, k6) = (app.url.to_string(), app.one_time_key(name).await, tools.k6.display().to_string());
    let state = folder.join(name).display().to_string();
    let arguments =
        ["agent", "--server", &url, "--key", &key, "--state", &state, "--k6", &k6, "--load-address", "127.0.0.2"];
    let mut agent = brewbench(&arguments);
    agent.arg("--any-scenario");
    let agent = Running::start(agent);
    app.until(name, async || app.state.events.agents().borrow().gt(&0).then_some(())).await;
    agent
}

#[tokio::test]
async fn real_agents_measure_one_target_together() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, folder) = (app.admin().await, tempfile::tempdir().expect("a folder"));
    let mut agents = Vec::new();
    for name in ["rack", "one", "two"] {
        agents.push(real_agent(&app, &tools, folder.path(), name).await);
    }
    app.until("all agents", async || {
        let list = user.get("/api/v1/agents").await.ok().json();
        let connected = list["agents"].as_array()?.iter().filter(|agent| agent["connected"] == true).count();
        (connected == 3).then_some(())
    })
    .await;
    let script = "import http from 'k6/http';
        export const options = { thresholds: {
            http_reqs: ['count>1', 'count<1'], http_req_duration: ['p(95)<60000'], http_req_waiting: ['p(90)<60000'] } };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); }";
    user.post("/api/v1/scenarios", &json!({"name": "mine", "script": script, "files": {}, "defaults": {}})).await.ok();
    let changes = json!({"targets": ["rust-hyper"], "scenario": "mine", "agent": "rack", "load": vus(4, 3.0),
        "warm_up_s": 0.5, "retries": 0});
    let (_, runs) = submit(&user, &plan(&["one", "two"], &changes)).await;
    let ended = app
        .until("the end of the run", async || {
            let run = user.run(&runs[0]).await;
            ["finished", "failed", "lost"].iter().any(|phase| run["phase"] == *phase).then_some(run)
        })
        .await;
    assert_eq!(ended["phase"], "finished", "{ended}");
    assert_eq!((&ended["agent"], &ended["generators"]), (&json!("rack"), &json!(["one", "two"])));
    for metric in ["requests", "rps", "p50_ms", "p99_ms", "avg_ms", "max_ms"] {
        assert!(ended[metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {ended}");
    }
    assert_eq!(ended["failed"], 0);
    assert_eq!((&ended["thresholds"], &ended["thresholds_failed"]), (&json!(4), &json!(1)), "{ended}");
    let list = user.get(&format!("/api/v1/runs/{}/generators", runs[0])).await.ok().json();
    let merged: Vec<_> =
        list["thresholds"].as_array().expect("a list").iter().map(|one| (&one["basis"], &one["own"])).collect();
    let (both, neither) = (json!([true, true]), json!([false, false]));
    let expected = [("added", &neither), ("histogram", &both), ("unanimous", &both), ("added", &both)];
    assert_eq!(merged, expected.map(|(basis, own)| (json!(basis), own)).each_ref().map(|(basis, own)| (basis, *own)));
    let environment = user.get(&format!("/api/v1/runs/{}/environment", runs[0])).await.ok().json();
    for generator in environment["generators"].as_array().expect("a list") {
        let facts = &generator["facts"];
        assert!(facts["kernel.release"].is_string() && facts["target.sha256"].is_null(), "{generator}");
    }
}
