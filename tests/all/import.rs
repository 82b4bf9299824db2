//! Imported summaries: exact metrics, refused input, and a full disk.

use brewbench::{
    app::db::Db,
    catalog::model::Engine,
    results::{
        blob,
        import::about::About,
        store::imports::{self, NewImport, PendingImports},
        verdict::limits::Limits,
    },
    runs::{model::RunSpec, verdict::Verdict},
};
use brewbench_wire::reports::read::parse;
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App,
    agent::outcome,
    program::as_user,
    submit::{submit_one, text},
    summaries::{ALL, distinct, fixture, good, good_checking, good_with, target_down},
};

/// The fields that scripts read, in the order of the documentation.
const FIELDS: [&str; 27] = [
    "id",
    "target",
    "size",
    "repetition",
    "phase",
    "verdict",
    "requests",
    "failed",
    "error_rate",
    "rps",
    "avg_ms",
    "min_ms",
    "p50_ms",
    "p90_ms",
    "p95_ms",
    "p99_ms",
    "max_ms",
    "data_received_bytes",
    "warm_up_s",
    "measured_s",
    "enforced",
    "agent",
    "engine",
    "target_kind",
    "target_identity",
    "origin",
    "reasons",
];

async fn import(user: &Actor, query: &str, summary: &str) -> Value {
    let request = user.request(&reqwest::Method::POST, &format!("/api/v1/runs/import?{query}"));
    let answer = Answer::to(request.body(summary.to_owned())).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    answer.json()["runs"][0].take()
}

#[tokio::test]
async fn runs_with_another_payload_or_version_are_no_repetitions() {
    let app = App::start().await;
    let user = app.user().await;
    let mut ids = Vec::new();
    for (version, payload) in [("1.0", "10K"), ("1.0", "1M"), ("1.1", "1M")] {
        for repetition in 1..=2 {
            let query = format!(
                "target=servy&size=2/4GiB&version={version}&parameter=payload={payload}&repetition={repetition}"
            );
            ids.push(text(&import(&user, &query, &distinct(good())).await["id"]));
        }
    }
    user.post("/api/v1/experiments/from-imports", &json!({"name": "payloads", "runs": ids})).await.ok();
    for cell in ids.chunks(2) {
        let run = brewbench::runs::store::find(&app.state.db.rows, &cell[0].clone().into())
            .await
            .expect("a run")
            .expect("a run");
        let known = brewbench::runs::store::repetitions(&app.state.db.rows, &run).await.expect("runs");
        assert_eq!(known.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), cell);
    }
}

fn is_close(one: &Value, other: f64) -> bool {
    one.as_f64().is_some_and(|one| (one - other).abs() <= other.abs() * 1e-9)
}

#[tokio::test]
async fn handle_summary_data_is_imported_exactly() {
    let app = App::start().await;
    let user = app.user().await;
    let query = "target=servy&version=1.2&size=2/4GiB&scenario=hash&repetition=3";
    let run = import(&user, query, &good()).await;
    for field in FIELDS {
        assert!(run.get(field).is_some(), "{field} is missing in {run}");
    }
    let expected = json!({
        "target": "servy", "version": "1.2", "scenario": "hash", "repetition": 3,
        "size": {"name": "2 vCPU / 4 GiB", "vcpus": 2.0, "memory_bytes": 4_294_967_296_u64, "replicas": 1},
        "origin": "import", "phase": "finished", "verdict": "valid", "reasons": [],
        "requests": 51_230, "failed": 0, "error_rate": 0.0,
        "avg_ms": 0.540_926_085_477_252_8, "min_ms": 0.028_969, "p50_ms": 0.342_664_500_000_000_04,
        "p90_ms": 1.139_911_9, "p95_ms": 1.600_388_649_999_998_9, "p99_ms": null, "max_ms": 34.898_847,
        "data_received_bytes": 9_836_160.0, "iterations": 51_230, "checks_passed": 51_230, "checks_failed": 0,
        "warm_up_s": null, "enforced": null, "agent": null, "engine": {"name": "k6", "version": null}, "target_kind": null, "target_identity": null, "error": null,
    });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&run[field], value, "{field}");
    }
    assert!(is_close(&run["rps"], 17_074.141_742_585_773), "{}", run["rps"]);
    assert!(is_close(&run["measured_s"], 3.000_443_64), "{}", run["measured_s"]);
    assert_eq!(user.run(&text(&run["id"])).await, run, "the response equals what is stored");
}

