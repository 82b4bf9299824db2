//! A report in a browser that has no server: opened from a folder, it draws, follows the scheme and asks for nothing.

use super::{Tab, is_drawn, two_targets};
use crate::harness::App;

#[tokio::test]
async fn a_report_opened_from_a_folder_draws_its_charts_in_both_schemes_and_asks_for_nothing() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let report = app.reader().await.get(&format!("/api/v1/report?runs={}", ids.join(","))).await.ok();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("report.html");
    std::fs::write(&file, &report.body).expect("written");
    let tab = Tab::open(&app).await;
    let _app = app.stop().await;
    tab.go(&format!("file://{}", file.display())).await;
    is_drawn(&tab, "throughput").await;
    is_drawn(&tab, "latency").await;
    let ink = "document.querySelector('#latency svg .xtick text').style.fill";
    let light: String = tab.eval(ink).await;
    tab.picture("report-1440-light").await;
    tab.scheme("dark").await;
    tab.until(&format!("{ink} !== {}", serde_json::Value::from(light))).await;
    tab.picture("report-1440-dark").await;
    for width in [390, 360] {
        tab.width(width).await;
        tab.until("document.querySelector('#latency .main-svg').clientWidth === document.querySelector('#latency').clientWidth")
            .await;
        let wide: i64 = tab.eval("document.documentElement.scrollWidth").await;
        assert!(wide <= width, "{wide} in a window of {width}");
        tab.picture(&format!("report-{width}-dark")).await;
    }
    let asked: Vec<String> = tab.eval("performance.getEntriesByType('resource').map((entry) => entry.name)").await;
    assert!(asked.is_empty(), "{asked:?}");
    let links: usize = tab.eval("document.querySelectorAll('a[href], form').length").await;
    assert_eq!(links, 0);
    tab.is_quiet().await;
}
