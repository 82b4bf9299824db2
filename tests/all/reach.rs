//! Load that does not reach the target, with a real k6 and a real target: the run is invalid, and says where the load
//! went.

use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use brewbench::auth::model::Scope;
use brewbench_testing::skip;
use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, App,
        program::{PROGRAM, as_user},
        submit::text,
    },
    provoked::{Bench, ORDINARY, Request, assert_reason, codes},
};

/// A server that is not the target.
struct Other {
    at: SocketAddr,
    child: Child,
}

impl Other {
    async fn start() -> Self {
        let at = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let program = Path::new(PROGRAM).with_file_name("targets").join("bin/rust-hyper");
        let mut command = Command::new(program);
        command.args(["--listen", &at.to_string()]).stdout(Stdio::null()).stderr(Stdio::null());
        let other = Self { at, child: command.spawn().expect("a server") };
        while TcpStream::connect(at).is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        other
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The reason of this code.
fn reason<'a>(run: &'a Value, code: &str) -> &'a Value {
    run["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == code).expect("the reason")
}

#[tokio::test]
async fn load_on_another_server_makes_the_run_invalid() {
    let Some(mut bench) = Bench::start().await else { return };
    // As on a machine where the kernel can't keep the load from it.
    bench.context.also_reachable = vec![Ipv4Addr::LOCALHOST.into()];
    let other = Other::start().await;
    let script = format!(
        "import http from 'k6/http';
         export default function () {{ http.get(`${{__ENV.API_URL || 'http://localhost:{}'}}/hash`); }}",
        other.at.port()
    );
    let run = bench.run(Request { script: &script, duration_s: 5.0, ..ORDINARY }).await;
    assert_reason(&run, "other_origin", "invalid");
    assert_eq!(run["verdict"], "invalid", "{run}");
    let sentence = text(&reason(&run, "other_origin")["text"]);
    let both = format!("% of the bytes went to {}; the target is at 127.0.0.1:", other.at);
    assert!(sentence.contains(&both), "{sentence}");
    assert!(sentence.contains("had no connection and used"), "{sentence}");
    let id = text(&run["id"]);
    let compared = bench.user.get(&format!("/api/v1/compare?runs={id}")).await.ok().json();
    assert_eq!(compared["excluded"][0]["state"], "invalid", "{compared}");
    let pages = bench.user.clone().in_browser();
    assert!(pages.get(&format!("/runs/{id}")).await.ok().text().contains(&other.at.to_string()));
    let token = bench.app.token_secret(Scope::Read, None).await;
    let shown = as_user(&bench.app, &token, &["run", "show", &id]).await.ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("the target is at 127.0.0.1:"), "{shown}");

    // A part of the load.
    let script = format!(
        "import http from 'k6/http';
         export default function () {{ http.get(__ENV.BASE_URL + '/hash'); http.get('http://{}/hash'); }}",
        other.at
    );
    let run = bench.run(Request { script: &script, duration_s: 5.0, ..ORDINARY }).await;
    assert_reason(&run, "other_origin", "invalid");
    assert!(!text(&reason(&run, "other_origin")["text"]).contains("had no connection"), "{run}");

    // Connections that are closed after each response are often gone before the kernel is asked whose they are.
    let script = format!(
        "import http from 'k6/http'; export const options = {{ noConnectionReuse: true }};
         export default function () {{ http.get('http://{}/hash'); }}",
        other.at
    );
    let run = bench.run(Request { script: &script, duration_s: 5.0, ..ORDINARY }).await;
    let found = codes(&run);
    assert!(found.iter().any(|code| code == "other_origin" || code == "target_idle"), "{found:?}");
    assert_eq!(run["verdict"], "invalid", "{run}");
}

