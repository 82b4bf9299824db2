//! Names that look like HTML are text, in tables and in charts.

use brewbench::auth::model::Role;
use chromiumoxide::layout::Point;

use super::{Tab, import, wait_for_chart};
use crate::harness::{
    App,
    summaries::{fixture, good, good_checking},
};

const NAME: &str = "<img src=x onerror=alert(1)>";

#[tokio::test]
async fn a_name_with_html_creates_no_element_and_runs_no_script() {
    let app = App::start().await;
    let user = app.user().await;
    let hostile = import(&user, NAME, 1, good_checking(NAME)).await;
    let odd = import(&user, "odd", 1, fixture("handle-summary-odd-v1.8.1")).await;
    let ending = import(&user, "</script><script>alert(1)</script>", 1, good()).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;

    tab.go("/runs").await;
    tab.shows("#choice tbody th", NAME).await;
    assert_no_elements(&tab).await;
    tab.go(&format!("/runs/{hostile}")).await;
    wait_for_chart(&tab, "run-latency").await;
    tab.shows("h1", NAME).await;
    tab.click("#counters > summary").await;
    tab.shows("tbody th", NAME).await;
    assert_no_elements(&tab).await;
    tab.go(&format!("/runs/{odd}")).await;
    tab.click("#counters > summary").await;
    tab.shows("tr.group th", "g <b>&\"").await;
    tab.shows("tbody th", "has <title>").await;
    assert_no_elements(&tab).await;
    tab.go(&format!("/compare?runs={hostile},{ending}")).await;
    wait_for_chart(&tab, "throughput").await;
    tab.until("[...document.querySelectorAll('#throughput text')].some((t) => t.textContent.startsWith('<img src='))")
        .await;
    tab.shows("h1", NAME).await;
    let bar: [f64; 2] = tab
        .eval(
            "(() => { const r = document.querySelector('#throughput .bars path').getBoundingClientRect();
             return [r.x + r.width / 2, r.y + r.height / 2]; })()",
        )
        .await;
    tab.page.move_mouse(Point::new(bar[0], bar[1])).await.expect("a mouse");
    tab.until("!!document.querySelector('#throughput .hovertext text')?.textContent").await;
    assert_no_elements(&tab).await;
}

async fn assert_no_elements(tab: &Tab) {
    let created: usize =
        tab.eval("document.querySelectorAll('img, [onerror], main b > b, main script:not([type])').length").await;
    assert_eq!(created, 0);
    tab.assert_no_errors().await;
}
