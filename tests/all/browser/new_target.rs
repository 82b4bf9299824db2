//! The manifest of a new target: live checks, what agents offer, and without JavaScript.

use brewbench::auth::model::Role;
use brewbench_wire::messages::TargetOffer;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::Tab;
use crate::harness::{Agent, App};

/// Selects the text of the field `#toml` from its first occurrence of a text on, so that typing replaces it.
async fn select(tab: &Tab, text: &str) {
    let found: bool = tab
        .eval(&format!(
            "(() => {{ const field = document.querySelector('#toml'), at = field.value.indexOf({text:?}); field.focus(); \
             field.setSelectionRange(at, at + {text:?}.length); return at >= 0; }})()"
        ))
        .await;
    assert!(found, "{text}");
}

#[tokio::test]
async fn a_manifest_is_checked_while_typing_until_an_agent_offers_the_target() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/targets/new").await;
    tab.shows("#manifest", "An agent can read this manifest.").await;
    select(&tab, "my-server").await;
    tab.type_text("my hello").await;
    tab.shows(".faults", "name: \"my hello\" must be 1 to 64 letters").await;
    select(&tab, "my hello\"").await;
    tab.type_text("hello").await;
    tab.shows(".faults", "TOML parse error at line 1").await;
    tab.type_text("\"").await;
    tab.shows("#manifest", "An agent can read this manifest.").await;
    let typed: String = tab.eval("document.querySelector('#toml').value").await;
    assert!(
        typed.starts_with("name = \"hello\"\nversion") && typed.contains("# The program"),
        "input is kept: {typed}"
    );
    tab.until("!document.querySelector('[data-copy=\"#toml\"]').hidden").await;
    tab.click("[data-copy='#toml']").await;
    tab.shows("body > [role=status]", "Copied").await;

    tab.shows("#picked-up", "rack does not offer hello yet").await;
    let offer = TargetOffer { name: "hello".to_owned(), version: "1".to_owned(), ..agent.hello.targets[0].clone() };
    agent.hello.targets.push(offer);
    agent.connect(&app).await.expect("accepted");
    tab.shows("#picked-up", "rack offers hello 1").await;
    // The name is followed as it changes.
    select(&tab, "hello\"").await;
    tab.type_text("hello2\"").await;
    tab.shows("#picked-up", "rack does not offer hello2 yet").await;
    select(&tab, "hello2").await;
    tab.type_text("hello").await;
    tab.shows("#picked-up", "rack offers hello 1").await;
    tab.click("#picked-up a.go").await;
    tab.wait_for_path("/experiments/new?target=hello&scenario=get&set.ROUTE=%2F").await;
    let chosen: bool = tab.eval("document.querySelector('input[name=target][value=hello]').checked").await;
    assert!(chosen);
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn every_kind_of_target_has_a_template() {
    let app = App::start().await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/targets/new").await;
    tab.click("a[href='/targets/new?kind=url']").await;
    tab.wait_for_path("/targets/new?kind=url").await;
    tab.shows("#manifest", "An agent can read this manifest.").await;
    select(&tab, "https://staging").await;
    tab.type_text("staging").await;
    tab.shows(".faults", "is not a URL").await;
    for (width, scheme) in [(1440, "light"), (390, "dark")] {
        tab.set_width(width).await;
        tab.set_scheme(scheme).await;
        tab.screenshot(&format!("target-new-url-{width}-{scheme}")).await;
    }
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn without_javascript_a_manifest_is_checked_and_agents_are_checked_again() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/targets/new").await;
    select(&tab, "my-server").await;
    tab.type_text("my server").await;
    tab.click("#manifest noscript button").await;
    tab.shows(".faults", "must be 1 to 64 letters").await;
    tab.go("/targets/new").await;
    tab.shows("#picked-up", "rack does not offer my-server yet").await;
    let offer = TargetOffer { name: "my-server".to_owned(), version: "1".to_owned(), ..agent.hello.targets[0].clone() };
    agent.hello.targets.push(offer);
    agent.connect(&app).await.expect("accepted");
    tab.click("#pickup noscript button").await;
    tab.shows("#picked-up", "rack offers my-server 1").await;
    tab.assert_no_errors().await;
}
