//! A connection without blocking: TCP, or TLS over it.

use std::io::{self, Read, Write};
use std::net::SocketAddr;

use mio::event::Source;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use rustls::ClientConnection;

use crate::tls::Security;

/// Bytes on the network.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Received.
    pub received: u64,
    /// Sent.
    pub sent: u64,
}

/// A connection.
#[derive(Debug)]
pub struct Transport {
    stream: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

impl Transport {
    /// Starts to connect.
    pub fn connect(
        address: SocketAddr,
        security: Option<&Security>,
        registry: &Registry,
        token: Token,
    ) -> io::Result<Self> {
        let mut stream = TcpStream::connect(address)?;
        stream.register(registry, token, Interest::READABLE | Interest::WRITABLE)?;
        let tls = security.map(|security| {
            ClientConnection::new(security.config.clone(), security.name.clone())
                .map(Box::new)
                .map_err(io::Error::other)
        });
        Ok(Self { stream, tls: tls.transpose()? })
    }

    /// Returns whether the TCP connection is established.
    pub fn is_established(&self) -> io::Result<bool> {
        if let Some(error) = self.stream.take_error()? {
            return Err(error);
        }
        match self.stream.peer_addr() {
            Ok(_) => {
                // A request of several writes does not wait for the acknowledgement of the first one.
                self.stream.set_nodelay(true)?;
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Advances the TLS handshake, and returns whether it is done.
    pub fn handshake(&mut self, traffic: &mut Traffic) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else { return Ok(true) };
        while tls.is_handshaking() {
            flush(tls, &mut self.stream, traffic)?;
            if !tls.is_handshaking() {
                break;
            }
            match receive(tls, &mut self.stream, traffic) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => {
                    // The target gets the alert that says why, if it can.
                    let _ = flush(tls, &mut self.stream, traffic);
                    return Err(error);
                }
            }
        }
        flush(tls, &mut self.stream, traffic)?;
        Ok(true)
    }

    /// Reads what has arrived. With TLS, only an error of kind `WouldBlock` says that there is nothing more.
    pub fn read(&mut self, buffer: &mut [u8], traffic: &mut Traffic) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            let length = self.stream.read(buffer)?;
            traffic.received += length as u64;
            return Ok(length);
        };
        loop {
            match tls.reader().read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                // Servers close without the alert that announces it, as HTTP allows where the length is known.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(0),
                read => return read,
            }
            receive(tls, &mut self.stream, traffic)?;
            flush(tls, &mut self.stream, traffic)?;
        }
    }

    /// Whether a read of less than the buffer's length has read all there is.
    pub fn short_reads_are_complete(&self) -> bool {
        self.tls.is_none()
    }

    /// Writes the start of some bytes.
    pub fn write(&mut self, bytes: &[u8], traffic: &mut Traffic) -> io::Result<usize> {
        let Some(tls) = &mut self.tls else {
            let length = self.stream.write(bytes)?;
            traffic.sent += length as u64;
            return Ok(length);
        };
        flush(tls, &mut self.stream, traffic)?;
        if tls.wants_write() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let length = tls.writer().write(bytes)?;
        flush(tls, &mut self.stream, traffic)?;
        Ok(length)
    }

    /// Sends what is encrypted and waits.
    pub fn flush(&mut self, traffic: &mut Traffic) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| flush(tls, &mut self.stream, traffic))
    }
}

/// Sends encrypted bytes until there are none or the socket is full.
fn flush(tls: &mut ClientConnection, stream: &mut TcpStream, traffic: &mut Traffic) -> io::Result<()> {
    while tls.wants_write() {
        match tls.write_tls(stream) {
            Ok(length) => traffic.sent += length as u64,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Receives encrypted bytes and decrypts them.
fn receive(tls: &mut ClientConnection, stream: &mut TcpStream, traffic: &mut Traffic) -> io::Result<usize> {
    let length = tls.read_tls(stream)?;
    traffic.received += length as u64;
    tls.process_new_packets().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(length)
}
