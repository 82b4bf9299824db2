//! The program as a process: its start, errors at the start, and what it leaves when it ends or is killed.
//!
//! Without k6 or the bundled targets, tests with real runs print the reason and pass.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use brewbench::{
    app::{
        db,
        error::Error,
        local_admin::{self, LocalAdminError},
    },
    auth::{model::Scope, users::NewToken},
    live::feed::LiveFeed,
    runs::{filter::Filter, model::Run},
};
use brewbench_agent::sandbox::AGENT_MARK;
use brewbench_testing::skip;
use brewbench_wire::hex;
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::process::Command;

use crate::harness::{
    Actor, App, PATIENCE,
    program::{Output, PROGRAM, Running, Tools, brewbench},
    submit::{plan_with, reaches, retry_of, submit, text, vus},
};

/// A server and its agent have 5 s each to finish their work.
pub const GRACE: Duration = Duration::from_secs(20);

async fn serve_refused(data: &Path, more: &[&str]) -> String {
    let data = data.display().to_string();
    let arguments = [&["serve", "--data", &data, "--listen", "127.0.0.1:0"], more].concat();
    Output::of(brewbench(&arguments)).await.refused(1)
}

#[tokio::test]
async fn two_servers_do_not_share_a_data_folder() {
    let app = App::start().await;
    let output = serve_refused(app.data(), &[]).await;
    let folder = app.data().display();
    assert_eq!(
        output,
        format!(
            "brewbench: the data folder {folder} is in use by another brewbench server; stop that one or choose another \
             with --data\n"
        )
    );
}

#[tokio::test]
async fn a_data_folder_that_cannot_be_created_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, "not a folder").expect("written");
    for data in [file.clone(), file.join("below")] {
        let output = serve_refused(&data, &[]).await;
        let names = output.contains(&data.display().to_string()) && output.contains("--data");
        assert!(names && output.starts_with("brewbench: the data folder "), "{output}");
    }
}

#[tokio::test]
async fn the_log_contains_no_registration_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display().to_string();
    let mut program = Running::start(brewbench(&["serve", "--listen", "127.0.0.1:0", "--data", &data]));
    program.wait_for("no users yet; ").await;
    program.signal(Signal::SIGTERM);
    assert!(program.ended(Duration::from_secs(30)).await.success());
    let output = program.stderr();
    assert!(output.contains(&format!("`brewbench invite --data {data}`")) && !output.contains("token="), "{output}");
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = db::open(folder.path()).await.expect("a database");
    let insert = "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
        values (9999, 'from the future', true, x'00', 0)";
    sqlx::query(insert).execute(&opened.write).await.expect("a row");
    opened.close().await;
    let output = serve_refused(folder.path(), &[]).await;
    assert!(output.contains("was written by a newer brewbench (migration 9999); upgrade this program"), "{output}");
}

#[tokio::test]
async fn an_invalid_database_file_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("brewbench.db"), "not a database at all".repeat(100)).expect("written");
    let output = serve_refused(folder.path(), &[]).await;
    assert!(output.contains("brewbench.db") && output.contains("the database"), "{output}");
}

#[tokio::test]
async fn a_port_in_use_is_named_with_the_remedy() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display().to_string();
    let output = Output::of(brewbench(&["serve", "--data", &data, "--listen", &address])).await.refused(1);
    assert!(output.contains(&format!("can't listen on {address}")) && output.contains("--listen"), "{output}");
}

#[tokio::test]
async fn a_public_url_unusable_for_passkeys_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = serve_refused(folder.path(), &["--public-url", "http://127.0.0.1:8377"]).await;
    assert!(output.contains("can't be used for passkeys"), "{output}");
}

#[tokio::test]
async fn without_k6_an_agent_explains_how_to_install_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = serve_refused(folder.path(), &["--local-agent", "--k6", "/nonexistent"]).await;
    assert!(output.contains("k6 not found at /nonexistent") && output.contains("go install go.k6.io/k6@"), "{output}");
}

#[tokio::test]
async fn an_agent_with_an_unknown_key_exits_with_an_error() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let state = tempfile::tempdir().expect("a folder");
    let (url, state, k6) = (app.url.to_string(), state.path().display().to_string(), tools.k6.display().to_string());
    let arguments = ["agent", "--server", &url, "--key", "bba_wrong", "--state", &state, "--k6", &k6];
    let output = Output::of(brewbench(&arguments)).await.refused(1);
    assert!(
        output.contains("does not know this agent's key; create one with `brewbench agent-key new NAME`"),
        "{output}"
    );
}

