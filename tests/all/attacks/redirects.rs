//! Links to the login that try to redirect to another site.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;

use crate::{
    browser::{
        Tab,
        passkeys::{device, register},
    },
    harness::App,
};

/// Paths that resolve to another host, and plain URLs.
const ELSEWHERE: [&str; 10] = [
    "/.//evil.example",
    "/..//evil.example",
    "/%2e//evil.example",
    "/a/..//evil.example",
    "/./\\evil.example",
    "//evil.example",
    "/\\evil.example",
    "/\t/evil.example",
    "https://evil.example",
    "javascript:alert(1)",
];

#[tokio::test]
async fn the_login_page_accepts_no_other_site_as_next_page() {
    let app = App::start().await;
    let nobody = app.anonymous().in_browser();
    for next in ELSEWHERE {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let page = nobody.get(&format!("/login?{query}")).await.ok().text();
        assert!(page.contains(r#"data-next="/""#) && !page.contains("evil"), "{next:?}: {page}");
    }
    let page = nobody.get("/login?next=%2Fruns%3Fafter%3Dx").await.ok().text();
    assert!(page.contains(r#"data-next="/runs?after=x""#), "{page}");
}

#[tokio::test]
async fn the_login_script_goes_to_no_other_site() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    register(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.wait_for_path("/").await;
    for next in ELSEWHERE.into_iter().take(4) {
        tab.go("/login").await;
        let next = serde_json::to_string(next).expect("JSON");
        let script = format!("document.querySelector('[data-passkey=login]').dataset.next = {next}");
        tab.execute(EvaluateParams::new(script)).await;
        tab.click("[data-passkey=login]").await;
        tab.wait_for_path("/").await;
    }
}
