//! Runs are repetitions of each other only if they measured the same code.

use std::path::Path;

use brewbench_wire::{
    outcome::Outcome,
    target::{Code, Identity},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Agent, App,
        agent::outcome,
        program::{Running, Tools, as_user},
        submit::{plan_with, submit},
        summaries::good,
    },
    processes::{serve_with_agent, until, user_of},
};

const PYTHON: &str = "/usr/bin/python3";

/// A server in Python that answers what its module says.
const APP: &str = r#"
import http.server, sys, answer

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self):
        self.send_response(200)
        self.send_header("content-length", str(len(answer.BODY)))
        self.end_headers()
        self.wfile.write(answer.BODY)
        self.wfile.flush()

    def log_message(self, *words):
        pass

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"#;

/// What the target of a run is identified by.
#[derive(Clone, Copy)]
enum Measured {
    /// Of an agent of an earlier version: its program.
    Program,
    /// All of its code.
    Code(&'static str),
    /// A part of its code.
    Part(&'static str),
}

struct Site {
    app: App,
    user: Actor,
    agent: Agent,
}

impl Site {
    async fn start() -> Self {
        let app = App::start().await;
        let (user, agent) = (app.user().await, Agent::start(&app, "rack").await);
        Self { app, user, agent }
    }

    /// Runs an experiment with two repetitions. Returns its id and those of its runs.
    async fn measure(&mut self, measured: Measured) -> (String, Vec<String>) {
        let (experiment, runs) = submit(&self.user, &plan_with(&json!({"repetitions": 2}))).await;
        for _ in &runs {
            let job = self.agent.job().await;
            let mut outcome = outcome(&job, &good());
            let code = |digits: &str, unknown: Option<&str>| {
                Some(Code { sha256: digits.repeat(32), unknown: unknown.map(str::to_owned) })
            };
            let code = match measured {
                Measured::Program => None,
                Measured::Code(digits) => {
                    outcome.environment.insert("target.file.app.py".to_owned(), digits.repeat(6));
                    code(digits, None)
                }
                Measured::Part(digits) => {
                    outcome.environment.insert("target.code_unknown".to_owned(), "it starts x".to_owned());
                    code(digits, Some("it starts x"))
                }
            };
            let target = Some(Identity::Process { sha256: "ab".repeat(32), code });
            self.agent.end(Outcome { target, ..outcome }).await;
        }
        (experiment, runs)
    }

    /// Returns how many runs each column of a comparison of experiments has.
    async fn columns(&self, experiments: &[&str]) -> Vec<usize> {
        let path = format!("/api/v1/compare?experiments={}", experiments.join(","));
        let compared = self.user.get(&path).await.ok().json();
        let cells = compared["rows"][0]["cells"].as_array().expect("cells");
        cells.iter().map(|cell| cell["runs"].as_array().map_or(0, Vec::len)).collect()
    }

    /// Returns the codes of a run's reasons about its code.
    async fn reasons(&self, run: &str) -> Vec<String> {
        let run = self.user.run(run).await;
        let codes = run["reasons"].as_array().expect("reasons").iter().map(|reason| &reason["code"]);
        codes.filter_map(Value::as_str).filter(|code| code.starts_with("code_")).map(str::to_owned).collect()
    }
}

#[tokio::test]
async fn changed_code_is_compared_with_the_old_and_not_pooled() {
    let mut site = Site::start().await;
    let (first, old) = site.measure(Measured::Code("aa")).await;
    let (second, new) = site.measure(Measured::Code("bb")).await;
    let (third, again) = site.measure(Measured::Code("bb")).await;
    assert_eq!(site.columns(&[&second, &third]).await, [4], "equal code");
    assert_eq!(site.columns(&[&first, &second, &third]).await, [2, 4]);
    assert_eq!(site.reasons(&old[0]).await, Vec::<String>::new());
    assert_eq!(site.reasons(&new[0]).await, ["code_changed"]);
    assert_eq!([site.reasons(&new[1]).await, site.reasons(&again[0]).await], [const { Vec::<String>::new() }; 2]);
    assert_eq!(site.user.run(&new[0]).await["verdict"], "valid", "a note");

    let page = site.app.user().await.in_browser();
    let compared = page.get(&format!("/compare?experiments={first},{second}")).await.ok().text();
    assert!(compared.contains("Runs of one version are no repetitions of each other."), "{compared}");
    assert!(compared.contains("fast (code aaaaaaaa)") && compared.contains("fast (code bbbbbbbb)"), "{compared}");
    let command = async |arguments: &[&str]| as_user(&site.app, site.user.secret(), arguments).await.ok();
    let text = command(&["run", "environment", &old[0], &new[0]]).await;
    assert!(text.contains("file app.py") && text.contains("relevant difference"), "{text}");
    let text = command(&["run", "show", &new[0]]).await;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("the code has changed since run") && text.contains("the version is still 1.0"), "{text}");

    let gate =
        format!("/api/v1/compare/gate?baseline={first},{second}&candidate={third}&fail_on=rps%3C-5%25&accept=setups");
    let gate = site.user.get(&gate).await.ok().json();
    assert_eq!(gate["outcome"], "cannot_say");
    let notes = gate["notes"].to_string();
    assert!(
        notes.contains("setups differ: baseline code aaaaaaaa and code bbbbbbbb, candidate code bbbbbbbb; accepted"),
        "{notes}"
    );
    assert_eq!(gate["title"].as_str().map(|title| title.contains(" against ")), Some(true), "{gate}");
}

#[tokio::test]
async fn runs_of_an_earlier_agent_are_not_pooled_and_show_no_change() {
    let mut site = Site::start().await;
    let (before, _) = site.measure(Measured::Program).await;
    let (also_before, _) = site.measure(Measured::Program).await;
    let (after, runs) = site.measure(Measured::Code("aa")).await;
    assert_eq!(site.columns(&[&before, &also_before]).await, [4]);
    assert_eq!(site.columns(&[&before, &after]).await, [2, 2]);
    assert_eq!(site.reasons(&runs[0]).await, Vec::<String>::new());
}

#[tokio::test]
async fn code_that_is_partly_known_is_the_same_within_one_experiment_only() {
    let mut site = Site::start().await;
    let (first, runs) = site.measure(Measured::Part("aa")).await;
    let (second, _) = site.measure(Measured::Part("aa")).await;
    assert_eq!(site.columns(&[&first]).await, [2]);
    assert_eq!(site.columns(&[&first, &second]).await, [2, 2]);
    assert_eq!(site.reasons(&runs[1]).await, ["code_not_identified"]);
}

/// A real agent, k6 and Python: another module beside the script is other code, another time of it is not.
#[tokio::test]
async fn an_edited_module_is_other_code() {
    let Some(tools) = Tools::find().filter(|_| Path::new(PYTHON).exists()) else { return };
    let (data, manifests) = (tempfile::tempdir().expect("a folder"), brewbench_testing::public_folder());
    let write = |name: &str, text: &str| std::fs::write(manifests.path().join(name), text).expect("a file");
    write("app.py", APP);
    write("answer.py", "BODY = b'one'\n");
    let command = format!("command = [\"{PYTHON}\", \"app.py\", \"{{port}}\"]");
    write("app.toml", &format!("name = \"app\"\nversion = \"1\"\n{command}\n[ready]\npath = \"/\"\n"));
    let mut command = serve_with_agent(data.path(), &tools);
    command.arg("--manifests").arg(manifests.path());
    let site = Running::start(command);
    let user = user_of(&site, data.path()).await;
    until(&site, "the target", async || {
        let list = user.get("/api/v1/targets").await.ok().json();
        (list["targets"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let measure = async || {
        let plan = plan_with(&json!({"targets": ["app"], "scenario": "get", "warm_up_s": 0}));
        let (experiment, runs) = submit(&user, &plan).await;
        let run = until(&site, "the end of a run", async || {
            Some(user.run(&runs[0]).await).filter(|run| !run["finished_at_ms"].is_null())
        })
        .await;
        assert_eq!(run["phase"], "finished", "{run}");
        (experiment, run)
    };
    let (first, _) = measure().await;
    write("answer.py", "BODY = b'two'\n");
    let (second, run) = measure().await;
    let file = std::fs::File::options().write(true).open(manifests.path().join("answer.py")).expect("a file");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a time");
    let (third, _) = measure().await;
    let path = format!("/api/v1/compare?experiments={first},{second},{third}");
    let compared = user.get(&path).await.ok().json();
    let cells = compared["rows"][0]["cells"].as_array().expect("cells");
    let mut runs: Vec<usize> = cells.iter().map(|cell| cell["runs"].as_array().map_or(0, Vec::len)).collect();
    runs.sort_unstable();
    assert_eq!(runs, [1, 2], "{compared}");
    assert!(run["reasons"].to_string().contains("code_changed"), "{run}");
    let facts = user.get(&format!("/api/v1/runs/{}/environment", run["id"].as_str().expect("an id"))).await.ok().json();
    assert!(facts["facts"]["target.file.answer.py"].is_string(), "{facts}");
}
