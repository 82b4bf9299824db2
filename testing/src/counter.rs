//! A target that counts requests by path and time, independently of any load generator.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Answers each request with status 200, on loopback; a path that ends in `/bad` with 500.
pub struct Counter {
    /// Its base URL.
    pub base: String,
    answered: Arc<Mutex<Vec<(Instant, String)>>>,
}

impl Counter {
    /// Starts it.
    ///
    /// # Panics
    ///
    /// Panics without a free port.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        let answered = Arc::<Mutex<Vec<_>>>::default();
        let log = Arc::clone(&answered);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let log = Arc::clone(&log);
                std::thread::spawn(move || answer(&stream, &log));
            }
        });
        Self { base, answered }
    }

    /// Returns when requests whose path starts like this were answered.
    pub fn times(&self, start: &str) -> Vec<Instant> {
        let answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.iter().filter(|(_, path)| path.starts_with(start)).map(|(at, _)| *at).collect()
    }

    /// Returns how many requests have a path that starts like this.
    pub fn count(&self, start: &str) -> u64 {
        self.times(start).len() as u64
    }
}

/// Answers the requests of one connection, which have no bodies, until it closes.
fn answer(stream: &TcpStream, log: &Mutex<Vec<(Instant, String)>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut lines = BufReader::new(stream).lines();
    loop {
        let request = lines.next()?.ok()?;
        let path = request.split(' ').nth(1)?.to_owned();
        while !lines.next()?.ok()?.is_empty() {}
        let status = if path.ends_with("/bad") { "500 Internal Server Error" } else { "200 OK" };
        log.lock().unwrap_or_else(PoisonError::into_inner).push((Instant::now(), path));
        let mut writer = stream;
        writer.write_all(format!("HTTP/1.1 {status}\r\ncontent-length: 5\r\n\r\nhello").as_bytes()).ok()?;
    }
}
