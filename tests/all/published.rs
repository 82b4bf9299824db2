//! Published results: k6's text report, wrk's output, and a folder of them with an index.

use std::{collections::BTreeMap, path::PathBuf};

use brewbench::{auth::model::Role, web::format};
use serde_json::{Value, json};

use crate::harness::{Actor, Answer, App, program::as_user, root, submit::text};

fn folder() -> PathBuf {
    root().join("samples/published")
}

fn published(name: &str) -> String {
    std::fs::read_to_string(folder().join(name)).expect("a sample")
}

fn files() -> BTreeMap<String, String> {
    let entries = std::fs::read_dir(folder()).expect("a folder").map(|entry| entry.expect("an entry").path());
    let texts = entries.filter(|path| path.extension().is_some_and(|ending| ending == "txt"));
    texts
        .map(|path| {
            (
                path.file_name().expect("a name").to_string_lossy().into_owned(),
                std::fs::read_to_string(&path).expect("text"),
            )
        })
        .collect()
}

async fn import_samples(user: &Actor) -> Vec<Value> {
    let imported = user.import_folder(&published("index.json"), &files()).await.ok().json();
    imported["runs"].as_array().expect("runs").clone()
}

fn ids(runs: &[&Value]) -> String {
    runs.iter().map(|run| text(&run["id"])).collect::<Vec<_>>().join(",")
}

/// The published data received per second.
const TABLE: [(&str, [(&str, &str); 3]); 3] = [
    ("1 vCPU / 256 MiB", [("gosherve-old", "86 MB/s"), ("gosherve", "587 MB/s"), ("servy", "547 MB/s")]),
    ("2 vCPU / 4 GiB", [("gosherve-old", "426 MB/s"), ("gosherve", "1.30 GB/s"), ("servy", "1.70 GB/s")]),
    ("16 vCPU / 16 GiB", [("gosherve-old", "439 MB/s"), ("gosherve", "4.80 GB/s"), ("servy", "5.20 GB/s")]),
];

#[tokio::test]
async fn the_published_folder_yields_the_published_matrix_of_single_repetitions() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = import_samples(&user).await;
    assert_eq!(runs.len(), 22);
    let final_results = "server-bench post, final results";
    let nine: Vec<&Value> = runs.iter().filter(|run| run["labels"] == json!([final_results])).collect();
    assert_eq!(nine.len(), 9);
    let comparison = user.get(&format!("/api/v1/compare?runs={}", ids(&nine))).await.ok().json();
    let subjects = comparison["subjects"].as_array().expect("subjects");
    let rows = comparison["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 3);
    for (size, cells) in TABLE {
        let row = rows.iter().find(|row| row["setting"]["size"]["name"] == size).expect("a row of the size");
        for (target, published) in cells {
            let subject = subjects.iter().position(|subject| subject["target"] == target).expect("a subject");
            let cell = row["cells"].as_array().expect("cells").iter().find(|cell| cell["subject"] == subject);
            let cell = cell.expect("a cell");
            assert_eq!(cell["runs"].as_array().map(Vec::len), Some(1));
            let stats = cell["stats"].as_array().expect("stats");
            let stat = stats.iter().find(|stat| stat["metric"] == "received_per_s").expect("a figure");
            assert_eq!(stat["spread"]["count"], 1);
            let figure = format::rate(stat["spread"]["median"].as_f64());
            assert_eq!(figure.text().replace('\u{a0}', " "), published, "{target} at {size}");
            assert_eq!(stat["best"], false, "one repetition wins nothing");
        }
    }
    let notes = comparison["notes"].to_string();
    assert!(notes.contains("Different work"), "{notes}");
    let page = user.in_browser().get(&format!("/compare?runs={}", ids(&nine))).await.ok().text();
    for figure in ["86\u{a0}MB/s", "587\u{a0}MB/s", "1.70\u{a0}GB/s", "5.20\u{a0}GB/s"] {
        assert!(page.contains(figure), "{figure}");
    }
}

#[tokio::test]
async fn wrk_results_are_compared_by_payload_and_a_broken_target_is_invalid() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = import_samples(&user).await;
    let wrk: Vec<&Value> = runs.iter().filter(|run| run["labels"] == json!(["kcup post"])).collect();
    let run_of = |target: &str, payload: &str| {
        *wrk.iter().find(|run| run["target"] == target && run["parameters"]["payload"] == payload).expect("a run")
    };
    let broken = run_of("kcup-go-fasthttp", "1M");
    assert_eq!((&broken["rps"], &broken["verdict"]), (&json!(7.81), &json!("invalid")));
    assert_eq!((&broken["requests"], &broken["failed"]), (&json!(13_539_754), &json!(13_539_526)));
    assert_eq!(broken["reasons"][0]["code"], "requests_failed");
    assert_eq!(run_of("kcup-go-fasthttp", "100K")["verdict"], "invalid", "one in 26 timed out");
    assert_eq!(run_of("kcup-rust", "100K")["verdict"], "suspect", "94 timed out");
    assert_eq!(run_of("kcup-rust", "10K")["verdict"], "valid");
    assert_eq!((&broken["vus"], &broken["parameters"]["threads"]), (&json!(400), &json!("12")));
    let comparison = user.get(&format!("/api/v1/compare?runs={}", ids(&wrk))).await.ok().json();
    let labels: Vec<String> =
        comparison["rows"].as_array().expect("rows").iter().map(|row| text(&row["setting"]["label"])).collect();
    assert_eq!(labels.len(), 4, "{labels:?}");
    assert!(labels.iter().any(|label| label.contains("payload=10K")), "{labels:?}");
    let excluded = comparison["excluded"].to_string();
    assert!(excluded.contains("13,539,526 of 13,539,754 requests failed"), "{excluded}");
}

