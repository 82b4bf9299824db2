//! A server for measuring load generators: one thread, no parsing, one fixed response from memory.
//!
//! `cargo run --release --example server 127.0.0.1:9000` answers each request without a body. It prints its address.

use std::io::{self, Read, Write};

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use nix::sys::socket::{Backlog, listen};

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world!";

const LISTENER: Token = Token(usize::MAX);

fn main() -> io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let address = address.parse().map_err(io::Error::other)?;
    let mut poll = Poll::new()?;
    let mut listener = TcpListener::bind(address)?;
    // Thousands of connections may open at once.
    listen(&listener, Backlog::new(4096)?)?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    println!("{}", listener.local_addr()?);
    let mut events = Events::with_capacity(1024);
    let mut connections: Vec<Option<TcpStream>> = Vec::new();
    let mut free: Vec<usize> = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            polled => polled?,
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&poll, &listener, &mut connections, &mut free)?;
                continue;
            }
            let place = event.token().0;
            let Some(stream) = &mut connections[place] else { continue };
            if event.is_readable() && !serve(stream, &mut buffer, event.is_read_closed()) {
                connections[place] = None;
                free.push(place);
            }
        }
    }
}

fn accept(
    poll: &Poll,
    listener: &TcpListener,
    connections: &mut Vec<Option<TcpStream>>,
    free: &mut Vec<usize>,
) -> io::Result<()> {
    loop {
        let mut stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        };
        stream.set_nodelay(true)?;
        let place = free.pop().unwrap_or(connections.len());
        poll.registry().register(&mut stream, Token(place), Interest::READABLE)?;
        if place == connections.len() {
            connections.push(Some(stream));
        } else {
            connections[place] = Some(stream);
        }
    }
}

/// Answers what has arrived, and returns whether the connection stays open.
fn serve(stream: &mut TcpStream, buffer: &mut [u8], is_closed: bool) -> bool {
    loop {
        match stream.read(buffer) {
            Ok(0) => return false,
            // Requests are small and come one by one, so each arrives at once and is short.
            Ok(length) => {
                if stream.write(RESPONSE).is_err() {
                    return false;
                }
                if length < buffer.len() && !is_closed {
                    return true;
                }
            }
            Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}
