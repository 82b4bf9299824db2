//! The limit of every load generator with this kernel: a loop that only writes and reads, over some connections.
//!
//! `cargo run --release --example limit 127.0.0.1:9000 32 5` uses 32 connections for 5 seconds. It prints the number of
//! responses, which must arrive at once each, as those of the example `server` do.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |otherwise: &str| arguments.next().unwrap_or_else(|| otherwise.to_owned());
    let address = next("127.0.0.1:9000");
    let (connections, seconds): (usize, u64) =
        (next("32").parse().map_err(io::Error::other)?, next("5").parse().map_err(io::Error::other)?);
    let request = format!("GET / HTTP/1.1\r\nHost: {address}\r\n\r\n");
    let connect = |_| TcpStream::connect(&address).and_then(|stream| stream.set_nodelay(true).map(|()| stream));
    let mut streams = (0..connections).map(connect).collect::<io::Result<Vec<_>>>()?;
    for stream in &mut streams {
        stream.write_all(request.as_bytes())?;
    }
    let (end, mut responses) = (Instant::now() + Duration::from_secs(seconds), 0_u64);
    let mut buffer = [0; 4096];
    while Instant::now() < end {
        for stream in &mut streams {
            if stream.read(&mut buffer)? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            responses += 1;
            stream.write_all(request.as_bytes())?;
        }
    }
    println!("{responses}");
    Ok(())
}
