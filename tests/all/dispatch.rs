//! Runs on agents: phases, late and duplicate results, leases, cancellation, keys and connections.

use std::time::{Duration, Instant};

use brewbench::results::settlement::Settled;
use brewbench_wire::{
    PROTOCOL, Phase, RunId,
    counters::Counters,
    load::Load,
    messages::AgentMessage,
    now_ms,
    outcome::{Cause, Conditions, Ended, Outcome},
    series::Packed,
};
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    agent::outcome,
    program::as_user,
    series::matching_series,
    submit::{plan_with, reaches, retry_of, submit, submit_one, text},
    summaries::good,
};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Starts a server whose leases expire after 300 ms.
async fn with_short_leases() -> App {
    App::with(|config| config.lease = Duration::from_millis(300)).await
}

#[track_caller]
fn assert_dropped(settled: &Settled, why: &str) {
    assert!(!settled.counts && settled.reason.as_deref().is_some_and(|actual| actual.contains(why)), "{settled:?}");
}

#[tokio::test]
async fn a_run_passes_through_its_phases_and_ends_with_its_results() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let leased = user.run(&id).await;
    assert_eq!((&leased["phase"], &leased["agent"]), (&json!("leased"), &json!("rack")));
    for phase in [Phase::Preparing, Phase::WarmingUp, Phase::Measuring, Phase::Collecting] {
        agent.enter(job.run, phase);
        reaches(&app, &user, &id, phase.as_str()).await;
    }
    agent.finish(&job, &good()).await;
    let run = user.run(&id).await;
    let expected = json!({"phase": "finished", "verdict": "valid", "requests": 51_230, "agent": "rack",
        "engine": {"name": "k6", "version": "1.8.1"}, "target_kind": "process", "target_identity": "ab".repeat(32), "version": "1.0", "origin": "agent",
        "enforced": {"cpu": "cgroup2", "memory": "cgroup2"}, "vus": 2, "duration_s": 1.0, "warm_up_s": 0.0});
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&run[field], value, "{field}");
    }
    let summary = user.get(&format!("/api/v1/runs/{id}/summary")).await.ok();
    assert_eq!(summary.text(), good());
}

#[tokio::test]
async fn a_rate_that_k6_missed_makes_a_run_suspect() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    // The summary has 51,230 iterations.
    let loads = [
        (51_230, "valid", ""),
        (60_000, "suspect", "the load generator started 51,230 of the 60,000 requested iterations (85.4 %)"),
    ];
    for (rate, verdict, message) in loads {
        let load = json!({"kind": "rate", "rate": rate, "duration_s": 1.0});
        let (_, runs) = submit(&user, &plan_with(&json!({"load": load}))).await;
        let job = agent.job().await;
        assert_eq!(job.spec.load().iterations(), Some(f64::from(rate)));
        assert!(matches!(job.spec.load(), Load::Open(open) if open.max_vus() == 1_000), "{:?}", job.spec.load);
        agent.finish(&job, &good()).await;
        let run = user.run(&runs[0]).await;
        assert_eq!(run["verdict"], verdict, "{run}");
        assert!(run["reasons"].to_string().contains(message), "{run}");
        assert_eq!(run["load"]["max_vus"], 1_000);
    }
    let stages =
        json!({"kind": "vus_stages", "stages": [{"duration_s": 0.5, "target": 9}, {"duration_s": 1, "target": 0}]});
    let (experiment, runs) = submit(&user, &plan_with(&json!({"load": stages}))).await;
    assert_eq!(agent.job().await.spec.load().shape().expect("a shape").points(), [(0, 0), (500, 9), (1_500, 0)]);
    let run = user.run(&runs[0]).await;
    assert_eq!((&run["vus"], &run["duration_s"]), (&json!(null), &json!(1.5)));
    let pages = user.in_browser();
    for page in [format!("/runs/{}", runs[0]), "/runs".to_owned(), format!("/experiments/{experiment}")] {
        let text = pages.get(&page).await.ok().text().replace('\u{a0}', " ");
        assert!(text.contains("0 → 9 → 0 VUs in 2 stages"), "{page}: {text}");
    }
}

