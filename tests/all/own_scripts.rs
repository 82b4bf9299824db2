//! Scripts that nobody wrote for this program: folders, TypeScript, data of any kind, several scenarios. Each is uploaded
//! as its author has it, and run with a real k6.

use std::{fs, path::Path};

use brewbench::auth::model::Scope;
use brewbench_testing::{public_copy, public_folder};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    harness::{
        Answer,
        program::as_user,
        submit::{plan_with, text},
    },
    provoked::{Bench, ORDINARY, Request, codes},
    real::Site,
};

/// A folder as its author has it: TypeScript in folders, a named function with `env` and tags, users in CSV, a picture.
const SHOP: [(&str, &[u8]); 5] = [
    (
        "tests/browse.ts",
        b"import http from 'k6/http';
import exec from 'k6/execution';
import { check } from 'k6';
import { users, type User } from '../lib/users.ts';

const picture: ArrayBuffer = open('../data/picture.jpg', 'b');

export const options = {
  scenarios: {
    browse: { executor: 'constant-vus', vus: 2, duration: '2s', exec: 'browse', env: { PATH_OF: '/hash' }, tags: { kind: 'browse' } },
  },
  thresholds: { 'http_req_duration{kind:browse}': ['p(95)<5000'], 'checks{scenario:browse}': ['rate==1'] },
};

export function browse(): void {
  const user: User = users[exec.scenario.iterationInTest % users.length];
  const response = http.get(`${__ENV.BASE_URL}${__ENV.PATH_OF}?user=${user.name}`);
  check(response, {
    'is ok': (r) => r.status === 200,
    'picture is whole': () => picture.byteLength === 4,
    'name stays': () => exec.scenario.name === 'browse',
  });
}
",
    ),
    ("lib/users.ts", b"export interface User { name: string }\nconst lines: string[] = open('../data/users.csv').trim().split('\\n');\n\
        export const users: User[] = lines.map((name) => ({ name }));\n"),
    ("data/users.csv", b"ann\nbob\n"),
    ("data/picture.jpg", b"\xff\xd8\x00\xd9"),
    (".git/config", b"[core]"),
];

fn write(folder: &Path, files: &[(&str, &[u8])]) {
    for (path, bytes) in files {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("created");
        fs::write(path, bytes).expect("written");
    }
}

/// Uploads a folder, file or archive with the command; returns what is stored.
async fn add(bench: &Bench, path: &Path, more: &[&str]) -> Value {
    let token = bench.app.token_secret(Scope::Submit, None).await;
    let path = path.display().to_string();
    let command = [&["scenario", "new", &path, "--name", "shop", "--json"], more].concat();
    as_user(&bench.app, &token, &command).await.json()
}

#[tokio::test]
async fn a_folder_of_typescript_runs_as_its_author_has_it_and_under_a_load() {
    let Some(mut bench) = Bench::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &SHOP);
    let added = add(&bench, folder.path(), &[]).await;
    let stored = bench.user.get("/api/v1/scenarios/shop").await.ok().json();
    let paths: Vec<&String> = stored["files"].as_object().expect("files").keys().collect();
    assert_eq!(paths, ["data/picture.jpg", "data/users.csv", "lib/users.ts", "tests/browse.ts"]);
    assert_eq!(stored["entry"], "tests/browse.ts");
    assert_eq!(stored["files"]["data/picture.jpg"], json!({"base64": "/9gA2Q=="}));

    for load in [json!({"kind": "script"}), json!({"kind": "rate", "rate": 20, "duration_s": 2.0})] {
        let (id, job) = bench.job_of("shop", ORDINARY, Some(load)).await;
        let run = bench.execute(&id, &job, std::future::pending()).await;
        assert_eq!(run["phase"], "finished", "{run}");
        assert_eq!((&run["checks_failed"], &run["thresholds_failed"]), (&json!(0), &json!(0)), "{run}");
        assert_eq!(run["thresholds"], json!(2), "both have data: {run}");
        assert!(run["checks_passed"].as_u64().is_some_and(|passed| passed > 0), "{run}");
    }

    let page = bench.user.clone().in_browser().get("/scenarios/shop").await.ok().text();
    for words in ["tests/browse.ts", "lib/users.ts", "data/picture.jpg</code>", "4 bytes, SHA-256"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    // From the script alone, k6 finds the same files.
    let alone = add(&bench, &folder.path().join("tests/browse.ts"), &[]).await;
    assert_eq!(alone["sha256"], added["sha256"]);
}