#[tokio::test]
async fn a_summary_export_is_imported_exactly() {
    let app = App::start().await;
    let run = import(&app.user().await, "target=t", &fixture("summary-export-v1.8.1")).await;
    let expected = json!({
        "requests": 7_372, "failed": 3_686, "error_rate": 0.5, "verdict": "invalid", "size": null, "repetition": 1,
        "avg_ms": 0.218_837_963_646_229_18, "min_ms": 0.02352, "p50_ms": 0.171_826_5,
        "p90_ms": 0.347_106_100_000_000_03, "p95_ms": 0.464_824_599_999_999_9, "p99_ms": 1.288_418_339_999_999_8,
        "p999_ms": 2.887_399_116_000_172_4, "max_ms": 4.011_477, "data_received_bytes": 1_356_448.0,
        "dropped_iterations": 1, "thresholds_failed": 3,
    });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&run[field], value, "{field}");
    }
    assert!(is_close(&run["rps"], 1_471.080_215_337_56), "{}", run["rps"]);
}

#[tokio::test]
async fn a_machine_readable_summary_is_imported_exactly_with_its_k6_version() {
    let app = App::start().await;
    let run = import(&app.user().await, "target=t", &fixture("machine-readable-v1.8.1")).await;
    let expected = json!({
        "requests": 7_362, "failed": 3_681, "error_rate": 0.5, "avg_ms": 0.234_754_644_933_442_78,
        "p90_ms": 0.410_816_600_000_000_25, "p95_ms": 0.565_412_7, "p99_ms": null, "max_ms": 3.69307,
        "engine": {"name": "k6", "version": "1.8.1"},
    });
    for (field, value) in expected.as_object().expect("fields") {
        assert_eq!(&run[field], value, "{field}");
    }
    assert!(is_close(&run["rps"], 7_362.0 / 5.012_590_862), "{}", run["rps"]);
}

#[tokio::test]
async fn one_file_is_no_second_repetition_until_its_run_is_deleted() {
    let app = App::start().await;
    let user = app.user().await;
    let send = async |query: &str| {
        let request = user.request(&reqwest::Method::POST, &format!("/api/v1/runs/import?{query}"));
        Answer::to(request.body(good())).await
    };
    let first = text(&send("target=servy&repetition=1").await.ok().json()["runs"][0]["id"]);
    let refused = send("target=servy&repetition=2").await.refused(409);
    let expected = format!("this file was imported before, as run {first} (repetition 1)");
    assert!(refused.starts_with(&expected), "{refused}");
    send("target=servy&version=2&repetition=1").await.ok();
    // A folder with the same content twice is refused as a whole, and names the file.
    let index = r#"[{"file": "a.json", "target": "x"}, {"file": "b.json", "target": "x"}]"#;
    let files = ["a.json", "b.json"].map(|name| (name.to_owned(), good())).into();
    let refused = user.import_folder(index, &files).await.refused(409);
    assert_eq!(refused, "\"b.json\": the same file as \"a.json\": one measurement is no second repetition");
    assert_eq!(user.count_runs().await, 2);
    let folder = tempfile::tempdir().expect("a folder");
    let [one, other] = ["1.json", "2.json"].map(|name| folder.path().join(name).display().to_string());
    for path in [&one, &other] {
        std::fs::write(path, good()).expect("a file");
    }
    let command = ["run", "import", &one, &other, "--target", "servy", "--target-version", "3"];
    let shown = as_user(&app, user.secret(), &command).await.refused(1);
    assert!(shown.contains("json was not imported") && shown.contains("was imported before"), "{shown}");

    user.delete(&format!("/api/v1/runs/{first}")).await.ok();
    send("target=servy&repetition=1").await.ok();
}

