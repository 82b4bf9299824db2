//! Connects with HTTP/2.

use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context as TaskContext, Poll};

use bytes::Bytes;
use h2::client::SendRequest;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Context;
use crate::tls::Security;
use crate::transport::Traffic;

/// Bytes that a target may send before they are acknowledged: enough not to slow down any body.
const WINDOW: u32 = 4 << 20;

/// A TCP connection whose bytes are counted.
struct Counted {
    stream: TcpStream,
    context: Rc<Context>,
}

impl Context {
    /// Connects, with the TLS handshake.
    pub(super) async fn connect(self: &Rc<Self>) -> io::Result<SendRequest<Bytes>> {
        let stream = TcpStream::connect(self.work.address).await?;
        stream.set_nodelay(true)?;
        let stream = Counted { stream, context: Rc::clone(self) };
        let Some(Security { config, name }) = &self.work.security else { return self.handshake(stream).await };
        let stream = TlsConnector::from(config.clone()).connect(name.clone(), stream).await?;
        if stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(io::Error::other("the target does not offer HTTP/2"));
        }
        self.handshake(stream).await
    }

    async fn handshake<S>(self: &Rc<Self>, stream: S) -> io::Result<SendRequest<Bytes>>
    where
        S: AsyncRead + AsyncWrite + Unpin + 'static,
    {
        let mut builder = h2::client::Builder::new();
        builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW).enable_push(false);
        let (client, connection) = builder.handshake(stream).await.map_err(io::Error::other)?;
        self.state.borrow_mut().open += 1;
        let context = Rc::clone(self);
        tokio::task::spawn_local(async move {
            // Its requests report the error.
            let _ = connection.await;
            context.state.borrow_mut().open -= 1;
        });
        Ok(client)
    }

    fn count(&self, received: usize, sent: usize) {
        let mut traffic: Traffic = self.traffic.get();
        traffic.received += received as u64;
        traffic.sent += sent as u64;
        self.traffic.set(traffic);
    }
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.context.count(buffer.filled().len() - before, 0);
        read
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(length)) = written {
            self.context.count(0, length);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
