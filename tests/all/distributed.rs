//! Runs whose load comes from other agents: given to all of them or to nobody, begun at one moment, ended for all.

use brewbench_agent::wire::{
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

/// An agent that lets load come from others.
async fn host(app: &App, name: &str) -> Agent {
    Agent::start_with(app, name, |hello| hello.load_address = Some([10, 0, 0, 5].into())).await
}

fn plan(generators: &[&str], changes: &Value) -> Value {
    let mut plan = plan_with(changes);
    plan["generators"] = json!(generators);
    plan
}

/// A run of a host, `rack`, with two generators that has been given to all three.
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
        let (mut rack, mut one, mut two) =
            (host(&app, "rack").await, Agent::start(&app, "one").await, Agent::start(&app, "two").await);
        let (_, runs) = submit(&user, &plan(&["one", "two"], &json!({}))).await;
        let run = runs[0].parse().expect("an id");
        let roles = [rack.job().await, one.job().await, two.job().await].map(|job| {
            assert_eq!(job.run, run);
            job.role
        });
        let part = |index| Role::Generator(Segment { index, of: 2 });
        assert_eq!(roles, [Role::Host, part(0), part(1)]);
        Self { app, user, run, rack, one, two }
    }

    /// All are at a gate and are let through; gives when, by the clocks of the generators, which are off by so much.
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
    agent.say(&AgentMessage::At { run, gate, base_url: base_url.map(str::to_owned) });
}

/// Tells the time by a clock that is off by so much, until it is let through; gives when it may go on.
async fn passed(agent: &mut Agent, wanted: Gate, off_ms: i64) -> i64 {
    loop {
        match agent.hear().await {
            Some(ServerMessage::Clock { asked_ms }) => {
                agent.say(&AgentMessage::Clock { asked_ms, now_ms: now_ms() + off_ms });
            }
            Some(ServerMessage::Pass { gate, at_ms, base_url, .. }) => {
                assert_eq!((gate, base_url.as_str()), (wanted, URL));
                return at_ms;
            }
            other => panic!("neither asked nor let through: {other:?}"),
        }
    }
}

#[tokio::test]
async fn all_begin_at_one_moment_whatever_their_clocks_say() {
    let mut three = Three::start(App::start().await).await;
    assert_eq!(three.pass(Gate::Load, [0, 0]).await, [0, 0]);
    three.rack.enter(three.run, Phase::WarmingUp);
    let (hour, second) = (3_600_000, 1_000);
    let [first, other] = three.pass(Gate::Measure, [hour, -second]).await;
    let apart = (first - hour) - (other + second);
    assert!(apart.abs() <= 200, "{apart} ms: as exact as this machine answers");
    three.rack.enter(three.run, Phase::Measuring);
    reaches(&three.app, &three.user, &three.run.to_string(), "measuring").await;
    three.pass(Gate::End, [0, 0]).await;
    let run = three.user.run(&three.run.to_string()).await;
    assert_eq!((&run["agent"], &run["generators"]), (&json!("rack"), &json!(["one", "two"])));
}

#[tokio::test]
async fn who_has_not_heard_is_told_again_and_a_server_that_was_away_goes_on() {
    let mut three = Three::start(App::start().await).await;
    three.pass(Gate::Load, [0, 0]).await;
    let Three { app, mut rack, mut one, mut two, run, .. } = three;
    // The line breaks: it says where it is once more.
    one.hang_up();
    one.hello.running = Some(run);
    one.hello.holds = vec![run];
    one.dial(&app).await.expect("a welcome");
    arrive(&one, run, Gate::Load, None);
    assert_eq!(passed(&mut one, Gate::Load, 0).await, 0);

    let folder = app.stop().await;
    let app = App::on(folder, |_| ()).await;
    for agent in [&mut rack, &mut one, &mut two] {
        agent.hang_up();
        agent.hello.running = Some(run);
        agent.hello.holds = vec![run];
        agent.dial(&app).await.expect("a welcome");
    }
    let user = app.admin().await;
    let mut three = Three { app, user, run, rack, one, two };
    three.pass(Gate::Measure, [0, 0]).await;
}

#[tokio::test]
async fn one_generator_that_dies_ends_the_run_for_all_and_it_is_done_again() {
    let mut three = Three::start(App::start().await).await;
    let id = three.run.to_string();
    // Its silence, without the time that it takes.
    let silent = sqlx::query("update lease set expires_at = 0 where run_id = ? and agent = 'two'").bind(&id);
    silent.execute(&three.app.state.db.write).await.expect("a part");
    let failed = reaches(&three.app, &three.user, &id, "failed").await;
    assert_eq!(failed["verdict"], "invalid", "{failed}");
    assert_eq!(failed["reasons"][0]["code"], "generator_lost");
    assert!(text(&failed["error"]).starts_with("two, which generated load, was silent"), "{failed}");
    for agent in [&mut three.rack, &mut three.one] {
        assert_eq!(stopped(agent).await, three.run);
    }
    let again = retry_of(&three.user, &id).await.expect("its repetition");
    assert_eq!(again["generators"], json!(["one", "two"]));
}

