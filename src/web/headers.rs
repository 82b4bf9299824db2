//! Headers that tell browsers what a page may do: only what this server sent.

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};

/// Datastar evaluates the expressions in attributes, hence `unsafe-eval`; Plotly writes style elements, hence
/// `unsafe-inline` for styles. Scripts come from files alone.
const POLICY: &str = "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data: blob:; object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
];

/// Middleware (`axum::middleware::from_fn`) for everything that is served.
pub async fn secure(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, value);
    }
    let html = headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if html && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, response::Html, routing::get};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn pages_are_locked_down_and_never_stored() {
        let app: Router = Router::new()
            .route("/page", get(|| async { Html("hello") }))
            .route("/text", get(|| async { "hello" }))
            .layer(from_fn(secure));
        let ask = |path: &str| Request::get(path).body(Body::empty()).expect("a request");
        let page = app.clone().oneshot(ask("/page")).await.expect("infallible");
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-store");
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
        assert!(policy.contains("frame-ancestors 'none'") && !policy.contains("script-src 'self' 'unsafe-inline'"));
        let text = app.oneshot(ask("/text")).await.expect("infallible");
        assert_eq!(text.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!text.headers().contains_key(header::CACHE_CONTROL));
    }
}
