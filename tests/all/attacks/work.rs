//! Requests that cause much work, and lists that requests at the same time would fill beyond their limits.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{body::BodyDataStream, response::IntoResponse};
use brewbench::{
    app::{error::Result, ids::RunId, state::RunChanged},
    web::{
        live::{Frame, Pace, Tick, Topic, View},
        live_shared,
    },
};
use datastar::prelude::PatchElements;
use futures_util::{StreamExt, future::join_all};
use rusqlite::Connection;
use serde_json::json;
use tokio::time::timeout;

use crate::harness::{
    Agent, App, PATIENCE,
    submit::{plan_with, submit},
    summaries::good,
};

#[tokio::test]
async fn searches_without_a_login_do_not_keep_others_waiting() {
    let app = App::start().await;
    let (nobody, reader) = (app.anonymous(), app.reader().await);
    let words = "the+".repeat(1_100);
    let search = format!("/docs/search?q={words}");
    let palette = format!("/search?q={words}");
    let flood = async {
        let attempts = join_all((0..8).map(|n| nobody.get(if n % 2 == 0 { &search } else { &palette }))).await;
        attempts.into_iter().filter(|answer| answer.status == 200).count()
    };
    let reads = async {
        for _ in 0..5 {
            for path in ["/", "/runs", "/api/v1/runs", "/docs/search?q=gate"] {
                reader.get(path).await.ok();
            }
        }
    };
    let (answered, ()) = timeout(PATIENCE, async { tokio::join!(flood, reads) }).await.expect("little work");
    assert!(answered > 0, "searches are answered");
}

#[tokio::test]
async fn a_text_of_the_history_is_short() {
    let app = App::start().await;
    let user = app.user().await;
    let refusal = user.get(&format!("/api/v1/runs?q={}", "x".repeat(101))).await.refused(422);
    assert_eq!(refusal, "q: at most 100 characters");
    user.get(&format!("/api/v1/runs?q={}", "%25".repeat(100))).await.ok();
}

#[tokio::test]
async fn a_limit_holds_for_requests_at_the_same_time() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let run = user.import(good()).await.ok().json()["runs"][0]["id"].as_str().expect("an id").to_owned();
    let labels: Vec<_> = (0..45).map(|n| format!("/api/v1/runs/{run}/labels/label-{n}")).collect();
    let empty = json!({});
    let answers = join_all(labels.iter().map(|path| user.put(path, &empty))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 200).count(), 30);
    let accepted = answers.iter().position(|answer| answer.status == 200).expect("one of 30");
    for answer in answers.into_iter().filter(|answer| answer.status != 200) {
        assert_eq!(answer.refused(409), "label: a run has at most 30 labels; remove one first");
    }
    user.put(&labels[accepted], &empty).await.ok();
    let hook = json!({"url": "https://example.com/hook"});
    let answers = join_all((0..60).map(|_| admin.post("/api/v1/webhooks", &hook))).await;
    assert_eq!(answers.iter().filter(|answer| answer.status == 201).count(), 50);
}

#[tokio::test]
async fn nobody_fills_the_queue() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let (user, other) = (app.user().await, app.user().await);
    let plan = plan_with(&json!({"repetitions": 9_000}));
    submit(&user, &plan).await;
    let refusal = user.post("/api/v1/experiments", &plan).await.refused(409);
    assert!(refusal.contains("runs of token submit") && refusal.contains("the limit is 10000"), "{refusal}");
    submit(&other, &plan).await;
    let third = app.user().await;
    let refusal = third.post("/api/v1/experiments", &plan).await.refused(409);
    assert!(refusal.contains("runs of all users") && refusal.contains("the limit is 20000"), "{refusal}");
    for path in ["/", "/queue", "/experiments", "/runs", "/api/v1/queue"] {
        user.get(path).await.ok();
    }
}

