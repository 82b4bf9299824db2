//! What an agent, or someone with its key, can make the server do.

use brewbench::auth::model::Scope;
use brewbench_wire::{
    messages::AgentMessage,
    outcome::Outcome,
    profile::{
        ProfileData, ProfileKind, ProfileQuality, ProfileSource, Profiled, RunProfile,
        pprof::{Facts, encode},
        stacks::{Builder, Frame},
    },
};
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    agent::outcome,
    program::as_user,
    submit::{plan_with, submit, text},
    summaries::good,
};

/// A small file with millions of frames.
fn bomb() -> ProfileData {
    let mut builder = Builder::default();
    let frame = builder.frame(Frame::new("f", "", "")).expect("room");
    for number in 0..8_000 {
        let leaf = builder.frame(Frame::new(&number.to_string(), "", "")).expect("room");
        let stack: Vec<u32> = std::iter::repeat_n(frame, 900).chain([leaf]).collect();
        builder.add(&stack, 1).expect("room");
    }
    encode(&builder.build(), ProfileKind::Cpu, &Facts::default())
}

#[tokio::test]
async fn bombs_in_profiles_are_not_stored_and_only_one_of_a_kind_is_read() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast"], "profiled_repetitions": 1, "retries": 0}));
    let (_, ids) = submit(&user, &plan).await;
    let stranger = Agent::start_with(&app, "stranger", |hello| hello.targets.clear()).await;
    let data = bomb();
    println!("{} bytes", data_len(&data));
    let profile = |data: &ProfileData| RunProfile {
        kind: ProfileKind::Cpu,
        source: ProfileSource::Perf,
        data: data.clone(),
        quality: ProfileQuality::default(),
    };
    for _ in &ids {
        let job = agent.job().await;
        let bombs = Profiled { profiles: vec![profile(&data); 6], faults: Vec::new() };
        let result = Outcome { profiled: job.spec.profiled.then_some(bombs), ..outcome(&job, &good()) };
        let path = format!("/api/v1/agent/runs/{}/result", job.run);
        // A run of another agent: nothing is read.
        let refused = stranger.http.put(&path, &json!(result)).await.ok().json();
        assert_eq!(refused["counts"], false, "{refused}");
        agent.http.put(&path, &json!(result)).await.ok();
        agent.send_message(&AgentMessage::Done { run: job.run });
        if job.spec.profiled {
            let run = user.run(&job.run.to_string()).await;
            let reasons: Vec<String> =
                run["reasons"].as_array().expect("reasons").iter().map(|reason| text(&reason["text"])).collect();
            assert!(reasons.iter().any(|reason| reason.contains("the cpu profile can't be read")), "{reasons:?}");
            assert!(reasons.iter().any(|reason| reason.contains("several cpu profiles")), "{reasons:?}");
        }
    }
}

fn data_len(data: &ProfileData) -> usize {
    data.as_bytes().len()
}

#[tokio::test]
async fn an_agent_with_a_full_disk_gets_no_runs_and_says_why() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let fault = "the disk of /var/lib/x is full: 3 MiB are free, 64 are needed";
    let report = |fault: Option<&str>| AgentMessage::Heartbeat { running: Vec::new(), fault: fault.map(str::to_owned) };
    agent.send_message(&report(Some(fault)));
    let of_agent = async || user.get("/api/v1/agents").await.ok().json()["agents"][0]["fault"].take();
    app.until("the fault", async || (of_agent().await == fault).then_some(())).await;
    let page = user.clone().in_browser().get("/agents/rack").await.ok().text();
    assert!(page.contains("It takes no runs: the disk of /var/lib/x is full"), "{page}");
    let list = user.clone().in_browser().get("/agents").await.ok().text();
    assert!(list.contains("none: the disk of /var/lib/x is full"), "{list}");
    let token = app.token_secret(Scope::Read, None).await;
    let shown = as_user(&app, &token, &["fleet", "list"]).await.ok();
    assert!(shown.split_whitespace().collect::<Vec<_>>().join(" ").contains("takes no runs: the disk of"), "{shown}");

    let (_, ids) = submit(&user, &plan_with(&json!({"targets": ["fast"], "retries": 0}))).await;
    let queue = user.get("/api/v1/queue").await.ok().json();
    let waiting = &queue["waiting"][0];
    assert_eq!(
        (&waiting["run"]["id"], &waiting["reason"]),
        (&Value::from(ids[0].as_str()), &json!("faulty")),
        "{queue}"
    );
    assert!(text(&waiting["message"]).contains(fault), "{queue}");
    agent.send_message(&report(None));
    assert_eq!(agent.job().await.run.to_string(), ids[0]);
}
