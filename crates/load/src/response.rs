//! Reads HTTP/1 responses from the pieces in which they arrive. Pure.
//!
//! A head that arrives in one piece is parsed where it is; one in several is collected. Bodies are passed on and never
//! stored.

mod chunked;
mod head;
#[cfg(test)]
mod tests;

use chunked::Chunked;
pub use head::{Head, Length};

/// Longest head, longest line of a chunk, and longest trailers.
pub const MAX_HEAD: usize = 64 * 1024;

/// Length of the start of a head in which a mistake shows at once. Later it shows at the end of a line.
const PARSED_FOR_EACH_PIECE: usize = 1024;

/// Maximum number of interim responses (`100 Continue`, `103 Early Hints`) before one response.
const MAX_INTERIM: u8 = 32;

/// Why bytes are not an HTTP/1 response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolError {
    /// Not HTTP.
    #[error("the response is not HTTP/1: {0}")]
    Head(httparse::Error),
    /// The head or the trailers do not end.
    #[error("the response has a head or trailers of more than 64 KiB or 128 fields")]
    TooLong,
    /// Too many interim responses.
    #[error("the response has more than 32 interim responses before it")]
    TooManyInterim,
    /// A switch of protocols that was not requested.
    #[error("the target switched to another protocol without a request to do so")]
    Switched,
    /// Not a number, or several different ones.
    #[error("the response has an invalid Content-Length")]
    ContentLength,
    /// Not a chunk.
    #[error("the response has an invalid chunk")]
    Chunk,
    /// More than the response.
    #[error("the target sent bytes after the response: a wrong Content-Length, or two responses to one request")]
    Excess,
    /// Less than the response.
    #[error("the target closed the connection within the response")]
    Truncated,
}

/// What the next bytes are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Nothing complete: more bytes are needed.
    More,
    /// The head of the response.
    Head(Head),
    /// Bytes of the body.
    Body(&'a [u8]),
    /// The end of the response.
    End,
}

/// Reads one response after the other.
#[derive(Debug, Default)]
pub struct ResponseReader {
    state: State,
    /// The beginning of a head of which the end has not arrived.
    partial: Vec<u8>,
    interim: u8,
    has_no_body: bool,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Head,
    Sized(u64),
    Chunked(Chunked),
    UntilClose,
}

impl ResponseReader {
    /// Prepares for the next response, to a `HEAD` request or to another one.
    pub fn begin(&mut self, is_head_request: bool) {
        self.state = State::Head;
        self.partial.clear();
        self.interim = 0;
        self.has_no_body = is_head_request;
    }

    /// Takes the next piece from the input. After [`Piece::End`], what is left does not belong to the response.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Piece<'a>, ProtocolError> {
        match &mut self.state {
            State::Head => Ok(self.head(input)?.map_or(Piece::More, Piece::Head)),
            State::Sized(0) => Ok(Piece::End),
            State::Sized(left) => {
                let most = usize::try_from(*left).unwrap_or(usize::MAX);
                let body = split_front(input, most);
                *left -= body.len() as u64;
                Ok(if body.is_empty() { Piece::More } else { Piece::Body(body) })
            }
            State::UntilClose => {
                let body = split_front(input, usize::MAX);
                Ok(if body.is_empty() { Piece::More } else { Piece::Body(body) })
            }
            State::Chunked(chunked) => chunked.next(input),
        }
    }

    /// Returns whether the end of the connection is the end of the response.
    pub fn ends_with_connection(&self) -> bool {
        matches!(self.state, State::UntilClose | State::Sized(0))
    }

    fn head(&mut self, input: &mut &[u8]) -> Result<Option<Head>, ProtocolError> {
        loop {
            let Some(mut head) = self.any_head(input)? else { return Ok(None) };
            match head.status {
                101 => return Err(ProtocolError::Switched),
                100..=199 if self.interim == MAX_INTERIM => return Err(ProtocolError::TooManyInterim),
                100..=199 => self.interim += 1,
                _ => {
                    self.state = match head.body {
                        _ if self.has_no_body || matches!(head.status, 204 | 304) => State::Sized(0),
                        Length::Sized(length) => State::Sized(length),
                        Length::Chunked => State::Chunked(Chunked::default()),
                        Length::UntilClose => {
                            head.keeps_open = false;
                            State::UntilClose
                        }
                    };
                    return Ok(Some(head));
                }
            }
        }
    }

    /// Returns a head of any kind once it is complete.
    fn any_head(&mut self, input: &mut &[u8]) -> Result<Option<Head>, ProtocolError> {
        if self.partial.is_empty() {
            let parsed = head::parse(input)?;
            match parsed {
                Some((head, length)) => {
                    split_front(input, length);
                    return Ok(Some(head));
                }
                None if input.len() >= MAX_HEAD => return Err(ProtocolError::TooLong),
                None => {
                    self.partial.extend_from_slice(split_front(input, usize::MAX));
                    return Ok(None);
                }
            }
        }
        let before = self.partial.len();
        let room = MAX_HEAD - before;
        self.partial.extend_from_slice(&input[..input.len().min(room)]);
        // A head that arrives slowly is not parsed for every byte: that would take quadratic time.
        let is_due = before < PARSED_FOR_EACH_PIECE || self.partial[before..].contains(&b'\n');
        let Some((head, length)) = (if is_due { head::parse(&self.partial)? } else { None }) else {
            if self.partial.len() == MAX_HEAD {
                return Err(ProtocolError::TooLong);
            }
            split_front(input, usize::MAX);
            return Ok(None);
        };
        split_front(input, length - before);
        self.partial.clear();
        Ok(Some(head))
    }
}

/// Removes at most that many bytes from the start of the input.
fn split_front<'a>(input: &mut &'a [u8], most: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(input.len().min(most));
    *input = rest;
    taken
}