#[tokio::test]
async fn long_lists_are_refused_before_they_are_worked_on() {
    let app = App::start().await;
    let user = app.user().await;
    let names: Vec<String> = (0..100_000).map(|n| format!("t{n}")).collect();
    let plan = plan_with(&json!({"targets": names}));
    let refusal = user.post("/api/v1/experiments", &plan).await.refused(422);
    assert_eq!(refusal, "this makes 100000 runs; an experiment has at most 10000");
    let ids: Vec<String> = (0..10_000).map(|n| format!("{n:x}")).collect();
    let ids = ids.join(",");
    user.get(&format!("/runs?runs={ids}")).await.ok();
    let refusal = user.get(&format!("/api/v1/compare?runs={ids}")).await.refused(422);
    assert!(refusal.starts_with("10000 runs were chosen"), "{refusal}");
    let plan = plan_with(&json!({"against": ids}));
    let refusal = user.post("/api/v1/experiments", &plan).await.refused(422);
    assert!(refusal.starts_with("at most 500 baselines, experiments and runs"), "{refusal}");
}

/// A page that counts how often it is rendered.
struct Counted(Arc<AtomicUsize>);

impl View for Counted {
    async fn frame(&mut self, _: Tick) -> Result<Frame> {
        let number = self.0.fetch_add(1, Ordering::SeqCst);
        Ok(Frame { patches: vec![PatchElements::new(format!("<p id=n>frame {number}</p>"))], pace: Pace::Minute })
    }
}

#[tokio::test]
async fn a_live_page_is_rendered_once_for_all_its_streams() {
    let app = App::start().await;
    let rendered = Arc::new(AtomicUsize::new(0));
    let follow = |n: usize| {
        let (caller, view) = (format!("caller {n}"), Counted(Arc::clone(&rendered)));
        let page = live_shared::follow(&app.state, &caller, "a page".to_owned(), Topic::Everything, view);
        page.expect("a stream").into_response().into_body().into_data_stream()
    };
    let mut streams: Vec<_> = (0..300).map(follow).collect();
    let reads = async |streams: &mut Vec<BodyDataStream>, text: &str| {
        for stream in streams {
            let chunk = timeout(PATIENCE, StreamExt::next(stream)).await.expect("a frame in time");
            let chunk = chunk.expect("an open stream").expect("a chunk");
            assert!(String::from_utf8_lossy(&chunk).contains(text), "{text}: {chunk:?}");
        }
    };
    reads(&mut streams, "frame 0").await;
    app.state.events.publish(RunChanged { run: RunId::now(), experiment: None });
    reads(&mut streams, "frame 1").await;
    streams.push(follow(300));
    reads(&mut streams.split_off(300), "frame 1").await;
    assert_eq!(rendered.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn reads_pass_while_another_program_has_locked_the_database() {
    let app = App::start().await;
    let (user, person) = (app.user().await, app.signed_in(brewbench::auth::model::Role::Member).await);
    // A use that is not recorded yet.
    for table in ["token", "session"] {
        let sql = sqlx::AssertSqlSafe(format!("update {table} set last_used_at = 1000000 + created_at - 2000000"));
        sqlx::query(sql).execute(&app.state.db.write).await.expect("an earlier use");
    }
    let other = Connection::open(app.data().join(brewbench::app::db::FILE)).expect("the database");
    other.execute_batch("begin exclusive").expect("the lock");
    let reads = async {
        for _ in 0..20 {
            user.get("/api/v1/runs").await.ok();
            person.get("/runs").await.ok();
        }
    };
    // One wait for the lock would take five seconds.
    timeout(Duration::from_secs(90), reads).await.expect("reads that do not wait");
    let refused = user.import(good()).await;
    assert_eq!(refused.header("retry-after"), "2");
    assert!(refused.refused(503).contains("another program has locked the server's database"));
    other.execute_batch("rollback").expect("no lock");
    user.import(good()).await.ok();
    let is_recorded = async || {
        user.get("/api/v1/runs").await.ok();
        let sql = "select count(*) from token where last_used_at > created_at - 1000000";
        let recorded: i64 = sqlx::query_scalar(sql).fetch_one(&app.state.db.read).await.expect("a count");
        (recorded == 1).then_some(())
    };
    app.until("the use to be recorded once the database is free", is_recorded).await;
}
