//! Comparisons as files: HTML, Markdown, CSV and JSON.

use brewbench::auth::model::Role;
use brewbench_wire::series::{Packed, Series};
use serde_json::{Value, json};

use crate::harness::{
    Actor, App,
    program::as_user,
    series::window,
    submit::{interleaved, repetitions},
};

async fn two_targets(user: &Actor, count: u32) -> String {
    let ids = interleaved(user, &[("gosherve", "1.0", 0.8), ("servy", "1.0", 1.0)], count).await;
    ids.concat().join(",")
}

#[tokio::test]
async fn a_report_is_one_file_without_external_requests() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user, 30).await;
    let series = Packed::pack(&Series { warm_up: None, measured: Some(window(30)) });
    let store = sqlx::query("insert into run_series (run_id, body) select id, ? from run").bind(series.as_bytes());
    store.execute(&app.state.db.write).await.expect("series");
    let answer = user.get(&format!("/api/v1/report?runs={runs}")).await.ok();
    assert_eq!(answer.header("content-disposition"), "attachment; filename=\"servy-against-gosherve.html\"");
    let html = answer.text();
    assert!(html.len() <= 2_000_000, "{} bytes", html.len());
    assert!(
        html.contains("default-src 'none'") && html.contains("data-chart") && html.contains("60 runs</span></summary>")
    );
    // Text inside the library causes no requests, so only the page before it is checked.
    let nonce = html.split("script-src 'nonce-").nth(1).and_then(|rest| rest.split('\'').next()).expect("a nonce");
    let mark = format!("<script nonce=\"{nonce}\">");
    assert_eq!(html.matches(&mark).count(), 3);
    let before = html.split(&mark).next().expect("a page");
    for word in [" src=", "href=", "url(", "@import", "<form", "<link", "/runs/"] {
        assert!(!before.contains(word), "{word} in {}", &before[before.find(word).unwrap_or(0)..][..120]);
    }
    assert_eq!(html.matches("</script>").count(), html.matches("<script").count() - stray(&html, &mark));
}

/// Counts script elements in the texts of the library.
fn stray(html: &str, mark: &str) -> usize {
    html.split(mark)
        .skip(1)
        .map(|part| part.split("</script>").next().unwrap_or_default().matches("<script").count())
        .sum()
}

#[tokio::test]
async fn reports_are_available_as_markdown_csv_and_json() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user, 8).await;
    let get = async |format: &str| user.get(&format!("/api/v1/report?runs={runs}&format={format}")).await.ok();
    let markdown = get("markdown").await;
    assert!(markdown.header("content-type").starts_with("text/markdown"));
    assert!(
        markdown.text().starts_with("### servy against gosherve\n\n- **servy is 25.0\u{a0}% faster than"),
        "{}",
        markdown.text()
    );
    let csv = get("csv").await;
    assert!(csv.header("content-disposition").ends_with(".csv\"") && csv.text().starts_with("setting,scenario,"));
    let json: Value = get("json").await.json();
    assert_eq!(json, user.get(&format!("/api/v1/compare?runs={runs}")).await.ok().json());
    user.get(&format!("/api/v1/report?runs={runs}&format=pdf")).await.refused(422);
    user.get("/api/v1/report").await.refused(422);
    user.get("/api/v1/report?runs=x").await.refused(404);
}

#[tokio::test]
async fn hostile_names_stay_text_in_every_format() {
    let app = App::start().await;
    let user = app.user().await;
    let name = "</script><img src=x onerror=alert(1)>";
    let runs = [repetitions(&user, name, "1", 2, 1.0).await, repetitions(&user, "=1+1", "1", 2, 1.0).await].concat();
    let get =
        async |format: &str| user.get(&format!("/api/v1/report?runs={}&format={format}", runs.join(","))).await.ok();
    let html = get("html").await;
    let page = html.text();
    assert!(!page.contains("<img src=x"), "it stays text");
    let name = html.header("content-disposition").to_owned();
    assert!(name.ends_with(".html\"") && !name.contains('<'), "{name}");
    assert!(!get("markdown").await.text().contains("<img"));
    assert!(get("csv").await.text().contains("'=1+1"));
}

#[tokio::test]
async fn the_command_writes_the_reports_of_the_page() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = two_targets(&user, 3).await;
    let ids: Vec<&str> = runs.split(',').collect();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html").display().to_string();
    let arguments = [&["report"][..], &ids, &["-o", &file, "--baseline", "servy"]].concat();
    as_user(&app, user.secret(), &arguments).await.ok();
    let html = std::fs::read_to_string(&file).expect("a file");
    assert!(html.starts_with("<!doctype html>") && html.contains("gosherve against servy"), "{}", &html[..300]);
    let arguments = [&["report"][..], &ids, &["--format", "markdown"]].concat();
    let text = as_user(&app, user.secret(), &arguments).await.ok();
    assert!(text.starts_with("### servy against gosherve"), "{text}");
    let json = as_user(&app, user.secret(), &[&["report"][..], &ids, &["--json"]].concat()).await.json();
    assert_eq!(json["title"], json!("servy against gosherve"));
    as_user(&app, user.secret(), &[&["report"][..], &ids, &["--format", "pdf"]].concat()).await.refused(2);
    let person = app.signed_in(Role::Viewer).await.in_browser();
    let page = person.get(&format!("/compare?runs={runs}")).await.ok().text();
    assert!(page.contains("/api/v1/report?") && page.contains("format=html"), "{page}");
}

#[tokio::test]
async fn a_website_of_files_names_no_agents() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = interleaved(&user, &[("gosherve", "1.0", 0.8), ("servy", "1.0", 1.0)], 8).await;
    let experiment = user.run(&runs[0][0]).await["experiment"].as_str().expect("an id").to_owned();
    for sql in [
        "insert into agent (name, key_hash, created_at) values ('rack-in-the-cellar', x'00', 1)",
        "update run set agent_id = (select id from agent)",
    ] {
        sqlx::query(sql).execute(&app.state.db.write).await.expect("runs of an agent");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("deep/site");
    let place = site.to_str().expect("text");
    as_user(&app, user.secret(), &["export", "site", place, "--experiment", "last", "--title", "<Ours>"]).await.ok();
    let read = |name: &str| std::fs::read_to_string(site.join(name)).expect("a file");
    let (index, page) = (read("index.html"), read(&format!("{experiment}.html")));
    assert!(index.contains(&format!("href=\"{experiment}.html\"")) && index.contains("&#60;Ours&#62;"), "{index}");
    assert!(index.contains("faster") || index.contains("slower"), "{index}");
    let trust = ["Imported.", "Read with care.", "Not reliable."];
    assert!(trust.iter().any(|title| index.contains(title)), "how far to rely on it: {index}");
    assert!(page.contains("servy"));
    for text in [&index, &page] {
        assert!(!text.contains("cellar"), "an agent is named");
    }
    let unknown = as_user(&app, user.secret(), &["export", "site", place, "--experiment", "zzzz"]).await.refused(1);
    assert!(unknown.contains("zzzz"), "{unknown}");
}
