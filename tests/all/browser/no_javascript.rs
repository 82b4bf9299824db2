//! Pages without JavaScript: everything is readable, and runs can be compared.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::{Tab, two_targets};
use crate::harness::App;

#[tokio::test]
async fn without_javascript_tables_are_shown_and_runs_can_be_compared() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/runs").await;
    tab.click(&format!("input[value='{}']", ids[0])).await;
    tab.click(&format!("input[value='{}']", ids[3])).await;
    tab.click(".choice button").await;
    tab.wait_for_path(&format!("/compare?runs={}&runs={}", ids[0], ids[3])).await;
    tab.shows("main table", "17,070").await;
    tab.shows("figure noscript", "Charts need JavaScript. The table has the same data.").await;
    tab.click("main details summary").await;
    tab.click(&format!("a[href='/runs/{}']", ids[3])).await;
    tab.wait_for_path(&format!("/runs/{}", ids[3])).await;
    tab.shows("main table", "http_req_duration").await;
    let drawn: usize = tab.eval("document.querySelectorAll('.js-plotly-plot').length").await;
    assert_eq!(drawn, 0, "scripts are disabled");
    tab.assert_no_errors().await;

    tab.go("/login").await;
    tab.shows("noscript", "Passkeys need JavaScript.").await;
}
