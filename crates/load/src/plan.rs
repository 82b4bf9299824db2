//! What a load generator does: the target, the requests, the load and its limits. Plain data.

mod body;
mod check;

use std::net::SocketAddr;

use brewbench_wire::job::Segment;
use brewbench_wire::load::Load;
use serde::{Deserialize, Serialize};

use crate::turns::Turns;

pub use body::Body;
pub use check::{Fault, MAX_PATHS, MAX_REQUESTS};
pub(crate) use check::{check_path, digest, fault};

/// One execution of a load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The target: `http` or `https`, host, port, and optionally a path before those of the requests.
    pub url: String,
    /// Address to connect to, if not that of the URL's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_to: Option<SocketAddr>,
    /// The requests.
    pub list: RequestList,
    /// The load: virtual users are connections, iterations are requests.
    pub load: Load,
    /// How the starts of an open load are spread.
    #[serde(default)]
    pub spacing: Spacing,
    /// This generator's part, if several share the load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
    /// Number of threads; by default one for each core that the process may use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Time to connect, including the TLS handshake.
    #[serde(default = "ten_seconds")]
    pub connect_timeout_ms: u64,
    /// Time from the first byte of a request to the last one of its response.
    #[serde(default = "a_minute")]
    pub request_timeout_ms: u64,
    /// Time that requests in flight have after the end of the load.
    #[serde(default = "ten_seconds")]
    pub grace_ms: u64,
    /// Whether to wait for the line `start` on standard input before the load.
    #[serde(default)]
    pub paused: bool,
    /// Its turns, if it takes turns with the load of another target.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<Turns>,
    /// Seed of everything that is random.
    #[serde(default)]
    pub seed: u64,
}

/// Requests and how they are sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RequestList {
    /// The requests. Each next one is drawn at random by their weights.
    pub requests: Vec<Request>,
    /// The version of HTTP.
    #[serde(default)]
    pub http: HttpVersion,
    /// Whether each request gets a connection of its own.
    #[serde(default)]
    pub connection: Reuse,
    /// Pause of a connection between a response and the next request; closed loads only.
    #[serde(default)]
    pub think_time_ms: u64,
    /// TLS.
    #[serde(default)]
    pub tls: Tls,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The method.
    #[serde(default = "get")]
    pub method: String,
    /// Paths with queries. Each request takes the next one.
    pub paths: Vec<String>,
    /// Additional header fields.
    #[serde(default)]
    pub headers: Vec<(String, String)>,
    /// The body.
    #[serde(default)]
    pub body: Body,
    /// Share of the requests, relative to the weights of the others.
    #[serde(default = "one")]
    pub weight: u32,
    /// What a response must be to count as successful.
    #[serde(default)]
    pub expect: Expect,
}

/// What a response must be. What is absent is not checked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// The status; by default any below 400.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// SHA-256 of the body, in hexadecimal; of a sample of the responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// A text in the body; in a sample of the responses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
}

/// A version of HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum HttpVersion {
    /// With TLS, what the target prefers; otherwise 1.1.
    #[default]
    #[serde(rename = "auto")]
    Auto,
    /// HTTP/1.1.
    #[serde(rename = "1.1")]
    One,
    /// HTTP/2; without TLS, with prior knowledge.
    #[serde(rename = "2")]
    Two,
}

/// Whether connections are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reuse {
    /// As long as the target keeps them open.
    #[default]
    KeepAlive,
    /// Each request has its own.
    PerRequest,
}

/// How the starts of an open load are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spacing {
    /// At equal distances.
    #[default]
    Uniform,
    /// As those of many independent users: a Poisson process.
    Poisson,
}

/// How TLS is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Whether to accept any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// Name for which the certificate must be valid, sent as SNI; by default the URL's host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_name: Option<String>,
    /// Certificates to trust instead of the system's, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

fn one() -> u32 {
    1
}

fn ten_seconds() -> u64 {
    10_000
}

fn a_minute() -> u64 {
    60_000
}

impl Plan {
    /// Creates a plan of one `GET`, with the usual limits.
    pub fn get(url: &str, path: &str, load: Load) -> Self {
        Self {
            url: url.to_owned(),
            connect_to: None,
            list: RequestList::from(vec![Request::get(path)]),
            load,
            spacing: Spacing::Uniform,
            segment: None,
            threads: None,
            connect_timeout_ms: ten_seconds(),
            request_timeout_ms: a_minute(),
            grace_ms: ten_seconds(),
            paused: false,
            turns: None,
            seed: 0,
        }
    }
}

impl Request {
    /// Creates a `GET` without expectations.
    pub fn get(path: &str) -> Self {
        Self {
            method: get(),
            paths: vec![path.to_owned()],
            headers: Vec::new(),
            body: Body::default(),
            weight: 1,
            expect: Expect::default(),
        }
    }
}

impl From<Vec<Request>> for RequestList {
    fn from(requests: Vec<Request>) -> Self {
        Self { requests, http: HttpVersion::Auto, connection: Reuse::KeepAlive, think_time_ms: 0, tls: Tls::default() }
    }
}

#[cfg(test)]
mod tests {
    use brewbench_wire::load::{Closed, Form, Open};

    use super::*;

    #[test]
    fn a_plan_is_read_as_it_was_written() {
        let load = Load::Open(Open::new(Form::Constant { level: 9, duration_ms: 1_500 }, Some(3)).expect("a load"));
        let plan = Plan {
            connect_to: Some(SocketAddr::from(([127, 0, 0, 1], 80))),
            list: RequestList {
                http: HttpVersion::Two,
                connection: Reuse::PerRequest,
                think_time_ms: 3,
                tls: Tls { insecure: true, server_name: Some("a".to_owned()), ca: Some("b".to_owned()) },
                requests: vec![Request {
                    method: "PUT".to_owned(),
                    paths: vec!["/a".to_owned(), "/b?c".to_owned()],
                    headers: vec![("Accept".to_owned(), "*/*".to_owned())],
                    body: Body(vec![0, 255]),
                    weight: 5,
                    expect: Expect {
                        status: Some(201),
                        length: Some(0),
                        sha256: Some("00".repeat(32)),
                        contains: Some("ok".to_owned()),
                    },
                }],
            },
            spacing: Spacing::Poisson,
            segment: Some(Segment { index: 1, of: 3 }),
            threads: Some(2),
            paused: true,
            turns: Some(Turns { seed: 1, is_second: true }),
            seed: u64::MAX,
            ..Plan::get("https://example.org/base", "/", load)
        };
        let text = serde_json::to_string(&plan).expect("written");
        assert_eq!(serde_json::from_str::<Plan>(&text).expect("read"), plan, "{text}");
    }

    #[test]
    fn a_plan_needs_little_and_refuses_unknown_fields() {
        let text = r#"{"url":"http://localhost:8080","list":{"requests":[{"paths":["/"]}]},"load":{"kind":"vus","vus":3,"duration_s":1}}"#;
        let load = Load::Closed(Closed::new(Form::Constant { level: 3, duration_ms: 1_000 }).expect("a load"));
        let plan: Plan = serde_json::from_str(text).expect("read");
        assert_eq!(plan, Plan::get("http://localhost:8080", "/", load));
        let unknown = text.replace("paths", "path");
        let fault = serde_json::from_str::<Plan>(&unknown).expect_err("a fault").to_string();
        assert!(fault.contains("unknown field `path`"), "{fault}");
    }
}
