//! One real browser, shared by the tests that run at the same time. It ends with the last of them.

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

/// No sandbox: it runs as root and in containers as well, and sees no pages but ours.
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

/// So long it may take to do what it is told at the end; then it is killed.
const GRACE: Duration = Duration::from_secs(10);

static SHARED: Mutex<Weak<Chromium>> = Mutex::new(Weak::new());

/// The process, and the thread that speaks with it: tests come and go with runtimes of their own.
pub struct Chromium {
    /// Its ear; what it is asked from any runtime is answered.
    pub remote: Arc<Browser>,
    runtime: Handle,
    end: CancellationToken,
    thread: Option<JoinHandle<()>>,
    process: Child,
    /// Hears nothing but the end: no process of the browser is left to say anything.
    gone: Mutex<Receiver<String>>,
    _profile: TempDir,
}

impl Chromium {
    /// The one that is there, or a new one.
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
        // Whatever it writes goes away with its profile.
        for variable in ["HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"] {
            command.env(variable, profile.path());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut process = command
            .spawn()
            .unwrap_or_else(|fault| panic!("chromium can't be started: {fault}; `make chromium` installs it"));
        let (said, gone) = mpsc::channel();
        let stderr = process.stderr.take().expect("stderr");
        thread::spawn(move || listen(stderr, &said));
        let address = gone.recv_timeout(PATIENCE).expect("chromium says where it listens");
        let (end, (ready, given)) = (CancellationToken::new(), mpsc::channel());
        let ended = end.clone();
        let thread = thread::spawn(move || speak(&address, &ready, &ended));
        let (remote, runtime) = given.recv_timeout(PATIENCE).expect("chromium answers");
        Self { remote, runtime, end, thread: Some(thread), process, gone: Mutex::new(gone), _profile: profile }
    }

    /// Asks for something when there is nobody who could await the answer.
    pub fn ask_at_the_end<C: chromiumoxide::Command + Send + 'static>(&self, command: C) {
        let (remote, (done, answered)) = (Arc::clone(&self.remote), mpsc::channel());
        self.runtime.spawn(async move {
            let _ = remote.execute(command).await;
            let _ = done.send(());
        });
        let _ = answered.recv_timeout(GRACE);
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        self.ask_at_the_end(CloseParams::default());
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

/// Says where it listens, and reads on to the end: a browser must not block on what it writes.
fn listen(stderr: ChildStderr, said: &Sender<String>) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(address) = line.strip_prefix("DevTools listening on ") {
            let _ = said.send(address.to_owned());
        }
    }
}

fn speak(address: &str, ready: &Sender<(Arc<Browser>, Handle)>, end: &CancellationToken) {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let (remote, mut handler) = Browser::connect(address).await.expect("chromium listens where it says");
        ready.send((Arc::new(remote), Handle::current())).expect("somebody waits for it");
        // A message that the library does not know is no reason to hear no more.
        let hearing = async { while handler.next().await.is_some() {} };
        tokio::select! {
            () = end.cancelled() => {}
            () = hearing => {}
        }
    });
}
