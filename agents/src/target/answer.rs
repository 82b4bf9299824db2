//! Compares the responses of a target before and after the load.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use brewbench_wire::manifest::Verify;
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use super::manifest::Manifest;
use super::ready::{self, Endpoint, Response};

/// A target that takes longer than this is queried only once before the load, to save time.
const REPEAT_LIMIT: Duration = Duration::from_millis(250);

/// Timeout of the request after the load, unless the manifest's is shorter.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// The most paths that are requested to count the bytes of their headers.
const MAX_PATHS: usize = 8;

/// A text that was constant for less than this may still depend on the time.
const LONG_ENOUGH: Duration = Duration::from_secs(1);

/// Bodies whose lengths differ by a larger factor are of different kinds, such as a page and an error. An empty body is
/// a kind of its own.
const SAME_LENGTH: usize = 2;

/// The response of a target before the load.
#[derive(Debug)]
pub struct ReferenceResponse {
    at: Endpoint,
    request: Verify,
    limit: Duration,
    /// The last response, if it was of the same kind each time so far.
    known: Option<Answer>,
    since: Instant,
    verified_at: Instant,
    /// Bytes before the body, if they were as many each time, or by what the load requests.
    head_bytes: Option<u64>,
}

impl ReferenceResponse {
    /// Sends the request that the manifest verifies, or else the one for readiness. It is sent twice, and again by
    /// [`Self::confirm`], because what varies can't be compared with a later response. The error describes how a response
    /// differs from the manifest.
    pub async fn learn(at: Endpoint, manifest: &Manifest) -> Result<Self, String> {
        let Manifest { ready, verify, .. } = manifest;
        let request =
            verify.clone().unwrap_or_else(|| Verify { path: ready.path.clone(), status: ready.status, contains: None });
        let limit = ready.timeout();
        let begun = Instant::now();
        let response = ready::ask(&at, &request, limit).await?;
        let (first, mut head_bytes) = (Answer::from_response(&response), response.head_bytes);
        let verified_at = Instant::now();
        let known = if begun.elapsed() <= REPEAT_LIMIT {
            let response = ready::ask(&at, &request, limit).await?;
            head_bytes = head_bytes.filter(|_| head_bytes == response.head_bytes);
            first.and(Answer::from_response(&response))
        } else {
            None
        };
        Ok(Self { at, request, limit: limit.min(AFTERWARDS), known, since: begun, verified_at, head_bytes })
    }

    /// Counts the bytes before the body again: of the paths that the load requests, by their share of its requests. Other
    /// paths may have other headers.
    async fn count_heads(&mut self, paths: &BTreeMap<String, u64>) {
        let (mut bytes, mut requests) = (0, 0);
        if paths.len() > MAX_PATHS {
            return;
        }
        for (path, count) in paths {
            let response = timeout(REPEAT_LIMIT, self.at.get(path)).await;
            let response = response.ok().and_then(Result::ok).filter(|response| response.status().is_success());
            let Some(head) = response.as_ref().and_then(ready::head_bytes) else { return };
            (bytes, requests) = (bytes + head * count, requests + count);
        }
        self.head_bytes = (bytes + requests / 2).checked_div(requests).or(self.head_bytes);
    }

    /// Returns the bytes of the status line and the headers, if they are known.
    pub fn head_bytes(&self) -> Option<u64> {
        self.head_bytes
    }

    /// Returns the base URL of the target.
    pub fn base_url(&self) -> &str {
        &self.at.base_url
    }

    /// Returns the client that reaches it.
    pub fn client(&self) -> reqwest::Client {
        self.at.client.clone()
    }

    /// Returns when the first response was verified.
    pub fn verified_at(&self) -> Instant {
        self.verified_at
    }

