//! A report opened from a file, without a server.

use super::{Tab, two_targets, wait_for_chart};
use crate::harness::App;

#[tokio::test]
async fn a_report_opened_from_a_file_draws_its_charts_and_requests_nothing() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let report = app.reader().await.get(&format!("/api/v1/report?runs={}", ids.join(","))).await.ok();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, &report.body).expect("written");
    let tab = Tab::open(&app).await;
    let _app = app.stop().await;
    tab.go(&format!("file://{}", file.display())).await;
    wait_for_chart(&tab, "throughput").await;
    wait_for_chart(&tab, "latency").await;
    let ink = "document.querySelector('#latency svg .xtick text').style.fill";
    let light: String = tab.eval(ink).await;
    tab.screenshot("report-1440-light").await;
    tab.set_scheme("dark").await;
    tab.until(&format!("{ink} !== {}", serde_json::Value::from(light))).await;
    tab.screenshot("report-1440-dark").await;
    for width in [390, 360] {
        tab.set_width(width).await;
        tab.until("document.querySelector('#latency .main-svg').clientWidth === document.querySelector('#latency').clientWidth")
            .await;
        let wide: i64 = tab.eval("document.documentElement.scrollWidth").await;
        assert!(wide <= width, "{wide} in a window of {width}");
        tab.screenshot(&format!("report-{width}-dark")).await;
    }
    let requested: Vec<String> = tab.eval("performance.getEntriesByType('resource').map((entry) => entry.name)").await;
    assert!(requested.is_empty(), "{requested:?}");
    let links: usize = tab.eval("document.querySelectorAll('a[href], form').length").await;
    assert_eq!(links, 0);
    tab.assert_no_errors().await;
}
