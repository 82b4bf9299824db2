//! The form of a new run.

use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::harness::{
    Actor, Agent, Answer, App,
    submit::{plan_with, submit, text},
    summaries::scaled,
};

/// Submits a form like a browser.
pub async fn fill_in(who: &Actor, path: &str, form: &str) -> Answer {
    let request = who.request(&Method::POST, path).header("content-type", "application/x-www-form-urlencoded");
    Answer::to(request.body(form.to_owned())).await
}

const FORM: &str = "target=fast&target=slow&size=1+vCPU+%2F+256+MiB&scenario=hash&load=vus&vus=2&duration=1s&\
                     warm-up=0s&repeat=2&agent=&name=night";

#[tokio::test]
async fn the_former_address_of_the_form_redirects_with_its_query() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    for (query, location) in [("", "/experiments/new"), ("?target=fast&vus=8", "/experiments/new?target=fast&vus=8")] {
        let answer = user.get(&format!("/runs/new{query}")).await;
        assert_eq!((answer.status, answer.header("location")), (StatusCode::PERMANENT_REDIRECT, location));
    }
}

#[tokio::test]
async fn the_form_creates_the_same_experiment_as_the_api() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    let _agent = Agent::start(&app, "rack").await;
    let shown = user.get(&format!("/experiments/new?{FORM}")).await.ok().text();
    assert!(shown.contains("<b>4 runs</b>") && shown.contains("2 targets × 1 size × 2 repetitions"), "{shown}");
    assert!(shown.contains("<dd>about 10") && shown.contains("<dd>immediately</dd>"), "{shown}");
    assert!(shown.contains("none: a comparison needs 4 repetitions"), "{shown}");
    let untouched = user.get("/experiments/new").await.ok().text();
    assert!(untouched.contains(r#"<b>Advanced</b> <span class="soft">all defaults</span>"#), "{untouched}");
    assert!(
        shown.contains("brewbench run new --target fast --target slow --size &#39;1 vCPU / 256 MiB&#39;"),
        "{shown}"
    );
    assert!(shown.contains("&#34;targets&#34;: ["), "{shown}");
    let created = fill_in(&user, "/experiments/new", FORM).await;
    assert_eq!(created.status, StatusCode::SEE_OTHER, "{}", created.text());
    let experiment = created.header("location").strip_prefix("/experiments/").expect("its page").to_owned();
    let full = app.reader().await.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
    assert_eq!((&full["experiment"]["name"], &full["progress"]["total"]), (&json!("night"), &json!(4)));
    assert_eq!(full["experiment"]["plan"]["loads"], json!([{"kind": "vus", "vus": 2, "duration_s": 1.0}]));

    let page = user.get(created.header("location")).await.ok().text();
    assert!(page.contains(&format!(r#"href="/experiments/new?experiment={experiment}""#)), "{page}");
    let again = user.get(&format!("/experiments/new?experiment={experiment}")).await;
    let query = again.header("location").to_owned();
    assert!(query.starts_with("/experiments/new?target=fast&target=slow&size=1+vCPU"), "{query}");
    let behind = user.get(&query).await.ok().text();
    assert!(behind.contains("after 4 runs, in about 1"), "{behind}");
    let run = text(&full["runs"][0]["id"]);
    assert!(user.get(&format!("/runs/{run}")).await.ok().text().contains(&format!("/experiments/new?run={run}")));
    let one = user.get(&format!("/experiments/new?run={run}")).await;
    let target = text(&full["runs"][0]["target"]);
    let same = format!("/experiments/new?target={target}&size=");
    assert!(one.header("location").starts_with(&same), "{}", one.header("location"));
}

#[tokio::test]
async fn errors_are_shown_at_their_fields_and_the_input_stays() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    let _agent = Agent::start(&app, "rack").await;
    let wrong = "target=fast&scenario=hash&load=vus&vus=many&duration=soon&warm-up=0s&repeat=2&name=%3Cb%3Ex";
    let answer = fill_in(&user, "/experiments/new", wrong).await;
    assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY);
    let page = answer.text();
    assert!(page.contains("Virtual users: write a whole number") && page.contains(r#"value="many""#), "{page}");
    assert!(page.contains("Duration: must be a time, such as") && page.contains(r#"value="soon""#), "{page}");
    assert!(page.contains("&#60;b&#62;x") && !page.contains("<b>x"), "{page}");
    let limits = [
        ("duration=0.5s", "Duration: between 1 and 86400 seconds"),
        ("vus=0", "Virtual users: between 1 and 100000"),
        ("repeat=0", "Repetitions: at least 1"),
        ("repeat=9999999", "an experiment has at most 10000"),
        ("agent=attic", "&#34;attic&#34; is not connected"),
    ];
    for (field, sentence) in limits {
        let answer = fill_in(&user, "/experiments/new", &format!("{FORM}&{field}")).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{field}");
        assert!(answer.text().contains(sentence), "{field}: {}", answer.text());
    }
    let nothing = fill_in(&user, "/experiments/new", "").await.text();
    assert!(nothing.contains("name at least one") && nothing.contains("Choose at least one target and one"));
    assert_eq!(app.reader().await.count_runs().await, 0);
}

#[tokio::test]
async fn the_form_offers_what_connected_agents_can_do_and_explains_the_rest() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    let none = user.get("/experiments/new").await.ok().text();
    assert!(none.contains("No agent is connected") && none.contains(r#"href="/agents""#), "{none}");
    let mut gone = Agent::start_with(&app, "attic", |hello| hello.targets[0].name = "old".to_owned()).await;
    let _agent = Agent::start(&app, "rack").await;
    gone.disconnect();
    app.until("the agent to be away", async || {
        let list = app.reader().await.get("/api/v1/agents").await.ok().json();
        (list["agents"][0]["connected"] == false).then_some(())
    })
    .await;
    app.user().await.post("/api/v1/scenarios", &json!({"name": "mine", "script": "export default 1"})).await.ok();
    let page = user.get("/experiments/new").await.ok().text();
    let input = |name: &str, value: &str| {
        let at =
            page.find(&format!(r#"name="{name}" value="{value}""#)).unwrap_or_else(|| panic!("no {value}: {page}"));
        page[at..].split("</label>").next().unwrap_or_default().to_owned()
    };
    assert!(!input("target", "fast").contains("disabled"));
    assert!(input("target", "old").contains("disabled") && input("target", "old").contains("no connected agent"));
    assert!(!input("size", "8 vCPU / 16 GiB").contains("disabled"));
    let large = input("size", "16 vCPU / 16 GiB");
    assert!(large.contains("disabled") && large.contains("rack has 8 cores"), "{large}");
    assert!(input("scenario", "mine").contains("no connected agent runs user scenarios"));
    assert!(input("agent", "attic").contains("not connected") && !input("agent", "rack").contains("disabled"));
    // A chosen target that is gone can be deselected, and cannot be submitted.
    let stale = user.get("/experiments/new?target=old&size=1%2F256MiB").await.ok().text();
    assert!(stale.contains(r#"value="old" checked data-preserve"#), "{stale}");
    let refused = fill_in(&user, "/experiments/new", &format!("{FORM}&target=old")).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn a_changed_field_updates_the_parts_that_depend_on_it() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let viewer = app.reader().await;
    let parts =
        viewer.get("/experiments/new/check?scenario=single-file&set.PAYLOAD=10k&target=fast&datastar=%7B%7D").await;
    assert_eq!(parts.header("content-type"), "text/html; charset=utf-8");
    let parts = parts.ok().text();
    assert!(parts.contains(r#"name="set.PAYLOAD" value="10k""#) && parts.contains("default: 1k"), "{parts}");
    assert!(parts.contains(r#"id="forecast""#) && parts.contains("Choose at least one machine size."), "{parts}");
    assert!(!parts.contains("name at least one"), "missing choices are not errors yet");
    let page = viewer.in_browser().get("/experiments/new").await.ok().text();
    assert!(page.contains("You cannot submit runs."), "{page}");
}

#[tokio::test]
async fn experiments_are_listed_newest_first_and_paged() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start(&app, "rack").await;
    let mut ids = Vec::new();
    for place in 0..22 {
        ids.push(submit(&user, &plan_with(&json!({"name": format!("experiment {place:02}")}))).await.0);
    }
    let page = user.clone().in_browser().get("/experiments").await.ok().text();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text} is not on the page"));
    assert!(at("experiment 21") < at("experiment 20") && !page.contains("experiment 01"), "{page}");
    let older = format!("/experiments?after={}", ids[2]);
    assert!(page.contains(&older), "{page}");
    let rest = user.clone().in_browser().get(&older).await.ok().text();
    assert!(rest.contains("experiment 01") && rest.contains("Older experiments") && !rest.contains("experiment 02"));
    let list = user.get("/api/v1/experiments?limit=2").await.ok().json();
    let names: Vec<_> =
        list["experiments"].as_array().expect("a list").iter().map(|one| &one["experiment"]["id"]).collect();
    assert_eq!(names, [&json!(ids[21]), &json!(ids[20])]);
    assert_eq!(list["experiments"][0]["verdict"], "No result yet");
    let next = user.get(&format!("/api/v1/experiments?limit=2&after={}", ids[20])).await.ok().json();
    assert_eq!(next["experiments"][0]["experiment"]["id"], json!(ids[19]));
}

#[tokio::test]
async fn the_smallest_difference_comes_from_earlier_runs_of_the_cells() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    let user = app.user().await;
    let query =
        "/experiments/new?target=fast&target=slow&size=1%2F256MiB&load=vus&vus=1&duration=1s&warm-up=0s&repeat=6";
    let viewer = app.reader().await.in_browser();
    let before = viewer.get(query).await.ok().text();
    assert!(before.contains("not known yet: no earlier runs of these cells"), "{before}");
    let load = json!({"kind": "vus", "vus": 1, "duration_s": 1});
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "load": load, "warm_up_s": 0, "repetitions": 10}));
    let (_, runs) = submit(&user, &plan).await;
    for place in 0..runs.len() {
        let job = agent.job().await;
        let factor = 1.0 + 0.01 * f64::from(u32::try_from(place % 4).expect("small"));
        agent.finish(&job, &scaled(factor)).await;
    }
    let after = viewer.get(query).await.ok().text();
    assert!(after.contains("%\u{a0}in throughput") || after.contains("% in throughput"), "{after}");
    let one = viewer.get(&query.replace("&target=slow", "")).await.ok().text();
    assert!(one.contains("none: one target, nothing to compare"), "{one}");
}