#[tokio::test]
async fn the_load_of_wrk_came_from_the_connections_that_were_open() {
    let app = App::start().await;
    let user = app.user().await;
    let real = include_str!("../../samples/published/wrk-kcup-go-nethttp-10K.txt");
    let wrk = |connections: u32, failed: u32| {
        let text = real.replace("and 400 connections", &format!("and {connections} connections"));
        assert!(!text.contains("Socket errors"), "{text}");
        let errors = format!("  Socket errors: connect {failed}, read 0, write 0, timeout 0\nRequests/sec");
        text.replace("Requests/sec", &errors)
    };
    let few = import(&user, "target=refused", &wrk(5_000, 4_785)).await;
    let all = import(&user, "target=open", &wrk(5_000, 0)).await;
    assert_eq!((&few["vus"], &all["vus"]), (&json!(215), &json!(5_000)));
    let reason = few["reasons"].as_array().expect("reasons").iter().find(|one| one["code"] == "connections_failed");
    let reason = reason.expect("a reason");
    assert_eq!(reason["text"], "4,785 of 5,000 connections could not be opened: the load came from 215");
    assert_eq!(
        (&reason["verdict"], all["reasons"].to_string().contains("connections_failed")),
        (&json!("suspect"), false)
    );
    let path = format!("/api/v1/compare?runs={},{}", text(&few["id"]), text(&all["id"]));
    let comparison = user.get(&path).await.ok().json();
    assert_eq!(comparison["rows"].as_array().map(Vec::len), Some(2), "two loads");
    assert!(comparison["notes"].to_string().contains("Loads differ"), "{}", comparison["notes"]);
    let page = user.clone().in_browser().get(&format!("/runs/{}", text(&few["id"]))).await.ok().text();
    assert!(page.contains("the load came from 215"), "{page}");

    let unknown = import(&user, "target=retried", &wrk(400, 5_200)).await;
    assert_eq!(unknown["vus"], Value::Null);
    assert!(unknown["reasons"].to_string().contains("how many made the load is unknown"), "{}", unknown["reasons"]);
    let rare = import(&user, "target=rare", &wrk(400, 4)).await;
    assert_eq!((&rare["vus"], rare["reasons"].to_string().contains("connections_failed")), (&json!(400), true));
}

#[tokio::test]
async fn metrics_missing_in_a_summary_are_null() {
    let app = App::start().await;
    let user = app.user().await;
    let odd = import(&user, "target=t", &fixture("handle-summary-odd-v1.8.1")).await;
    for field in ["min_ms", "p90_ms", "p95_ms", "p99_ms", "max_ms"] {
        assert_eq!(odd[field], Value::Null, "{field}");
    }
    let none = import(&user, "target=t", &fixture("summary-export-zero-requests-v1.8.1")).await;
    assert_eq!((&none["requests"], &none["verdict"]), (&json!(0), &json!("invalid")));
    for field in ["error_rate", "avg_ms", "p50_ms", "p99_ms", "max_ms"] {
        assert_eq!(none[field], Value::Null, "{field}");
    }
}

#[tokio::test]
async fn a_target_that_was_down_is_invalid_however_fast_it_looks() {
    let app = App::start().await;
    let run = import(&app.user().await, "target=t", &target_down()).await;
    assert_eq!(
        (&run["verdict"], &run["requests"], &run["failed"]),
        (&json!("invalid"), &json!(60_684), &json!(60_684))
    );
    assert_eq!(run["reasons"][0]["code"], "no_success");
    assert_eq!(run["reasons"][0]["verdict"], "invalid");
}

#[tokio::test]
async fn summaries_are_returned_byte_for_byte() {
    let app = App::start().await;
    let user = app.user().await;
    let mut all: Vec<_> = ALL.into_iter().map(fixture).collect();
    all.push(format!("\n\n \t{}\r\n", good()));
    all.push(good_checking("<script>alert(1)</script>"));
    for summary in all {
        let run = import(&user, "target=t", &summary).await;
        let back = user.get(&format!("/api/v1/runs/{}/summary", text(&run["id"]))).await.ok();
        assert!(back.body == summary.as_bytes(), "not what was imported");
        assert_eq!(back.header("content-type"), "application/json");
        assert!(back.header("content-disposition").starts_with("attachment"));
    }
}

fn nested(depth: usize) -> String {
    format!("{{\"metrics\": {}{}}}", "{\"a\":".repeat(depth), "1".to_owned() + &"}".repeat(depth))
}

