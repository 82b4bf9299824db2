//! Differences in work prevent a winner until a user accepts them.

use std::collections::BTreeMap;

use brewbench::auth::model::Scope;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Answer, App,
    program::as_user,
    submit::text,
    summaries::{distinct, good, good_with, scaled},
};

/// A summary of a target that is `faster` times as fast, with `bytes` bytes per response.
fn summary(faster: f64, bytes: f64) -> String {
    let mut summary: Value = serde_json::from_str(&scaled(faster)).expect("JSON");
    let requests = summary["metrics"]["http_reqs"]["values"]["count"].as_f64().expect("a count");
    summary["metrics"]["data_received"]["values"]["count"] = json!((requests * bytes).round());
    summary.to_string()
}

/// Imports `full` and `hollow`, measured in turn ten times; `hollow` is faster with smaller responses.
async fn import_both(user: &Actor) -> Vec<String> {
    let (mut index, mut files) = (Vec::new(), BTreeMap::new());
    for repetition in 1..=10 {
        let wobble = 1.0 + 0.001 * f64::from(repetition * 7 % 5);
        for (target, faster, bytes) in [("full", 1.0, 1_204.0), ("hollow", 1.5, 12.0)] {
            // Mirrored in each pair of repetitions.
            let is_first = (target == "full") == (repetition % 2 == 1);
            let order = 2 * repetition - i32::from(is_first);
            let name = format!("{target}-{repetition}.json");
            files.insert(name.clone(), distinct(summary(faster * wobble, bytes)));
            index.push(json!({"file": name, "target": target, "scenario": "hash", "repetition": repetition,
                "order": order}));
        }
    }
    let index = serde_json::to_string(&index).expect("JSON");
    let imported = user.import_folder(&index, &files).await.ok().json();
    let ids: Vec<String> = imported["runs"].as_array().expect("runs").iter().map(|run| text(&run["id"])).collect();
    user.post("/api/v1/experiments/from-imports", &json!({"name": "in turn", "runs": ids})).await.ok();
    let runs_of = |place: usize| ids.iter().skip(place).step_by(2).cloned().collect::<Vec<_>>();
    [runs_of(0), runs_of(1)].concat()
}

async fn compared(user: &Actor, runs: &[String], more: &str) -> Value {
    user.get(&format!("/api/v1/compare?runs={}{more}", runs.join(","))).await.ok().json()
}

/// Returns the decision on the second target's throughput.
fn decision(comparison: &Value) -> &str {
    let stats = comparison["rows"][0]["cells"][1]["stats"].as_array().expect("metrics");
    stats[0]["decision"].as_str().expect("a decision")
}

fn new_difference(targets: [&str; 2], facts: &[&str]) -> Value {
    json!({"targets": targets, "scenario": "hash", "facts": facts, "note": "an empty body is intended"})
}

#[tokio::test]
async fn an_empty_body_wins_only_while_a_user_accepts_it() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = import_both(&user).await;
    for more in ["", "&allow_confounders=true"] {
        let comparison = compared(&user, &runs, more).await;
        assert_eq!(decision(&comparison), "not_comparable", "{comparison}");
        let difference = &comparison["rows"][0]["work"][0];
        assert_eq!((&difference["fact"], &difference["accepted"]), (&json!("bytes"), &json!(null)));
        let shown = text(&difference["text"]).replace('\u{a0}', " ");
        assert_eq!(shown, "Response bytes per request differ: full 1,204 B, hollow 12.00 B");
    }
    let page = user.get(&format!("/compare?runs={}", runs.join(","))).await.ok();
    assert!(page.text().contains("Different work.") && page.text().contains("action=\"/differences\""));

    let accepted = user.post("/api/v1/differences", &new_difference(["hollow", "full"], &["bytes"])).await;
    assert_eq!(accepted.status, 201, "{}", accepted.text());
    let accepted = accepted.json();
    assert_eq!(accepted["targets"], json!(["full", "hollow"]), "sorted");
    let comparison = compared(&user, &runs, "").await;
    assert_eq!(decision(&comparison), "better", "{comparison}");
    assert_eq!(comparison["rows"][0]["work"][0]["accepted"]["id"], accepted["id"]);
    let notes = comparison["notes"].to_string();
    assert!(notes.contains("Different work, accepted.") && notes.contains("an empty body is intended"), "{notes}");

    let list = app.reader().await.get("/api/v1/differences").await.ok().json();
    assert_eq!(list["differences"], json!([accepted]));
    let index = user.get("/differences").await.ok();
    assert!(index.text().contains("full and hollow") && index.text().contains("/revoke"));
    let id = accepted["id"].as_i64().expect("a number");
    user.form(&format!("/differences/{id}/revoke"), &[]).await;
    assert_eq!(decision(&compared(&user, &runs, "").await), "not_comparable");
    user.delete(&format!("/api/v1/differences/{id}")).await.refused(404);
    let log = app.admin().await.get("/api/v1/audit").await.ok().json().to_string();
    assert!(log.contains("difference accepted") && log.contains("difference revoked"), "{log}");
}

