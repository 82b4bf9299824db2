//! Somebody who sends requests, and what comes back.

use brewbench::auth::caller::SESSION_COOKIE;
use reqwest::{Method, RequestBuilder, StatusCode, header, redirect::Policy};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

/// What a browser says that it wants when it goes to a page.
pub const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// Nobody, a program with a token or a key, or a person with a session.
#[derive(Clone)]
pub struct Actor {
    http: reqwest::Client,
    server: Url,
    secret: Option<String>,
    session: Option<String>,
    origin: Option<String>,
    accept: &'static str,
}

impl Actor {
    /// Somebody without any secret.
    pub fn nobody(server: &Url) -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).tls_certs_only([]).build();
        let http = http.expect("an HTTP client");
        Self { http, server: server.clone(), secret: None, session: None, origin: None, accept: "*/*" }
    }

    /// The same before another server.
    pub fn at(self, server: &Url) -> Self {
        Self { server: server.clone(), ..self }
    }

    /// With a token or an agent's key.
    pub fn with_secret(self, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..self }
    }

    /// With a session, on the site's own pages.
    pub fn with_session(self, session: &str, site: &Url) -> Self {
        Self { session: Some(session.to_owned()), ..self }.at_origin(&site.origin().ascii_serialization())
    }

    /// On the pages of some site.
    pub fn at_origin(self, origin: &str) -> Self {
        Self { origin: Some(origin.to_owned()), ..self }
    }

    /// In a client that does not say on whose pages it is.
    pub fn at_no_origin(self) -> Self {
        Self { origin: None, ..self }
    }

    /// Going to pages, not asking for data.
    pub fn at_pages(self) -> Self {
        Self { accept: BROWSER, ..self }
    }

    /// The token or key.
    pub fn secret(&self) -> &str {
        self.secret.as_deref().expect("an actor with a secret")
    }

    /// The secret of the session.
    pub fn session(&self) -> &str {
        self.session.as_deref().expect("an actor with a session")
    }

    /// Whether both come with the same secret.
    pub fn is_same(&self, other: &Self) -> bool {
        self.secret == other.secret && self.session == other.session
    }

    /// A request to a path, still to be sent.
    pub fn request(&self, method: &Method, path: &str) -> RequestBuilder {
        let url = self.server.join(path).expect("a path");
        let mut request = self.http.request(method.clone(), url).header(header::ACCEPT, self.accept);
        if let Some(secret) = &self.secret {
            request = request.bearer_auth(secret);
        }
        if let Some(session) = &self.session {
            request = request.header(header::COOKIE, format!("{SESSION_COOKIE}={session}"));
        }
        match &self.origin {
            // As browsers do: no origin where a page of the same site is only looked at.
            Some(origin) if *method != Method::GET => request.header(header::ORIGIN, origin),
            _ => request,
        }
    }

    /// Looks at something.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(&Method::GET, path)).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &(impl Serialize + Sync)) -> Answer {
        Answer::of(self.request(&Method::POST, path).json(body)).await
    }

    /// Sends a form, as pages do.
    pub async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.request(&Method::POST, path);
        Answer::of(request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)).await
    }

    /// Puts JSON.
    pub async fn put(&self, path: &str, body: &(impl Serialize + Sync)) -> Answer {
        Answer::of(self.request(&Method::PUT, path).json(body)).await
    }

    /// Deletes something.
    pub async fn delete(&self, path: &str) -> Answer {
        Answer::of(self.request(&Method::DELETE, path)).await
    }

    /// Imports a summary for a target called `t`.
    pub async fn import(&self, summary: impl Into<reqwest::Body>) -> Answer {
        Answer::of(self.request(&Method::POST, "/api/v1/runs/import?target=t").body(summary)).await
    }

    /// One run as JSON.
    pub async fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/runs/{id}")).await.ok().json()["runs"][0].take()
    }

    /// How many runs there are, up to 1000.
    pub async fn count_runs(&self) -> usize {
        let list = self.get("/api/v1/runs?limit=1000").await.ok().json();
        list["runs"].as_array().expect("a list").len()
    }
}

/// What the server answered, whole.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: header::HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Sends a request and takes the whole answer.
    pub async fn of(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, body: response.bytes().await.expect("a body").to_vec() }
    }

    /// It was done.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        self
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.read()
    }

    /// The body as one of our types.
    #[track_caller]
    pub fn read<T: DeserializeOwned>(&self) -> T {
        let read = serde_json::from_slice(&self.body);
        read.unwrap_or_else(|fault| panic!("{fault}: {} {}", self.status, self.text()))
    }

    /// It was refused with this status and one sentence, which this gives.
    #[track_caller]
    pub fn refused(self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        let body = self.json();
        let sentence = body["error"].as_str().unwrap_or_else(|| panic!("no sentence in {body}")).to_owned();
        assert!(!sentence.is_empty() && !sentence.chars().any(char::is_control), "{sentence:?}");
        sentence
    }

    /// A header as text; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
