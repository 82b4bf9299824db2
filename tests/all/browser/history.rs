//! From the history to a comparison, by mouse and by keyboard.

use brewbench::auth::model::Role;
use serde_json::Value;

use super::{Tab, six_interleaved, two_targets, wait_for_chart};
use crate::harness::App;

/// Returns the texts of the cells of a table's rows.
async fn cells(tab: &Tab, rows: &str) -> Vec<Vec<String>> {
    tab.eval(&format!(
        "[...document.querySelectorAll({rows:?})].map((row) => [...row.cells].map((cell) => cell.innerText.trim()))"
    ))
    .await
}

#[tokio::test]
async fn selected_runs_are_compared_with_charts_and_metrics() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/runs").await;
    let shown: Vec<String> = tab.eval("[...document.querySelectorAll('#choice tbody tr')].map((row) => row.id)").await;
    assert_eq!(shown, ids.iter().map(|id| format!("run-{id}")).collect::<Vec<_>>(), "newest first");
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows[0][0].starts_with("quick") && rows[1][0].starts_with("slow"), "{rows:?}");
    assert!(rows[0].contains(&"17,070".to_owned()) && rows[1].contains(&"16,600".to_owned()), "{rows:?}");

    let bar = "document.querySelector('.choice').checkVisibility()";
    assert!(!tab.eval::<bool>(bar).await, "nothing is selected");
    tab.click(&format!("input[value='{}']", ids[0])).await;
    tab.click(&format!("input[value='{}']", ids[1])).await;
    assert!(tab.eval::<bool>(bar).await);
    let ticked: String =
        tab.eval("getComputedStyle(document.querySelector('.some-selected'), '::before').content").await;
    assert!(ticked.contains("ticked"), "{ticked}");
    tab.click(".choice button").await;
    tab.wait_for_path(&format!("/compare?runs={}&runs={}", ids[0], ids[1])).await;
    tab.shows("h1", "quick").await;
    for chart in ["throughput", "latency"] {
        wait_for_chart(&tab, chart).await;
    }
    let bars: usize = tab.eval("document.querySelectorAll('#throughput svg .trace.bars').length").await;
    assert_eq!(bars, 2, "a bar for each target");
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_comparison_marks_the_winner_of_each_tested_metric() {
    let app = App::start().await;
    // Three repetitions each are too few for a winner.
    let ids = six_interleaved(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go(&format!("/compare?runs={}&baseline=slow", ids.join(","))).await;
    wait_for_chart(&tab, "throughput").await;
    let points: usize = tab.eval("document.querySelectorAll('#throughput svg .scatter .point').length").await;
    assert_eq!(points, 12, "a point for each repetition");
    tab.click("#metrics summary").await;
    let metrics: Vec<String> =
        tab.eval("[...document.querySelectorAll('#figures tbody th')].map((e) => e.innerText)").await;
    assert!(["requests/s", "p95 ms"].iter().all(|name| metrics.contains(&(*name).to_owned())), "{metrics:?}");
    let best: Vec<Vec<String>> = tab
        .eval(
            "[...document.querySelectorAll('td.best')].map((cell) => [
             cell.closest('table').tHead.rows[0].cells[cell.cellIndex].innerText.trim(), cell.firstChild.textContent.trim()])",
        )
        .await;
    let won = |target: &str, value: &str| best.iter().any(|cell| cell[0].starts_with(target) && cell[1] == value);
    assert!(won("quick", "17,070") && !won("slow", "17.41"), "p95 is shown and not tested: {best:?}");
    tab.shows("#figures .num.good", "+2.9").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn runs_can_be_compared_with_the_keyboard_alone() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/runs").await;
    for id in &ids[..2] {
        tab_to(&tab, &format!("input[value='{id}']")).await;
        tab.press(" ").await;
        tab.until(&format!("document.querySelector(\"input[value='{id}']\").checked")).await;
    }
    tab_to(&tab, ".choice button").await;
    tab.press("Enter").await;
    tab.wait_for_path(&format!("/compare?runs={}&runs={}", ids[0], ids[1])).await;
    tab.assert_no_errors().await;
}

/// Presses Tab until an element has the focus, and checks that the focus is visible.
async fn tab_to(tab: &Tab, selector: &str) {
    let mut passed = Vec::new();
    for _ in 0..60 {
        tab.press("Tab").await;
        if tab.eval(&format!("document.activeElement.matches({selector:?})")).await {
            let outline: String = tab.eval("getComputedStyle(document.activeElement).outlineStyle").await;
            assert_ne!(outline, "none", "the focus of {selector} is not visible");
            return;
        }
        passed.push(tab.eval::<String>("document.activeElement.outerHTML.slice(0, 80)").await);
    }
    panic!("{selector} cannot be reached with Tab: {passed:#?}");
}

