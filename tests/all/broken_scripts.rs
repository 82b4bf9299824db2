//! Scripts and loads whose results say nothing about the target: each as users wrote it, with a real k6, a real target
//! and the server. None of them may look valid.

use brewbench::auth::model::Scope;
use brewbench_wire::load_record::LoadRecord;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, App,
        agent::outcome,
        program::as_user,
        submit::{plan_with, retry_of, submit, text},
        summaries::good,
    },
    provoked::{Bench, ORDINARY, Request, assert_reason, codes, sentence, servers_of},
};

/// Runs a script under its own load.
async fn run_as_written(bench: &mut Bench, script: &str) -> Value {
    let (id, job) = bench.job(Request { script, ..ORDINARY }, Some(json!({"kind": "script"}))).await;
    bench.execute(&id, &job, std::future::pending()).await
}

#[tokio::test]
async fn iterations_that_throw_make_a_run_invalid_and_a_threshold_without_data_did_not_pass() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; import { check } from 'k6';
        export const options = { thresholds: { checks: ['rate>=0.9'], http_req_failed: ['rate<0.5'] } };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); null.x; check(1, { ok: () => true }); }";
    let run = bench.run(Request { script, ..ORDINARY }).await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("finished"), &json!("invalid")), "{run}");
    assert_reason(&run, "iterations_failed", "invalid");
    let words = sentence(&run, "iterations_failed");
    let all = &run["iterations"];
    let start = format!("{all} of {all} iterations ended with an exception: TypeError: Cannot read property 'x'");
    assert!(words.starts_with(&start), "{words}");
    assert!(words.contains("(script.js:3:"), "its place: {words}");
    assert_eq!((&run["thresholds"], &run["thresholds_failed"]), (&json!(1), &json!(0)), "one of two has data: {run}");
    let page = bench.user.clone().in_browser().get(&format!("/runs/{}", text(&run["id"]))).await.ok().text();
    assert!(page.contains(">no data</span>") && page.contains("TypeError: Cannot read property"), "{page}");
    let token = bench.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&bench.app, &token, &["run", "show", &text(&run["id"])]).await.ok();
    let on_one_line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(on_one_line.contains("TypeError: Cannot read property"), "{shown}");

    let script = "import http from 'k6/http'; export default function () { http.get(`${__ENV.BASE_URL}/hash`);
        if (__ITER % 20 === 0) throw new Error('basket is empty'); }";
    let run = bench.run(Request { script, ..ORDINARY }).await;
    assert_reason(&run, "iterations_failed", "invalid");
    assert!(sentence(&run, "iterations_failed").contains("Error: basket is empty"), "{run}");
}

#[tokio::test]
async fn a_load_that_the_script_cuts_short_is_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    let by_threshold = "import http from 'k6/http';
        export const options = { thresholds: { http_req_duration: [
            { threshold: 'p(95)<0.0001', abortOnFail: true, delayAbortEval: '1s' }] } };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); }";
    let rate = json!({"kind": "rate", "rate": 20, "duration_s": 30.0});
    for load in [None, Some(rate)] {
        let request = Request { script: by_threshold, duration_s: 30.0, ..ORDINARY };
        let (id, job) = bench.job(request, load).await;
        let run = bench.execute(&id, &job, std::future::pending()).await;
        assert_eq!((&run["phase"], &run["verdict"]), (&json!("finished"), &json!("invalid")), "{run}");
        let words = sentence(&run, "cut_short");
        assert!(words.starts_with("the load ended after ") && words.contains(" of 30.0 s: its threshold "), "{words}");
        assert!(words.ends_with("http_req_duration p(95)<0.0001 was crossed"), "{words}");
        assert!(!codes(&run).iter().any(|code| code == "rate_not_kept"), "{run}");
    }
    let by_itself = "import http from 'k6/http'; import exec from 'k6/execution';
        export default function () { http.get(`${__ENV.BASE_URL}/hash`);
            if (__ITER === 5) exec.test.abort('no more items'); }";
    let run = bench.run(Request { script: by_itself, duration_s: 30.0, ..ORDINARY }).await;
    assert!(sentence(&run, "cut_short").contains("the script aborted it: no more items"), "{run}");
    assert_eq!(run["verdict"], "invalid");
}