#[tokio::test]
async fn a_folder_has_the_same_revision_from_any_place_and_as_an_archive() {
    let Some(bench) = Bench::start().await else { return };
    let mut revisions = Vec::new();
    for place in ["one", "home/ann/two"] {
        let folder = tempfile::tempdir().expect("a folder");
        let shop = folder.path().join(place);
        write(&shop, &SHOP);
        revisions.push(add(&bench, &shop, &[]).await["sha256"].clone());
        let archive = folder.path().join("archive.tar");
        let mut k6 = std::process::Command::new("k6");
        k6.args(["archive", "--archive-out"]).arg(&archive).arg(shop.join("tests/browse.ts"));
        assert!(k6.output().expect("k6").status.success());
        revisions.push(add(&bench, &archive, &[]).await["sha256"].clone());
    }
    assert!(revisions.windows(2).all(|two| two[0] == two[1]), "{revisions:?}");
}

#[tokio::test]
async fn a_folder_of_the_form_is_the_same_revision() {
    let Some(bench) = Bench::start().await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), &SHOP);
    let by_command = add(&bench, folder.path(), &[]).await;
    let user = bench.user.clone().in_browser();
    let part = |name: &str, file: &str, bytes: &[u8]| {
        let head = format!("--x\r\nContent-Disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\r\n");
        [head.as_bytes(), bytes, b"\r\n"].concat()
    };
    let name = b"--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nshop\r\n".to_vec();
    let files = SHOP.iter().flat_map(|(path, bytes)| part("folder", &format!("shop/{path}"), bytes));
    let body: Vec<u8> = name.iter().copied().chain(files).chain(b"--x--\r\n".iter().copied()).collect();
    let request = user.request(&Method::POST, "/scenarios");
    let sent = request.header("content-type", "multipart/form-data; boundary=x").body(body);
    assert_eq!(Answer::to(sent).await.status, StatusCode::SEE_OTHER);
    let stored = bench.user.get("/api/v1/scenarios/shop/revisions").await.ok().json();
    assert_eq!(stored["revisions"].as_array().map(Vec::len), Some(1), "the same revision: {stored}");
    assert_eq!(stored["revisions"][0]["sha256"], by_command["sha256"]);
}

#[tokio::test]
async fn an_address_of_any_name_or_a_constant_becomes_the_targets() {
    let Some(mut bench) = Bench::start().await else { return };
    let by_name = "import http from 'k6/http';
        const api = __ENV.API_URL || 'http://localhost:8080/';
        export default function () { http.get(`${api}/hash`); }";
    let constant = "import http from 'k6/http';
        export default function () { http.get('http://localhost:8080/hash'); http.get(`http://${__ENV.MY_HOST}/hash`); }";
    let user = bench.user.clone().in_browser();
    for (script, expected, chosen) in [
        (by_name, &["API_URL={base_url}"][..], &["API_URL"][..]),
        (
            constant,
            &["MY_HOST={host}:{port}", "http://localhost:8080={base_url}"],
            &["MY_HOST", "http://localhost:8080"],
        ),
    ] {
        let stored = user.post("/api/v1/scenarios", &json!({"name": "shop", "script": script})).await.ok().json();
        let found = stored["addresses"].as_array().expect("addresses").iter();
        let found: Vec<String> = found.map(|one| format!("{}={}", text(&one["name"]), text(&one["default"]))).collect();
        assert_eq!(found, expected);
        let page = user.get("/scenarios/shop").await.ok().text();
        assert!(page.contains("The script does not read <code>BASE_URL</code>"), "{page}");
        let saved = user
            .form("/scenarios/shop/addresses", &chosen.iter().map(|&name| ("address", name)).collect::<Vec<_>>())
            .await;
        assert_eq!(saved.status, StatusCode::SEE_OTHER, "{}", saved.text());
        let page = user.get("/scenarios/shop").await.ok().text();
        assert!(!page.contains("does not read") && page.contains("{base_url}"), "{page}");

        let (id, job) = bench.job_of("shop", ORDINARY, None).await;
        let run = bench.execute(&id, &job, std::future::pending()).await;
        assert_eq!((&run["phase"], &run["failed"]), (&json!("finished"), &json!(0)), "{run}");
        assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
    }
    let wrong = json!({"name": "shop", "script": "1", "defaults": {"http://localhost:8080": "http://elsewhere"}});
    let refused = user.post("/api/v1/scenarios", &wrong).await.refused(422);
    assert!(refused.contains("can stand for the target's address only"), "{refused}");
}

