//! Submissions: refusals and their messages, the order of runs, progress, and comparisons.

use brewbench_wire::{
    Phase,
    outcome::{Cause, Conditions, Ended, Outcome},
    run_spec::HttpVersion,
};
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    agent::outcome,
    submit::{plan_with, reaches, submit, text, vus},
    summaries::{good, good_with, target_down},
};

#[tokio::test]
async fn without_an_agent_nothing_is_queued() {
    let app = App::start().await;
    let user = app.user().await;
    let sentence = user.post("/api/v1/experiments", &plan_with(&json!({}))).await.refused(409);
    assert_eq!(
        sentence,
        "no agent is connected; start one with `brewbench agent`, or start the server with --local-agent"
    );
    let named = user.post("/api/v1/experiments", &plan_with(&json!({"agent": "rack"}))).await.refused(409);
    assert_eq!(named, "agent: \"rack\" is not connected");
    assert_eq!(user.count_runs().await, 0);
}

#[tokio::test]
async fn runs_submitted_after_a_restart_wait_for_known_agents() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    agent.disconnect();
    let app = App::on(app.stop().await, |_| ()).await;
    let user = app.user().await;
    let queued = user.post("/api/v1/experiments", &plan_with(&json!({}))).await.ok().json();
    let run = text(&queued["runs"][0]["id"]);
    let queue = user.get("/api/v1/queue").await.ok().text();
    assert!(queue.contains(&run) && queue.contains("no agent is connected"), "{queue}");
    user.post("/api/v1/experiments", &plan_with(&json!({"agent": "rack"}))).await.ok();
    for (change, refusal) in [
        (json!({"targets": ["never-offered"]}), "no agent is connected; start one with"),
        (json!({"agent": "nobody"}), "agent: \"nobody\" is not connected"),
        (json!({"generators": ["nobody"]}), "no agent is connected; start one with"),
    ] {
        let sentence = user.post("/api/v1/experiments", &plan_with(&change)).await.refused(409);
        assert!(sentence.starts_with(refusal), "{sentence}");
    }
    agent.connect(&app).await.expect("a connection");
    assert_eq!(agent.job().await.run.to_string(), run);
}

#[tokio::test]
async fn impossible_plans_are_refused_at_submission_with_the_reason() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let _agent = Agent::start(&app, "rack").await;
    let huge = json!({"name": "huge", "vcpus": 4.0, "memory_bytes": 64_u64 << 30});
    admin.post("/api/v1/sizes", &huge).await.ok();
    user.post("/api/v1/scenarios", &json!({"name": "mine", "script": "export default 1"})).await.ok();
    let refused = [
        (409, json!({"targets": ["nginx"]}), "target: no connected agent offers \"nginx\"; offered: fast, slow"),
        (
            409,
            json!({"sizes": ["16/16GiB"]}),
            "size: no connected agent that offers \"fast\" can provide 16 vCPU / 16 GiB; rack has 8 cores",
        ),
        (
            409,
            json!({"sizes": ["huge"]}),
            "size: no connected agent that offers \"fast\" can provide huge; rack has 32.0 GiB of memory",
        ),
        (
            409,
            json!({"scenario": "mine"}),
            "scenario: no connected agent runs user scenarios such as \"mine\"; start one with --any-scenario",
        ),
        (409, json!({"agent": "other"}), "agent: \"other\" is not connected"),
        (
            409,
            json!({"http_version": "2"}),
            "http_version: rack has k6 1.8.1, which can't force HTTP/2 (auto uses it if the target offers it with TLS)",
        ),
        (
            422,
            json!({"sizes": ["enormous"]}),
            "sizes: \"enormous\" does not exist; `brewbench size list` lists the sizes, 2/4GiB adds one",
        ),
        (422, json!({"sizes": ["0/4GiB"]}), "sizes: \"0/4GiB\": vcpus: 0 is not between 0.01 and 4096"),
        (422, json!({"scenario": "nothing"}), "scenario: \"nothing\" does not exist"),
        (422, json!({"parameters": {"SIZE": "1"}}), "parameters: \"hash\" has no parameter \"SIZE\"; it has none"),
        (
            422,
            json!({"scenario": "single-file", "parameters": {"SIZE": "1"}}),
            "parameters: \"single-file\" has no parameter \"SIZE\"; it has PAYLOAD",
        ),
        (422, json!({"targets": []}), "targets: name at least one"),
        (422, json!({"sizes": []}), "sizes: name at least one"),
        (422, json!({"targets": ["fast", "fast"]}), "targets: one is named twice"),
        (422, json!({"sizes": ["1/256MiB", "1 vCPU / 256 MiB"]}), "sizes: \"1 vCPU / 256 MiB\" is named twice"),
        (422, json!({"repetitions": 0}), "repetitions: at least 1"),
        (422, json!({"repetitions": 10_001}), "this makes 10001 runs; an experiment has at most 10000"),
        (422, json!({"warm_up_s": -1.0}), "warm_up_s: must be between 0 and 86400 seconds"),
        (422, json!({"warm_up_s": 0.0, "warm_up_auto": true}), "warm_up_s: must be more than 0 if warm_up_auto is set"),
        (
            422,
            json!({"warm_up_s": 2.0, "warm_up_auto": true, "generators": ["other"]}),
            "warm_up_auto: can't be combined with generators, whose warm-ups must end together",
        ),
        (422, json!({"name": "a\nb"}), "name: 1 to 80 characters on one line"),
    ];
    for (status, changes, sentence) in refused {
        let answer = user.post("/api/v1/experiments", &plan_with(&changes)).await;
        assert_eq!(answer.refused(status), sentence, "{changes}");
    }
    for (changes, place) in [
        (json!({"load": vus(0, 1.0)}), "load: vus: between 1 and 100000"),
        (json!({"load": vus(1, 0.0)}), "load: duration: between 1 and 86400 seconds"),
        (json!({"load": {"kind": "vus", "vus": 1}}), "duration_s"),
        (json!({"load": {"kind": "vus", "vus": -1, "duration_s": 1}}), "-1"),
        (json!({"load": {"kind": "rate_stages", "stages": []}}), "load: stages: name at least one"),
        (json!({"load": {"kind": "loud"}}), "loud"),
        (json!({"vus": 1}), "vus"),
        (json!({"loud": true}), "loud"),
        (json!({"targets": "fast"}), "targets"),
    ] {
        let sentence = user.post("/api/v1/experiments", &plan_with(&changes)).await.refused(422);
        assert!(sentence.contains(place), "{sentence}");
    }
    assert_eq!(user.count_runs().await, 0);
}

