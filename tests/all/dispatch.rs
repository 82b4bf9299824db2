//! Runs in the hands of agents: phases, results early, late and twice, silence, cancelling, keys.

use std::time::{Duration, Instant};

use brewbench::results::settlement::Settled;
use brewbench_agent::wire::{
    PROTOCOL, Phase, RunId,
    load::Load,
    messages::AgentMessage,
    now_ms,
    outcome::{Cause, Ended, Outcome},
    series::Packed,
};
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    agent::outcome,
    program::as_user,
    series::fitting,
    submit::{plan_with, reaches, retry_of, submit, submit_one, text},
    summaries::good,
};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// A server whose agents may be silent for a moment only.
async fn impatient() -> App {
    App::with(|config| config.lease = Duration::from_millis(300)).await
}

#[track_caller]
fn assert_dropped(settled: &Settled, why: &str) {
    assert!(!settled.kept && settled.why.as_deref().is_some_and(|said| said.contains(why)), "{settled:?}");
}

#[tokio::test]
async fn a_run_goes_through_its_phases_and_ends_with_its_figures() {
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
        "engine": {"name": "k6", "version": "1.8.1"}, "target_sha256": "ab".repeat(32), "version": "1.0", "origin": "agent",
        "enforced": {"cpu": "cgroup2", "memory": "cgroup2"}, "vus": 2, "duration_s": 1.0, "warm_up_s": 0.0});
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&run[field], value, "{field}");
    }
    let summary = user.get(&format!("/api/v1/runs/{id}/summary")).await.ok();
    assert_eq!(summary.text(), good());
}

#[tokio::test]
async fn a_rate_that_k6_did_not_keep_makes_a_run_suspect_with_the_figures() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    // The summary has 51,230 iterations.
    let loads = [
        (51_230, "valid", ""),
        (60_000, "suspect", "k6 made 51230 iterations of the 60000 that the rate asks for (85.4 %)"),
    ];
    for (rate, verdict, words) in loads {
        let load = json!({"kind": "rate", "rate": rate, "duration_s": 1.0});
        let (_, runs) = submit(&user, &plan_with(&json!({"load": load}))).await;
        let job = agent.job().await;
        assert_eq!(job.load.iterations(), Some(f64::from(rate)));
        assert!(matches!(&job.load, Load::Open(open) if open.max_vus() == 1_000), "{:?}", job.load);
        agent.finish(&job, &good()).await;
        let run = user.run(&runs[0]).await;
        assert_eq!(run["verdict"], verdict, "{run}");
        assert!(run["reasons"].to_string().contains(words), "{run}");
        assert_eq!(run["load"]["max_vus"], 1_000);
    }
    let stages =
        json!({"kind": "vus_stages", "stages": [{"duration_s": 0.5, "target": 9}, {"duration_s": 1, "target": 0}]});
    let (experiment, runs) = submit(&user, &plan_with(&json!({"load": stages}))).await;
    assert_eq!(agent.job().await.load.shape().expect("a shape").points(), [(0, 0), (500, 9), (1_500, 0)]);
    let run = user.run(&runs[0]).await;
    assert_eq!((&run["vus"], &run["duration_s"]), (&json!(null), &json!(1.5)));
    let pages = user.at_pages();
    for page in [format!("/runs/{}", runs[0]), "/runs".to_owned(), format!("/experiments/{experiment}")] {
        let text = pages.get(&page).await.ok().text().replace('\u{a0}', " ");
        assert!(text.contains("0 → 9 → 0 VUs in 2 stages"), "{page}: {text}");
    }
}