#[tokio::test]
async fn a_large_file_reaches_k6_whole() {
    let Some(site) = Site::start().await else { return };
    let large = "0123456789abcdef".repeat(3 << 16);
    let script = format!(
        "import http from 'k6/http';
        const words = open('./data/words.txt');
        if (words.length !== {} || !words.endsWith('f')) throw new Error('it is damaged');
        export default function () {{ http.get(`${{__ENV.BASE_URL}}/hash`); }}",
        large.len()
    );
    let scenario = json!({"name": "large", "script": script, "files": {"data/words.txt": large}});
    let stored = site.user.post("/api/v1/scenarios", &scenario).await.ok().json();
    assert_eq!((&stored["check"]["agent"], &stored["check"]["fault"]), (&json!("local"), &json!(null)), "{stored}");
    // What k6 refuses is not stored.
    let refused = json!({"name": "wrong", "script": "throw 1", "files": {"a.txt": format!("{large}1")}});
    assert!(site.user.post("/api/v1/scenarios", &refused).await.refused(422).starts_with("script: k6 failed"));
    let run = site.measure(&json!({"kind": "vus", "vus": 1, "duration_s": 1.0}), "large").await;
    assert_eq!(run["phase"], "finished", "{run}");
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
}

#[tokio::test]
async fn what_looks_like_a_mistake_is_a_hint_and_a_script_with_a_load_is_offered_as_written() {
    let Some(site) = Site::start().await else { return };
    let add = async |script: &str| {
        let scenario = json!({"name": "mine", "script": script});
        site.user.post("/api/v1/scenarios", &scenario).await.ok().json()["check"]["report"].clone()
    };
    let stages = "export const options = { stages: [{ duration: '1s', target: 1 }], vuss: 2 }; export default () => {}";
    let hint = "\"vuss\" is not an option of k6: it has no effect";
    assert_eq!(add(stages).await, json!({"scenarios": [], "sets_load": true, "hints": [hint]}));
    let page = site.user.clone().in_browser().get("/scenarios/mine").await.ok().text();
    assert!(page.contains("load=script") && page.contains("is not an option of k6"), "{page}");
    let named = "export const option = { vus: 2 }; export default () => {}";
    let hint = "the script exports \"option\"; k6 reads its options from \"options\"";
    assert_eq!(add(named).await, json!({"scenarios": [], "sets_load": false, "hints": [hint]}));
    let scenarios = "export const options = { scenarios: { b: { executor: 'shared-iterations' }, a: { executor: 'shared-iterations', exec: 'x' } } };
        export default () => {}; export function x() {}";
    assert_eq!(add(scenarios).await, json!({"scenarios": ["b", "a"], "sets_load": true, "hints": []}));
}

