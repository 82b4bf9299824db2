//! A server that does to each connection what a test says, and counts.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// A server on a port of its own, until the end of the test.
pub struct Server {
    pub port: u16,
    pub counts: Arc<Counts>,
}

/// What a server has done.
#[derive(Debug, Default)]
pub struct Counts {
    connections: AtomicU64,
    requests: AtomicU64,
    responses: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// A connection of a server.
pub struct Connection {
    /// Its number, from 1.
    pub number: u64,
    reader: BufReader<TcpStream>,
    stream: TcpStream,
    counts: Arc<Counts>,
}

pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

impl Server {
    /// Starts a server that calls a function for each connection, in a thread of its own.
    pub fn start(serve: impl Fn(&mut Connection) -> Option<()> + Send + Sync + 'static) -> Self {
        Self::limited(u64::MAX, serve)
    }

    /// Starts a server that accepts some connections and then no more.
    pub fn limited(most: u64, serve: impl Fn(&mut Connection) -> Option<()> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let counts = Arc::new(Counts::default());
        let (counted, serve) = (Arc::clone(&counts), Arc::new(serve));
        thread::spawn(move || {
            for number in 1..=most {
                let Ok((stream, _)) = listener.accept() else { return };
                stream.set_nodelay(true).expect("an option");
                let counts = Arc::clone(&counted);
                counts.connections.fetch_add(1, Ordering::SeqCst);
                let reader = BufReader::new(stream.try_clone().expect("a descriptor"));
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(&mut Connection { number, reader, stream, counts }));
            }
        });
        Self { port, counts }
    }

    /// Starts a server that gives the same response to each request.
    pub fn answering(response: impl Into<Vec<u8>>) -> Self {
        let response = response.into();
        Self::start(move |connection| {
            loop {
                connection.request()?;
                connection.respond(&response)?;
            }
        })
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::SeqCst)
    }

    pub fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::SeqCst)
    }

    pub fn responses(&self) -> u64 {
        self.counts.responses.load(Ordering::SeqCst)
    }

    pub fn received(&self) -> u64 {
        self.counts.received.load(Ordering::SeqCst)
    }

    pub fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::SeqCst)
    }
}

impl Connection {
    /// Reads a request with its body, and returns its first line; `None` at the end of the connection.
    pub fn request(&mut self) -> Option<String> {
        let (mut start, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            let read = self.reader.read_line(&mut line).ok().filter(|&read| read > 0)?;
            self.counts.received.fetch_add(read as u64, Ordering::SeqCst);
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a length");
            }
            if start.is_empty() {
                start = line;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body).ok()?;
        self.counts.received.fetch_add(length as u64, Ordering::SeqCst);
        self.counts.requests.fetch_add(1, Ordering::SeqCst);
        Some(start.trim_end().to_owned())
    }

    /// Sends a complete response, which is counted before: the client may see it first.
    pub fn respond(&mut self, response: &[u8]) -> Option<()> {
        self.counts.responses.fetch_add(1, Ordering::SeqCst);
        self.send(response)
    }

    /// Sends bytes that are not a complete response.
    pub fn send(&mut self, bytes: &[u8]) -> Option<()> {
        self.counts.sent.fetch_add(bytes.len() as u64, Ordering::SeqCst);
        self.stream.write_all(bytes).ok()
    }

    /// Closes this side.
    pub fn finish(&mut self) -> Option<()> {
        self.stream.shutdown(Shutdown::Write).ok()
    }

    /// Reads and ignores all that comes.
    pub fn ignore(&mut self) {
        let _ = std::io::copy(&mut self.reader, &mut std::io::sink());
    }

    /// Reads one byte, directly: what is left unread makes closing a reset.
    pub fn byte(&mut self) -> Option<()> {
        self.stream.read_exact(&mut [0]).ok()
    }
}
