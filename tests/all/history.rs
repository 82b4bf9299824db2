//! The history of runs: filters, sorting, paging, labels, notes, deletion and undo, and exports.

use brewbench::{
    auth::model::Role,
    runs::{
        column,
        filter::{Filter, RunQuery},
        store::groups,
    },
};
use brewbench_wire::Phase;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    program::as_user,
    submit::{reaches, submit_one, text},
    summaries::{fixture, good, target_down},
};

async fn import(user: &Actor, about: &[(&str, &str)], summary: String) -> String {
    text(&user.import_as(about, summary).await.ok().json()["runs"][0]["id"])
}

async fn find(user: &Actor, query: &str) -> Vec<String> {
    let list = user.get(&format!("/api/v1/runs?{query}")).await.ok().json();
    list["runs"].as_array().expect("a list").iter().map(|run| text(&run["id"])).collect()
}

#[tokio::test]
async fn filters_find_their_runs_alone_and_combined() {
    let app = App::start().await;
    let (user, other) = (app.user().await, app.user().await);
    let old = [("target", "servy"), ("version", "1.0"), ("size", "2/4GiB"), ("scenario", "hash")];
    let a = import(&user, &old, good()).await;
    let b = import(&user, &[("target", "servy"), ("version", "2.0"), ("scenario", "site")], good()).await;
    let c = import(&other, &[("target", "down_100%"), ("version", "1.0")], target_down()).await;
    user.put(&format!("/api/v1/runs/{b}/labels/before%20it"), &()).await.ok();
    user.put(&format!("/api/v1/runs/{a}/note"), &json!({"note": "the *old* kernel"})).await.ok();
    let person = text(&user.run(&a).await["created_by"]);
    let (size, person) = ("size=2+vCPU+%2F+4+GiB", format!("created_by={}", person.replace(' ', "+")));
    let cases: [(&str, &[&String]); 20] = [
        ("target=servy", &[&b, &a]),
        ("version=1.0", &[&c, &a]),
        (size, &[&a]),
        ("scenario=site", &[&b]),
        ("label=before+it", &[&b]),
        ("label=before+it&target=servy", &[&b]),
        ("label=before+it&version=1.0", &[]),
        (&person, &[&b, &a]),
        ("verdict=invalid", &[&c]),
        ("phase=finished&verdict=valid&version=2.0", &[&b]),
        ("phase=queued", &[]),
        ("engine=k6", &[&c, &b, &a]),
        ("engine=k6+0.1&target=servy", &[]),
        ("q=SERV", &[&b, &a]),
        ("q=kernel", &[&a]),
        ("q=kernel&sort=-rps", &[&a]),
        ("q=n_100%25", &[&c]),
        ("q=_erv", &[]),
        ("from=2020-01-01&to=2020-12-31", &[]),
        ("from=2020-01-01&target=servy&sort=submitted", &[&a, &b]),
    ];
    for (query, expected) in cases {
        assert_eq!(find(&user, query).await.iter().collect::<Vec<_>>(), expected, "{query}");
    }
    for bad in ["sort=seq", "from=then", "phase=odd", "verdict=odd", "sort=-"] {
        user.get(&format!("/api/v1/runs?{bad}")).await.refused(422);
        assert_eq!(user.clone().in_browser().get(&format!("/runs?{bad}")).await.status, 422, "{bad}");
    }
}

#[tokio::test]
async fn filters_offer_a_value_from_the_moment_a_run_has_it_until_none_has_it() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    let offers = async |value: &str| {
        let page = user.clone().in_browser().get("/runs").await;
        page.text().contains(&format!(r#"<option value="{value}"></option>"#))
    };
    assert!(!offers("servy").await);
    let run = import(&user, &[("target", "servy"), ("version", "1.0")], good()).await;
    assert!(offers("servy").await && offers("1.0").await && !offers("2.0").await);
    import(&user, &[("target", "servy"), ("version", "2.0")], good()).await;
    assert!(offers("2.0").await);

    let label = format!("/api/v1/runs/{run}/labels/alpha");
    user.put(&label, &()).await.ok();
    assert!(offers("alpha").await);
    user.delete(&label).await.ok();
    assert!(!offers("alpha").await);

    let mut agent = Agent::start(&app, "rack").await;
    let queued = submit_one(&user).await;
    let job = agent.job().await;
    agent.enter(job.run, Phase::Preparing);
    reaches(&app, &user, &queued, "preparing").await;
    assert!(offers("rack").await, "the run has an agent");
    agent.finish(&job, &good()).await;
    reaches(&app, &user, &queued, "finished").await;
    admin.put("/api/v1/agents/rack/name", &json!({"name": "shelf"})).await.ok();
    assert!(offers("shelf").await && !offers("rack").await);
}

#[tokio::test]
async fn an_experiment_is_found_by_its_name() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let run = submit_one(&user).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let ended = reaches(&app, &user, &run, "finished").await;
    assert_eq!(find(&user, "q=hash:%20fast").await, std::slice::from_ref(&run));
    assert_eq!(find(&user, "agent=rack").await, std::slice::from_ref(&run));
    assert_eq!(find(&user, &format!("experiment={}", text(&ended["experiment"]))).await, [run]);
}