#[tokio::test]
async fn an_agent_cannot_report_queued_or_ended_phases() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    for phase in [Phase::Finished, Phase::Failed, Phase::Cancelled, Phase::Lost, Phase::Queued] {
        agent.enter(job.run, phase);
    }
    agent.enter(job.run, Phase::Measuring);
    let run = reaches(&app, &user, &id, "measuring").await;
    assert_eq!((&run["verdict"], &run["finished_at_ms"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn a_duplicate_result_changes_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let before = user.run(&id).await;
    let other =
        Outcome { ended: Ended::Failed { reason: "no".to_owned(), cause: Cause::Other }, ..outcome(&job, &good()) };
    for again in [outcome(&job, &good()), other] {
        assert_dropped(&agent.settle(&again).await, "the run already has a result");
    }
    assert_eq!(user.run(&id).await, before);
}

#[tokio::test]
async fn a_result_after_the_cancellation_is_acknowledged_and_changes_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    let before = user.run(&id).await;
    assert_dropped(&agent.settle(&outcome(&job, &good())).await, "cancelled");
    assert_eq!(user.run(&id).await, before);
    assert_eq!((&before["phase"], &before["requests"]), (&json!("cancelled"), &Value::Null));
}

#[tokio::test]
async fn a_cancellation_reaches_the_agent_within_a_second() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Measuring);
    reaches(&app, &user, &id, "measuring").await;
    let requested = Instant::now();
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    assert!(requested.elapsed() < Duration::from_secs(1), "{:?}", requested.elapsed());
    // It gets the next run only after it has reported the end.
    let next = submit_one(&user).await;
    agent.end_cancelled(&job).await;
    assert_eq!(agent.job().await.run.to_string(), next);
}

#[tokio::test]
async fn an_expired_lease_makes_the_run_lost_and_it_is_retried_once() {
    let app = with_short_leases().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let lost = reaches(&app, &user, &id, "lost").await;
    assert!(text(&lost["error"]).contains("sent no heartbeat"), "{}", lost["error"]);
    assert_eq!(agent.cancelled().await, job.run, "the agent must stop if it is still running");
    let retry = retry_of(&user, &id).await.expect("a retry");
    assert_eq!(
        (&retry["target"], &retry["repetition"], &retry["experiment"]),
        (&lost["target"], &lost["repetition"], &lost["experiment"])
    );
    // A second loss is not retried.
    agent.send_message(&AgentMessage::Done { run: job.run });
    let second = agent.job().await;
    assert_eq!(second.run.to_string(), text(&retry["id"]));
    reaches(&app, &user, &text(&retry["id"]), "lost").await;
    assert_eq!(retry_of(&user, &text(&retry["id"])).await, None);
    let experiment = user.get(&format!("/api/v1/experiments/{}", text(&lost["experiment"]))).await.ok().json();
    assert_eq!(
        (&experiment["progress"]["total"], &experiment["progress"]["ended"]),
        (&json!(1), &json!(1)),
        "retries do not add to the total"
    );
}

#[tokio::test]
async fn a_heartbeat_renews_the_lease() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let lease = async || -> i64 {
        let query = sqlx::query_scalar("select expires_at from lease where run_id = ?").bind(&id);
        query.fetch_one(&app.state.db.read).await.expect("a lease")
    };
    let first = lease().await;
    app.until("a longer lease", async || {
        agent.send_message(&AgentMessage::Heartbeat { running: vec![job.run], fault: None });
        Some(lease().await).filter(|lease| *lease > first)
    })
    .await;
    // The heartbeat of another agent does not renew the lease.
    let other = Agent::start(&app, "other").await;
    let before = lease().await;
    other.send_message(&AgentMessage::Heartbeat { running: vec![job.run], fault: None });
    other.enter(job.run, Phase::Measuring);
    let mut other = other;
    assert_eq!(other.cancelled().await, job.run, "both messages were handled");
    assert_eq!(lease().await, before);
}

#[tokio::test]
async fn a_late_result_counts_until_the_retry_starts() {
    let app = with_short_leases().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    reaches(&app, &user, &id, "lost").await;
    let retry = text(&retry_of(&user, &id).await.expect("a retry")["id"]);
    assert_eq!(agent.settle(&outcome(&job, &good())).await, Settled { counts: true, reason: None });
    let run = user.run(&id).await;
    assert_eq!((&run["phase"], &run["verdict"], &run["error"]), (&json!("finished"), &json!("valid"), &Value::Null));
    user.get(&format!("/api/v1/runs/{retry}")).await.refused(404);
    assert_eq!(user.count_runs().await, 1);
}

