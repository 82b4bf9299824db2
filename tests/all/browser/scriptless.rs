//! Without JavaScript everything can be read, and what is chosen is compared.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::{Tab, two_targets};
use crate::harness::App;

#[tokio::test]
async fn without_javascript_the_tables_are_there_and_runs_can_be_compared() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.ask(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/runs").await;
    tab.click(&format!("input[value='{}']", ids[0])).await;
    tab.click(&format!("input[value='{}']", ids[3])).await;
    tab.click(".choice button").await;
    tab.lands_at(&format!("/compare?runs={}&runs={}", ids[0], ids[3])).await;
    tab.says("main table", "17,070").await;
    tab.says("figure noscript", "Charts need JavaScript. The table has the same figures.").await;
    tab.click("main details summary").await;
    tab.click(&format!("a[href='/runs/{}']", ids[3])).await;
    tab.lands_at(&format!("/runs/{}", ids[3])).await;
    tab.says("main table", "http_req_duration").await;
    let drawn: usize = tab.eval("document.querySelectorAll('.js-plotly-plot').length").await;
    assert_eq!(drawn, 0, "scripts run after all");
    tab.is_quiet().await;

    tab.go("/login").await;
    tab.says("noscript", "Passkeys need JavaScript.").await;
}