    /// Repeats the request right before the measurement: only what was constant for a while, including the warm-up, can
    /// be compared with the response after it. Also counts the headers of the paths that the load requests.
    pub async fn confirm(&mut self, paths: &BTreeMap<String, u64>) {
        self.count_heads(paths).await;
        let Some(before) = self.known.take() else { return };
        if self.since.elapsed() < LONG_ENOUGH {
            self.known = Some(Answer { digest: None, ..before });
            return;
        }
        let now = ready::ask(&self.at, &self.request, REPEAT_LIMIT).await;
        self.known = now.ok().and_then(|response| before.and(Answer::from_response(&response)));
    }

    /// Compares the response now with those before the load.
    pub async fn change(&self) -> Change {
        let Self { at, request, limit, known, .. } = self;
        match ready::ask(at, request, *limit).await {
            Ok(response) => {
                let now = Answer::from_response(&response);
                known.as_ref().map_or_else(Change::default, |before| before.change(&request.path, &now))
            }
            Err(of_kind) => Change { of_kind, of_text: None },
        }
    }
}

/// How a response differs from those before the load: ends of sentences, empty if it does not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// In what the manifest verifies, in its content type, its server, or greatly in its length.
    pub of_kind: String,
    /// In its text only; `None` if that is unknown, because it varied before the load.
    pub of_text: Option<String>,
}

/// The compared parts of a response. The status is that of the manifest, or it would have been rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Answer {
    content_type: String,
    /// Another program may have taken over, behind a URL or a port.
    server: String,
    /// Digest of the body; `None` if it varied.
    digest: Option<[u8; 32]>,
    /// Length of the body without its numbers.
    length: usize,
    bytes: usize,
    start: String,
}

impl Answer {
    fn from_response(response: &Response) -> Self {
        let Response { content_type, server, head_bytes: _, body } = response;
        let start = String::from_utf8_lossy(&body[..body.len().min(200)]).chars().take(60).collect();
        let plain = without_numbers(body);
        let (digest, length) = (Some(Sha256::digest(&plain).into()), plain.len());
        Self { content_type: content_type.clone(), server: server.clone(), digest, length, bytes: body.len(), start }
    }

    /// Returns what a later response has in common with this one; `None` if it is of another kind.
    fn and(&self, next: Self) -> Option<Self> {
        let digest = self.digest.filter(|digest| next.digest == Some(*digest));
        self.of_other_kind("", &next).is_none().then_some(Self { digest, ..next })
    }

    fn change(&self, path: &str, now: &Self) -> Change {
        if let Some(of_kind) = self.of_other_kind(path, now) {
            return Change { of_kind, of_text: None };
        }
        let is_same = self.digest.map(|digest| now.digest == Some(digest));
        let of_text = is_same.map(|is_same| if is_same { String::new() } else { self.other_body(path, now) });
        Change { of_kind: String::new(), of_text }
    }

    /// Describes how a response is of another kind.
    fn of_other_kind(&self, path: &str, now: &Self) -> Option<String> {
        let Self { content_type, server, length, .. } = self;
        if *content_type != now.content_type {
            return Some(format!("GET {path} has content type {:?}, not {content_type:?}", now.content_type));
        }
        if *server != now.server {
            return Some(format!("GET {path} is answered by server {:?}, not {server:?}", now.server));
        }
        let (short, long) = (now.length.min(*length), now.length.max(*length));
        (long > short.saturating_mul(SAME_LENGTH)).then(|| self.other_body(path, now))
    }

    fn other_body(&self, path: &str, now: &Self) -> String {
        let (Self { bytes, start, .. }, Self { bytes: length, start: beginning, .. }) = (self, now);
        format!(
            "the body of GET {path} has {length} bytes and starts with {beginning:?}, \
             not {bytes} bytes that start with {start:?}"
        )
    }
}

