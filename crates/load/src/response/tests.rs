//! Tests of reading responses, whole and in pieces.

use proptest::prelude::*;

use super::*;

/// What was read of one response.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Read {
    head: Option<Head>,
    body: Vec<u8>,
    ended: bool,
    error: Option<ProtocolError>,
    left: usize,
}

/// Reads a response from pieces of these lengths, and the rest in one.
fn read(bytes: &[u8], lengths: &[usize], is_head_request: bool) -> Read {
    let mut reader = ResponseReader::default();
    reader.begin(is_head_request);
    let mut read = Read { head: None, body: Vec::new(), ended: false, error: None, left: 0 };
    let mut rest = bytes;
    let mut lengths = lengths.iter().copied();
    loop {
        let mut piece = split_front(&mut rest, lengths.next().unwrap_or(usize::MAX));
        loop {
            match reader.next(&mut piece) {
                Ok(Piece::More) => break,
                Ok(Piece::Head(head)) => read.head = Some(head),
                Ok(Piece::Body(body)) => read.body.extend_from_slice(body),
                Ok(Piece::End) => {
                    return Read { ended: true, left: rest.len() + piece.len(), ..read };
                }
                Err(error) => return Read { error: Some(error), ..read },
            }
        }
        assert!(piece.is_empty(), "more bytes are only needed after the last one");
        if rest.is_empty() {
            return Read { ended: reader.ends_with_connection(), ..read };
        }
    }
}

fn at_once(text: &str) -> Read {
    read(text.as_bytes(), &[], false)
}

fn body(text: &str) -> (String, bool) {
    let read = at_once(text);
    assert_eq!(read.error, None, "{text}");
    (String::from_utf8(read.body).expect("text"), read.ended && read.head.expect("a head").keeps_open)
}

fn error(text: &str) -> Option<ProtocolError> {
    at_once(text).error
}

#[test]
fn bodies_end_as_their_heads_say() {
    let kept = |text: &str| (text.to_owned(), true);
    let closed = |text: &str| (text.to_owned(), false);
    assert_eq!(body("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc"), kept("abc"));
    assert_eq!(body("HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\nConnection: x, CLOSE\r\n\r\nabc"), closed("abc"));
    assert_eq!(body("HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc"), closed("abc"));
    assert_eq!(body("HTTP/1.0 200 OK\r\nContent-Length: 3\r\nConnection: Keep-Alive\r\n\r\nabc"), kept("abc"));
    assert_eq!(body("HTTP/1.1 200 OK\r\n\r\nabc"), closed("abc"));
    assert_eq!(body("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nContent-Length: 1\r\n\r\nabc"), closed("abc"));
    assert_eq!(body("HTTP/1.1 204 No Content\r\n\r\n"), kept(""));
    assert_eq!(body("HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n"), kept(""));
    assert_eq!(
        body("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\nHTTP/1.1 200\r\nContent-Length: 1\r\n\r\na"),
        kept("a")
    );
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: x, Chunked\r\n\r\n";
    assert_eq!(body(&format!("{chunked}3\r\nabc\r\nA;x=\"y\"\r\n0123456789\r\n000\r\n\r\n")), kept("abc0123456789"));
    assert_eq!(body(&format!("{chunked}1 \r\na\r\n0\r\nx: y\r\nz: \r\n\r\n")), kept("a"));
}

