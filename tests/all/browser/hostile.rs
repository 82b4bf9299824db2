//! Names that look like HTML are text, in tables and in charts.

use brewbench::auth::model::Role;
use chromiumoxide::layout::Point;

use super::{Tab, bring, is_drawn};
use crate::harness::{
    App,
    summaries::{fixture, good, good_checking},
};

const NAME: &str = "<img src=x onerror=alert(1)>";

#[tokio::test]
async fn a_name_with_html_in_it_makes_no_element_and_runs_nothing() {
    let app = App::start().await;
    let user = app.user().await;
    let hostile = bring(&user, NAME, 1, good_checking(NAME)).await;
    let odd = bring(&user, "odd", 1, fixture("handle-summary-odd-v1.8.1")).await;
    let ending = bring(&user, "</script><script>alert(1)</script>", 1, good()).await;
    let tab = Tab::of(&app, Role::Viewer).await;

    tab.go("/runs").await;
    tab.says("#choice tbody th", NAME).await;
    stays_text(&tab).await;
    tab.go(&format!("/runs/{hostile}")).await;
    is_drawn(&tab, "run-latency").await;
    tab.says("h1", NAME).await;
    tab.says("tbody th", NAME).await;
    stays_text(&tab).await;
    tab.go(&format!("/runs/{odd}")).await;
    tab.says("tr.group th", "g <b>&\"").await;
    tab.says("tbody th", "has <title>").await;
    stays_text(&tab).await;
    tab.go(&format!("/compare?runs={hostile},{ending}")).await;
    is_drawn(&tab, "throughput").await;
    tab.until("[...document.querySelectorAll('#throughput text')].some((t) => t.textContent.startsWith('<img src='))")
        .await;
    tab.says("h1", NAME).await;
    let bar: [f64; 2] = tab
        .eval(
            "(() => { const r = document.querySelector('#throughput .bars path').getBoundingClientRect();
             return [r.x + r.width / 2, r.y + r.height / 2]; })()",
        )
        .await;
    tab.page.move_mouse(Point::new(bar[0], bar[1])).await.expect("a mouse");
    tab.until("!!document.querySelector('#throughput .hovertext text')?.textContent").await;
    stays_text(&tab).await;
}

async fn stays_text(tab: &Tab) {
    let made: usize =
        tab.eval("document.querySelectorAll('img, [onerror], main b > b, main script:not([type])').length").await;
    assert_eq!(made, 0);
    tab.is_quiet().await;
}
