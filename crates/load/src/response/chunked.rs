//! A body in chunks, with extensions and trailers. Pure.

use super::{MAX_HEAD, Piece, ProtocolError, split_front};

/// Where a body in chunks is.
#[derive(Debug, Default)]
pub(super) struct Chunked {
    state: State,
    /// Bytes of the current line, or of the trailers.
    length: usize,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// In the digits of a size: its value, and whether there was a digit.
    Size(Option<u64>),
    /// After the digits of a size, until the end of its line.
    Extension(u64),
    /// After the carriage return of that line.
    SizeEnd(u64),
    Data(u64),
    DataReturn,
    DataEnd,
    /// At the start of a line of the trailers.
    Line,
    /// Within a line of the trailers.
    Trailer,
    /// After the carriage return of the empty line.
    Last,
    Done,
}

impl Default for State {
    fn default() -> Self {
        Self::Size(None)
    }
}

impl Chunked {
    pub(super) fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Piece<'a>, ProtocolError> {
        loop {
            match &mut self.state {
                State::Done => return Ok(Piece::End),
                State::Data(0) => self.state = State::DataReturn,
                State::Data(left) => {
                    let data = split_front(input, usize::try_from(*left).unwrap_or(usize::MAX));
                    *left -= data.len() as u64;
                    return Ok(if data.is_empty() { Piece::More } else { Piece::Body(data) });
                }
                state => {
                    let Some(&byte) = split_front(input, 1).first() else { return Ok(Piece::More) };
                    self.length += 1;
                    if self.length > MAX_HEAD {
                        return Err(ProtocolError::TooLong);
                    }
                    let after = state.after(byte).ok_or(ProtocolError::Chunk)?;
                    if matches!(after, State::Data(_)) {
                        self.length = 0;
                    }
                    *state = after;
                }
            }
        }
    }
}

impl State {
    /// Returns the state after a byte that is not data; `None` if it is not allowed.
    fn after(self, byte: u8) -> Option<Self> {
        Some(match (self, byte) {
            (Self::Size(size), digit) if digit.is_ascii_hexdigit() => {
                let digit = (digit as char).to_digit(16)?;
                Self::Size(Some(size.unwrap_or_default().checked_mul(16)?.checked_add(u64::from(digit))?))
            }
            (Self::Size(Some(size)), b';' | b' ' | b'\t') => Self::Extension(size),
            (Self::Size(Some(size)) | Self::Extension(size), b'\r') => Self::SizeEnd(size),
            (Self::Extension(size), byte) if byte != b'\n' => Self::Extension(size),
            (Self::SizeEnd(0) | Self::Trailer, b'\n') => Self::Line,
            (Self::SizeEnd(size), b'\n') => Self::Data(size),
            (Self::DataReturn, b'\r') => Self::DataEnd,
            (Self::DataEnd, b'\n') => Self::Size(None),
            (Self::Line, b'\r') => Self::Last,
            (Self::Line, byte) if byte != b'\n' => Self::Trailer,
            (Self::Trailer, _) => Self::Trailer,
            (Self::Last, b'\n') => Self::Done,
            _ => return None,
        })
    }
}
