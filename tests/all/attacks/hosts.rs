//! Foreign host names that resolve to the server, and browsers without TLS.

use reqwest::{Method, header};

use crate::harness::{Answer, App};

#[tokio::test]
async fn requests_for_another_host_name_are_refused() {
    let app = App::with(|config| config.public_url = "http://bench.example.com/".parse().ok()).await;
    let nobody = app.anonymous();
    let get_as =
        async |path: &str, name: &str| Answer::to(nobody.request(&Method::GET, path).header(header::HOST, name)).await;
    for path in ["/login", "/api/v1/runs", "/", "/nowhere"] {
        let error = get_as(path, "evil.example").await.refused(421);
        assert!(error.contains("evil.example") && error.contains("--public-url"), "{error}");
    }
    let page = nobody.clone().in_browser().request(&Method::GET, "/login").header(header::HOST, "evil.example");
    let page = Answer::to(page).await;
    assert!(page.status == 421 && page.header("content-type").starts_with("text/html"), "{}", page.text());
    for allowed in ["bench.example.com", "localhost:8377", "127.0.0.1", "[::1]:1", "10.0.0.7:8377"] {
        get_as("/login", allowed).await.ok();
    }
    for probe in ["/healthz", "/readyz"] {
        get_as(probe, "brewbench.default.svc").await.ok();
    }
    let program = app.reader().await;
    Answer::to(program.request(&Method::GET, "/api/v1/runs").header(header::HOST, "bench.internal")).await.ok();
}

#[tokio::test]
async fn browsers_must_use_tls_if_the_public_url_does() {
    let strict = async |url: &str| {
        let app = App::with(|config| config.public_url = url.parse().ok()).await;
        app.anonymous().get("/login").await.ok().header("strict-transport-security").to_owned()
    };
    assert_eq!(strict("https://bench.example.com/").await, "max-age=31536000");
    assert_eq!(strict("http://bench.example.com/").await, "");
}
