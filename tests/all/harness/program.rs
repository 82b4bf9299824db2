//! The program as a separate process.

use std::{
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use brewbench_testing::skip;
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    task::JoinHandle,
    time::timeout,
};

use super::{App, PATIENCE};

/// Path of the program.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_brewbench");

/// Returns a command that runs the program without our environment variables.
pub fn brewbench(arguments: &[&str]) -> Command {
    let mut command = isolated(PROGRAM);
    command.args(arguments);
    command
}

/// Returns a command that runs a program without our environment variables.
pub fn isolated(program: &str) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("BREWBENCH_") || name == "RUST_LOG" || name == "XDG_CONFIG_HOME" {
            command.env_remove(name);
        }
    }
    command.env("HOME", "/nonexistent").env("BREWBENCH_CONFIG", "").stdin(Stdio::null()).kill_on_drop(true);
    // Other tests keep the machine busy.
    command.env("BREWBENCH_IDLE_TIMEOUT", "0s");
    command
}

/// The result of a process that ended.
#[derive(Debug)]
pub struct Output {
    /// Exit code.
    pub code: Option<i32>,
    /// Standard output.
    pub out: String,
    /// Standard error.
    pub err: String,
}

impl Output {
    /// Runs a command to its end.
    pub async fn of(command: Command) -> Self {
        Self::within(PATIENCE, command).await
    }

    /// Runs a command that takes at most a time.
    pub async fn within(limit: Duration, mut command: Command) -> Self {
        let output = timeout(limit, command.output()).await.expect("an end in time").expect("a program");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Asserts success. Returns stdout.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// Asserts success. Returns stdout as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|fault| panic!("{fault}: {out}"))
    }

    /// Asserts that it failed with this code and without output on stdout. Returns stderr.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err
    }
}

/// Runs the program with a token of a server.
pub async fn as_user(app: &App, token: &str, arguments: &[&str]) -> Output {
    let mut command = brewbench(arguments);
    command.env("BREWBENCH_URL", app.url.as_str()).env("BREWBENCH_TOKEN", token);
    Output::of(command).await
}

/// A program that runs until it is stopped.
pub struct Running {
    child: Child,
    written: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Starts the program.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a program");
        let written = Arc::new(Mutex::new(String::new()));
        let (lines, copy) = (child.stderr.take().expect("stderr"), Arc::clone(&written));
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(lines).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut written = copy.lock().unwrap_or_else(PoisonError::into_inner);
                written.push_str(&line);
                written.push('\n');
            }
        });
        Self { child, written, reader }
    }

    /// Returns what it has written to stderr.
    pub fn stderr(&self) -> String {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until stderr contains a text. Returns what follows it, up to a space or comma.
    pub async fn wait_for(&self, before: &str) -> String {
        let found = timeout(PATIENCE, async {
            loop {
                let written = self.stderr();
                if let Some((_, rest)) = written.split_once(before) {
                    return rest.split([' ', ',', '\n']).next().unwrap_or_default().to_owned();
                }
                assert!(!self.reader.is_finished(), "it ended: {written}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("it never wrote {before:?}: {}", self.stderr()))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).expect("a process");
        kill(Pid::from_raw(pid), signal).expect("a signal");
    }

    /// Waits until it has exited.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let ended = timeout(within, self.child.wait()).await;
        ended
            .unwrap_or_else(|_| panic!("it is still running after {within:?}: {}", self.stderr()))
            .expect("an exit status")
    }
}

/// What a real run needs.
pub struct Tools {
    /// Path of k6.
    pub k6: PathBuf,
    /// Folder of the bundled targets' manifests.
    pub targets: PathBuf,
}

impl Tools {
    /// Finds k6 and the bundled targets. Prints what is missing and returns `None` otherwise.
    pub fn find() -> Option<Self> {
        let targets = Path::new(PROGRAM).with_file_name("targets");
        if !targets.join("bin/rust-hyper").is_file() {
            skip(&format!("no targets in {}; scripts/install-targets.sh puts them there", targets.display()));
            return None;
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let k6 = std::env::split_paths(&path).map(|folder| folder.join("k6")).find(|file| file.is_file());
        if k6.is_none() {
            skip("no k6 in PATH; `make k6` installs it");
        }
        Some(Self { k6: k6?, targets })
    }
}
