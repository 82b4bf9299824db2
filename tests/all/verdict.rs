//! Verdicts on pages, in JSON and in commands; limits of a scenario; re-judging.

use brewbench::{
    auth::model::{Role, Scope},
    results::verdict::{limits::Limit, model::RULES},
};
use brewbench_wire::{
    histogram::Histogram,
    outcome::{Cause, Conditions, Ended, Outcome},
    series::{Packed, Series},
};
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor, Agent, App,
        agent::outcome,
        program::as_user,
        root,
        series::{matching_series, window},
        submit::{plan_with, submit, text, vus},
        summaries::{good, target_down},
    },
    new_run::fill_in,
};

const LIMITS: &str = "/api/v1/scenarios/hash/limits";

#[track_caller]
pub fn codes(run: &Value) -> Vec<String> {
    run["reasons"].as_array().expect("reasons").iter().map(|reason| text(&reason["code"])).collect()
}

/// Submits a run that ends with a changed outcome; returns its id.
pub async fn ended(user: &Actor, agent: &mut Agent, change: impl FnOnce(&mut Outcome)) -> String {
    let id = submit(user, &plan_with(&json!({"retries": 0}))).await.1.remove(0);
    let job = agent.job().await;
    let mut outcome = outcome(&job, &good());
    change(&mut outcome);
    agent.end(outcome).await;
    id
}

/// Makes k6 the bottleneck: it used 0.97 of its core, the target a third of its own.
fn bound(outcome: &mut Outcome) {
    let packed = matching_series(&good());
    let mut series = packed.unpack().expect("a series");
    let measured = series.measured.as_mut().expect("a window");
    for usage in measured.usage.iter_mut().skip(1) {
        (usage.generator.cpu_us, usage.target.cpu_us, usage.host.user_us) = (Some(970_000), Some(330_000), 1_100_000);
    }
    outcome.series = Some(Packed::pack(&series));
}

#[tokio::test]
async fn a_reason_has_value_and_limit_and_is_shown_with_the_run() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = ended(&user, &mut agent, bound).await;
    let run = user.run(&id).await;
    assert_eq!((&run["verdict"], codes(&run)), (&json!("suspect"), vec!["generator_busy".to_owned()]));
    let reason = &run["reasons"][0];
    assert_eq!((&reason["observed"], &reason["limit"], &reason["unit"]), (&json!(0.97), &json!(0.8), &json!("share")));
    let pages = user.clone().in_browser();
    let page = pages.get(&format!("/runs/{id}")).await.ok().text();
    let rules = format!("<dd>version {RULES} of the rules");
    for words in ["the load generator was the bottleneck", "(97 %, limit 80 %)", &rules, "/scenarios/hash#limits"] {
        assert!(page.contains(words), "{words} is not in {page}");
    }
    let list = pages.get("/runs").await.ok().text();
    assert!(list.contains("title=\"the load generator was the bottleneck"), "{list}");
    let compared = pages.get(&format!("/compare?runs={id}")).await.ok().text();
    let why = "Not reliable.</b> <span>The only run is suspect: the load generator was the bottleneck";
    assert!(compared.contains(why) && compared.contains("1 suspect"), "{compared}");
    let csv = pages.get(&format!("/api/v1/runs/export?format=csv&runs={id}")).await.ok().text();
    assert!(csv.lines().nth(1).is_some_and(|line| line.ends_with(",generator_busy")), "{csv}");
    let token = app.token_secret(Scope::Read, None).await;
    let shown = as_user(&app, &token, &["run", "show", &id]).await.ok();
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("reason the load generator was the bottleneck") && words.contains("(97 %, limit 80 %)"),
        "{shown}"
    );
    let compared = as_user(&app, &token, &["compare", &id]).await.ok();
    assert!(compared.contains("1?") && compared.contains("some of these runs are suspect"), "{compared}");
    let judgement = user.get(&format!("/api/v1/runs/{id}/judgement")).await.ok().json();
    assert_eq!((&judgement["rules"], &judgement["limits"]["generator_busy"]), (&json!(RULES), &json!(0.8)));
}