#[tokio::test]
async fn the_history_can_be_filtered_sorted_and_paged() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/runs").await;
    tab.click("#finder input[name='target']").await;
    tab.type_text("slow").await;
    tab.press("Enter").await;
    tab.wait_for_path("/runs?target=slow").await;
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows.len() == 3 && rows.iter().all(|row| row[0].starts_with("slow")), "{rows:?}");
    tab.shows(".chips", "target: slow").await;
    tab.click("table.history thead a[href*='sort=-rps']").await;
    tab.wait_for_path("/runs?target=slow&sort=-rps").await;
    tab.until("document.querySelector('th[aria-sort=descending]')?.innerText.includes('requests/s')").await;
    tab.click(".chips a").await;
    tab.wait_for_path("/runs?sort=-rps").await;
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows.len() == 6 && rows[..3].iter().all(|row| row[0].starts_with("quick")), "{rows:?}");
    tab.go(&format!("/runs?sort=-rps&after={}", ids[0])).await;
    tab.shows(".choice + input + nav, nav[aria-label='Pages']", "First").await;
    tab.go("/runs?target=nobody").await;
    tab.shows("#choice h2", "No matching runs").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn labels_and_a_hostile_note_are_edited_in_place() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go(&format!("/runs/{}", ids[0])).await;
    tab.click("#more > summary").await;
    tab.click("#remark-forms input").await;
    tab.type_text("before it").await;
    tab.press("Enter").await;
    tab.shows("#remarks .label", "before it").await;
    tab.click("#remark-forms textarea").await;
    tab.type_text("**Quick** <img src=x onerror=alert(1)> [go](javascript:alert(1))").await;
    tab.click("#remark-forms form:last-child .btn").await;
    tab.shows("#remarks .markdown strong", "Quick").await;
    assert!(tab.eval::<bool>("document.querySelector('#more').open").await, "the menu stays open");
    tab.click("#more > summary").await;
    let created: usize = tab.eval("document.querySelectorAll('#remarks .markdown :is(img, a, script)').length").await;
    assert_eq!(created, 0);
    tab.click("#remarks .label a").await;
    tab.wait_for_path("/runs?label=before+it").await;
    tab.shows("#choice tbody th", "before it").await;
    assert_eq!(cells(&tab, "#choice tbody tr").await.len(), 1);
    tab.go(&format!("/runs/{}", ids[0])).await;
    tab.click("#remarks .label button").await;
    tab.until("!document.querySelector('#remarks .label')").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn deleted_runs_can_be_restored() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/runs").await;
    for id in &ids[..2] {
        tab.click(&format!("input[value='{id}']")).await;
    }
    tab.click(".choice .danger").await;
    tab.shows("h1", "Delete these runs").await;
    tab.shows(".consequences", "10 minutes").await;
    tab.click("main form button").await;
    tab.wait_for_path("/runs").await;
    tab.shows(".undo", "2 runs deleted").await;
    assert_eq!(cells(&tab, "#choice tbody tr").await.len(), 4);
    tab.click(".undo button").await;
    tab.until("document.querySelectorAll('#choice tbody tr').length === 6 && !document.querySelector('.undo')").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn keys_move_select_search_and_compare_but_not_in_a_text_field() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    tab.go("/runs").await;
    tab.press("j").await;
    tab.press("x").await;
    tab.press("j").await;
    tab.press("j").await;
    tab.press("k").await;
    let outline: String = tab.eval("getComputedStyle(document.activeElement).outlineStyle").await;
    assert_ne!(outline, "none");
    tab.press("x").await;
    let ticked = "[...document.querySelectorAll('#choice tbody input:checked')].map((box) => box.value)";
    assert_eq!(tab.eval::<Vec<String>>(ticked).await, ids[..2]);
    tab.press("/").await;
    tab.type_text("jxc?").await;
    assert_eq!(tab.eval::<String>("document.querySelector('#finder [name=q]').value").await, "jxc?");
    tab.eval::<Value>("document.activeElement.blur()").await;
    tab.press("?").await;
    tab.until("document.getElementById('keys').open").await;
    tab.press("x").await;
    assert_eq!(tab.eval::<Vec<String>>(ticked).await.len(), 2);
    tab.press("Escape").await;
    tab.until("!document.getElementById('keys').open").await;
    // Shift and a click select a range.
    tab.click(&format!("input[value='{}']", ids[2])).await;
    tab.eval::<Value>(&format!(
        "document.querySelector(\"input[value='{}']\").dispatchEvent(new MouseEvent('click', {{shiftKey: true, bubbles: true, cancelable: true}}))",
        ids[5]
    ))
    .await;
    assert_eq!(tab.eval::<Vec<String>>(ticked).await, ids);
    tab.press("c").await;
    tab.wait_for_path(&format!("/compare?{}", ids.iter().map(|id| format!("runs={id}")).collect::<Vec<_>>().join("&")))
        .await;
    tab.assert_no_errors().await;
}
