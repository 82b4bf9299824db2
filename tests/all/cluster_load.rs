//! Load from Pods: requested only of agents that allow it, merged from all generators, and shown with the share of
//! each.

use brewbench_wire::{
    engine::EngineVersion,
    job::Job,
    messages::{AgentMessage, GeneratorsOffer},
    outcome::{Cause, Ended, Generator, Outcome},
    series::{Host, Packed},
    target::Identity,
};
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    agent::outcome,
    participants::{generator_outcome, host_outcome},
    submit::{plan_with, submit},
    summaries::{good, scaled},
};

fn plan(count: u32, changes: &Value) -> Value {
    let mut plan = plan_with(changes);
    plan["cluster_generators"] = json!(count);
    plan
}

/// Starts an agent in a cluster, where a run may have twelve generators.
pub async fn in_cluster(app: &App, name: &str) -> Agent {
    Agent::start_with(app, name, |hello| {
        hello.generators = Some(GeneratorsOffer { most: 12, vcpus: 2.0, memory_bytes: 1 << 30 });
        for target in &mut hello.targets {
            target.identity = Identity::Kubernetes { image: "shop:1".to_owned(), id: None, settings: None };
        }
    })
    .await
}

/// Returns the result of a generator with this summary.
fn generator(job: &Job, number: usize, summary: &str) -> Generator {
    let Outcome { series, work, mut environment, .. } = generator_outcome(job, summary, 0);
    // A Pod does not know what its machine does.
    let mut series = series.expect("a series").unpack().expect("a series");
    for usage in series.measured.iter_mut().flat_map(|window| &mut window.usage) {
        usage.host = Host::default();
    }
    environment.insert("load.node".to_owned(), format!("node-{number}"));
    environment.insert("cpu.usable".to_owned(), "2".to_owned());
    Generator {
        name: format!("Pod {number} (node-{number})"),
        summary: summary.to_owned(),
        series: Packed::pack(&series),
        work,
        log: "up\n".to_owned(),
        engine: Some(EngineVersion { name: "k6".to_owned(), version: "1.8.1".to_owned() }),
        environment,
        start_error_ms: 2.0,
    }
}

/// Finishes the next run of an agent, by Pods if it asks for them.
pub async fn finish(agent: &mut Agent) {
    let job = agent.job().await;
    let count = job.spec.cluster_generators as usize;
    let part = |number| generator(&job, number, &scaled(1.0 / (count + number) as f64));
    let generators: Vec<Generator> = (1..=count).map(part).collect();
    let measured = if count > 0 { host_outcome(&job) } else { outcome(&job, &good()) };
    assert!(agent.settle(&Outcome { generators, ..measured }).await.counts);
    agent.send_message(&AgentMessage::Done { run: job.run });
}

/// Fails the next run of an agent because a Pod is gone.
pub async fn lose(agent: &mut Agent) {
    let job = agent.job().await;
    let reason = "Pod 2 (node-2) ended early: OOM-killed; last output: level=warning msg=\"insufficient VUs\"";
    let ended = Ended::Failed { reason: reason.to_owned(), cause: Cause::Generator };
    assert!(agent.settle(&Outcome { ended, ..host_outcome(&job) }).await.counts);
    agent.send_message(&AgentMessage::Done { run: job.run });
}

#[tokio::test]
async fn a_load_from_pods_needs_an_agent_that_allows_it() {
    let app = App::start().await;
    let user = app.admin().await;
    let _plain = Agent::start(&app, "plain").await;
    let refused = user.post("/api/v1/experiments", &plan(2, &json!({}))).await;
    let fault = refused.text();
    assert!(fault.contains("cluster_generators: plain generates no load in a cluster: start it with"), "{fault}");
    let mut agent = in_cluster(&app, "cluster").await;
    for (changed, expected) in [
        (plan(5, &json!({})), "cluster_generators: a load of 2 can't be split between 5 generators"),
        (plan(101, &json!({})), "cluster_generators: at most 100 are allowed"),
        (plan(2, &json!({"generators": ["plain"]})), "cluster_generators: can't be combined with generators"),
        (plan(2, &json!({"warm_up_auto": true, "warm_up_s": 1.0})), "warm_up_auto: can't be combined with generators"),
    ] {
        let mut changed = changed;
        changed["agent"] = json!("cluster");
        let fault = user.post("/api/v1/experiments", &changed).await.text();
        assert!(fault.contains(expected), "{fault}");
    }
    let (_, runs) = submit(&user, &plan(2, &json!({}))).await;
    let job = agent.job().await;
    assert_eq!((job.run.to_string(), job.spec.cluster_generators), (runs[0].clone(), 2));
}

