//! A place for a connection, and the request on it.

use crate::content::BodyCheck;
use crate::plan::Reuse;
use crate::response::{Head, ResponseReader};
use crate::transport::Transport;

/// A place for a connection. It opens another one when the previous one has ended.
#[derive(Debug, Default)]
pub struct Slot {
    pub phase: Phase,
    pub transport: Option<Transport>,
    pub reader: ResponseReader,
    pub body: BodyCheck,
    pub exchange: Exchange,
    /// When it began to connect.
    pub connecting_ns: u64,
    /// When it last became free.
    pub free_ns: u64,
    /// When it rests until, to recognise its timer.
    pub wakes_ns: u64,
    /// Whether the connection has carried a complete response.
    pub is_used: bool,
    /// Whether the target has closed its side.
    pub is_closed_by_target: bool,
    /// Failures since the last complete response.
    pub failures: u32,
}

/// What a slot does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not in use.
    #[default]
    Off,
    /// Connects, for its request.
    Connecting,
    /// Is connected and in the TLS handshake.
    Handshaking,
    /// Sends its request or receives the response.
    Busy,
    /// Waits for an arrival.
    Idle,
    /// Waits for a time.
    Resting,
}

/// A request and its response.
#[derive(Debug, Default)]
pub struct Exchange {
    /// Number of the request.
    pub message: usize,
    /// Number of its path.
    pub path: usize,
    /// When it should have started, in an open load.
    pub intended_ns: Option<u64>,
    /// From when its duration is counted, once it is sent.
    pub from_ns: u64,
    /// Bytes sent.
    pub written: usize,
    /// Bytes to send.
    pub length: usize,
    pub head: Option<Head>,
    pub has_first_byte: bool,
    /// Whether this is the second attempt.
    pub is_resent: bool,
    /// Why the rest can't be sent. The response may have arrived before.
    pub write_error: Option<std::io::ErrorKind>,
}

impl Slot {
    /// Whether its connection can carry another request after this response.
    pub fn is_reusable(&self, reuse: Reuse) -> bool {
        let Exchange { written, length, head, .. } = &self.exchange;
        reuse == Reuse::KeepAlive
            && !self.is_closed_by_target
            && written == length
            && head.is_some_and(|head| head.keeps_open)
    }

    /// Whether its request may be sent again: the connection was idle before, and may have been closed then.
    pub fn may_resend(&self, is_idempotent: bool) -> bool {
        self.is_used && is_idempotent && !self.exchange.has_first_byte && !self.exchange.is_resent
    }
}
