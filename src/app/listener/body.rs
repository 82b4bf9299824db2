//! Bodies: one of a request fails when it makes no progress, one of an answer says when the exchange is over.

use std::{
    error::Error,
    pin::Pin,
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes};
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::pace::{Exchange, Progress};

/// A request's body did not get on.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the body made no progress")]
struct Stalled;

/// Whether this is behind a body that could not be read.
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

/// A request's body.
#[derive(Debug)]
pub struct Timed<B> {
    body: B,
    progress: Progress,
}

impl<B> Timed<B> {
    /// Some progress is expected within each such time.
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
        ready!(this.progress.waiting(cx));
        Poll::Ready(Some(Err(Stalled.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// An answer's body.
#[derive(Debug)]
pub struct Answer {
    body: Body,
    _exchange: Exchange,
}

impl Answer {
    /// The exchange is over when it is sent.
    pub fn new(body: Body, exchange: Exchange) -> Self {
        Self { body, _exchange: exchange }
    }
}

impl HttpBody for Answer {
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
