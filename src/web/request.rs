//! One request, by a name that stands in the answer, on error pages and in the log.

use std::net::SocketAddr;

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, Uri},
    middleware::Next,
    response::Response,
};
use tracing::Instrument;

/// The header that carries the name.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The other end of a connection, whoever stands there.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

tokio::task_local! {
    static ID: String;
}

/// Middleware (`axum::middleware::from_fn`): gives each request a name. Whatever the log is told within carries it.
/// What callers send as theirs is not taken: it would stand in the log as if it were ours.
pub async fn name(request: Request, next: Next) -> Response {
    let id = format!("{:012x}", rand::random::<u64>() >> 16);
    let span = tracing::error_span!("request", %id);
    let mut response = ID.scope(id.clone(), next.run(request).instrument(span)).await;
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

/// Middleware (`axum::middleware::map_request`) around all routes: names of dots alone stand in addresses in another way,
/// see [`super::address::segment`].
pub async fn names_of_dots(mut request: Request) -> Request {
    if let Some(path) = super::address::with_dots(request.uri().path()) {
        let mut parts = request.uri().clone().into_parts();
        let query = request.uri().query().map(|query| format!("?{query}")).unwrap_or_default();
        parts.path_and_query = format!("{path}{query}").parse().ok();
        if let Ok(uri) = Uri::from_parts(parts) {
            *request.uri_mut() = uri;
        }
    }
    request
}

/// The name of the request that is answered; none outside of one.
pub fn id() -> Option<String> {
    ID.try_with(Clone::clone).ok()
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, routing::get};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn each_request_has_a_name_of_ours_that_its_handler_knows() {
        let app: Router = Router::new().route("/", get(async || id().unwrap_or_default())).layer(from_fn(name));
        let mut seen = Vec::new();
        for _ in 0..2 {
            let request = Request::get("/").header(HEADER, "theirs").body(Body::empty()).expect("a request");
            let response = app.clone().oneshot(request).await.expect("infallible");
            let told = response.headers()[HEADER].clone();
            let body = axum::body::to_bytes(response.into_body(), 99).await.expect("a body");
            assert_eq!(body.as_ref(), told.as_bytes());
            assert_eq!(body.len(), 12);
            seen.push(body);
        }
        assert_ne!(seen[0], seen[1]);
        assert_eq!(id(), None);
    }
}
