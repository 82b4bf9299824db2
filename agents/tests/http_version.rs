//! The HTTP version of the requests of a real k6, with a server that offers both.

use std::io::{BufRead, BufReader};
use std::net::Ipv4Addr;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use brewbench_agent::run::execute;
use brewbench_testing::skip;
use brewbench_wire::job::Job;
use brewbench_wire::outcome::Ended;
use brewbench_wire::run_spec::{HttpVersion, RunSpec};
use tokio_util::sync::CancellationToken;

use crate::support::{Bench, job, scenario, vus};

/// A server with HTTP/2 and HTTP/1.1. Go has one, and builds k6.
struct Https {
    program: Child,
    url: String,
}

impl Https {
    fn start(folder: &Path) -> Option<Self> {
        let (source, binary) =
            (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/https/main.go"), folder.join("https"));
        let mut go = Command::new("go");
        go.args(["build", "-o"]).arg(&binary).arg(source).env("GOTOOLCHAIN", "local");
        let Ok(built) = go.output() else {
            skip("no go");
            return None;
        };
        assert!(built.status.success(), "go build: {}", String::from_utf8_lossy(&built.stderr));
        let mut command = Command::new(binary);
        let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
        let mut url = String::new();
        BufReader::new(program.stdout.take().expect("its output")).read_line(&mut url).expect("its URL");
        Some(Self { program, url: url.trim().to_owned() })
    }
}

impl Drop for Https {
    fn drop(&mut self) {
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[tokio::test]
async fn k6_sends_requests_with_the_http_version_of_the_plan() {
    let Some(mut bench) = Bench::new("http version").await else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let Some(https) = Https::start(folder.path()) else { return };
    bench.work.also_reachable = vec![Ipv4Addr::LOCALHOST.into()];
    bench.offer("good", "");
    let script = format!(
        "import http from 'k6/http'; export const options = {{ insecureSkipTLSVerify: true }};
         export default function () {{ http.get('{}/'); }}",
        https.url
    );
    for (http_version, expected) in [(HttpVersion::Auto, "HTTP/2.0"), (HttpVersion::Http1, "HTTP/1.1")] {
        let spec = RunSpec { http_version, load: Some(vus(2, 2_000)), ..job("good").spec };
        let job = Job { scenario: scenario(&script), spec, ..job("good") };
        let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
        assert_eq!(outcome.ended, Ended::Finished, "{}", outcome.generator_log);
        let protocols = outcome.work.protocols.expect("known protocols");
        let names: Vec<&str> = protocols.keys().map(String::as_str).collect();
        assert_eq!(names, [expected], "{protocols:?}");
        assert!(protocols[expected] > 100, "{protocols:?}");
    }
}

#[tokio::test]
async fn k6_refuses_to_force_http_2() {
    let Some(bench) = Bench::new("http 2").await else { return };
    bench.offer("good", "");
    let job = Job { spec: RunSpec { http_version: HttpVersion::Http2, ..job("good").spec }, ..job("good") };
    let outcome = execute::run(&job, &bench.work, &CancellationToken::new(), |_| {}).await;
    let Ended::Failed { reason, .. } = outcome.ended else { panic!("{outcome:?}") };
    assert!(reason.contains("can't force HTTP/2"), "{reason}");
}
