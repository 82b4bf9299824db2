//! Comparisons: decisions, their intervals, and when there is no decision.

use std::collections::BTreeMap;

use brewbench::compare::{
    cache::{Cache, Key, Version},
    view::Surface,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App,
    agent::outcome,
    program::as_user,
    submit::{plan_with, submit},
    summaries::scaled,
};

/// Measures two targets five times: `slow` is slower by `percent`, and `change` edits its environment.
async fn measure(app: &App, user: &Actor, percent: f64, change: impl Fn(&mut BTreeMap<String, String>)) -> Vec<String> {
    let mut agent = Agent::start(app, "rack").await;
    let plan = json!({"targets": ["fast", "slow"], "repetitions": 5});
    let (_, runs) = submit(user, &plan_with(&plan)).await;
    for number in 0..runs.len() {
        let job = agent.job().await;
        let noise = 1.0 + 0.001 * number as f64;
        let is_slow = job.spec.target == "slow";
        let summary = scaled(if is_slow { noise * (1.0 - percent / 100.0) } else { noise });
        let mut result = outcome(&job, &summary);
        if is_slow {
            change(&mut result.environment);
        }
        agent.end(result).await;
    }
    runs
}

fn path(runs: &[String], more: &str) -> String {
    format!("/compare?runs={}{more}", runs.join(","))
}

async fn compared(user: &Actor, runs: &[String], more: &str) -> Value {
    user.get(&format!("/api/v1{}", path(runs, more))).await.ok().json()
}

/// Returns a metric of the second target.
fn stat<'a>(comparison: &'a Value, metric: &str) -> &'a Value {
    let stats = comparison["rows"][0]["cells"][1]["stats"].as_array().expect("metrics");
    stats.iter().find(|stat| stat["metric"] == metric).expect("the metric")
}