/// The arguments of a short demo. With its targets named, it is the same beside a container engine.
fn demo<'a>(data: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let short = ["demo", "--duration", "1s", "--warm-up", "200ms", "--repeat", "1", "--data", data];
    let targets = ["--target", "rust-hyper", "--target", "go-nethttp"];
    [&short[..], &targets, &["--size", "0.25/256MiB", "--size", "0.2/128MiB"], more].concat()
}

/// Returns a command that runs the program on a terminal and copies the terminal to stderr; `None` without `script`.
fn on_terminal(arguments: &[&str]) -> Option<Command> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&paths).any(|folder| folder.join("script").is_file()) {
        skip("no `script` in PATH; it is part of util-linux");
        return None;
    }
    let quoted = |word: &&str| format!("'{word}'");
    let line = [&PROGRAM].into_iter().chain(arguments).map(quoted).collect::<Vec<_>>().join(" ");
    let mut command = Command::new("sh");
    command.args(["-c", "exec script -qefc \"stty cols 80 rows 30; $0\" /dev/null >&2", &line]);
    command.env("BREWBENCH_IDLE_TIMEOUT", "0s").env("HOME", "/nonexistent").env("TERM", "xterm").kill_on_drop(true);
    Some(command)
}

#[tokio::test]
async fn the_demo_shows_a_bar_on_a_terminal_and_a_line_per_run_elsewhere() {
    for is_terminal in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let data = folder.path().display().to_string();
        let arguments = demo(&data, &["--listen", "127.0.0.1:0"]);
        let command = if is_terminal { on_terminal(&arguments) } else { Some(brewbench(&arguments)) };
        let Some(command) = command else { continue };
        let mut program = Running::start(command);
        program.wait_for("serving ").await;
        let written = program.stderr();
        // A slow machine adds warnings.
        let lines = written.lines().map(str::trim_end).filter(|line| !line.contains(" WARN"));
        let lines: Vec<&str> = lines.take(4).collect();
        let starts = [
            "dashboard: http://",
            "register:  http://",
            "commands:  export BREWBENCH_URL=http://",
            "measuring rust-hyper and go-nethttp: 4 runs, about ",
        ];
        for (line, start) in lines.iter().zip(starts) {
            assert!(line.starts_with(start), "{written}");
        }
        assert_eq!(written.contains('━'), is_terminal, "{written}");
        assert_eq!(written.contains("3 of 4 runs finished"), !is_terminal, "{written}");
        assert!(!written.contains("INFO"), "logs: {written}");
        program.signal(Signal::SIGTERM);
        program.ended(GRACE).await;
    }
}

#[tokio::test]
async fn the_demo_needs_no_k6_prints_one_document_and_exits() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().display().to_string();
    let mut command = brewbench(&demo(&data, &["--once", "--json"]));
    // Agents of other tests confine the connections of the user whom all load generators run as.
    let path = std::env::var_os("PATH").unwrap_or_default();
    let nft = std::env::split_paths(&path).map(|folder| folder.join("nft")).find(|path| path.is_file());
    let tools = tempfile::tempdir().expect("a folder");
    if let Some(nft) = nft {
        std::os::unix::fs::symlink(nft, tools.path().join("nft")).expect("a link");
    }
    command.env("PATH", tools.path());
    let document = Output::of(command).await.json();
    assert_eq!(document.as_object().map(serde_json::Map::len), Some(3), "experiment, url, runs");
    assert!(text(&document["url"]).ends_with(&format!("/experiments/{}", text(&document["experiment"]))));
    let runs = document["runs"].as_array().expect("runs");
    assert!(runs.len() >= 4, "two targets at two sizes");
    for run in runs {
        assert_eq!(
            (&run["phase"], &run["agent"], &run["repetition"]),
            (&json!("finished"), &json!("local"), &json!(1))
        );
        assert!(matches!(run["verdict"].as_str(), Some("valid" | "suspect")), "{}", run["reasons"]);
        for field in [
            "requests",
            "rps",
            "avg_ms",
            "min_ms",
            "p50_ms",
            "p90_ms",
            "p95_ms",
            "p99_ms",
            "max_ms",
            "data_received_bytes",
            "measured_s",
        ] {
            assert!(run[field].as_f64().is_some_and(|figure| figure > 0.0), "{field} of {run}");
        }
        assert_eq!((&run["failed"], &run["error_rate"], &run["warm_up_s"]), (&json!(0), &json!(0.0), &json!(0.2)));
        assert!(run["enforced"]["cpu"].is_string() && run["enforced"]["memory"].is_string());
        assert_eq!(
            (run["target_identity"].as_str().map(str::len), &run["target_kind"]),
            (Some("code:".len() + 64), &json!("process"))
        );
        assert!(text(&run["engine"]["version"]).starts_with(char::is_numeric));
    }
    assert_clean(&folder.path().join("agent"));
}

