//! From the history to a comparison, by mouse and by keyboard.

use brewbench::auth::model::Role;
use serde_json::Value;

use super::{Tab, is_drawn, six_in_turn, two_targets};
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
async fn a_comparison_marks_the_winner_of_each_figure_that_is_judged() {
    let app = App::start().await;
    // Three repetitions each would be too few for a winner.
    let ids = six_in_turn(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
    tab.go(&format!("/compare?runs={}&baseline=slow", ids.join(","))).await;
    is_drawn(&tab, "throughput").await;
    let points: usize = tab.eval("document.querySelectorAll('#throughput svg .scatter .point').length").await;
    assert_eq!(points, 12, "a point for each repetition");
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
    assert!(won("quick", "17,070") && !won("slow", "17.41"), "p95 is shown and not judged: {best:?}");
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

#[tokio::test]
async fn a_table_is_narrowed_ordered_and_paged_by_hand() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go("/runs").await;
    tab.click("#finder details summary").await;
    tab.click("#finder input[name='target']").await;
    tab.write("slow").await;
    tab.press("Enter").await;
    tab.lands_at("/runs?target=slow").await;
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows.len() == 3 && rows.iter().all(|row| row[0].starts_with("slow")), "{rows:?}");
    tab.says(".chips", "target: slow").await;
    tab.click("table.history thead a[href*='sort=-rps']").await;
    tab.lands_at("/runs?target=slow&sort=-rps").await;
    tab.until("document.querySelector('th[aria-sort=descending]')?.innerText.includes('requests/s')").await;
    tab.click(".chips a").await;
    tab.lands_at("/runs?sort=-rps").await;
    let rows = cells(&tab, "#choice tbody tr").await;
    assert!(rows.len() == 6 && rows[..3].iter().all(|row| row[0].starts_with("quick")), "{rows:?}");
    tab.go(&format!("/runs?sort=-rps&before={}", ids[0])).await;
    tab.says(".choice + input + nav, nav[aria-label='Pages']", "First").await;
    tab.go("/runs?target=nobody").await;
    tab.says("#choice h2", "Nothing matches").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn labels_and_a_hostile_note_are_written_in_place() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go(&format!("/runs/{}", ids[0])).await;
    tab.click("#remarks .pop summary").await;
    tab.click("#remarks .pop input").await;
    tab.write("before it").await;
    tab.press("Enter").await;
    tab.says("#remarks .label", "before it").await;
    tab.click("#remarks .edit summary").await;
    tab.click("#remarks textarea").await;
    tab.write("**Quick** <img src=x onerror=alert(1)> [go](javascript:alert(1))").await;
    tab.click("#remarks .edit .btn").await;
    tab.says("#remarks .markdown strong", "Quick").await;
    let made: usize = tab.eval("document.querySelectorAll('#remarks .markdown :is(img, a, script)').length").await;
    assert_eq!(made, 0);
    tab.click("#remarks .label a").await;
    tab.lands_at("/runs?label=before+it").await;
    tab.says("#choice tbody th", "before it").await;
    assert_eq!(cells(&tab, "#choice tbody tr").await.len(), 1);
    tab.go(&format!("/runs/{}", ids[0])).await;
    tab.click("#remarks .label button").await;
    tab.until("!document.querySelector('#remarks .label')").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn what_was_deleted_by_mistake_comes_back() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go("/runs").await;
    for id in &ids[..2] {
        tab.click(&format!("input[value='{id}']")).await;
    }
    tab.click(".choice .danger").await;
    tab.says("h1", "Delete these runs").await;
    tab.says(".consequences", "10 minutes").await;
    tab.click("main form button").await;
    tab.lands_at("/runs").await;
    tab.says(".undo", "2 runs deleted").await;
    assert_eq!(cells(&tab, "#choice tbody tr").await.len(), 4);
    tab.click(".undo button").await;
    tab.until("document.querySelectorAll('#choice tbody tr').length === 6 && !document.querySelector('.undo')").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn keys_move_tick_search_and_compare_but_never_while_somebody_types() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::of(&app, Role::Viewer).await;
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
    tab.write("jxc?").await;
    assert_eq!(tab.eval::<String>("document.querySelector('#finder [name=q]').value").await, "jxc?");
    tab.eval::<Value>("document.activeElement.blur()").await;
    tab.press("?").await;
    tab.until("document.getElementById('keys').open").await;
    tab.press("x").await;
    assert_eq!(tab.eval::<Vec<String>>(ticked).await.len(), 2);
    tab.press("Escape").await;
    tab.until("!document.getElementById('keys').open").await;
    // With Shift and the mouse all between are ticked.
    tab.click(&format!("input[value='{}']", ids[2])).await;
    tab.eval::<Value>(&format!(
        "document.querySelector(\"input[value='{}']\").dispatchEvent(new MouseEvent('click', {{shiftKey: true, bubbles: true, cancelable: true}}))",
        ids[5]
    ))
    .await;
    assert_eq!(tab.eval::<Vec<String>>(ticked).await, ids);
    tab.press("c").await;
    tab.lands_at(&format!("/compare?{}", ids.iter().map(|id| format!("runs={id}")).collect::<Vec<_>>().join("&")))
        .await;
    tab.is_quiet().await;
}