#[tokio::test]
async fn a_late_result_is_dropped_once_the_retry_has_started() {
    let app = with_short_leases().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.disconnect();
    let mut other = Agent::start(&app, "b").await;
    reaches(&app, &user, &id, "lost").await;
    let again = other.job().await;
    let before = user.run(&id).await;
    assert_dropped(&agent.settle(&outcome(&job, &good())).await, "has already started");
    assert_eq!(user.run(&id).await, before);
    // The result of the retry is stored, even if its lease has expired.
    other.finish(&again, &good()).await;
    assert_eq!(user.run(&again.run.to_string()).await["phase"], "finished");
}

#[tokio::test]
async fn a_result_for_the_run_of_another_agent_is_dropped() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let other = Agent::start(&app, "b").await;
    assert_dropped(&other.settle(&outcome(&job, &good())).await, "not assigned to b");
    assert_eq!(user.run(&id).await["phase"], "leased");
    let unknown = Outcome { run: RunId::now(), ..outcome(&job, &good()) };
    agent.send(&unknown).await.refused(404);
    let path = format!("/api/v1/agent/runs/{}/result", RunId::now());
    let crossed = agent.http.put(&path, &outcome(&job, &good())).await.refused(422);
    assert!(crossed.starts_with("run: the body contains run"), "{crossed}");
}

#[tokio::test]
async fn phases_for_the_run_of_another_agent_are_ignored() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut other = Agent::start(&app, "b").await;
    other.enter(job.run, Phase::Measuring);
    assert_eq!(other.cancelled().await, job.run, "an agent must stop a run that it was not assigned");
    assert_eq!(user.run(&id).await["phase"], "leased");
}

#[tokio::test]
async fn an_agent_that_reconnects_with_its_run_keeps_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.disconnect();
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.connect(&app).await.expect("a welcome");
    agent.enter(job.run, Phase::Measuring);
    reaches(&app, &user, &id, "measuring").await;
    agent.finish(&job, &good()).await;
    assert_eq!(user.run(&id).await["verdict"], "valid");
    assert_eq!(user.count_runs().await, 1);
}

#[tokio::test]
async fn an_agent_that_reconnects_without_its_run_loses_it_at_once() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    agent.job().await;
    agent.disconnect();
    agent.connect(&app).await.expect("a welcome");
    let lost = reaches(&app, &user, &id, "lost").await;
    assert_eq!(lost["error"], "its agent was restarted and no longer holds the run");
    let retry = agent.job().await;
    assert_eq!(user.run(&retry.run.to_string()).await["retry_of"], id);
}

#[tokio::test]
async fn an_agent_that_reconnects_with_a_cancelled_run_must_stop_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.disconnect();
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.connect(&app).await.expect("a welcome");
    assert_eq!(agent.cancelled().await, job.run);
}

#[tokio::test]
async fn a_restarted_server_resumes_the_runs_that_agents_still_hold() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    let app = App::on(app.stop().await, |_| ()).await;
    let user = user.at(&app.url);
    assert_eq!(user.run(&runs[0]).await["phase"], "leased");
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.connect(&app).await.expect("a welcome");
    agent.finish(&job, &good()).await;
    assert_eq!(user.run(&runs[0]).await["phase"], "finished");
    assert_eq!(agent.job().await.run.to_string(), runs[1], "the queue continues");
}

#[tokio::test]
async fn a_result_that_is_not_uploaded_yet_keeps_its_run() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.disconnect();
    agent.hello.holds = vec![job.run];
    agent.connect(&app).await.expect("a welcome");
    assert_eq!(agent.settle(&outcome(&job, &good())).await, Settled { counts: true, reason: None });
    assert_eq!(user.run(&id).await["phase"], "finished");
}

#[tokio::test]
async fn a_declined_run_goes_to_another_agent() {
    let app = App::start().await;
    let user = app.user().await;
    let mut first = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = first.job().await;
    let mut second = Agent::start(&app, "b").await;
    first.send_message(&AgentMessage::Declined { run: job.run, reason: "it is ending".to_owned() });
    assert_eq!(second.job().await.run, job.run);
    let run = user.run(&id).await;
    assert_eq!((&run["agent"], &run["phase"]), (&json!("b"), &json!("leased")));
    assert_dropped(&first.settle(&outcome(&job, &good())).await, "not assigned to a");
    second.finish(&job, &good()).await;
    assert_eq!(user.run(&id).await["phase"], "finished");
}

