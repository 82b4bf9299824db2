//! The site in a real browser: passkeys with a virtual authenticator, charts, live updates, keyboard, narrow windows.

mod accessible;
mod axe;
mod chromium;
mod dashboard;
mod error_reporting;
mod export;
mod follow;
mod history;
mod hostile;
mod live;
mod new_run;
mod new_target;
mod no_javascript;
mod page;
mod page_errors;
mod palette;
pub mod passkeys;
mod print;
mod rendering;
mod report;
mod time_series;
mod users;
mod weight;
mod world;

pub use page::Tab;

use crate::harness::{Actor, App, submit::text, summaries::fixture};

/// Imports a summary as a repetition of a target. Returns the run's id.
async fn import(user: &Actor, target: &str, repetition: u32, summary: String) -> String {
    let number = repetition.to_string();
    let about = [("target", target), ("scenario", "hash"), ("repetition", number.as_str())];
    text(&user.import_as(&about, summary).await.ok().json()["runs"][0]["id"])
}

/// Imports three repetitions each of `quick`, 17,070 requests/s, and `slow`, 16,600. Returns their ids, newest first.
async fn two_targets(app: &App) -> Vec<String> {
    let user = app.user().await;
    let mut ids = Vec::new();
    for repetition in 1..=3 {
        for (target, summary) in [("slow", "handle-summary-v0.52.0"), ("quick", "handle-summary-v1.8.1")] {
            ids.insert(0, import(&user, target, repetition, fixture(summary)).await);
        }
    }
    ids
}

/// Imports six interleaved repetitions of both targets, as if measured by one experiment.
async fn six_interleaved(app: &App) -> Vec<String> {
    let ids = [two_targets(app).await, two_targets(app).await].concat();
    sqlx::query(
        "update run set interleaved = 1, experiment_id = 'in turn', repetition =
             (select count(*) from run as other where other.target = run.target and other.seq <= run.seq)",
    )
    .execute(&app.state.db.write)
    .await
    .expect("runs");
    ids
}

/// Waits until a chart shows all traces sent by the server.
async fn wait_for_chart(tab: &Tab, id: &str) {
    // Charts in a fold are drawn when it opens.
    let folds = format!("[document.querySelector('#{id}').closest('details')]");
    let open = "every((fold) => fold === null || (fold.open = true))";
    tab.until(&format!("document.querySelector('#{id}') !== null && {folds}.{open}")).await;
    let (plot, shown) =
        (format!("document.querySelector('#{id} .js-plotly-plot')"), "?.querySelectorAll('svg .trace')");
    tab.until(&format!("{plot}?.data?.length > 0 && {plot}{shown}.length === {plot}.data.length")).await;
}
