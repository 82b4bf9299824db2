//! Injected markup: what it could still do on a page, by the policy that goes with the page.

use brewbench::auth::model::Role;
use serde_json::json;

use crate::{
    browser::Tab,
    harness::{App, submit::text, summaries::good},
};

/// The pages where much is at stake, and those that outsiders see.
async fn quiet_pages(app: &App) -> Vec<String> {
    let user = app.user().await;
    let run = text(&user.import(good()).await.ok().json()["runs"][0]["id"]);
    let share = user.post("/api/v1/shares", &json!({"query": format!("runs={run}")})).await.ok().json();
    let site = app.state.public_url.as_str();
    let invite = app.invite(Role::Member).await.replacen(site, "/", 1);
    let mut pages = vec![text(&share["url"]).replacen(site, "/", 1), invite];
    pages.extend(
        ["/login", "/account", "/people", "/tokens", "/audit", "/settings", "/agents", "/nowhere"].map(String::from),
    );
    pages
}

#[tokio::test]
async fn pages_that_do_not_follow_evaluate_nothing() {
    let app = App::start().await;
    let pages = quiet_pages(&app).await;
    let ada = app.person(Role::Admin).await.at_pages();
    for path in &pages {
        let page = ada.get(path).await;
        let policy = page.header("content-security-policy");
        assert!(!policy.contains("unsafe-eval") && !page.text().contains("datastar"), "{path}: {policy}");
        let draws = path.starts_with("/shared/");
        assert_eq!(
            policy.contains("require-trusted-types-for 'script'; trusted-types 'none'"),
            !draws,
            "{path}: {policy}"
        );
    }
    for path in ["/", "/runs", "/experiments", "/queue", "/experiments/new"] {
        let page = ada.get(path).await.ok();
        assert!(page.header("content-security-policy").contains("'unsafe-eval'") && page.text().contains("datastar"));
    }
}

#[tokio::test]
async fn an_attribute_that_datastar_would_run_runs_nowhere_else() {
    let app = App::start().await;
    let pages = quiet_pages(&app).await;
    let tab = Tab::of(&app, Role::Admin).await;
    for path in &pages {
        tab.go(path).await;
        let injected = "(() => { const e = document.createElement('i'); e.setAttribute('data-init', 'window.hit = 1');
            document.body.append(e); return new Promise((done) => setTimeout(() => done(window.hit ?? 0), 0)); })()";
        let hit: u32 = tab.eval(injected).await;
        assert_eq!(hit, 0, "{path}");
    }
}