#[tokio::test]
async fn a_slower_target_is_shown_with_its_interval_and_cpu_time() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = measure(&app, &user, 20.0, |_| {}).await;
    let comparison = compared(&user, &runs, "").await;
    let rps = stat(&comparison, "rps");
    assert_eq!((&rps["decision"], &comparison["asked"]["enough"]), (&json!("worse"), &json!(5)), "{comparison}");
    let end = |name: &str| rps["effect"][name].as_f64().expect("a number");
    assert!(end("low") < end("ratio") && end("ratio") < end("high") && (end("ratio") - 0.8).abs() < 0.01, "{rps}");
    assert!(rps["p"].as_f64().is_some_and(|p| p <= 0.05));
    assert_eq!(comparison["rows"][0]["leaders"]["rps"], json!({"of": 0}));
    assert!(stat(&comparison, "cpu_ms")["spread"]["median"].as_f64().is_some_and(|ms| ms > 0.0));
    assert!(stat(&comparison, "max_ms")["decision"].is_null(), "shown and not judged");

    let page = user.clone().in_browser().get(&path(&runs, "")).await.ok().text();
    for id in ["differences", "throughput", "story-percentiles", "story-difference", "story-rate", "story-heat-2"] {
        assert!(page.contains(&format!(r#"id="{id}""#)), "{id} is not on the page");
    }
    assert!(!page.contains("Compare anyway"));
}

#[tokio::test]
async fn a_difference_below_the_minimum_effect_is_called_that() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = measure(&app, &user, 3.0, |_| {}).await;
    let decision = async |more: &str| stat(&compared(&user, &runs, more).await, "rps")["decision"].clone();
    assert_eq!(decision("").await, json!("worse"));
    assert_eq!(decision("&min_effect=rps:5").await, json!("below_min_effect"));
    let first_three: Vec<String> = runs[..6].to_vec();
    assert_eq!(stat(&compared(&user, &first_three, "").await, "rps")["decision"], json!("too_few"));
    for (more, fault) in [
        ("&min_effect=rps", "write METRIC:PERCENT"),
        ("&min_effect=beauty:1", "is not a judged metric"),
        ("&matrix=beauty", "matrix: unknown metric"),
        ("&primary=max_ms", "primary: \"max_ms\" is not a judged metric"),
    ] {
        let why = user.get(&format!("/api/v1{}", path(&runs, more))).await.refused(422);
        assert!(why.contains(fault), "{why}");
    }
    user.get(&format!("/api/v1{}", path(&runs, "&by=beauty"))).await.refused(422);
}

/// Returns a comparison that is not in the cache: `setting` is part of its key, but affects pages only.
async fn computed(user: &Actor, runs: &[String], number: usize) -> Value {
    compared(user, runs, &format!("&setting={number}")).await
}

async fn is_cached(app: &App, runs: &[String]) -> bool {
    let count = sqlx::query_scalar("select changes from comparison_inputs").fetch_one(&app.state.db.read).await;
    let key = Key { query: format!("runs={}", runs.join(",")), with_series: false, place: Surface::Inside };
    app.state.memory::<Cache>().get(Version(count.expect("a count")), &key).is_some()
}

#[tokio::test]
async fn a_cached_comparison_is_recomputed_when_an_input_changes() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let mut runs = measure(&app, &user, 20.0, |_| {}).await;
    let mut before = compared(&user, &runs, "").await;
    assert!(is_cached(&app, &runs).await);
    let one = format!("/api/v1/runs/{}", runs[0]);
    let (label, note) = (format!("{one}/labels/odd"), format!("{one}/note"));
    let changes: [(&str, Method, &str, Value); 6] = [
        ("a label", Method::PUT, &label, Value::Null),
        ("a note", Method::PUT, &note, json!({"note": "the fan was loud"})),
        ("a removed label", Method::DELETE, &label, Value::Null),
        ("a deleted run", Method::DELETE, &one, Value::Null),
        ("a restored run", Method::POST, &format!("{one}/undelete"), Value::Null),
        ("an agent's name", Method::PUT, "/api/v1/agents/rack/name", json!({"name": "shelf"})),
    ];
    for (number, (what, method, path, body)) in changes.into_iter().enumerate() {
        let request = admin.request(&method, path);
        let request = if body.is_null() { request } else { request.json(&body) };
        let answer = Answer::to(request).await;
        assert!(answer.status.is_success(), "{what}: {}", answer.text());
        let after = compared(&user, &runs, "").await;
        assert_ne!(after, before, "{what}");
        assert_eq!(after, computed(&user, &runs, number + 1).await, "{what}");
        before = after;
    }
    // A comparison with an unfinished run is not cached.
    let (_, queued) = submit(&user, &plan_with(&json!({"targets": ["fast"], "repetitions": 1}))).await;
    runs.extend(queued);
    compared(&user, &runs, "").await;
    assert!(!is_cached(&app, &runs).await);
}

