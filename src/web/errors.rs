//! Error responses: pages for browsers, JSON for programs.

use askama::Template;
use askama_web::WebTemplate;
use axum::{
    Json,
    body::to_bytes,
    extract::Request,
    http::{HeaderMap, Method, StatusCode, Uri, header},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};
use url::{Position, Url, form_urlencoded};

use super::{
    address::own_path,
    format, request,
    shell::{Section, Shell},
};
use crate::app::error::{Error, ErrorBody, ErrorMessage, Unproven};

/// Maximum length of a framework error message, bytes.
const MAX_MESSAGE: usize = 4096;

#[derive(Template, WebTemplate)]
#[template(path = "error.html")]
struct ErrorPage {
    shell: Shell,
    status: StatusCode,
    message: String,
    /// The request's id in the server's log.
    request: Option<String>,
}

impl ErrorPage {
    fn headline(&self) -> &'static str {
        match self.status {
            StatusCode::NOT_FOUND => "Not found",
            StatusCode::FORBIDDEN => "Not allowed",
            StatusCode::CONFLICT | StatusCode::TOO_MANY_REQUESTS => "Not now",
            status if status.is_server_error() => "Something went wrong",
            _ => "Request failed",
        }
    }
}

/// The section of the documentation about an error.
fn chapter(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => "guide/operations#users",
        StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE | StatusCode::PAYLOAD_TOO_LARGE => {
            "guide/operations#limits"
        }
        status if status.is_server_error() => "guide/operations#health-and-metrics",
        _ => "README",
    }
}

/// The error of an address without a route.
pub fn not_found(uri: &Uri) -> Error {
    let what = if is_api(uri) { "endpoint" } else { "page" };
    Error::NotFound(format!("{what} at {}", uri.path()))
}

fn is_html(response: &Response) -> bool {
    response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"))
}

fn is_api(uri: &Uri) -> bool {
    uri.path().starts_with("/api/")
}

/// Middleware (`axum::middleware::from_fn`): turns errors into pages for browsers and JSON for programs,
/// including errors of the framework.
pub async fn error_pages(request: Request, next: Next) -> Response {
    let wants_page = !is_api(request.uri()) && prefers_html(request.headers());
    let (method, uri) = (request.method().clone(), request.uri().clone());
    let from = request.headers().get(header::REFERER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let response = next.run(request).await;
    if wants_page && response.extensions().get::<Unproven>().is_some() {
        return Redirect::to(&confirm_address(&method, &uri, from.as_deref())).into_response();
    }
    let status = response.status();
    // A form that is shown again already contains the error.
    if response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return response;
    }
    let response = match response.extensions().get::<ErrorMessage>() {
        // A page that already shows the error, such as a form with its input, stays unchanged.
        None if (status.is_client_error() || status.is_server_error()) && !is_html(&response) => {
            from_framework(response, &method).await
        }
        _ => response,
    };
    match response.extensions().get::<ErrorMessage>() {
        Some(ErrorMessage(message)) if wants_page => {
            let mut page = page(status, message, &method, &uri);
            if let Some(wait) = response.headers().get(header::RETRY_AFTER) {
                page.headers_mut().insert(header::RETRY_AFTER, wait.clone());
            }
            page
        }
        _ => response,
    }
}

/// Converts a plain-text error of the framework, such as a wrong method or an unreadable body.
async fn from_framework(response: Response, method: &Method) -> Response {
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, MAX_MESSAGE).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&body).replace(char::is_control, " ");
    let message = match parts.status {
        // The Allow header lists the allowed methods, but is only added later.
        StatusCode::METHOD_NOT_ALLOWED => format!("method {method} is not allowed for this address"),
        status if status.is_server_error() => {
            tracing::error!(%status, cause = text, "request failed");
            "internal server error; the server's log has details".to_owned()
        }
        status if text.trim().is_empty() => status.canonical_reason().unwrap_or("refused").to_owned(),
        _ => text.trim().to_owned(),
    };
    let mut response = (parts.status, Json(ErrorBody::new(message.clone()))).into_response();
    response.extensions_mut().insert(ErrorMessage(message));
    response
}

