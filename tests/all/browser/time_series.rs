//! Charts of the time series of a run: a shared marker, and curves that can be hidden.

use brewbench::auth::model::Role;
use serde_json::json;

use super::{Tab, wait_for_chart};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit},
    summaries::good,
};

const LATENCIES: &str = "#run-latency-time";
const KEY: &str = "[aria-controls=run-latency-time][data-curve='3']";

/// Names of the visible curves.
const SHOWN: &str = "document.querySelector('#run-latency-time .plot').data
    .filter((curve) => curve.visible !== false).map((curve) => curve.name)";

#[tokio::test]
async fn a_second_is_marked_on_all_charts_and_a_hidden_curve_stays_hidden() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 1}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go(&format!("/runs/{}", runs[0])).await;
    wait_for_chart(&tab, "run-cpu").await;
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('.js-plotly-plot').length").await, 4, "the rest is folded");
    tab.click("#more-charts summary").await;
    wait_for_chart(&tab, "run-machine").await;

    tab.until("document.querySelectorAll('figure[data-shares=time]').length === 7").await;
    // Charts are drawn when they come into view.
    tab.until(
        "[...document.querySelectorAll('figure[data-shares=time]')].every((figure) =>
            figure.querySelector('.js-plotly-plot .nsewdrag') || figure.scrollIntoView())",
    )
    .await;

    // Moves the mouse in the middle of one chart.
    let moved = format!(
        "(() => {{
            const plot = document.querySelector('{LATENCIES} .nsewdrag');
            const {{ x, y, width, height }} = plot.getBoundingClientRect();
            const at = {{ clientX: x + width * (0.4 + Math.random() / 5), clientY: y + height / 2, bubbles: true }};
            plot.dispatchEvent(new MouseEvent('mousemove', at));
            return document.querySelectorAll('figure[data-shares=time] .pointed').length === 7;
        }})()"
    );
    tab.until(&moved).await;

    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "p99", "max"]);
    tab.click(KEY).await;
    tab.until(&format!("document.querySelector(\"{KEY}\").ariaPressed === 'false'")).await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "max"]);
    // It stays hidden when the charts are redrawn.
    tab.set_scheme("dark").await;
    tab.until("document.querySelector('#run-latency-time .plot')._fullLayout.font.color !== undefined").await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await, ["p50", "p90", "p95", "max"]);
    tab.click(KEY).await;
    tab.until(&format!("document.querySelector(\"{KEY}\").ariaPressed === 'true'")).await;
    assert_eq!(tab.eval::<Vec<String>>(SHOWN).await.len(), 5);
    tab.assert_no_errors().await;
}