#[tokio::test]
async fn every_sort_order_pages_each_run_once_with_missing_values_last() {
    let app = App::start().await;
    let user = app.user().await;
    let summaries = ["handle-summary-v1.8.1", "handle-summary-v0.52.0", "summary-export-zero-requests-v1.8.1"];
    // Each three times, so that some values are equal.
    for number in 0..9 {
        import(&user, &[("target", &format!("t{}", number % 2))], fixture(summaries[number % 3])).await;
    }
    for key in column::sortable() {
        for (sort, is_descending) in [(key.to_owned(), false), (format!("-{key}"), true)] {
            let list = user.get(&format!("/api/v1/runs?sort={sort}")).await.ok().json();
            let all = list["runs"].as_array().expect("a list").clone();
            assert_eq!(all.len(), 9, "{sort}");
            let mut paged: Vec<String> = Vec::new();
            while let page = find(&user, &format!("sort={sort}&limit=2{}", after(&paged))).await
                && !page.is_empty()
            {
                paged.extend(page);
            }
            assert_eq!(paged, all.iter().map(|run| text(&run["id"])).collect::<Vec<_>>(), "{sort}");
            let Some(field) = json_field(key) else { continue };
            let values: Vec<Option<f64>> = all.iter().map(|run| run[field].as_f64()).collect();
            let known: Vec<f64> = values.iter().copied().flatten().collect();
            assert!(values[known.len()..].iter().all(Option::is_none), "{sort}: {values:?}");
            assert!(
                known.windows(2).all(|pair| if is_descending { pair[0] >= pair[1] } else { pair[0] <= pair[1] }),
                "{sort}"
            );
        }
    }
    assert_eq!(find(&user, "sort=rps&after=nothing").await, Vec::<String>::new());
}

fn after(paged: &[String]) -> String {
    paged.last().map_or_else(String::new, |id| format!("&after={id}"))
}

/// The JSON field of a run that belongs to a sort key.
fn json_field(key: &str) -> Option<&'static str> {
    let fields = [
        ("rps", "rps"),
        ("requests", "requests"),
        ("failed", "failed"),
        ("error_rate", "error_rate"),
        ("avg", "avg_ms"),
        ("min", "min_ms"),
        ("p50", "p50_ms"),
        ("p90", "p90_ms"),
        ("p95", "p95_ms"),
        ("p99", "p99_ms"),
        ("p999", "p999_ms"),
        ("max", "max_ms"),
        ("measured", "measured_s"),
        ("submitted", "queued_at_ms"),
        ("ended", "finished_at_ms"),
    ];
    fields.into_iter().find(|(known, _)| *known == key).map(|(_, field)| field)
}

/// Typical queries of users and scripts.
const TYPICAL_VIEWS: [&str; 20] = [
    "",
    "after=ID",
    "target=t1",
    "target=t1&after=ID",
    "target=t1&verdict=valid",
    "verdict=valid&sort=-rps",
    "sort=-rps",
    "sort=p99&after=ID",
    "sort=error_rate&after=ID",
    "label=odd",
    "q=t1",
    "from=2020-01-01&to=2020-02-01",
    "from=2020-01-01&to=2020-02-01&sort=p99",
    "agent=rack&phase=finished&sort=-p99",
    "phase=queued",
    "phase=failed&sort=-rps",
    "verdict=invalid",
    "verdict=suspect&sort=max",
    "version=1.0&created_by=ada",
    "size=x&after=ID",
];

