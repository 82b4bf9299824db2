//! The program itself as a process of its own.

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

/// The program's file.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_brewbench");

/// The program with arguments and nothing of ours in its environment.
pub fn brewbench(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    for (name, _) in std::env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        if name.starts_with("BREWBENCH_") || name == "RUST_LOG" || name == "XDG_CONFIG_HOME" {
            command.env_remove(name);
        }
    }
    command.args(arguments).env("HOME", "/nonexistent").stdin(Stdio::null()).kill_on_drop(true);
    // Other tests make their noise meanwhile.
    command.env("BREWBENCH_QUIET_WAIT", "0s");
    command
}

/// What a process that ended left.
#[derive(Debug)]
pub struct Done {
    /// Its exit code.
    pub code: Option<i32>,
    /// What it said on stdout.
    pub out: String,
    /// What it said on stderr.
    pub err: String,
}

impl Done {
    /// Runs a command to its end.
    pub async fn of(mut command: Command) -> Self {
        let output = timeout(PATIENCE, command.output()).await.expect("an end in time").expect("a program");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// It did what it was asked for; gives stdout.
    #[track_caller]
    pub fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.err);
        self.out
    }

    /// It did what it was asked for; gives stdout as JSON.
    #[track_caller]
    pub fn json(self) -> serde_json::Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|fault| panic!("{fault}: {out}"))
    }

    /// It ended with this code, said nothing on stdout and a sentence on stderr, which this gives.
    #[track_caller]
    pub fn refused(self, code: i32) -> String {
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self.err
    }
}

/// Runs the program with a token for a server.
pub async fn as_user(app: &App, token: &str, arguments: &[&str]) -> Done {
    let mut command = brewbench(arguments);
    command.env("BREWBENCH_URL", app.url.as_str()).env("BREWBENCH_TOKEN", token);
    Done::of(command).await
}

/// A program that goes on until it is told to end.
pub struct Running {
    child: Child,
    said: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Running {
    /// Starts it.
    pub fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("a program");
        let said = Arc::new(Mutex::new(String::new()));
        let (lines, copy) = (child.stderr.take().expect("stderr"), Arc::clone(&said));
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(lines).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let mut said = copy.lock().unwrap_or_else(PoisonError::into_inner);
                said.push_str(&line);
                said.push('\n');
            }
        });
        Self { child, said, reader }
    }

    /// What it said on stderr until now.
    pub fn said(&self) -> String {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for a line on stderr and gives what follows `before` in it, up to a space or comma.
    pub async fn says(&self, before: &str) -> String {
        let found = timeout(PATIENCE, async {
            loop {
                let said = self.said();
                if let Some((_, rest)) = said.split_once(before) {
                    return rest.split([' ', ',', '\n']).next().unwrap_or_default().to_owned();
                }
                assert!(!self.reader.is_finished(), "it ended: {said}");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("it never said {before:?}: {}", self.said()))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).expect("a process");
        kill(Pid::from_raw(pid), signal).expect("a signal");
    }

    /// Waits for its end.
    pub async fn ended(&mut self, within: Duration) -> ExitStatus {
        let ended = timeout(within, self.child.wait()).await;
        ended.unwrap_or_else(|_| panic!("it goes on after {within:?}: {}", self.said())).expect("an end")
    }
}

/// What a run for real needs.
pub struct Tools {
    /// k6.
    pub k6: PathBuf,
    /// The folder of the bundled targets' manifests.
    pub targets: PathBuf,
}

impl Tools {
    /// k6 and the bundled targets; where they are missing, none, and the reason is printed.
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