#[tokio::test]
async fn an_accepted_difference_applies_only_to_its_targets_scenario_and_facts() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = import_both(&user).await;
    for body in [
        new_difference(["full", "hollow"], &["statuses"]),
        new_difference(["full", "other"], &["bytes"]),
        json!({"targets": ["full", "hollow"], "scenario": "site-mix", "facts": ["bytes"], "note": "fine there"}),
    ] {
        assert_eq!(user.post("/api/v1/differences", &body).await.status, 201);
        assert_eq!(decision(&compared(&user, &runs, "").await), "not_comparable", "{body}");
    }
    for (body, expected) in [
        (new_difference(["full", "hollow"], &[]), "facts: name at least one"),
        (json!({"targets": ["a", "b"], "facts": ["bytes"], "note": " "}), "note: explain why"),
    ] {
        let refused = user.post("/api/v1/differences", &body).await.refused(422);
        assert!(refused.contains(expected), "{refused}");
    }
    app.reader().await.post("/api/v1/differences", &new_difference(["full", "hollow"], &["bytes"])).await.refused(403);
}

#[tokio::test]
async fn the_gate_passes_different_work_only_if_it_is_accepted() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = import_both(&user).await;
    let query = format!("baseline={}&candidate={}&fail_on=rps<-5%25", runs[..10].join(","), runs[10..].join(","));
    let gate = async |more: &str| user.get(&format!("/api/v1/compare/gate?{query}{more}")).await.ok().json();
    let refused = gate("").await;
    assert_eq!(refused["outcome"], "cannot_say", "{refused}");
    assert!(text(&refused["checks"][0]["reason"]).contains("Response bytes per request differ: baseline"), "{refused}");
    let accepted = gate("&accept=work").await;
    assert_eq!(accepted["outcome"], "fine", "{accepted}");
    assert!(accepted["notes"].to_string().contains("; accepted"), "{accepted}");
    let token = app.token_secret(Scope::Submit, None).await;
    let arguments = ["difference", "accept", "full", "hollow", "--fact", "bytes", "--note", "as agreed", "--json"];
    let done = as_user(&app, &token, &arguments).await.json();
    assert_eq!((&done["note"], &done["scenario"]), (&json!("as agreed"), &json!(null)));
    let known = gate("").await;
    assert_eq!(known["outcome"], "fine", "{known}");
    assert!(known["notes"].to_string().contains("as agreed"), "{known}");
    let listed = as_user(&app, &token, &["difference", "list"]).await.ok();
    assert!(listed.contains("full and hollow") && listed.contains("response bytes per request"), "{listed}");
    as_user(&app, &token, &["difference", "revoke", &done["id"].to_string()]).await.ok();
    assert_eq!(gate("").await["outcome"], "cannot_say");
}

#[tokio::test]
async fn a_redirect_in_each_iteration_is_found_in_imports() {
    let app = App::start().await;
    let user = app.user().await;
    let import = async |target: &str, iterations: u64| {
        let summary = good_with("iterations", "count", &json!(iterations));
        let request =
            user.request(&reqwest::Method::POST, &format!("/api/v1/runs/import?target={target}&scenario=hash"));
        let answer = Answer::to(request.body(summary)).await.ok().json();
        text(&answer["runs"][0]["id"])
    };
    let runs = [import("plain", 51_230).await, import("moved", 25_615).await];
    let comparison = compared(&user, &runs, "").await;
    let work = comparison["rows"][0]["work"].as_array().expect("differences");
    assert_eq!(work.len(), 1, "{work:?}");
    assert_eq!(work[0]["text"], "Requests per iteration differ: moved 2.00, plain 1.00");
}

#[tokio::test]
async fn connections_closed_after_each_response_are_found_in_imports() {
    let app = App::start().await;
    let user = app.user().await;
    let import = async |target: &str, closes: bool| {
        let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
        let values = summary["metrics"]["http_req_connecting"]["values"].as_object_mut().expect("values");
        // Each request opens a connection, even the fastest one.
        for (name, value) in values.iter_mut().filter(|_| closes) {
            match name.as_str() {
                "avg" => *value = json!(0.02),
                _ if value.as_f64() == Some(0.0) => *value = json!(0.01),
                _ => {}
            }
        }
        let request =
            user.request(&reqwest::Method::POST, &format!("/api/v1/runs/import?target={target}&scenario=hash"));
        Answer::to(request.body(summary.to_string())).await.ok().json()["runs"][0].take()
    };
    let (reused, closed) = (import("reused", false).await, import("closed", true).await);
    assert_eq!(closed["work"]["new_connections"], closed["requests"]);
    assert_eq!(reused["work"]["new_connections"], json!(null), "{}", reused["work"]);
    assert_eq!(reused["work"]["max_new_connections"], json!(2_563), "{}", reused["work"]);
    let comparison = compared(&user, &[text(&reused["id"]), text(&closed["id"])], "").await;
    let work = comparison["rows"][0]["work"].as_array().expect("differences");
    assert_eq!((work.len(), &work[0]["fact"]), (1, &json!("connections")), "{work:?}");
}