/// The run that it is told to stop, whatever else it is told before.
async fn stopped(agent: &mut Agent) -> RunId {
    loop {
        match agent.hear().await {
            Some(ServerMessage::Cancel { run }) => return run,
            Some(_) => {}
            None => panic!("a goodbye"),
        }
    }
}

#[tokio::test]
async fn who_was_started_anew_or_would_not_go_on_ends_the_run_for_all() {
    let mut three = Three::start(App::start().await).await;
    three.two.hang_up();
    three.two.dial(&three.app).await.expect("a welcome");
    let id = three.run.to_string();
    let failed = reaches(&three.app, &three.user, &id, "failed").await;
    assert!(text(&failed["error"]).contains("two, which generated load, was restarted"), "{failed}");
    assert_eq!(stopped(&mut three.rack).await, three.run);

    let mut three = Three::start(App::start().await).await;
    three.one.say(&AgentMessage::Declined { run: three.run, reason: "it is ending".to_owned() });
    let failed = reaches(&three.app, &three.user, &three.run.to_string(), "failed").await;
    assert_eq!(failed["error"], "one would not go on: it is ending");
    assert_eq!(stopped(&mut three.two).await, three.run);
}

#[tokio::test]
async fn a_cancelled_run_is_stopped_everywhere_and_all_are_free_again() {
    let mut three = Three::start(App::start().await).await;
    let id = three.run.to_string();
    three.user.post(&format!("/api/v1/runs/{id}/cancel"), &json!({})).await.ok();
    for agent in [&mut three.rack, &mut three.one, &mut three.two] {
        assert_eq!(stopped(agent).await, three.run);
        agent.say(&AgentMessage::Done { run: three.run });
    }
    let (_, runs) = submit(&three.user, &plan(&["one", "two"], &json!({}))).await;
    assert_eq!(three.rack.job().await.run.to_string(), runs[0]);
}

/// Ends a run that nobody wants: whoever does a part of it is free.
async fn let_go(user: &Actor, job: &Job, crew: &mut [&mut Agent]) {
    user.post(&format!("/api/v1/runs/{}/cancel", job.run), &json!({})).await.ok();
    for agent in crew {
        assert_eq!(stopped(agent).await, job.run);
        agent.say(&AgentMessage::Done { run: job.run });
    }
}

#[tokio::test]
async fn two_that_want_each_other_s_agents_never_wait_for_each_other() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut a, mut b) = (host(&app, "a").await, host(&app, "b").await);
    // Each one's host makes the other one's load.
    for _ in 0..2 {
        submit(&user, &plan(&["b"], &json!({"agent": "a", "repetitions": 2}))).await;
        submit(&user, &plan(&["a"], &json!({"agent": "b", "repetitions": 2}))).await;
    }
    for _ in 0..8 {
        let (job, part) = (a.job().await, b.job().await);
        assert_eq!(job.run, part.run, "both do the same run");
        assert_ne!(job.role, part.role);
        let_go(&user, &job, &mut [&mut a, &mut b]).await;
    }
    let queue = user.get("/api/v1/queue").await.ok().json();
    assert_eq!(queue["total"], 0, "{queue}");
}

#[tokio::test]
async fn runs_of_one_agent_do_not_keep_a_run_of_several_from_beginning() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut rack, mut one) = (host(&app, "rack").await, Agent::start(&app, "one").await);
    submit(&user, &plan_with(&json!({"agent": "rack"}))).await;
    let first = rack.job().await;
    let (_, both) = submit(&user, &plan(&["one"], &json!({"agent": "rack"}))).await;
    // It could do these at once, and for ever.
    submit(&user, &plan_with(&json!({"agent": "one", "repetitions": 5}))).await;
    let queue = user.get("/api/v1/queue").await.ok().json();
    assert_eq!((&queue["waiting"][0]["run"]["id"], &queue["waiting"][0]["reason"]), (&json!(both[0]), &json!("busy")));
    let_go(&user, &first, &mut [&mut rack]).await;
    assert_eq!(rack.job().await.run.to_string(), both[0]);
    assert_eq!(one.job().await.run.to_string(), both[0], "it was kept for this");
}

