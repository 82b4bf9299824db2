//! Time series of runs: stored, and returned as JSON and CSV.

use brewbench_wire::{
    outcome::Outcome,
    series::{Packed, Series},
};
use serde_json::json;

use crate::harness::{
    Agent, App,
    agent::outcome,
    series::{constant_series, window},
    submit::{plan_with, submit},
    summaries::good,
};

#[tokio::test]
async fn the_series_of_a_run_is_stored_and_returned_as_json_and_csv() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 1}))).await;
    let path = format!("/api/v1/runs/{}/series", runs[0]);
    user.get(&path).await.refused(404);
    let job = agent.job().await;
    agent.end(Outcome { series: Some(constant_series()), ..outcome(&job, &good()) }).await;

    let series = user.get(&path).await.ok().json();
    assert_eq!(series["run"], json!(runs[0]));
    let values = |window: &str, what: &str| series[window][what].as_array().expect("a list").clone();
    assert_eq!((values("warm_up", "seconds").len(), values("measured", "seconds").len()), (2, 10));
    let second = &values("measured", "seconds")[3];
    assert_eq!(
        (&second["requests"], &second["rps"], &second["failed"]["count"]),
        (&json!(1_000), &json!(1_000.0), &json!(0))
    );
    assert_eq!(values("measured", "usage")[3]["generator"]["cores"], json!(0.33));

    let csv = user.get(&format!("{path}?format=csv")).await.ok();
    assert_eq!(csv.headers["content-type"], "text/csv; charset=utf-8");
    let text = csv.text();
    assert!(text.starts_with("phase,at_s,") && text.lines().count() == 13, "{text}");
    user.get(&format!("{path}?format=xml")).await.refused(422);
}

#[tokio::test]
async fn a_run_without_a_series_has_a_page_and_returns_404_for_the_series() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    let nothing = Packed::pack(&Series::default());
    for (run, series) in runs.iter().zip([None, Some(nothing)]) {
        let job = agent.job().await;
        agent.end(Outcome { series, ..outcome(&job, &good()) }).await;
        user.clone().in_browser().get(&format!("/runs/{run}")).await.ok();
    }
    let why = user.get(&format!("/api/v1/runs/{}/series", runs[0])).await.refused(404);
    assert!(why.contains("series of run"), "{why}");
    assert_eq!(user.get(&format!("/api/v1/runs/{}/series", runs[1])).await.ok().json()["measured"], json!(null));
}

#[tokio::test]
async fn the_page_of_a_run_of_an_hour_is_below_700_kb() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 1}))).await;
    let job = agent.job().await;
    let series = Packed::pack(&Series { warm_up: None, measured: Some(window(3_600)) });
    agent.end(Outcome { series: Some(series), ..outcome(&job, &good()) }).await;
    let page = user.in_browser().get(&format!("/runs/{}", runs[0])).await.ok().text();
    assert!(page.len() < 700_000, "{} bytes", page.len());
}