#[tokio::test]
async fn a_short_size_is_added_when_an_experiment_first_uses_it() {
    let app = App::start().await;
    let (user, _agent) = (app.user().await, Agent::start(&app, "rack").await);
    let sizes = async || {
        let list = user.get("/api/v1/sizes").await.ok().json();
        let names = list["sizes"].as_array().expect("sizes").iter().map(|size| text(&size["name"]));
        names.collect::<Vec<_>>()
    };
    let before = sizes().await.len();
    user.post("/api/v1/experiments", &plan_with(&json!({"sizes": ["3/7GiB"], "scenario": "nothing"})))
        .await
        .refused(422);
    assert_eq!(sizes().await.len(), before, "a refused plan adds nothing");
    for _ in 0..2 {
        let (_, runs) = submit(&user, &plan_with(&json!({"sizes": ["3/7GiB"]}))).await;
        let size = &user.run(&runs[0]).await["size"];
        assert_eq!((&size["name"], &size["vcpus"]), (&json!("3 vCPU / 7 GiB"), &json!(3.0)));
    }
    let after = sizes().await;
    assert_eq!((after.len(), after.contains(&"3 vCPU / 7 GiB".to_owned())), (before + 1, true), "{after:?}");
    let log = app.admin().await.get("/api/v1/audit").await.ok().json();
    let added: Vec<_> =
        log["entries"].as_array().expect("entries").iter().filter(|entry| entry["action"] == "size added").collect();
    assert_eq!((added.len(), &added[0]["object"]), (1, &json!("3 vCPU / 7 GiB")), "{log}");
}

#[tokio::test]
async fn a_user_script_runs_only_on_agents_that_allow_it() {
    let app = App::start().await;
    let user = app.user().await;
    let _strict = Agent::start(&app, "a-strict").await;
    let mut willing = Agent::start_with(&app, "b-willing", |hello| hello.any_scenario = true).await;
    user.post(
        "/api/v1/scenarios",
        &json!({"name": "mine", "script": "export default 1", "defaults": {"N": "1", "M": "2"}}),
    )
    .await
    .ok();
    let (_, runs) = submit(&user, &plan_with(&json!({"scenario": "mine", "parameters": {"N": "5"}}))).await;
    let job = willing.job().await;
    assert_eq!((job.run.to_string(), job.scenario.script()), (runs[0].clone(), "export default 1"));
    let parameters: Vec<_> = job.spec.parameters.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!((parameters, job.scenario.defaults["M"].as_str()), (vec!["N=5".to_owned()], "2"));
}

