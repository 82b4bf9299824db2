//! Requests as bytes, prepared before the load. Pure.

use bytes::Bytes;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderName, HeaderValue, Method, Request};

use crate::content::Expected;
use crate::plan::{self, Reuse};
use crate::share::Share;
use crate::target::Target;

/// A request as sent.
#[derive(Debug)]
pub struct Message {
    /// All paths, one after the other, and the end of each.
    paths: Vec<u8>,
    ends: Vec<usize>,
    before_path: Vec<u8>,
    /// Length of the base path, at the end of `before_path`.
    base_length: usize,
    after_path: Vec<u8>,
    /// The complete message if there is one path.
    complete: Vec<u8>,
    /// The head for HTTP/2, with the first path.
    head: Request<()>,
    /// The body.
    pub body: Bytes,
    /// What is expected of responses.
    pub expected: Expected,
    /// Whether it is a `HEAD` request, so that responses have no body.
    pub is_head: bool,
    /// Whether it may be sent again if its connection was closed before the response began.
    pub is_idempotent: bool,
}

impl Message {
    /// Creates it from a request that was checked.
    pub fn new(request: &plan::Request, target: &Target, reuse: Reuse) -> Self {
        let plan::Request { method, paths, headers, body, weight: _, expect } = request;
        let mut after_path = b" HTTP/1.1\r\n".to_vec();
        let mut field = |name: &str, value: &str| {
            for text in [name, ": ", value, "\r\n"] {
                after_path.extend_from_slice(text.as_bytes());
            }
        };
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            field("Host", &target.authority);
        }
        for (name, value) in headers {
            field(name, value);
        }
        if !body.0.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
            field("Content-Length", &body.0.len().to_string());
        }
        if reuse == Reuse::PerRequest {
            field("Connection", "close");
        }
        after_path.extend_from_slice(b"\r\n");
        after_path.extend_from_slice(&body.0);
        let mut message = Self {
            paths: Vec::with_capacity(paths.iter().map(String::len).sum()),
            ends: Vec::with_capacity(paths.len()),
            base_length: target.base_path.len(),
            before_path: format!("{method} {}", target.base_path).into_bytes(),
            head: head(request, target),
            body: Bytes::copy_from_slice(&body.0),
            after_path,
            complete: Vec::new(),
            expected: Expected::new(expect),
            is_head: method == "HEAD",
            is_idempotent: matches!(method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE" | "PUT" | "DELETE"),
        };
        for path in paths {
            message.paths.extend_from_slice(path.as_bytes());
            message.ends.push(message.paths.len());
        }
        if paths.len() == 1 {
            message.complete = [&message.before_path[..], message.path(0), &message.after_path].concat();
        }
        message
    }

    /// Returns its bytes with one of its paths. `scratch` is where they are put together if there are several.
    pub fn bytes<'a>(&'a self, path: usize, scratch: &'a mut Vec<u8>) -> &'a [u8] {
        if !self.complete.is_empty() {
            return &self.complete;
        }
        scratch.clear();
        for part in [&self.before_path, self.path(path), &self.after_path] {
            scratch.extend_from_slice(part);
        }
        scratch
    }

    /// Returns one of its paths, without the base path.
    pub fn path(&self, number: usize) -> &[u8] {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.paths[start..self.ends[number]]
    }

    /// Returns its head for HTTP/2 with one of its paths.
    pub fn head(&self, path: usize) -> Request<()> {
        let mut head = self.head.clone();
        if self.paths() > 1 {
            let path = [&self.before_path[self.before_path.len() - self.base_length..], self.path(path)].concat();
            let mut parts = head.uri().clone().into_parts();
            parts.path_and_query = PathAndQuery::try_from(path).ok();
            // Paths were checked, so that it is always one.
            if let Ok(uri) = Uri::from_parts(parts) {
                *head.uri_mut() = uri;
            }
        }
        head
    }

    /// Returns the number of its paths.
    pub fn paths(&self) -> usize {
        self.ends.len()
    }
}

/// Returns the head of a request that was checked for HTTP/2, with its first path.
fn head(request: &plan::Request, target: &Target) -> Request<()> {
    let named = |(name, _): &&(String, String)| name.eq_ignore_ascii_case("host");
    let authority = request.headers.iter().find(named).map_or(target.authority.as_str(), |(_, value)| value);
    let scheme = if target.is_tls { "https" } else { "http" };
    let path = request.paths.first().map_or("/", String::as_str);
    let uri = format!("{scheme}://{authority}{}{path}", target.base_path);
    let mut head = Request::new(());
    *head.method_mut() = Method::from_bytes(request.method.as_bytes()).unwrap_or_default();
    *head.uri_mut() = uri.parse().unwrap_or_default();
    for (name, value) in request.headers.iter().filter(|field| !named(field)) {
        if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(value)) {
            head.headers_mut().append(name, value);
        }
    }
    head
}

