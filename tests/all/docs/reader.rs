//! A reader of the docs who types every command: one working folder, one home, and the site that the docs start.
//!
//! The working folder is also the manifests folder of the agent, as for the reader who adds a target of their own.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    time::Duration,
};

use brewbench::{
    app::{db, local_admin},
    auth::{
        model::{Role, Scope},
        store::{User, insert_user},
        users::NewToken,
    },
};
use brewbench_io::client::prepare_tls;
use brewbench_testing::{Guest, Image, Podman};
use brewbench_wire::{now_ms, scenario::REQUESTS};
use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{process::Command, time::sleep};

use super::snippets::{self, missing_line, words};
use crate::harness::{
    Actor, PATIENCE,
    program::{Output, PROGRAM, Running, Tools, isolated},
    repository::Repository,
    root,
    submit::{repetitions, text as text_of},
};
use crate::url_targets;

/// The longest a command may take: the experiments that it waits for.
const LIMIT: Duration = Duration::from_mins(10);

/// A program that keeps running.
struct Background {
    command: String,
    program: Running,
}

/// A reader who follows the docs from the first page to the last.
pub struct Reader {
    folder: TempDir,
    tools: Tools,
    port: u16,
    hooks: String,
    /// A server that already runs, and its base URL.
    staging: (Running, String),
    /// Where its containers run.
    podman: Podman,
    /// An administrator, once the server runs.
    admin: Option<Actor>,
    server: Option<Background>,
    /// The agent of the docs, and those of a chapter.
    agents: Vec<Background>,
    /// What earlier commands printed.
    printed: String,
    /// Commands that waited for an experiment, and its id.
    measured: Vec<(String, String)>,
    /// The runs of the first one, those of its targets in turn.
    runs: Vec<String>,
    /// The newest experiment of the chapter.
    newest: Option<String>,
    /// A run and a cell that the chapter's placeholders mean.
    change: Option<(String, String)>,
}

impl Reader {
    /// Prepares the folders. Returns `None` if a program is missing that a real run needs.
    pub async fn new() -> Option<Self> {
        let tools = Tools::find()?;
        let folder = brewbench_testing::public_folder();
        let (home, here) = (folder.path().join("home"), folder.path().join("work"));
        fs::create_dir_all(home).expect("a folder");
        copy(&tools.targets, &here);
        let repository = root();
        std::os::unix::fs::symlink(repository.join("samples"), here.join("samples")).expect("a link");
        copy(&repository.join("tests/fixtures/k6"), &here.join("results"));
        fs::write(folder.path().join("yes"), "y\n").expect("a file");
        let free = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = free.local_addr().expect("an address").port();
        let hooks = webhook_receiver().await;
        let staging = url_targets::serve(&tools.targets).await;
        let podman = Podman::start()?;
        Guest::build()?.install(&here.join("run-shop-vm"));
        podman.load("shop:1.4", &Image::of(&tools.targets.join("bin/rust-hyper"), &[]));
        let (admin, server, agents, change) = (None, None, Vec::new(), None);
        let (printed, measured, runs, newest) = (String::new(), Vec::new(), Vec::new(), None);
        Some(Self {
            folder,
            tools,
            port,
            hooks,
            staging,
            podman,
            admin,
            server,
            agents,
            printed,
            measured,
            runs,
            newest,
            change,
        })
    }