#[tokio::test]
async fn a_declined_run_waits_if_no_other_agent_can_do_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    agent.send_message(&AgentMessage::Declined { run: job.run, reason: "not now".to_owned() });
    assert_eq!(agent.job().await.run.to_string(), runs[1], "the declined run is not offered again at once");
    assert_eq!(user.run(&runs[0]).await["phase"], "queued");
}

#[tokio::test]
async fn a_run_for_one_agent_goes_to_no_other() {
    let app = App::start().await;
    let user = app.user().await;
    let _first = Agent::start(&app, "a").await;
    let mut second = Agent::start(&app, "b").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"agent": "b", "repetitions": 2}))).await;
    let job = second.job().await;
    assert_eq!(job.run.to_string(), runs[0]);
    second.finish(&job, &good()).await;
    assert_eq!(second.job().await.run.to_string(), runs[1]);
}

#[tokio::test]
async fn an_agent_whose_clock_is_an_hour_off_stores_the_right_times() {
    for offset in [-HOUR_MS, HOUR_MS] {
        let app = App::start().await;
        let user = app.user().await;
        let mut agent = Agent::start_with(&app, "rack", |hello| hello.now_ms += offset).await;
        let agents = user.get("/api/v1/agents").await.ok().json();
        let offset_ms = agents["agents"][0]["about"]["clock_offset_ms"].as_i64().expect("an offset");
        assert!((offset_ms - offset).abs() < 60_000, "{offset_ms}");
        let before = now_ms();
        let id = submit_one(&user).await;
        let job = agent.job().await;
        let mut late = outcome(&job, &good());
        late.sent_at_ms += offset;
        for time in &mut late.times {
            time.at_ms += offset;
        }
        agent.end(late).await;
        let run = user.run(&id).await;
        let phases = brewbench::runs::store::phases(&app.state.db.read, &id.into()).await.expect("phases");
        let times = phases.iter().map(|(_, at)| *at).chain(run["finished_at_ms"].as_i64());
        for at in times {
            assert!((before - 1_000..=now_ms() + 1_000).contains(&at), "{at} in {phases:?}");
        }
        assert!(phases.iter().any(|(phase, _)| phase == "measuring"), "{phases:?}");
    }
}

#[tokio::test]
async fn a_revoked_key_closes_the_connection_at_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&admin).await;
    let job = agent.job().await;
    admin.delete("/api/v1/agent-keys/rack").await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    assert_eq!(agent.receive().await, None);
    agent.send(&outcome(&job, &good())).await.refused(401);
    assert_eq!(agent.connect(&app).await, Err("401".to_owned()));
    let lost = reaches(&app, &admin, &id, "lost").await;
    assert_eq!(lost["requests"], Value::Null);
    assert!(text(&lost["error"]).contains("revoked"), "without waiting for the lease: {lost}");
    admin.delete("/api/v1/agent-keys/rack").await.refused(404);
}

#[tokio::test]
async fn another_protocol_is_refused_with_what_to_upgrade() {
    let app = App::start().await;
    for (protocol, which) in [(PROTOCOL - 1, "agent"), (PROTOCOL + 1, "server")] {
        let mut agent = Agent::disconnected(&app, &format!("protocol {protocol}")).await;
        agent.hello.protocol = protocol;
        let reason = agent.connect(&app).await.expect_err("refused");
        assert_eq!(reason, format!("this agent uses protocol {protocol}, this server {PROTOCOL}: upgrade the {which}"));
    }
}

#[tokio::test]
async fn an_agent_of_an_older_protocol_must_upgrade_even_if_its_hello_has_other_fields() {
    let app = App::start().await;
    let mut agent = Agent::disconnected(&app, "old").await;
    let old = json!({"type": "hello", "protocol": 6, "version": "0.1.0", "now_ms": 0, "k6_version": "1.8.1",
        "targets": [], "any_scenario": false, "running": null, "holds": [],
        "machine": {"hostname": "rack", "cores": 2, "memory_bytes": 1, "kernel": "Linux", "cpu_model": "a CPU",
            "cpu": "none", "memory": "none"}});
    let reason = agent.connect_with(&app, &old.to_string()).await.expect_err("refused");
    assert_eq!(reason, format!("this agent uses protocol 6, this server {PROTOCOL}: upgrade the agent"));
    let mut broken = serde_json::to_value(&agent.hello).expect("written");
    broken["type"] = json!("hello");
    broken["machine"] = json!(7);
    let reason = agent.connect_with(&app, &broken.to_string()).await.expect_err("refused");
    assert!(reason.starts_with("this agent's hello message can't be read: "), "{reason}");
}

