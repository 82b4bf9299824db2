//! From the history to a comparison, by mouse and by keyboard.

use brewbench::auth::Role;

use super::{Tab, is_drawn, two_targets};
use crate::harness::App;

/// What stands in the cells of a table's rows.
async fn cells(tab: &Tab, rows: &str) -> Vec<Vec<String>> {
    tab.eval(&format!(
        "[...document.querySelectorAll({rows:?})].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    ))
    .await
}

#[tokio::test]
async fn what_is_ticked_in_the_history_is_put_side_by_side_with_charts_and_figures() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go("/runs").await;
    let shown: Vec<String> = tab.eval("[...document.querySelectorAll('#choice tbody tr')].map((row) => row.id)").await;
    assert_eq!(shown, ids.iter().map(|id| format!("run-{id}")).collect::<Vec<_>>(), "newest first");
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows[0][0].starts_with("quick") && rows[1][0].starts_with("slow"), "{rows:?}");
    assert!(rows[0].contains(&"17,070".to_owned()) && rows[1].contains(&"16,600".to_owned()), "{rows:?}");

    tab.says(".choice", "Tick the runs to put side by side.").await;
    tab.click(&format!("input[value='{}']", ids[0])).await;
    tab.click(&format!("input[value='{}']", ids[1])).await;
    let ticked: String = tab.eval("getComputedStyle(document.querySelector('.told-some'), '::before').content").await;
    assert!(ticked.contains("ticked"), "{ticked}");
    tab.click(".choice button").await;
    tab.lands_at(&format!("/compare?runs={}&runs={}", ids[0], ids[1])).await;
    tab.says("h1", "quick").await;
    for chart in ["throughput", "latency"] {
        is_drawn(&tab, chart).await;
    }
    let bars: usize = tab.eval("document.querySelectorAll('#throughput svg .trace.bars').length").await;
    assert_eq!(bars, 2, "a bar for each target");
    tab.is_quiet().await;
}

#[tokio::test]
async fn a_comparison_marks_the_winner_of_each_figure() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go(&format!("/compare?runs={}&baseline=slow", ids.join(","))).await;
    is_drawn(&tab, "throughput").await;
    let points: usize = tab.eval("document.querySelectorAll('#throughput svg .scatter .point').length").await;
    assert_eq!(points, 6, "a point for each repetition");
    let heads = cells(&tab, "main section:has(> .head h2) table thead tr").await;
    let heads = heads.iter().find(|heads| heads.contains(&"requests/s".to_owned())).expect("figures with units");
    assert!(heads.contains(&"p95 ms".to_owned()), "{heads:?}");
    let best: Vec<Vec<String>> = tab
        .eval(
            "[...document.querySelectorAll('td.best')].map((cell) => [cell.closest('tr').cells[0].innerText.trim(),
             cell.firstChild.textContent.trim()])",
        )
        .await;
    let won = |target: &str, figure: &str| best.iter().any(|cell| cell[0].starts_with(target) && cell[1] == figure);
    assert!(won("quick", "17,070") && won("slow", "17.41"), "{best:?}");
    tab.says("td.best .under", "+2.9").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn the_keyboard_alone_leads_from_the_history_to_a_comparison() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go("/runs").await;
    for id in &ids[..2] {
        reach(&tab, &format!("input[value='{id}']")).await;
        tab.press(" ").await;
        tab.until(&format!("document.querySelector(\"input[value='{id}']\").checked")).await;
    }
    reach(&tab, ".choice button").await;
    tab.press("Enter").await;
    tab.lands_at(&format!("/compare?runs={}&runs={}", ids[0], ids[1])).await;
    tab.is_quiet().await;
}

/// Goes on with Tab until an element has the focus, and shows it.
async fn reach(tab: &Tab, selector: &str) {
    let mut passed = Vec::new();
    for _ in 0..60 {
        tab.press("Tab").await;
        if tab.eval(&format!("document.activeElement.matches({selector:?})")).await {
            let outline: String = tab.eval("getComputedStyle(document.activeElement).outlineStyle").await;
            assert_ne!(outline, "none", "{selector} does not show that it has the focus");
            return;
        }
        passed.push(tab.eval::<String>("document.activeElement.outerHTML.slice(0, 80)").await);
    }
    panic!("{selector} is not reached with Tab: {passed:#?}");
}
