//! Which plans are refused, and why. Pure.

use brewbench_wire::load::Load;
use http::header::{HeaderName, HeaderValue};

use super::{Expect, HttpVersion, Plan, Request, RequestList, Reuse, Tls};

/// Maximum number of requests of a list.
pub const MAX_REQUESTS: usize = 10_000;

/// Maximum number of paths of a request.
pub const MAX_PATHS: usize = 5_000_000;

/// Longest path; servers accept 8 KiB at most.
const MAX_PATH: usize = 8 * 1024;

/// Why a plan is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {text}")]
pub struct Fault {
    /// The field, in words of the plan: `weight`.
    pub field: &'static str,
    /// The request, from 1, if it is about one.
    pub request: Option<usize>,
    /// What is wrong, and what to do.
    pub text: String,
}

/// Returns a fault of a field outside the requests.
pub(crate) fn fault(field: &'static str, text: impl Into<String>) -> Fault {
    Fault { field, request: None, text: text.into() }
}

impl Plan {
    /// Checks all that does not need the network.
    pub fn check(&self) -> Result<(), Fault> {
        self.list.check()?;
        let threads_allowed = self.threads.is_none_or(|threads| (1..=1_024).contains(&threads));
        if !threads_allowed {
            return Err(fault("threads", "between 1 and 1024"));
        }
        for (field, ms) in
            [("connect_timeout_ms", self.connect_timeout_ms), ("request_timeout_ms", self.request_timeout_ms)]
        {
            if !(1..=3_600_000).contains(&ms) {
                return Err(fault(field, "between 1 ms and an hour"));
            }
        }
        if self.grace_ms > 3_600_000 {
            return Err(fault("grace_ms", "at most an hour"));
        }
        if self.turns.is_some() && self.segment.is_some() {
            return Err(fault("turns", "several load generators can't take turns: use one"));
        }
        match &self.load {
            Load::Script => Err(fault("load", "a request list has no load of its own: choose vus or a rate")),
            Load::Closed(_) => Ok(()),
            Load::Open(open) => {
                let generators = self.segment.map_or(1, |segment| segment.of);
                if open.max_vus() < generators {
                    let text = format!("{} connections are too few for {generators} generators", open.max_vus());
                    return Err(fault("load", text));
                }
                if self.list.think_time_ms > 0 {
                    return Err(fault("think_time_ms", "a rate has no think time: remove it, or use a number of vus"));
                }
                Ok(())
            }
        }
    }
}

impl RequestList {
    /// Checks all requests.
    pub fn check(&self) -> Result<(), Fault> {
        let Self { requests, http, connection, think_time_ms, tls } = self;
        if requests.is_empty() {
            return Err(fault("request", "the list is empty: add a request"));
        }
        if requests.len() > MAX_REQUESTS {
            return Err(fault("request", format!("there are {}; at most {MAX_REQUESTS}", requests.len())));
        }
        for (place, request) in requests.iter().enumerate() {
            request.check().map_err(|fault| Fault { request: Some(place + 1), ..fault })?;
        }
        if *think_time_ms > 3_600_000 {
            return Err(fault("think_time_ms", "at most an hour"));
        }
        if *http == HttpVersion::Two && *connection == Reuse::PerRequest {
            return Err(fault("connection", "HTTP/2 is not measured with a connection per request: use HTTP/1.1"));
        }
        tls.check()
    }
}

impl Tls {
    fn check(&self) -> Result<(), Fault> {
        let Self { insecure, server_name, ca } = self;
        if *insecure && ca.is_some() {
            return Err(fault("tls.ca", "nothing is verified with `insecure`: remove one of the two"));
        }
        match server_name {
            Some(name) if rustls::pki_types::ServerName::try_from(name.as_str()).is_err() => {
                Err(fault("tls.server_name", format!("{name:?} is not a host name")))
            }
            _ => Ok(()),
        }
    }
}

impl Request {
    /// Checks it.
    pub fn check(&self) -> Result<(), Fault> {
        let Self { method, paths, headers, body: _, weight, expect } = self;
        check_method(method)?;
        if paths.is_empty() {
            return Err(fault("paths", "there is none: add one, such as /"));
        }
        if paths.len() > MAX_PATHS {
            return Err(fault("paths", format!("there are {}; at most {MAX_PATHS}", paths.len())));
        }
        paths.iter().try_for_each(|path| check_path(path))?;
        headers.iter().try_for_each(|(name, value)| check_header(name, value))?;
        if headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host")).count() > 1 {
            return Err(fault("headers", "more than one `host`"));
        }
        if *weight == 0 {
            return Err(fault("weight", "with 0 it is never sent: use 1 or more, or remove the request"));
        }
        expect.check()
    }
}

