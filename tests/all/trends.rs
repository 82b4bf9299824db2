//! Trends of a cell over versions and time: change points and their annotations.

use brewbench::auth::model::Role;
use brewbench_wire::{engine::EngineVersion, outcome::Outcome};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, Answer, App,
    agent::outcome,
    program::as_user,
    submit::{repetitions, submit_one, text},
    summaries::{good, scaled, target_down},
};

/// Imports `count` runs of a version that are `faster` times as fast as the fixture, with some noise.
async fn import_runs(user: &Actor, version: &str, count: usize, faster: f64) {
    for place in 0..count {
        let wobble = 1.0 + 0.004 * ((place * 7919 % 13) as f64 - 6.0) / 6.0;
        let about = [("target", "servy"), ("size", "2/4GiB"), ("scenario", "hash"), ("version", version)];
        user.import_as(&about, scaled(faster * wobble)).await.ok();
    }
}

/// Imports one experiment of three runs per speed, whose runs differ by 0.1 %; returns the ids of the runs.
async fn import_experiments(user: &Actor, version: &str, speeds: &[f64]) -> Vec<String> {
    let mut all = Vec::new();
    for (place, faster) in speeds.iter().enumerate() {
        let ids = repetitions(user, "servy", version, 3, *faster).await;
        let name = format!("{version} {place}");
        user.post("/api/v1/experiments/from-imports", &json!({"name": name, "runs": ids})).await.ok();
        all.extend(ids);
    }
    all
}

async fn only_cell(user: &Actor) -> (Value, String) {
    let list = user.get("/api/v1/trends?target=servy").await.ok().json();
    let trends = list["trends"].as_array().expect("cells");
    assert_eq!(trends.len(), 1, "{list}");
    let path = format!("/api/v1/trends/servy/{}", text(&trends[0]["cell"]["id"]));
    (trends[0].clone(), path)
}

async fn annotate(person: &Actor, path: &str, form: &[(&str, &str)]) -> Answer {
    let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = person.request(&reqwest::Method::POST, &format!("{path}/annotate"));
    Answer::to(request.header("content-type", "application/x-www-form-urlencoded").body(body)).await
}

fn open(trend: &Value) -> usize {
    trend["changes"].as_array().expect("changes").iter().filter(|change| change["annotation"].is_null()).count()
}

#[tokio::test]
async fn another_load_generator_makes_another_cell() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    for version in ["1.8.1", "2.2.0", "2.2.0"] {
        submit_one(&user).await;
        let job = agent.job().await;
        let engine = Some(EngineVersion { name: "k6".to_owned(), version: version.to_owned() });
        agent.end(Outcome { engine, ..outcome(&job, &good()) }).await;
    }
    let list = user.get("/api/v1/trends?target=fast").await.ok().json();
    let trends = list["trends"].as_array().expect("cells").iter();
    let cells: Vec<_> = trends.map(|trend| (text(&trend["cell"]["engine"]), trend["runs"].clone())).collect();
    assert_eq!(cells, [("k6 2.2.0".to_owned(), json!(2)), ("k6 1.8.1".to_owned(), json!(1))]);
    let listed = user.get("/api/v1/runs?engine=k6+2.2.0").await.ok().json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(2));
    let command = ["run", "list", "--engine", "k6 1.8.1", "--json"];
    let listed: Value = serde_json::from_str(&as_user(&app, user.secret(), &command).await.ok()).expect("JSON");
    assert_eq!(listed["runs"][0]["engine"], json!({"name": "k6", "version": "1.8.1"}), "{listed}");
}