#[tokio::test]
async fn unknown_messages_are_ignored() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.send_text(r#"{"type": "tea_time", "sugar": 2}"#);
    agent.finish(&job, &good()).await;
    reaches(&app, &user, &id, "finished").await;
}

#[tokio::test]
async fn a_newer_connection_replaces_the_older_one() {
    let app = App::start().await;
    let user = app.user().await;
    let mut first = Agent::start(&app, "rack").await;
    let mut second = Agent { name: "rack".to_owned(), ..Agent::disconnected(&app, "unused").await };
    second.http = first.http.clone();
    second.hello = first.hello.clone();
    second.connect(&app).await.expect("a welcome");
    assert_eq!(first.receive().await, None, "the older one is closed");
    let id = submit_one(&user).await;
    assert_eq!(second.job().await.run.to_string(), id);
}

#[tokio::test]
async fn an_agent_that_sends_garbage_is_disconnected_and_others_are_not() {
    let app = App::start().await;
    let user = app.user().await;
    let mut bad = Agent::start(&app, "bad").await;
    let mut good_agent = Agent::start_with(&app, "good", |hello| hello.targets.truncate(1)).await;
    for _ in 0..20 {
        bad.send_text("make coffee");
    }
    assert_eq!(bad.receive().await, None);
    let id = submit_one(&user).await;
    assert_eq!(good_agent.job().await.run.to_string(), id);
}

#[tokio::test]
async fn a_stopping_server_closes_connections_with_a_code() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    app.stop().await;
    assert_eq!(agent.close_code().await, Some(1001));
}

#[tokio::test]
async fn every_metric_of_an_agents_report_is_stored() {
    const REPORT: &str = include_str!("../../samples/published/k6-gosherve-1vcpu-256mb.txt");
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, REPORT).await;
    let stored = "select received_per_s from run where id = ?";
    let stored: Option<f64> = sqlx::query_scalar(stored).bind(&id).fetch_one(&app.state.db.read).await.expect("a run");
    let imported = user.import(REPORT).await.ok().json();
    assert!(stored.is_some() && json!(stored) == imported["runs"][0]["received_per_s"], "{stored:?} {imported}");
}

#[tokio::test]
async fn the_logs_of_a_run_are_available_by_api_and_command() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let path = format!("/api/v1/runs/{id}/logs");
    assert_eq!(user.get(&path).await.ok().json(), json!({"run": id, "target": null, "generators": []}));
    let (target_log, generator_log) = ("listening\n".to_owned(), "running\u{1b}[2J\n".to_owned());
    agent.end(Outcome { target_log, generator_log, ..outcome(&job, &good()) }).await;
    let generators = json!([{"agent": "rack", "log": "running\u{1b}[2J\n"}]);
    let expected = json!({"run": id, "target": "listening\n", "generators": generators});
    assert_eq!(user.get(&path).await.ok().json(), expected);
    let printed = as_user(&app, user.secret(), &["run", "logs", &id]).await.ok();
    assert_eq!(printed, "== target\nlistening\n== load generator on rack\nrunning\u{fffd}[2J\n");
    user.get("/api/v1/runs/x/logs").await.refused(404);
}

#[tokio::test]
async fn start_up_time_and_idle_memory_are_metrics_even_without_samples() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut result = outcome(&job, &good());
    result.conditions.startup_ms = Some(12.5);
    result.conditions.idle_memory_bytes = Some(4 << 20);
    result.conditions.idle_held_memory_bytes = Some(3 << 20);
    agent.end(Outcome { series: None, ..result }).await;
    assert_eq!(user.run(&id).await["startup_ms"], 12.5);
    let run = user.run(&id).await;
    assert_eq!((&run["idle_memory_bytes"], &run["idle_held_memory_bytes"]), (&json!(4 << 20), &json!(3 << 20)));
    let sorted = user.get("/api/v1/runs?sort=startup").await.ok().json();
    assert_eq!(sorted["runs"][0]["id"], id.as_str());
    let page = user.in_browser().get("/runs?columns=startup&columns=idle_memory").await.ok().text();
    assert!(page.contains("start-up") && page.contains("3\u{a0}MiB"), "{page}");
}

