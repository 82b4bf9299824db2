//! Export of a comparison: charts as images, tables as text.

use brewbench::auth::model::Role;

use super::{Tab, six_interleaved, wait_for_chart};
use crate::harness::App;

/// Stores saved files and copied text in variables of the page.
const INTERCEPT: &str = "(() => {
    const [blobs, make] = [new Map(), URL.createObjectURL];
    URL.createObjectURL = (blob) => { const address = make(blob); blobs.set(address, blob); return address; };
    HTMLAnchorElement.prototype.click = async function () {
        const bytes = [...new Uint8Array(await blobs.get(this.href).arrayBuffer())];
        window.saved = [this.download, String.fromCharCode(...bytes.slice(0, 4)), bytes.length];
    };
    navigator.clipboard.writeText = async (text) => { window.copied = text; };
    return true;
})()";

async fn comparison(app: &App) -> Tab {
    let ids = six_interleaved(app).await;
    let tab = Tab::signed_in(app, Role::Viewer).await;
    tab.go(&format!("/compare?runs={}&baseline=slow", ids.join(","))).await;
    assert!(tab.eval::<bool>(INTERCEPT).await);
    tab
}

#[tokio::test]
async fn a_chart_is_saved_as_png_or_svg() {
    let app = App::start().await;
    let tab = comparison(&app).await;
    wait_for_chart(&tab, "throughput").await;
    for (kind, opening) in [("png", "\u{89}PNG"), ("svg", "<svg")] {
        tab.eval::<bool>("delete window.saved").await;
        tab.click(&format!("[data-save='{kind}'][aria-controls='throughput']")).await;
        tab.until("window.saved !== undefined").await;
        let (name, begins, length): (String, String, usize) = tab.eval("window.saved").await;
        assert_eq!((name.as_str(), begins.as_str()), (format!("throughput.{kind}").as_str(), opening));
        assert!(length > 5_000, "{kind}: {length} bytes are too few for a chart");
    }
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_table_is_copied_as_markdown_with_winners_in_bold_or_as_csv_with_plain_numbers() {
    let app = App::start().await;
    let tab = comparison(&app).await;
    let copy = async |kind: &str| -> Vec<String> {
        tab.eval::<bool>("delete window.copied").await;
        tab.eval::<()>("void (document.querySelector('#metrics').open = true)").await;
        tab.click(&format!("[data-copy='#figures'][data-copy-as='{kind}']")).await;
        tab.until("window.copied !== undefined").await;
        tab.eval::<String>("window.copied").await.lines().map(str::to_owned).collect()
    };
    let markdown = copy("markdown").await;
    assert!(markdown[0].starts_with("| Metric | quick |") && markdown[1].starts_with("| --- | ---: |"), "{markdown:?}");
    let rates = markdown.iter().find(|line| line.starts_with("| requests/s |")).expect("a line");
    assert!(rates.contains("| **17,070** |") && rates.contains("+2.9 %"), "{rates}");
    let csv = copy("csv").await;
    let heads: Vec<&str> = csv[0].split(',').collect();
    let rates = csv.iter().find(|line| line.starts_with("requests/s")).expect("a line");
    let place = heads.iter().position(|head| head.starts_with("quick")).expect("a head");
    let rate: f64 = rates.split(',').nth(place).expect("a cell").parse().expect("a plain number");
    assert!((17_074.0..17_075.0).contains(&rate), "{rates}");
    assert!(csv.iter().any(|line| line.contains(",,")) && !csv.iter().any(|line| line.contains('–')), "{csv:?}");
    tab.assert_no_errors().await;
}