#[tokio::test]
async fn what_can_not_be_done_together_is_refused_with_its_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let _rack = host(&app, "rack").await;
    let _closed = Agent::start_with(&app, "closed", |_| ()).await;
    let table: [(&[&str], Value, u16, &str); 6] = [
        (&["nobody"], json!({}), 409, "generators: \"nobody\" is not connected"),
        (&["closed", "closed"], json!({}), 422, "generators: one is named twice"),
        (
            &["rack"],
            json!({"agent": "rack"}),
            422,
            "generators: rack runs the target; name others, or leave generators out",
        ),
        (
            &["rack"],
            json!({"agent": "closed"}),
            409,
            "target: \"fast\" can't be loaded by other agents: closed lets no load come from other agents: start it with \
             --load-address",
        ),
        (&["closed", "rack"], json!({"load": vus(1, 1.0)}), 422, "generators: a load of 1 can't be split between 2"),
        (&["rack"], json!({"agent": "gone"}), 409, "agent: \"gone\" is not connected"),
    ];
    for (generators, changes, status, told) in table {
        let said = user.post("/api/v1/experiments", &plan(generators, &changes)).await.refused(status);
        assert_eq!(said, told, "{generators:?} {changes}");
    }
}

#[tokio::test]
async fn a_stranger_at_a_gate_is_told_to_stop_and_opens_nothing() {
    let mut three = Three::start(App::start().await).await;
    let mut stranger = Agent::start(&three.app, "stranger").await;
    arrive(&stranger, three.run, Gate::Load, Some("http://10.9.9.9:1"));
    assert_eq!(stranger.cancelled().await, three.run);
    stranger.say(&AgentMessage::Clock { asked_ms: i64::MAX, now_ms: i64::MIN });
    // What a generator says of the target's address counts for nothing.
    arrive(&three.one, three.run, Gate::Load, Some("http://10.9.9.9:1"));
    three.pass(Gate::Load, [0, 0]).await;
}

#[tokio::test]
async fn a_generator_that_gets_another_name_is_waited_for_under_that_one() {
    let app = App::start().await;
    let user = app.admin().await;
    let (mut rack, _one) = (host(&app, "rack").await, Agent::start(&app, "one").await);
    submit(&user, &plan_with(&json!({"agent": "rack"}))).await;
    rack.job().await;
    let (experiment, runs) = submit(&user, &plan(&["one"], &json!({"agent": "rack"}))).await;
    user.put("/api/v1/agents/one/name", &json!({"name": "gen"})).await.ok();
    assert_eq!(user.run(&runs[0]).await["generators"], json!(["gen"]));
    let whole = user.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
    assert_eq!(whole["experiment"]["plan"]["generators"], json!(["gen"]));
}

/// A real agent on this machine, with targets that listen where no other run's do.
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
    let asked = json!({"targets": ["rust-hyper"], "scenario": "mine", "agent": "rack", "load": vus(4, 3.0),
        "warm_up_s": 0.5, "retries": 0});
    let (_, runs) = submit(&user, &plan(&["one", "two"], &asked)).await;
    let ended = app
        .until("the end of the run", async || {
            let run = user.run(&runs[0]).await;
            ["finished", "failed", "lost"].iter().any(|phase| run["phase"] == *phase).then_some(run)
        })
        .await;
    assert_eq!(ended["phase"], "finished", "{ended}");
    assert_eq!((&ended["agent"], &ended["generators"]), (&json!("rack"), &json!(["one", "two"])));
    for figure in ["requests", "rps", "p50_ms", "p99_ms", "avg_ms", "max_ms"] {
        assert!(ended[figure].as_f64().is_some_and(|value| value > 0.0), "{figure}: {ended}");
    }
    assert_eq!(ended["failed"], 0);
    assert_eq!((&ended["thresholds"], &ended["thresholds_failed"]), (&json!(4), &json!(1)), "{ended}");
    let list = user.get(&format!("/api/v1/runs/{}/generators", runs[0])).await.ok().json();
    let told: Vec<_> =
        list["thresholds"].as_array().expect("a list").iter().map(|one| (&one["basis"], &one["own"])).collect();
    let (both, neither) = (json!([true, true]), json!([false, false]));
    let expected = [("added", &neither), ("histogram", &both), ("unanimous", &both), ("added", &both)];
    assert_eq!(told, expected.map(|(basis, own)| (json!(basis), own)).each_ref().map(|(basis, own)| (basis, *own)));
    let environment = user.get(&format!("/api/v1/runs/{}/environment", runs[0])).await.ok().json();
    for generator in environment["generators"].as_array().expect("a list") {
        let facts = &generator["facts"];
        assert!(facts["kernel.release"].is_string() && facts["target.sha256"].is_null(), "{generator}");
    }
}
