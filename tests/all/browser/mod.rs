//! The site in a real browser: passkeys by a virtual authenticator, charts, pages that follow, keyboard, narrow windows.

mod accessible;
mod axe;
mod chromium;
mod follow;
mod heard;
mod history;
mod hostile;
mod live;
mod new_run;
mod page;
mod paper;
pub mod passkeys;
mod people;
mod report;
mod saving;
mod scriptless;
mod steady;
mod story;
mod told;
mod weight;
mod world;

pub use page::Tab;
use reqwest::Method;

use crate::harness::{Actor, Answer, App, submit::text, summaries::fixture};

/// Imports a summary as a repetition of a target; gives the run's id.
async fn bring(user: &Actor, target: &str, repetition: u32, summary: String) -> String {
    let request = user.request(&Method::POST, "/api/v1/runs/import");
    let request = request.query(&[("target", target), ("scenario", "hash"), ("repetition", &repetition.to_string())]);
    text(&Answer::of(request.body(summary)).await.ok().json()["runs"][0]["id"])
}

/// Three repetitions each of `quick`, 17,070 requests/s, and `slow`, 16,600; the newest first.
async fn two_targets(app: &App) -> Vec<String> {
    let user = app.user().await;
    let mut ids = Vec::new();
    for repetition in 1..=3 {
        for (target, summary) in [("slow", "handle-summary-v0.52.0"), ("quick", "handle-summary-v1.8.1")] {
            ids.insert(0, bring(&user, target, repetition, fixture(summary)).await);
        }
    }
    ids
}

/// Twice three repetitions of both targets, as if one experiment had measured them in turn.
async fn six_in_turn(app: &App) -> Vec<String> {
    let ids = [two_targets(app).await, two_targets(app).await].concat();
    sqlx::query(
        "update run set in_turn = 1, experiment_id = 'in turn', repetition =
             (select count(*) from run as other where other.target = run.target and other.seq <= run.seq)",
    )
    .execute(&app.state.db.write)
    .await
    .expect("runs");
    ids
}

/// Waits until a chart is drawn: all that the server described stands in its picture.
async fn is_drawn(tab: &Tab, id: &str) {
    let (plot, shown) =
        (format!("document.querySelector('#{id} .js-plotly-plot')"), "?.querySelectorAll('svg .trace')");
    tab.until(&format!("{plot}?.data?.length > 0 && {plot}{shown}.length === {plot}.data.length")).await;
}