#[tokio::test]
async fn a_trend_has_versions_with_intervals_and_changes_in_both_directions() {
    let app = App::start().await;
    let user = app.user().await;
    import_runs(&user, "1.0", 12, 1.0).await;
    import_runs(&user, "1.1", 12, 0.9).await;
    import_runs(&user, "1.2", 12, 1.05).await;
    // Invalid runs are in no trend.
    let down = "/api/v1/runs/import?target=servy&size=2/4GiB&scenario=hash&version=1.3";
    Answer::to(user.request(&reqwest::Method::POST, down).body(target_down())).await.ok();
    let (info, path) = only_cell(&user).await;
    assert_eq!((&info["runs"], &info["open"]), (&json!(36), &json!(4)), "throughput and p99 both changed twice");
    let trend = user.get(&path).await.ok().json();
    assert_eq!(trend["points"].as_array().map(Vec::len), Some(36));
    let spans = trend["spans"].as_array().expect("spans");
    let versions: Vec<_> = spans.iter().map(|span| text(&span["version"])).collect();
    assert_eq!(versions, ["1.0", "1.1", "1.2"]);
    for span in spans {
        let [low, median, high] = ["low", "median", "high"].map(|name| span[name].as_f64().expect("a figure"));
        assert!(low <= median && median <= high, "{span}");
    }
    let changes = trend["changes"].as_array().expect("changes");
    let directions: Vec<_> =
        changes.iter().map(|change| (text(&change["version"]), change["improved"].clone())).collect();
    assert_eq!(directions, [("1.1".to_owned(), json!(false)), ("1.2".to_owned(), json!(true))]);
    let p99 = user.get(&format!("{path}?metric=p99_ms")).await.ok().json();
    assert_eq!(p99["changes"][0]["improved"], false, "a higher latency is worse");
    user.get(&format!("{path}?metric=beauty")).await.refused(422);
    user.get("/api/v1/trends/servy/0000000000000000").await.refused(404);
}

#[tokio::test]
async fn annotations_stay_when_runs_are_added_or_deleted() {
    let app = App::start().await;
    let (user, reader) = (app.user().await, app.reader().await);
    import_runs(&user, "1.0", 12, 1.0).await;
    import_runs(&user, "1.1", 6, 0.9).await;
    let (_, path) = only_cell(&user).await;
    let trend = user.get(&path).await.ok().json();
    let first = text(&trend["changes"][0]["run"]);
    let at = format!("{path}/changes/{first}");
    reader.put(&at, &json!({"status": "dismissed"})).await.refused(403);
    user.put(&at, &json!({"status": "unsure"})).await.refused(422);
    user.put(&format!("{path}/changes/nobody"), &json!({"status": "dismissed"})).await.refused(404);
    let annotated = user.put(&at, &json!({"status": "dismissed", "note": "the switch"})).await.ok().json();
    assert_eq!((open(&annotated), &annotated["changes"][0]["annotation"]["note"]), (0, &json!("the switch")));

    import_runs(&user, "1.1", 14, 0.9).await;
    assert_eq!(open(&user.get(&path).await.ok().json()), 0);
    // A second change is open, and annotating it does not affect the first.
    import_runs(&user, "1.2", 12, 1.0).await;
    let trend = user.get(&path).await.ok().json();
    assert_eq!((open(&trend), trend["changes"].as_array().map(Vec::len)), (1, Some(2)));
    let second = text(&trend["changes"][1]["run"]);
    let both = user.put(&format!("{path}/changes/{second}"), &json!({"status": "confirmed"})).await.ok().json();
    assert_eq!(open(&both), 0);
    let statuses: Vec<_> =
        both["changes"].as_array().expect("two").iter().map(|change| text(&change["annotation"]["status"])).collect();
    assert_eq!(statuses, ["dismissed", "confirmed"]);
    // Neither deleting the runs of the annotations nor reopening a change reopens an older change.
    user.delete(&format!("/api/v1/runs/{first}")).await.ok();
    user.delete(&format!("/api/v1/runs/{second}")).await.ok();
    let trend = user.get(&path).await.ok().json();
    assert_eq!((open(&trend), trend["changes"].as_array().map(Vec::len)), (0, Some(2)), "{}", trend["changes"]);
    let current = text(&trend["changes"][1]["run"]);
    let back = user.delete(&format!("{path}/changes/{current}")).await.ok().json();
    assert_eq!(open(&back), 1);
    assert_eq!(back["changes"][0]["annotation"]["status"], "dismissed");
    user.delete(&format!("{path}/changes/{current}")).await.refused(404);
    let log = app.admin().await.get("/api/v1/audit?action=change%20annotated").await.ok().json();
    let statuses: Vec<_> =
        log["entries"].as_array().expect("entries").iter().map(|entry| text(&entry["detail"]["status"])).collect();
    assert_eq!(statuses, ["open", "confirmed", "dismissed"]);
}