#[tokio::test]
async fn what_a_script_imports_and_nobody_has_is_named_with_its_line() {
    let Some(site) = Site::start().await else { return };
    for (script, words) in [
        (
            "import x from 'https://127.0.0.1:1/x.js'; export default () => x;",
            "script.js:1 imports https://127.0.0.1:1/x.js, and agents",
        ),
        (
            "import sql from 'k6/x/sql';\nexport default () => sql;",
            "script.js:1 imports k6/x/sql, which this k6 does not have",
        ),
        (
            "\nimport { browser } from 'k6/browser'; export default () => browser;",
            "script.js:2 imports k6/browser, which needs a browser",
        ),
    ] {
        let refused =
            site.user.post("/api/v1/scenarios", &json!({"name": "mine", "script": script})).await.refused(422);
        assert!(refused.contains(words), "{refused}");
    }
    // A module that an archive contains is there.
    let script = "import x from 'https://127.0.0.1:1/x.js'; export default () => x;";
    let files = json!({"https://127.0.0.1:1/x.js": "export default 1"});
    let stored = site.user.post("/api/v1/scenarios", &json!({"name": "mine", "script": script, "files": files})).await;
    assert_eq!(stored.ok().json()["check"]["fault"], json!(null));
}

#[tokio::test]
async fn a_script_sends_exactly_the_requests_that_k6_sends_by_itself() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http';
        export const options = { rps: 500, scenarios: { a: { executor: 'per-vu-iterations', vus: 3, iterations: 7 } } };
        export default function () { for (let i = 0; i <= __VU; i += 1) http.get(`${__ENV.BASE_URL}/hash`); }";
    bench.user.post("/api/v1/scenarios", &json!({"name": "shop", "script": script})).await.ok();
    let (id, job) = bench.job_of("shop", ORDINARY, Some(json!({"kind": "script"}))).await;
    let run = bench.execute(&id, &job, std::future::pending()).await;
    // 7 iterations of the virtual users 1 to 3.
    assert_eq!((&run["requests"], &run["iterations"]), (&json!(7 * (2 + 3 + 4)), &json!(21)), "{run}");
    let page = bench.user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("script option rps"), "{page}");
}

/// The example of the agent that speaks gRPC and WebSocket.
fn talker() -> std::path::PathBuf {
    let own = std::env::current_exe().expect("own path");
    let path = own.ancestors().nth(2).expect("target/profile/deps/test").join("examples/talker");
    assert!(path.exists(), "{} is missing: cargo build -p brewbench-agent --example talker", path.display());
    path
}

#[tokio::test]
async fn grpc_calls_and_websocket_messages_are_measured_like_requests() {
    let Some(mut bench) = Bench::start().await else { return };
    let folder = public_folder();
    bench.server = public_copy(&talker(), folder.path());
    let request = Request { target: "exec $0 $1", ..ORDINARY };
    let grpc = "import grpc from 'k6/net/grpc';
        const client = new grpc.Client();
        client.load([], 'hello.proto');
        export const options = { thresholds: { grpc_req_duration: ['p(95)<5000'] } };
        export default function () {
            if (__ITER === 0) client.connect(__ENV.MY_HOST, { plaintext: true });
            client.invoke('hello.Hello/Say', {});
        }";
    let proto = "syntax = 'proto3'; package hello; message None {} service Hello { rpc Say(None) returns (None); }";
    let scenario = json!({"name": "grpc", "script": grpc, "files": {"hello.proto": proto},
        "defaults": {"MY_HOST": "{host}:{port}"}});
    bench.user.post("/api/v1/scenarios", &scenario).await.ok();
    let (id, job) = bench.job_of("grpc", request, None).await;
    let run = bench.execute(&id, &job, std::future::pending()).await;
    let (calls, failed) = (run["requests"].as_u64().unwrap_or(0), run["failed"].as_u64().unwrap_or(0));
    assert!(calls > 20 && (failed * 10).abs_diff(calls) < 20, "every tenth call fails: {run}");
    assert!(run["p99_ms"].as_f64().is_some_and(|p99| p99 > 0.0) && run["thresholds"] == 1, "{run}");
    assert!(
        !codes(&run)
            .iter()
            .any(|code| ["no_requests", "series_incomplete", "failures_unknown"].contains(&code.as_str()))
    );
    let page = bench.user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("requests are gRPC calls"), "{page}");

    let websocket = "import { WebSocket } from 'k6/websockets';
        export default function () {
            const socket = new WebSocket(`ws://${__ENV.MY_HOST}/`);
            let left = 50;
            socket.onopen = () => socket.send('x');
            socket.onmessage = () => { left -= 1; if (left > 0) socket.send('x'); else socket.close(); };
        }";
    let scenario = json!({"name": "chat", "script": websocket, "defaults": {"MY_HOST": "{host}:{port}"}});
    bench.user.post("/api/v1/scenarios", &scenario).await.ok();
    let (id, job) = bench.job_of("chat", request, None).await;
    let run = bench.execute(&id, &job, std::future::pending()).await;
    let (messages, sessions) = (run["requests"].as_u64().unwrap_or(0), run["iterations"].as_u64().unwrap_or(0));
    assert!(sessions > 0 && messages >= sessions * 50 && run["failed"].is_null(), "{run}");
    assert!(run["p50_ms"].as_f64().is_some_and(|connect| connect > 0.0), "{run}");
    assert!(!codes(&run).iter().any(|code| ["no_requests", "series_incomplete", "stalled"].contains(&code.as_str())));
}