#[test]
fn the_response_to_a_head_request_has_no_body() {
    let read = read(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", &[], true);
    assert_eq!((read.ended, read.left, read.body.len()), (true, 0, 0));
}

#[test]
fn what_is_left_belongs_to_no_response() {
    let read = at_once("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc");
    assert_eq!((read.ended, read.left), (true, 2));
}

#[test]
fn a_truncated_response_has_not_ended() {
    for text in [
        "",
        "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
    ] {
        assert!(!at_once(text).ended, "{text}");
    }
}

#[test]
fn invalid_responses_are_refused() {
    assert!(matches!(error("SSH-2.0-OpenSSH\r\n"), Some(ProtocolError::Head(_))));
    assert!(matches!(error("HTTP/1.1 099 x\r\n\r\n"), Some(ProtocolError::Head(_))));
    assert_eq!(error("HTTP/1.1 101 x\r\n\r\n"), Some(ProtocolError::Switched));
    for length in ["-1", "", "1x", "1, 2", "18446744073709551616"] {
        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
        assert_eq!(error(&text), Some(ProtocolError::ContentLength), "{length}");
    }
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for chunk in ["x", "\r\n", "1\n", "1\r\nab", "10000000000000000\r\n", "1\r\na\n", "1;\n", "0\r\n\n"] {
        assert_eq!(error(&format!("{chunked}{chunk}")), Some(ProtocolError::Chunk), "{chunk:?}");
    }
    let interim = "HTTP/1.1 100 Continue\r\n\r\n".repeat(33);
    assert_eq!(error(&interim), Some(ProtocolError::TooManyInterim));
}

#[test]
fn endless_heads_and_trailers_are_refused() {
    let start = "HTTP/1.1 200 OK\r\n";
    let fields = format!("{start}{}", "a: b\r\n".repeat(200));
    let long = format!("{start}a: {}", "b".repeat(MAX_HEAD));
    let trailers = format!("{start}Transfer-Encoding: chunked\r\n\r\n0\r\n{}", "a: b\r\n".repeat(MAX_HEAD));
    for text in [fields, long, trailers] {
        assert_eq!(error(&text), Some(ProtocolError::TooLong));
        let pieces = vec![1_000; text.len() / 1_000];
        assert_eq!(
            read(text.as_bytes(), &pieces, false).error.map(|_| ()),
            error(&format!("{text}\r\n\r\n")).map(|_| ())
        );
    }
}

fn any_response() -> impl Strategy<Value = String> {
    let interim = prop_oneof![Just(""), Just("HTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\n")];
    let start =
        prop_oneof![Just("HTTP/1.1 200 OK\r\n"), Just("HTTP/1.0 500 \r\n"), Just("HTTP/1.1 204 No\n"), Just("HTTP")];
    let fields =
        prop_oneof![Just(""), Just("Connection: close\r\n"), Just("Date: x\nServer:y\r\n"), Just("bad field\r\n")];
    let body = prop_oneof![
        Just("Content-Length: 12\r\n\r\nhello, world"),
        Just("Content-Length: 2\r\n\r\nhello"),
        Just("Content-Length: 20\r\n\r\nhello"),
        Just("Transfer-Encoding: chunked\r\n\r\n5;ext\r\nhello\r\nb\r\n, world abcd\r\n0\r\nT: u\r\n\r\nexcess"),
        Just("Transfer-Encoding: chunked\r\n\r\n5\r\nhelloX"),
        Just("\r\nuntil the end"),
        Just("\r\n"),
    ];
    (interim, start, fields, body).prop_map(|(interim, start, fields, body)| format!("{interim}{start}{fields}{body}"))
}

proptest! {
    #[test]
    fn any_split_into_pieces_reads_the_same(response in any_response(), lengths in proptest::collection::vec(1..40_usize, 0..60), head: bool) {
        let bytes = response.as_bytes();
        let complete = read(bytes, &[], head);
        prop_assert_eq!(&read(bytes, &vec![1; bytes.len()], head).without_kind(), &complete.without_kind());
        prop_assert_eq!(&read(bytes, &lengths, head).without_kind(), &complete.without_kind());
    }

    #[test]
    fn any_bytes_are_read_without_a_panic(bytes: Vec<u8>, lengths in proptest::collection::vec(1..9_usize, 0..9)) {
        let _ = read(&bytes, &lengths, false);
        let chunks = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", &bytes[..]].concat();
        let _ = read(&chunks, &lengths, false);
    }
}

impl Read {
    /// Removes which error of a head it was: a head is parsed when it is complete, or at once.
    fn without_kind(&self) -> Self {
        let error = self.error.map(|error| match error {
            ProtocolError::Head(_) => ProtocolError::Head(httparse::Error::Token),
            other => other,
        });
        Self { error, ..self.clone() }
    }
}
