//! Each target has one permanent colour, the same on every page.

use brewbench_wire::messages::TargetOffer;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App, agent,
    submit::{plan_with, submit, text},
    summaries::good,
};

async fn imported(user: &Actor, target: &str) -> String {
    let path = format!("/api/v1/runs/import?target={target}");
    let answer = Answer::to(user.request(&reqwest::Method::POST, &path).body(good())).await;
    text(&answer.ok().json()["runs"][0]["id"])
}

/// The dots on a page as (class, name), in order, each once.
fn dots(html: &str) -> Vec<(String, String)> {
    let mut dots: Vec<(String, String)> = Vec::new();
    for part in html.split(r#"<i class="dot "#).skip(1) {
        let (class, rest) = part.split_once('"').expect("a quoted class");
        let name = rest.split_once("</i>").expect("an end").1.split('<').next().unwrap_or_default().trim();
        let dot = (class.to_owned(), name.to_owned());
        if !name.is_empty() && !dots.contains(&dot) {
            dots.push(dot);
        }
    }
    dots
}

fn dot(class: &str, name: &str) -> (String, String) {
    (class.to_owned(), name.to_owned())
}

#[tokio::test]
async fn a_target_keeps_the_colour_of_its_first_appearance_on_every_page() {
    let app = App::start().await;
    let user = app.user().await;
    let page = async |path: String| user.clone().in_browser().get(&path).await.ok().text();
    let zebra = imported(&user, "zebra").await;
    let _agent = Agent::start(&app, "rack").await;
    let (experiment, runs) = submit(&user, &plan_with(&json!({"targets": ["slow", "fast"]}))).await;
    let ant = imported(&user, "ant").await;
    // In order of appearance: the first import, the agent's offers, the second import.
    let expected =
        [dot("t1 circle", "zebra"), dot("t2 circle", "fast"), dot("t3 circle", "slow"), dot("t4 circle", "ant")];
    let history = dots(&page("/runs".to_owned()).await);
    for one in &expected {
        assert!(history.contains(one), "{one:?} is not among {history:?}");
    }
    assert_eq!(history.len(), 4, "{history:?}");
    assert_eq!(dots(&page(format!("/runs/{ant}")).await), expected[3..]);
    assert_eq!(dots(&page(format!("/runs/{}", runs[0])).await).len(), 1);
    let experiment = dots(&page(format!("/experiments/{experiment}")).await);
    assert!(experiment.iter().all(|dot| expected[1..3].contains(dot)), "{experiment:?}");

    let compared = format!("compare?runs={ant},{zebra}");
    let side_by_side = page(format!("/{compared}")).await;
    assert_eq!(dots(&side_by_side)[..2], [dot("t1 circle", "zebra"), dot("t4 circle", "ant")]);
    assert!(side_by_side.contains(r#""color":"target 4""#) && !side_by_side.contains("target 2"), "{side_by_side}");
    let subjects = user.get(&format!("/api/v1/{compared}")).await.ok().json()["subjects"].clone();
    let marks: Vec<(String, &Value)> =
        subjects.as_array().expect("subjects").iter().map(|one| (text(&one["target"]), &one["mark"])).collect();
    assert_eq!(marks, [("ant".to_owned(), &json!(3)), ("zebra".to_owned(), &json!(0))]);

    user.delete(&format!("/api/v1/runs/{zebra}")).await.ok();
    imported(&user, "later").await;
    let again = imported(&user, "zebra").await;
    assert_eq!(dots(&page(format!("/runs/{again}")).await), expected[..1], "a name keeps its colour without runs");
}

#[tokio::test]
async fn more_targets_than_colours_differ_in_shape() {
    let app = App::start().await;
    let user = app.user().await;
    let mut ids = Vec::new();
    for number in 0..9 {
        ids.push(imported(&user, &format!("t{number}")).await);
    }
    let path = format!("/compare?runs={},{}", ids[0], ids[8]);
    let html = user.in_browser().get(&path).await.ok().text();
    assert_eq!(dots(&html)[..2], [dot("t1 square", "t8"), dot("t1 circle", "t0")]);
}

#[tokio::test]
async fn an_offered_target_has_a_colour_before_its_first_run() {
    let app = App::start().await;
    Agent::start_with(&app, "rack", |hello| {
        let offer = |name: &str| TargetOffer { name: name.to_owned(), ..agent::hello().targets.remove(0) };
        hello.targets = vec![offer("second"), offer("first")];
    })
    .await;
    let user = app.user().await;
    let run = imported(&user, "first").await;
    assert_eq!(dots(&user.in_browser().get(&format!("/runs/{run}")).await.ok().text()), [dot("t2 circle", "first")]);
}