/// Which path a thread takes next: threads and generators take turns, so that together they take each in order.
#[derive(Clone, Debug)]
pub struct PathCursor {
    next: u64,
    share: Share,
}

impl PathCursor {
    /// Creates it for a thread.
    pub fn new(share: Share) -> Self {
        Self { next: share.index, share }
    }

    /// Returns the number of the next of some paths.
    #[expect(clippy::cast_possible_truncation, reason = "less than the number of paths")]
    pub fn next_path(&mut self, paths: usize) -> usize {
        if paths == 1 {
            return 0;
        }
        let place = (self.next % paths as u64) as usize;
        self.next = self.next.wrapping_add(self.share.of);
        place
    }
}

/// Draws requests by their weights.
#[derive(Clone, Debug)]
pub struct Weights {
    sums: Vec<u64>,
}

impl Weights {
    /// Creates it from the requests of a list.
    pub fn new(requests: &[plan::Request]) -> Self {
        let mut sum = 0;
        let sums = requests.iter().map(|request| {
            sum += u64::from(request.weight);
            sum
        });
        Self { sums: sums.collect() }
    }

    /// Returns the number of a random request.
    pub fn draw(&self, rng: &mut impl rand::Rng) -> usize {
        match self.sums[..] {
            [_] => 0,
            [.., sum] => {
                let at = rng.random_range(0..sum);
                self.sums.partition_point(|&end| end <= at)
            }
            [] => unreachable!("lists without requests are refused"),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;
    use crate::plan::{Body, Request};

    fn text(request: &Request, path: usize, reuse: Reuse) -> String {
        let target = Target::parse("http://example.org:8080/base/").expect("a target");
        let message = Message::new(request, &target, reuse);
        String::from_utf8(message.bytes(path, &mut Vec::new()).to_vec()).expect("text")
    }

    #[test]
    fn requests_are_written_as_http_1_1() {
        let get = Request::get("/a");
        assert_eq!(text(&get, 0, Reuse::KeepAlive), "GET /base/a HTTP/1.1\r\nHost: example.org:8080\r\n\r\n");
        let post = Request {
            method: "POST".to_owned(),
            paths: vec!["/a".to_owned(), "/b?c".to_owned()],
            headers: vec![("HOST".to_owned(), "x".to_owned()), ("A".to_owned(), "b".to_owned())],
            body: Body(b"body".to_vec()),
            ..get
        };
        assert_eq!(
            text(&post, 1, Reuse::PerRequest),
            "POST /base/b?c HTTP/1.1\r\nHOST: x\r\nA: b\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody"
        );
    }

    #[test]
    fn heads_for_http_2_have_the_same_path_authority_and_fields() {
        let target = Target::parse("https://example.org:8080/base/").expect("a target");
        let request = Request {
            method: "PUT".to_owned(),
            paths: vec!["/a".to_owned(), "/b?c".to_owned()],
            headers: vec![("Host".to_owned(), "x".to_owned()), ("A".to_owned(), "b".to_owned())],
            ..Request::get("/")
        };
        let message = Message::new(&request, &target, Reuse::KeepAlive);
        assert_eq!(message.head(0).uri(), "https://x/base/a");
        let head = message.head(1);
        assert_eq!((head.uri().to_string().as_str(), head.method()), ("https://x/base/b?c", &http::Method::PUT));
        assert_eq!((head.headers().len(), head.headers()["a"].as_bytes()), (1, &b"b"[..]));
    }

    #[test]
    fn threads_take_all_paths_in_turns() {
        let mut cursors: Vec<_> = (0..4).map(|index| PathCursor::new(Share { index, of: 4 })).collect();
        let mut taken: Vec<usize> =
            (0..6).flat_map(|_| cursors.iter_mut().map(|cursor| cursor.next_path(6)).collect::<Vec<_>>()).collect();
        assert_eq!(taken[..8], [0, 1, 2, 3, 4, 5, 0, 1]);
        taken.sort_unstable();
        assert_eq!(taken, (0..6).flat_map(|path| [path; 4]).collect::<Vec<_>>());
    }

    #[test]
    fn requests_are_drawn_by_weight() {
        let requests = [1, 3].map(|weight| Request { weight, ..Request::get("/") });
        let weights = Weights::new(&requests);
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let second = (0..40_000).filter(|_| weights.draw(&mut rng) == 1).count();
        // Five standard deviations.
        assert!(second.abs_diff(30_000) < 435, "{second}");
    }
}