/// A server process with a local agent that measures for a minute.
struct Measuring {
    program: Running,
    run: String,
}

impl Measuring {
    async fn start(data: &Path, tools: &Tools) -> Self {
        let program = Running::start(serve_with_agent(data, tools));
        let user = user_of(&program, data).await;
        let plan = plan_with(&json!({"targets": ["rust-hyper"], "load": vus(2, 60.0)}));
        until(&program, "the agent", async || {
            let list = user.get("/api/v1/agents").await.ok().json();
            Some(()).filter(|()| list["agents"][0]["connected"] == true)
        })
        .await;
        let run = submit(&user, &plan).await.1.remove(0);
        until(&program, "the measurement", async || {
            Some(user.run(&run).await).filter(|run| run["phase"] == "measuring")
        })
        .await;
        Self { program, run }
    }
}

/// The command of a server with a local agent.
pub fn serve_with_agent(data: &Path, tools: &Tools) -> Command {
    let mut command = brewbench(&["serve", "--local-agent", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data).arg("--k6").arg(&tools.k6);
    command
}

/// Returns an actor that may submit, once the server listens.
pub async fn user_of(program: &Running, data: &Path) -> Actor {
    let address = program.wait_for("brewbench listens on ").await;
    let name = format!("test {}", uuid::Uuid::now_v7());
    let token = NewToken { name, scope: Scope::Submit, expires_in_days: None, never_expires: false };
    // A server that starts may hold the database for a while.
    let token = until(program, "a token", async || match local_admin::token(data, &token).await {
        Err(LocalAdminError::Refused(Error::Busy { .. })) => None,
        token => Some(token.expect("a token")),
    })
    .await;
    brewbench_io::client::prepare_tls();
    Actor::anonymous(&format!("http://{address}/").parse().expect("an address")).with_secret(&token.secret)
}

/// Polls for a change in another process.
pub async fn until<T>(program: &Running, what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
    let found = tokio::time::timeout(PATIENCE, async {
        loop {
            if let Some(value) = check().await {
                return value;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    found.await.unwrap_or_else(|_| panic!("timed out waiting for {what}: {}", program.stderr()))
}

/// The process mark of the agent with this state folder.
pub fn agent_of(state: &Path) -> String {
    let state = state.canonicalize().expect("a state folder");
    hex(&Sha256::digest(state.as_os_str().as_encoded_bytes())[..6])
}

/// The running processes that an agent started.
pub fn processes_of(agent: &str) -> Vec<String> {
    let mark = format!("{AGENT_MARK}={agent}");
    let marked = |folder: &PathBuf| {
        let environment = fs::read(folder.join("environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes())
    };
    let folders = fs::read_dir("/proc").expect("/proc").flatten().map(|entry| entry.path());
    let name = |folder: PathBuf| {
        let command = fs::read_to_string(folder.join("cmdline")).unwrap_or_default();
        command.split(['\0', ' ']).next().unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned()
    };
    folders.filter(marked).map(name).collect()
}

/// The existing control groups of an agent.
fn groups_of(agent: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![(PathBuf::from("/sys/fs/cgroup"), 0)];
    while let Some((folder, depth)) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                continue;
            }
            if path.file_name().is_some_and(|name| name.to_string_lossy() == format!("brewbench-{agent}")) {
                found.push(path);
            } else if depth < 4 {
                folders.push((path, depth + 1));
            }
        }
    }
    found
}

/// Asserts that nothing is left of an agent's runs: no process, no control group, no folder.
#[track_caller]
pub fn assert_clean(state: &Path) {
    let agent = agent_of(state);
    assert_eq!(processes_of(&agent), Vec::<String>::new());
    assert_eq!(groups_of(&agent), Vec::<PathBuf>::new());
    for work in [state.join("work"), Path::new("/var/lib/brewbench-runs").join(&agent)] {
        let folders = fs::read_dir(work).into_iter().flatten().flatten().map(|entry| entry.path());
        assert_eq!(folders.collect::<Vec<_>>(), Vec::<PathBuf>::new());
    }
}

async fn stored_runs(data: &Path) -> Vec<Run> {
    let db = db::open(data).await.expect("the database");
    brewbench::runs::store::list(&db.rows, &Filter::default(), 100).await.expect("runs")
}

#[tokio::test]
async fn sigterm_during_a_run_requeues_it_and_leaves_nothing() {
    let Some(tools) = Tools::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut measuring = Measuring::start(folder.path(), &tools).await;
    let agent = agent_of(&folder.path().join("agent"));
    until(&measuring.program, "target and k6", async || Some(()).filter(|()| processes_of(&agent).len() >= 2)).await;
    measuring.program.signal(Signal::SIGTERM);
    let status = measuring.program.ended(GRACE).await;
    assert!(status.success(), "{status}: {}", measuring.program.stderr());
    let output = measuring.program.stderr();
    assert!(!output.contains("connection lost"), "{output}");
    assert_clean(&folder.path().join("agent"));
    let runs = stored_runs(folder.path()).await;
    let phases: Vec<_> = runs.iter().map(|run| (run.id.as_str(), run.phase.as_str())).collect();
    assert_eq!(phases, [(measuring.run.as_str(), "queued")]);
}

#[tokio::test]
async fn after_a_kill_the_run_is_lost_and_retried_and_nothing_is_orphaned() {
    let Some(tools) = Tools::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let mut measuring = Measuring::start(folder.path(), &tools).await;
    measuring.program.signal(Signal::SIGKILL);
    measuring.program.ended(GRACE).await;

    let mut program = Running::start(serve_with_agent(folder.path(), &tools));
    let user = user_of(&program, folder.path()).await;
    let again = until(&program, "the repetition", async || {
        let list = user.get("/api/v1/runs").await.ok().json();
        let runs = list["runs"].as_array().expect("runs").clone();
        runs.into_iter().find(|run| run["retry_of"] == measuring.run && run["phase"] == "measuring")
    });
    let again = again.await;
    let old = user.run(&measuring.run).await;
    assert_eq!((&old["phase"], &old["verdict"]), (&json!("lost"), &Value::Null));
    let marked = processes_of(&agent_of(&folder.path().join("agent")));
    assert_eq!(marked.iter().filter(|name| name.starts_with("rust-hyper")).count(), 1, "{marked:?}");

    let cancelled = user.post(&format!("/api/v1/runs/{}/cancel", text(&again["id"])), &()).await.ok().json();
    assert_eq!(cancelled["runs"][0]["phase"], "cancelled");
    program.signal(Signal::SIGTERM);
    assert!(program.ended(GRACE).await.success(), "{}", program.stderr());
    assert_clean(&folder.path().join("agent"));
}

/// Starts an agent process for the server of this test.
async fn agent(app: &App, key: &str, state: &Path, tools: &Tools) -> Running {
    agent_with(app, key, state, tools, &[]).await
}

/// Starts an agent process with more arguments.
pub async fn agent_with(app: &App, key: &str, state: &Path, tools: &Tools, more: &[&OsStr]) -> Running {
    let mut command = brewbench(&["agent", "--server", app.url.as_str(), "--key", key]);
    command.arg("--state").arg(state).arg("--k6").arg(&tools.k6).args(more);
    let agent = Running::start(command);
    let reader = app.reader().await;
    app.until("the agent", async || {
        let list = reader.get("/api/v1/agents").await.ok().json();
        Some(()).filter(|()| list["agents"][0]["connected"] == true)
    })
    .await;
    agent
}

fn rust_hyper(seconds: f64) -> Value {
    plan_with(&json!({"targets": ["rust-hyper"], "load": vus(2, seconds)}))
}

#[tokio::test]
async fn a_killed_agent_ends_its_processes_and_retries_the_run_when_it_is_back() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, key) = (app.user().await, app.key("rack").await);
    let state = tempfile::tempdir().expect("a folder");
    let mut first = agent(&app, &key, state.path(), &tools).await;
    let run = submit(&user, &rust_hyper(60.0)).await.1.remove(0);
    reaches(&app, &user, &run, "measuring").await;
    first.signal(Signal::SIGKILL);
    first.ended(GRACE).await;
    let mark = agent_of(state.path());
    until(&first, "the end of target and k6", async || Some(()).filter(|()| processes_of(&mark).is_empty())).await;

    let mut second = agent(&app, &key, state.path(), &tools).await;
    assert_eq!(reaches(&app, &user, &run, "lost").await["agent"], "rack");
    let again = app.until("the repetition", async || retry_of(&user, &run).await).await;
    let again = text(&again["id"]);
    reaches(&app, &user, &again, "measuring").await;
    // On SIGTERM, it returns the run to the queue.
    second.signal(Signal::SIGTERM);
    assert!(second.ended(GRACE).await.success(), "{}", second.stderr());
    reaches(&app, &user, &again, "queued").await;
    assert_clean(state.path());
}

#[tokio::test]
async fn a_run_continues_while_the_server_is_down_and_its_result_arrives() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, key) = (app.user().await, app.key("rack").await);
    let state = tempfile::tempdir().expect("a folder");
    let mut agent = agent(&app, &key, state.path(), &tools).await;
    let run = submit(&user, &rust_hyper(2.0)).await.1.remove(0);
    reaches(&app, &user, &run, "measuring").await;
    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| config.listen.set_port(port)).await;
    let done = reaches(&app, &user, &run, "finished").await;
    assert!(done["requests"].as_u64() > Some(0) && user.count_runs().await == 1, "{done}");
    agent.signal(Signal::SIGTERM);
    assert!(agent.ended(GRACE).await.success(), "{}", agent.stderr());
    assert_clean(state.path());
    let spool = fs::read_dir(state.path().join("spool")).expect("a spool").flatten();
    let waiting: Vec<_> = spool.map(|entry| entry.file_name()).filter(|name| name != "aside").collect();
    assert!(waiting.is_empty(), "{waiting:?}");
}

