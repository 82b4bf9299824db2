//! The settings page: how the server is set up, and the theme of its pages.

use reqwest::{Method, StatusCode};

use crate::{
    harness::{Agent, Answer, App},
    new_run::fill_in,
};

#[tokio::test]
async fn settings_show_the_configuration_and_store_the_theme_in_a_cookie() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let reader = app.reader().await.in_browser();
    let page = reader.get("/settings").await.ok().text();
    let folder = app.data().display().to_string();
    for text in [app.state.public_url.as_str(), "16\u{a0}MiB", "10,000", "Load generator on rack", "k6 1.8.1", "SQLite"]
    {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains(&folder), "only administrators see the data folder");
    assert!(app.admin().await.in_browser().get("/settings").await.ok().text().contains(&folder));
    assert!(page.contains(r#"<html lang="en">"#), "{page}");
    let dark = fill_in(&reader, "/settings/theme", "theme=dark").await;
    assert_eq!((dark.status, dark.header("location")), (StatusCode::SEE_OTHER, "/settings"));
    let cookie = dark.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    let with = async |path: &str, cookie: &str| {
        Answer::to(reader.request(&Method::GET, path).header("cookie", cookie)).await.text()
    };
    for path in ["/settings", "/runs", "/nowhere", "/login"] {
        assert!(with(path, &cookie).await.contains(r#"<html lang="en" data-theme="dark">"#), "{path}");
    }
    assert!(!with("/settings", "brewbench_theme=dark\" onload=\"x").await.contains("onload"));
    assert_eq!(fill_in(&reader, "/settings/theme", "theme=pink").await.status, StatusCode::UNPROCESSABLE_ENTITY);
}
