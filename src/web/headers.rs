//! Security headers: a page may only do what this server's templates contain.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use url::Url;

/// The content security policy; placeholders are filled in for each response.
///
/// `NONCE` is random per response: scripts and style elements need it, so even a file of this server runs as a script
/// only if a template includes it. `EVAL` is for live pages, because Datastar evaluates expressions in attributes.
/// Plotly sets style attributes, hence `unsafe-inline` for those.
const POLICY: &str = "default-src 'none'; script-src 'nonce-NONCE'EVAL; style-src 'self' 'nonce-NONCE'; \
    style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'TYPES";

/// Left out for pages with Datastar or Plotly, which create elements from text.
const TRUSTED_TYPES: &str = "; require-trusted-types-for 'script'; trusted-types 'none'";

/// Has nginx pass on each event at once.
const UNBUFFERED: HeaderName = HeaderName::from_static("x-accel-buffering");

const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

/// Browsers use only TLS for a year after their first visit by TLS.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// Returns `Strict-Transport-Security` for a site at this address.
/// None without TLS, and none for `localhost`, where it would affect every other server on the machine.
pub fn strict_transport(public_url: &Url) -> Option<HeaderValue> {
    let host = public_url.host_str().unwrap_or_default();
    let is_local = host == "localhost" || host.ends_with(".localhost");
    (public_url.scheme() == "https" && !is_local).then_some(STRICT)
}

/// The only other referrer policy that a handler may set.
pub const NO_REFERRER: &str = "no-referrer";

/// Pages need no device features except passkeys.
const PERMISSIONS: &str = "publickey-credentials-create=(self), publickey-credentials-get=(self), accelerometer=(), \
    autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), \
    magnetometer=(), microphone=(), midi=(), payment=(), usb=(), xr-spatial-tracking=()";

tokio::task_local! {
    static PAGE: Arc<Page>;
}

/// The nonce of a response, and what its templates need.
#[derive(Debug, Default)]
struct Page {
    nonce: String,
    is_live: AtomicBool,
    has_charts: AtomicBool,
}

impl Page {
    fn policy(&self) -> String {
        let (is_live, has_charts) = (self.is_live.load(Ordering::Relaxed), self.has_charts.load(Ordering::Relaxed));
        POLICY
            .replace("EVAL", if is_live { " 'unsafe-eval'" } else { "" })
            .replace("TYPES", if is_live || has_charts { "" } else { TRUSTED_TYPES })
            .replace("NONCE", &self.nonce)
    }
}

fn nonce_after(mark: impl FnOnce(&Page)) -> String {
    let nonce = PAGE.try_with(|page| {
        mark(page);
        page.nonce.clone()
    });
    nonce.unwrap_or_default()
}

/// The nonce for scripts and style elements in templates: `nonce="{{ crate::web::headers::nonce() }}"`.
pub fn nonce() -> String {
    nonce_after(|_| ())
}

/// The nonce for Datastar; also allows the page to evaluate expressions.
pub fn live_nonce() -> String {
    nonce_after(|page| page.is_live.store(true, Ordering::Relaxed))
}

/// The nonce for charts; also allows the page to create elements from text.
pub fn chart_nonce() -> String {
    nonce_after(|page| page.has_charts.store(true, Ordering::Relaxed))
}

/// Middleware (`axum::middleware::from_fn`): adds the security headers to every response.
pub async fn secure(request: Request, next: Next) -> Response {
    let page = Arc::new(Page { nonce: format!("{:032x}", rand::random::<u128>()), ..Page::default() });
    let mut response = PAGE.scope(Arc::clone(&page), next.run(request)).await;
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(page.policy()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in HEADERS {
        // A page with a secret in its address must never send it as referrer.
        let is_stricter = name == header::REFERRER_POLICY && headers.get(&name).is_some_and(|own| own == NO_REFERRER);
        if !is_stricter {
            headers.insert(name, value);
        }
    }
    let is = |kind: &[u8], headers: &HeaderMap| {
        headers.get(header::CONTENT_TYPE).is_some_and(|is| is.as_bytes().starts_with(kind))
    };
    if is(b"text/event-stream", headers) {
        headers.insert(UNBUFFERED, HeaderValue::from_static("no"));
    }
    if is(b"text/html", headers) && !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, response::Html, routing::get};
    use tower::ServiceExt;

    use super::*;

    async fn respond(path: &str) -> (Response, String) {
        let app: Router = Router::new()
            .route("/page", get(async || Html(nonce())))
            .route("/live", get(async || Html(live_nonce())))
            .route("/charts", get(async || Html(chart_nonce())))
            .route("/text", get(async || "hello"))
            .route("/secret", get(async || ([(header::REFERRER_POLICY, NO_REFERRER)], "hello")))
            .route("/lax", get(async || ([(header::REFERRER_POLICY, "unsafe-url")], "hello")))
            .layer(from_fn(secure));
        let request = Request::get(path).body(Body::empty()).expect("a request");
        let (parts, body) = app.oneshot(request).await.expect("infallible").into_parts();
        let body = axum::body::to_bytes(body, 99).await.expect("a body");
        (Response::from_parts(parts, Body::empty()), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn pages_are_locked_down_and_never_stored() {
        let (page, nonce) = respond("/page").await;
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-store");
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
        let scripts = policy.split("; ").find(|part| part.starts_with("script-src")).expect("a rule for scripts");
        assert_eq!(scripts, format!("script-src 'nonce-{nonce}'"));
        assert!(policy.ends_with("; require-trusted-types-for 'script'; trusted-types 'none'"), "{policy}");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        let (text, _) = respond("/text").await;
        assert_eq!(text.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!text.headers().contains_key(header::CACHE_CONTROL));
    }

    #[tokio::test]
    async fn a_handler_may_restrict_the_referrer_but_not_widen_it() {
        for (path, policy) in [("/text", "same-origin"), ("/secret", "no-referrer"), ("/lax", "same-origin")] {
            assert_eq!(respond(path).await.0.headers()[header::REFERRER_POLICY], policy, "{path}");
        }
    }

    #[test]
    fn strict_transport_security_needs_tls_and_a_public_name() {
        let strict = |url: &str| strict_transport(&url.parse().expect("an address")).is_some();
        assert!(strict("https://bench.example.com/"));
        assert!(!strict("http://bench.example.com/") && !strict("https://localhost:8377/"));
    }

    #[tokio::test]
    async fn only_live_pages_may_evaluate_and_only_they_and_charts_create_elements_from_text() {
        for (path, evaluates, creates) in [("/page", false, false), ("/live", true, true), ("/charts", false, true)] {
            let (page, _) = respond(path).await;
            let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii").to_owned();
            assert_eq!(policy.contains("'unsafe-eval'"), evaluates, "{path}: {policy}");
            assert_eq!(!policy.contains("require-trusted-types-for"), creates, "{path}: {policy}");
        }
    }

    #[tokio::test]
    async fn no_two_responses_share_a_nonce() {
        let (first, second) = (respond("/page").await.1, respond("/page").await.1);
        assert!(first.len() == 32 && first != second, "{first} {second}");
    }
}