#[tokio::test]
async fn a_failure_of_the_target_is_invalid_and_shown_once() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let cases = [
        (Cause::TargetDied, "target fast died", json!("invalid"), vec!["target_died"]),
        (Cause::TargetNotReady, "target fast: no answer", json!("invalid"), vec!["target_not_ready"]),
        (Cause::TargetOutOfMemory, "target fast: killed", json!("invalid"), vec!["oom_killed"]),
        (Cause::Generator, "k6 broke", Value::Null, vec![]),
    ];
    for (cause, why, verdict, expected) in cases {
        let fail = |outcome: &mut Outcome| {
            outcome.ended = Ended::Failed { reason: why.to_owned(), cause };
            outcome.summary = None;
        };
        let id = ended(&user, &mut agent, fail).await;
        let run = user.run(&id).await;
        assert_eq!((&run["phase"], &run["verdict"], &run["error"]), (&json!("failed"), &verdict, &json!(why)));
        assert_eq!(codes(&run), expected);
        let page = user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
        assert_eq!(page.to_lowercase().matches(why).count(), 1, "{page}");
        let compared = user.get(&format!("/api/v1/compare?runs={id}")).await.ok().json();
        assert_eq!(
            (&compared["excluded"][0]["state"], &compared["excluded"][0]["reason"]),
            (&json!("failed"), &json!(why))
        );
    }
}

#[tokio::test]
async fn observations_of_the_agent_affect_the_verdict() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let conditions = Conditions {
        clock_jump_ms: Some(-7_000),
        processes: Some(2),
        processes_gone: Some(2),
        response_change: Some(format!("status 500 {}", "x".repeat(5_000))),
        ..Conditions::default()
    };
    let id = ended(&user, &mut agent, |outcome| outcome.conditions = conditions).await;
    let run = user.run(&id).await;
    assert_eq!(codes(&run), ["target_restarted", "response_changed", "clock_jumped"]);
    assert_eq!(run["verdict"], "invalid");
    assert!(text(&run["reasons"][1]["text"]).len() < 700, "a reason does not contain a full page");
}

#[tokio::test]
async fn a_damaged_series_is_not_stored_and_counts_as_incomplete() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let intact = matching_series(&good()).as_bytes().to_vec();
    let noise: Vec<u8> = (0..5_000_000_u32).map(|n| n.wrapping_mul(2_654_435_769).to_be_bytes()[0]).collect();
    for bytes in [intact[..intact.len() / 2].to_vec(), vec![9, 9, 9], noise] {
        let id = ended(&user, &mut agent, |outcome| outcome.series = Some(Packed::from_bytes(bytes))).await;
        assert_eq!(codes(&user.run(&id).await), ["series_incomplete"]);
        user.get(&format!("/api/v1/runs/{id}/series")).await.refused(404);
    }
    let short = Packed::pack(&Series { warm_up: None, measured: Some(window(2)) });
    let id = ended(&user, &mut agent, |outcome| outcome.series = Some(short)).await;
    let run = user.run(&id).await;
    assert_eq!(codes(&run), ["series_incomplete"]);
    assert!(text(&run["reasons"][0]["text"]).contains("2,000 of the 51,230 requests"), "{run}");
}

#[tokio::test]
async fn imports_are_not_suspect_for_data_that_they_cannot_have() {
    let app = App::start().await;
    let user = app.user().await;
    let run = user.import(good()).await.ok().json()["runs"][0].clone();
    assert_eq!((&run["verdict"], &run["reasons"]), (&json!("valid"), &json!([])));
}