#[tokio::test]
async fn the_throttled_share_is_stored_exported_and_sortable() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut series = matching_series(&good()).unpack().expect("a series");
    for sample in &mut series.measured.as_mut().expect("seconds").usage {
        sample.target.throttled_us = Some(if sample.at_ms == 0 { 0 } else { 250_000 });
    }
    agent.end(Outcome { series: Some(Packed::pack(&series)), ..outcome(&job, &good()) }).await;
    assert_eq!(user.run(&id).await["throttled_share"], 0.25);
    let csv = user.get(&format!("/api/v1/runs/export?format=csv&runs={id}")).await.ok().text();
    assert!(csv.lines().next().is_some_and(|head| head.split(',').any(|key| key == "throttled_share")), "{csv}");
    let sorted = user.get("/api/v1/runs?sort=-throttled").await.ok().json();
    assert_eq!(sorted["runs"][0]["id"], id.as_str());
}

#[tokio::test]
async fn what_earlier_agents_called_memory_is_never_compared_with_memory_that_is_held() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let mut ids = Vec::new();
    for (held, cached) in [(None, None), (Some(10 << 20), Some(433 << 20))] {
        let id = submit_one(&user).await;
        let job = agent.job().await;
        let mut series = matching_series(&good()).unpack().expect("a series");
        for sample in &mut series.measured.as_mut().expect("seconds").usage {
            sample.target.memory_bytes = Some(443 << 20);
            (sample.target.held_memory_bytes, sample.target.file_cache_bytes) = (held, cached);
        }
        agent.end(Outcome { series: Some(Packed::pack(&series)), ..outcome(&job, &good()) }).await;
        let run = user.run(&id).await;
        assert_eq!((&run["held_memory_bytes"], &run["file_cache_bytes"]), (&json!(held), &json!(cached)));
        assert_eq!(run["target_memory_bytes"], 443 << 20);
        ids.push(id);
    }
    let sorted = user.get("/api/v1/runs?sort=memory").await.ok().json();
    assert_eq!(sorted["runs"][0]["id"], ids[1].as_str(), "unknown values come last");
    let csv = user.get(&format!("/api/v1/runs/export?format=csv&runs={}", ids[0])).await.ok().text();
    for key in ["memory", "working_set", "file_cache"] {
        assert!(csv.lines().next().is_some_and(|head| head.split(',').any(|name| name == key)), "{csv}");
    }
    let shown = as_user(&app, user.secret(), &["run", "show", &ids[0]]).await.ok();
    assert!(shown.contains("memory MiB      –") && shown.contains("working set MiB 443"), "{shown}");
    // A trend of memory begins where the figure does, so there is no change from the other one.
    let list = user.get("/api/v1/trends?target=fast").await.ok().json();
    let cell = text(&list["trends"][0]["cell"]["id"]);
    for (metric, values) in [("memory", vec![10.0]), ("working_set", vec![443.0, 443.0])] {
        let trend = user.get(&format!("/api/v1/trends/fast/{cell}?metric={metric}")).await.ok().json();
        let points = trend["points"].as_array().expect("points").iter();
        let mib: Vec<_> = points.map(|point| point["value"].as_f64().expect("a value") / f64::from(1 << 20)).collect();
        assert_eq!(mib, values, "{trend}");
        assert_eq!(trend["changes"], json!([]));
    }
}

#[tokio::test]
async fn counters_are_stored_exported_sortable_and_explained_where_they_are_missing() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let missing = vec!["hardware counters: this machine has none".to_owned()];
    let counters = Counters { voluntary_switches: Some(3), page_faults: Some(0), missing, ..Counters::default() };
    let conditions = Conditions { counters: Some(counters), ..Conditions::default() };
    agent.end(Outcome { conditions, ..outcome(&job, &good()) }).await;
    let run = user.run(&id).await;
    let requests = run["requests"].as_f64().expect("requests");
    assert_eq!(run["voluntary_switches_per_request"], 3.0 / requests);
    assert_eq!((&run["page_faults_per_request"], &run["instructions_per_request"]), (&0.0.into(), &Value::Null));
    let csv = user.get(&format!("/api/v1/runs/export?format=csv&runs={id}")).await.ok().text();
    assert!(csv.lines().next().is_some_and(|head| head.split(',').any(|key| key == "voluntary_switches")), "{csv}");
    let sorted = user.get("/api/v1/runs?sort=-voluntary_switches").await.ok().json();
    assert_eq!(sorted["runs"][0]["id"], id.as_str());
    let page = user.in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("voluntary context switches, 0 page faults per request"), "{page}");
    assert!(page.contains("hardware counters: this machine has none"), "{page}");
}