#[tokio::test]
async fn load_on_the_target_has_no_other_origin() {
    let Some(mut bench) = Bench::start().await else { return };
    bench.context.also_reachable = vec![Ipv4Addr::LOCALHOST.into()];
    let other = Other::start().await;
    let closing = "import http from 'k6/http'; export const options = { noConnectionReuse: true };
        export default function () { http.get(__ENV.BASE_URL + '/hash'); }";
    let named = "import http from 'k6/http';
        export default function () { http.get(__ENV.BASE_URL.replace('127.0.0.1', 'localhost') + '/hash'); }";
    let logged_in = format!(
        "import http from 'k6/http'; const login = () => http.get('http://{}/hash');
         export function setup() {{ login(); }} export function teardown() {{ login(); }}
         export default function () {{ if (__ITER === 0) login(); http.get(__ENV.BASE_URL + '/hash'); }}",
        other.at
    );
    for script in [closing, named, logged_in.as_str()] {
        let run = bench.run(Request { script, duration_s: 4.0, ..ORDINARY }).await;
        assert_eq!(run["phase"], "finished", "{run}");
        let found = codes(&run);
        let of_reach = ["other_origin", "target_idle", "stalled", "retransmits"];
        assert!(!found.iter().any(|code| of_reach.contains(&code.as_str())), "{script}: {found:?}");
    }
}

#[tokio::test]
async fn a_script_without_base_url_has_a_note() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start_with(&app, "rack", |hello| hello.any_scenario = true).await;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("fixed.js");
    let fixed = "import http from 'k6/http'; export default function () { http.get('http://localhost:8081/'); }";
    std::fs::write(&path, fixed).expect("a file");
    let token = app.token_secret(Scope::Submit, None).await;
    let added = as_user(&app, &token, &["scenario", "add", path.to_str().expect("UTF-8")]).await.ok();
    assert!(added.contains("fixed: the script does not read BASE_URL"), "{added}");
    let checked = as_user(&app, &token, &["scenario", "check", "fixed"]).await.ok();
    assert!(checked.contains("the script does not read BASE_URL"), "{checked}");
    let page = user.clone().in_browser().get("/scenarios/fixed").await.ok().text();
    assert!(page.contains("The script does not read <code>BASE_URL</code>"), "{page}");
    let indirect = json!({"name": "fixed", "script": "import { url } from './url.js'; export default () => url;",
        "files": {"url.js": "export const url = __ENV['BASE_URL'];"}});
    let added = user.post("/api/v1/scenarios", &indirect).await.ok().json();
    assert_eq!(added["addresses"], Value::Null, "{added}");
    let revisions = user.get("/api/v1/scenarios/fixed/revisions").await.ok().json();
    let notes: Vec<bool> =
        revisions["revisions"].as_array().expect("revisions").iter().map(|one| one["addresses"].is_array()).collect();
    assert_eq!(notes, [false, true], "{revisions}");
    let all = user.get("/api/v1/scenarios").await.ok().json();
    assert!(all["scenarios"].as_array().expect("scenarios").iter().all(|one| one["addresses"].is_null()), "{all}");
}

/// Answers each request once it has read it, or right after its head.
const SERVER: &str = r#"
import socket, sys, threading, time
host, port = sys.argv[1].rsplit(":", 1)
answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok"
def serve(client):
    head = b""
    while b"\r\n\r\n" not in head:
        part = client.recv(4096)
        if not part: return client.close()
        head += part
    if sys.argv[2] == "whole":
        length = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
        left = int(length[0]) - len(head.split(b"\r\n\r\n", 1)[1]) if length else 0
        while left > 0:
            left -= len(client.recv(min(left, 1 << 20)))
    client.sendall(answer)
    if sys.argv[2] != "whole":
        time.sleep(0.02)
    client.close()
listener = socket.create_server((host, int(port)), backlog=64)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
"#;

#[tokio::test]
async fn bodies_that_are_not_read_show_in_the_bytes_sent() {
    if Command::new("python3").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skip("no python3");
    }
    let Some(mut bench) = Bench::start().await else { return };
    let script = "import http from 'k6/http'; const body = 'x'.repeat(8 << 20);
        export default function () { http.post(__ENV.BASE_URL + '/', body); }";
    let mut sent = Vec::new();
    for manner in ["whole", "head"] {
        let target = format!("exec python3 - $1 {manner} <<'END'\n{SERVER}\nEND");
        let run = bench.run(Request { target: &target, size: "1/256MiB", script, vus: 1, ..ORDINARY }).await;
        assert_eq!(run["phase"], "finished", "{run}");
        sent.push(run["work"]["sent_bytes_per_request"].as_f64().expect("known"));
    }
    println!("bytes per request: {sent:?}");
    assert!(sent[0] > 8e6 && sent[1] < sent[0] * 0.98, "{sent:?}");
}