#[tokio::test]
async fn runs_on_different_machines_are_judged_only_on_request() {
    let app = App::start().await;
    let user = app.user().await;
    let other_kernel = |facts: &mut BTreeMap<String, String>| {
        facts.insert("kernel.release".to_owned(), "Linux 5.4".to_owned());
    };
    let runs = measure(&app, &user, 20.0, other_kernel).await;
    let comparison = compared(&user, &runs, "").await;
    assert_eq!(stat(&comparison, "rps")["decision"], json!("not_comparable"));
    assert_eq!(comparison["rows"][0]["confounders"][0]["what"], json!("Machines"));
    let page = user.clone().in_browser().get(&path(&runs, "")).await.ok().text();
    assert!(page.contains("Compare anyway") && page.contains("not comparable"));
    assert_eq!(stat(&compared(&user, &runs, "&allow_confounders=true").await, "rps")["decision"], json!("worse"));

    let print = async |more: &[&str]| {
        let ids: Vec<&str> = runs.iter().map(String::as_str).collect();
        as_user(&app, user.secret(), &[&["compare"], ids.as_slice(), more].concat()).await.ok()
    };
    let text = print(&[]).await;
    assert!(text.contains("slow and fast are not comparable.") && text.contains("--allow-confounders"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(print(&["--allow-confounders"]).await.contains("slower than fast"), "{text}");
}

/// Measures one target in an experiment of its own; its repetitions differ by 0.1 %.
async fn measure_alone(user: &Actor, agent: &mut Agent, target: &str, repetitions: u32, level: f64) -> Vec<String> {
    let plan = json!({"targets": [target], "repetitions": repetitions});
    let (_, runs) = submit(user, &plan_with(&plan)).await;
    for number in 0..repetitions {
        let job = agent.job().await;
        agent.end(outcome(&job, &scaled(level * (1.0 + 0.001 * f64::from(number))))).await;
    }
    runs
}

#[tokio::test]
async fn noise_between_experiments_is_no_difference_between_two_of_them() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let mut runs = measure_alone(&user, &mut agent, "fast", 5, 1.0).await;
    runs.extend(measure_alone(&user, &mut agent, "slow", 5, 0.97).await);
    let before = compared(&user, &runs, "").await;
    let rps = stat(&before, "rps");
    assert_eq!((&rps["decision"], &rps["apart"]["because"]), (&json!("not_in_turn"), &json!("few_experiments")));
    assert_eq!(rps["effect"]["low"], Value::Null, "an interval would ignore the noise between experiments");
    let page = user.clone().in_browser().get(&path(&runs, "")).await.ok().text();
    assert!(page.contains("too little data") && page.contains("Measure both again in one experiment"), "{page}");
    let (baseline, candidate) = (runs[..5].join(","), runs[5..].join(","));
    let gate = format!("/api/v1/compare/gate?baseline={baseline}&candidate={candidate}&fail_on=rps%3C-2%25");
    let unknown: Value = user.get(&gate).await.ok().json();
    assert_eq!(unknown["outcome"], json!("cannot_say"), "{unknown}");

    for number in 0..9 {
        measure_alone(&user, &mut agent, "fast", 2, 1.0 + 0.04 * f64::from(number % 2)).await;
    }
    // In a test, experiments follow each other at once: move them a day apart.
    sqlx::query("update run set started_at = started_at + 86400000 * (select count(*) from experiment where id < run.experiment_id)")
        .execute(&app.state.db.write)
        .await
        .expect("a day between experiments");
    let after = compared(&user, &runs, "").await;
    let rps = stat(&after, "rps");
    assert_eq!(rps["decision"], json!("no_difference"), "{rps}");
    assert!(rps["apart"]["margin"].as_f64().is_some_and(|margin| (0.03..0.12).contains(&margin)), "{rps}");
    let noise = &after["rows"][0]["cells"][0]["noise"]["rps"];
    assert_eq!((&noise["experiments"], &noise["runs"]), (&json!(9), &json!(18)));
    let page = user.clone().in_browser().get(&path(&runs, "")).await.ok().text();
    assert!(
        page.contains("Not measured in turn with the baseline.") && page.contains("alone moved by up to"),
        "{page}"
    );
    let known: Value = user.get(&gate).await.ok().json();
    assert_eq!(known["outcome"], json!("cannot_say"), "{known}");
    assert!(
        known["checks"][0]["reason"].as_str().is_some_and(|reason| reason.contains("measure both in one experiment")),
        "{known}"
    );
}

#[tokio::test]
async fn runs_can_be_compared_by_another_property_than_their_target() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = measure(&app, &user, 20.0, |_| {}).await;
    let comparison = compared(&user, &runs, "&by=agent").await;
    let labels: Vec<&str> = comparison["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .filter_map(|row| row["setting"]["label"].as_str())
        .collect();
    assert_eq!(comparison["subjects"].as_array().map(Vec::len), Some(1));
    assert_eq!(labels, ["fast@1.0", "slow@1.0"]);
    let ids: Vec<&str> = runs.iter().map(String::as_str).collect();
    let text = as_user(&app, user.secret(), &[&["compare", "--by", "agent"], ids.as_slice()].concat()).await.ok();
    assert!(text.contains("rack") && text.contains("2 settings"), "{text}");
    let page = user.in_browser().get(&path(&runs, "&by=size&matrix=received_per_s&setting=2")).await.ok().text();
    assert!(page.contains(r#"<option value="size" selected"#), "{page}");
}

/// Inserts `count` runs of two targets, as an import stores them, each with its throughput.
async fn stored(app: &App, count: u32, rps: impl Fn(u32) -> f64) -> Vec<String> {
    let mut ids = Vec::new();
    for number in 0..count {
        let id = format!("00000000-0000-7000-8000-{number:012}");
        sqlx::query(
            "insert into run (id, origin, target, version, scenario, vus, duration_ms, warm_up_ms, repetition, created_by, phase,
                 queued_at, phase_at, finished_at, verdict, experiment_id, interleaved, figures)
             values (?, 'import', ?, '1.0', 'hash', 10, 10000, 0, ?, 'ada', 'finished', 1, 1, 1, 'valid', 'e', 1,
                 json_object('requests', 1000, 'failed', 0, 'error_rate', 0, 'rps', ?, 'p50_ms', 1, 'p99_ms', 2))",
        )
        .bind(&id)
        .bind(if number % 2 == 0 { "even" } else { "odd" })
        .bind(1 + number / 2)
        .bind(rps(number))
        .execute(&app.state.db.write)
        .await
        .expect("a run");
        ids.push(id);
    }
    ids
}

#[tokio::test]
async fn five_hundred_runs_are_compared_and_more_are_refused() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = stored(&app, 501, |number| 1_000.0 + f64::from(number % 7)).await;
    let pages = user.clone().in_browser();
    let page = pages.get(&path(&runs[..500], "")).await.ok().text();
    assert!(page.contains("250 repetitions each") && page.contains("no difference found"));
    let error = user.get(&format!("/api/v1{}", path(&runs, ""))).await.refused(422);
    assert!(error.contains("501 runs were chosen; compare at most 500 at once"), "{error}");
    let error = user.get("/api/v1/compare").await.refused(422);
    assert!(error.contains("name the runs to compare"), "{error}");
    assert!(pages.get(&path(&runs[..1], "")).await.ok().text().contains("1 repetition"));
    let empty = App::start().await.reader().await.in_browser().get("/compare").await.ok().text();
    assert!(empty.contains("Nothing has been measured yet"), "{empty}");
}

#[tokio::test]
async fn without_noise_equal_metrics_are_equal_and_others_differ() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = stored(&app, 12, |number| if number % 2 == 0 { 1_000.0 } else { 1_500.0 }).await;
    let comparison = compared(&user, &runs, "").await;
    let stat_of = |metric: &str| stat(&comparison, metric).clone();
    assert_eq!(stat_of("rps")["decision"], json!("better"));
    let near = |metric: &str, name: &str, value: f64| {
        let found = stat_of(metric)["effect"][name].as_f64().expect("a ratio");
        assert!((found - value).abs() < 1e-5, "{metric} {name}: {found}");
    };
    for name in ["ratio", "low", "high"] {
        near("rps", name, 1.5);
    }
    near("p99_ms", "ratio", 1.0);
    assert_eq!(stat_of("p99_ms")["decision"], json!("no_difference"));
    assert_eq!((&stat_of("error_rate")["points"], &stat_of("cpu_ms")["spread"]), (&json!(0.0), &Value::Null));
    assert_eq!(comparison["rows"][0]["leaders"]["cpu_ms"], json!("missing"));
    let page = user.clone().in_browser().get(&path(&runs, "")).await.ok().text();
    assert!(!page.contains("NaN") && !page.contains("inf\u{a0}"), "no division by zero");
}

#[tokio::test]
async fn one_outlier_neither_creates_nor_hides_a_difference() {
    let app = App::start().await;
    let user = app.user().await;
    let wild = |number: u32| if number == 1 { 50.0 } else { 1_000.0 + f64::from(number) };
    let equal = stored(&app, 20, wild).await;
    assert_eq!(stat(&compared(&user, &equal, "").await, "rps")["decision"], json!("no_difference"));

    let app = App::start().await;
    let user = app.user().await;
    let faster = |number: u32| if number % 2 == 1 && number > 1 { 1_200.0 } else { wild(number) };
    let faster = stored(&app, 20, faster).await;
    let rps = stat(&compared(&user, &faster, "").await, "rps").clone();
    assert_eq!(rps["decision"], json!("better"), "{rps}");
    assert!(rps["effect"]["ratio"].as_f64().is_some_and(|ratio| (1.15..1.2).contains(&ratio)), "{rps}");
}