#[tokio::test]
async fn bad_indexes_and_files_are_refused_with_reason_and_place() {
    let app = App::start().await;
    let user = app.user().await;
    let index = published("index.json");
    let mut without = files();
    without.remove("k6-servy-2vcpu-4gb.txt");
    let mut cut = files();
    cut.insert("k6-servy-2vcpu-4gb.txt".to_owned(), published("k6-servy-2vcpu-4gb.txt")[..600].to_owned());
    let mut mixed = files();
    mixed.insert("k6-servy-2vcpu-4gb.txt".to_owned(), published("wrk-kcup-rust-10K.txt"));
    let cases = [
        (index.replace("\"vcpus\": 16", "\"vcpu\": 16"), files(), "index.json: unknown field `vcpu`"),
        (index[..index.len() - 2].to_owned(), files(), "index.json: EOF while parsing"),
        (index.clone(), without, "index.json: entry 6 (\"k6-servy-2vcpu-4gb.txt\"): file: not in the folder"),
        (index.clone(), cut, "\"k6-servy-2vcpu-4gb.txt\": "),
        (index.clone(), mixed, "entry 6 (\"k6-servy-2vcpu-4gb.txt\"): tool: the file is wrk's output"),
        (index.replace("\"target\": \"servy\"", "\"target\": \"a\\nb\""), files(), "target: 1 to 80 characters"),
        (
            index.replace("kcup post", "a source with more than forty characters is no label"),
            files(),
            "label: must have 1 to 40",
        ),
    ];
    for (index, files, message) in cases {
        let sentence = user.import_folder(&index, &files).await.refused(422);
        assert!(sentence.contains(message) && sentence.len() < 600, "{message}: {sentence}");
    }
    assert_eq!(user.count_runs().await, 0);
    assert_eq!(import_samples(&user).await.len(), 22);
    assert_eq!(user.count_runs().await, 22);
}

#[tokio::test]
async fn a_text_is_returned_unchanged_re_judged_and_shown_with_its_format() {
    let app = App::start().await;
    let user = app.user().await;
    let wrk = published("wrk-kcup-rust-1M.txt");
    let path = "/api/v1/runs/import?target=kcup&parameter=payload%3D1M&parameter=where=here";
    let answer = Answer::to(user.request(&reqwest::Method::POST, path).body(wrk.clone())).await.ok().json();
    let (run, file) = (&answer["runs"][0], &answer["files"][0]);
    assert_eq!(run["parameters"], json!({"payload": "1M", "threads": "12", "where": "here"}));
    assert_eq!((&file["kind"], &file["rounded"], &file["run"]), (&json!("wrk's output"), &json!(true), &run["id"]));
    assert!(file["missing_metrics"].as_array().expect("a list").contains(&json!("p95")), "{file}");
    for field in ["min_ms", "p95_ms", "iterations", "data_sent_bytes", "checks_passed", "thresholds"] {
        assert_eq!(run[field], Value::Null, "{field}");
    }
    let id = text(&run["id"]);
    let back = user.get(&format!("/api/v1/runs/{id}/summary")).await.ok();
    assert!(back.header("content-type").starts_with("text/plain") && back.text() == wrk);
    let judged = user.post("/api/v1/runs/rejudge", &json!({"ids": [id], "dry_run": true})).await.ok().json();
    assert_eq!((&judged["judged"], &judged["changed"]), (&json!(1), &json!([])));
    let page = user.in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("read as wrk&#39;s output") || page.contains("read as wrk's output"), "{page}");
}