#[tokio::test]
async fn runs_are_assigned_one_at_a_time_in_shuffled_order() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2, "warm_up_s": 2.5}));
    let (experiment, runs) = submit(&user, &plan).await;
    let mut targets = Vec::new();
    for id in &runs {
        let job = agent.job().await;
        assert_eq!(&job.run.to_string(), id);
        let size = job.spec.size.as_ref().expect("a size");
        assert_eq!((job.spec.warm_up_s, size.vcpus, size.memory_bytes), (Some(2.5), 1.0, 256 << 20));
        let list = user.get(&format!("/api/v1/runs?experiment={experiment}")).await.ok().json();
        let phases: Vec<_> = list["runs"].as_array().expect("runs").iter().map(|run| text(&run["phase"])).collect();
        assert_eq!(phases.iter().filter(|phase| *phase == "leased").count(), 1, "{phases:?}");
        targets.push(job.spec.target.clone());
        agent.finish(&job, &good()).await;
    }
    targets.sort();
    assert_eq!(targets, ["fast", "fast", "slow", "slow"], "the runs of two blocks are shuffled together");
    let full = user.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
    assert_eq!(full["progress"]["total"], 4);
    assert_eq!((&full["progress"]["ended"], &full["progress"]["share"]), (&json!(4), &json!(1.0)));
    assert_eq!(full["url"], format!("{}experiments/{experiment}", app.state.public_url));
}

#[tokio::test]
async fn the_event_stream_ends_when_all_runs_have_ended() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let request = user.request(&reqwest::Method::GET, &format!("/api/v1/experiments/{experiment}/events"));
    let following = tokio::spawn(crate::harness::Answer::to(request));
    for _ in &runs {
        let job = agent.job().await;
        agent.enter(job.run, Phase::Measuring);
        reaches(&app, &user, &job.run.to_string(), "measuring").await;
        agent.finish(&job, &good()).await;
    }
    let answer =
        tokio::time::timeout(crate::harness::PATIENCE, following).await.expect("an end").expect("no panic").ok();
    assert!(answer.header("content-type").starts_with("text/event-stream"));
    let text = answer.text();
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data:"))
        .map(|data| serde_json::from_str(data.trim()).expect("JSON"))
        .collect();
    let ended: Vec<_> = events.iter().map(|event| event["ended"].as_u64().expect("a number")).collect();
    assert!(ended.is_sorted() && ended.last() == Some(&2), "{ended:?}");
    assert_eq!(events.last().expect("an event")["remaining_s"], 0.0);
    user.get("/api/v1/experiments/nothing/events").await.refused(404);
}

#[tokio::test]
async fn cancelling_an_experiment_stops_its_run_and_keeps_ended_ones() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    let first = agent.job().await;
    agent.finish(&first, &good()).await;
    let second = agent.job().await;
    let full = user.post(&format!("/api/v1/experiments/{experiment}/cancel"), &()).await.ok().json();
    let phases: Vec<_> = full["runs"].as_array().expect("runs").iter().map(|run| text(&run["phase"])).collect();
    assert_eq!(phases, ["finished", "cancelled", "cancelled"]);
    assert_eq!(agent.cancelled().await, second.run);
    assert_eq!(full["progress"]["ended"], runs.len());
}

/// Compares one repetition of each of two targets: `fast` succeeds, `slow` ends as given.
async fn compared_with(end: impl FnOnce(&brewbench_wire::job::Job) -> Outcome) -> Value {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "retries": 0}));
    let (_, runs) = submit(&user, &plan).await;
    let mut end = Some(end);
    for id in &runs {
        let job = agent.job().await;
        match end.take_if(|_| job.spec.target == "slow") {
            Some(end) => agent.end(end(&job)).await,
            // Far fewer requests than the summary of a target that is down.
            None => agent.finish(&job, &good()).await,
        }
        app.until("the end of the run", async || user.run(id).await["finished_at_ms"].as_i64()).await;
    }
    user.get(&format!("/api/v1/compare?runs={}", runs.join(","))).await.ok().json()
}

/// Asserts that `slow` has no statistics, wins nothing, and is listed as excluded.
fn assert_excluded(comparison: &Value) {
    let subject = comparison["subjects"].as_array().expect("subjects").iter().position(|one| one["target"] == "slow");
    let cells =
        comparison["rows"].as_array().expect("rows").iter().flat_map(|row| row["cells"].as_array().expect("cells"));
    let mut checked = 0;
    for cell in cells.filter(|cell| Some(&cell["subject"]) == subject.map(Value::from).as_ref()) {
        for stat in cell["stats"].as_array().expect("stats") {
            checked += 1;
            assert_eq!((&stat["best"], &stat["spread"]), (&json!(false), &Value::Null), "{stat}");
        }
    }
    assert!(checked > 5 || subject.is_none(), "{comparison}");
    let headline = format!("{} {}", comparison["title"], comparison["cards"]);
    assert!(!headline.contains("slow wins") && !headline.contains("\"slow\",\"value\""), "{headline}");
    assert_eq!(comparison["excluded"].as_array().map(Vec::len), Some(1), "{comparison}");
}

