//! The rate of a run is that of its load, and its requests are those that the target counted: with a real agent, and
//! with two generators whose results are merged.

use std::{fs, path::Path, time::Duration};

use brewbench::{
    distributed::{
        merge::{Merged, merge},
        model::AgentPart,
    },
    results::clock::Clock,
};
use brewbench_agent::{
    engine::k6::K6,
    host::idle_wait::IdleWait,
    run::{
        barrier::{Gates, Opening},
        context::RunContext,
        execute,
    },
    sandbox::Sandbox,
};
use brewbench_testing::{Counter, public_folder};
use brewbench_wire::{
    RunId,
    job::{Job, Role, Segment, Size},
    load::{Closed, Form, Load},
    messages::Gate,
    now_ms,
    outcome::{Conditions, Ended, Outcome},
    reports::read,
    run_spec::RunSpec,
    scenario::Scenario,
};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::harness::{
    Actor, App,
    program::{Running, Tools, brewbench},
    submit::{plan_with, submit, vus},
};

/// Starts a real agent that knows the counter as a target.
async fn agent(app: &App, tools: &Tools, folder: &Path, name: &str, counter: &Counter) -> Running {
    let (url, key, k6) = (app.url.to_string(), app.one_time_key(name).await, tools.k6.display().to_string());
    let (state, manifests) = (folder.join(name), folder.join(format!("{name}-targets")));
    fs::create_dir(&manifests).expect("a folder");
    let text =
        format!("name = \"counter\"\nversion = \"1\"\n[url]\nbase = \"{}\"\n[ready]\npath = \"/\"\n", counter.base);
    fs::write(manifests.join("counter.toml"), text).expect("a manifest");
    let mut agent = brewbench(&["agent", "--server", &url, "--key", &key, "--k6", &k6, "--any-scenario"]);
    agent.arg("--state").arg(state).arg("--manifests").arg(manifests);
    Running::start(agent)
}

async fn connected(app: &App, user: &Actor, number: usize) {
    app.until("all agents", async || {
        let list = user.get("/api/v1/agents").await.ok().json();
        let connected = list["agents"].as_array()?.iter().filter(|agent| agent["connected"] == true).count();
        (connected == number).then_some(())
    })
    .await;
}

/// Adds a scenario whose setup, teardown and iterations wait and request.
async fn add(user: &Actor) {
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        const get = (path) => http.get(`${__ENV.BASE_URL}${path}`);
        export function setup() { get('/setup'); sleep(2); }
        export default function () { get('/load'); sleep(0.02); if (__ITER === 100) sleep(5); }
        export function teardown() { get('/teardown'); sleep(2); }";
    user.post("/api/v1/scenarios", &json!({"name": "around", "script": script, "files": {}, "defaults": {}}))
        .await
        .ok();
}

async fn ended(app: &App, user: &Actor, run: &str) -> Value {
    let ended = app
        .until("the end of the run", async || {
            let run = user.run(run).await;
            ["finished", "failed", "lost"].iter().any(|phase| run["phase"] == *phase).then_some(run)
        })
        .await;
    assert_eq!(ended["phase"], "finished", "{ended}");
    ended
}

/// Asserts that requests and rate are those of a load of three seconds.
fn assert_load(run: &Value, counter: &Counter) {
    let requests = counter.count("/load");
    assert_eq!(run["requests"], json!(requests), "{run}");
    assert_eq!(run["failed"], 0, "{run}");
    let (seconds, rps) = (run["measured_s"].as_f64().expect("seconds"), run["rps"].as_f64().expect("a rate"));
    assert!((3.0..4.2).contains(&seconds), "{run}");
    assert!((rps * seconds - requests as f64).abs() < 1.5, "{run}");
    for code in ["too_short", "generator_held_back", "ended_early"] {
        assert!(!run["reasons"].to_string().contains(code), "{code}: {run}");
    }
}

#[tokio::test]
async fn a_run_counts_its_load_and_nothing_else() {
    let Some(tools) = Tools::find() else { return };
    let (app, counter) = (App::start().await, Counter::start());
    let (user, folder) = (app.admin().await, public_folder());
    let _agent = agent(&app, &tools, folder.path(), "rack", &counter).await;
    connected(&app, &user, 1).await;
    add(&user).await;
    let changes =
        json!({"targets": ["counter"], "scenario": "around", "load": vus(4, 3.0), "warm_up_s": 0, "retries": 0});
    let (_, runs) = submit(&user, &plan_with(&changes)).await;
    let run = ended(&app, &user, &runs[0]).await;
    assert_load(&run, &counter);
    assert_eq!((counter.count("/setup"), counter.count("/teardown")), (1, 1));
    let series = user.get(&format!("/api/v1/runs/{}/series", runs[0])).await.ok().json();
    let seconds = series["measured"]["seconds"].as_array().expect("seconds");
    let requests = seconds.iter().map(|second| second["requests"].as_u64().expect("a count"));
    assert_eq!(Some(requests.sum()), run["requests"].as_u64(), "{series}");
    assert_ne!(seconds[0]["requests"], 0, "the series starts with the load: {series}");
}