fn ten_thousand_metrics() -> String {
    let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
    for number in 0..10_000 {
        summary["metrics"][format!("m{number}")] =
            json!({"type": "counter", "contains": "default", "values": {"count": 1, "rate": 1}});
    }
    summary.to_string()
}

/// Name of the case, input, and what the error must contain.
fn bad_summaries() -> Vec<(&'static str, String, &'static str)> {
    let duration = "http_req_duration";
    let without = |path: [&str; 2]| {
        let mut summary: Value = serde_json::from_str(&good()).expect("JSON");
        summary[path[0]].as_object_mut().expect("an object").remove(path[1]);
        summary.to_string()
    };
    let raw = |from: &str, to: &str| {
        let changed = good().replacen(from, to, 1);
        assert_ne!(changed, good(), "{from} is not in the fixture");
        changed
    };
    vec![
        ("nothing", String::new(), "the document"),
        ("half a summary", good()[..good().len() / 2].to_owned(), "line"),
        ("no JSON", "k6 run finished".to_owned(), "line 1"),
        ("a page", "<html></html>".to_owned(), "line 1"),
        ("two documents", good() + &good(), "has 2 reports: put each into a file of its own"),
        ("a list", "[]".to_owned(), ""),
        ("a number", "1".to_owned(), ""),
        ("another tool's", "{\"name\": \"wrk\", \"requests\": 10}".to_owned(), ""),
        ("no requests metric", without(["metrics", "http_reqs"]), "http_reqs"),
        ("NaN", raw("51230", "NaN"), "line"),
        ("infinity", raw("51230", "1e999"), ""),
        ("a negative count", good_with("http_reqs", "count", &json!(-1)), "http_reqs"),
        ("half a request", good_with("http_reqs", "count", &json!(0.5)), "http_reqs"),
        ("a text", good_with(duration, "med", &json!("1")), duration),
        ("an object", good_with(duration, "max", &json!({})), duration),
        ("more failures than requests", good_with("http_req_failed", "passes", &json!(60_000)), "http_req_failed"),
        ("a rate above one", good_with("http_req_failed", "rate", &json!(1.5)), "http_req_failed"),
        ("deep nesting", nested(5_000), ""),
        ("metrics that are not an object", "{\"metrics\": [1, 2]}".to_owned(), "metrics"),
    ]
}

#[tokio::test]
async fn bad_input_is_refused_with_reason_and_place_and_nothing_is_stored() {
    let app = App::start().await;
    let user = app.user().await;
    for (what, summary, place) in bad_summaries() {
        let sentence = user.import(summary).await.refused(422);
        assert!(sentence.contains(place) && sentence.len() < 500, "{what}: {sentence}");
    }
    let invalid_utf8 = user.import(vec![b'{', b'"', 0xff, b'"', b'}']).await.refused(422);
    assert!(invalid_utf8.contains("line 1"), "{invalid_utf8}");
    for query in
        ["target=", "target=a%0Ab", "target=%1B[2J", "target=t&size=3/7GiB", "target=t&repetition=-1", "version=1"]
    {
        let request = user.request(&reqwest::Method::POST, &format!("/api/v1/runs/import?{query}")).body(good());
        Answer::to(request).await.refused(422);
    }
    assert_eq!(user.count_runs().await, 0);
}

#[tokio::test]
async fn ten_thousand_metrics_are_stored_or_refused() {
    let app = App::start().await;
    let user = app.user().await;
    let answer = user.import(ten_thousand_metrics()).await;
    assert!(answer.status.is_success() || answer.status.is_client_error(), "{}", answer.status);
    assert_eq!(user.count_runs().await, usize::from(answer.status.is_success()));
    if answer.status.is_client_error() {
        assert!(answer.refused(422).contains("metrics"));
    }
}

#[tokio::test]
async fn a_file_over_the_limit_is_refused_with_the_limit() {
    let limit = good().len();
    let app = App::with(|config| config.max_summary_bytes = limit).await;
    let user = app.user().await;
    let sentence = user.import(good() + " ").await.refused(413);
    assert_eq!(sentence, format!("the file is larger than the limit of {limit} bytes"));
    assert_eq!(user.count_runs().await, 0);
    user.import(good()).await.ok();
    // The default limit allows large summaries; other bodies are limited to 2 MiB.
    let app = App::start().await;
    app.user().await.import(good() + &" ".repeat(5 << 20)).await.ok();
}

