//! The charts of what happened during a run: marked together, switched off one by one.

use brewbench::auth::Role;
use chromiumoxide::cdp::browser_protocol::input::{DispatchMouseEventParams, DispatchMouseEventType};
use serde_json::json;

use super::{Tab, is_drawn};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit},
    summaries::good,
};

const LATENCIES: &str = "#run-latency-time";
const KEY: &str = "[aria-controls=run-latency-time][data-curve='3']";

/// Names of the curves that are to be seen.
const SHOWN: &str = "document.querySelector('#run-latency-time .plot').data
    .filter((curve) => curve.visible !== false).map((curve) => curve.name)";

#[tokio::test]
async fn a_second_is_marked_on_all_charts_and_a_click_hides_a_curve_for_good() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 1}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go(&format!("/runs/{}", runs[0])).await;
    is_drawn(&tab, "run-machine").await;

    // A mouse over the middle of one chart.
    tab.eval::<bool>(&format!("document.querySelector('{LATENCIES}').scrollIntoView(), true")).await;
    let [x, y]: [f64; 2] = tab
        .eval(&format!(
            "(() => {{
        const {{ x, y, width, height }} = document.querySelector('{LATENCIES} .plot').getBoundingClientRect();
        return [x + width / 2, y + height / 2];
    }})()"
        ))
        .await;
    for step in [0.0, 3.0] {
        tab.ask(DispatchMouseEventParams::new(DispatchMouseEventType::MouseMoved, x + step, y)).await;
    }
    tab.until("document.querySelectorAll('figure[data-shares=time]').length === 7").await;
    tab.until("document.querySelectorAll('figure[data-shares=time] .pointed').length === 7").await;

    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "p99", "max"]);
    tab.click(KEY).await;
    tab.until(&format!("document.querySelector(\"{KEY}\").ariaPressed === 'false'")).await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "max"]);
    // It stays away when the charts are drawn anew.
    tab.scheme("dark").await;
    tab.until("document.querySelector('#run-latency-time .plot')._fullLayout.font.color !== undefined").await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "max"]);
    tab.click(KEY).await;
    tab.until(&format!("document.querySelector(\"{KEY}\").ariaPressed === 'true'")).await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await.len(), 5);
    tab.is_quiet().await;
}