#[tokio::test]
async fn the_page_shows_chart_and_table_and_accepts_an_annotation() {
    let app = App::start().await;
    let user = app.user().await;
    let person = app.signed_in(Role::Member).await.in_browser();
    assert!(person.get("/trends").await.ok().text().contains("No valid or suspect runs"));
    import_runs(&user, "1.0", 12, 1.0).await;
    import_runs(&user, "1.1", 12, 0.9).await;
    let (info, _) = only_cell(&user).await;
    let list = person.get("/trends").await.ok().text();
    let path = format!("/trends/servy/{}", text(&info["cell"]["id"]));
    assert!(list.contains(&path) && list.contains("2 changes"), "{list}");
    let page = person.get(&path).await.ok().text();
    for part in ["data-chart", "Confirm", "Dismiss", "95 % interval", "1.1", "worse"] {
        assert!(page.contains(part), "{part}");
    }
    let trend = user.get(&format!("/api/v1{path}")).await.ok().json();
    let run = text(&trend["changes"][0]["run"]);
    let form = [("metric", "rps"), ("run", run.as_str()), ("status", "confirmed"), ("note", "<b>new parser</b>")];
    assert_eq!(annotate(&person, &path, &form).await.status, 303);
    let page = person.get(&path).await.ok().text();
    assert!(page.contains("confirmed by") && page.contains("new parser") && !page.contains("<b>new parser"), "{page}");
    let back = [("metric", "rps"), ("run", run.as_str()), ("status", "")];
    assert_eq!(annotate(&person, &path, &back).await.status, 303);
    assert!(person.get(&path).await.ok().text().contains("Dismiss"));
    let viewer = app.signed_in(Role::Viewer).await.in_browser();
    assert!(!viewer.get(&path).await.ok().text().contains("Confirm"));
}

#[tokio::test]
async fn the_command_lists_shows_and_annotates_trends() {
    let app = App::start().await;
    let user = app.user().await;
    import_runs(&user, "1.0", 12, 1.0).await;
    import_runs(&user, "1.1", 12, 0.9).await;
    let token = user.secret();
    let list = as_user(&app, token, &["trend", "list", "--json"]).await.json();
    let cell = text(&list["trends"][0]["cell"]["id"]);
    let table = as_user(&app, token, &["trend", "list", "--target", "servy"]).await.ok();
    assert!(table.contains(&cell) && table.contains("24"), "{table}");
    let shown = as_user(&app, token, &["trend", "show", "servy", &cell]).await.ok();
    assert!(shown.contains("1.1") && shown.contains("% worse  open"), "{shown}");
    let trend = as_user(&app, token, &["trend", "show", "servy", &cell, "--json"]).await.json();
    let run = text(&trend["changes"][0]["run"]);
    let end = run.rsplit('-').next().expect("a part");
    let annotated = as_user(&app, token, &["trend", "dismiss", "servy", &cell, end, "--note", "the switch"]).await.ok();
    assert!(annotated.contains("dismissed by") && annotated.contains("the switch"), "{annotated}");
    let again = as_user(&app, token, &["trend", "reopen", "servy", &cell, end]).await.ok();
    assert!(again.contains("worse  open"), "{again}");
}

