//! What comparisons are fed, from files to every page: metrics that runs lack, whole milliseconds, several leaders.

use std::path::Path;

use brewbench::auth::model::Role;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::harness::{Actor, App, program::as_user, submit::text};

/// One run of a folder: target, requests, requests/s and median latency in ms.
type Measured = (&'static str, u32, f64, f64);

/// A folder of end-of-test summaries of k6, in this order.
fn summaries(runs: &[Measured]) -> TempDir {
    let of = |(target, requests, rps, p50): Measured, place: usize| {
        let wobble = 1.0 + 0.001 * ((place * 7) % 29) as f64;
        let times = json!({"avg": p50 * wobble, "min": 0.1, "med": p50 * wobble, "max": p50 * 9.0, "p(90)": p50 * 2.0 * wobble,
            "p(95)": p50 * 2.5 * wobble, "p(99)": p50 * 4.0 * wobble, "count": requests});
        let summary = json!({"metrics": {
            "http_reqs": {"count": requests, "rate": rps / wobble},
            "iterations": {"count": requests, "rate": rps / wobble},
            "http_req_failed": {"passes": 0, "fails": requests, "value": 0},
            "http_req_duration": times, "vus": {"value": 8, "min": 8, "max": 8}, "vus_max": {"value": 8, "min": 8, "max": 8},
        }});
        (target, format!("{target}-{place}.json"), summary.to_string())
    };
    folder(runs.iter().zip(0..).map(|(run, place)| of(*run, place)))
}

/// A folder of results with an index that states their order.
fn folder(files: impl Iterator<Item = (&'static str, String, String)>) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let mut index = Vec::new();
    for (target, name, text) in files {
        std::fs::write(folder.path().join(&name), text).expect("a file");
        index.push(json!({"file": name, "target": target, "order": index.len() + 1}));
    }
    std::fs::write(folder.path().join("index.json"), json!(index).to_string()).expect("a file");
    folder
}

/// Imports a folder as an experiment. Returns its id.
async fn import(app: &App, user: &Actor, folder: &Path) -> String {
    let path = folder.to_str().expect("text");
    as_user(app, user.secret(), &["run", "import", path, "--experiment", "fed"]).await.ok();
    let list = user.get("/api/v1/experiments").await.ok().json();
    text(&list["experiments"][0]["experiment"]["id"])
}

/// Reads every surface that shows an experiment: none may fail. Returns the pages, without line breaks.
async fn surfaces(app: &App, user: &Actor, experiment: &str) -> Vec<(&'static str, String)> {
    let in_browser = app.signed_in(Role::Viewer).await.in_browser();
    let query = format!("experiments={experiment}");
    let page = async |path: String| in_browser.get(&path).await.ok().text();
    let all = [
        ("dashboard", page("/".to_owned()).await),
        ("experiments", page("/experiments".to_owned()).await),
        ("experiment", page(format!("/experiments/{experiment}")).await),
        ("HTML", user.get(&format!("/api/v1/report?{query}")).await.ok().text()),
        ("report", user.get(&format!("/api/v1/report?{query}&format=markdown")).await.ok().text()),
        ("command", as_user(app, user.secret(), &["compare", "--experiment", experiment]).await.ok()),
    ];
    all.map(|(name, text)| (name, words(&text))).into()
}

/// The text of a page or of a command without tags and line breaks.
fn words(text: &str) -> String {
    let mut pieces = text.split('<');
    let first = pieces.next().unwrap_or_default().to_owned();
    let plain = pieces.fold(first, |plain, piece| plain + piece.split_once('>').map_or(piece, |(_, rest)| rest));
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

async fn stat(user: &Actor, experiment: &str, metric: &str) -> Value {
    let comparison = user.get(&format!("/api/v1/compare?experiments={experiment}")).await.ok().json();
    let stats = comparison["rows"][0]["cells"][1]["stats"].as_array().expect("figures").clone();
    stats.into_iter().find(|stat| stat["metric"] == metric).expect("the metric")
}

#[tokio::test]
async fn runs_too_short_for_a_percentile_take_no_page_down() {
    let app = App::start().await;
    let user = app.user().await;
    let runs: [Measured; 4] =
        [("a", 5_000, 500.0, 4.0), ("b", 900, 500.0, 4.0), ("b", 5_000, 500.0, 4.0), ("a", 900, 500.0, 4.0)];
    let folder = summaries(&runs);
    let experiment = import(&app, &user, folder.path()).await;
    surfaces(&app, &user, &experiment).await;
    assert_eq!(stat(&user, &experiment, "p99_ms").await["decision"], "not_in_turn");
}

#[tokio::test]
async fn no_surface_denies_the_differences_of_its_table() {
    let app = App::start().await;
    let user = app.user().await;
    let [a, b, c]: [Measured; 3] =
        [("alpha", 60_000, 2_000.0, 4.0), ("beta", 60_000, 2_000.0, 4.0), ("gamma", 30_000, 1_006.0, 8.0)];
    let orders = [[a, b, c], [c, b, a], [c, a, b], [b, a, c], [b, a, c], [c, a, b], [a, c, b], [b, c, a]];
    let folder = summaries(&orders.concat());
    let experiment = import(&app, &user, folder.path()).await;
    for (surface, text) in surfaces(&app, &user, &experiment).await {
        assert!(!text.contains("No difference found."), "{surface}: {text}");
        assert!(text.contains("alpha and beta lead"), "{surface}: {text}");
    }
}

/// The text of ab: 2.4 ms are printed as 2, 2.6 ms as 3.
fn ab(requests_per_s: f64, p50: u32) -> String {
    let template = include_str!("../../crates/wire/tests/fixtures/ab.txt");
    let line = |line: &str| match line.trim_start() {
        start if start.starts_with("50%") => format!("  50%      {p50}"),
        start if start.starts_with("Complete requests:") => "Complete requests:      20000".to_owned(),
        start if start.starts_with("Time taken") => {
            format!("Time taken for tests:   {:.3} seconds", 20_000.0 / requests_per_s)
        }
        start if start.starts_with("Requests per second:") => {
            format!("Requests per second:    {requests_per_s:.2} [#/sec] (mean)")
        }
        _ => line.to_owned(),
    };
    template.lines().map(line).collect::<Vec<_>>().join("\n") + "\n"
}

#[tokio::test]
async fn whole_milliseconds_decide_nothing_that_they_may_hide() {
    let app = App::start().await;
    let user = app.user().await;
    let order = ["a", "b", "b", "a", "b", "a", "a", "b", "a", "b", "b", "a", "b", "a", "a", "b"];
    let file = |(place, target): (usize, &&'static str)| {
        let text = ab(1_000.0 + place as f64, if *target == "a" { 2 } else { 3 });
        (*target, format!("{target}-{place}.txt"), text)
    };
    let folder = folder(order.iter().enumerate().map(file));
    let experiment = import(&app, &user, folder.path()).await;
    let p50 = stat(&user, &experiment, "p50_ms").await;
    assert_eq!((&p50["decision"], &p50["rounding"]), (&json!("too_coarse"), &json!(0.5)), "{p50}");
    for (surface, text) in surfaces(&app, &user, &experiment).await.into_iter().skip(2) {
        assert!(text.contains("Too coarse to compare: p50"), "{surface}: {text}");
    }
    let gate = ["compare", "--baseline", &experiment, "--baseline-target", "a", "--candidate", &experiment];
    let rule = ["--candidate-target", "b", "--fail-on", "p50>20%"];
    let ended = as_user(&app, user.secret(), &[&gate[..], &rule[..]].concat()).await;
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.out.contains("the values are rounded"), "{}", ended.out);
}
