//! The real programs, started on free ports and ended with the test.

use std::io::{BufRead, BufReader, ErrorKind};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

/// A target that runs and listens.
pub struct Program {
    pub name: &'static str,
    pub address: SocketAddr,
    executable: PathBuf,
    child: Child,
}

/// All bundled targets. Where Go is missing, it says so and leaves out the one in Go.
pub fn programs() -> Vec<Program> {
    let mut all = vec![Program::rust(&[])];
    all.extend(go_executable().map(|executable| Program::start("go-nethttp", executable, &[])));
    all
}

impl Program {
    /// The target in Rust, with arguments in addition to its address.
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
        let address = address.expect("the first line tells the address");
        Self { name, address, executable: executable.to_owned(), child }
    }

    /// The same program once more, not started yet.
    pub fn command(&self) -> Command {
        Command::new(&self.executable)
    }

    /// Sends SIGTERM and waits for the end.
    pub fn terminate(mut self) -> ExitStatus {
        // The shell has `kill` built in; a program of that name isn't everywhere.
        let kill = format!("kill -TERM {}", self.child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
        self.child.wait().expect("it ends")
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended already, as the test wanted.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the target in Go, once for all tests.
fn go_executable() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    BUILT.get_or_init(build_go).as_deref()
}

fn build_go() -> Option<PathBuf> {
    let executable = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-nethttp");
    let mut go = Command::new("go");
    go.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../go-nethttp"));
    // With the toolchain at hand: a test downloads none.
    go.env("GOTOOLCHAIN", "local").args(["build", "-buildvcs=false", "-o"]).arg(&executable).arg(".");
    match go.status() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("go-nethttp skipped: there is no go in PATH");
            None
        }
        status => {
            assert!(status.expect("go starts").success(), "go-nethttp can't be built");
            Some(executable)
        }
    }
}