#[tokio::test]
async fn typical_views_neither_scan_nor_sort_all_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let id = import(&user, &[("target", "t1")], good()).await;
    fill(&app, 3_000).await;
    for view in TYPICAL_VIEWS {
        let steps = brewbench::runs::store::plan(&app.state.db.rows, &filter(view, &id), 51).await.expect("a plan");
        let sorts = steps.iter().any(|step| step.contains("TEMP B-TREE FOR ORDER BY"));
        // A scan in the order of the history ends with the page; a sort must not read all runs first.
        let scans = steps.iter().any(|step| step.starts_with("SCAN run"));
        assert!(!(sorts && scans), "{view:?}: {steps:?}");
    }
    for view in ["", "after=ID", "sort=-rps", "sort=p99&after=ID", "verdict=valid&sort=-rps", "target=t1&after=ID"] {
        let steps = brewbench::runs::store::plan(&app.state.db.rows, &filter(view, &id), 51).await.expect("a plan");
        assert!(!steps.iter().any(|step| step.contains("TEMP B-TREE")), "{view:?}: {steps:?}");
    }
    let steps = groups::plan(&app.state.db.rows).await.expect("a plan");
    assert!(steps.len() == 1 && steps[0].starts_with("SEARCH run USING INTEGER PRIMARY KEY"), "{steps:?}");
}

#[tokio::test]
async fn each_run_is_on_one_page_with_its_experiment() {
    let app = App::start().await;
    fill(&app, 3_000).await;
    // Experiments of 1 to 59 runs, two at a time, and every eleventh run without one.
    let experiments = "with recursive n(i) as (select 0 union all select i + 1 from n where i < 200)
        insert into experiment (id, name, plan, created_by, created_at) select 'e' || i, 'named ' || i, '{}', 'ada', i from n";
    sqlx::query(experiments).execute(&app.state.db.write).await.expect("experiments");
    let join = "update run set experiment_id = 'e' || (seq / 59 + seq % 2) where seq % 11 <> 0";
    sqlx::query(join).execute(&app.state.db.write).await.expect("runs of experiments");
    let (mut seen, mut heads, mut before) = (std::collections::BTreeSet::new(), Vec::new(), None);
    loop {
        let page = groups::page(&app.state.db.rows, before.as_ref()).await.expect("a page");
        assert!(page.runs.len() < 400, "{} runs on a page", page.runs.len());
        for run in &page.runs {
            assert!(seen.insert(run.id.clone()), "{} is listed twice", run.id);
            if let Some(experiment) = &run.experiment {
                assert!(page.names[experiment].starts_with("named "));
                if heads.last() != Some(experiment) {
                    heads.push(experiment.clone());
                }
            }
        }
        let Some(next) = page.next else { break };
        before = Some(next);
    }
    assert_eq!(seen.len(), 3_000);
    let distinct: std::collections::BTreeSet<_> = heads.iter().map(|id| id.as_str().to_owned()).collect();
    assert_eq!(distinct.len(), heads.len(), "an experiment is listed once");
    let gone = groups::page(&app.state.db.rows, Some(&"nobody".to_owned().into())).await.expect("a page");
    assert!(gone.runs.is_empty() && gone.next.is_none());
}

fn filter(view: &str, id: &str) -> Filter {
    let pairs: Vec<(String, String)> = url::form_urlencoded::parse(view.replace("ID", id).as_bytes())
        .map(|(name, value)| (name.into_owned(), value.into_owned()))
        .collect();
    let object: serde_json::Map<String, Value> =
        pairs.into_iter().map(|(name, value)| (name, Value::from(value))).collect();
    serde_json::from_value::<RunQuery>(object.into()).expect("a query").filter().expect("a filter")
}

/// Inserts enough runs that SQLite prefers a scan in order to a sort.
async fn fill(app: &App, runs: u32) {
    let agent = "insert or ignore into agent (name, key_hash, created_at) values ('rack', x'00', 0)";
    sqlx::query(agent).execute(&app.state.db.write).await.expect("an agent");
    let many = "with recursive n(i) as (select 1 union all select i + 1 from n where i < ?)
        insert into run (id, origin, target, repetition, created_by, agent_id, phase, verdict, queued_at, phase_at, figures)
        select 'many-' || i, 'agent', 't' || (i % 7), 1, 'ada', (select id from agent where name = 'rack'),
            'finished', 'valid', i, i, json_object('requests', 100, 'failed', 0, 'error_rate', 0, 'rps', i * 7 % 1000, 'p99_ms', i % 90)
        from n";
    sqlx::query(many).bind(runs).execute(&app.state.db.write).await.expect("many runs");
}

