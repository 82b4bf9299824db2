//! Headers of every response: security policies and the request id.

use std::{fs, path::Path};

use brewbench::auth::model::Role;
use reqwest::{Method, header::CONTENT_SECURITY_POLICY};

use crate::harness::{Answer, App, root};

/// The nonce of a response.
fn nonce(answer: &Answer) -> &str {
    let policy = answer.header(CONTENT_SECURITY_POLICY.as_str());
    policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce")
}

#[tokio::test]
async fn every_response_is_locked_down_and_runs_only_scripts_with_its_nonce() {
    let app = App::start().await;
    let (member, nobody) = (app.signed_in(Role::Member).await.in_browser(), app.anonymous().in_browser());
    let asset = brewbench::web::assets::asset("app.css");
    for (who, path) in [
        (&member, "/"),
        (&member, "/compare"),
        (&member, "/nowhere"),
        (&member, "/users"),
        (&member, "/api/v1/runs"),
        (&nobody, "/login"),
        (&nobody, "/runs"),
        (&nobody, "/healthz"),
        (&nobody, asset),
    ] {
        let answer = who.get(path).await;
        let policy = answer.header("content-security-policy");
        for rule in [
            "default-src 'none';",
            "style-src-attr 'unsafe-inline';",
            "connect-src 'self';",
            "base-uri 'none';",
            "form-action 'self';",
            "frame-ancestors 'none'",
        ] {
            assert!(policy.contains(rule), "{path}: {rule} is not in {policy}");
        }
        assert_eq!(policy.matches("unsafe-inline").count(), 1, "{path}: {policy}");
        assert!(!policy.contains("http") && !policy.contains('*'), "{path}: {policy}");
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        assert_eq!(answer.header("referrer-policy"), "same-origin", "{path}");
        assert!(answer.header("permissions-policy").contains("camera=()"), "{path}");
        assert_eq!(answer.header("x-request-id").len(), 12, "{path}");
        let scripts = format!("nonce=\"{}\"", nonce(&answer));
        let html = answer.text();
        let executable = html.matches("<script").count() - html.matches("<script type=\"application/json\"").count();
        assert_eq!(html.matches(&scripts).count(), executable + html.matches("<style").count(), "{path}: {html}");
    }
    assert_ne!(nonce(&nobody.get("/login").await), nonce(&nobody.get("/login").await));
}

#[test]
fn templates_have_no_inline_handlers_or_scripts() {
    let mut templates = 0;
    visit(&root().join("templates"), &mut |path, text| {
        templates += 1;
        let lower = text.to_lowercase();
        let handlers = lower.match_indices(" on").map(|(at, _)| &lower[at + 3..]).filter(|rest| {
            let name = rest.split(|letter: char| !letter.is_ascii_lowercase()).next().unwrap_or_default();
            name.len() > 2 && rest[name.len()..].starts_with("=\"")
        });
        assert_eq!(handlers.count(), 0, "{}", path.display());
        assert!(!lower.contains("javascript:"), "{}", path.display());
        for script in lower.split("<script").skip(1) {
            let tag = script.split_once('>').map_or(script, |(tag, _)| tag);
            let is_file = script.contains("></script>") && tag.contains("src=");
            // A report works without a server: its scripts are inlined, each as a single value.
            let body = script.split_once('>').and_then(|(_, rest)| rest.split_once("</script>")).map(|(body, _)| body);
            let is_inlined = path.ends_with("reports/report.html")
                && tag == " nonce=\"{{ nonce }}\""
                && matches!(body, Some("{{ plotly }}" | "{{ charts }}" | "{{ copy }}"));
            let is_json = tag == " type=\"application/json\"";
            assert!(is_file || is_inlined || is_json, "{}: <script{tag}>", path.display());
        }
    });
    assert!(templates > 30, "only {templates} templates");
}

fn visit(folder: &Path, inspect: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            visit(&path, inspect);
        } else {
            inspect(&path, &fs::read_to_string(&path).expect("text"));
        }
    }
}

#[tokio::test]
async fn refusals_show_the_request_id() {
    let app = App::start().await;
    let viewer = app.signed_in(Role::Viewer).await;
    for (path, status) in [("/nowhere", 404), ("/users", 403), ("/runs/none", 404)] {
        let page = viewer.clone().in_browser().get(path).await;
        assert_eq!(page.status, status, "{path}");
        let id = page.header("x-request-id");
        assert!(page.text().contains(&format!("Request <code>{id}</code>")), "{path}: {}", page.text());
    }
    let answer = app.anonymous().get("/api/v1/nowhere").await;
    assert_eq!(answer.json()["request_id"], answer.header("x-request-id"));
    let request = app.anonymous().request(&Method::GET, "/nowhere").header("x-request-id", "theirs");
    let answer = Answer::to(request).await;
    assert_ne!(answer.header("x-request-id"), "theirs", "the client's id is not used");
}

#[tokio::test]
async fn a_server_error_has_the_same_id_on_the_page_in_json_and_in_the_log() {
    let app = App::start().await;
    let (person, token) = (app.signed_in(Role::Viewer).await.in_browser(), app.reader().await);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = file.reopen().expect("a file");
    // The process has one log, which only this test reads.
    tracing_subscriber::fmt().with_writer(to).with_ansi(false).with_max_level(tracing::Level::ERROR).init();
    app.state.db.read.close().await;
    let (page, json) = (person.get("/runs").await, token.get("/api/v1/runs").await);
    assert_eq!((page.status.as_u16(), json.status.as_u16()), (500, 500));
    let log = fs::read_to_string(file.path()).expect("a log");
    for answer in [&page, &json] {
        let id = answer.header("x-request-id");
        let line = log.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{id} is not in {log}"));
        assert!(line.contains("request failed") && line.contains("ERROR"), "{line}");
    }
    assert!(page.text().contains(page.header("x-request-id")) && page.text().contains("Something went wrong"));
    assert_eq!(json.json()["request_id"], json.header("x-request-id"));
}
