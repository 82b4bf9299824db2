//! Failures of agents and servers: silence, lost connections, full disks, cancelled real runs, and lying agents.

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

use brewbench::results::settlement::Settled;
use brewbench_testing::{SmallDisk, public_copy, public_folder};
use brewbench_wire::{
    Phase, RunId,
    messages::AgentMessage,
    outcome::{Ended, Outcome},
};
use nix::sys::signal::Signal;
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, App,
        agent::outcome,
        program::Tools,
        submit::{plan_with, reaches, retry_of, submit, submit_one, text, vus},
        summaries::good,
    },
    processes::{agent_of, agent_with, assert_clean, processes_of},
};

/// A server with short leases.
async fn impatient() -> App {
    App::with(|config| config.lease = Duration::from_millis(300)).await
}

#[tokio::test]
async fn a_silent_agent_counts_as_disconnected_after_the_allowed_silence() {
    // The agent of these tests sends a message every second.
    let app = App::with(|config| config.silence = Duration::from_millis(300)).await;
    let reader = app.reader().await;
    let agent = Agent::start(&app, "rack").await;
    app.until("the agent to count as disconnected", async || {
        let list = reader.get("/api/v1/agents").await.ok().json();
        (list["agents"][0]["connected"] == false).then_some(())
    })
    .await;
    drop(agent);
}

#[tokio::test]
async fn a_returning_agent_gets_its_lost_run_back_while_its_retry_is_queued() {
    let app = impatient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Preparing);
    agent.enter(job.run, Phase::Measuring);
    reaches(&app, &user, &id, "measuring").await;
    agent.disconnect();
    reaches(&app, &user, &id, "lost").await;
    let retry = text(&retry_of(&user, &id).await.expect("a retry")["id"]);
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.connect(&app).await.expect("welcome");
    // The heartbeat renews the lease for the result.
    agent.send_message(&AgentMessage::Heartbeat { running: vec![job.run], fault: None });
    assert_eq!(agent.settle(&outcome(&job, &good())).await, Settled { counts: true, reason: None });
    let run = user.run(&id).await;
    assert_eq!((&run["phase"], &run["error"]), (&json!("finished"), &Value::Null));
    user.get(&format!("/api/v1/runs/{retry}")).await.refused(404);
    assert_eq!(user.count_runs().await, 1);
}

#[tokio::test]
async fn a_stopped_lost_run_does_not_replace_its_retry() {
    let app = impatient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    reaches(&app, &user, &id, "lost").await;
    assert_eq!(agent.cancelled().await, job.run);
    let stopped = Outcome { ended: Ended::Cancelled, summary: None, ..outcome(&job, &good()) };
    assert!(!agent.settle(&stopped).await.counts);
    assert_eq!(user.run(&id).await["phase"], "lost");
    let again = retry_of(&user, &id).await.expect("a retry");
    assert!(again["phase"] == "queued" || again["phase"] == "leased", "{again}");
}

#[tokio::test]
async fn messages_about_an_earlier_run_do_not_free_the_agent() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let first = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    reaches(&app, &user, &first, "finished").await;
    let second = submit_one(&user).await;
    let next = agent.job().await;
    assert_eq!(next.run.to_string(), second);
    let third = submit_one(&user).await;
    agent.send_message(&AgentMessage::Done { run: job.run });
    agent.send_message(&AgentMessage::Declined { run: RunId::now(), reason: "not one of its runs".to_owned() });
    // Messages are handled in order, so the earlier ones have been handled.
    agent.enter(next.run, Phase::Measuring);
    reaches(&app, &user, &second, "measuring").await;
    agent.enter(next.run, Phase::Preparing);
    agent.enter(next.run, Phase::Collecting);
    reaches(&app, &user, &second, "collecting").await;
    assert_eq!(user.run(&third).await["phase"], "queued", "the agent is not idle");
}

#[tokio::test]
async fn a_heartbeat_with_a_cancelled_run_is_answered_with_cancel() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    agent.send_message(&AgentMessage::Heartbeat { running: vec![job.run], fault: None });
    assert_eq!(agent.cancelled().await, job.run, "again, in case the first message was lost");
}