fn page(status: StatusCode, message: &str, method: &Method, uri: &Uri) -> Response {
    if status == StatusCode::UNAUTHORIZED {
        return Redirect::to(&login_address(method, uri)).into_response();
    }
    let title = status.canonical_reason().unwrap_or("Error");
    let shell = match request::user() {
        Some(user) => Shell::signed_in(title, Section::Other, &user.name),
        None => Shell::anonymous(title),
    };
    let (shell, message) = (shell.explained_in(chapter(status)), format::capitalize(message));
    (status, ErrorPage { shell, status, message, request: request::id() }).into_response()
}

/// The login page, which leads back to a requested page but never repeats a form submission.
fn login_address(method: &Method, uri: &Uri) -> String {
    let next = if method == Method::GET { uri.path_and_query().map_or("/", |path| path.as_str()) } else { "/" };
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    format!("/login?{query}")
}

/// The confirmation page, which leads back to the requested page or to the page of the submitted form.
fn confirm_address(method: &Method, uri: &Uri, from: Option<&str>) -> String {
    let form = || {
        let page: Url = from?.parse().ok()?;
        Some(own_path(&page, &page[Position::BeforePath..]))
    };
    let requested = uri.path_and_query().map(|path| path.as_str().to_owned());
    let next = if method == Method::GET { requested } else { form() };
    let next = next.unwrap_or_else(|| "/".to_owned());
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("next", &next).finish();
    format!("/confirm?{query}")
}

/// Whether the Accept header prefers HTML. `*/*` alone means a program.
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

    async fn get_page(path: &str, accept: &str) -> (StatusCode, HeaderMap, String) {
        let app: Router = Router::new()
            .route("/private", get(|| async { Error::Unauthenticated }))
            .route("/strange", get(|| async { Error::Invalid("<script>alert(1)</script>".to_owned()) }))
            .fallback(async |uri: Uri| not_found(&uri))
            .layer(from_fn(error_pages));
        let request = Request::get(path).header(header::ACCEPT, accept).body(Body::empty()).expect("a request");
        let response = app.oneshot(request).await.expect("infallible");
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("a body");
        (parts.status, parts.headers, String::from_utf8(bytes.to_vec()).expect("text"))
    }

    #[tokio::test]
    async fn a_browser_gets_a_page_and_a_program_json() {
        let (status, headers, body) = get_page("/nowhere", BROWSER).await;
        assert_eq!(status, StatusCode::NOT_FOUND);
        assert!(headers[header::CONTENT_TYPE].to_str().expect("ascii").starts_with("text/html"));
        assert!(body.contains("There is no page at /nowhere"), "{body}");
        for accept in ["*/*", "application/json", DATASTAR] {
            let (status, _, body) = get_page("/nowhere", accept).await;
            assert_eq!((status, body.as_str()), (StatusCode::NOT_FOUND, r#"{"error":"there is no page at /nowhere"}"#));
        }
        let (_, _, body) = get_page("/api/v1/nowhere", BROWSER).await;
        assert!(body.starts_with('{'), "{body}");
    }

    #[tokio::test]
    async fn a_visitor_without_a_login_is_redirected_to_the_login_and_back() {
        let (status, headers, _) = get_page("/private?runs=a%2Cb&x=1", BROWSER).await;
        assert_eq!(status, StatusCode::SEE_OTHER);
        assert_eq!(headers[header::LOCATION], "/login?next=%2Fprivate%3Fruns%3Da%252Cb%26x%3D1");
        assert_eq!(get_page("/private", "*/*").await.0, StatusCode::UNAUTHORIZED);
    }

    #[tokio::test]
    async fn html_in_an_error_message_is_escaped() {
        let (_, _, body) = get_page("/strange", BROWSER).await;
        assert!(!body.contains("<script>alert") && body.contains("alert(1)"), "{body}");
    }
}