#[tokio::test]
async fn labels_and_notes_are_stored_shown_and_removed() {
    let app = App::start().await;
    let (user, reader) = (app.user().await, app.reader().await);
    let id = import(&user, &[("target", "servy")], good()).await;
    let path = format!("/api/v1/runs/{id}");
    for label in ["zeta", "alpha", "zeta", "50%25%20%2F%3F"] {
        user.put(&format!("{path}/labels/{label}"), &()).await.ok();
    }
    assert_eq!(user.run(&id).await["labels"], json!(["50% /?", "alpha", "zeta"]));
    user.delete(&format!("{path}/labels/alpha")).await.ok();
    user.delete(&format!("{path}/labels/unknown")).await.ok();
    user.put(&format!("{path}/labels/{}", "x".repeat(41)), &()).await.refused(422);
    user.put(&format!("{path}/labels/%1B%5B31m"), &()).await.refused(422);
    reader.put(&format!("{path}/labels/mine"), &()).await.refused(403);
    user.put("/api/v1/runs/x/labels/a", &()).await.refused(404);

    let note = "# It is *quick*\n\n<script>alert(1)</script> [x](javascript:alert(1)) ![p](https://evil.example/p.png)";
    user.put(&format!("{path}/note"), &json!({"note": note})).await.ok();
    reader.put(&format!("{path}/note"), &json!({"note": "mine"})).await.refused(403);
    user.put(&format!("{path}/note"), &json!({"note": "x".repeat(20_001)})).await.refused(422);
    assert_eq!(user.run(&id).await["note"], note);
    let page = reader.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(page.contains("<h3>It is <em>quick</em></h3>"), "{page}");
    assert!(
        !page.contains("<script>alert") && !page.contains("href=\"javascript:") && !page.contains("<img"),
        "{page}"
    );
    assert!(!page.contains("<textarea"), "a reader has no editor");
    let history = reader.in_browser().get("/runs").await.ok().text();
    assert!(history.contains("zeta") && history.contains("It is quick"), "{history}");
    user.put(&format!("{path}/note"), &json!({"note": " \n"})).await.ok();
    assert_eq!(user.run(&id).await["note"], Value::Null);
}