#[tokio::test]
async fn a_phase_that_is_none_of_work_is_not_taken_from_an_agent() {
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
async fn a_result_that_comes_twice_changes_nothing() {
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
        assert_dropped(&agent.settle(&again).await, "there is a result already");
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
    let asked = Instant::now();
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    assert!(asked.elapsed() < Duration::from_secs(1), "{:?}", asked.elapsed());
    // It is free again once it has said so, and not before.
    let next = submit_one(&user).await;
    agent.end_cancelled(&job).await;
    assert_eq!(agent.job().await.run.to_string(), next);
}

#[tokio::test]
async fn a_silent_agents_run_is_lost_and_queued_anew_once() {
    let app = impatient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let lost = reaches(&app, &user, &id, "lost").await;
    assert!(text(&lost["error"]).contains("silent"), "{}", lost["error"]);
    assert_eq!(agent.cancelled().await, job.run, "it is told to stop if it is there after all");
    let retry = retry_of(&user, &id).await.expect("its cell is queued anew");
    assert_eq!(
        (&retry["target"], &retry["repetition"], &retry["experiment"]),
        (&lost["target"], &lost["repetition"], &lost["experiment"])
    );
    // The second loss of the same cell is left to people.
    agent.say(&AgentMessage::Done { run: job.run });
    let second = agent.job().await;
    assert_eq!(second.run.to_string(), text(&retry["id"]));
    reaches(&app, &user, &text(&retry["id"]), "lost").await;
    assert_eq!(retry_of(&user, &text(&retry["id"])).await, None);
    let whole = user.get(&format!("/api/v1/experiments/{}", text(&lost["experiment"]))).await.ok().json();
    assert_eq!(
        (&whole["progress"]["total"], &whole["progress"]["ended"]),
        (&json!(1), &json!(1)),
        "one cell, however often it was tried"
    );
}

#[tokio::test]
async fn a_sign_of_life_keeps_a_run() {
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
        agent.say(&AgentMessage::Heartbeat { running: Some(job.run) });
        Some(lease().await).filter(|lease| *lease > first)
    })
    .await;
    // The heartbeat of somebody else keeps nothing.
    let other = Agent::start(&app, "other").await;
    let before = lease().await;
    other.say(&AgentMessage::Heartbeat { running: Some(job.run) });
    other.enter(job.run, Phase::Measuring);
    let mut other = other;
    assert_eq!(other.cancelled().await, job.run, "both were heard");
    assert_eq!(lease().await, before);
}

#[tokio::test]
async fn a_late_result_counts_while_nobody_measures_the_cell_again() {
    let app = impatient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    reaches(&app, &user, &id, "lost").await;
    let retry = text(&retry_of(&user, &id).await.expect("a retry")["id"]);
    assert_eq!(agent.settle(&outcome(&job, &good())).await, Settled { kept: true, why: None });
    let run = user.run(&id).await;
    assert_eq!((&run["phase"], &run["verdict"], &run["error"]), (&json!("finished"), &json!("valid"), &Value::Null));
    user.get(&format!("/api/v1/runs/{retry}")).await.refused(404);
    assert_eq!(user.count_runs().await, 1);
}

#[tokio::test]
async fn a_late_result_is_dropped_once_the_cell_is_measured_again() {
    let app = impatient().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.hang_up();
    let mut other = Agent::start(&app, "b").await;
    reaches(&app, &user, &id, "lost").await;
    let again = other.job().await;
    let before = user.run(&id).await;
    assert_dropped(&agent.settle(&outcome(&job, &good())).await, "measures it again already");
    assert_eq!(user.run(&id).await, before);
    // Its own result arrives whether or not it was given up meanwhile.
    other.finish(&again, &good()).await;
    assert_eq!(user.run(&again.run.to_string()).await["phase"], "finished");
}

#[tokio::test]
async fn a_result_of_somebody_elses_run_is_dropped() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let other = Agent::start(&app, "b").await;
    assert_dropped(&other.settle(&outcome(&job, &good())).await, "not in the hands of b");
    assert_eq!(user.run(&id).await["phase"], "leased");
    let unknown = Outcome { run: RunId::now(), ..outcome(&job, &good()) };
    agent.send(&unknown).await.refused(404);
    let path = format!("/api/v1/agent/runs/{}/result", RunId::now());
    let crossed = agent.home.put(&path, &outcome(&job, &good())).await.refused(422);
    assert!(crossed.starts_with("run: the body is about"), "{crossed}");
}

#[tokio::test]
async fn phases_of_somebody_elses_run_are_not_taken() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut other = Agent::start(&app, "b").await;
    other.enter(job.run, Phase::Measuring);
    assert_eq!(other.cancelled().await, job.run, "who does what is none of its work is told to stop");
    assert_eq!(user.run(&id).await["phase"], "leased");
}

#[tokio::test]
async fn an_agent_that_comes_back_holding_its_run_keeps_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.hang_up();
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.dial(&app).await.expect("a welcome");
    agent.enter(job.run, Phase::Measuring);
    reaches(&app, &user, &id, "measuring").await;
    agent.finish(&job, &good()).await;
    assert_eq!(user.run(&id).await["verdict"], "valid");
    assert_eq!(user.count_runs().await, 1);
}

