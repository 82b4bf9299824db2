//! Where imported runs come from, on every surface: nobody here saw them, so none is called reliable.

use brewbench::{auth::model::Role, web::time_ago::day};
use serde_json::json;

use crate::harness::{
    App,
    program::as_user,
    submit::{interleaved, repetitions, text},
};

#[tokio::test]
async fn every_surface_says_that_runs_were_imported_and_none_calls_them_reliable() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = interleaved(&user, &[("gosherve", "1.0", 0.8), ("servy", "1.0", 1.0)], 8).await;
    let run = user.run(&runs[0][0]).await;
    let (experiment, name) = (text(&run["experiment"]), text(&run["created_by"]));
    let day = day(run["queued_at_ms"].as_i64().expect("a time")).expect("a day");
    let inside = format!("All 16 runs were imported from k6 summaries by {name} on {day}; order as stated.");
    let outside = format!("All 16 runs were imported from k6 summaries on {day}; order as stated.");
    let query = format!("experiments={experiment}");
    let gate = format!("baseline={}&candidate={}&fail_on=rps%3C-50%25", runs[0].join(","), runs[1].join(","));
    let site = tempfile::tempdir().expect("a folder");
    let place = site.path().to_str().expect("text");
    as_user(&app, user.secret(), &["export", "site", place, "--experiment", &experiment]).await.ok();
    let read = |name: String| std::fs::read_to_string(site.path().join(name)).expect("a file");
    let shared = text(&user.post("/api/v1/shares", &json!({"query": query})).await.ok().json()["url"]);
    let shared = &shared[shared.find("/shared/").expect("a link")..];
    let shared = app.anonymous().in_browser().get(shared).await.ok().text();
    let in_browser = app.signed_in(Role::Viewer).await.in_browser();
    let page = async |path: String| in_browser.get(&path).await.ok().text();
    let json = async |path: String| user.get(&path).await.ok().text();
    let command = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await.ok();
    let all = [
        ("page", page(format!("/compare?runs={}", runs.concat().join(","))).await, &inside),
        ("experiment", page(format!("/experiments/{experiment}")).await, &inside),
        ("experiments", page("/experiments".to_owned()).await, &inside),
        ("dashboard", page("/".to_owned()).await, &inside),
        ("gate", page(format!("/gate?{gate}")).await, &inside),
        ("API", json(format!("/api/v1/compare?{query}")).await, &inside),
        ("API of the gate", json(format!("/api/v1/compare/gate?{gate}")).await, &inside),
        ("comment", json(format!("/api/v1/compare/gate?{gate}&format=markdown")).await, &inside),
        ("JUnit", json(format!("/api/v1/compare/gate?{gate}&format=junit")).await, &inside),
        ("HTML", json(format!("/api/v1/report?{query}")).await, &inside),
        ("Markdown", json(format!("/api/v1/report?{query}&format=markdown")).await, &inside),
        ("command", command(&["compare", "--experiment", &experiment]).await, &inside),
        ("share link", shared.clone(), &outside),
        ("site", read("index.html".to_owned()), &outside),
        ("page of the site", read(format!("{experiment}.html")), &outside),
        ("published JSON", json(format!("/api/v1/report?{query}&format=json&anonymous=true")).await, &outside),
    ];
    for (surface, text, sentence) in &all {
        let plain = text.split_whitespace().collect::<Vec<_>>().join(" ").replace("\\_", "_");
        assert!(plain.contains(*sentence), "{surface}: {plain}");
        assert!(!plain.contains("Reliable") && !plain.contains("\"reliable\""), "{surface}: {plain}");
        assert!(*sentence != &outside || !plain.contains(&name), "{surface} names a user: {plain}");
    }
    assert!(shared.contains("<p class=\"soft\">Shared ") && shared.contains(" UTC by brewbench"), "{shared}");
}

#[tokio::test]
async fn an_order_that_nobody_stated_is_unknown() {
    let app = App::start().await;
    let user = app.user().await;
    let runs = repetitions(&user, "servy", "1.0", 4, 1.0).await.join(",");
    let comparison = user.get(&format!("/api/v1/compare?runs={runs}")).await.ok().json();
    let trust = &comparison["answer"]["trust"];
    assert!(text(&trust["text"]).ends_with("; order unknown."), "{trust}");
}
