//! Names that were made to stand for the server's address, and browsers that would come without TLS.

use reqwest::{Method, header};

use crate::harness::{Answer, App};

#[tokio::test]
async fn under_another_name_nothing_is_told() {
    let app = App::with(|config| config.public_url = "http://bench.example.com/".parse().ok()).await;
    let nobody = app.nobody();
    let under =
        async |path: &str, name: &str| Answer::of(nobody.request(&Method::GET, path).header(header::HOST, name)).await;
    for path in ["/login", "/api/v1/runs", "/", "/nowhere"] {
        let told = under(path, "evil.example").await.refused(421);
        assert!(told.contains("evil.example") && told.contains("--public-url"), "{told}");
    }
    let page = nobody.clone().at_pages().request(&Method::GET, "/login").header(header::HOST, "evil.example");
    let page = Answer::of(page).await;
    assert!(page.status == 421 && page.header("content-type").starts_with("text/html"), "{}", page.text());
    for own in ["bench.example.com", "localhost:8377", "127.0.0.1", "[::1]:1", "10.0.0.7:8377"] {
        under("/login", own).await.ok();
    }
    for probe in ["/healthz", "/readyz"] {
        under(probe, "brewbench.default.svc").await.ok();
    }
    let program = app.reader().await;
    Answer::of(program.request(&Method::GET, "/api/v1/runs").header(header::HOST, "bench.internal")).await.ok();
}

#[tokio::test]
async fn where_there_is_tls_browsers_come_by_it_alone() {
    let strict = async |url: &str| {
        let app = App::with(|config| config.public_url = url.parse().ok()).await;
        app.nobody().get("/login").await.ok().header("strict-transport-security").to_owned()
    };
    assert_eq!(strict("https://bench.example.com/").await, "max-age=31536000");
    assert_eq!(strict("http://bench.example.com/").await, "");
}