#[tokio::test]
async fn an_agent_that_comes_back_without_its_run_has_lost_it_at_once() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    agent.job().await;
    agent.hang_up();
    agent.dial(&app).await.expect("a welcome");
    let lost = reaches(&app, &user, &id, "lost").await;
    assert_eq!(lost["error"], "its agent was restarted and no longer holds the run");
    let retry = agent.job().await;
    assert_eq!(user.run(&retry.run.to_string()).await["retry_of"], id);
}

#[tokio::test]
async fn an_agent_that_comes_back_with_a_run_that_was_cancelled_is_told_to_stop_it() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.hang_up();
    user.post(&format!("/api/v1/runs/{id}/cancel"), &()).await.ok();
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.dial(&app).await.expect("a welcome");
    assert_eq!(agent.cancelled().await, job.run);
}

#[tokio::test]
async fn a_server_that_starts_anew_takes_back_what_its_agents_still_hold() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    let app = App::on(app.stop().await, |_| ()).await;
    let user = user.at(&app.url);
    assert_eq!(user.run(&runs[0]).await["phase"], "leased");
    (agent.hello.running, agent.hello.holds) = (Some(job.run), vec![job.run]);
    agent.dial(&app).await.expect("a welcome");
    agent.finish(&job, &good()).await;
    assert_eq!(user.run(&runs[0]).await["phase"], "finished");
    assert_eq!(agent.job().await.run.to_string(), runs[1], "the queue goes on where it was");
}

#[tokio::test]
async fn a_result_that_waits_on_the_agents_disk_keeps_its_run() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.hang_up();
    agent.hello.holds = vec![job.run];
    agent.dial(&app).await.expect("a welcome");
    assert_eq!(agent.settle(&outcome(&job, &good())).await, Settled { kept: true, why: None });
    assert_eq!(user.run(&id).await["phase"], "finished");
}

#[tokio::test]
async fn what_one_agent_declines_another_does() {
    let app = App::start().await;
    let user = app.user().await;
    let mut first = Agent::start(&app, "a").await;
    let id = submit_one(&user).await;
    let job = first.job().await;
    let mut second = Agent::start(&app, "b").await;
    first.say(&AgentMessage::Declined { run: job.run, reason: "it is ending".to_owned() });
    assert_eq!(second.job().await.run, job.run);
    let run = user.run(&id).await;
    assert_eq!((&run["agent"], &run["phase"]), (&json!("b"), &json!("leased")));
    assert_dropped(&first.settle(&outcome(&job, &good())).await, "not in the hands of a");
    second.finish(&job, &good()).await;
    assert_eq!(user.run(&id).await["phase"], "finished");
}

#[tokio::test]
async fn what_nobody_else_can_do_waits_until_its_agent_comes_back() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let job = agent.job().await;
    agent.say(&AgentMessage::Declined { run: job.run, reason: "not now".to_owned() });
    assert_eq!(agent.job().await.run.to_string(), runs[1], "it is not asked for the same at once");
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
        let seen = agents["agents"][0]["about"]["clock_offset_ms"].as_i64().expect("an offset");
        assert!((seen - offset).abs() < 60_000, "{seen}");
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
async fn a_revoked_key_cuts_the_connection_at_once() {
    let app = App::start().await;
    let admin = app.admin().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&admin).await;
    let job = agent.job().await;
    admin.delete("/api/v1/agent-keys/rack").await.ok();
    assert_eq!(agent.cancelled().await, job.run);
    assert_eq!(agent.hear().await, None);
    agent.send(&outcome(&job, &good())).await.refused(401);
    assert_eq!(agent.dial(&app).await, Err("401".to_owned()));
    let lost = reaches(&app, &admin, &id, "lost").await;
    assert_eq!(lost["requests"], Value::Null);
    assert!(text(&lost["error"]).contains("revoked"), "nobody waits for its lease to run out: {lost}");
    admin.delete("/api/v1/agent-keys/rack").await.refused(404);
}

#[tokio::test]
async fn another_protocol_is_refused_and_told_what_to_upgrade() {
    let app = App::start().await;
    for (protocol, which) in [(PROTOCOL - 1, "agent"), (PROTOCOL + 1, "server")] {
        let mut agent = Agent::away(&app, &format!("speaks {protocol}")).await;
        agent.hello.protocol = protocol;
        let reason = agent.dial(&app).await.expect_err("refused");
        assert_eq!(reason, format!("this agent uses protocol {protocol}, this server {PROTOCOL}: upgrade the {which}"));
    }
}