#[tokio::test]
async fn an_experiment_is_one_point_and_daily_offsets_are_no_changes() {
    let app = App::start().await;
    let user = app.user().await;
    // The runs of a day share an offset. As separate points they would show a change a day.
    let days = [1.0, 1.03, 0.98, 1.01, 0.97, 1.02, 1.04, 0.99, 1.0, 0.96, 1.03, 1.0];
    import_experiments(&user, "1.0", &days).await;
    let (info, path) = only_cell(&user).await;
    assert_eq!((&info["runs"], &info["open"]), (&json!(36), &json!(0)));
    let trend = user.get(&path).await.ok().json();
    let points = trend["points"].as_array().expect("points");
    assert_eq!(points.len(), 12);
    for point in points {
        let runs = point["runs"].as_array().expect("runs");
        let mut values: Vec<f64> = runs.iter().map(|run| run["value"].as_f64().expect("a figure")).collect();
        values.sort_by(f64::total_cmp);
        assert_eq!((runs.len(), point["value"].as_f64()), (3, Some(values[1])), "{point}");
        assert!(point["experiment"].is_string(), "{point}");
    }
    assert_eq!((&trend["spans"][0]["points"], &trend["spans"][0]["runs"]), (&json!(12), &json!(36)));
    let page = user.clone().in_browser().get(&path.replace("/api/v1", "")).await.ok().text();
    assert!(page.contains("All 12 points with 36 runs") && page.contains("No change in 12 points"), "{page}");
}

#[tokio::test]
async fn an_annotation_at_any_run_of_an_experiment_applies_to_its_change() {
    let app = App::start().await;
    let user = app.user().await;
    import_experiments(&user, "1.0", &[1.0, 1.004, 0.996, 1.002, 0.998, 1.001, 1.003, 0.997, 1.0, 0.999]).await;
    let after = import_experiments(&user, "1.1", &[0.9, 0.903, 0.898, 0.901, 0.9]).await;
    let (_, path) = only_cell(&user).await;
    let trend = user.get(&path).await.ok().json();
    assert_eq!((open(&trend), trend["changes"][0]["run"].as_str()), (1, Some(after[0].as_str())), "{trend}");
    // As stored by versions in which runs were points: it names a run in the middle of the experiment.
    let cell = text(&trend["cell"]["id"]);
    sqlx::query(
        "insert into trend_annotation (target, cell, metric, run_id, run_at, rise, ratio, status, note, annotated_by, annotated_at)
         select 'servy', ?, 'rps', id, queued_at, 0, 0.9, 'confirmed', 'the parser', 'ada', 1 from run where id = ?",
    )
    .bind(&cell)
    .bind(&after[4])
    .execute(&app.state.db.write)
    .await
    .expect("an annotation");
    let trend = user.get(&path).await.ok().json();
    let annotation = &trend["changes"][0]["annotation"];
    assert_eq!((open(&trend), &annotation["note"]), (0, &json!("the parser")), "{trend}");
    // Any run of the experiment after the change can be used to reopen or annotate the change.
    let back = user.delete(&format!("{path}/changes/{}", after[1])).await.ok().json();
    assert_eq!(open(&back), 1);
    let annotated =
        user.put(&format!("{path}/changes/{}", after[2]), &json!({"status": "dismissed"})).await.ok().json();
    assert_eq!(annotated["changes"][0]["annotation"]["run"].as_str(), Some(after[0].as_str()));
}

