//! The form of a new target: live preview and faults, what agents offer, and without JavaScript.

use brewbench::auth::model::Role;
use brewbench_agent::wire::messages::TargetOffer;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::Tab;
use crate::harness::{Agent, App};

#[tokio::test]
async fn a_manifest_is_written_and_checked_while_typing_until_an_agent_offers_the_target() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/targets/new").await;
    tab.shows("#manifest", "Not complete yet: Name, Command.").await;
    tab.click("#name").await;
    tab.type_text("my hello").await;
    tab.shows("#toml", "name = \"my hello\"").await;
    tab.shows("[id='name-fault']", "must be 1 to 64 letters").await;
    tab.until("document.querySelector('#name').getAttribute('aria-invalid') === 'true'").await;
    let faults: usize = tab.eval("document.querySelectorAll('.fault:not(:empty)').length").await;
    assert_eq!(faults, 1, "an empty field is no fault yet");
    for _ in "my hello".chars() {
        tab.press("Backspace").await;
    }
    tab.type_text("hello").await;
    tab.click("#command").await;
    tab.type_text("python3 'my hello.py' {port}").await;
    tab.shows("#toml", "command = [\"python3\", \"my hello.py\", \"{port}\"]").await;
    tab.click("#env").await;
    tab.type_text("A").await;
    tab.shows("#env-fault", "has no value, write NAME=VALUE").await;
    tab.type_text("=1").await;
    tab.shows("#toml", "A = \"1\"").await;
    let typed: String = tab.eval("document.querySelector('#env').value").await;
    assert_eq!(typed, "A=1", "input is kept");
    tab.shows("#manifest", "Complete: an agent can read this manifest.").await;
    tab.until("!document.querySelector('[data-copy=\"#toml\"]').hidden").await;
    tab.click("[data-copy='#toml']").await;
    tab.shows("body > [role=status]", "Copied").await;

    tab.shows("#picked-up", "rack does not offer hello yet").await;
    let offer = TargetOffer { name: "hello".to_owned(), version: "1".to_owned(), ..agent.hello.targets[0].clone() };
    agent.hello.targets.push(offer);
    agent.connect(&app).await.expect("accepted");
    tab.shows("#picked-up", "rack offers hello 1").await;
    // The name is followed as it changes.
    tab.click("#name").await;
    tab.press("End").await;
    tab.type_text("2").await;
    tab.shows("#picked-up", "rack does not offer hello2 yet").await;
    tab.press("Backspace").await;
    tab.shows("#picked-up", "rack offers hello 1").await;
    tab.click("#picked-up a.go").await;
    tab.wait_for_path("/experiments/new?target=hello").await;
    let chosen: bool = tab.eval("document.querySelector('input[name=target][value=hello]').checked").await;
    assert!(chosen);
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_server_that_already_runs_has_a_url_instead_of_a_command() {
    let app = App::start().await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/targets/new").await;
    let is_shown =
        async |field: &str| tab.eval::<bool>(&format!("document.getElementById('{field}').checkVisibility()")).await;
    assert_eq!((is_shown("command").await, is_shown("url.base").await), (true, false));
    tab.click("[name=kind][value=url]").await;
    tab.shows("#manifest", "Not complete yet: Name, Base URL.").await;
    assert_eq!((is_shown("command").await, is_shown("url.base").await), (false, true));
    tab.click("#name").await;
    tab.type_text("staging").await;
    tab.click("[id='url.base']").await;
    tab.type_text("staging.example.com").await;
    tab.shows("[id='url.base-fault']", "is not a URL").await;
    tab.press("Home").await;
    tab.type_text("https://").await;
    tab.shows("#toml", "[url]\nbase = \"https://staging.example.com\"").await;
    tab.shows("#manifest", "Complete: an agent can read this manifest.").await;
    for (width, scheme) in [(1440, "light"), (390, "dark")] {
        tab.set_width(width).await;
        tab.set_scheme(scheme).await;
        tab.screenshot(&format!("target-new-url-{width}-{scheme}")).await;
    }
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn without_javascript_a_manifest_is_previewed_and_agents_are_checked_again() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/targets/new").await;
    tab.click("#name").await;
    tab.type_text("hello").await;
    tab.click("#manifest noscript button").await;
    tab.shows("#command-fault", "program is missing").await;
    tab.click("#command").await;
    tab.type_text("python3 hello.py {port}").await;
    tab.press("Enter").await;
    tab.shows("#toml", "command = [\"python3\", \"hello.py\", \"{port}\"]").await;
    tab.shows("#picked-up", "rack does not offer hello yet").await;
    let offer = TargetOffer { name: "hello".to_owned(), version: "1".to_owned(), ..agent.hello.targets[0].clone() };
    agent.hello.targets.push(offer);
    agent.connect(&app).await.expect("accepted");
    tab.click("#pickup noscript button").await;
    tab.shows("#picked-up", "rack offers hello 1").await;
    tab.assert_no_errors().await;
}
