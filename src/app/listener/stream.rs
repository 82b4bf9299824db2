//! A socket that fails if the client sends a head too slowly or does not read its response.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::{
    Slot, Timeouts,
    pace::{Alarm, Progress, Stage},
};

/// The socket with its slot, which it keeps after an upgrade.
#[derive(Debug)]
pub struct Timed<T> {
    io: T,
    stage: Stage,
    head: Alarm,
    sent: Progress,
    _slot: Arc<Slot>,
}

impl<T> Timed<T> {
    /// Wraps the socket of a new connection.
    pub fn new(io: T, stage: Stage, timeouts: Timeouts, slot: Arc<Slot>) -> Self {
        Self { io, stage, head: Alarm::default(), sent: Progress::new(timeouts.progress), _slot: slot }
    }

    fn sent(&mut self, cx: &mut Context<'_>, sent: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        match sent {
            Poll::Ready(Ok(bytes)) => {
                self.sent.moved(bytes);
                sent
            }
            Poll::Ready(Err(_)) => sent,
            Poll::Pending => {
                ready!(self.sent.poll_stalled(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Timed<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buf.filled().len();
        if let Poll::Ready(read) = Pin::new(&mut this.io).poll_read(cx, buf) {
            if buf.filled().len() > before {
                this.stage.received();
            }
            return Poll::Ready(read);
        }
        let Some(by) = this.stage.head_by() else { return Poll::Pending };
        ready!(this.head.poll(by, cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Timed<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.io).poll_write(cx, buf);
        this.sent(cx, sent)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let sent = Pin::new(&mut this.io).poll_write_vectored(cx, bufs);
        this.sent(cx, sent)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    /// hyper flushes after everything is sent, so the progress timeout ends here.
    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        this.sent.reset();
        Pin::new(&mut this.io).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().io).poll_shutdown(cx)
    }
}