#[tokio::test]
async fn deleted_runs_disappear_and_come_back_on_undo() {
    let app = App::start().await;
    let user = app.user().await;
    let (gone, stays) =
        (import(&user, &[("target", "a")], good()).await, import(&user, &[("target", "b")], good()).await);
    user.put(&format!("/api/v1/runs/{gone}/labels/odd"), &()).await.ok();
    user.put(&format!("/api/v1/runs/{gone}/note"), &json!({"note": "odd"})).await.ok();
    let browser = user.clone().in_browser();
    let confirmation = browser.get(&format!("/runs/delete?runs={gone}")).await.ok().text();
    assert!(confirmation.contains("10 minutes") && confirmation.contains("1 run"), "{confirmation}");
    let done = browser.post(&format!("/runs/delete?runs={gone}"), &()).await;
    assert_eq!(done.header("location"), "/runs");
    for query in ["", "target=a", "label=odd", "q=odd", "q=a", "sort=-rps", "verdict=valid", "phase=finished"] {
        assert!(!find(&user, query).await.contains(&gone), "{query}");
    }
    let page = app.signed_in(Role::Viewer).await.in_browser().get(&format!("/runs/{gone}")).await;
    assert_eq!(page.status.as_u16(), 404);
    assert!(page.text().contains(r#"<nav class="wide" aria-label="Main">"#), "the navigation stays: {}", page.text());
    for path in ["", "/summary"] {
        user.get(&format!("/api/v1/runs/{gone}{path}")).await.refused(404);
    }
    user.get(&format!("/api/v1/compare?runs={gone}")).await.refused(404);
    user.get(&format!("/api/v1/runs/export?runs={gone}")).await.refused(404);
    user.delete(&format!("/api/v1/runs/{gone}")).await.refused(404);
    user.put(&format!("/api/v1/runs/{gone}/note"), &json!({"note": "x"})).await.refused(404);
    let both = user.get(&format!("/api/v1/compare?runs={gone},{stays}")).await.ok().text();
    assert!(both.contains(&stays), "{both}");
    let page = browser.get("/runs").await.ok().text();
    assert!(page.contains("1 run deleted") && page.contains("/runs/undelete?at="), "{page}");
    let viewer = app.reader().await.in_browser().get("/runs").await.ok().text();
    assert!(!viewer.contains("/runs/undelete"), "a reader cannot undo");

    let back = user.post(&format!("/api/v1/runs/{}/undelete", &gone[24..]), &()).await.ok().json();
    assert_eq!((&back["runs"][0]["id"], &back["runs"][0]["labels"]), (&json!(gone), &json!(["odd"])));
    assert_eq!(user.get(&format!("/api/v1/runs/{gone}/summary")).await.ok().text(), good());
    user.post(&format!("/api/v1/runs/{gone}/undelete"), &()).await.refused(404);
}

#[tokio::test]
async fn deleted_runs_are_purged_after_ten_minutes() {
    let app = App::start().await;
    let user = app.user().await;
    let (old, young) =
        (import(&user, &[("target", "a")], good()).await, import(&user, &[("target", "b")], good()).await);
    user.put(&format!("/api/v1/runs/{old}/labels/odd"), &()).await.ok();
    for id in [&old, &young] {
        user.delete(&format!("/api/v1/runs/{id}")).await.ok();
    }
    let age = "update run set deleted_at = deleted_at - 11 * 60 * 1000 where id = ?";
    sqlx::query(age).bind(&old).execute(&app.state.db.write).await.expect("an older deletion");
    user.post(&format!("/api/v1/runs/{old}/undelete"), &()).await.refused(404);
    // The server purges deleted runs at its start.
    let app = App::on(app.stop().await, |_| ()).await;
    let left = async || {
        let query =
            "select (select count(*) from run) + (select count(*) from run_label) + (select count(*) from run_summary)";
        let left: i64 = sqlx::query_scalar(query).fetch_one(&app.state.db.read).await.expect("a count");
        (left == 2).then_some(())
    };
    app.until("the old run to be purged", left).await;
    let user = user.at(&app.url);
    user.post(&format!("/api/v1/runs/{young}/undelete"), &()).await.ok();
}

#[tokio::test]
async fn exported_csv_contains_no_formulas() {
    let app = App::start().await;
    let user = app.user().await;
    let formula = "=HYPERLINK(\"https://evil.example\")";
    let a = import(&user, &[("target", formula), ("version", "-1+1")], good()).await;
    let b = import(&user, &[("target", "b")], good()).await;
    user.put(&format!("/api/v1/runs/{b}/note"), &json!({"note": "+1\n@x"})).await.ok();
    let csv = user.get(&format!("/api/v1/runs/export?format=csv&runs={a}&runs={b}")).await.ok();
    assert!(csv.header("content-type").starts_with("text/csv"), "{:?}", csv.headers);
    assert!(csv.header("content-disposition").starts_with("attachment"), "{:?}", csv.headers);
    let csv = csv.text();
    assert!(csv.contains("\"'=HYPERLINK(\"\"https://evil.example\"\")\",'-1+1,"), "{csv}");
    assert!(csv.contains("\"'+1\n@x\""), "{csv}");
    let list = user.get(&format!("/api/v1/runs/export?runs={a},{b}")).await.ok().json();
    assert_eq!(list["runs"].as_array().expect("runs").len(), 2);
    user.get("/api/v1/runs/export").await.refused(422);
    user.get("/api/v1/runs/export?runs=x&format=xls").await.refused(422);
}

#[tokio::test]
async fn an_empty_page_offers_to_remove_filters_and_columns_can_be_chosen() {
    let app = App::start().await;
    let user = app.user().await;
    import(&user, &[("target", "servy"), ("version", "1.0")], good()).await;
    let browser = user.in_browser();
    let page = browser.get("/runs?target=servy&version=9&sort=-rps&columns=p999&columns=created_by").await.ok().text();
    assert!(page.contains("No matching runs") && page.contains("Remove one of these filters"), "{page}");
    let without = "/runs?target=servy&#38;sort=-rps";
    assert!(page.contains(without), "{page}");
    let page = browser.get("/runs?target=servy&columns=p999,created_by").await.ok().text();
    assert!(
        page.contains("p99.9 ms</a>") && page.contains(">Submitted by</th>") && !page.contains(">Size</th>"),
        "{page}"
    );
    let hostile =
        browser.get("/runs?q=%22%3E%3Cscript%3Ealert(1)%3C/script%3E&target=%27);alert(1)//").await.ok().text();
    assert!(!hostile.contains("<script>alert") && !hostile.contains("');alert"), "{hostile}");
}

#[tokio::test]
async fn an_experiment_is_found_by_its_labels_and_note() {
    let app = App::start().await;
    let (user, reader) = (app.user().await, app.reader().await);
    let _agent = Agent::start(&app, "rack").await;
    let run = submit_one(&user).await;
    let id = text(&user.run(&run).await["experiment"]);
    let path = format!("/api/v1/experiments/{id}");
    for label in ["zeta", "alpha", "zeta"] {
        user.put(&format!("{path}/labels/{label}"), &()).await.ok();
    }
    user.put(&format!("{path}/labels/{}", "x".repeat(41)), &()).await.refused(422);
    reader.put(&format!("{path}/labels/mine"), &()).await.refused(403);
    user.put("/api/v1/experiments/x/labels/a", &()).await.refused(404);
    user.put(&format!("{path}/note"), &json!({"note": "before *the* move"})).await.ok();
    let full = user.get(&path).await.ok().json();
    assert_eq!(full["experiment"]["labels"], json!(["alpha", "zeta"]));
    assert_eq!(full["experiment"]["note"], "before *the* move");
    let page = reader.clone().in_browser().get(&format!("/experiments/{id}")).await.ok().text();
    assert!(page.contains("before <em>the</em> move") && page.contains("/experiments?label=zeta"), "{page}");
    assert!(!page.contains("<textarea"), "a reader has no editor");
    let listed = async |label: &str| {
        let list = user.get(&format!("/api/v1/experiments?label={label}")).await.ok().json();
        list["experiments"].as_array().expect("a list").len()
    };
    assert_eq!((listed("zeta").await, listed("zet").await), (1, 0));
    let none = reader.in_browser().get("/experiments?label=zet").await.ok().text();
    assert!(none.contains("No experiments with this label"), "{none}");
    assert_eq!(find(&user, "q=move").await, [run]);
    user.delete(&format!("{path}/labels/zeta")).await.ok();
    user.put(&format!("{path}/note"), &json!({"note": ""})).await.ok();
    let full = user.get(&path).await.ok().json();
    assert_eq!((&full["experiment"]["labels"], &full["experiment"]["note"]), (&json!(["alpha"]), &Value::Null));
}

#[tokio::test]
async fn commands_filter_label_delete_and_export_runs() {
    let app = App::start().await;
    let user = app.user().await;
    let as_me = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await;
    let fast = import(&user, &[("target", "servy")], good()).await;
    let down = import(&user, &[("target", "down")], target_down()).await;
    as_me(&["run", "label", "add", "before the move", &fast, &down]).await.ok();
    as_me(&["run", "label", "remove", "before the move", &down]).await.ok();
    as_me(&["run", "note", &fast, "the *old*\nkernel"]).await.ok();
    assert_eq!(as_me(&["run", "note", &fast]).await.ok(), "the *old*\nkernel\n");
    for arguments in [
        &["run", "list", "--label", "before the move", "--sort", "-rps", "--json"][..],
        &["run", "list", "--search", "kernel", "--sort", "-p99", "--json"],
    ] {
        let list = as_me(arguments).await.json();
        let ids: Vec<String> = list["runs"].as_array().expect("a list").iter().map(|run| text(&run["id"])).collect();
        assert_eq!(ids, [&*fast], "{arguments:?}");
    }

    as_me(&["run", "delete", "--yes", &fast]).await.ok();
    as_me(&["run", "show", &fast]).await.refused(1);
    as_me(&["run", "undelete", &fast]).await.ok();
    let csv = as_me(&["run", "export", "--format", "csv", &fast]).await.ok();
    assert!(
        csv.starts_with("id,") && csv.lines().count() == 3,
        "a header, and a row whose note has a line break: {csv}"
    );
}

#[tokio::test]
async fn commands_label_an_experiment_and_set_its_note() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start(&app, "rack").await;
    let run = submit_one(&user).await;
    let id = text(&user.run(&run).await["experiment"]);
    let as_me = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await;
    assert_eq!(as_me(&["experiment", "label", "add", "a/b ?", &id]).await.ok(), "a/b ?\n");
    as_me(&["experiment", "note", &id, "after the move"]).await.ok();
    assert_eq!(as_me(&["experiment", "note", &id]).await.ok(), "after the move\n");
    let list = as_me(&["experiment", "list", "--label", "a/b ?", "--json"]).await.json();
    assert_eq!(list["experiments"].as_array().expect("a list").len(), 1);
    assert_eq!(as_me(&["experiment", "label", "remove", "a/b ?", &id]).await.ok(), "no labels\n");
}