#[tokio::test]
async fn the_command_imports_files_and_folders_and_reports_their_formats() {
    let app = App::start().await;
    let user = app.user().await;
    let token = user.secret();
    let path = folder().display().to_string();
    let done = as_user(&app, token, &["run", "import", &path]).await;
    assert!(
        done.err.contains(
            "wrk-kcup-rust-10K.txt: read as wrk's output, values rounded as printed; missing metrics: minimum latency"
        ),
        "{}",
        done.err
    );
    assert!(done.err.contains("k6-servy-2vcpu-4gb.txt: read as k6's text report"), "{}", done.err);
    assert_eq!(done.ok().lines().count(), 23);
    let one = folder().join("k6-servy-workstation.txt").display().to_string();
    let run = as_user(&app, token, &["run", "import", &one, "--target", "servy", "--param", "machine=mine", "--json"])
        .await
        .json();
    assert_eq!(run["runs"][0]["parameters"], json!({"machine": "mine"}));
    let with_flags = as_user(&app, token, &["run", "import", &path, "--target", "x"]).await.refused(1);
    assert!(with_flags.contains("index.json already describes the files"), "{with_flags}");
    let empty = tempfile::tempdir().expect("a folder");
    let bare = as_user(&app, token, &["run", "import", &empty.path().display().to_string()]).await.refused(1);
    assert!(bare.contains("has no files"), "{bare}");
    std::fs::write(empty.path().join("index.json"), r#"[{"file": "../x.txt", "target": "t"}]"#).expect("an index");
    let outside = as_user(&app, token, &["run", "import", &empty.path().display().to_string()]).await.refused(1);
    assert!(outside.contains("nothing was imported from") && outside.contains("file: not in the folder"), "{outside}");
    assert_eq!(user.count_runs().await, 23);
}

#[tokio::test]
async fn imported_runs_become_an_experiment_only_once() {
    let app = App::start().await;
    let user = app.user().await;
    let path = folder().display().to_string();
    let done = as_user(&app, user.secret(), &["run", "import", &path, "--experiment", "theirs", "--json"]).await.json();
    let runs = done["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 22);
    let id = text(&runs[0]["experiment"]);
    let page = user.clone().in_browser().get(&format!("/experiments/{id}")).await.ok().text();
    assert!(page.contains("theirs") && page.contains("measured elsewhere") && !page.contains("Run again"), "{page}");
    let list = user.get("/api/v1/experiments").await.ok().json();
    assert_eq!(list["experiments"][0]["experiment"]["name"], "theirs");
    let again = json!({"name": "mine", "runs": [runs[0]["id"]]});
    assert!(
        user.post("/api/v1/experiments/from-imports", &again).await.refused(409).contains("belongs to an experiment")
    );
    user.post("/api/v1/experiments/from-imports", &json!({"name": "mine", "runs": []})).await.refused(422);
    user.post("/api/v1/experiments/from-imports", &json!({"name": "mine", "runs": ["x"]})).await.refused(422);
}

fn form(files: &[(&str, &str)]) -> (String, String) {
    let part = |head: String, value: &str| format!("--X\r\nContent-Disposition: form-data; {head}\r\n\r\n{value}\r\n");
    let file = |name: &str| format!("name=\"files\"; filename=\"{name}\"\r\nContent-Type: text/plain");
    let files = files.iter().map(|(name, value)| part(file(name), value));
    let body: String = files.chain(["--X--\r\n".to_owned()]).collect();
    ("multipart/form-data; boundary=X".to_owned(), body)
}

async fn submit(person: &Actor, (kind, body): (String, String)) -> Answer {
    let request = person.request(&reqwest::Method::POST, "/runs/import").header("content-type", kind);
    Answer::to(request.body(body)).await
}

#[tokio::test]
async fn the_form_imports_files_or_a_folder_and_shows_their_formats() {
    let app = App::start().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    assert!(person.get("/runs").await.ok().text().contains("make demo"));
    let page = person.get("/runs/import").await.ok().text();
    assert!(page.contains("multiple") && page.contains("index.json"), "{page}");
    let wrk = published("wrk-kcup-rust-10K.txt");
    let k6 = published("k6-servy-workstation.txt");
    let two = submit(&person, form(&[("a.txt", &wrk), ("b.txt", &k6)])).await;
    assert_eq!(two.status, 303);
    let preview = two.header("location").to_owned();
    let shown = person.get(&preview).await.ok().text();
    assert!(shown.contains("Import: 2 results") && shown.contains("k6&#39;s text report, rounded"), "{shown}");
    let rows = [
        ("row:0:0", "on"),
        ("target:0:0", "a"),
        ("parameters:0:0", "payload=10K"),
        ("row:1:0", "on"),
        ("target:1:0", "b"),
    ];
    let two = person.form(&preview, &rows).await;
    assert_eq!(two.status, 303, "{}", two.text());
    let result = person.get(two.header("location")).await.ok().text();
    assert!(
        result.contains("Imported: 2 runs") && result.contains("p95") && result.contains("874\u{a0}MB/s"),
        "{result}"
    );
    let folder = form(&[("x/index.json", r#"[{"file": "a.txt", "target": "t"}]"#), ("x/a.txt", &wrk)]);
    let imported = submit(&person, folder).await;
    assert!(imported.status == 303 && imported.header("location").starts_with("/runs/imported?"), "imported at once");
    let bad = submit(&person, form(&[("<b>.txt", &wrk), ("b.txt", "nothing")])).await;
    let page = person.get(bad.header("location")).await.ok().text();
    assert!(page.contains("is neither JSON nor") && !page.contains("<b>.txt"), "{page}");
    assert_eq!(submit(&person, form(&[])).await.status, 422);
    let list = person.get("/api/v1/runs").await.ok().json();
    assert_eq!(list["runs"].as_array().map(Vec::len), Some(3));
    let shown = person.get("/runs").await.ok().text();
    assert!(shown.contains("/runs/import"), "members see the link");
}