#[tokio::test]
async fn each_user_pins_trends_to_the_dashboard() {
    let app = App::start().await;
    let importer = app.user().await;
    import_runs(&importer, "1.0", 12, 1.0).await;
    import_runs(&importer, "1.1", 12, 0.9).await;
    let (_, path) = only_cell(&importer).await;
    let page = path.strip_prefix("/api/v1").expect("a path").to_owned();
    let (ada, eve) = (app.signed_in(Role::Viewer).await, app.signed_in(Role::Member).await);
    let dashboard = async |who: &Actor| who.clone().in_browser().get("/").await.ok().text();
    let unpinned = dashboard(&ada).await;
    assert!(unpinned.contains("Largest changes") && unpinned.contains("since 1.1"), "{unpinned}");
    assert!(ada.clone().in_browser().get(&page).await.ok().text().contains(">Pin</button>"));

    let pinned = ada.form(&format!("{page}/pin"), &[("metric", "p99_ms")]).await;
    assert_eq!((pinned.status.as_u16(), pinned.header("location")), (303, &*format!("{page}?metric=p99_ms")));
    ada.form(&format!("{page}/pin"), &[("metric", "rps")]).await;
    assert!(ada.clone().in_browser().get(&page).await.ok().text().contains(">Unpin</button>"));
    let own = dashboard(&ada).await;
    for text in
        ["24 results, from ", "change point at result 13: −", "since 1.1", "95 % interval", "review", "spark wide t"]
    {
        assert!(own.contains(text), "{text}: {own}");
    }
    assert_eq!(own.matches("spark wide").count(), 1, "pinned twice, shown once");
    assert!(own.contains("Trends you pinned") && !dashboard(&eve).await.contains("Trends you pinned"));
    // An annotation is shown at once, although the runs have not changed.
    let first = text(&importer.get(&path).await.ok().json()["changes"][0]["run"]);
    importer.put(&format!("{path}/changes/{first}"), &json!({"status": "dismissed"})).await.ok();
    let annotated = dashboard(&ada).await;
    assert!(
        annotated.contains("no change in 24 points") && !annotated.contains("change point at result"),
        "{annotated}"
    );
    assert!(!dashboard(&eve).await.contains("Largest changes"), "a dismissed change is no news");

    // Without runs the pin remains, and can be removed.
    sqlx::query("update run set deleted_at = 1").execute(&app.state.db.write).await.expect("runs");
    let empty = dashboard(&ada).await;
    assert!(empty.contains("This cell has no more valid runs.") && empty.contains(&format!("{page}/unpin")), "{empty}");
    let gone = ada.form(&format!("{page}/unpin"), &[]).await;
    assert_eq!((gone.status.as_u16(), gone.header("location")), (303, "/"));
    assert!(!dashboard(&ada).await.contains(r#"id="trends""#));
    assert_eq!(ada.form(&format!("{page}/unpin"), &[]).await.status.as_u16(), 404);
}

#[tokio::test]
async fn pins_are_bounded_and_managed_by_api_and_command() {
    let app = App::start().await;
    let user = app.signed_in(Role::Member).await;
    let mut paths = Vec::new();
    for count in 0..13 {
        let target = format!("target-{count:02}");
        repetitions(&user, &target, "1", 1, 1.0).await;
        let list = user.get(&format!("/api/v1/trends?target={target}")).await.ok().json();
        paths.push(format!("/api/v1/trends/{target}/{}", text(&list["trends"][0]["cell"]["id"])));
    }
    for path in &paths[..12] {
        user.put(&format!("{path}/pin"), &()).await.ok();
    }
    user.put(&format!("{}/pin", paths[0]), &()).await.ok();
    let refusal = user.put(&format!("{}/pin", paths[12]), &()).await.refused(409);
    assert!(refusal.contains("you have pinned 12 trends; unpin one first"), "{refusal}");
    let pins = user.get("/api/v1/pins").await.ok().json();
    assert_eq!(pins["pins"].as_array().map(Vec::len), Some(12));
    user.put("/api/v1/trends/target-00/0000000000000000/pin", &()).await.refused(404);
    app.user().await.get("/api/v1/pins").await.refused(409);

    let made = user.post("/api/v1/tokens", &json!({"name": "laptop", "scope": "submit"})).await;
    let secret = text(&made.ok().json()["secret"]);
    let cell = paths[0].rsplit('/').next().expect("a cell");
    let printed = as_user(&app, &secret, &["trend", "unpin", "target-00", cell]).await.ok();
    assert!(!printed.contains("target-00") && printed.contains("target-11"), "{printed}");
    as_user(&app, &secret, &["trend", "pin", "target-00", cell]).await.ok();
    let printed = as_user(&app, &secret, &["trend", "pins"]).await.ok();
    let last = printed.lines().last().expect("a line");
    assert!(last.starts_with("target-00") && last.contains(cell) && last.contains("hash"), "{printed}");
    app.admin().await.delete(&format!("/api/v1/users/{}", url_name(&user).await)).await.ok();
    let left: i64 =
        sqlx::query_scalar("select count(*) from trend_pin").fetch_one(&app.state.db.read).await.expect("a count");
    assert_eq!(left, 0, "a removed user leaves no pins");
}

/// Returns the user's name as a path segment.
async fn url_name(user: &Actor) -> String {
    brewbench::web::address::segment(&text(&user.get("/api/v1/account").await.ok().json()["name"]))
}
