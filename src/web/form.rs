//! Form bodies.

use axum::{
    extract::{OriginalUri, Request},
    middleware::{Next, from_fn},
    response::{IntoResponse, Redirect},
    routing::MethodRouter,
};
use url::form_urlencoded;

/// Lets the form of an action use its JSON handler: after a success, the browser goes to the address that is this many
/// segments shorter. Errors stay what they are.
pub fn up<S: Clone + Send + Sync + 'static>(segments: usize, action: MethodRouter<S>) -> MethodRouter<S> {
    action.layer(from_fn(move |OriginalUri(uri): OriginalUri, request: Request, next: Next| async move {
        let response = next.run(request).await;
        let above = uri.path().rsplitn(segments + 1, '/').last().unwrap_or_default();
        if response.status().is_success() { Redirect::to(above).into_response() } else { response }
    }))
}

/// Returns the first field with this name in a form's body.
pub fn field(body: &[u8], name: &str) -> Option<String> {
    form_urlencoded::parse(body).find(|(field, _)| field == name).map(|(_, value)| value.into_owned())
}

#[cfg(test)]
mod tests {
    use axum::{Router, body::Body, http::StatusCode, routing::post};
    use tower::ServiceExt;

    use super::*;

    #[tokio::test]
    async fn after_a_success_the_browser_goes_up_and_errors_stay() {
        let site: Router = Router::new()
            .route("/sizes/{name}/remove", up(2, post(async || StatusCode::NO_CONTENT)))
            .route("/runs/{id}/cancel", up(1, post(async || StatusCode::CONFLICT)));
        for (address, status, place) in [
            ("/sizes/a%20b/remove?x=1", StatusCode::SEE_OTHER, Some("/sizes")),
            ("/runs/7/cancel", StatusCode::CONFLICT, None),
        ] {
            let request = Request::post(address).body(Body::empty()).expect("a request");
            let answer = site.clone().oneshot(request).await.expect("an answer");
            assert_eq!(answer.status(), status);
            let location = answer.headers().get("location").map(|value| value.to_str().expect("text"));
            assert_eq!(location, place);
        }
    }

    #[test]
    fn a_field_is_found_by_name_and_decoded() {
        let body = b"name=a+b%26c&empty=&name=second";
        assert_eq!(field(body, "name").as_deref(), Some("a b&c"));
        assert_eq!(field(body, "empty").as_deref(), Some(""));
        assert_eq!(field(body, "nam"), None);
    }
}
