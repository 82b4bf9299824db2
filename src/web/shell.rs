//! What surrounds every page, and errors as pages.

use std::future::{Ready, ready};

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    extract::{OriginalUri, Request},
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use url::form_urlencoded;

use crate::error::{Error, Told};

/// What `layout.html` needs; every page's template has it as its field `shell`.
#[derive(Clone, Debug)]
pub struct Shell {
    /// For the browser's tab.
    pub title: String,
    /// Where the page belongs.
    pub section: Section,
    /// Who is logged in.
    pub user: Option<Who>,
}

/// Who looks at a page.
#[derive(Clone, Debug)]
pub struct Who {
    /// The user's name.
    pub name: String,
}

/// Where a page belongs, for the head's navigation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// History and single runs.
    Runs,
    /// Submissions.
    Experiments,
    /// Runs side by side.
    Compare,
    /// Login, registration, errors.
    Other,
}

/// One entry of the navigation.
#[derive(Clone, Copy, Debug)]
pub struct NavEntry {
    /// The word.
    pub label: &'static str,
    /// Where it leads.
    pub href: &'static str,
    section: Section,
}

const NAVIGATION: [NavEntry; 2] = [
    NavEntry { label: "Runs", href: "/runs", section: Section::Runs },
    NavEntry { label: "Compare", href: "/compare", section: Section::Compare },
];

impl Shell {
    /// For somebody who is logged in.
    pub fn signed_in(title: impl Into<String>, section: Section, name: &str) -> Self {
        Self { title: title.into(), section, user: Some(Who { name: name.to_owned() }) }
    }

    /// For everybody.
    pub fn anonymous(title: impl Into<String>) -> Self {
        Self { title: title.into(), section: Section::Other, user: None }
    }

    /// The entries of the head.
    pub fn navigation(&self) -> &'static [NavEntry] {
        &NAVIGATION
    }

    /// Whether the page belongs to an entry.
    pub fn is_at(&self, entry: &NavEntry) -> bool {
        self.section == entry.section
    }
}

#[derive(Template, WebTemplate)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: Shell,
    status: StatusCode,
    told: String,
}

impl ErrorPage {
    fn headline(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "Not here",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::CONFLICT => "Not now",
            status if status.is_server_error() => "Something went wrong",
            _ => "That did not work",
        }
    }
}

/// Answers for a path that nothing else answers for.
pub fn not_found(OriginalUri(uri): OriginalUri) -> Ready<Error> {
    ready(Error::NotFound(format!("page at {}", uri.path())))
}

/// Middleware (`axum::middleware::from_fn`): errors become pages for who reads pages. Programs keep the JSON.
pub async fn error_pages(request: Request, next: Next) -> Response {
    let reads_pages = !request.uri().path().starts_with("/api/") && prefers_html(request.headers());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let response = next.run(request).await;
    match response.extensions().get::<Told>() {
        Some(Told(told)) if reads_pages => page(response.status(), told.clone(), &method, &uri),
        _ => response,
    }
}

fn page(status: StatusCode, told: String, method: &Method, uri: &Uri) -> Response {
    if status == StatusCode::UNAUTHORIZED {
        return Redirect::to(&login_address(method, uri)).into_response();
    }
    let shell = Shell::anonymous(status.canonical_reason().unwrap_or("Error"));
    (status, ErrorPage { shell, status, told }).into_response()
}

/// Back to where somebody wanted to go, unless going there would do something.
fn login_address(method: &Method, uri: &Uri) -> String {
    let next = if method == Method::GET { uri.path_and_query().map_or("/", |path| path.as_str()) } else { "/" };
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("/login?{query}")
}

/// Whether HTML is what the Accept header wants most. `*/*` alone is a program.
fn prefers_html(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best: Option<(f32, &str)> = None;
    for entry in accept.split(',') {
        let mut parts = entry.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default();
        let weight = parts.find_map(|part| part.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
        if weight > 0.0 && best.is_none_or(|(most, _)| weight > most) {
            best = Some((weight, kind));
        }
    }
    best.is_some_and(|(_, kind)| matches!(kind, "text/html" | "application/xhtml+xml"))
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, middleware::from_fn, routing::get};
    use tower::ServiceExt;

    use super::*;

    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    const DATASTAR: &str = "text/event-stream, text/html, application/json";

    async fn ask(path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
        let app: Router = Router::new()
            .route("/private", get(|| async { Error::Unauthenticated }))
            .route("/strange", get(|| async { Error::Invalid("<script>alert(1)</script>".to_owned()) }))
            .fallback(not_found)
            .layer(from_fn(error_pages));
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).expect("a request");
        let response = app.oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn a_browser_gets_a_page_and_a_program_json() {
        let (status, headers, body) = ask("/nowhere", BROWSER).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(headers[header::CONTENT_TYPE].to_str().expect("ascii").starts_with("text/html"));
        assert!(body.contains("there is no page at /nowhere"), "{body}");
        for accept in ["*/*", "application/json", DATASTAR] {
            let (status, _, body) = ask("/nowhere", accept).await;
            assert_eq!((status, body.as_str()), (StatusCode::NOT_FOUND, r#"{"error":"there is no page at /nowhere"}"#));
        }
        let (_, _, body) = ask("/api/v1/nowhere", BROWSER).await;
        assert!(body.starts_with('{'), "{body}");
    }

    #[tokio::test]
    async fn who_is_not_logged_in_is_led_to_the_login_and_back() {
        let (status, headers, _) = ask("/private?runs=a%2Cb&x=1", BROWSER).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(headers[header::LOCATION], "/login?next=%2Fprivate%3Fruns%3Da%252Cb%26x%3D1");
        assert_eq!(ask("/private", "*/*").await.0, StatusCode::UNAUTHORIZED);
    }

    #[tokio::test]
    async fn what_an_error_quotes_stays_text() {
        let (_, _, body) = ask("/strange", BROWSER).await;
        assert!(!body.contains("<script>alert") && body.contains("alert(1)"), "{body}");
    }
}