    fn here(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// The data folder of the site.
    fn data(&self) -> PathBuf {
        self.folder.path().join("var/lib/brewbench")
    }

    fn admin(&self) -> &Actor {
        self.admin.as_ref().expect("the server of the docs runs")
    }

    /// A command in the reader's shell.
    fn shell(&self, text: &str) -> Command {
        let mut command = isolated("bash");
        let folder = |file: &Path| file.parent().expect("a folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let path = format!("{}:{}:{path}", folder(Path::new(PROGRAM)), folder(&self.tools.k6));
        let answers = fs::File::open(self.folder.path().join("yes")).expect("a file");
        command.args(["-euo", "pipefail", "-c", text]).current_dir(self.here()).stdin(answers);
        command.env("PATH", path).env("HOME", self.folder.path().join("home")).env("BREWBENCH_LISTEN", "127.0.0.1:0");
        command.env("BREWBENCH_MANIFESTS", self.here()).env("BREWBENCH_WEBHOOKS_TO", "loopback");
        command.env("BREWBENCH_CONTAINER_ENGINE", self.podman.socket());
        command.env("BREWBENCH_STATE", self.folder.path().join("var/lib/brewbench-agent"));
        if let Some(admin) = self.admin.as_ref().filter(|_| text.contains("brewbench login")) {
            // The command prompts for the token on a terminal only.
            command.env("BREWBENCH_TOKEN", admin.secret());
        }
        command
    }

    /// Replaces the addresses and folders of the docs.
    fn placed(&self, text: &str) -> String {
        text.replace("https://bench.example.com", &format!("http://localhost:{}", self.port))
            .replace("0.0.0.0:8377", &format!("127.0.0.1:{}", self.port))
            .replace("https://hooks.example.com", &self.hooks)
            .replace("https://staging.example.com", &self.staging.1)
            .replace("ghcr.io/acme/", "localhost/")
            .replace("10.0.0.5", "127.0.0.2")
            .replace("/var/lib/", &format!("{}/var/lib/", self.folder.path().display()))
            .replace("/srv/git/", &format!("{}/srv/git/", self.folder.path().display()))
    }

    /// Replaces what the docs leave to the reader: addresses, folders and words in capitals.
    async fn completed(&self, text: &str) -> String {
        let text = self.placed(text);
        let mut runs = if text.contains("RUN") { self.runs(&text).await } else { Vec::new() }.into_iter();
        let (mut full, mut word) = (String::new(), String::new());
        for letter in text.chars().chain(['\n']) {
            if letter.is_alphanumeric() || letter == '_' {
                word.push(letter);
                continue;
            }
            let value = match word.as_str() {
                "RUN" => runs.next().ok_or("no run"),
                "EXPERIMENT" => self.experiment().ok_or("no experiment"),
                "CELL" => Ok(self.cell().await),
                "KEY" => self.printed_secret("bbo_").ok_or("no key"),
                "TOKEN" => Ok(self.admin().secret().to_owned()),
                _ => Ok(word.clone()),
            };
            full.push_str(&value.unwrap_or_else(|lack| panic!("{lack} for {text}")));
            full.push(letter);
            word.clear();
        }
        full.trim_end().to_owned()
    }

    /// The newest experiment of the chapter, or the first of all.
    fn experiment(&self) -> Option<String> {
        self.newest.clone().or_else(|| Some(self.measured.first()?.1.clone()))
    }

    /// The newest secret of a kind that a command printed.
    fn printed_secret(&self, prefix: &str) -> Option<String> {
        self.printed.split_whitespace().rfind(|word| word.starts_with(prefix)).map(str::to_owned)
    }

    /// The runs that `RUN` stands for in a command, in this order.
    async fn runs(&self, text: &str) -> Vec<String> {
        match (&self.change, &self.newest) {
            (Some((_, run)), _) => vec![run.clone()],
            (None, Some(experiment)) if text.contains("queue next") => {
                let runs = self.runs_of(experiment).await;
                runs.iter().filter(|run| run["phase"] == "queued").map(|run| text_of(&run["id"])).collect()
            }
            (None, Some(experiment)) if text.contains("profile download") => {
                let runs = self.runs_of(experiment).await;
                runs.iter().filter(|run| run["profiled"] == true).map(|run| text_of(&run["id"])).collect()
            }
            _ => self.runs.clone(),
        }
    }

    async fn runs_of(&self, experiment: &str) -> Vec<Value> {
        let shown = self.admin().get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
        shown["runs"].as_array().expect("runs").clone()
    }

    async fn cell(&self) -> String {
        if let Some((cell, _)) = &self.change {
            return cell.clone();
        }
        let list = self.admin().get("/api/v1/trends?target=rust-hyper").await.ok().json();
        text_of(&list["trends"][0]["cell"]["id"])
    }

    /// Does one step. Returns what is wrong with it.
    pub async fn run(&mut self, step: &snippets::Command) -> Result<(), String> {
        let command = self.completed(&step.text).await;
        let first: Vec<String> = words(&command).into_iter().take(3).collect();
        match first.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            ["brewbench", "serve", ..] => self.serve(command).await,
            ["brewbench", "agent", flag] if flag.starts_with("--") => self.agent(command).await,
            ["brewbench", "restore", ..] => return self.restore(&command, step).await,
            _ => return self.finish(&command, step).await,
        }
        Ok(())
    }

    /// Runs a command to its end.
    async fn finish(&mut self, command: &str, step: &snippets::Command) -> Result<(), String> {
        let is_wait = command.contains("--wait");
        if let Some((_, experiment)) = self.measured.iter().find(|(earlier, _)| is_wait && earlier == command) {
            self.newest = Some(experiment.clone());
            return Ok(());
        }
        let Output { code, out, err } = Output::within(LIMIT, self.shell(&format!("{command} 2>&1"))).await;
        let output = out + &err;
        let code = code.unwrap_or(-1);
        if !step.codes.contains(&code) {
            return Err(format!("exits {code}, not {:?}\n{output}", step.codes));
        }
        let shown: Vec<String> = step.output.iter().map(|line| self.placed(line)).collect();
        if let Some(line) = missing_line(&shown, &output) {
            return Err(format!("does not print {line:?} there\n{output}"));
        }
        self.printed.push_str(&output);
        if command.starts_with("brewbench run new ") {
            let list = self.admin().get("/api/v1/experiments?limit=1").await.ok().json();
            let id = text_of(&list["experiments"][0]["experiment"]["id"]);
            if is_wait {
                if self.runs.is_empty() {
                    let mut runs = self.runs_of(&id).await;
                    runs.sort_by_key(|run| (run["repetition"].as_u64(), text_of(&run["target"])));
                    self.runs = runs.iter().map(|run| text_of(&run["id"])).collect();
                }
                self.measured.push((command.to_owned(), id.clone()));
            }
            self.newest = Some(id);
        }
        Ok(())
    }

    /// Starts a server; the first is the site of all chapters.
    async fn serve(&mut self, command: String) {
        let program = Running::start(self.shell(&format!("exec {command}")));
        program.wait_for("brewbench listens on ").await;
        if self.admin.is_some() && self.server.is_some() {
            self.agents.push(Background { command, program });
            return;
        }
        if self.admin.is_none() {
            prepare_tls();
            let token =
                NewToken { name: "docs".to_owned(), scope: Scope::Admin, expires_in_days: None, never_expires: false };
            let token = local_admin::token(&self.data(), &token).await.expect("a token");
            let address = format!("http://localhost:{}/", self.port).parse().expect("an address");
            self.admin = Some(Actor::anonymous(&address).with_secret(&token.secret));
        }
        self.server = Some(Background { command, program });
    }

    /// Starts an agent. Without a key, it is the one that runs already, started again with other flags.
    async fn agent(&mut self, command: String) {
        if !command.contains("--key") {
            let mut old = self.agents.remove(0);
            stop(&mut old.program).await;
        }
        let program = Running::start(self.shell(&format!("exec {command}")));
        program.wait_for(" connected ").await;
        self.agents.insert(0, Background { command, program });
    }

    /// Stops the site while a backup is restored, as the docs say.
    async fn restore(&mut self, command: &str, step: &snippets::Command) -> Result<(), String> {
        let Some(mut site) = self.server.take() else { return Err("no server to stop".to_owned()) };
        stop(&mut site.program).await;
        let result = self.finish(command, step).await;
        self.serve(site.command).await;
        result
    }

    /// Saves a snippet as a file. Waits until the agent offers the target that it describes.
    pub async fn save(&self, name: &str, content: &str) {
        let path = self.here().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, self.placed(content)).expect("a file");
        let Some(target) = name.strip_suffix(".toml").filter(|_| !name.ends_with(REQUESTS)) else { return };
        self.until("the new target", async || self.offers(target).await.filter(|is| *is)).await;
    }