#[tokio::test]
async fn new_limits_of_a_scenario_re_judge_its_old_runs_in_the_background() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = ended(&user, &mut agent, bound).await;
    let other = user.import(good()).await.ok().json()["runs"][0]["id"].clone();
    let before = user.get(LIMITS).await.ok().json();
    assert_eq!(
        (&before["changed_by"], before["limits"].as_array().map(Vec::len)),
        (&Value::Null, Some(Limit::ALL.len()))
    );

    let set = user.put(LIMITS, &json!({"limits": {"generator_busy": 0.99}})).await.ok().json();
    assert!(text(&set["changed_by"]).starts_with("token "), "{set}");
    app.until("the old run to be valid", async || (user.run(&id).await["verdict"] == "valid").then_some(())).await;
    let judgement = user.get(&format!("/api/v1/runs/{id}/judgement")).await.ok().json();
    assert_eq!(judgement["limits"]["generator_busy"], json!(0.99));
    let page = user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("limits of its scenario (generator_busy 99 %)"), "{page}");
    assert_eq!(user.run(&text(&other)).await["verdict"], "valid", "the imported run has no scenario");
    let next = ended(&user, &mut agent, bound).await;
    assert_eq!(user.run(&next).await["verdict"], "valid", "new runs use the new limits");

    user.delete(LIMITS).await.ok();
    app.until("the old run to be suspect again", async || (user.run(&id).await["verdict"] == "suspect").then_some(()))
        .await;
    app.until("the new run to be suspect", async || (user.run(&next).await["verdict"] == "suspect").then_some(()))
        .await;
    let log = app.admin().await.get("/api/v1/audit?action=limits%20changed").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2), "{log}");
    assert_eq!(log["entries"][1]["detail"], json!({"generator_busy": 0.99}));

    user.put("/api/v1/scenarios/nobody/limits", &json!({"limits": {}})).await.refused(404);
    let refused = user.put(LIMITS, &json!({"limits": {"generator_busy": 2}})).await.refused(422);
    assert_eq!(refused, "limits: generator_busy: 2 is not a share between 0 and 1, such as 0.25 or 25 %");
    assert!(
        user.put(LIMITS, &json!({"limits": {"beauty": 1}})).await.refused(422).contains("\"beauty\" is not a limit")
    );
    app.reader().await.put(LIMITS, &json!({"limits": {}})).await.refused(403);
}

#[tokio::test]
async fn interrupted_re_judging_is_completed_after_a_restart() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = ended(&user, &mut agent, bound).await;
    // As left by a server that ends right after the change was stored.
    let stored = "insert into scenario_limits values ('hash', '{\"generator_busy\": 0.98}', 1, 0, 0, 'ada')";
    sqlx::query(stored).execute(&app.state.db.write).await.expect("a row");
    assert_eq!(user.run(&id).await["verdict"], "suspect");
    let app = App::on(app.stop().await, |_| ()).await;
    let user = user.at(&app.url);
    app.until("the run to be valid", async || (user.run(&id).await["verdict"] == "valid").then_some(())).await;
}

#[tokio::test]
async fn the_scenario_form_sets_limits_and_shows_errors_at_their_fields() {
    let app = App::start().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    let page = person.get("/scenarios/hash").await.ok().text();
    assert!(page.contains("name=\"generator_busy\" value=\"80 %\"") && page.contains("id=\"limits\""), "{page}");
    let form = async |fields: &str| fill_in(&person, "/scenarios/hash/limits", fields).await;
    let refused = form("too_short=soon&host_steal=9+%25").await;
    assert_eq!(refused.status, 422);
    let text = refused.text();
    assert!(text.contains("too_short: &quot;soon&quot;") || text.contains("too_short: &#34;soon&#34;"), "{text}");
    assert!(text.contains("value=\"soon\"") && text.contains("value=\"9 %\""), "the input stays: {text}");
    form("too_short=5+s&host_steal=").await;
    let page = person.get("/scenarios/hash").await.ok().text();
    assert!(page.contains("name=\"too_short\" value=\"5 s\"") && page.contains(">changed</span>"), "{page}");
    form("too_short=5+s&reset=1").await;
    assert!(!person.get("/scenarios/hash").await.ok().text().contains(">changed</span>"));
}

