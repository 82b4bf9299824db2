//! A raw client: it does not follow redirects, decode bodies or hide errors.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A keep-alive connection.
pub struct Client(BufReader<TcpStream>);

/// A response as received.
pub struct Answer {
    pub status: u16,
    pub body: Vec<u8>,
    /// Names in lower case.
    headers: Vec<(String, String)>,
}

impl Answer {
    /// Returns the value of a header, `""` if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(own, _)| own == name).map_or("", |(_, value)| value)
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Self {
        Self(BufReader::new(TcpStream::connect(address).expect("a connection")))
    }

    /// Sends a request without a body and reads the response.
    pub fn send(&mut self, (method, path): (&str, &str), headers: &[(&str, &str)]) -> Answer {
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n");
        for (name, value) in headers {
            request.extend([name, ": ", value, "\r\n"]);
        }
        request.push_str("\r\n");
        self.0.get_mut().write_all(request.as_bytes()).expect("the request is sent");

        let status = self.line().split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status line");
        let mut answer = Answer { status, body: Vec::new(), headers: Vec::new() };
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else { break };
            answer.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if method != "HEAD" && status != 304 {
            let length = answer.header("content-length").parse().expect("a content length");
            answer.body = vec![0; length];
            self.0.read_exact(&mut answer.body).expect("the body");
        }
        answer
    }

    /// Waits until the server sends something or closes the connection; whether it was closed.
    pub fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0))
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("a line of the head");
        line.trim_end().to_owned()
    }
}