/// Replaces every number by one digit: a time or a counter may happen to stay the same before the load.
fn without_numbers(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(body.len());
    for &byte in body {
        let byte = if byte.is_ascii_digit() { b'0' } else { byte };
        if byte != b'0' || plain.last() != Some(&b'0') {
            plain.push(byte);
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Starts a server whose responses have their path in a header.
    async fn server() -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.expect("a connection");
                let mut request = vec![0; 1024];
                let length = stream.read(&mut request).await.expect("a request");
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let status = if path == "/missing" { "404 Not Found" } else { "200 OK" };
                let response = format!("HTTP/1.1 {status}\r\nx-path: {path}\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(response.as_bytes()).await.expect("a response");
            }
        });
        url
    }

    #[tokio::test]
    async fn headers_are_those_of_the_paths_that_the_load_requests() {
        let now = Instant::now();
        let mut reference = ReferenceResponse {
            at: Endpoint::remote(&server().await, ready::client().expect("a client")),
            request: Verify { path: "/".to_owned(), status: 200, contains: None },
            limit: AFTERWARDS,
            known: None,
            since: now,
            verified_at: now,
            head_bytes: Some(7),
        };
        let cases: [(&[(&str, u64)], u64); 4] = [
            // Nothing is known of other requests than GET, and of a path that is not there.
            (&[], 7),
            (&[("/", 1), ("/missing", 1)], 7),
            (&[("/", 9)], 49),
            (&[("/", 1), ("/long", 3)], (49 + 3 * 53 + 2) / 4),
        ];
        for (paths, expected) in cases {
            reference.count_heads(&paths.iter().map(|(path, count)| ((*path).to_owned(), *count)).collect()).await;
            assert_eq!(reference.head_bytes(), Some(expected), "{paths:?}");
        }
    }

    fn answer(content_type: &str, body: &str) -> Answer {
        let (content_type, server, body) = (content_type.to_owned(), "nginx".to_owned(), body.as_bytes().to_vec());
        Answer::from_response(&Response { content_type, server, head_bytes: None, body })
    }

    /// Compares bodies of the same content type, and returns the changes of kind and of text.
    fn changed(before: &str, now: &str) -> (String, Option<String>) {
        let Change { of_kind, of_text } = answer("text/plain", before).change("/x", &answer("text/plain", now));
        (of_kind, of_text)
    }

    #[test]
    fn a_change_is_described_and_numbers_are_ignored() {
        const SERVED: &str = "served 9 times, up 10.5 s";
        assert_eq!(changed(SERVED, "served 123456 times, up 40.25 s"), (String::new(), Some(String::new())));
        let (of_kind, of_text) = changed(SERVED, "overloaded");
        let expected = "the body of GET /x has 10 bytes and starts with \"overloaded\", \
                        not 25 bytes that start with \"served 9 times, up 10.5 s\"";
        assert_eq!((of_kind.as_str(), of_text), (expected, None));
        let before = answer("text/plain", SERVED);
        let change = before.change("/x", &answer("text/html", SERVED));
        assert_eq!(change.of_kind, "GET /x has content type \"text/html\", not \"text/plain\"");
        let other = Answer { server: "Caddy".to_owned(), ..answer("text/plain", SERVED) };
        assert_eq!(before.change("/x", &other).of_kind, "GET /x is answered by server \"Caddy\", not \"nginx\"");
    }

    #[test]
    fn another_text_of_a_similar_length_is_no_other_kind() {
        let (of_kind, of_text) =
            changed("last visit: just now, from 127.0.0.1\n", "last visit: a minute ago, from ::1\n");
        assert!(of_kind.is_empty() && of_text.is_some_and(|text| text.contains("a minute ago")));
        assert!(!changed("hello", "").0.is_empty() && !changed("", "hello").0.is_empty(), "an empty body");
        assert!(changed("12345", "1").0.is_empty(), "counters may grow");
    }

    #[test]
    fn what_varies_before_the_load_is_not_compared_after_it() {
        let (hello, other) = (answer("text/plain", "hello"), answer("text/plain", "other"));
        let varied = hello.and(other.clone()).expect("the same kind").and(other).expect("the same kind");
        assert_eq!(varied.change("/x", &hello), Change::default());
        assert!(!varied.change("/x", &answer("text/plain", "the database is gone")).of_kind.is_empty());
        assert_eq!(hello.and(answer("text/html", "hello")), None);
    }
}