#[tokio::test]
async fn too_large_messages_are_refused_and_affect_no_other_agent() {
    let app = App::with(|config| config.max_summary_bytes = 100_000).await;
    let user = app.user().await;
    let mut honest = Agent::start(&app, "honest").await;
    let mut liar = Agent::start_with(&app, "liar", |hello| hello.targets.clear()).await;
    liar.send_text(&format!("{{\"type\":\"heartbeat\",\"running\":\"{}\"}}", "x".repeat(2 << 20)));
    assert_eq!(liar.close_code().await, None, "it is disconnected");
    let id = submit_one(&user).await;
    let job = honest.job().await;
    let large = outcome(&job, &" ".repeat(4 << 20));
    assert_eq!(honest.send(&large).await.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(user.run(&id).await["phase"], "leased");
    honest.finish(&job, &good()).await;
    reaches(&app, &user, &id, "finished").await;
}

#[tokio::test]
async fn a_server_accepts_results_again_as_soon_as_its_disk_has_space() {
    let Some(disk) = SmallDisk::mount("48m") else { return };
    let app = App::on(tempfile::tempdir_in(disk.path()).expect("a folder"), |_| ()).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let filler = disk.fill();
    // Incompressible data, larger than the free pages in the database's files.
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b' ' + u8::try_from(state >> 58).expect("six bits"))
    });
    let large = Outcome { target_log: noise.take(20 << 20).collect(), ..outcome(&job, &good()) };
    let refused = agent.send(&large).await.status;
    assert!(refused.is_server_error(), "temporary, not final: {refused}");
    user.get("/runs").await.ok();
    fs::remove_file(filler).expect("room");
    assert_eq!(agent.settle(&large).await, Settled { counts: true, reason: None });
    assert_eq!(user.run(&id).await["phase"], "finished");
}

/// Writes three variants of a target: unchanged, never ready, and ignoring SIGTERM. The cage does not parse shell
/// commands, so the manifest lists the program.
fn manifests(folder: &Path, program: &Path) {
    let program = program.display();
    let of = |name: &str, command: &str, wait_s: u32| {
        let text = format!(
            "name = \"{name}\"\nversion = \"1\"\ncommand = {command}\n[sandbox]\nread = [\"{program}\"]\n\
             [ready]\npath = \"/health\"\ntimeout_s = {wait_s}\n"
        );
        fs::write(folder.join(format!("{name}.toml")), text).expect("a manifest");
    };
    of("plain", &format!("[\"{program}\", \"--listen\", \"127.0.0.1:{{port}}\"]"), 30);
    of("deaf", "[\"/bin/sh\", \"-c\", \"exec sleep 600 # {port}\"]", 600);
    let script = format!("trap '' TERM; {program} --listen 127.0.0.1:{{port}} & while :; do wait; done");
    of("stubborn", &format!("[\"/bin/sh\", \"-c\", \"{script}\"]"), 30);
}

#[tokio::test]
async fn cancelling_ends_all_processes_of_a_real_run_in_each_phase() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, key) = (app.user().await, app.key("rack").await);
    let (state, folder) = (tempfile::tempdir().expect("a folder"), public_folder());
    manifests(folder.path(), &public_copy(&tools.targets.join("bin/rust-hyper"), folder.path()));
    let more = ["--manifests".as_ref(), folder.path().as_os_str(), "--idle-timeout".as_ref(), "0s".as_ref()];
    let mut agent = agent_with(&app, &key, state.path(), &tools, &more).await;
    let mark = agent_of(state.path());
    let cases = [
        ("deaf", "preparing"),
        ("plain", "warming_up"),
        ("plain", "measuring"),
        ("stubborn", "warming_up"),
        ("stubborn", "measuring"),
    ];
    for (target, phase) in cases {
        let warm_up_s = if phase == "warming_up" { 60.0 } else { 0.0 };
        let plan = plan_with(&json!({"targets": [target], "load": vus(2, 60.0), "warm_up_s": warm_up_s}));
        let run = submit(&user, &plan).await.1.remove(0);
        reaches(&app, &user, &run, phase).await;
        app.until("its processes", async || (!processes_of(&mark).is_empty()).then_some(())).await;
        user.post(&format!("/api/v1/runs/{run}/cancel"), &()).await.ok();
        let answered = Instant::now();
        while !processes_of(&mark).is_empty() {
            assert!(answered.elapsed() < Duration::from_secs(30), "{:?} still run", processes_of(&mark));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!("{target}, {phase}: no processes {} ms after the response", answered.elapsed().as_millis());
        assert_eq!(user.run(&run).await["phase"], "cancelled");
    }
    agent.signal(Signal::SIGTERM);
    assert!(agent.ended(Duration::from_secs(30)).await.success(), "{}", agent.stderr());
    assert_clean(state.path());
}