#[tokio::test]
async fn a_target_that_failed_all_requests_never_wins() {
    assert_excluded(&compared_with(|job| outcome(job, &target_down())).await);
}

#[tokio::test]
async fn a_failed_run_never_wins() {
    let failed = |job: &_| {
        let reason = "target slow died during the measurement: exit status 1".to_owned();
        Outcome { ended: Ended::Failed { reason, cause: Cause::Other }, ..outcome(job, &good()) }
    };
    assert_excluded(&compared_with(failed).await);
}

#[tokio::test]
async fn an_oom_killed_target_never_wins() {
    let killed = |job: &_| {
        let observed = Some(brewbench_wire::outcome::Observed { oom_kills: Some(2), ..Default::default() });
        Outcome { observed, ..outcome(job, &good()) }
    };
    assert_excluded(&compared_with(killed).await);
}

#[tokio::test]
async fn an_unusable_summary_makes_the_run_failed_with_the_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    let unusable = outcome(&job, &good_with("http_reqs", "count", &json!(-1)));
    let conditions = Conditions { clock_jump_ms: Some(-3_600_000), ..unusable.conditions.clone() };
    agent.end(Outcome { conditions, ..unusable }).await;
    let error = text(&reaches(&app, &user, &runs[0], "failed").await["error"]);
    assert!(error.starts_with("the load generator's summary can't be used: metrics.http_reqs"), "{error}");
    assert!(error.ends_with("; the machine's clock was set back by 3,600 s during the run"), "{error}");
    let job = agent.job().await;
    agent.end(Outcome { summary: None, ..outcome(&job, "") }).await;
    assert_eq!(reaches(&app, &user, &runs[1], "failed").await["error"], "the load generator left no summary");
}

#[tokio::test]
async fn an_http_version_reaches_the_agent_and_is_shown_with_the_load() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"http_version": "1.1", "targets": ["fast"]}))).await;
    let job = agent.job().await;
    assert_eq!(job.spec.http_version, HttpVersion::Http1);
    agent.finish(&job, &good()).await;
    assert_eq!(reaches(&app, &user, &runs[0], "finished").await["http_version"], json!("1.1"));
    let page = user.get(&format!("/runs/{}", runs[0])).await.ok().text();
    assert!(page.contains("over HTTP/1.1"), "{page}");
    let page = user.get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(page.contains("· HTTP/1.1 ·"), "{page}");
    let again = user.get(&format!("/experiments/new?experiment={experiment}")).await;
    assert!(again.header("location").contains("http-version=1.1"), "{}", again.header("location"));
    let form = user.get(again.header("location")).await.ok().text();
    assert!(form.contains(r#"<option value="1.1" selected>"#) && form.contains("--http-version 1.1"), "{form}");
    let (_, usual) = submit(&user, &plan_with(&json!({"targets": ["fast"]}))).await;
    let compared = user.get(&format!("/api/v1/compare?runs={},{}", runs[0], usual[0])).await.ok().json();
    assert_eq!(compared["rows"].as_array().map(Vec::len), Some(2), "{compared}");
    assert!(compared["rows"].to_string().contains("over HTTP/1.1"), "{compared}");
}

#[tokio::test]
async fn targets_are_warmed_up_until_steady_if_one_of_them_compiles_while_it_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start_with(&app, "rack", |hello| hello.targets[1].compiles_at_run_time = true).await;
    let plan = |targets: &[&str], warm_up: &Value| {
        let mut plan = plan_with(&json!({"targets": targets, "retries": 0}));
        plan["warm_up_s"] = warm_up.clone();
        plan
    };
    let cases = [
        (plan(&["fast"], &Value::Null), (Some(2.0), false)),
        (plan(&["slow"], &Value::Null), (Some(2.0), true)),
        (plan(&["fast", "slow"], &Value::Null), (Some(2.0), true)),
        (plan(&["fast", "slow"], &json!(2.0)), (Some(2.0), false)),
    ];
    for (plan, expected) in cases {
        let (experiment, runs) = submit(&user, &plan).await;
        for _ in &runs {
            let job = agent.job().await;
            assert_eq!((job.spec.warm_up_s, job.spec.warm_up_auto), expected, "{plan}");
            agent.finish(&job, &good()).await;
        }
        let stored = user.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
        let stored = &stored["experiment"]["plan"];
        assert_eq!((&stored["warm_up_s"], stored["warm_up_auto"] == true), (&json!(2.0), expected.1), "{stored}");
    }
}