#[tokio::test]
async fn one_of_several_scenarios_runs_under_any_load_and_a_factor_scales_all() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http';
        const each = { executor: 'per-vu-iterations', vus: 1, iterations: 5 };
        export const options = { scenarios: {
            one: { ...each, exec: 'one' }, two: { ...each, exec: 'two', startTime: '1h' } } };
        export function one() { http.get(`${__ENV.BASE_URL}/hash`); }
        export function two() { http.get(`${__ENV.BASE_URL}/hash`); http.get(`${__ENV.BASE_URL}/hash`); }";
    bench.user.post("/api/v1/scenarios", &json!({"name": "shop", "script": script})).await.ok();
    let own = json!({"kind": "script"});
    let only = |name: &str| json!({"script_scenario": name, "load": own});
    let run = bench.run_of("shop", ORDINARY, &only("two")).await;
    assert_eq!((&run["iterations"], &run["requests"]), (&json!(5), &json!(10)), "{run}");
    let run = bench.run_of("shop", ORDINARY, &json!({"script_scenario": "one", "load": own, "scale": 3.0})).await;
    assert_eq!((&run["iterations"], &run["requests"]), (&json!(15), &json!(15)), "{run}");
    let rate = json!({"kind": "rate", "rate": 20, "duration_s": 1.0});
    let run = bench.run_of("shop", ORDINARY, &json!({"script_scenario": "two", "load": rate})).await;
    assert_eq!(run["requests"].as_u64(), run["iterations"].as_u64().map(|iterations| iterations * 2), "{run}");
    let page = bench.user.clone().in_browser().get(&format!("/runs/{}", text(&run["id"]))).await.ok().text();
    assert!(page.contains("iterations/s (two)"), "{page}");
    // Each kind of executor has other options, and k6 refuses those that it does not know.
    let rates = "import http from 'k6/http';
        export const options = { scenarios: { a: { executor: 'constant-arrival-rate', rate: 10, duration: '2s',
            preAllocatedVUs: 2 } } };
        export default function () { http.get(`${__ENV.BASE_URL}/hash`); }";
    bench.user.post("/api/v1/scenarios", &json!({"name": "rates", "script": rates})).await.ok();
    let run = bench.run_of("rates", ORDINARY, &json!({"load": own, "scale": 2.0})).await;
    let iterations = run["iterations"].as_u64().unwrap_or(0) + run["dropped_iterations"].as_u64().unwrap_or(0);
    assert!((39..=41).contains(&iterations), "20 a second for 2 s: {run}");
    let refused = bench.run_of("shop", ORDINARY, &json!({"load": rate})).await;
    assert!(text(&refused["error"]).contains("2 scenarios that differ (one, two): choose one of them"), "{refused}");
}

