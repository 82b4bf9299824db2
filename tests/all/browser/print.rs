//! A printed comparison: black on white, within the sheet, without controls.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::{emulation::SetEmulatedMediaParams, page::PrintToPdfParams};

use super::{Tab, two_targets, wait_for_chart};
use crate::harness::App;

#[tokio::test]
async fn a_comparison_is_printed_black_on_white_with_charts_and_without_buttons() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.set_scheme("dark").await;
    tab.go(&format!("/compare?runs={}", ids.join(","))).await;
    wait_for_chart(&tab, "latency").await;
    let ink = "document.querySelector('#latency svg .xtick text').style.fill";
    let on_screen: String = tab.eval(ink).await;

    tab.execute(SetEmulatedMediaParams::builder().media("print").build()).await;
    // The event sent before printing.
    tab.eval::<()>("dispatchEvent(new Event('beforeprint')) && null").await;
    wait_for_chart(&tab, "latency").await;
    assert_ne!(tab.eval::<String>(ink).await, on_screen, "charts have the colours of print");
    let wide: Vec<i64> = tab.eval("[...document.querySelectorAll('.main-svg')].map((svg) => svg.clientWidth)").await;
    assert!(!wide.is_empty() && wide.iter().all(|width| *width == 660), "{wide:?}");
    let colours: [String; 2] = tab.eval("((s) => [s.backgroundColor, s.color])(getComputedStyle(document.body))").await;
    assert_eq!(colours, ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
    let controls: usize = tab
        .eval("[...document.querySelectorAll('header, button:not(.term), .icon, select, .btn')].filter((e) => e.offsetParent).length")
        .await;
    assert_eq!(controls, 0);
    // An A4 sheet at 96 px per inch, without margins.
    tab.set_width(718).await;
    let beyond: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('main table, main figure, .main-svg')].filter((e) =>
             e.getBoundingClientRect().right > 718).map((e) => e.outerHTML.slice(0, 90))",
        )
        .await;
    assert!(beyond.is_empty(), "{beyond:#?}");
    tab.screenshot("paper-compare").await;
    tab.eval::<()>("dispatchEvent(new Event('afterprint')) && null").await;
    tab.set_width(1440).await;

    let a4 = PrintToPdfParams::builder().paper_width(8.27).paper_height(11.69).prefer_css_page_size(true).build();
    let pdf = tab.execute(a4).await.data;
    let pdf: &[u8] = pdf.as_ref();
    assert!(pdf.len() > 10_000, "{} bytes", pdf.len());
    tab.assert_no_errors().await;
}