#[tokio::test]
async fn a_command_re_judges_runs_and_damaged_runs_keep_their_verdict() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(ended(&user, &mut agent, |_| ()).await);
    }
    let imported = text(&user.import(target_down()).await.ok().json()["runs"][0]["id"]);
    // Judged by older rules, with a damaged summary, without a series, and with an outdated verdict.
    for (statement, id) in [
        (
            "update run set verdict = 'suspect', reasons = '[{\"code\":\"x\",\"verdict\":\"suspect\",\"text\":\"y\"}]' \
             where id = ?",
            &ids[0],
        ),
        ("update run_summary set body = x'00' where run_id = ?", &ids[1]),
        ("delete from run_series where run_id = ?", &ids[2]),
        ("update run set verdict = 'valid', reasons = '[]' where id = ?", &imported),
    ] {
        sqlx::query(statement).bind(id).execute(&app.state.db.write).await.expect("a row");
    }
    let dry = user.post("/api/v1/runs/rejudge", &json!({"dry_run": true})).await.ok().json();
    assert_eq!((&dry["judged"], &dry["next"]), (&json!(3), &Value::Null));
    assert_eq!(user.run(&ids[0]).await["verdict"], "suspect", "a dry run stores nothing");

    let token = app.token_secret(Scope::Submit, None).await;
    let report = as_user(&app, &token, &["run", "rejudge", "--all"]).await.ok();
    assert!(report.contains(&format!("{}  suspect → valid", ids[0])), "{report}");
    assert!(report.contains(&format!("{imported}  valid → invalid")), "{report}");
    assert!(report.contains(&format!("{}  valid → suspect", ids[2])), "its series is missing: {report}");
    assert!(report.contains(&format!("{}  not re-judged: its summary can't be unpacked", ids[1])), "{report}");
    assert!(report.ends_with("3 judged, 3 changed, 1 not re-judged\n"), "{report}");
    assert_eq!(user.run(&ids[1]).await["verdict"], "valid");
    let again = as_user(&app, &token, &["run", "rejudge", &ids[0], "--json"]).await.json();
    assert_eq!((&again["judged"], &again["changed"]), (&json!(1), &json!([])));
    let log = app.admin().await.get("/api/v1/audit?action=runs%20rejudged").await.ok().json();
    assert_eq!(log["entries"].as_array().map(Vec::len), Some(2), "the dry run is not logged: {log}");

    let nobody = "00000000-0000-7000-8000-000000000000";
    user.post("/api/v1/runs/rejudge", &json!({"ids": [nobody]})).await.refused(404);
    user.post("/api/v1/runs/rejudge", &json!({"ids": [], "scenario": "hash"})).await.refused(422);
}

#[tokio::test]
async fn a_run_from_before_series_is_not_suspect_without_one() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = ended(&user, &mut agent, |_| ()).await;
    let evidence = json!({"target_log": "", "k6_log": "", "observed": null, "environment": {},
        "cores": {"target": [0], "generator": [1]}});
    let packed = brewbench::results::blob::pack(evidence.to_string().as_bytes());
    let db = &app.state.db.write;
    sqlx::query("update run_evidence set body = ? where run_id = ?")
        .bind(packed)
        .bind(&id)
        .execute(db)
        .await
        .expect("a row");
    sqlx::query("delete from run_series where run_id = ?").bind(&id).execute(db).await.expect("a row");
    let result = user.post("/api/v1/runs/rejudge", &json!({"ids": [id]})).await.ok().json();
    assert_eq!((&result["judged"], &result["changed"]), (&json!(1), &json!([])));
}

#[tokio::test]
async fn many_runs_are_re_judged_in_batches() {
    let app = App::start().await;
    let user = app.user().await;
    for _ in 0..51 {
        user.import(good()).await.ok();
    }
    let first = user.post("/api/v1/runs/rejudge", &json!({})).await.ok().json();
    assert_eq!(first["judged"], 50);
    let rest = user.post("/api/v1/runs/rejudge", &json!({"after": first["next"]})).await.ok().json();
    assert_eq!((&rest["judged"], &rest["next"]), (&json!(1), &Value::Null));
}

