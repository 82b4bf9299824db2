//! A target for tests that serves, or misbehaves as configured.
//!
//! `unruly PORT MANNER` or `unruly HOST:PORT MANNER`: every `GET` is answered with `hello` unless the manner differs.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, exit};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

static REQUESTS: AtomicU64 = AtomicU64::new(0);

/// Whether k6 has sent a request: afterwards an `exhausted` target answers no other client.
static LOADED: AtomicBool = AtomicBool::new(false);

/// The worker of a `restarting` master.
static WORKER: Mutex<Option<Child>> = Mutex::new(None);

/// Number of requests after which some manners change: after the checks before the load, and early in the load.
const TURN: u64 = 80;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (Some(port), Some(manner)) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: unruly PORT MANNER");
        exit(2);
    };
    println!("unruly is {manner}");
    match manner.as_str() {
        "deaf" => sleep_forever(),
        "daemon" => {
            // Goes into the background, as old servers do: the process that was started exits.
            let program = std::env::current_exe().expect("a path");
            Command::new(program).args([port.as_str(), "good"]).spawn().expect("a daemon");
            exit(0);
        }
        "dead" => {
            eprintln!("no reason to live");
            exit(3);
        }
        "hungry-at-start" => eat(),
        "beaten" => lose_port_race(&port),
        "stubborn" => become_stubborn(&port, "still-stubborn"),
        // A child in its own session, which signals to the process group don't reach.
        "parent" => {
            let program = std::env::current_exe().expect("own path");
            let script = "trap '' TERM; exec \"$0\" \"$1\" deaf";
            let mut child =
                Command::new("setsid").args(["sh", "-c", script]).arg(program).arg(&port).spawn().expect("a child");
            thread::spawn(move || child.wait());
        }
        "restarting" => replace_worker(),
        _ => {}
    }
    let address = if port.contains(':') { port } else { format!("127.0.0.1:{port}") };
    let listener = TcpListener::bind(address).expect("a free port");
    for stream in listener.incoming().flatten() {
        let manner = manner.clone();
        thread::spawn(move || serve(stream, &manner));
    }
}

fn serve(mut stream: TcpStream, manner: &str) {
    let Ok(copy) = stream.try_clone() else { return };
    let mut lines = BufReader::new(copy).lines().map_while(Result::ok);
    while lines.next().is_some() {
        let mut by_k6 = false;
        // The head ends with an empty line.
        loop {
            let Some(line) = lines.next() else { return };
            by_k6 |= line.to_lowercase().starts_with("user-agent:") && line.contains("k6");
            if line.is_empty() {
                break;
            }
        }
        if by_k6 {
            LOADED.store(true, Ordering::Relaxed);
        } else if manner == "exhausted" && LOADED.load(Ordering::Relaxed) {
            sleep_forever();
        }
        let count = REQUESTS.fetch_add(1, Ordering::Relaxed);
        if count == 100 {
            match manner {
                "mortal" => {
                    eprintln!("enough of this");
                    exit(4);
                }
                "hungry" => eat(),
                "filing" => file(),
                _ => {}
            }
        }
        if count == TURN && manner == "restarting" {
            replace_worker();
        }
        let fails = manner == "broken" || manner == "breaking" && count >= TURN;
        let status = if fails { "500 Internal Server Error" } else { "200 OK" };
        let body = match manner {
            "fickle" if count >= TURN => "sorry",
            "excusing" if count >= TURN => "sorry, the database is gone",
            "various" if count.is_multiple_of(2) => "other",
            _ => "hello",
        };
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", body.len());
        // Without TCP_NODELAY a second part waits until the client has acknowledged the first.
        let parts = if manner == "halting" { vec![head, body.to_owned()] } else { vec![head + body] };
        if parts.iter().any(|part| stream.write_all(part.as_bytes()).is_err()) {
            return;
        }
        if manner == "brief" {
            eprintln!("one answer is enough");
            exit(6);
        }
    }
}

/// Kills the worker, if there is one, and starts another.
fn replace_worker() {
    let mut worker = WORKER.lock().expect("a lock");
    if let Some(mut old) = worker.take() {
        old.kill().expect("killed");
        old.wait().expect("an exit status");
    }
    let program = std::env::current_exe().expect("own path");
    *worker = Some(Command::new(program).args(["0", "deaf"]).spawn().expect("a worker"));
}

/// Announces its port, and waits until the test has taken it or lets the target continue.
fn lose_port_race(port: &str) {
    std::fs::write(format!("asked-{port}"), "").expect("a file");
    while !std::path::Path::new(&format!("answered-{port}")).exists() {
        thread::sleep(Duration::from_millis(5));
    }
}

/// Allocates and touches memory until it is killed.
fn eat() -> ! {
    let mut eaten: Vec<Vec<u8>> = Vec::new();
    loop {
        eaten.push(vec![1; 1 << 20]);
        if eaten.len() > 2048 {
            eprintln!("not stopped at 2 GiB");
            exit(5);
        }
    }
}

/// Writes 32 MiB into a file and reads them twice, so that the kernel keeps them as files in use.
fn file() {
    let path = std::path::Path::new(&std::env::var_os("HOME").expect("a home")).join("file");
    let mut file = std::fs::File::create(&path).expect("a file");
    let mut part = vec![7; 1 << 20];
    for _ in 0..32 {
        file.write_all(&part).expect("written");
    }
    for _ in 0..2 {
        let mut file = std::fs::File::open(&path).expect("a file");
        while std::io::Read::read(&mut file, &mut part).expect("read") > 0 {}
    }
}

/// Ignores SIGTERM: the standard library can't, but a shell can, and `exec` preserves it.
fn become_stubborn(port: &str, manner: &str) -> ! {
    use std::os::unix::process::CommandExt;
    let program = std::env::current_exe().expect("own path");
    let error =
        Command::new("sh").args(["-c", "trap '' TERM; exec \"$0\" \"$@\""]).arg(program).args([port, manner]).exec();
    panic!("{error}");
}

fn sleep_forever() -> ! {
    loop {
        thread::sleep(Duration::from_mins(1));
    }
}