#[tokio::test]
async fn a_secret_reaches_the_script_and_no_page_log_or_answer() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http';
        export default function () {
            if (__ENV.API_TOKEN !== 'hunter22') throw new Error('wrong token');
            if (__ITER === 0) console.log(`token ${__ENV.API_TOKEN}`);
            http.get(`${__ENV.BASE_URL}/hash`);
        }";
    bench.user.post("/api/v1/scenarios", &json!({"name": "shop", "script": script})).await.ok();
    let token = json!({"parameters": {"API_TOKEN": "hunter22"}});
    let run = bench.run_of("shop", ORDINARY, &token).await;
    assert!(run["requests"].as_u64().is_some_and(|requests| requests > 0), "{run}");
    let reference = text(&run["parameters"]["API_TOKEN"]);
    assert!(reference.starts_with("secret:"), "{run}");
    let user = bench.user.clone().in_browser();
    let (id, experiment) = (text(&run["id"]), text(&run["experiment"]));
    for path in [
        format!("/runs/{id}"),
        format!("/experiments/{experiment}"),
        format!("/api/v1/runs/{id}/log"),
        "/runs".to_owned(),
    ] {
        let page = user.get(&path).await.text();
        assert!(!page.contains("hunter22"), "{path}: {page}");
    }
    assert!(user.get(&format!("/runs/{id}")).await.ok().text().contains("token •••"));
    // The same value is the same cell, and a reference stands for it.
    for again in [token, json!({"parameters": {"API_TOKEN": reference}})] {
        let again = bench.run_of("shop", ORDINARY, &again).await;
        assert_eq!((&again["parameters"], &again["checks_failed"]), (&run["parameters"], &run["checks_failed"]));
        assert!(again["requests"].as_u64().is_some_and(|requests| requests > 0), "{again}");
    }
    let form = user
        .get("/experiments/new?scenario=shop&target=it&size=1%2F1GiB&vus=1&duration=1s&set.API_TOKEN=hunter22")
        .await;
    let form = form.ok().text();
    assert!(form.contains("API_TOKEN=…") && form.matches("hunter22").count() == 1, "only its own field: {form}");
    let plan = plan_with(&json!({"targets": ["it"], "scenario": "shop", "parameters": {"API_TOKEN": "secret:0"}}));
    let refused = bench.user.post("/api/v1/experiments", &plan).await.refused(422);
    assert_eq!(refused, "parameters: API_TOKEN refers to a secret that is not stored here");
}

#[tokio::test]
async fn metrics_of_a_script_are_compared_by_name() {
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http';
        import { Counter, Trend } from 'k6/metrics';
        const [checkout, baskets] = [new Trend('checkout', true), new Counter('baskets')];
        export default function () { checkout.add(http.get(`${__ENV.BASE_URL}/hash`).timings.duration); baskets.add(2); }";
    bench.user.post("/api/v1/scenarios", &json!({"name": "shop", "script": script})).await.ok();
    let run = bench.run_of("shop", ORDINARY, &json!({})).await;
    let id = text(&run["id"]);
    let found = bench.user.get(&format!("/api/v1/compare/metrics?runs={id}")).await.ok().json();
    let metrics = found["rows"][0]["metrics"].as_array().expect("metrics");
    let named: Vec<_> = metrics.iter().map(|one| (text(&one["name"]), text(&one["statistic"]))).collect();
    let named: Vec<_> = named.iter().map(|(name, statistic)| (name.as_str(), statistic.as_str())).collect();
    assert_eq!(named, [("baskets", "per second"), ("checkout", "p50"), ("checkout", "p95")]);
    let per_second = metrics[0]["cells"][0]["median"].as_f64().expect("a rate");
    let expected = 2.0 * run["rps"].as_f64().expect("a rate");
    assert!((per_second - expected).abs() < 0.1 * expected, "{per_second} of {expected}: {found}");
    let page = bench.user.clone().in_browser().get(&format!("/compare/metrics?runs={id}")).await.ok().text();
    assert!(page.contains("<code>checkout</code>") && page.contains("Metrics of the script"), "{page}");
    let token = bench.app.token_secret(Scope::Read, None).await;
    let table = as_user(&bench.app, &token, &["compare", &id, "--script-metrics"]).await.out;
    assert!(table.contains("baskets") && table.contains("per second"), "{table}");
}