/// The state of the simulated disk.
enum Disk {
    Full,
    Roomy,
}

/// Limits the size of the database in SQLite, on each of the two connections that write.
async fn set_disk(app: &App, disk: Disk) {
    let Db { write, rows, .. } = &app.state.db;
    let pages: i64 = sqlx::query_scalar("pragma page_count").fetch_one(write).await.expect("a count");
    let most = match disk {
        Disk::Full => pages,
        Disk::Roomy => pages + 1_000_000,
    };
    let limit = format!("pragma max_page_count = {most}");
    let turn = write.acquire().await.expect("a turn");
    let set = limit.clone();
    rows.write(turn, move |connection| connection.execute_batch(&set)).await.expect("a connection").expect("a limit");
    sqlx::query(sqlx::AssertSqlSafe(limit)).execute(write).await.expect("a limit");
}

#[tokio::test]
async fn on_a_full_disk_nothing_is_stored_and_nothing_is_lost() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = submit_one(&user).await;
    let job = agent.job().await;
    let mut long = outcome(&job, &good());
    // Random text, which does not compress well.
    long.target_log = (0..2_000).map(|_| uuid::Uuid::new_v4().to_string()).collect();
    set_disk(&app, Disk::Full).await;
    // Free pages inside the file are used up first.
    let mut answer = user.import(good()).await;
    while answer.status.is_success() {
        answer = user.import(good()).await;
    }
    let sentence = answer.refused(507);
    assert_eq!(
        sentence,
        "the server's disk is full and nothing was stored; free space for its data folder and try again"
    );
    let before = user.count_runs().await;
    // The limit belongs to a connection, and the one that hit it may have been replaced.
    set_disk(&app, Disk::Full).await;
    agent.send(&long).await.refused(507);
    assert_eq!((user.count_runs().await, &user.run(&id).await["phase"]), (before, &json!("leased")));
    set_disk(&app, Disk::Roomy).await;
    agent.end(long).await;
    assert_eq!(user.run(&id).await["phase"], "finished");
}

#[tokio::test]
async fn names_with_markup_and_control_characters_are_shown_as_text() {
    let app = App::start().await;
    let user = app.user().await;
    let name = "<img src=x onerror=alert(1)> \u{202e}";
    let query = "target=%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let run = import(&user, query, &good_checking(name)).await;
    assert_eq!(run["target"], "<script>alert(1)</script>");
    let page = user.clone().in_browser();
    for path in
        ["/runs".to_owned(), format!("/runs/{}", text(&run["id"])), format!("/compare?runs={}", text(&run["id"]))]
    {
        let shown = page.get(&path).await.ok().text();
        assert!(!shown.contains("<script>alert") && !shown.contains("<img src=x"), "{path}");
        assert!(shown.contains("alert(1)"), "{path} shows the name as text");
    }
    for control in ["\u{7}", "\u{1b}[2J"] {
        let sentence = user.import(good_checking(control)).await.refused(422);
        assert!(sentence.starts_with("root_group.checks[0].name"), "{sentence}");
    }
}

/// A way to damage a file.
#[derive(Clone, Debug)]
enum Mutation {
    Overwrite(prop::sample::Index, u8),
    Cut(prop::sample::Index, usize),
    Insert(prop::sample::Index, &'static str),
    Number(prop::sample::Index, &'static str),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    let pieces = prop::sample::select(vec![
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0000", "null", "1e999", "\u{202e}", "-",
    ]);
    let numbers = prop::sample::select(vec![
        "-1",
        "null",
        "1e308",
        "9223372036854775808",
        "\"1\"",
        "[]",
        "{}",
        "0",
        "0.5",
        "-0.0",
        "true",
    ]);
    prop_oneof![
        (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Overwrite(at, byte)),
        (any::<prop::sample::Index>(), 1..200_usize).prop_map(|(at, length)| Mutation::Cut(at, length)),
        (any::<prop::sample::Index>(), pieces).prop_map(|(at, piece)| Mutation::Insert(at, piece)),
        (any::<prop::sample::Index>(), numbers).prop_map(|(at, number)| Mutation::Number(at, number)),
    ]
}

