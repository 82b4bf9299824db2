//! The head of a response: what its framing needs. Pure.

use std::mem::MaybeUninit;

use super::{MAX_HEAD, ProtocolError};

/// Maximum number of header fields.
const MAX_FIELDS: usize = 128;

/// What matters of a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status.
    pub status: u16,
    /// Whether the target keeps the connection open.
    pub keeps_open: bool,
    /// How the body ends, unless the request or the status mean that there is none.
    pub body: Length,
}

/// How a body ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After a number of bytes.
    Sized(u64),
    /// With the last chunk.
    Chunked,
    /// With the connection.
    UntilClose,
}

/// Parses the head at the start of the input, and returns its length, too; `None` if it is not complete.
pub(super) fn parse(input: &[u8]) -> Result<Option<(Head, usize)>, ProtocolError> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let input = &input[..input.len().min(MAX_HEAD)];
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, input, &mut fields);
    let length = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(ProtocolError::TooLong),
        Err(error) => return Err(ProtocolError::Head(error)),
    };
    let is_1_1 = response.version == Some(1);
    let status = response.code.ok_or(ProtocolError::Head(httparse::Error::Status))?;
    if status < 100 {
        return Err(ProtocolError::Head(httparse::Error::Status));
    }
    framing(response.headers, is_1_1).map(|(keeps_open, body)| Some((Head { status, keeps_open, body }, length)))
}

/// Returns whether the connection stays open, and how the body ends.
fn framing(fields: &[httparse::Header<'_>], is_1_1: bool) -> Result<(bool, Length), ProtocolError> {
    let mut keeps_open = is_1_1;
    let (mut length, mut coding) = (None, None);
    for field in fields {
        // The length of a name is the cheapest test.
        match field.name.len() {
            10 if field.name.eq_ignore_ascii_case("connection") => {
                for option in field.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii) {
                    if option.eq_ignore_ascii_case(b"close") {
                        keeps_open = false;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") && !is_1_1 {
                        keeps_open = true;
                    }
                }
            }
            14 if field.name.eq_ignore_ascii_case("content-length") => {
                for number in field.value.split(|&byte| byte == b',') {
                    let number = decimal(number.trim_ascii()).ok_or(ProtocolError::ContentLength)?;
                    if length.is_some_and(|other| other != number) {
                        return Err(ProtocolError::ContentLength);
                    }
                    length = Some(number);
                }
            }
            17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                coding = field.value.rsplit(|&byte| byte == b',').next().map(<[u8]>::trim_ascii);
            }
            _ => {}
        }
    }
    // A coding overrules a length, and a message with both, or with one in HTTP/1.0, may be framed by mistake.
    Ok(match (coding, length) {
        (Some(last), length) if last.eq_ignore_ascii_case(b"chunked") => {
            (keeps_open && is_1_1 && length.is_none(), Length::Chunked)
        }
        (Some(_), _) | (None, None) => (keeps_open, Length::UntilClose),
        (None, Some(length)) => (keeps_open, Length::Sized(length)),
    })
}

fn decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.iter().try_fold(0_u64, |number, byte| {
        byte.is_ascii_digit().then(|| number.checked_mul(10)?.checked_add(u64::from(byte - b'0')))?
    })
}