/// The files that a kernel shows for two processors.
struct Processors(tempfile::TempDir);

impl Processors {
    const FILES: [&str; 3] = ["cpufreq/policy0/scaling_governor", "cpufreq/policy1/scaling_governor", "cpufreq/boost"];
    const BEFORE: [&str; 3] = ["powersave", "powersave", "1"];
    const TUNED: [&str; 3] = ["performance", "performance", "0"];

    fn new() -> Self {
        let processors = Self(tempfile::tempdir().expect("a folder"));
        for (file, value) in Self::FILES.iter().zip(Self::BEFORE) {
            let path = processors.path(file);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, value).expect("a file");
        }
        processors
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join("devices/system/cpu").join(file)
    }

    fn settings(&self) -> Vec<String> {
        Self::FILES.map(|file| fs::read_to_string(self.path(file)).expect("a setting")).to_vec()
    }
}

#[tokio::test]
async fn cpu_tuning_is_undone_however_the_agent_ends() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, key) = (app.user().await, app.key("rack").await);
    let (state, processors) = (tempfile::tempdir().expect("a folder"), Processors::new());
    let tuning = [OsStr::new("--cpu-tuning"), OsStr::new("--sysfs"), processors.0.path().as_os_str()];

    let mut first = agent_with(&app, &key, state.path(), &tools, &tuning).await;
    assert_eq!(processors.settings(), Processors::BEFORE, "nothing runs yet");
    let run = submit(&user, &rust_hyper(60.0)).await.1.remove(0);
    reaches(&app, &user, &run, "measuring").await;
    assert_eq!(processors.settings(), Processors::TUNED);
    first.signal(Signal::SIGTERM);
    first.ended(GRACE).await;
    assert_eq!(processors.settings(), Processors::BEFORE);

    // After a kill, a command that systemd runs restores the settings, or the next start of the agent with any flags.
    let mut second = agent_with(&app, &key, state.path(), &tools, &tuning).await;
    let at_work = async |run: &str| reaches(&app, &user, run, "measuring").await;
    at_work(&run).await;
    assert_eq!(processors.settings(), Processors::TUNED);
    second.signal(Signal::SIGKILL);
    second.ended(GRACE).await;
    assert_eq!(processors.settings(), Processors::TUNED);
    let mut command = brewbench(&["agent", "restore", "--state"]);
    command.arg(state.path());
    Output::of(command).await.ok();
    assert_eq!(processors.settings(), Processors::BEFORE);

    let mut third = agent_with(&app, &key, state.path(), &tools, &tuning).await;
    let again = app.until("the repetition", async || retry_of(&user, &run).await).await;
    at_work(&text(&again["id"])).await;
    third.signal(Signal::SIGKILL);
    third.ended(GRACE).await;
    assert_eq!(processors.settings(), Processors::TUNED);
    let mut fourth = agent(&app, &key, state.path(), &tools).await;
    let back = async || Some(()).filter(|()| processors.settings() == Processors::BEFORE);
    until(&fourth, "the settings restored by the next agent", back).await;
    fourth.signal(Signal::SIGTERM);
    assert!(fourth.ended(GRACE).await.success(), "{}", fourth.stderr());
    assert_clean(state.path());
}

