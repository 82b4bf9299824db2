//! What is known of the current request: its id, for the response, error pages and the log; its user, for error pages and menus.

use std::{net::SocketAddr, sync::OnceLock, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Uri},
    middleware::Next,
    response::Response,
};
use tracing::Instrument;

/// The response header with the id.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// The remote address of a connection, which may be a proxy.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub SocketAddr);

tokio::task_local! {
    static CURRENT: Current;
}

struct Current {
    id: String,
    user: OnceLock<User>,
}

/// The signed-in user who sent a request.
#[derive(Clone, Debug)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// Whether the user administers the site.
    pub is_admin: bool,
}

/// Middleware (`axum::middleware::from_fn`): assigns each request an id that its log entries carry, and logs its end.
/// An id from the client is ignored, so that clients cannot forge log entries.
pub async fn name(request: Request, next: Next) -> Response {
    let id = format!("{:012x}", rand::random::<u64>() >> 16);
    let span = tracing::error_span!("request", %id);
    let current = Current { id: id.clone(), user: OnceLock::new() };
    let mut response = CURRENT.scope(current, logged(request, next).instrument(span)).await;
    if let Ok(value) = HeaderValue::try_from(id) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

/// Logs a request with its route instead of its path, which may hold the secret of a link.
async fn logged(request: Request, next: Next) -> Response {
    let (method, begin) = (request.method().clone(), Instant::now());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let response = next.run(request).await;
    tracing::debug!(
        target: "brewbench::access",
        %method,
        route = route.as_ref().map(MatchedPath::as_str),
        status = response.status().as_u16(),
        ms = begin.elapsed().as_millis(),
        "request"
    );
    response
}

/// Middleware (`axum::middleware::map_request`) around all routes: restores the names `.` and `..`.
/// See [`super::address::segment`].
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

/// Returns the id of the current request; none outside of a request.
pub fn id() -> Option<String> {
    CURRENT.try_with(|current| current.id.clone()).ok()
}

/// Remembers who sent the current request with the session of a user.
pub fn signed_in(user: User) {
    // A second extractor of the same request finds the same user; outside of a request, nobody asks.
    let _ = CURRENT.try_with(|current| current.user.set(user));
}

/// Returns the signed-in user who sent the current request, once an extractor has found one.
pub fn user() -> Option<User> {
    CURRENT.try_with(|current| current.user.get().cloned()).ok().flatten()
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, routing::get};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn each_request_gets_an_id_of_the_server_that_its_handler_can_read() {
        let app: Router = Router::new().route("/", get(async || id().unwrap_or_default())).layer(from_fn(name));
        let mut ids = Vec::new();
        for _ in 0..2 {
            let request = Request::get("/").header(HEADER, "theirs").body(Body::empty()).expect("a request");
            let response = app.clone().oneshot(request).await.expect("infallible");
            let header = response.headers()[HEADER].clone();
            let body = axum::body::to_bytes(response.into_body(), 99).await.expect("a body");
            assert_eq!(body.as_ref(), header.as_bytes());
            assert_eq!(body.len(), 12);
            ids.push(body);
        }
        assert_ne!(ids[0], ids[1]);
        assert_eq!(id(), None);
    }
}