#[tokio::test]
async fn replicas_need_a_target_on_kubernetes_and_are_compared_among_themselves() {
    let app = App::start().await;
    let user = app.admin().await;
    let _plain = Agent::start(&app, "plain").await;
    let of = |size: &str, agent: &str| plan_with(&json!({"sizes": [size], "agent": agent}));
    let fault = user.post("/api/v1/experiments", &of("3x1/1GiB", "plain")).await.text();
    let expected = "can provide 3 x 1 vCPU / 1 GiB; plain starts one instance of it only: replicas need a target of \
        kind kubernetes";
    assert!(fault.contains(expected), "{fault}");
    let mut agent = in_cluster(&app, "cluster").await;
    let mut ids = Vec::new();
    for size in ["1/1GiB", "3x1/1GiB"] {
        let (_, runs) = submit(&user, &of(size, "cluster")).await;
        ids.extend(runs);
        finish(&mut agent).await;
    }
    let [one, three] = [user.run(&ids[0]).await, user.run(&ids[1]).await];
    assert_eq!([&one["size"]["replicas"], &three["size"]["replicas"]], [&json!(1), &json!(3)]);
    assert_eq!(three["size"]["name"], "3 x 1 vCPU / 1 GiB");
    let compared = user.get(&format!("/api/v1/compare?runs={},{}", ids[0], ids[1])).await.ok().json();
    assert_eq!(compared["rows"].as_array().map(Vec::len), Some(2), "one row a size: {compared}");
    let csv = user.get(&format!("/api/v1/runs/export?format=csv&runs={}", ids[1])).await.ok().text();
    assert!(csv.contains("3 x 1 vCPU / 1 GiB,1,1073741824,3,"), "{csv}");
}

#[tokio::test]
async fn a_run_is_the_sum_of_its_generators() {
    let app = App::start().await;
    let user = app.admin().await;
    let mut agent = in_cluster(&app, "cluster").await;
    let (_, runs) = submit(&user, &plan(2, &json!({}))).await;
    let job = agent.job().await;
    let generators = vec![generator(&job, 1, &good()), generator(&job, 2, &scaled(0.5))];
    let outcome = Outcome { generators, ..host_outcome(&job) };
    assert!(agent.settle(&outcome).await.counts);
    let run = user.run(&runs[0]).await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("finished"), &json!("valid")), "{run}");
    assert_eq!(run["cluster_generators"], 2);
    let list = user.get(&format!("/api/v1/runs/{}/generators", runs[0])).await.ok().json();
    let shares = list["generators"].as_array().expect("a list");
    assert_eq!((&shares[0]["agent"], &shares[1]["segment"]), (&json!("Pod 1 (node-1)"), &json!("1/2:1")));
    for unknown in ["others_cores", "start_ms", "clock_offset_ms"] {
        assert_eq!(shares[0][unknown], Value::Null, "unknown, and not zero");
    }
    let sum: u64 = shares.iter().map(|share| share["requests"].as_u64().expect("a number")).sum();
    assert_eq!(run["requests"], sum);
    let page = user.get(&format!("/runs/{}", runs[0])).await.ok().text();
    assert!(page.contains("load from 2 Pods") && page.contains("Load generator log on Pod 2 (node-2)"), "{page}");
    assert!(!page.contains("/agents/Pod"), "a Pod has no page: {page}");
}

#[tokio::test]
async fn a_generator_with_an_unreadable_summary_fails_the_run() {
    let app = App::start().await;
    let user = app.admin().await;
    let mut agent = in_cluster(&app, "cluster").await;
    let (_, runs) = submit(&user, &plan(2, &json!({"retries": 0}))).await;
    let job = agent.job().await;
    let generators = vec![generator(&job, 1, &good()), generator(&job, 2, "{")];
    let outcome = Outcome { generators, ..host_outcome(&job) };
    agent.settle(&outcome).await;
    let run = user.run(&runs[0]).await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("failed"), &json!("invalid")), "{run}");
    assert_eq!(run["reasons"][0]["code"], "generator_failed");
    assert!(run["error"].to_string().contains("Pod 2 (node-2): the load generator's summary can't be used"), "{run}");
}