/// What a generator reports at the barriers.
type Report = (usize, Gate);

/// Acts as the server: opens each barrier once both generators are there.
async fn open_gates(
    mut reports: mpsc::UnboundedReceiver<Report>,
    generators: [watch::Sender<Option<Opening>>; 2],
    base_url: &str,
) {
    let mut at = [None; 2];
    while let Some((index, gate)) = reports.recv().await {
        at[index] = Some(gate);
        if at == [Some(gate); 2] {
            let opening = Opening { gate, at_ms: now_ms() + 100, base_url: base_url.to_owned() };
            for one in &generators {
                one.send_replace(Some(opening.clone()));
            }
        }
    }
}

/// Generates a part of a load with a real k6.
async fn generate(tools: &Tools, job: &Job, gates: Gates) -> Outcome {
    let folder = public_folder();
    let folders = ["targets", "work"].map(|name| folder.path().join(name));
    for folder in &folders {
        fs::create_dir(folder).expect("a folder");
    }
    let [targets, work] = folders;
    let k6 = K6::find(Some(&tools.k6)).await.expect("k6");
    let sandbox = Sandbox::none(&format!("load alone {:?} {}", job.role, std::process::id()));
    let context = RunContext::new(sandbox, k6, targets, work);
    let context = RunContext { idle_wait: IdleWait { longest: Duration::ZERO, ..context.idle_wait }, ..context };
    let outcome = Box::pin(execute::run_part(job, &context, gates, &CancellationToken::new(), |_| {})).await;
    assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
    outcome
}

#[tokio::test]
async fn the_merged_rate_of_two_generators_is_over_their_loads() {
    let Some(tools) = Tools::find() else { return };
    let counter = Counter::start();
    let script = "import http from 'k6/http'; import { sleep } from 'k6'; import exec from 'k6/execution';
        const get = (path) => http.get(`${__ENV.BASE_URL}${path}`);
        export function setup() { get('/setup'); sleep(1 + 2 * Math.random()); }
        export default function () { get('/load'); sleep(exec.scenario.iterationInTest === 50 ? 9 : 0.02); get('/load/end'); }
        export function teardown() { get('/teardown'); sleep(2); }";
    let closed = Closed::new(Form::Constant { level: 5, duration_ms: 3_000 }).expect("a load");
    let size = Size { name: "s".to_owned(), vcpus: 1.0, memory_bytes: 1 << 30, replicas: 1 };
    let scenario = Scenario::of_script("s", script);
    let job = Job {
        run: RunId::now(),
        experiment: None,
        targets: Vec::new(),
        scenario,
        role: Role::Alone,
        partner: None,
        spec: RunSpec {
            target: "counter".to_owned(),
            size: Some(size),
            load: Some(Load::Closed(closed)),
            warm_up_s: Some(0.0),
            ..RunSpec::default()
        },
    };
    let (report, reports) = mpsc::unbounded_channel::<Report>();
    let (one, first) = watch::channel(None);
    let (two, second) = watch::channel(None);
    let part = |index: u32, opened| {
        let (report, place) = (report.clone(), index as usize);
        let send = move |gate, _| {
            let _ = report.send((place, gate));
        };
        let gates = Gates::new(send, opened);
        let job = Job { role: Role::Generator(Segment { index, of: 2 }), ..job.clone() };
        let tools = &tools;
        async move { generate(tools, &job, gates).await }
    };
    let parts = (part(0, first), part(1, second));
    drop(report);
    let (one, two, ()) = tokio::join!(parts.0, parts.1, open_gates(reports, [one, two], &counter.base));

    let host = Outcome { summary: None, series: None, conditions: Conditions::default(), ..one.clone() };
    let clock = Some(Clock { offset_ms: 0.0, error_ms: 0.1 });
    let of = |agent: &str, outcome| AgentPart { agent: agent.to_owned(), outcome, clock };
    let Merged { outcome, evidence } = merge(&of("rack", host), &[of("one", one), of("two", two)]).expect("merged");
    let summary = read::parse(outcome.summary.expect("a summary").as_bytes()).expect("a summary");
    let time = evidence.conditions.load_time.expect("a time");
    let figures = summary.figures_over(Some(time));
    assert_eq!(figures.requests, counter.count("/load"));
    assert_eq!((counter.count("/setup"), counter.count("/teardown")), (2, 2), "each k6 has its own");
    assert!((2_900..4_400).contains(&time.ms), "{time:?}");
    // At least the end of the iteration that waited for 9 s; a k6 that begins late on a busy machine adds some.
    assert!((1..figures.requests / 10).contains(&time.late_requests), "{time:?}, {figures:?}");
    let rate = (figures.requests - time.late_requests) as f64 / time.ms as f64 * 1e3;
    assert!((figures.rps - rate).abs() < 1e-9, "{figures:?}");
    assert!(figures.latency.p99_ms.is_some(), "the histograms have every request");
    let shares: u64 = evidence.generators.iter().filter_map(|one| Some(one.figures?.requests)).sum();
    assert_eq!(shares, figures.requests);
}
