//! Experiments of several loads: as plans, as flags, in the form, and on their page.

use serde_json::{Value, json};

use crate::{
    harness::{
        Agent, App,
        program::as_user,
        submit::{plan_with, submit, text, vus},
        summaries::good,
    },
    new_run::fill_in,
};

fn levels(runs: &Value) -> Vec<u64> {
    let mut levels: Vec<_> =
        runs.as_array().expect("runs").iter().map(|run| run["vus"].as_u64().expect("a number")).collect();
    levels.sort_unstable();
    levels
}

/// A plan without the default load.
fn without_load(changes: &Value) -> Value {
    let mut plan = plan_with(changes);
    plan.as_object_mut().expect("fields").remove("load");
    plan
}

#[tokio::test]
async fn a_plan_with_several_loads_has_runs_of_each_and_its_page_shows_loads() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = without_load(&json!({"loads": [vus(1, 1.0), vus(2, 1.0)], "repetitions": 2}));
    let (experiment, runs) = submit(&user, &plan).await;
    let mut peaks = Vec::new();
    for id in &runs {
        let job = agent.job().await;
        assert_eq!(&job.run.to_string(), id);
        peaks.push(job.spec.load().shape().expect("a shape").peak());
        agent.finish(&job, &good()).await;
    }
    peaks.sort_unstable();
    assert_eq!(peaks, [1, 1, 2, 2]);
    let full = user.get(&format!("/api/v1/experiments/{experiment}")).await.ok().json();
    assert_eq!(levels(&full["runs"]), [1, 1, 2, 2]);
    assert_eq!(full["experiment"]["plan"]["loads"], json!([vus(1, 1.0), vus(2, 1.0)]));
    assert_eq!(full["progress"]["state"], "finished");
    let page = user.clone().in_browser().get(&format!("/experiments/{experiment}")).await.ok().text();
    let page = page.replace('\u{a0}', " ");
    assert!(page.contains("1, 2 VUs, 1 s measured") && page.contains("1 size × 2 loads × 2 repetitions"), "{page}");
    assert!(page.contains("<th scope=\"col\">Load</th>") && page.contains("order shuffled with seed"), "{page}");
    let run =
        brewbench::runs::store::find(&app.state.db.rows, &runs[0].clone().into()).await.expect("a run").expect("a run");
    let cell = brewbench::runs::store::repetitions(&app.state.db.rows, &run).await.expect("runs");
    assert!(
        cell.len() == 2 && cell.iter().all(|other| other.spec.load == run.spec.load),
        "another load is another cell"
    );
}

#[tokio::test]
async fn loads_that_form_no_sweep_are_refused_with_the_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start(&app, "rack").await;
    let rate = json!({"kind": "rate", "rate": 5, "duration_s": 1.0});
    let search = json!({"objective": "p99<50ms", "from": 10, "to": 100, "duration_s": 1.0});
    let many: Vec<_> = (1..=51).map(|level| vus(level, 1.0)).collect();
    let mixed = "loads: several loads must be constant, of the same kind and duration, and differ only in level";
    for (changes, sentence) in [
        (json!({"loads": [vus(1, 1.0), vus(2, 2.0)]}), mixed),
        (json!({"loads": [vus(1, 1.0), rate]}), mixed),
        (json!({"loads": [vus(1, 1.0), {"kind": "script"}]}), mixed),
        (json!({"loads": [vus(1, 1.0), vus(1, 1.0)]}), "loads: one is named twice"),
        (json!({"loads": many}), "loads: 51 given; at most 50 are allowed"),
        (json!({"retries": 11}), "retries: at most 10"),
        (
            json!({"stopping_rule": {"narrower_than": 0.02, "at_most": 9}}),
            "stopping_rule: needs at least two targets to compare",
        ),
        (
            json!({"targets": ["fast", "slow"], "stopping_rule": {"narrower_than": 0.02, "at_most": 3}}),
            "stopping_rule: the maximum must be between 4 and 100 repetitions",
        ),
        (
            json!({"loads": [vus(1, 1.0)], "knee": search}),
            "knee: can't be combined with loads; a knee search chooses its own rates",
        ),
        (
            json!({"knee": {"objective": "p99<50ms", "from": 100, "to": 10, "duration_s": 1.0}}),
            "knee: 100..10 is not a range: write the lower rate first",
        ),
    ] {
        let answer = user.post("/api/v1/experiments", &without_load(&changes)).await;
        assert_eq!(answer.refused(422), sentence, "{changes}");
    }
    let invalid = json!({"knee": {"objective": "p99>50ms", "from": 10, "to": 100, "duration_s": 1.0}});
    let sentence = user.post("/api/v1/experiments", &without_load(&invalid)).await.refused(422);
    assert!(sentence.contains("condition 1 (\"p99>50ms\")"), "{sentence}");
    assert_eq!(user.count_runs().await, 0);
}

#[tokio::test]
async fn the_command_and_the_form_accept_lists_and_ranges() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start(&app, "rack").await;
    let flags = ["run", "new", "--target", "fast", "--size", "1/256MiB", "--duration", "1s", "--repeat", "1", "--json"];
    let sweep = [&flags[..], &["--seed", "7", "--vus", "1..8", "x2"]].concat();
    let created = as_user(&app, user.secret(), &sweep).await.json();
    assert_eq!(levels(&created["runs"]), [1, 2, 4, 8]);
    assert_eq!(created["experiment"]["plan"]["seed"], 7);
    let again = as_user(&app, user.secret(), &sweep).await.json();
    let order = |created: &Value| -> Vec<_> {
        created["runs"].as_array().expect("runs").iter().map(|run| run["vus"].clone()).collect()
    };
    assert_eq!(order(&again), order(&created), "the seed determines the order");
    let refused = as_user(&app, user.secret(), &[&flags[..], &["--vus", "1..8"]].concat()).await.refused(1);
    assert_eq!(refused, "brewbench: --vus: a range needs a step: 1..8x2 doubles, 1..8+10 adds 10\n");

    let pages = user.clone().in_browser();
    let form = "target=fast&size=1%2F256MiB&load=rate&rate=100..300%2B100&duration=1s&warm-up=0s&repeat=2&seed=9";
    let shown = pages.get(&format!("/experiments/new?{form}")).await.ok().text();
    assert!(shown.contains("6 runs") && shown.contains("1 target × 1 size × 3 loads × 2"), "{shown}");
    assert!(shown.contains("--rate 100,200,300 --duration 1s") && shown.contains("--seed 9"), "{shown}");
    let created = fill_in(&pages, "/experiments/new", form).await;
    let place = created.header("location").to_owned();
    let full = user.get(&format!("/api/v1{place}")).await.ok().json();
    assert_eq!(full["progress"]["total"], 6);
    let again = pages.get(&format!("/experiments/new?experiment={}", text(&full["experiment"]["id"]))).await;
    assert!(again.header("location").contains("rate=100%2C200%2C300"), "{}", again.header("location"));
    assert!(!again.header("location").contains("seed="), "a new order each time");
    let wrong = pages.get(&format!("/experiments/new?{form}&rate=9..1x2&until=5")).await.ok().text();
    assert!(wrong.contains("Iterations per second: 9..1 is not a range: write the lower level first"), "{wrong}");
    assert!(wrong.contains("Interval width: must be a share, such as 2%"), "{wrong}");
}
