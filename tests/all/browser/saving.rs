//! What is taken away from a comparison: charts as pictures, tables as text.

use brewbench::auth::model::Role;

use super::{Tab, is_drawn, six_in_turn};
use crate::harness::App;

/// Keeps in the page what would be written to a file, and what would be copied.
const CATCH: &str = "(() => {
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
    let ids = six_in_turn(app).await;
    let tab = Tab::of(app, Role::Viewer).await;
    tab.go(&format!("/compare?runs={}&baseline=slow", ids.join(","))).await;
    assert!(tab.eval::<bool>(CATCH).await);
    tab
}

#[tokio::test]
async fn a_chart_is_saved_as_a_picture_of_either_kind() {
    let app = App::start().await;
    let tab = comparison(&app).await;
    is_drawn(&tab, "throughput").await;
    for (kind, opening) in [("png", "\u{89}PNG"), ("svg", "<svg")] {
        tab.eval::<bool>("delete window.saved").await;
        tab.click(&format!("[data-save='{kind}'][aria-controls='throughput']")).await;
        tab.until("window.saved !== undefined").await;
        let (name, begins, length): (String, String, usize) = tab.eval("window.saved").await;
        assert_eq!((name.as_str(), begins.as_str()), (format!("throughput.{kind}").as_str(), opening));
        assert!(length > 5_000, "{kind}: {length} bytes are no chart");
    }
    tab.is_quiet().await;
}

#[tokio::test]
async fn a_table_is_copied_as_markdown_with_the_winner_in_bold_and_as_csv_with_bare_figures() {
    let app = App::start().await;
    let tab = comparison(&app).await;
    let copy = async |kind: &str| -> Vec<String> {
        tab.eval::<bool>("delete window.copied").await;
        tab.click(&format!("[data-copy='#figures'][data-copy-as='{kind}']")).await;
        tab.until("window.copied !== undefined").await;
        tab.eval::<String>("window.copied").await.lines().map(str::to_owned).collect()
    };
    let markdown = copy("markdown").await;
    assert!(
        markdown[0].starts_with("| Target | Runs | requests/s |") && markdown[1].starts_with("| --- | --- | ---: |")
    );
    assert!(
        markdown.iter().any(|line| line.contains("quick") && line.contains("| **17,070 (+2.9 %)** |")),
        "{markdown:?}"
    );
    let csv = copy("csv").await;
    let heads: Vec<&str> = csv[0].split(',').collect();
    let quick = csv.iter().find(|line| line.starts_with("quick")).expect("a line");
    let place = heads.iter().position(|head| *head == "requests/s").expect("a head");
    let rate: f64 = quick.split(',').nth(place).expect("a cell").parse().expect("a bare number");
    assert!((17_074.0..17_075.0).contains(&rate) && quick.contains(",,") && !quick.contains('–'), "{quick}");
    tab.is_quiet().await;
}
