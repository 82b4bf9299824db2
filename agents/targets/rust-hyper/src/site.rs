//! Which answer a request gets.

use std::hint::black_box;
use std::time::{SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use sha2::digest::Output;
use sha2::{Digest, Sha256};

use crate::content::{File, Files, redirect};

/// Rounds of SHA-256 that `/hash` does.
const HASH_ROUNDS: u32 = 100;

type Answer = Response<Full<Bytes>>;

/// Everything that answers are made of.
pub struct Site {
    name: String,
    extra_rounds: u32,
    files: Files,
}

/// What a path names.
enum Resource<'a> {
    Health,
    Hash,
    File(&'a File),
    Redirect(&'static str),
}

/// The body of `/hash`.
#[derive(Serialize)]
struct Hashed<'a> {
    hash: String,
    timestamp: u64,
    source: &'a str,
}

impl Site {
    /// A site that calls itself `name`, each of whose answers costs `extra_rounds` of SHA-256 in addition.
    pub fn new(name: String, extra_rounds: u32) -> Self {
        Self { name, extra_rounds, files: Files::generate() }
    }

    /// Answers one request. HEAD gets what GET gets; leaving out the body is hyper's part.
    pub fn answer<B>(&self, request: &Request<B>) -> Answer {
        let path = request.uri().path();
        if self.extra_rounds > 0 {
            black_box(sha256_rounds(path.as_bytes(), self.extra_rounds));
        }
        let Some(resource) = self.find(path) else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let answer = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            return with(answer, ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        match resource {
            Resource::Health => text(StatusCode::OK, "ok"),
            Resource::Hash => self.hash(),
            Resource::File(file) => send_file(file, request.headers()),
            Resource::Redirect(path) => {
                let answer = status(StatusCode::MOVED_PERMANENTLY, Bytes::new());
                // By hand, since hyper tells no length of an empty body to a HEAD.
                let answer = with(answer, CONTENT_LENGTH, HeaderValue::from_static("0"));
                with(answer, LOCATION, HeaderValue::from_static(path))
            }
        }
    }

    fn find(&self, path: &str) -> Option<Resource<'_>> {
        match path {
            "/health" => Some(Resource::Health),
            "/hash" => Some(Resource::Hash),
            _ => {
                if let Some(name) = path.strip_prefix("/file/") {
                    self.files.get(name).map(Resource::File)
                } else {
                    redirect(path.strip_prefix("/r/")?).map(Resource::Redirect)
                }
            }
        }
    }

    fn hash(&self) -> Answer {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timestamp = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let digest = sha256_rounds(timestamp.to_string().as_bytes(), HASH_ROUNDS);
        let body = Hashed { hash: format!("{digest:x}"), timestamp, source: &self.name };
        let body = serde_json::to_vec(&body).expect("text and a number are JSON");
        with(status(StatusCode::OK, body.into()), CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }
}

/// SHA-256 of `seed`, then of the digest before, `rounds` times in all; at least once.
fn sha256_rounds(seed: &[u8], rounds: u32) -> Output<Sha256> {
    (1..rounds).fold(Sha256::digest(seed), |digest, _| Sha256::digest(digest))
}

fn send_file(file: &File, headers: &HeaderMap) -> Answer {
    if is_known(&file.etag, headers) {
        return with(status(StatusCode::NOT_MODIFIED, Bytes::new()), ETAG, file.etag.clone());
    }
    let answer = status(StatusCode::OK, file.bytes.clone());
    let answer = with(answer, CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    with(answer, ETAG, file.etag.clone())
}

/// Whether the client says that it has the content: `If-None-Match` by weak comparison (RFC 9110, 13.1.2).
///
/// A comma inside somebody else's tag cuts that tag in two; neither half can equal ours, which is hex in quotes.
fn is_known(etag: &HeaderValue, headers: &HeaderMap) -> bool {
    let lines = headers.get_all(IF_NONE_MATCH).iter();
    lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b',')).map(<[u8]>::trim_ascii).any(|tag| {
        let opaque = tag.strip_prefix(b"W/").unwrap_or(tag);
        tag == b"*" || opaque == etag.as_bytes()
    })
}

fn text(code: StatusCode, body: &'static str) -> Answer {
    let answer = status(code, Bytes::from_static(body.as_bytes()));
    with(answer, CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"))
}

fn status(code: StatusCode, body: Bytes) -> Answer {
    let mut answer = Response::new(Full::new(body));
    *answer.status_mut() = code;
    answer
}

fn with(mut answer: Answer, name: HeaderName, value: HeaderValue) -> Answer {
    answer.headers_mut().insert(name, value);
    answer
}
