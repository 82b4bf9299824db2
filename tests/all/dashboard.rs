//! The dashboard and other pages that read several modules.

use brewbench::auth::model::Role;
use brewbench_wire::outcome::{Cause, Ended, Outcome};
use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::{
    harness::{
        Actor, Agent, Answer, App,
        agent::outcome,
        submit::{plan_with, submit, submit_one},
        summaries::{good, scaled, target_down},
    },
    new_run::fill_in,
};

#[tokio::test]
async fn an_agent_is_added_on_the_page_and_its_key_is_shown_once() {
    let app = App::start().await;
    let admin = app.admin().await.in_browser();
    let empty = admin.get("/agents").await.ok().text();
    assert!(empty.contains("No agents yet") && empty.contains("--local-agent"), "{empty}");
    let created = fill_in(&admin, "/agents", "name=rack").await;
    assert_eq!(created.status, StatusCode::CREATED);
    assert_eq!(created.header("cache-control"), "no-store");
    let page = created.text();
    let key = page.split("--key ").nth(1).and_then(|rest| rest.split('<').next()).expect("a key").to_owned();
    assert!(page.contains(&format!("brewbench agent --server {} --key", app.state.public_url)), "{page}");
    let list = admin.get("/agents").await.ok().text();
    assert!(!list.contains(&key) && list.contains("never seen"), "{list}");
    let own = app.own_key(&key).await;
    assert_eq!(app.anonymous().with_secret(&key).get("/api/v1/agent/channel").await.status, StatusCode::UNAUTHORIZED);
    assert_eq!(app.anonymous().with_secret(&own).get("/api/v1/agent/channel").await.status, StatusCode::BAD_REQUEST);

    let again = fill_in(&admin, "/agents", "name=rack").await;
    assert_eq!(again.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(again.text().contains("already exists") && again.text().contains(r#"value="rack""#));
    let confirmation = admin.get("/agents/rack/revoke").await.ok().text();
    assert!(confirmation.contains("its key stops working"), "{confirmation}");
    assert_eq!(fill_in(&admin, "/agents/rack/revoke", "").await.status, StatusCode::SEE_OTHER);
    assert_eq!(app.anonymous().with_secret(&own).get("/api/v1/agent/channel").await.status, StatusCode::UNAUTHORIZED);
    let gone = admin.get("/agents/rack").await.ok().text();
    assert!(gone.contains("revoked") && !gone.contains("/agents/rack/revoke"), "{gone}");
}

#[tokio::test]
async fn the_page_of_an_agent_shows_its_machine_its_run_and_its_history() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start_with(&app, "rack <b>", |hello| hello.machine.kernel = "Linux <b>".to_owned()).await;
    let first = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let second = submit_one(&user).await;
    let _job = agent.job().await;
    let pages = user.in_browser();
    let page = pages.get("/agents/rack%20%3Cb%3E").await.ok().text();
    for text in ["CPU and memory by cgroup2", "1.8.1", "8</dd>", "32", &first, &second, "17,070", "leased"] {
        assert!(page.contains(text), "{text}: {page}");
    }
    let list = pages.get("/agents").await.ok().text();
    assert!(list.contains("connected") && list.contains(&format!("/runs/{second}")), "{list}");
    assert!(!page.contains("<b>\"") && !page.contains("Linux <b>") && !list.contains("rack <b>"));
    assert!(!list.contains("Add agent"), "only administrators add agents");
    assert_eq!(pages.get("/agents/unknown").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_size_is_added_on_the_page_and_removed_while_no_run_uses_it() {
    let app = App::start().await;
    let admin = app.admin().await.in_browser();
    let mut agent = Agent::start(&app, "rack").await;
    assert_eq!(fill_in(&admin, "/sizes", "vcpus=0.5&memory=1GiB&name=").await.status, StatusCode::SEE_OTHER);
    let page = admin.get("/sizes").await.ok().text();
    assert!(page.contains("0.5 vCPU / 1 GiB") && page.contains("none: rack has 8 cores"), "{page}");
    for (form, expected) in [
        ("vcpus=two&memory=1GiB", "is not a number of cores"),
        ("vcpus=2&memory=much", "write it as 256MiB or 4GiB"),
        ("vcpus=9000&memory=1GiB", "is not between 0.01 and 4096"),
        ("vcpus=0.5&memory=1GiB", "choose another name"),
        ("vcpus=2&memory=1GiB&replicas=many", "is not a whole number"),
        ("vcpus=2&memory=1GiB&replicas=101", "is not between 1 and 100"),
    ] {
        let answer = fill_in(&admin, "/sizes", form).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{form}");
        assert!(answer.text().contains(expected), "{form}: {}", answer.text());
    }
    assert_eq!(fill_in(&admin, "/sizes", "vcpus=2&memory=1GiB&replicas=3").await.status, StatusCode::SEE_OTHER);
    let replicated = admin.get("/sizes").await.ok().text();
    let lacks = "none: rack offers no target of kind kubernetes";
    assert!(replicated.contains("3 x 2 vCPU / 1 GiB") && replicated.contains(lacks), "{replicated}");
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
    assert!(api.delete(&format!("/api/v1/sizes/{used}")).await.refused(409).contains("runs use the size"));
    assert!(api.delete("/api/v1/sizes/nothing").await.refused(404).contains("there is no size"));
    api.delete("/api/v1/sizes/16%20vCPU%20%2F%2016%20GiB").await.ok();
    let names = app.reader().await.get("/api/v1/sizes").await.ok().text();
    assert!(!names.contains("16 vCPU / 16 GiB"), "{names}");
}

#[tokio::test]
async fn the_page_of_a_target_shows_versions_agents_and_a_trend_for_each_setting() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.reader().await.in_browser();
    assert!(pages.get("/targets").await.ok().text().contains("No targets yet."));
    let mut agent = Agent::start(&app, "rack").await;
    let sizes = json!({"sizes": ["1/256MiB", "2/4GiB"], "repetitions": 2});
    submit(&user, &plan_with(&sizes)).await;
    for _ in 0..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let list = pages.get("/targets").await.ok().text();
    assert!(list.contains(r#"href="/targets/fast""#) && list.contains("no results yet") && list.contains("rack"));
    assert!(list.contains(r#"aria-label="2 results, from 17,070 to 17,070 requests/s, last 17,070""#), "{list}");
    let page = pages.get("/targets/fast").await.ok().text();
    assert_eq!(page.matches("class=\"spark\"").count(), 2, "{page}");
    assert!(page.contains(&"ab".repeat(32)) && page.contains("<code>executable abababab</code>"), "{page}");
    assert!(page.contains(r#"href="/experiments/new?target=fast""#), "{page}");
    user.import(good()).await.ok();
    let imported = pages.get("/targets/t").await.ok().text();
    assert!(imported.contains("its results were imported") && imported.contains("17,070"), "{imported}");
    assert_eq!(pages.get("/targets/nothing").await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_new_server_shows_the_first_steps_alone_with_one_button_until_the_first_run() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.signed_in(Role::Viewer).await.in_browser();
    let page = async || pages.get("/").await.ok().text();
    let done = r#"<li class="done">"#;
    let main = |page: &str| page.split("<main").nth(1).expect("a page").to_owned();
    let empty = main(&page().await);
    assert!(empty.contains("Getting started") && empty.contains("0 of 3") && !empty.contains(done), "{empty}");
    let is_alone = |page: &str| !page.contains("Latest results") && !page.contains(r#"id="running""#) && calm(page);
    assert!(is_alone(&empty), "{empty}");
    assert_eq!(empty.matches("btn go").count(), 1, "{empty}");
    assert!(empty.contains(r#"<a class="btn go" href="/agents">Add agent</a>"#), "{empty}");
    let mut agent = Agent::start(&app, "rack").await;
    let ready = main(&page().await);
    for text in ["2 of 3", "Agent connected: rack", "2 targets found", r#"<a class="btn go" href="/experiments/new">"#]
    {
        assert!(ready.contains(text), "{text}: {ready}");
    }
    assert_eq!(ready.matches("btn go").count(), 1, "{ready}");
    submit_one(&user).await;
    let _job = agent.job().await;
    let started = page().await;
    assert!(!started.contains("Getting started") && started.contains("Latest results"), "{started}");
}

#[tokio::test]
async fn the_live_bar_and_the_race_are_there_only_while_something_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.signed_in(Role::Viewer).await.in_browser();
    let page = async || pages.get("/").await.ok().text();
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2, "name": "night"}));
    let (experiment, runs) = submit(&user, &plan).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let job = agent.job().await;
    let busy = page().await;
    for text in [
        "</span>: 1 run in 1 experiment finished.",
        "Since yesterday",
        "1 of 4",
        " · leased",
        "17,070\u{a0}requests/s in 1 run",
        &format!("/experiments/{experiment}"),
        &format!(r#"id="race-{experiment}""#),
        "night",
        "live-bar",
    ] {
        assert!(busy.contains(text), "{text}: {busy}");
    }
    let shown = pages.get(&format!("/experiments/{experiment}")).await.ok().text();
    assert!(shown.contains(&format!(r#"id="race-{experiment}""#)), "the same race on its page: {shown}");
    agent.finish(&job, &good()).await;
    for _ in 2..runs.len() {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let idle = page().await;
    assert!(!idle.contains("live-bar") && !idle.contains(r#"class="race""#), "{idle}");
    assert!(idle.contains("</span>: 4 runs in 1 experiment finished."), "{idle}");
}

#[tokio::test]
async fn problems_are_one_line_per_cause_with_one_action() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.signed_in(Role::Viewer).await.in_browser();
    let page = async || pages.get("/").await.ok().text();
    let mut agent = Agent::start(&app, "rack").await;
    submit(&user, &plan_with(&json!({"targets": ["fast", "slow"]}))).await;
    for _ in 0..2 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    assert!(calm(&page().await), "nothing needs attention: {}", page().await);
    submit(&user, &plan_with(&json!({"repetitions": 3, "retries": 0, "name": "night"}))).await;
    for port in [4_001, 4_002] {
        let job = agent.job().await;
        let reason = format!("the <b>port</b> {port} was taken");
        agent.end(Outcome { ended: Ended::Failed { reason, cause: Cause::Other }, ..outcome(&job, &good()) }).await;
    }
    let job = agent.job().await;
    let one_cause = page().await;
    for text in
        ["fast: 2 runs failed", "the &#60;b&#62;port&#60;/b&#62; 4002 was taken", "/runs?target=fast&#38;phase=failed"]
    {
        assert!(one_cause.contains(text), "{text}: {one_cause}");
    }
    assert!(!one_cause.contains("4001 was taken"), "the newest reason of a cause: {one_cause}");
    agent.end(outcome(&job, &target_down())).await;
    agent.disconnect();
    app.until("the agent to disconnect", async || page().await.contains("rack is disconnected").then_some(())).await;
    let later = page().await;
    let list = later.split(r#"class="causes""#).nth(1).and_then(|rest| rest.split("</ul>").next()).expect("a list");
    for (title, action) in [
        ("fast: 2 runs failed", "Show runs"),
        ("fast: 1 run invalid", "Show run"),
        ("rack is disconnected", "Show agent"),
    ] {
        assert!(list.contains(&format!("{action}<span class=\"sr\">: {title}</span></a></li>")), "{title}: {list}");
    }
    assert_eq!(list.matches("<li>").count(), list.matches("<a href").count(), "one action each: {list}");
}

#[tokio::test]
async fn results_that_are_not_reliable_need_attention_for_a_week() {
    let app = App::start().await;
    let user = app.user().await;
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let member = app.signed_in(Role::Member).await.in_browser();
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "repetitions": 2, "name": "night"}));
    let (experiment, _) = submit(&user, &plan).await;
    for _ in 0..4 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    assert!(calm(&viewer.get("/").await.ok().text()));
    let reasons = r#"[{"code": "noisy_machine", "verdict": "suspect", "text": "other programs used 1.7 of 2 cores"}]"#;
    sqlx::query("update run set verdict = 'suspect', reasons = ?")
        .bind(reasons)
        .execute(&app.state.db.write)
        .await
        .expect("runs");
    let page = viewer.get("/").await.ok().text();
    assert!(page.contains("night: not reliable") && page.contains("other programs used 1.7 of 2 cores"), "{page}");
    assert!(page.contains(&format!(r#"<a href="/experiments/{experiment}">Show"#)), "{page}");
    let page = member.get("/").await.ok().text();
    assert!(page.contains(&format!("/experiments/new?experiment={experiment}")), "members measure again: {page}");
    let week = 7 * 24 * 60 * 60 * 1_000 + 60_000_i64;
    sqlx::query("update run set finished_at = finished_at - ?")
        .bind(week)
        .execute(&app.state.db.write)
        .await
        .expect("runs");
    assert!(calm(&viewer.get("/").await.ok().text()), "older results are no news");
}

#[tokio::test]
async fn the_latest_results_are_the_sentences_of_the_comparison() {
    let app = App::start().await;
    let user = app.user().await;
    let pages = app.signed_in(Role::Viewer).await.in_browser();
    let mut agent = Agent::start(&app, "rack").await;
    let sizes = json!({"targets": ["fast", "slow"], "sizes": ["1/256MiB", "2/4GiB"], "repetitions": 6});
    let (experiment, runs) = submit(&user, &plan_with(&sizes)).await;
    for number in 0..runs.len() {
        let job = agent.job().await;
        let speed = if job.spec.target == "fast" { 1.3 } else { 1.0 };
        agent.finish(&job, &scaled(speed * (1.0 + 0.001 * number as f64))).await;
    }
    let sentences = |page: &str, end: &str| -> Vec<String> {
        let part = page.split(end).next().expect("a part");
        part.split(r#"<b class="bad">"#)
            .skip(1)
            .filter_map(|rest| rest.split("</b>").next())
            .map(str::to_owned)
            .collect()
    };
    let dashboard = pages.get("/").await.ok().text();
    let shown = sentences(&dashboard, "</ul>");
    let comparison = pages.get(&format!("/experiments/{experiment}")).await.ok().text();
    assert_eq!(shown.len(), 2, "all sizes are in one row: {dashboard}");
    assert_eq!(shown, sentences(&comparison, r#"id="metrics""#)[..2]);
    assert_eq!(dashboard.matches(r#"<svg class="interval bad""#).count(), 2, "{dashboard}");
    assert!(dashboard.contains("<span>same</span>") && dashboard.contains("× better</span>"), "{dashboard}");
    // What a view finds is not stale: a result changes with its runs.
    sqlx::query("update run set verdict = 'invalid' where target = 'fast'")
        .execute(&app.state.db.write)
        .await
        .expect("runs");
    let changed = pages.get("/").await.ok().text();
    assert!(sentences(&changed, "</ul>").is_empty(), "{changed}");
}

/// Whether nothing needs attention; the disk of the machine may.
fn calm(page: &str) -> bool {
    match page.split(r#"id="attention""#).nth(1).and_then(|rest| rest.split("</section>").next()) {
        None => true,
        Some(list) => list.matches("<li>").count() == 1 && list.contains("The disk is nearly full"),
    }
}

/// Opens the dashboard with a cookie of the last visits.
async fn visit(app: &App, viewer: &Actor, cookie: &str) -> String {
    let cookies = format!("{}={}; {cookie}", brewbench::auth::caller::SESSION_COOKIE, viewer.session());
    let request = app.anonymous().in_browser().request(&Method::GET, "/").header("cookie", cookies);
    Answer::to(request).await.ok().text()
}

#[tokio::test]
async fn activity_is_counted_since_the_last_visit_and_not_since_the_last_reload() {
    let app = App::start().await;
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    let mut agent = Agent::start(&app, "rack").await;
    submit_one(&app.user().await).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let first = viewer.get("/").await.ok();
    assert!(first.text().contains("1 run in 1 experiment finished."), "{}", first.text());
    let cookie = first.header("set-cookie").split(';').next().expect("a cookie").to_owned();
    assert!(cookie.starts_with("brewbench_looked="), "{cookie}");
    assert!(visit(&app, &viewer, &cookie).await.contains("1 run in 1 experiment finished."));
    let now = brewbench_wire::now_ms();
    let yesterday = format!("brewbench_looked={}.{}", now - 86_400_000, now - 3_600_000);
    assert!(visit(&app, &viewer, &yesterday).await.contains("1 run in 1 experiment finished."));
    let later = format!("brewbench_looked={}.{}", now + 1_000, now + 1_000);
    assert!(visit(&app, &viewer, &later).await.contains("In the last hour</span>: no runs finished."));
}

#[tokio::test]
async fn imports_are_never_invalid_news_and_need_no_attention() {
    let app = App::start().await;
    let user = app.user().await;
    let imported = user.import(target_down()).await.ok().json();
    assert_eq!(imported["runs"][0]["verdict"], "invalid", "{imported}");
    user.import(good()).await.ok();
    let page = app.signed_in(Role::Viewer).await.in_browser().get("/").await.ok().text();
    assert!(page.contains("no runs finished. 2 runs were imported."), "{page}");
    assert!(calm(&page) && !page.contains("invalid"), "{page}");
}

/// Sends a form with files as a browser does.
async fn upload(who: &Actor, fields: &[(&str, &str)], files: &[(&str, &str, &str)]) -> Answer {
    let field = |(name, value): &(&str, &str)| {
        format!("--x\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    let file = |(name, file, text): &(&str, &str, &str)| {
        format!(
            "--x\r\ncontent-disposition: form-data; name=\"{name}\"; filename=\"{file}\"\r\n\
             content-type: text/plain\r\n\r\n{text}\r\n"
        )
    };
    let parts: Vec<String> = fields.iter().map(field).chain(files.iter().map(file)).collect();
    let body = parts.concat() + "--x--\r\n";
    let request = who.request(&Method::POST, "/scenarios").header("content-type", "multipart/form-data; boundary=x");
    Answer::to(request.body(body)).await
}

#[tokio::test]
async fn a_scenario_is_uploaded_changed_and_shown_with_its_differences() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    let list = user.get("/scenarios").await.ok().text();
    assert!(list.contains("site-mix") && list.contains("bundled"), "{list}");
    let script = "// <b>first</b>\r\nexport default function () {}\r\n";
    let files = [("files", "a.json", "[1]"), ("files", "b.json", "{}"), ("script_file", "", "")];
    let created = upload(&user, &[("name", "mine / 1"), ("script", script), ("defaults", "N=1\r\n")], &files).await;
    assert_eq!((created.status, created.header("location")), (StatusCode::SEE_OTHER, "/scenarios/mine%20%2F%201"));
    let page = user.get("/scenarios/mine%20%2F%201").await.ok().text();
    assert!(page.contains("// &#60;b&#62;first&#60;/b&#62;"), "{page}");
    for text in ["a.json", "[1]", "N</dt>", "No runs yet.", r#"href="/experiments/new?scenario=mine%20/%201""#] {
        assert!(page.contains(text), "{text}: {page}");
    }
    assert!(!page.contains('\r'), "line endings are normalized");

    let second = ("script_file", "mine.js", "// second\nexport default function () {}\n");
    let changed = upload(&user, &[("name", "mine / 1"), ("keep", "a.json"), ("defaults", "N=2")], &[second]).await;
    assert_eq!(changed.status, StatusCode::SEE_OTHER, "{}", changed.text());
    let page = user.get("/scenarios/mine%20%2F%201").await.ok().text();
    let at = page.find("/differences?from=").expect("a link");
    let link = page[at..].split('"').next().expect("an address").replace("&amp;", "&");
    let differences = user.get(&format!("/scenarios/mine%20%2F%201{link}")).await.ok().text();
    for text in
        ["- // &#60;b&#62;first&#60;/b&#62;", "+ // second", "- N=1", "+ N=2", "<h2 class=\"break\">b.json</h2>"]
    {
        assert!(differences.contains(text), "{text}: {differences}");
    }
    assert!(!differences.contains("a.json"), "it is unchanged");
    let revisions = user.get("/api/v1/scenarios/mine%20%2F%201/revisions").await.ok().json();
    let old = revisions["revisions"][1]["sha256"].as_str().expect("a hash").to_owned();
    let first = user.get(&format!("/scenarios/mine%20%2F%201?revision={old}")).await.ok().text();
    assert!(first.contains("not the latest") && first.contains("first"), "{first}");
    let text = user.get(&format!("/api/v1/scenarios/mine%20%2F%201?revision={old}")).await.ok().json();
    assert_eq!(text["defaults"], json!({"N": "1"}));
    user.clone().get("/api/v1/scenarios/nothing/revisions").await.refused(404);
    user.get("/api/v1/scenarios/hash?revision=nothing").await.refused(404);
}

/// Fields, files and the expected error.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str, &'a str)], &'a str);

#[tokio::test]
async fn an_invalid_upload_shows_its_error_and_what_was_typed() {
    let app = App::start().await;
    let user = app.user().await.in_browser();
    let cases: [Case; 6] = [
        (&[("name", "x"), ("script", " ")], &[], "script: must not be empty"),
        (&[("name", ""), ("script", "1")], &[], "name: 1 to 80 characters"),
        (&[("name", "x"), ("script", "1"), ("defaults", "loud")], &[], "as NAME=VALUE"),
        (&[("name", "x"), ("script", "1"), ("defaults", "K6_OUT=x")], &[], "is not a parameter name"),
        (&[("name", "x"), ("script", "1")], &[("files", "../x", "1")], "leads out of the folder"),
        (
            &[("name", "x"), ("script", "1")],
            &[("files", "common.js", "1"), ("files", "common.js", "2")],
            "two are called &#34;common.js&#34;",
        ),
    ];
    for (fields, files, expected) in cases {
        let answer = upload(&user, fields, files).await;
        assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{fields:?}: {}", answer.text());
        assert!(answer.text().contains(expected), "{expected}: {}", answer.text());
    }
    let typed = upload(&user, &[("name", "x"), ("script", "</textarea><b>"), ("defaults", "loud")], &[]).await.text();
    assert!(typed.contains("&#60;/textarea&#62;&#60;b&#62;"), "{typed}");
    let large = upload(&user, &[("name", "x"), ("script", &"1".repeat(100 << 20))], &[]).await;
    assert_eq!(large.status, StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(app.reader().await.get("/api/v1/scenarios/x").await.status, StatusCode::NOT_FOUND);
}
