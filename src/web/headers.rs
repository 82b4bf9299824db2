//! Headers that tell browsers what a page may do: only what this server sent.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    extract::Request,
    http::{HeaderName, HeaderValue, header},
    middleware::Next,
    response::Response,
};
use url::Url;

/// `NONCE` stands for what each answer draws anew: scripts and style elements run only if the page names it, so that not
/// even a file of this server becomes a script unless a template says so. `EVAL` is for pages that follow what happens:
/// Datastar evaluates the expressions in attributes, so text of others that became an element there would run. Plotly sets
/// style attributes, hence `unsafe-inline` for those alone.
const POLICY: &str = "default-src 'none'; script-src 'nonce-NONCE'EVAL; style-src 'self' 'nonce-NONCE'; \
    style-src-attr 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'self'; \
    frame-ancestors 'none'TYPES";

/// No script of ours makes elements of text, but Datastar and Plotly do.
const TRUSTED_TYPES: &str = "; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, HeaderValue); 6] = [
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("permissions-policy"), HeaderValue::from_static(PERMISSIONS)),
];

/// How long browsers come by TLS alone once they have: a year.
const STRICT: HeaderValue = HeaderValue::from_static("max-age=31536000");

/// `Strict-Transport-Security` for a site under this address; none without TLS, and none for `localhost`, where it would
/// hold for every other server on that machine.
pub fn strict_transport(public_url: &Url) -> Option<HeaderValue> {
    let host = public_url.host_str().unwrap_or_default();
    let is_here = host == "localhost" || host.ends_with(".localhost");
    (public_url.scheme() == "https" && !is_here).then_some(STRICT)
}

/// The one referrer policy that a handler may have instead.
pub const NO_REFERRER: &str = "no-referrer";

/// Passkeys are all that pages need of a device.
const PERMISSIONS: &str = "publickey-credentials-create=(self), publickey-credentials-get=(self), accelerometer=(), \
    autoplay=(), camera=(), display-capture=(), encrypted-media=(), fullscreen=(), geolocation=(), gyroscope=(), \
    magnetometer=(), microphone=(), midi=(), payment=(), usb=(), xr-spatial-tracking=()";

tokio::task_local! {
    static PAGE: Arc<Page>;
}

/// What an answer draws, and what its templates turn out to need.
#[derive(Debug, Default)]
struct Page {
    nonce: String,
    follows: AtomicBool,
    draws: AtomicBool,
}

impl Page {
    fn policy(&self) -> String {
        let (follows, draws) = (self.follows.load(Ordering::Relaxed), self.draws.load(Ordering::Relaxed));
        POLICY
            .replace("EVAL", if follows { " 'unsafe-eval'" } else { "" })
            .replace("TYPES", if follows || draws { "" } else { TRUSTED_TYPES })
            .replace("NONCE", &self.nonce)
    }
}

fn nonce_of(note: impl FnOnce(&Page)) -> String {
    let noted = PAGE.try_with(|page| {
        note(page);
        page.nonce.clone()
    });
    noted.unwrap_or_default()
}

/// What a template gives its scripts and style elements: `nonce="{{ crate::web::headers::nonce() }}"`.
pub fn nonce() -> String {
    nonce_of(|_| ())
}

/// The same for Datastar: the page may evaluate expressions then.
pub fn live_nonce() -> String {
    nonce_of(|page| page.follows.store(true, Ordering::Relaxed))
}

/// The same for charts: the page may make elements of text then.
pub fn chart_nonce() -> String {
    nonce_of(|page| page.draws.store(true, Ordering::Relaxed))
}

/// Middleware (`axum::middleware::from_fn`) for everything that is served.
pub async fn secure(request: Request, next: Next) -> Response {
    let page = Arc::new(Page { nonce: format!("{:032x}", rand::random::<u128>()), ..Page::default() });
    let mut response = PAGE.scope(Arc::clone(&page), next.run(request)).await;
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::try_from(page.policy()) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in HEADERS {
        // A page whose address is a secret tells it to nobody at all.
        let is_stricter = name == header::REFERRER_POLICY && headers.get(&name).is_some_and(|own| own == NO_REFERRER);
        if !is_stricter {
            headers.insert(name, value);
        }
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

    async fn answers(path: &str) -> (Response, String) {
        let app: Router = Router::new()
            .route("/page", get(async || Html(nonce())))
            .route("/live", get(async || Html(live_nonce())))
            .route("/charts", get(async || Html(chart_nonce())))
            .route("/text", get(async || "hello"))
            .route("/secret", get(async || ([(header::REFERRER_POLICY, NO_REFERRER)], "hello")))
            .route("/lax", get(async || ([(header::REFERRER_POLICY, "unsafe-url")], "hello")))
            .layer(from_fn(secure));
        let asked = Request::get(path).body(Body::empty()).expect("a request");
        let (parts, body) = app.oneshot(asked).await.expect("infallible").into_parts();
        let body = axum::body::to_bytes(body, 99).await.expect("a body");
        (Response::from_parts(parts, Body::empty()), String::from_utf8_lossy(&body).into_owned())
    }

    #[tokio::test]
    async fn pages_are_locked_down_and_never_stored() {
        let (page, nonce) = answers("/page").await;
        assert_eq!(page.headers()[header::CACHE_CONTROL], "no-store");
        let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii");
        let scripts = policy.split("; ").find(|part| part.starts_with("script-src")).expect("a rule for scripts");
        assert_eq!(scripts, format!("script-src 'nonce-{nonce}'"));
        assert!(policy.ends_with("; require-trusted-types-for 'script'; trusted-types 'none'"), "{policy}");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        let (text, _) = answers("/text").await;
        assert_eq!(text.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
        assert!(!text.headers().contains_key(header::CACHE_CONTROL));
    }

    #[tokio::test]
    async fn a_handler_may_tell_less_of_where_somebody_comes_from_and_never_more() {
        for (path, policy) in [("/text", "same-origin"), ("/secret", "no-referrer"), ("/lax", "same-origin")] {
            assert_eq!(answers(path).await.0.headers()[header::REFERRER_POLICY], policy, "{path}");
        }
    }

    #[test]
    fn browsers_come_by_tls_alone_where_there_is_tls() {
        let strict = |url: &str| strict_transport(&url.parse().expect("an address")).is_some();
        assert!(strict("https://bench.example.com/"));
        assert!(!strict("http://bench.example.com/") && !strict("https://localhost:8377/"));
    }

    #[tokio::test]
    async fn only_pages_that_follow_may_evaluate_and_only_those_and_charts_make_elements_of_text() {
        for (path, evaluates, makes) in [("/page", false, false), ("/live", true, true), ("/charts", false, true)] {
            let (page, _) = answers(path).await;
            let policy = page.headers()[header::CONTENT_SECURITY_POLICY].to_str().expect("ascii").to_owned();
            assert_eq!(policy.contains("'unsafe-eval'"), evaluates, "{path}: {policy}");
            assert_eq!(!policy.contains("require-trusted-types-for"), makes, "{path}: {policy}");
        }
    }

    #[tokio::test]
    async fn no_two_answers_share_a_nonce() {
        let (first, second) = (answers("/page").await.1, answers("/page").await.1);
        assert!(first.len() == 32 && first != second, "{first} {second}");
    }
}
