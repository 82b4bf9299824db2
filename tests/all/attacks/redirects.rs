//! Links to our own login that should end on somebody else's page.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;

use crate::{
    browser::{
        Tab,
        passkeys::{device, registers},
    },
    harness::App,
};

/// Addresses that are paths until they are resolved, and hosts from then on; and plain ones.
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
async fn the_login_page_names_no_other_site_as_what_comes_next() {
    let app = App::start().await;
    let nobody = app.nobody().at_pages();
    for next in ELSEWHERE {
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
        let page = nobody.get(&format!("/login?{query}")).await.ok().text();
        assert!(page.contains(r#"data-next="/""#) && !page.contains("evil"), "{next:?}: {page}");
    }
    let page = nobody.get("/login?next=%2Fruns%3Fbefore%3Dx").await.ok().text();
    assert!(page.contains(r#"data-next="/runs?before=x""#), "{page}");
}

#[tokio::test]
async fn the_script_of_the_login_goes_to_no_other_site_whatever_the_page_says() {
    let app = App::start().await;
    let tab = Tab::open(&app).await;
    device(&tab).await;
    registers(&tab, &app.invite(Role::Viewer).await, "Ada").await;
    tab.lands_at("/").await;
    for next in ELSEWHERE.into_iter().take(4) {
        tab.go("/login").await;
        let next = serde_json::to_string(next).expect("JSON");
        let script = format!("document.querySelector('[data-passkey=login]').dataset.next = {next}");
        tab.ask(EvaluateParams::new(script)).await;
        tab.click("[data-passkey=login]").await;
        tab.lands_at("/").await;
    }
}
