//! An HTTP client with or without credentials, and the responses it gets.

use std::collections::BTreeMap;

use brewbench::auth::caller::SESSION_COOKIE;
use brewbench_wire::reports::archive;
use reqwest::{Method, RequestBuilder, StatusCode, header, redirect::Policy};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use url::Url;

/// The `Accept` header of a browser that loads a page.
const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

/// An anonymous client, a program with a token or a key, or a user with a session.
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
    /// Returns a client without credentials.
    pub fn anonymous(server: &Url) -> Self {
        let http = reqwest::Client::builder().no_proxy().redirect(Policy::none()).tls_certs_only([]).build();
        let http = http.expect("an HTTP client");
        Self { http, server: server.clone(), secret: None, session: None, origin: None, accept: "*/*" }
    }

    /// Returns the same client of another server.
    pub fn at(self, server: &Url) -> Self {
        Self { server: server.clone(), ..self }
    }

    /// Adds a token or an agent's key.
    pub fn with_secret(self, secret: &str) -> Self {
        Self { secret: Some(secret.to_owned()), ..self }
    }

    /// Adds a session and the origin of the site.
    pub fn with_session(self, session: &str, site: &Url) -> Self {
        Self { session: Some(session.to_owned()), ..self }.at_origin(&site.origin().ascii_serialization())
    }

    /// Sets the origin of requests that change something.
    pub fn at_origin(self, origin: &str) -> Self {
        Self { origin: Some(origin.to_owned()), ..self }
    }

    /// Removes the origin.
    pub fn at_no_origin(self) -> Self {
        Self { origin: None, ..self }
    }

    /// Accepts pages, as a browser does.
    pub fn in_browser(self) -> Self {
        Self { accept: BROWSER, ..self }
    }

    /// Returns the token or key.
    pub fn secret(&self) -> &str {
        self.secret.as_deref().expect("an actor with a secret")
    }

    /// Returns the session's secret.
    pub fn session(&self) -> &str {
        self.session.as_deref().expect("an actor with a session")
    }

    /// Whether both have the same credentials.
    pub fn is_same(&self, other: &Self) -> bool {
        self.secret == other.secret && self.session == other.session
    }

    /// Builds a request to a path.
    pub fn request(&self, method: &Method, path: &str) -> RequestBuilder {
        let url = self.server.join(path).expect("a valid path");
        let mut request = self.http.request(method.clone(), url).header(header::ACCEPT, self.accept);
        if let Some(secret) = &self.secret {
            request = request.bearer_auth(secret);
        }
        if let Some(session) = &self.session {
            request = request.header(header::COOKIE, format!("{SESSION_COOKIE}={session}"));
        }
        match &self.origin {
            // Browsers send no origin with a GET request to the same site.
            Some(origin) if *method != Method::GET => request.header(header::ORIGIN, origin),
            _ => request,
        }
    }

    /// Sends a GET request.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::to(self.request(&Method::GET, path)).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &(impl Serialize + Sync)) -> Answer {
        Answer::to(self.request(&Method::POST, path).json(body)).await
    }

    /// Posts a form, as pages do.
    pub async fn form(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = self.request(&Method::POST, path);
        Answer::to(request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded").body(body)).await
    }

    /// Puts JSON.
    pub async fn put(&self, path: &str, body: &(impl Serialize + Sync)) -> Answer {
        Answer::to(self.request(&Method::PUT, path).json(body)).await
    }

    /// Sends a DELETE request.
    pub async fn delete(&self, path: &str) -> Answer {
        Answer::to(self.request(&Method::DELETE, path)).await
    }

    /// Imports a folder with an index.
    pub async fn import_folder(&self, index: &str, files: &BTreeMap<String, String>) -> Answer {
        let files = files.iter().map(|(name, text)| (name.as_str(), text.as_bytes()));
        let packed = archive::pack(files.chain([("index.json", index.as_bytes())])).expect("packed");
        Answer::to(self.request(&Method::POST, "/api/v1/runs/import").body(packed)).await
    }

    /// Imports a summary for a target called `t`; one that is stored already gets an empty line, as if measured again.
    pub async fn import(&self, summary: impl Into<Vec<u8>>) -> Answer {
        self.import_as(&[("target", "t")], summary).await
    }

    /// Does the same with other metadata.
    pub async fn import_as(&self, about: &[(&str, &str)], summary: impl Into<Vec<u8>>) -> Answer {
        let mut bytes = summary.into();
        loop {
            let request = self.request(&Method::POST, "/api/v1/runs/import").query(about);
            let answer = Answer::to(request.body(bytes.clone())).await;
            if answer.status != 409 || !answer.text().contains("this file was imported before") {
                return answer;
            }
            bytes.push(b'\n');
        }
    }

    /// Returns a run as JSON.
    pub async fn run(&self, id: &str) -> Value {
        self.get(&format!("/api/v1/runs/{id}")).await.ok().json()["runs"][0].take()
    }

    /// Counts the runs, up to 1000.
    pub async fn count_runs(&self) -> usize {
        let list = self.get("/api/v1/runs?limit=1000").await.ok().json();
        list["runs"].as_array().expect("a list").len()
    }
}

/// A complete response.
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
    /// Sends a request and reads the complete response.
    pub async fn to(request: RequestBuilder) -> Self {
        let response = request.send().await.expect("a response");
        let (status, headers) = (response.status(), response.headers().clone());
        Self { status, headers, body: response.bytes().await.expect("a body").to_vec() }
    }

    /// Asserts success.
    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.is_success(), "{}: {}", self.status, self.text());
        self
    }

    /// Returns the body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Parses the body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        self.read()
    }

    /// Deserializes the body.
    #[track_caller]
    pub fn read<T: DeserializeOwned>(&self) -> T {
        let parsed = serde_json::from_slice(&self.body);
        parsed.unwrap_or_else(|fault| panic!("{fault}: {} {}", self.status, self.text()))
    }

    /// Asserts that the request was refused with this status. Returns the error message.
    #[track_caller]
    pub fn refused(self, status: u16) -> String {
        assert_eq!(self.status.as_u16(), status, "{}", self.text());
        let body = self.json();
        let message = body["error"].as_str().unwrap_or_else(|| panic!("no error message in {body}")).to_owned();
        assert!(!message.is_empty() && !message.chars().any(char::is_control), "{message:?}");
        message
    }

    /// Returns a header as text; empty if it is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}