fn mutated(summary: &str, mutations: &[Mutation]) -> Vec<u8> {
    let mut bytes = summary.as_bytes().to_vec();
    for mutation in mutations {
        match mutation {
            Mutation::Overwrite(at, byte) => *at.get_mut(&mut bytes) = *byte,
            Mutation::Cut(at, length) => {
                let start = at.index(bytes.len());
                let end = (start + length).min(bytes.len() - 1);
                bytes.drain(start.min(end)..end);
            }
            Mutation::Insert(at, piece) => {
                let at = at.index(bytes.len());
                bytes.splice(at..at, piece.bytes());
            }
            Mutation::Number(at, number) => replace_number(&mut bytes, *at, number),
        }
    }
    bytes
}

fn replace_number(bytes: &mut Vec<u8>, at: prop::sample::Index, number: &str) {
    let in_number = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'e');
    let starts: Vec<_> = bytes
        .windows(2)
        .enumerate()
        .filter(|(_, two)| two[0] == b' ' && two[1].is_ascii_digit())
        .map(|(at, _)| at + 1)
        .collect();
    if !starts.is_empty() {
        let start = *at.get(&starts);
        let length = bytes[start..].iter().take_while(|byte| in_number(**byte)).count();
        bytes.splice(start..start + length, number.bytes());
    }
}

#[test]
fn any_input_is_stored_unchanged_or_refused_with_an_error() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let (app, user) = runtime.block_on(async {
        let app = App::start().await;
        let user = app.user().await;
        (app, user)
    });
    let cases = (prop::sample::select(ALL.to_vec()), vec(mutation(), 1..4));
    let mut runner = TestRunner::new(Config { cases: 150, failure_persistence: None, ..Config::default() });
    let done = runner.run(&cases, |(name, mutations)| {
        let bytes = mutated(&fixture(name), &mutations);
        let answer = runtime.block_on(user.import(bytes.clone()));
        if answer.status == 201 {
            let id = text(&answer.json()["runs"][0]["id"]);
            let back = runtime.block_on(user.get(&format!("/api/v1/runs/{id}/summary")));
            // What has not changed, or not again, is imported with line feeds at its end.
            let rest = back.body.strip_prefix(bytes.as_slice());
            prop_assert!(rest.is_some_and(|rest| rest.iter().all(|byte| *byte == b'\n')), "{:?}", back.body);
        } else {
            answer.refused(422);
        }
        Ok(())
    });
    done.expect("no input breaks the server");
    runtime.block_on(app.stop());
}

fn summary_of(id: &str) -> NewImport {
    let summary = parse(good().as_bytes()).expect("a summary");
    let spec = RunSpec { target: "servy".to_owned(), ..RunSpec::default() };
    NewImport {
        sha256: id.to_owned(),
        id: id.to_owned().into(),
        about: About { spec, labels: vec!["nightly".to_owned()], ..About::default() },
        created_by: "ada".to_owned(),
        figures: summary.figures(),
        verdict: Verdict::Valid,
        reasons: Vec::new(),
        limits: Limits::default(),
        engine: Engine { name: "k6".to_owned(), version: None },
        summary: blob::pack(good().as_bytes()),
        now: 0,
    }
}

#[tokio::test]
async fn waiting_uploads_are_stored_together_and_fail_separately() {
    let app = App::start().await;
    let (db, waiting) = (app.state.db.clone(), PendingImports::default());
    let busy = db.write.acquire().await.expect("the connection that writes");
    let uploads = [vec!["a", "b"], vec!["c", "a"], vec!["d"]].map(|ids| {
        let (db, waiting) = (db.clone(), waiting.clone());
        tokio::spawn(async move { imports::insert(&db, &waiting, ids.into_iter().map(summary_of).collect()).await })
    });
    // An upload whose client has disconnected is not stored.
    let left = tokio::spawn({
        let (db, waiting) = (db.clone(), waiting.clone());
        async move { imports::insert(&db, &waiting, vec![summary_of("e")]).await }
    });
    tokio::task::yield_now().await;
    left.abort();
    assert!(left.await.is_err_and(|fault| fault.is_cancelled()));
    drop(busy);
    let mut stored = Vec::new();
    for upload in uploads {
        stored.push(
            upload.await.expect("no panic").map(|runs| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>()),
        );
    }
    assert_eq!(stored[0].as_deref().ok(), Some(["a".to_owned(), "b".to_owned()].as_slice()));
    assert!(stored[1].is_err(), "run a already exists: {:?}", stored[1]);
    assert_eq!(stored[2].as_deref().ok(), Some(["d".to_owned()].as_slice()));
    let ids: Vec<String> =
        sqlx::query_scalar("select id from run order by id").fetch_all(&app.state.db.read).await.expect("runs");
    assert_eq!(ids, ["a", "b", "d"]);
}

