//! A comparison on paper: black on white, all of it within the sheet, nothing to press.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::{emulation::SetEmulatedMediaParams, page::PrintToPdfParams};

use super::{Tab, is_drawn, two_targets};
use crate::harness::App;

#[tokio::test]
async fn a_comparison_is_printed_black_on_white_with_charts_and_tables_and_without_buttons() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.scheme("dark").await;
    tab.go(&format!("/compare?runs={}", ids.join(","))).await;
    is_drawn(&tab, "latency").await;
    let ink = "document.querySelector('#latency svg .xtick text').style.fill";
    let on_screen: String = tab.eval(ink).await;

    tab.ask(SetEmulatedMediaParams::builder().media("print").build()).await;
    // What the browser tells a page before it prints it.
    tab.eval::<()>("dispatchEvent(new Event('beforeprint')) && null").await;
    is_drawn(&tab, "latency").await;
    assert_ne!(tab.eval::<String>(ink).await, on_screen, "charts in the ink of paper");
    let wide: Vec<i64> = tab.eval("[...document.querySelectorAll('.main-svg')].map((svg) => svg.clientWidth)").await;
    assert!(!wide.is_empty() && wide.iter().all(|width| *width == 660), "{wide:?}");
    let colours: [String; 2] = tab.eval("((s) => [s.backgroundColor, s.color])(getComputedStyle(document.body))").await;
    assert_eq!(colours, ["rgb(255, 255, 255)", "rgb(0, 0, 0)"]);
    let to_press: usize = tab
        .eval("[...document.querySelectorAll('header, button, select, .btn')].filter((e) => e.offsetParent).length")
        .await;
    assert_eq!(to_press, 0);
    // An A4 sheet at 96 px an inch, without its margins.
    tab.width(718).await;
    let beyond: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('main table, main figure, .main-svg')].filter((e) =>
             e.getBoundingClientRect().right > 718).map((e) => e.outerHTML.slice(0, 90))",
        )
        .await;
    assert!(beyond.is_empty(), "{beyond:#?}");
    tab.picture("paper-compare").await;
    tab.eval::<()>("dispatchEvent(new Event('afterprint')) && null").await;
    tab.width(1440).await;

    let a4 = PrintToPdfParams::builder().paper_width(8.27).paper_height(11.69).prefer_css_page_size(true).build();
    let pdf = tab.ask(a4).await.data;
    let pdf: &[u8] = pdf.as_ref();
    assert!(pdf.len() > 10_000, "{} bytes", pdf.len());
    tab.is_quiet().await;
}
