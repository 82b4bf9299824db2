//! What goes along with every answer: what a browser may do with it, and by which name the log knows it.

use std::{fs, path::Path};

use brewbench::auth::model::Role;
use reqwest::{Method, header::CONTENT_SECURITY_POLICY};

use crate::harness::{Answer, App};

/// The nonce of an answer.
fn nonce(answer: &Answer) -> &str {
    let policy = answer.header(CONTENT_SECURITY_POLICY.as_str());
    policy.split("'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce")
}

#[tokio::test]
async fn every_answer_is_locked_down_and_runs_no_script_but_those_that_its_page_names() {
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
fn no_template_has_a_handler_or_a_script_in_it() {
    let mut seen = 0;
    visit(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"), &mut |path, text| {
        seen += 1;
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
            // A report has no server to ask for files: they stand in it, each as one value that is nothing else.
            let body = script.split_once('>').and_then(|(_, rest)| rest.split_once("</script>")).map(|(body, _)| body);
            let is_inlined = path.ends_with("reports/report.html")
                && tag == " nonce=\"{{ nonce }}\""
                && matches!(body, Some("{{ plotly }}" | "{{ charts }}" | "{{ copy }}"));
            let is_json = tag == " type=\"application/json\"";
            assert!(is_file || is_inlined || is_json, "{}: <script{tag}>", path.display());
        }
    });
    assert!(seen > 30, "only {seen} templates");
}

fn visit(folder: &Path, look: &mut impl FnMut(&Path, &str)) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            visit(&path, look);
        } else {
            look(&path, &fs::read_to_string(&path).expect("text"));
        }
    }
}

#[tokio::test]
async fn a_refusal_is_told_with_the_name_of_the_request() {
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
    let asked = app.anonymous().request(&Method::GET, "/nowhere").header("x-request-id", "theirs");
    let answer = Answer::to(asked).await;
    assert_ne!(answer.header("x-request-id"), "theirs", "what others call it does not go into the log");
}

#[tokio::test]
async fn a_fault_of_the_server_has_the_same_name_on_the_page_in_json_and_in_the_log() {
    let app = App::start().await;
    let (person, token) = (app.signed_in(Role::Viewer).await.in_browser(), app.reader().await);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let to = file.reopen().expect("a file");
    // The whole process has one log; this is the only test that reads it.
    tracing_subscriber::fmt().with_writer(to).with_ansi(false).with_max_level(tracing::Level::ERROR).init();
    app.state.db.read.close().await;
    let (page, json) = (person.get("/runs").await, token.get("/api/v1/runs").await);
    assert_eq!((page.status.as_u16(), json.status.as_u16()), (500, 500));
    let said = fs::read_to_string(file.path()).expect("a log");
    for answer in [&page, &json] {
        let id = answer.header("x-request-id");
        let line = said.lines().find(|line| line.contains(id)).unwrap_or_else(|| panic!("{id} is not in {said}"));
        assert!(line.contains("request failed") && line.contains("ERROR"), "{line}");
    }
    assert!(page.text().contains(page.header("x-request-id")) && page.text().contains("Something went wrong"));
    assert_eq!(json.json()["request_id"], json.header("x-request-id"));
}
