//! Entity tags: a program that asks again for JSON that it has gets 304 without a body.

use axum::{
    body::{Body, HttpBody, to_bytes},
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH},
    },
    middleware::Next,
    response::{IntoResponse, Response},
};
use brewbench_wire::hex;
use sha2::{Digest, Sha256};

use crate::app::error::Error;

/// Larger answers get no tag, bytes.
const BODY_MAX: u64 = 16 << 20;

/// Middleware (`axum::middleware::from_fn`): tags the JSON of the API by its content.
pub async fn tag(request: Request, next: Next) -> Response {
    let wanted = (request.method() == Method::GET).then(|| request.headers().clone());
    let response = next.run(request).await;
    match wanted {
        Some(request) if is_tagged(&response) => tagged(&request, response).await,
        _ => response,
    }
}

/// Whether the response is whole, and no file or stream.
fn is_tagged(response: &Response) -> bool {
    let headers = response.headers();
    response.status() == StatusCode::OK
        && headers.get(CONTENT_TYPE).is_some_and(|kind| kind == "application/json")
        && !headers.contains_key(CONTENT_DISPOSITION)
        && !headers.contains_key(CACHE_CONTROL)
        && response.body().size_hint().exact().is_some_and(|size| size <= BODY_MAX)
}

async fn tagged(request: &HeaderMap, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = match to_bytes(body, usize::MAX).await {
        Ok(body) => body,
        Err(fault) => return Error::internal(fault).into_response(),
    };
    // Weak, because the body may be compressed on its way.
    let tag = format!("\"{}\"", &hex(&Sha256::digest(&body))[..32]);
    if let Ok(value) = HeaderValue::from_str(&format!("W/{tag}")) {
        parts.headers.insert(ETAG, value);
        parts.headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    }
    if !has(request, &tag) {
        return Response::from_parts(parts, Body::from(body));
    }
    parts.status = StatusCode::NOT_MODIFIED;
    parts.headers.remove(CONTENT_TYPE);
    parts.headers.remove(CONTENT_LENGTH);
    Response::from_parts(parts, Body::empty())
}

/// Whether the caller has the content with this tag, which is given without `W/`.
pub fn has(request: &HeaderMap, tag: &str) -> bool {
    header_list(request, &IF_NONE_MATCH).any(|own| own == "*" || own.trim_start_matches("W/") == tag)
}

/// Returns the parts of a header that is a list.
pub fn header_list<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = request.get_all(name).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}
