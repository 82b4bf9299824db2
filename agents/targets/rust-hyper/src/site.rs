//! Routing and responses.

use std::hint::black_box;
use std::sync::OnceLock;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH, LOCATION,
    SERVER,
};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use sha2::digest::Output;
use sha2::{Digest, Sha256};

use crate::arguments::{Arguments, OtherWork};
use crate::content::{File, Files, redirect};

/// Number of SHA-256 rounds in `/hash`.
const HASH_ROUNDS: u32 = 100;

/// How often the extra rounds are halved in a slow start.
const HALVINGS: f64 = 7.0;

type Answer = Response<Full<Bytes>>;

/// The content of all responses.
pub struct Site {
    arguments: Arguments,
    /// Time of the first request with extra rounds.
    first: OnceLock<Instant>,
    files: Files,
}

/// The resource of a path.
enum Resource<'a> {
    Root,
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
    /// Creates a site as configured by the arguments.
    pub fn new(arguments: Arguments) -> Self {
        Self { arguments, first: OnceLock::new(), files: Files::generate() }
    }

    /// Handles one request. HEAD is handled like GET; hyper omits the body.
    pub fn answer<B>(&self, request: &Request<B>) -> Answer {
        let path = request.uri().path();
        let extra_rounds = self.extra_rounds();
        if extra_rounds > 0 {
            burn(path.as_bytes(), extra_rounds);
        }
        let Some(resource) = self.find(path) else {
            return text(StatusCode::NOT_FOUND, "not found\n");
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let answer = text(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
            return with(answer, ALLOW, HeaderValue::from_static("GET, HEAD"));
        }
        let answer = match resource {
            Resource::Root => text(StatusCode::OK, "hello\n"),
            Resource::Health => text(StatusCode::OK, "ok"),
            Resource::Hash => self.hash_or_other_work(request.uri().query()),
            Resource::File(file) => send_file(file, request.headers()),
            Resource::Redirect(path) => {
                let answer = status(StatusCode::MOVED_PERMANENTLY, Bytes::new());
                // Set here, because hyper sends no length of an empty body for HEAD.
                let answer = with(answer, CONTENT_LENGTH, HeaderValue::from_static("0"));
                with(answer, LOCATION, HeaderValue::from_static(path))
            }
        };
        match self.arguments.other_work {
            Some(OtherWork::Headers) => with(answer, SERVER, HeaderValue::from_static("a server with a long name/1.0")),
            _ => answer,
        }
    }

    fn find(&self, path: &str) -> Option<Resource<'_>> {
        match path {
            "/" => Some(Resource::Root),
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

    /// Returns the extra rounds of this request; decreasing in a slow start.
    fn extra_rounds(&self) -> u32 {
        let Arguments { extra_rounds, slow_start, .. } = self.arguments;
        let Some(length) = slow_start else { return extra_rounds };
        let since = self.first.get_or_init(Instant::now).elapsed();
        if since >= length {
            return 0;
        }
        let left = (-HALVINGS * since.as_secs_f64() / length.as_secs_f64()).exp2();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a number of rounds")]
        let rounds = (f64::from(extra_rounds) * left).round() as u32;
        rounds
    }

    /// Returns the response of `/hash`, or the configured other work.
    fn hash_or_other_work(&self, query: Option<&str>) -> Answer {
        const MOVED: &str = "/hash?moved";
        const PAGE: &str = "<html><body><h1>503 Service Unavailable</h1></body></html>\n";
        match self.arguments.other_work {
            Some(OtherWork::Redirect) if query.is_none() => {
                with(status(StatusCode::FOUND, Bytes::new()), LOCATION, HeaderValue::from_static(MOVED))
            }
            None | Some(OtherWork::Redirect | OtherWork::Headers) => self.hash(),
            Some(OtherWork::Empty) => status(StatusCode::OK, Bytes::new()),
            Some(OtherWork::NotModified) => status(StatusCode::NOT_MODIFIED, Bytes::new()),
            Some(OtherWork::ErrorPage) => text(StatusCode::OK, PAGE),
            Some(OtherWork::Close) => with(self.hash(), CONNECTION, HeaderValue::from_static("close")),
        }
    }

    fn hash(&self) -> Answer {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let timestamp = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let digest = sha256_rounds(timestamp.to_string().as_bytes(), HASH_ROUNDS);
        let body = Hashed { hash: format!("{digest:x}"), timestamp, source: &self.arguments.name };
        let body = serde_json::to_vec(&body).expect("strings and a number are valid JSON");
        with(status(StatusCode::OK, body.into()), CONTENT_TYPE, HeaderValue::from_static("application/json"))
    }
}

/// Does the extra work of a request. Never inlined, so that profiles name it.
#[inline(never)]
fn burn(seed: &[u8], rounds: u32) {
    black_box(sha256_rounds(seed, rounds));
}

/// Applies SHA-256 repeatedly, `rounds` times in total but at least once.
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

/// Whether the client has the content: `If-None-Match` by weak comparison (RFC 9110, 13.1.2).
///
/// A comma inside a foreign tag splits that tag; neither half can equal ours, which is quoted hex.
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