#[tokio::test]
async fn a_command_sets_limits() {
    let app = App::start().await;
    let token = app.token_secret(Scope::Submit, None).await;
    let command =
        async |arguments: &[&str]| as_user(&app, &token, &[&["scenario", "limits", "hash"], arguments].concat()).await;
    assert!(command(&[]).await.ok().contains("generator_busy"));
    command(&["--set", "generator_busy=95%", "--set", "too_short=5s"]).await.ok();
    let list = command(&["--set", "host_steal=0.1", "--json"]).await.json();
    let value = |name: &str| {
        let all = list["limits"].as_array().expect("limits");
        all.iter().find(|limit| limit["name"] == name).expect("a limit")["value"].clone()
    };
    assert_eq!(
        [value("generator_busy"), value("too_short"), value("host_steal")],
        [json!(0.95), json!(5.0), json!(0.1)]
    );
    let refused = command(&["--set", "too_short=soon"]).await.refused(1);
    assert!(refused.contains("too_short: \"soon\" is not a number of seconds between 0 and 86400"), "{refused}");
    assert!(command(&["--reset"]).await.ok().lines().all(|line| !line.contains("5 s*")));
}

#[test]
fn the_docs_name_every_limit_with_its_default() {
    let path = root().join("docs/guide/verdict.md");
    let docs = std::fs::read_to_string(&path).expect("the chapter");
    for limit in Limit::ALL {
        let about = limit.definition();
        let expected = format!("`{}` {}", about.name, about.unit.text(about.default));
        assert!(docs.contains(&expected), "{expected} is not in {}", path.display());
    }
}

/// Ends the next run of an experiment with six seconds at these shares of 5,000 requests/s.
async fn ended_with(agent: &mut Agent, shares: [f64; 6]) {
    let job = agent.job().await;
    let mut outcome = outcome(&job, &good());
    let mut measured = window(6);
    for (second, share) in measured.seconds.iter_mut().zip(shares) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "thousands")]
        let requests = (share * 5_000.0) as u64;
        second.succeeded = Histogram::new(3, 0, requests * 1_000_000, [(-80, requests)]).expect("a histogram");
    }
    outcome.series = Some(Packed::pack(&Series { warm_up: None, measured: Some(measured) }));
    agent.end(outcome).await;
}

#[tokio::test]
async fn runs_of_a_cell_that_all_warm_up_are_suspect_in_whatever_order_they_end() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = json!({"retries": 0, "repetitions": 4, "load": vus(10, 6.0)});
    let has_drift = async |ids: &[String]| {
        let mut all = Vec::new();
        for id in ids {
            all.push(codes(&user.run(id).await).contains(&"cell_not_steady".to_owned()));
        }
        all
    };
    let (_, ids) = submit(&user, &plan_with(&plan)).await;
    let wobble = |number: usize| 1.0 + 0.01 * [0.3, -0.5, 0.1, 0.4][number];
    for number in 0..4 {
        let share = wobble(number);
        ended_with(&mut agent, [0.5, 0.7 * share, 0.85, 0.92 * share, 0.96, 0.5]).await;
        assert_eq!(has_drift(&ids[..=number]).await, vec![number > 1; number + 1], "after {} runs", number + 1);
    }
    let run = user.run(&ids[0]).await;
    let reason = run["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == "cell_not_steady");
    assert!(text(&reason.expect("a reason")["text"]).contains("in 4 of 4 runs of this cell"), "{run}");
    let again = user.post("/api/v1/runs/rejudge", &json!({"ids": ids})).await.ok().json();
    assert_eq!((&again["judged"], &again["changed"]), (&json!(4), &json!([])));
    assert_eq!(has_drift(&ids).await, [true; 4]);

    user.put(LIMITS, &json!({"limits": {"not_steady_rate": 0.9}})).await.ok();
    app.until("the drift to be allowed", async || (has_drift(&ids).await == [false; 4]).then_some(())).await;

    // A burst in one run is none of the others, and runs of other experiments are other runs.
    user.delete(LIMITS).await.ok();
    let (_, others) = submit(&user, &plan_with(&plan)).await;
    for number in 0..4 {
        let hit = if number == 1 { 0.6 } else { 1.0 };
        ended_with(&mut agent, [1.0, wobble(number), hit, hit, 1.001 * wobble(3 - number), 0.9]).await;
    }
    assert_eq!(has_drift(&others).await, [false; 4]);
}