#[tokio::test]
async fn a_run_without_a_request_says_what_k6_said() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; const u = undefined; export default function () { http.get(u.path); }";
    let run = bench.run(Request { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("finished"), &json!("invalid")), "{run}");
    let words = sentence(&run, "no_requests");
    assert!(words.starts_with("no request was made: TypeError: Cannot read property 'path'"), "{words}");
    assert!(words.ends_with(" times)"), "with a count: {words}");
    assert_eq!(run["requests"], 0);

    let script =
        "import http from 'k6/http'; export default function () { http.get(`${__ENV.BASE_URL}${__ENV.ROUTE}`); }";
    let run = bench.run(Request { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_eq!(run["verdict"], "invalid", "{run}");
    let words =
        sentence(&run, if codes(&run).iter().any(|code| code == "no_success") { "no_success" } else { "no_requests" });
    assert!(words.contains("invalid port") || words.contains("parse"), "{words}");

    let script = "export default function () {}";
    let run = bench.run(Request { script, duration_s: 1.0, ..ORDINARY }).await;
    assert!(sentence(&run, "no_requests").contains("the load generator made no HTTP request"), "{run}");

    // Not the target's address.
    let script = "import http from 'k6/http'; export default function () { http.get('http://127.0.0.1:1/'); }";
    let run = bench.run(Request { script, duration_s: 1.0, ..ORDINARY }).await;
    assert_reason(&run, "no_success", "invalid");
    let words = sentence(&run, "no_success");
    assert!(words.ends_with(" times)") && !words.contains("the target was down"), "{words}");
}

#[tokio::test]
async fn dropped_iterations_are_counted_with_those_that_never_ended() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; import { sleep } from 'k6';
        export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 5, duration: '3s',
            preAllocatedVUs: 3, maxVUs: 3, gracefulStop: '0s' } } };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); sleep(60); }";
    let run = run_as_written(&mut bench, script).await;
    assert_reason(&run, "iterations_dropped", "suspect");
    assert_reason(&run, "iterations_interrupted", "suspect");
    let words = sentence(&run, "iterations_interrupted");
    let (interrupted, rest) = words.split_once(" of ").expect("counts");
    assert!(rest.starts_with(&format!("{interrupted} iterations (100 %)")), "{words}");
    // At the end, a fourth iteration may start on a virtual user that has just been interrupted.
    let interrupted: u64 = interrupted.parse().expect("a count");
    assert!((3..=4).contains(&interrupted), "{words}");
    let dropped = run["dropped_iterations"].as_u64().expect("a count");
    let words = sentence(&run, "iterations_dropped");
    let all = dropped + interrupted;
    assert!(words.contains(&format!("could not start {dropped} of {all} iterations")), "{words}");
    assert!(words.contains(&format!("{interrupted} of them in iterations that did not end")), "{words}");
}

#[tokio::test]
async fn a_scripts_own_limit_of_requests_is_named() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; export const options = { rps: 10 };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); }";
    let load = json!({"kind": "rate", "rate": 50, "duration_s": 3.0, "max_vus": 4});
    let (id, job) = bench.job(Request { script, ..ORDINARY }, Some(load)).await;
    let run = bench.execute(&id, &job, std::future::pending()).await;
    let words = sentence(&run, "iterations_dropped");
    assert!(words.contains("because the script's option rps allows 10 requests per second"), "{words}");
}

#[tokio::test]
async fn a_target_that_hangs_is_not_blamed_on_k6() {
    let Some(mut bench) = Bench::start().await else { return };
    let (id, job) = bench.job(Request { duration_s: 4.0, ..ORDINARY }, None).await;
    let stop = async {
        bench.measuring.notified().await;
        // Any moment within its four seconds will do.
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        for pid in servers_of(&id) {
            let _ = kill(Pid::from_raw(pid), Signal::SIGSTOP);
        }
    };
    let run = bench.execute(&id, &job, stop).await;
    let found = codes(&run);
    assert!(!found.iter().any(|code| code == "generator_held_back"), "{run}");
    assert!(sentence(&run, "iterations_interrupted").starts_with("4 of "), "{run}");
}

#[tokio::test]
async fn a_load_cut_short_is_not_repeated() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let mut end = async |cut_short: Option<&str>| {
        let id = submit(&user, &plan_with(&json!({"retries": 1}))).await.1.remove(0);
        let job = agent.job().await;
        let mut outcome = outcome(&job, &good());
        outcome.conditions.response_change = Some("another status".to_owned());
        let cut_short = cut_short.map(str::to_owned);
        outcome.conditions.load_record = Some(LoadRecord { cut_short, ..LoadRecord::default() });
        agent.end(outcome).await;
        assert_eq!(user.run(&id).await["verdict"], "invalid");
        retry_of(&user, &id).await.is_some()
    };
    assert!(!end(Some("its threshold checks rate>0.9 was crossed")).await);
    assert!(end(None).await, "other invalid runs are repeated");
}

#[tokio::test]
async fn a_negative_minimum_keeps_the_run_and_is_noted() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit(&user, &plan_with(&json!({"retries": 0}))).await.1.remove(0);
    let job = agent.job().await;
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    let sending = summary.pointer_mut("/metrics/http_req_sending").expect("a trend");
    let values = if sending["values"].is_object() { &mut sending["values"] } else { sending };
    values["min"] = json!(-0.0213);
    let outcome = outcome(&job, &summary.to_string());
    agent.end(outcome).await;
    let run = user.run(&id).await;
    assert_eq!((&run["phase"], &run["verdict"]), (&json!("finished"), &json!("valid")), "{run}");
    assert!(sentence(&run, "negative_minimum").contains("http_req_sending"), "{run}");
}
