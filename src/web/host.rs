//! Host names that this server accepts, as protection against DNS rebinding: a foreign name that resolves to this
//! machine is refused.

use std::{net::IpAddr, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{header, uri::Authority},
    middleware::Next,
    response::{IntoResponse, Response},
};
use url::Url;

use crate::app::error::Error;

/// Health checks, which are public under any name.
const PROBES: [&str; 2] = ["/healthz", "/readyz"];

/// Maximum length of an unknown name in the error message.
const MAX_QUOTE: usize = 100;

/// Middleware (`axum::middleware::from_fn_with_state`): refuses requests for a foreign host name.
pub async fn check(State(public_url): State<Arc<Url>>, request: Request, next: Next) -> Response {
    match foreign_name(&request, &public_url) {
        Some(name) => Error::Misdirected(name).into_response(),
        None => next.run(request).await,
    }
}

/// The host name of a request, if it is not one of the server's.
fn foreign_name(request: &Request, public_url: &Url) -> Option<String> {
    let path = request.uri().path();
    // Only programs send tokens, and browsers can't be tricked into sending them.
    let is_for_programs = path.starts_with("/api/") || path == "/metrics";
    if PROBES.contains(&path) || is_for_programs && request.headers().contains_key(header::AUTHORIZATION) {
        return None;
    }
    // Browsers always send this header.
    let header = request.headers().get(header::HOST)?;
    let authority = header.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
    match &authority {
        Some(authority) if is_own(authority.host(), public_url) => None,
        _ => Some(String::from_utf8_lossy(header.as_bytes()).chars().take(MAX_QUOTE).collect()),
    }
}

/// Whether a name is the server's. IP addresses and `localhost` can't be rebound.
fn is_own(host: &str, public_url: &Url) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    public_url.host_str() == Some(&host)
        || host == "localhost"
        || host.ends_with(".localhost")
        || literal.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    fn refused(path: &str, host: &[u8], headers: &[(&str, &str)]) -> bool {
        let url = "https://bench.example.com/".parse().expect("an address");
        let mut request = Request::get(path).header(header::HOST, host);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        foreign_name(&request.body(Body::empty()).expect("a request"), &url).is_some()
    }

    #[test]
    fn the_public_name_localhost_and_ip_addresses_are_accepted() {
        for own in [
            "bench.example.com",
            "BENCH.example.com:8377",
            "bench.example.com.",
            "localhost:8377",
            "demo.localhost",
            "127.0.0.1:8377",
            "[::1]:8377",
            "10.0.0.7",
        ] {
            assert!(!refused("/login", own.as_bytes(), &[]), "{own}");
        }
        for other in [
            &b"evil.example"[..],
            b"bench.example.com.evil.example",
            b"127.0.0.1.evil.example:8377",
            b"",
            b"\xff",
            b"a b",
        ] {
            assert!(refused("/login", other, &[]), "{other:?}");
        }
    }

    #[test]
    fn probes_and_programs_may_use_another_name() {
        assert!(!refused("/healthz", b"brewbench.default.svc", &[]));
        assert!(!refused("/api/v1/runs", b"bench.internal", &[("authorization", "Bearer bbt_x")]));
        assert!(
            refused("/login", b"bench.internal", &[("authorization", "Bearer bbt_x")]),
            "programs do not request pages"
        );
        assert!(refused("/api/v1/runs", b"bench.internal", &[("cookie", "brewbench_session=x")]));
    }
}
