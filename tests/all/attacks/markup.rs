//! Injected markup: what the content security policy of a page still allows.

use brewbench::auth::model::Role;
use serde_json::json;

use crate::{
    browser::Tab,
    harness::{App, submit::text, summaries::good},
};

/// Sensitive pages, and those without a login.
async fn sensitive_pages(app: &App) -> Vec<String> {
    let user = app.user().await;
    let run = text(&user.import(good()).await.ok().json()["runs"][0]["id"]);
    let share = user.post("/api/v1/shares", &json!({"query": format!("runs={run}")})).await.ok().json();
    let site = app.state.public_url.as_str();
    let invite = app.invite(Role::Member).await.replacen(site, "/", 1);
    let mut pages = vec![text(&share["url"]).replacen(site, "/", 1), invite];
    pages.extend(
        ["/login", "/account", "/users", "/tokens", "/audit", "/settings", "/agents", "/nowhere"].map(String::from),
    );
    pages
}

#[tokio::test]
async fn pages_without_live_updates_forbid_eval() {
    let app = App::start().await;
    let pages = sensitive_pages(&app).await;
    let ada = app.signed_in(Role::Admin).await.in_browser();
    for path in &pages {
        let page = ada.get(path).await;
        let policy = page.header("content-security-policy");
        assert!(!policy.contains("unsafe-eval") && !page.text().contains("datastar"), "{path}: {policy}");
        let has_charts = path.starts_with("/shared/");
        assert_eq!(
            policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"),
            !has_charts,
            "{path}: {policy}"
        );
    }
    for path in ["/", "/runs", "/experiments", "/queue", "/experiments/new"] {
        let page = ada.get(path).await.ok();
        assert!(page.header("content-security-policy").contains("'unsafe-eval'") && page.text().contains("datastar"));
    }
}

#[tokio::test]
async fn attributes_of_datastar_run_only_on_pages_with_live_updates() {
    let app = App::start().await;
    let pages = sensitive_pages(&app).await;
    let tab = Tab::signed_in(&app, Role::Admin).await;
    for path in &pages {
        tab.go(path).await;
        let injected = "(() => { const e = document.createElement('i'); e.setAttribute('data-init', 'window.hit = 1');
            document.body.append(e); return new Promise((done) => setTimeout(() => done(window.hit ?? 0), 0)); })()";
        let hit: u32 = tab.eval(injected).await;
        assert_eq!(hit, 0, "{path}");
    }
}