/// A README with the output of two runs of wrk.
fn readme() -> String {
    let wrk = |rate: u32| {
        format!(
            "```\nRunning 10s test @ http://127.0.0.1:8080/\n  2 threads and 10 connections\n  \
             Thread Stats   Avg      Stdev     Max   +/- Stdev\n    Latency     1.00ms    0.20ms   5.00ms   90.00%\n    \
             Req/Sec     5.00k   100.00     6.00k    70.00%\n  {} requests in 10.00s, 10.00MB read\n\
             Requests/sec:  {rate}.00\nTransfer/sec:      1.00MB\n```\n",
            rate * 10
        )
    };
    format!("# Results\n\n## Go\n\n{}\n## Rust\n\n{}", wrk(10_000), wrk(12_000))
}

#[tokio::test]
async fn a_text_with_several_reports_is_previewed_and_becomes_several_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("README.md");
    std::fs::write(&path, readme()).expect("a file");
    let file = path.display().to_string();
    let brewbench = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await;
    let preview = brewbench(&["run", "import", "--dry-run", &file, "--json"]).await.json();
    let found: Vec<_> = preview[0]["reports"].as_array().expect("reports").iter().map(|one| &one["heading"]).collect();
    assert_eq!(found, [&json!("Go"), &json!("Rust")], "{preview}");
    let shown = brewbench(&["run", "import", "--dry-run", &file]).await.ok();
    assert!(shown.contains("Rust") && shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let list = user.get("/api/v1/runs").await.ok().json();
    assert_eq!(list["runs"], json!([]), "nothing was imported");
    let runs = brewbench(&["run", "import", &file, "--json"]).await;
    assert!(runs.err.contains("to undo this: brewbench run delete "), "{}", runs.err);
    let runs = runs.json();
    let targets: Vec<_> = runs["runs"].as_array().expect("runs").iter().map(|run| text(&run["target"])).collect();
    assert_eq!(targets, ["Go", "Rust"], "{runs}");
    let ids: Vec<String> = runs["runs"].as_array().expect("runs").iter().map(|run| text(&run["id"])).collect();
    let export = async |format: &str| {
        let ids = ids.iter().map(String::as_str);
        let arguments: Vec<&str> = ["run", "export", "--format", format].into_iter().chain(ids).collect();
        brewbench(&arguments).await
    };
    let bencher = export("bencher").await.json();
    assert_eq!(bencher.as_object().map(serde_json::Map::len), Some(2), "{bencher}");
    assert!(bencher.to_string().contains(r#""rps":{"lower_value":10000.0,"upper_value":10000.0,"value":10000.0}"#));
    assert_eq!(export("otava").await.ok().lines().count(), 3);
    assert!(export("prometheus").await.ok().contains("brewbench_run_rps{"));
    let several = export("k6").await.refused(1);
    assert!(several.contains("a k6 summary has one run"), "{several}");
    let k6 = brewbench(&["run", "export", "--format", "k6", &ids[1]]).await.json();
    assert_eq!(k6["metrics"]["http_reqs"]["rate"], 12_000.0, "{k6}");
    std::fs::write(&path, "no results").expect("a file");
    brewbench(&["run", "import", "--dry-run", &file]).await;
    let refused = brewbench(&["run", "import", "--dry-run", &file]).await;
    assert!(refused.code == Some(1) && refused.err.contains("not all of it can be imported"), "{}", refused.err);
}