impl Expect {
    fn check(&self) -> Result<(), Fault> {
        let Self { status, length: _, sha256, contains } = self;
        if status.is_some_and(|status| !(200..=599).contains(&status)) {
            return Err(fault("expect.status", "between 200 and 599"));
        }
        if sha256.as_deref().is_some_and(|text| digest(text).is_none()) {
            return Err(fault("expect.sha256", "64 hexadecimal digits"));
        }
        if contains.as_deref() == Some("") {
            return Err(fault("expect.contains", "empty: every body contains that"));
        }
        Ok(())
    }
}

/// Reads a SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (place, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * place..2 * place + 2)?, 16).ok()?;
    }
    Some(digest)
}

fn check_method(method: &str) -> Result<(), Fault> {
    let known =
        method.bytes().all(|byte| byte.is_ascii_uppercase()) && http::Method::from_bytes(method.as_bytes()).is_ok();
    if !known {
        return Err(fault("method", format!("{method:?} is not a method: write it in capitals, as GET")));
    }
    if method == "CONNECT" {
        return Err(fault("method", "CONNECT opens a tunnel and is not a request"));
    }
    Ok(())
}

/// Explains why a path can't be sent.
pub(crate) fn check_path(path: &str) -> Result<(), Fault> {
    let quoted = || path.chars().take(60).collect::<String>();
    if !path.starts_with('/') {
        return Err(fault("paths", format!("{:?} does not begin with /", quoted())));
    }
    if path.len() > MAX_PATH {
        return Err(fault("paths", format!("{:?}… has {} bytes; at most {MAX_PATH}", quoted(), path.len())));
    }
    let Some(odd) = path.chars().find(|&character| !character.is_ascii_graphic() || character == '#') else {
        return Ok(());
    };
    let what = match odd {
        ' ' => "a space: write %20".to_owned(),
        '#' => "a fragment, which is never sent: remove it".to_owned(),
        odd if odd.is_control() => format!("the control character {odd:?}: remove it"),
        odd => format!("{odd:?}: percent-encode it"),
    };
    Err(fault("paths", format!("{:?} contains {what}", quoted())))
}

fn check_header(name: &str, value: &str) -> Result<(), Fault> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err(fault("headers", format!("{name:?} is not a name of a header field")));
    }
    if ["connection", "content-length", "transfer-encoding", "upgrade"].contains(&name.to_ascii_lowercase().as_str()) {
        return Err(fault("headers", format!("{name}: the load generator sets it: remove it")));
    }
    if HeaderValue::from_str(value).is_err() {
        return Err(fault("headers", format!("{name}: its value contains a line break or another control character")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(&mut Request)) -> String {
        let mut request = Request::get("/");
        change(&mut request);
        let fault = RequestList::from(vec![Request::get("/"), request]).check().expect_err("a fault");
        assert_eq!(fault.request, Some(2));
        fault.to_string()
    }

    #[test]
    fn what_can_not_be_sent_is_refused_with_the_field() {
        let path = |path: &str| refused(|request| request.paths = vec![path.to_owned()]);
        assert_eq!(path("/a b"), r#"paths: "/a b" contains a space: write %20"#);
        assert_eq!(path("/a\r\nX: y"), r#"paths: "/a\r\nX: y" contains the control character '\r': remove it"#);
        assert_eq!(path("/é"), r#"paths: "/é" contains 'é': percent-encode it"#);
        assert_eq!(path("a"), r#"paths: "a" does not begin with /"#);
        let header = |name: &str, value: &str| refused(|request| request.headers = vec![(name.into(), value.into())]);
        assert_eq!(header("a b", "c"), r#"headers: "a b" is not a name of a header field"#);
        assert!(header("x", "a\nb").contains("line break"));
        assert!(header("Content-Length", "1").contains("sets it"));
        assert!(refused(|request| request.weight = 0).starts_with("weight: with 0"));
        assert!(refused(|request| request.method = "get".to_owned()).starts_with("method: "));
        assert!(refused(|request| request.method = "CONNECT".to_owned()).starts_with("method: "));
        assert!(refused(|request| request.paths.clear()).starts_with("paths: there is none"));
        assert!(refused(|request| request.expect.sha256 = Some("é".repeat(32))).starts_with("expect.sha256: "));
        assert!(refused(|request| request.expect.status = Some(101)).starts_with("expect.status: "));
        assert!(RequestList::from(Vec::new()).check().expect_err("a fault").to_string().contains("empty"));
    }

    #[test]
    fn a_digest_is_read() {
        assert_eq!(digest(&"0f".repeat(32)), Some([15; 32]));
        assert_eq!(digest(&"0g".repeat(32)), None);
        assert_eq!(digest("00"), None);
    }
}
