//! Starts the real programs on free ports, and stops them with the test.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// A running target.
pub struct Program {
    pub name: &'static str,
    pub address: SocketAddr,
    executable: PathBuf,
    child: Child,
}

/// Returns all bundled targets. Without Go, the Go target is skipped with a message.
pub fn programs() -> Vec<Program> {
    let mut all = vec![Program::rust(&[])];
    all.extend(go_executable().map(|executable| Program::start("go-nethttp", executable, &[])));
    all
}

impl Program {
    /// Starts the Rust target with additional arguments.
    pub fn rust(arguments: &[&str]) -> Self {
        Self::start("rust-hyper", Path::new(env!("CARGO_BIN_EXE_rust-hyper")), arguments)
    }

    fn start(name: &'static str, executable: &Path, arguments: &[&str]) -> Self {
        let mut command = Command::new(executable);
        command.args(["--listen", "127.0.0.1:0"]).args(arguments).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the target starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("stdout is piped")).read_line(&mut line).expect("its first line");
        let address = line.trim_end().strip_prefix("listening on ").and_then(|text| text.parse().ok());
        let address = address.expect("an address in the first line");
        Self { name, address, executable: executable.to_owned(), child }
    }

    /// Returns a command to start the same program again.
    pub fn command(&self) -> Command {
        Command::new(&self.executable)
    }

    /// Sends SIGTERM and waits for the exit.
    pub fn terminate(mut self) -> ExitStatus {
        // `kill` is a shell builtin; the program is not installed everywhere.
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        self.child.wait().expect("an exit status")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have exited already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the Go target, once for all tests.
fn go_executable() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build_go).as_deref()
}

fn build_go() -> Option<PathBuf> {
    let executable = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-nethttp");
    let mut go = Command::new("go");
    go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../go-nethttp"));
    // Uses the installed toolchain, so that tests download nothing.
    go.env("GOTOOLCHAIN", "local").args(["build", "-buildvcs=false", "-o"]).arg(&executable).arg(".");
    match go.status() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("go-nethttp skipped: go is not in PATH");
            None
        }
        status => {
            assert!(status.expect("go starts").success(), "go-nethttp can't be built");
            Some(executable)
        }
    }
}
