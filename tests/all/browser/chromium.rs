//! A real browser, shared by all tests that run concurrently. It exits with the last of them.

use std::{
    io::{BufRead, BufReader},
    process::{Child, ChildStderr, Command, Stdio},
    sync::{
        Arc, Mutex, PoisonError, Weak,
        mpsc::{self, Receiver, RecvTimeoutError, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use chromiumoxide::{Browser, cdp::browser_protocol::browser::CloseParams};
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

use crate::harness::PATIENCE;

/// Without a sandbox, Chromium also runs as root and in containers; it loads only our pages.
const FLAGS: [&str; 16] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-first-run",
    "--password-store=basic",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
];

/// Time to exit before it is killed.
const GRACE: Duration = Duration::from_secs(10);

static SHARED: Mutex<Weak<Chromium>> = Mutex::new(Weak::new());

/// The process and the thread of its connection, which outlives the runtimes of individual tests.
pub struct Chromium {
    /// Executes commands from any runtime.
    pub remote: Arc<Browser>,
    runtime: Handle,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
    process: Child,
    /// Closes when no process of the browser is left.
    gone: Mutex<Receiver<String>>,
    _profile: TempDir,
}

impl Chromium {
    /// Returns the running browser, or starts one.
    pub fn shared() -> Arc<Self> {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let started = Arc::new(Self::start());
            *shared = Arc::downgrade(&started);
            started
        })
    }

    fn start() -> Self {
        let profile = tempfile::tempdir().expect("a temporary folder");
        let mut command = Command::new("chromium");
        command.args(FLAGS).arg(format!("--user-data-dir={}", profile.path().display())).arg("about:blank");
        // All files are removed with the profile.
        for variable in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(variable, profile.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .unwrap_or_else(|fault| panic!("chromium can't be started: {fault}; `make chromium` installs it"));
        let (lines, gone) = mpsc::channel();
        let stderr = process.stderr.take().expect("stderr");
        thread::spawn(move || read_stderr(stderr, &lines));
        let address = gone.recv_timeout(PATIENCE).expect("chromium reports its address");
        let (end, (ready, given)) = (CancellationToken::new(), mpsc::channel());
        let ended = end.clone();
        let thread = thread::spawn(move || run_connection(&address, &ready, &ended));
        let (remote, runtime) = given.recv_timeout(PATIENCE).expect("chromium accepts the connection");
        Self { remote, runtime, end, thread: Some(thread), process, gone: Mutex::new(gone), _profile: profile }
    }

    /// Executes a command and blocks until it is done, for use in `drop`.
    pub fn execute_blocking<C: chromiumoxide::Command + Send + 'static>(&self, command: C) {
        let (remote, (done, finished)) = (Arc::clone(&self.remote), mpsc::channel());
        self.runtime.spawn(async move {
            let _ = remote.execute(command).await;
            let _ = done.send(());
        });
        let _ = finished.recv_timeout(GRACE);
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.execute_blocking(CloseParams::default());
        let gone = self.gone.get_mut().unwrap_or_else(PoisonError::into_inner);
        if matches!(gone.recv_timeout(GRACE), Err(RecvTimeoutError::Timeout)) {
            let _ = self.process.kill();
        }
        let _ = self.process.wait();
        self.end.cancel();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Sends the address of the browser, and reads stderr to the end so that the browser does not block.
fn read_stderr(stderr: ChildStderr, lines: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(address) = line.strip_prefix("DevTools listening on ") {
            let _ = lines.send(address.to_owned());
        }
    }
}

fn run_connection(address: &str, ready: &Sender<(Arc<Browser>, Handle)>, end: &CancellationToken) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (remote, mut handler) = Browser::connect(address).await.expect("a connection");
        ready.send((Arc::new(remote), Handle::current())).expect("a receiver");
        // Messages unknown to the library are ignored.
        let receiving = async { while handler.next().await.is_some() {} };
        tokio::select! {
            () = end.cancelled() => {}
            () = receiving => {}
        }
    });
}