    /// Whether the agent offers a target; unknown while it is not connected.
    async fn offers(&self, target: &str) -> Option<bool> {
        let list = self.admin().get("/api/v1/agents").await.ok().json();
        let agent = list["agents"].as_array()?.iter().find(|agent| agent["connected"] == true)?;
        Some(agent["about"]["targets"].as_array()?.iter().any(|name| name == target))
    }

    /// Prepares what a chapter takes for granted.
    pub async fn begin(&mut self, chapter: &str) {
        (self.newest, self.change) = (None, None);
        match chapter {
            "docs/guide/targets.md" => {
                // A manifest that was there for a while.
                let manifest = fs::read_to_string(self.here().join("go-nethttp.toml")).expect("a manifest");
                self.save("old-server.toml", &manifest.replace("\"go-nethttp\"", "\"old-server\"")).await;
                fs::remove_file(self.here().join("old-server.toml")).expect("a manifest");
                self.until("the target to be gone", async || self.offers("old-server").await.filter(|is| !is)).await;
            }
            "docs/guide/trends.md" => {
                repetitions(self.admin(), "old-server", "1", 10, 1.0).await;
                let slower = repetitions(self.admin(), "old-server", "2", 10, 0.5).await;
                let list = self.admin().get("/api/v1/trends?target=old-server").await.ok().json();
                let cells = list["trends"].as_array().expect("trends");
                let cell = cells.iter().max_by_key(|one| one["runs"].as_u64()).expect("a cell");
                self.change = Some((text_of(&cell["cell"]["id"]), slower[0].clone()));
            }
            "docs/guide/pull-requests.md" => {
                let repository = Repository::new(&self.folder.path().join("srv/git/api.git"), 10.0);
                repository.pull_request(7, "Sleep for longer", 40.0);
            }
            "docs/guide/distributed.md" => {
                for name in ["gen-1", "gen-2"] {
                    let key = self.admin().post("/api/v1/agent-keys", &json!({"name": name})).await.ok().json();
                    let state = self.folder.path().join(name).display().to_string();
                    let (url, key) = (self.port, text_of(&key["secret"]));
                    let command =
                        format!("brewbench agent --server http://localhost:{url} --key {key} --state {state}");
                    let program = Running::start(self.shell(&format!("exec {command}")));
                    program.wait_for(" connected ").await;
                    self.agents.push(Background { command, program });
                }
            }
            "docs/guide/operations.md" => {
                let db = db::open(&self.data()).await.expect("a database");
                let ada = User { id: "ada".to_owned(), name: "ada".to_owned(), role: Role::Member };
                let mut connection = db.write.acquire().await.expect("a connection");
                insert_user(&mut connection, &ada, now_ms()).await.expect("a user");
            }
            _ => {}
        }
    }