#[tokio::test]
async fn an_agent_of_the_previous_protocol_is_told_to_upgrade_though_its_introduction_has_other_fields() {
    let app = App::start().await;
    let mut agent = Agent::away(&app, "old").await;
    let old = json!({"type": "hello", "protocol": 6, "version": "0.1.0", "now_ms": 0, "k6_version": "1.8.1",
        "targets": [], "any_scenario": false, "running": null, "holds": [],
        "machine": {"hostname": "rack", "cores": 2, "memory_bytes": 1, "kernel": "Linux", "cpu_model": "a CPU",
            "cpu": "none", "memory": "none"}});
    let reason = agent.dial_saying(&app, &old.to_string()).await.expect_err("refused");
    assert_eq!(reason, format!("this agent uses protocol 6, this server {PROTOCOL}: upgrade the agent"));
    let mut broken = serde_json::to_value(&agent.hello).expect("written");
    broken["type"] = json!("hello");
    broken["machine"] = json!(7);
    let reason = agent.dial_saying(&app, &broken.to_string()).await.expect_err("refused");
    assert!(reason.starts_with("this agent's introduction can't be read: "), "{reason}");
}

#[tokio::test]
async fn messages_that_the_server_does_not_know_are_left_out() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    agent.say_raw(r#"{"type": "tea_time", "sugar": 2}"#);
    agent.finish(&job, &good()).await;
    reaches(&app, &user, &id, "finished").await;
}

#[tokio::test]
async fn of_two_connections_of_one_process_the_newer_counts() {
    let app = App::start().await;
    let user = app.user().await;
    let mut first = Agent::start(&app, "rack").await;
    let mut second = Agent { name: "rack".to_owned(), ..Agent::away(&app, "unused").await };
    second.home = first.home.clone();
    second.hello = first.hello.clone();
    second.dial(&app).await.expect("a welcome");
    assert_eq!(first.hear().await, None, "the older one is closed");
    let id = submit_one(&user).await;
    assert_eq!(second.job().await.run.to_string(), id);
}

#[tokio::test]
async fn who_speaks_nonsense_is_cut_off_and_nobody_else_is() {
    let app = App::start().await;
    let user = app.user().await;
    let mut bad = Agent::start(&app, "bad").await;
    let mut good_one = Agent::start_with(&app, "good", |hello| hello.targets.truncate(1)).await;
    for _ in 0..20 {
        bad.say_raw("make coffee");
    }
    assert_eq!(bad.hear().await, None);
    let id = submit_one(&user).await;
    assert_eq!(good_one.job().await.run.to_string(), id);
}

#[tokio::test]
async fn a_server_that_ends_in_order_says_goodbye_to_its_agents() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    app.stop().await;
    assert_eq!(agent.goodbye().await, Some(1001));
}

#[tokio::test]
async fn every_figure_of_an_agents_report_is_stored() {
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
async fn the_logs_of_a_run_are_there_for_programs() {
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
    assert_eq!(printed, "== target\nlistening\n== k6 on rack\nrunning\u{fffd}[2J\n");
    user.get("/api/v1/runs/x/logs").await.refused(404);
}

#[tokio::test]
async fn start_up_time_and_idle_memory_are_figures_of_a_run_also_without_samples() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut result = outcome(&job, &good());
    result.conditions.startup_ms = Some(12.5);
    result.conditions.idle_memory_bytes = Some(3 << 20);
    agent.end(Outcome { series: None, ..result }).await;
    assert_eq!(user.run(&id).await["startup_ms"], 12.5);
    assert_eq!(user.run(&id).await["idle_memory_bytes"], 3 << 20);
    let sorted = user.get("/api/v1/runs?sort=startup").await.ok().json();
    assert_eq!(sorted["runs"][0]["id"], id.as_str());
    let page = user.at_pages().get("/runs?columns=startup&columns=idle_memory").await.ok().text();
    assert!(page.contains("start-up") && page.contains("3\u{a0}MiB"), "{page}");
}

#[tokio::test]
async fn the_share_of_time_in_which_a_target_was_throttled_is_a_figure_like_any_other() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut series = fitting(&good()).unpack().expect("a series");
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
