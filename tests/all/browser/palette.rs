//! The command palette, by keyboard and by mouse, and its form without JavaScript.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::{
    emulation::SetScriptExecutionDisabledParams,
    input::{DispatchKeyEventParams, DispatchKeyEventType},
};
use serde_json::json;

use super::{Tab, axe::Rules, import};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit},
    summaries::good,
};

const CONTROL: i64 = 2;

async fn press_control_k(tab: &Tab) {
    for kind in [DispatchKeyEventType::RawKeyDown, DispatchKeyEventType::KeyUp] {
        let key = DispatchKeyEventParams::builder().r#type(kind).modifiers(CONTROL).key("k").code("KeyK");
        tab.execute(key.windows_virtual_key_code(75).build().expect("a key")).await;
    }
}

const OPEN: &str =
    "document.getElementById('palette').open && document.activeElement.getAttribute('role') === 'combobox'";

/// Waits until the selected option begins with a text.
async fn selected(tab: &Tab, text: &str) {
    tab.until(&format!(
        "(() => {{ const field = document.querySelector('#palette input');
            const option = document.getElementById(field.getAttribute('aria-activedescendant'));
            const all = document.querySelectorAll('#palette [aria-selected=true]');
            return all.length === 1 && option === all[0] && option.innerText.trim().startsWith({text:?}); }})()"
    ))
    .await;
}

#[tokio::test]
async fn the_palette_leads_anywhere_with_the_keyboard_alone() {
    let app = App::start().await;
    let user = app.user().await;
    import(&user, "servy", 1, good()).await;
    import(&user, "servy-two", 1, good()).await;
    let _agent = Agent::start(&app, "rack").await;
    let (experiment, _) = submit(&user, &plan_with(&json!({"name": "servy at night"}))).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/settings").await;
    press_control_k(&tab).await;
    tab.until(OPEN).await;
    selected(&tab, "Dashboard").await;
    tab.type_text("servy").await;
    selected(&tab, "servy").await;
    tab.shows("#palette [role=status]", "result").await;
    assert_eq!(tab.violations(Rules::All).await, [""; 0]);
    for scheme in ["light", "dark"] {
        tab.set_scheme(scheme).await;
        tab.screenshot(&format!("palette-1440-{scheme}")).await;
    }
    tab.press("ArrowDown").await;
    selected(&tab, "servy-two").await;
    tab.press("ArrowDown").await;
    selected(&tab, "servy at night").await;
    tab.press("Enter").await;
    tab.wait_for_path(&format!("/experiments/{experiment}")).await;

    // Escape closes it and returns the focus.
    tab.eval::<bool>("(document.querySelector('.jump button').focus(), true)").await;
    press_control_k(&tab).await;
    tab.until(OPEN).await;
    tab.press("ArrowUp").await;
    tab.press("Escape").await;
    tab.until("!document.getElementById('palette').open && document.activeElement.closest('.jump') !== null").await;

    // Enter opens the best hit, even if it was typed before the hits have arrived.
    press_control_k(&tab).await;
    tab.until(OPEN).await;
    tab.type_text("verdicts").await;
    tab.press("Enter").await;
    tab.until("location.pathname.startsWith('/docs/')").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn the_palette_runs_actions() {
    let app = App::start().await;
    let tab = Tab::signed_in(&app, Role::Admin).await;
    tab.go("/runs").await;
    for (typed, option, then) in [
        ("dark", "Dark theme", "location.pathname === '/runs' && document.documentElement.dataset.theme === 'dark'"),
        ("invite", "Invite a user", "location.pathname === '/users' && location.hash === '#invitations'"),
        ("log out", "Log out", "location.pathname === '/login'"),
    ] {
        tab.until("document.readyState === 'complete'").await;
        press_control_k(&tab).await;
        tab.until(OPEN).await;
        tab.type_text(typed).await;
        selected(&tab, option).await;
        tab.press("Enter").await;
        tab.until(then).await;
    }
}

#[tokio::test]
async fn the_button_opens_the_palette_on_a_phone_and_hostile_names_stay_text() {
    const NAME: &str = "<img src=x onerror=alert(1)>";
    let app = App::start().await;
    let user = app.user().await;
    import(&user, NAME, 1, good()).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.set_width(390).await;
    tab.go("/").await;
    tab.click(".jump button").await;
    tab.until(OPEN).await;
    tab.type_text("img src").await;
    tab.shows("#palette-hits [role=option]", NAME).await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('img, [onerror]').length").await, 0);
    tab.until("document.documentElement.scrollWidth <= 390").await;
    // Afterwards the window has its full width again.
    tab.screenshot("palette-390-light").await;
    tab.click("#palette-hits [role=option]").await;
    tab.shows("h1", NAME).await;
    tab.until("document.readyState === 'complete'").await;

    tab.click(".jump button").await;
    tab.until(OPEN).await;
    tab.type_text("zzzz").await;
    tab.shows("#palette [role=status]", "Nothing found").await;
    tab.press("Enter").await;
    tab.wait_for_path("/search?q=zzzz").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn without_javascript_the_form_of_the_header_leads_to_the_results() {
    let app = App::start().await;
    import(&app.user().await, "servy", 1, good()).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/runs").await;
    tab.click(".jump input").await;
    tab.type_text("servy").await;
    tab.press("Enter").await;
    tab.wait_for_path("/search?q=servy").await;
    tab.click("main .found a").await;
    tab.wait_for_path("/targets/servy").await;
}