    /// Ends what a chapter started. Experiments that it does not wait for must have begun.
    pub async fn end(&mut self) {
        while let Some(experiment) = self.unfinished().await {
            let runs = self.until("the first run to begin", async || {
                let runs = self.runs_of(&experiment).await;
                let waits = |run: &Value| run["phase"] == "queued" || run["phase"] == "preparing";
                (!runs.iter().all(waits)).then_some(runs)
            });
            for run in runs.await {
                assert!(run["phase"] != "failed" && run["phase"] != "lost", "{run}");
            }
            self.admin().post(&format!("/api/v1/experiments/{experiment}/cancel"), &()).await.ok();
        }
        while self.agents.len() > 1 {
            stop(&mut self.agents.pop().expect("more than one").program).await;
        }
    }

    /// Returns the oldest experiment with runs that have not ended.
    async fn unfinished(&self) -> Option<String> {
        let list = self.admin.as_ref()?.get("/api/v1/experiments?limit=50").await.ok().json();
        let all = list["experiments"].as_array().expect("experiments").clone();
        let open = all.iter().rev().find(|one| one["progress"]["ended"] != one["progress"]["total"])?;
        Some(text_of(&open["experiment"]["id"]))
    }

    /// Stops agent and server, which must exit cleanly.
    pub async fn finish_all(mut self) {
        for mut one in self.agents.drain(..).chain(self.server.take()) {
            stop(&mut one.program).await;
        }
    }

    async fn until<T>(&self, what: &str, mut check: impl AsyncFnMut() -> Option<T>) -> T {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                if let Some(found) = check().await {
                    return found;
                }
                sleep(Duration::from_millis(50)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("timed out waiting for {what}"))
    }
}

async fn stop(program: &mut Running) {
    program.signal(Signal::SIGTERM);
    let status = program.ended(PATIENCE).await;
    assert!(status.success(), "{status}: {}", program.stderr());
}

/// Copies a folder of files and folders.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &name);
        } else {
            fs::copy(&path, &name).expect("a file");
        }
    }
}

/// Starts a server that accepts every webhook. Returns its address.
async fn webhook_receiver() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    let app = axum::Router::new().fallback(async || axum::http::StatusCode::NO_CONTENT);
    tokio::spawn(async move { axum::serve(listener, app).await.expect("it serves") });
    address
}