#[tokio::test]
async fn an_agent_without_cpu_settings_refuses_cpu_tuning_at_the_start() {
    let Some(tools) = Tools::find() else { return };
    let (state, nothing) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut command = brewbench(&["agent", "--server", "http://127.0.0.1:9", "--key", "bba_x", "--cpu-tuning"]);
    command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).arg("--sysfs").arg(nothing.path());
    let output = Output::of(command).await.refused(1);
    assert!(output.contains("start the agent without --cpu-tuning"), "{output}");
    let mut command = brewbench(&["agent", "restore", "--state"]);
    command.arg(state.path());
    let done = Output::of(command).await;
    assert_eq!(done.code, Some(0));
}

#[tokio::test]
async fn watching_a_run_across_a_server_restart_prints_every_second_once() {
    let Some(tools) = Tools::find() else { return };
    let app = App::start().await;
    let (user, key) = (app.user().await, app.key("rack").await);
    let state = tempfile::tempdir().expect("a folder");
    let mut agent = agent(&app, &key, state.path(), &tools).await;
    let plan = plan_with(&json!({"targets": ["rust-hyper"], "load": vus(2, 4.0), "warm_up_s": 1.5}));
    let run = submit(&user, &plan).await.1.remove(0);
    let mut watch = brewbench(&["run", "watch", "--json", &run]);
    watch.env("BREWBENCH_URL", app.url.as_str()).env("BREWBENCH_TOKEN", user.secret());
    let watching = tokio::spawn(Output::of(watch));
    let id = run.parse().expect("an id");
    app.until("a second of the measurement", async || app.state.memory::<LiveFeed>().series(id)?.measured).await;
    let port = app.url.port().expect("a port");
    let app = App::on(app.stop().await, |config| config.listen.set_port(port)).await;
    let out = watching.await.expect("no panic").ok();
    let lines: Vec<Value> = out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let done = lines.last().expect("the run");
    assert_eq!((&done["kind"], &done["id"], &done["phase"]), (&json!("run"), &json!(run), &json!("finished")));
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).collect::<Vec<_>>();
    for kind in ["second", "usage"] {
        let times: Vec<f64> = of(kind).iter().filter_map(|point| point["at_s"].as_f64()).collect();
        assert!(times.len() >= 5 && times.is_sorted_by(|one, next| one < next), "{kind}: {times:?}");
    }
    // A later second with the same start replaces the previous one.
    let measured = of("second").into_iter().filter(|second| second["phase"] == "measuring");
    let by_start = measured.map(|second| {
        let start_s = second["at_s"].as_f64().unwrap_or_default() - second["length_s"].as_f64().unwrap_or_default();
        (format!("{start_s:.3}"), second["requests"].as_u64().unwrap_or_default())
    });
    let requests: u64 = by_start.collect::<std::collections::BTreeMap<_, _>>().into_values().sum();
    assert_eq!(json!(requests), done["requests"], "{out}");
    agent.signal(Signal::SIGTERM);
    assert!(agent.ended(GRACE).await.success(), "{}", agent.stderr());
    drop(app);
}
