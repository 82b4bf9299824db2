//! The native load generator: chosen for a run, or by a scenario that has only a request list. With real agents' code,
//! a real target and the real program.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::{
    harness::submit::{plan_with, text},
    provoked::{Bench, ORDINARY, codes},
};

const LIST: &str = "[[request]]\npath = \"/hash\"\nexpect = { status = 200, contains = \"${WORD}\" }\n";

#[tokio::test]
async fn a_bundled_scenario_runs_with_either_load_generator_and_they_are_not_compared_silently() {
    let Some(mut bench) = Bench::start().await else { return };
    let native = json!({"engine": "native"});
    let run = bench.run_of("hash", ORDINARY, &native).await;
    assert_eq!(run["engine"], json!({"name": "native", "version": "1"}), "{run}");
    assert!(!codes(&run).contains(&"generator_busy".to_owned()));
    assert_eq!((&run["failed"], &run["dropped_iterations"]), (&json!(0), &json!(0)), "{run}");
    for metric in ["requests", "rps", "p50_ms", "p99_ms", "ttfb_p95_ms", "received_per_s"] {
        assert!(run[metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {run}");
    }
    let k6 = bench.run_of("hash", ORDINARY, &json!({})).await;
    assert_eq!(k6["engine"]["name"], "k6");
    let compare = format!("/api/v1/compare?runs={},{}", text(&run["id"]), text(&k6["id"]));
    let comparison: Value = bench.user.get(&compare).await.ok().json();
    let rows = comparison["rows"].as_array().expect("rows");
    let runs = |row: &Value| row["cells"][0]["runs"].as_array().map(Vec::len);
    assert_eq!(rows.iter().map(runs).collect::<Vec<_>>(), [Some(1), Some(1)], "settings of their own: {comparison}");
    let page = bench.user.clone().in_browser().get(&format!("/runs/{}", text(&run["id"]))).await.ok().text();
    assert!(page.contains("native 1") && page.contains("with native"), "{page}");
    // Explanations of metrics name k6's.
    let others: Vec<&str> =
        page.lines().filter(|line| line.contains("k6") && !line.contains("class=\"about\"")).collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test]
async fn a_bundled_scenario_with_data_files_has_its_list_and_its_rate_is_kept() {
    let Some(mut bench) = Bench::start().await else { return };
    let rate = json!({"kind": "rate", "rate": 20, "duration_s": 2.0});
    let run = bench.run_of("site-mix", ORDINARY, &json!({"engine": "native", "load": rate})).await;
    assert_eq!((&run["requests"], &run["failed"], &run["dropped_iterations"]), (&json!(40), &json!(0), &json!(0)));
    let page = bench.user.clone().in_browser().get("/scenarios/site-mix").await.ok().text();
    assert!(page.contains("for the load generator native") && page.contains("/file/100k"), "{page}");
}

#[tokio::test]
async fn a_scenario_of_a_request_list_needs_no_script() {
    let Some(mut bench) = Bench::start().await else { return };
    let scenario = json!({"name": "list", "entry": "requests.toml", "files": {"requests.toml": LIST}, "defaults": {"WORD": "hash"}});
    bench.user.post("/api/v1/scenarios", &scenario).await.ok();
    let run = bench.run_of("list", ORDINARY, &json!({})).await;
    assert_eq!((&run["engine"]["name"], &run["failed"]), (&json!("native"), &json!(0)), "{run}");
    let run = bench.run_of("list", ORDINARY, &json!({"parameters": {"WORD": "missing"}})).await;
    // Every 16th response is searched for the word.
    let failed = |run: &Value| run["failed"].as_f64().unwrap_or_default() / run["requests"].as_f64().unwrap_or(1.0);
    assert!((0.01..0.2).contains(&failed(&run)), "{run}");
    let page = bench.user.clone().in_browser().get("/scenarios/list").await.ok().text();
    assert!(page.contains("requests.toml") && page.contains("expect"), "{page}");
}

#[tokio::test]
async fn totals_of_wrk_are_suspect_and_decide_no_search() {
    let Some(mut bench) = Bench::start().await else { return };
    let whole = json!({"engine": "wrk", "load": {"kind": "vus", "vus": 8, "duration_s": 2.0}});
    let run = bench.run_of("hash", ORDINARY, &whole).await;
    assert_eq!(run["engine"]["name"], "wrk", "{run}");
    assert_eq!(
        (&run["verdict"], &run["failed"], &run["p95_ms"]),
        (&json!("suspect"), &json!(0), &Value::Null),
        "{run}"
    );
    assert!(codes(&run).contains(&"series_unknown".to_owned()), "{run}");
    for metric in ["requests", "rps", "p50_ms", "p99_ms", "cpu_ms_per_request"] {
        assert!(run[metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {run}");
    }
    let page = bench.user.clone().in_browser().get(&format!("/runs/{}", text(&run["id"]))).await.ok().text();
    assert!(page.contains("with wrk") && page.contains("wrk reports totals only"), "{page}");
    let knee = json!({"objective": "p99<50ms", "from": 10, "to": 200, "duration_s": 1.0});
    let rule = json!({"narrower_than": 0.02, "at_most": 20});
    for (field, value) in [("knee", knee), ("stopping_rule", rule)] {
        let plan = json!({"targets": ["it", "other"], "scenario": "hash", "sizes": [ORDINARY.size], "engine": "wrk", field: value});
        let mut plan = plan_with(&plan);
        if field == "knee" {
            plan.as_object_mut().expect("an object").remove("load");
        }
        let answer = bench.user.post("/api/v1/experiments", &plan).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        let answer = answer.text();
        assert!(answer.contains(&format!("{field}: wrk reports totals only")), "{answer}");
    }
}

#[tokio::test]
async fn a_load_generator_that_can_not_run_the_scenario_is_refused_with_a_sentence() {
    let Some(bench) = Bench::start().await else { return };
    let script = json!({"name": "script", "script": "export default function () {}"});
    bench.user.post("/api/v1/scenarios", &script).await.ok();
    let list =
        json!({"name": "list", "entry": "requests.toml", "files": {"requests.toml": "[[request]]\npath = \"/\"\n"}});
    bench.user.post("/api/v1/scenarios", &list).await.ok();
    let refused = async |fields: Value| {
        let mut plan = json!({"targets": ["it"], "sizes": [ORDINARY.size]});
        plan.as_object_mut().expect("an object").extend(fields.as_object().expect("fields").clone());
        let answer = bench.user.post("/api/v1/experiments", &plan_with(&plan)).await;
        assert!([StatusCode::UNPROCESSABLE_ENTITY, StatusCode::CONFLICT].contains(&answer.status), "{fields}");
        answer.text()
    };
    for (fields, sentence) in [
        (
            json!({"scenario": "script", "engine": "native"}),
            "native can't run \\\"script\\\", which has no request list",
        ),
        (json!({"scenario": "list", "engine": "k6"}), "k6 can't run \\\"list\\\", which has no script"),
        (json!({"scenario": "list", "load": {"kind": "script"}}), "native 1, which can't run a script's own load"),
    ] {
        let text = refused(fields).await;
        assert!(text.contains(sentence), "{sentence}: {text}");
    }
}
