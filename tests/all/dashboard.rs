//! The pages that look at several rooms at once.

use reqwest::StatusCode;
use serde_json::json;

use crate::{
    harness::{
        Agent, App,
        submit::{plan_with, submit, submit_one},
        summaries::good,
    },
    new_run::fill_in,
};

#[tokio::test]
async fn an_agent_is_added_on_the_page_and_its_key_is_shown_once() {
    let app = App::start().await;
    let admin = app.admin().await.at_pages();
    let empty = admin.get("/agents").await.ok().text();
    assert!(empty.contains("There is no agent yet") && empty.contains("--local-agent"), "{empty}");
    let made = fill_in(&admin, "/agents", "name=rack").await;
    assert_eq!(made.status, StatusCode::CREATED);
    assert_eq!(made.header("cache-control"), "no-store");
    let page = made.text();
    let key = page.split("--key ").nth(1).and_then(|rest| rest.split('<').next()).expect("a key").to_owned();
    assert!(page.contains(&format!("brewbench agent --server {} --key", app.state.public_url)), "{page}");
    let seen = admin.get("/agents").await.ok().text();
    assert!(!seen.contains(&key) && seen.contains("never seen"), "{seen}");
    assert_eq!(app.nobody().with_secret(&key).get("/api/v1/agent/channel").await.status, StatusCode::BAD_REQUEST);

    let again = fill_in(&admin, "/agents", "name=rack").await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.text().contains("there is an agent") && again.text().contains(r#"value="rack""#));
    let asked = admin.get("/agents/rack/revoke").await.ok().text();
    assert!(asked.contains("nobody can connect with its key again"), "{asked}");
    assert_eq!(fill_in(&admin, "/agents/rack/revoke", "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(app.nobody().with_secret(&key).get("/api/v1/agent/channel").await.status, StatusCode::UNAUTHORIZED);
    let gone = admin.get("/agents/rack").await.ok().text();
    assert!(gone.contains("revoked") && !gone.contains("/agents/rack/revoke"), "{gone}");
}

#[tokio::test]
async fn an_agents_page_says_what_it_is_what_it_does_and_what_it_did() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start_with(&app, "rack <b>", |hello| hello.machine.kernel = "Linux <b>".to_owned()).await;
    let first = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let second = submit_one(&user).await;
    let _job = agent.job().await;
    let pages = user.at_pages();
    let page = pages.get("/agents/rack%20%3Cb%3E").await.ok().text();
    for text in ["CPU and memory by cgroup2", "1.8.1", "8</dd>", "32", &first, &second, "17,070", "leased"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let list = pages.get("/agents").await.ok().text();
    assert!(list.contains("connected") && list.contains(&format!("/runs/{second}")), "{list}");
    assert!(!page.contains("<b>\"") && !page.contains("Linux <b>") && !list.contains("rack <b>"));
    assert!(!list.contains("Add an agent"), "only administrators add one");
    assert_eq!(pages.get("/agents/nobody").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_size_is_added_on_the_page_and_goes_as_long_as_no_run_has_had_it() {
    let app = App::start().await;
    let admin = app.admin().await.at_pages();
    let mut agent = Agent::start(&app, "rack").await;
    assert_eq!(fill_in(&admin, "/sizes", "vcpus=0.5&memory=1GiB&name=").await.status, StatusCode::SEE_OTHER);
    let page = admin.get("/sizes").await.ok().text();
    assert!(page.contains("0.5 vCPU / 1 GiB") && page.contains("none: rack has 8 cores"), "{page}");
    for (form, sentence) in [
        ("vcpus=two&memory=1GiB", "is no number of cores"),
        ("vcpus=2&memory=much", "write it as 256MiB or 4GiB"),
        ("vcpus=9000&memory=1GiB", "is not between 0.01 and 4096"),
        ("vcpus=0.5&memory=1GiB", "choose another name"),
    ] {
        let answer = fill_in(&admin, "/sizes", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(answer.text().contains(sentence), "{form}: {}", answer.text());
    }
    let half = "/sizes/0%2E5%20vCPU%20%2F%201%20GiB/remove";
    assert!(page.contains(half), "{page}");
    assert!(admin.get(half).await.ok().text().contains("Remove this size?"));
    assert_eq!(fill_in(&admin, half, "").await.status, StatusCode::SEE_OTHER);
    assert!(!admin.get("/sizes").await.ok().text().contains("0.5 vCPU"));

    submit(&app.user().await, &plan_with(&json!({"sizes": ["1/256MiB"]}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let used = "1%20vCPU%20%2F%20256%20MiB";
    assert_eq!(admin.get(&format!("/sizes/{used}/remove")).await.status, StatusCode::CONFLICT);
    let api = app.admin().await;
    assert!(api.delete(&format!("/api/v1/sizes/{used}")).await.refused(409).contains("runs have had the size"));
    assert!(api.delete("/api/v1/sizes/nothing").await.refused(404).contains("there is no size"));
    api.delete("/api/v1/sizes/16%20vCPU%20%2F%2016%20GiB").await.ok();
    let names = app.reader().await.get("/api/v1/sizes").await.ok().text();
    assert!(!names.contains("16 vCPU / 16 GiB"), "{names}");
}

#[tokio::test]
async fn a_targets_page_has_its_versions_who_offers_them_and_a_line_for_each_setting() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.reader().await.at_pages();
    assert!(pages.get("/targets").await.ok().text().contains("No target is known yet."));
    let mut agent = Agent::start(&app, "rack").await;
    let sizes = json!({"sizes": ["1/256MiB", "2/4GiB"], "repetitions": 2});
    submit(&user, &plan_with(&sizes)).await;
    for _ in 0..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let list = pages.get("/targets").await.ok().text();
    assert!(list.contains(r#"href="/targets/fast""#) && list.contains("no results yet") && list.contains("rack"));
    assert!(list.contains(r#"aria-label="2 results, from 17,070 to 17,070 requests/s, the last 17,070""#), "{list}");
    let page = pages.get("/targets/fast").await.ok().text();
    assert_eq!(page.matches("class=\"spark\"").count(), 2, "{page}");
    assert!(page.contains(&"ab".repeat(32)) && page.contains("<code>abababababab</code>"), "{page}");
    assert!(page.contains(r#"href="/runs/new?target=fast""#), "{page}");
    user.import(good()).await.ok();
    let imported = pages.get("/targets/t").await.ok().text();
    assert!(imported.contains("its results were imported") && imported.contains("17,070"), "{imported}");
    assert_eq!(pages.get("/targets/nothing").await.status, StatusCode::NOT_FOUND);
}
