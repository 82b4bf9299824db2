//! Requests as bytes, prepared before the load. Pure.

use std::ops::Range;

use crate::content::Expected;
use crate::plan::{Request, Reuse};
use crate::share::Share;
use crate::target::Target;

/// A request as sent.
#[derive(Debug)]
pub struct Message {
    /// All paths, one after the other, and the end of each.
    paths: Vec<u8>,
    ends: Vec<usize>,
    before_path: Vec<u8>,
    after_path: Vec<u8>,
    /// The complete message if there is one path.
    complete: Vec<u8>,
    /// The body's place in `after_path`.
    body: Range<usize>,
    /// What is expected of responses.
    pub expected: Expected,
    /// Whether it is a `HEAD` request, so that responses have no body.
    pub is_head: bool,
    /// Whether it may be sent again if its connection was closed before the response began.
    pub is_idempotent: bool,
}

impl Message {
    /// Creates it from a request that was checked.
    pub fn new(request: &Request, target: &Target, reuse: Reuse) -> Self {
        let Request { method, paths, headers, body, weight: _, expect } = request;
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
        let body_start = after_path.len();
        after_path.extend_from_slice(&body.0);
        let mut message = Self {
            paths: Vec::with_capacity(paths.iter().map(String::len).sum()),
            ends: Vec::with_capacity(paths.len()),
            before_path: format!("{method} {}", target.base_path).into_bytes(),
            body: body_start..after_path.len(),
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

    /// Returns its body.
    pub fn body(&self) -> &[u8] {
        &self.after_path[self.body.clone()]
    }

    /// Returns the number of its paths.
    pub fn paths(&self) -> usize {
        self.ends.len()
    }
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
    pub fn take(&mut self, paths: usize) -> usize {
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
    pub fn new(requests: &[Request]) -> Self {
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
    use crate::plan::Body;

    fn text(request: &Request, path: usize, reuse: Reuse) -> String {
        let target = Target::parse("http://example.org:8080/base/").expect("a target");
        let message = Message::new(request, &target, reuse);
        assert_eq!(message.body(), request.body.0);
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
    fn threads_take_all_paths_in_turns() {
        let mut cursors: Vec<_> = (0..4).map(|index| PathCursor::new(Share { index, of: 4 })).collect();
        let mut taken: Vec<usize> =
            (0..6).flat_map(|_| cursors.iter_mut().map(|cursor| cursor.take(6)).collect::<Vec<_>>()).collect();
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
