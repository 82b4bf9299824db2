//! Wrappers of bodies: a request body that makes no progress fails, a response body marks the end of the exchange.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::pace::{Exchange, Progress};

/// A request body made no progress.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body made no progress")]
struct Stalled;

/// Returns whether an error was caused by a stalled body.
pub fn is_stalled(fault: &(dyn Error + 'static)) -> bool {
    let mut cause = Some(fault);
    while let Some(fault) = cause {
        if fault.is::<Stalled>() {
            return true;
        }
        cause = fault.source();
    }
    false
}

/// A request body with a progress timeout.
#[derive(Debug)]
pub struct Timed<B> {
    body: B,
    progress: Progress,
}

impl<B> Timed<B> {
    /// Wraps a body that must make progress within each such period.
    pub fn new(body: B, within: Duration) -> Self {
        Self { body, progress: Progress::new(within) }
    }
}

impl<B> HttpBody for Timed<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<axum::BoxError>,
{
    type Data = Bytes;
    type Error = axum::BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame {
                this.progress.moved(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        ready!(this.progress.poll_stalled(cx));
        Poll::Ready(Some(Err(Stalled.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A response body.
#[derive(Debug)]
pub struct ResponseBody {
    body: Body,
    _exchange: Exchange,
}

impl ResponseBody {
    /// Wraps a body; dropping it ends the exchange.
    pub fn new(body: Body, exchange: Exchange) -> Self {
        Self { body, _exchange: exchange }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
