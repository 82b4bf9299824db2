//! Maintenance: backups, restore, integrity check, readiness, metrics, retention, logs, and installation.

use std::{fs, path::Path, time::Duration};

use brewbench::{
    app::db,
    auth::model::{Role, Scope},
    maintenance::{integrity_check, retention},
};
use brewbench_testing::SmallDisk;
use brewbench_wire::{now_ms, outcome::Outcome};
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    program::{Output, PROGRAM, Running, Tools, as_user, brewbench},
    root,
    series::matching_series,
    submit::{plan_with, submit},
    summaries::good,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Runs a command on a data folder.
async fn on_data(arguments: &[&str], data: &Path) -> Output {
    let mut command = brewbench(arguments);
    command.arg("--data").arg(data);
    Output::of(command).await
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Restores a backup and returns its number of runs.
async fn runs_of(backup: &Path) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    on_data(&["restore", &backup.display().to_string()], folder.path()).await.ok();
    let app = App::on(folder, |_| ()).await;
    app.reader().await.count_runs().await
}

#[tokio::test]
async fn a_backup_during_imports_is_consistent() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.token_secret(Scope::Admin, None).await);
    for _ in 0..5 {
        user.import(good()).await.ok();
    }
    let to = tempfile::tempdir().expect("a folder");
    let (local, remote) = (to.path().join("local.db"), to.path().join("remote.db"));
    let (local_text, remote_text) = (local.display().to_string(), remote.display().to_string());
    let more = async {
        for _ in 0..20 {
            user.import(good()).await.ok();
        }
    };
    let by_command = async { on_data(&["backup", &local_text], app.data()).await };
    let by_token = async { as_user(&app, &admin, &["backup", &remote_text, "--json"]).await };
    let ((), by_command, by_token) = tokio::join!(more, by_command, by_token);
    assert!(by_command.ok().contains("local.db: "));
    assert_eq!(by_token.json()["bytes"], fs::metadata(&remote).expect("a file").len());
    assert_eq!(names(to.path()), ["local.db", "remote.db"], "no temporary files are left");
    for backup in [&local, &remote] {
        let found = integrity_check::check(backup).await.expect("a database");
        assert!(found.is_well(), "{found:?}");
        let runs = runs_of(backup).await;
        assert!((5..=25).contains(&runs), "{runs}");
    }
    assert!(!names(app.data()).iter().any(|name| name.starts_with(".handing-out")), "{:?}", names(app.data()));
    assert_eq!(user.count_runs().await, 25);
}

#[tokio::test]
async fn a_backup_overwrites_files_only_with_force_and_is_for_administrators() {
    let app = App::start().await;
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("mine.db");
    fs::write(&file, "mine").expect("a file");
    let text = file.display().to_string();
    let admin = app.token_secret(Scope::Admin, None).await;
    for done in [on_data(&["backup", &text], app.data()).await, as_user(&app, &admin, &["backup", &text]).await] {
        assert!(done.refused(1).contains("mine.db already exists; choose another file, or use --force"));
    }
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    let user = app.token_secret(Scope::Submit, None).await;
    assert!(as_user(&app, &user, &["backup", &text, "--force"]).await.refused(1).contains("needs the scope admin"));
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    as_user(&app, &admin, &["backup", &text, "--force"]).await.ok();
    assert!(fs::read(&file).expect("a file").starts_with(b"SQLite format 3\0"));
    let nowhere = to.path().join("nowhere/a.db").display().to_string();
    assert!(on_data(&["backup", &nowhere], app.data()).await.refused(1).contains("can't be written"));
    let empty = tempfile::tempdir().expect("a folder");
    assert!(on_data(&["backup", &nowhere], empty.path()).await.refused(1).contains("nowhere/a.db"));
    let other = to.path().join("other.db").display().to_string();
    assert!(on_data(&["backup", &other], empty.path()).await.refused(1).contains("there is no database at"));
    assert_eq!(names(to.path()), ["mine.db"]);
}

#[tokio::test]
async fn a_backup_on_a_full_disk_leaves_no_files_and_the_server_goes_on() {
    let Some(disk) = SmallDisk::mount("48m") else { return };
    let app = App::on(tempfile::tempdir_in(disk.path()).expect("a folder"), |_| ()).await;
    let (user, api) = (app.user().await, app.admin().await);
    let admin = app.token_secret(Scope::Admin, None).await;
    user.import(good()).await.ok();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let (full, roomy) = (disk.path().join("a.db").display().to_string(), elsewhere.path().join("a.db"));
    let roomy = roomy.display().to_string();
    let filler = disk.fill();
    let before = names(app.data());
    // The server copies into its data folder first, the command beside the file that it writes.
    for done in [as_user(&app, &admin, &["backup", &roomy]).await, on_data(&["backup", &full], app.data()).await] {
        let error = done.refused(1);
        assert!(error.contains("full"), "{error}");
    }
    let error = api.get("/api/v1/backup").await.refused(507);
    assert!(error.contains("the server's disk is full"), "{error}");
    assert_eq!(names(app.data()), before, "no partial backup is left");
    assert_eq!(names(disk.path()).iter().filter(|name| name.contains("backup")).count(), 0);
    assert_eq!(names(elsewhere.path()), [""; 0]);
    user.get("/runs").await.ok();
    fs::remove_file(filler).expect("room");
    user.import(good()).await.ok();
    as_user(&app, &admin, &["backup", &roomy]).await.ok();
    assert_eq!(runs_of(Path::new(&roomy)).await, 2);
}

#[tokio::test]
async fn the_settings_page_shows_the_last_backup_and_offers_a_download() {
    let app = App::start().await;
    let (viewer, admin) =
        (app.signed_in(Role::Viewer).await.in_browser(), app.signed_in(Role::Admin).await.in_browser());
    let page = viewer.get("/settings").await.ok().text();
    assert!(page.contains("none in the last year") && !page.contains("/api/v1/backup"), "{page}");
    assert!(admin.get("/settings").await.ok().text().contains(r#"href="/api/v1/backup""#));
    let backup = admin.get("/api/v1/backup").await.ok();
    assert!(backup.body.starts_with(b"SQLite format 3\0"));
    assert_eq!(backup.header("content-length"), backup.body.len().to_string());
    assert!(backup.header("content-disposition").contains(".db\""), "{:?}", backup.headers);
    let page = viewer.get("/settings").await.ok().text();
    assert!(page.contains("just now") && !page.contains("none in the last year"), "{page}");
    let log = app.admin().await.get("/api/v1/audit?action=backup+created").await.ok().json();
    assert_eq!(log["entries"][0]["detail"]["bytes"], backup.body.len());
}

#[tokio::test]
async fn a_backup_is_restored_and_the_previous_database_is_kept() {
    let app = App::start().await;
    let user = app.user().await;
    user.import(good()).await.ok();
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("a.db");
    let text = file.display().to_string();
    on_data(&["backup", &text], app.data()).await.ok();
    user.import(good()).await.ok();
    let error = on_data(&["restore", &text], app.data()).await.refused(1);
    assert!(error.contains("is in use by another brewbench server"), "{error}");
    assert_eq!(user.count_runs().await, 2);

    let folder = app.stop().await;
    let done = on_data(&["restore", &text], folder.path()).await;
    assert!(done.err.contains("restored 1 run from") && done.err.contains("brewbench.db.before-"), "{}", done.err);
    done.ok();
    let aside: Vec<_> = names(folder.path()).into_iter().filter(|name| name.contains(".before-")).collect();
    let [aside] = aside.as_slice() else { panic!("{aside:?}") };
    assert_eq!(runs_of(&folder.path().join(aside)).await, 2);
    let app = App::on(folder, |_| ()).await;
    let admin = app.admin().await;
    assert_eq!(admin.count_runs().await, 1);
    let log = admin.get("/api/v1/audit?action=database+restored").await.ok().json();
    assert_eq!(log["entries"][0]["object"], text);
}

/// A data folder with a run, whose server has stopped.
async fn left_behind() -> TempDir {
    let app = App::start().await;
    app.user().await.import(good()).await.ok();
    app.stop().await
}

#[tokio::test]
async fn invalid_backups_are_refused_and_nothing_changes() {
    let folder = left_behind().await;
    let before = names(folder.path());
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("bad.db");
    let refused = async |bytes: &[u8]| {
        fs::write(&file, bytes).expect("a file");
        on_data(&["restore", &file.display().to_string()], folder.path()).await.refused(1)
    };
    let intact = fs::read(folder.path().join(db::FILE)).expect("a file");
    let mut damaged = intact.clone();
    let half = damaged.len() / 2;
    damaged[half..].fill(7);
    for bytes in [b"a text that is long enough for the header of a database".as_slice(), &intact[..half], &damaged] {
        let error = refused(bytes).await;
        assert!(
            error.contains("cannot restore ") && error.contains("bad.db: ") && error.contains("damaged"),
            "{error}"
        );
    }
    assert!(refused(b"").await.contains("not a brewbench database"));
    let newer = db::open(to.path()).await.expect("a database");
    sqlx::query(
        "update _sqlx_migrations set version = 9999 where version = (select max(version) from _sqlx_migrations)",
    )
    .execute(&newer.write)
    .await
    .expect("a later version");
    newer.close().await;
    let bytes = fs::read(to.path().join(db::FILE)).expect("a file");
    assert!(refused(&bytes).await.contains("written by a newer brewbench (migration 9999)"));
    fs::write(to.path().join("bad.db-wal"), "changes that are not in the file yet").expect("a file");
    assert!(refused(&intact).await.contains("bad.db-wal"));
    let missing = on_data(&["restore", "/nowhere/a.db"], folder.path()).await.refused(1);
    assert!(missing.contains("/nowhere/a.db"), "{missing}");
    assert_eq!(names(folder.path()), before);
    assert_eq!(App::on(folder, |_| ()).await.reader().await.count_runs().await, 1);
}

#[tokio::test]
async fn the_integrity_check_names_each_problem() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    for _ in &runs {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    user.import(good()).await.ok();
    let passed = on_data(&["check"], app.data()).await.ok();
    assert!(passed.contains("ok: 4 runs"), "{passed}");
    let json = on_data(&["check", "--json"], app.data()).await.json();
    assert_eq!((&json["runs"], &json["faults"], &json["unfit"]), (&json!(4), &json!([]), &json!(null)));

    let folder = app.stop().await;
    let pool = db::open_existing(&folder.path().join(db::FILE)).await.expect("a database");
    let damage = async |sql: String| {
        sqlx::query("pragma foreign_keys = off").execute(&pool).await.expect("off");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&pool).await.expect("a damaged row");
    };
    damage(format!("delete from run where id = '{}'", runs[0])).await;
    damage(format!("delete from run_summary where run_id = '{}'", runs[1])).await;
    damage(format!("update run_evidence set body = x'00' where run_id = '{}'", runs[2])).await;
    pool.close().await;
    let done = on_data(&["check"], folder.path()).await;
    assert_eq!(done.code, Some(1));
    for fault in [
        "run_summary: 1 row whose run is missing",
        "run_evidence: 1 row whose run is missing",
        "1 finished run without a summary",
        &format!("the evidence of run {} can't be read", runs[2]),
    ] {
        assert!(done.out.contains(fault), "{fault}: {}", done.out);
    }
    let empty = tempfile::tempdir().expect("a folder");
    assert!(on_data(&["check"], empty.path()).await.refused(1).contains("there is no database at"));
    fs::write(
        empty.path().join(db::FILE),
        "not a database, but longer than the header of one, which has 100 bytes in SQLite",
    )
    .expect("a file");
    let done = on_data(&["check"], empty.path()).await;
    assert!(done.code == Some(1) && done.out.contains("unusable: "), "{done:?}");
}

#[tokio::test]
async fn a_server_is_ready_only_while_its_database_is_writable() {
    let app = App::start().await;
    let nobody = app.anonymous();
    assert_eq!(nobody.get("/readyz").await.ok().text(), "ready");
    let other = db::open_existing(&app.data().join(db::FILE)).await.expect("a database");
    let lock = other.begin_with("begin immediate").await.expect("the lock of writers");
    assert_eq!(nobody.get("/readyz").await.refused(503), "the database is busy");
    assert_eq!(nobody.get("/healthz").await.ok().text(), "ok", "the server is alive");
    lock.rollback().await.expect("released");
    app.until("readiness", async || nobody.get("/readyz").await.status.is_success().then_some(())).await;
    sqlx::query(
        "update _sqlx_migrations set version = 9999 where version = (select max(version) from _sqlx_migrations)",
    )
    .execute(&app.state.db.write)
    .await
    .expect("another version");
    assert_eq!(nobody.get("/readyz").await.refused(503), "the database schema is not at this version's migration");
}

#[tokio::test]
async fn metrics_cover_runs_agents_requests_and_the_database() {
    let app = App::start().await;
    let (user, reader) = (app.user().await, app.reader().await);
    let mut agent = Agent::start(&app, "rack \"1\"").await;
    submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let _job = agent.job().await;
    user.import(good()).await.ok();
    reader.get("/api/v1/backup").await.refused(403);
    app.admin().await.get("/api/v1/backup").await.ok();
    let answer = reader.get("/metrics").await.ok();
    assert_eq!(answer.header("content-type"), "application/openmetrics-text; version=1.0.0; charset=utf-8");
    let text = answer.text();
    for line in [
        "brewbench_runs{phase=\"finished\"} 2.0",
        "brewbench_runs{phase=\"queued\"} 1.0",
        "brewbench_queue_length 1.0",
        "brewbench_agents_connected 1.0",
        "brewbench_agent_connected{agent=\"rack \\\"1\\\"\"} 1.0",
        "brewbench_agent_busy{agent=\"rack \\\"1\\\"\"} 1.0",
        "brewbench_http_request_duration_seconds_count{kind=\"api\",status=\"4xx\"} 1",
    ] {
        assert!(text.lines().any(|known| known == line), "{line}: {text}");
    }
    let value = |name: &str| -> f64 {
        let line = text.lines().find(|line| line.starts_with(&format!("{name} ")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("{name}: {text}"))
    };
    let now = now_ms() as f64 / 1e3;
    for name in ["brewbench_last_import_timestamp_seconds", "brewbench_last_backup_timestamp_seconds"] {
        assert!((now - 600.0..=now).contains(&value(name)), "{name}");
    }
    assert!(value("brewbench_database_bytes{part=\"file\"}") >= 4096.0);
    assert!(value("brewbench_connections") >= 2.0, "those of the agent and of this client");
    // Each family is declared once, before its samples.
    let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len(), "{families:?}");
    app.anonymous().get("/metrics").await.refused(401);
}

#[tokio::test]
async fn the_doctor_of_a_server_names_what_needs_attention() {
    let app = App::start().await;
    let admin = app.admin().await;
    let done = as_user(&app, admin.secret(), &["doctor", "--json"]).await;
    assert_eq!(done.code, Some(1), "{}", done.err);
    let findings: Vec<serde_json::Value> = serde_json::from_str(&done.out).expect("JSON");
    let ranks: Vec<_> = findings.iter().map(|finding| (&finding["check"], &finding["rank"])).collect();
    assert!(ranks.contains(&(&json!("backup"), &json!("doubtful"))), "{ranks:?}");
    for fine in ["server", "clock", "database", "agents", "alerts"] {
        assert!(ranks.contains(&(&json!(fine), &json!("good"))), "{fine}: {ranks:?}");
    }
    admin.get("/api/v1/backup").await.ok();
    let after = as_user(&app, admin.secret(), &["doctor"]).await;
    assert!(after.out.contains("last made 20") && !after.out.contains("none was made"), "{}", after.out);

    let url = app.url.clone();
    app.stop().await;
    let mut command = brewbench(&["doctor"]);
    command.env("BREWBENCH_URL", url.as_str()).env("BREWBENCH_TOKEN", "bbt_x");
    let stopped = Output::of(command).await;
    assert_eq!(stopped.code, Some(1));
    assert!(stopped.out.starts_with("bad       server"), "{}", stopped.out);
}

/// Measures a run with a series of some seconds; returns its id.
async fn measure(app: &App, user: &Actor) -> String {
    let mut agent = Agent::start(app, "rack").await;
    let (_, runs) = submit(user, &plan_with(&json!({"repetitions": 1}))).await;
    let job = agent.job().await;
    agent.end(Outcome { series: Some(matching_series(&good())), ..outcome(&job, &good()) }).await;
    runs[0].clone()
}

#[tokio::test]
async fn retention_downsamples_then_deletes_series_and_keeps_metrics() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.token_secret(Scope::Admin, None).await);
    let run = measure(&app, &user).await;
    let path = format!("/api/v1/runs/{run}/series");
    let apply = async |days: i64| retention::apply(&app.state, now_ms() + days * DAY_MS).await.expect("applied");
    let points = async || user.get(&path).await.ok().json()["measured"]["seconds"].as_array().expect("points").len();
    let (full, before) = (points().await, user.run(&run).await);
    let latencies = user.get(&path).await.ok().json()["measured"]["succeeded"].clone();

    assert_eq!(as_user(&app, &admin, &["retention"]).await.ok(), "series are kept forever\n");
    assert_eq!(apply(4_000).await, 0, "off by default");
    let rule = as_user(&app, &admin, &["retention", "--downsample-after", "90"]).await.ok();
    assert!(rule.starts_with("series are downsampled after 90 days; set by token admin"), "{rule}");
    assert_eq!((apply(89).await, points().await), (0, full));
    assert_eq!(apply(91).await, 1);
    let downsampled = points().await;
    assert!(downsampled < full && downsampled == full.div_ceil(10), "{full} → {downsampled}");
    assert_eq!(
        user.get(&path).await.ok().json()["measured"]["succeeded"],
        latencies,
        "histograms are merged without loss"
    );
    assert_eq!(apply(91).await, 0, "nothing is left to do");
    let page = user.clone().in_browser().get(&format!("/runs/{run}")).await.ok().text();
    assert!(page.contains("downsampled to points of ten seconds"), "{page}");

    let report = as_user(&app, &admin, &["run", "rejudge", "--all", "--json"]).await.json();
    assert!(report.to_string().contains("downsampled or deleted by retention"), "{report}");
    as_user(&app, &admin, &["retention", "--delete-after", "30"]).await.ok();
    assert_eq!(apply(31).await, 1);
    assert!(user.get(&path).await.refused(404).contains("retention deleted it"));
    let page = user.clone().in_browser().get(&format!("/runs/{run}")).await.ok().text();
    assert!(page.contains("<dt>Time series</dt><dd>deleted") && page.contains("17,070"), "{page}");
    assert_eq!(user.run(&run).await, before, "metrics and verdict stay");

    assert_eq!(as_user(&app, &admin, &["retention", "--off"]).await.ok(), "series are kept forever\n");
    let log = app.admin().await.get("/api/v1/audit").await.ok().json();
    let actions: Vec<_> =
        log["entries"].as_array().expect("a list").iter().map(|entry| entry["action"].clone()).collect();
    let count = |action: &str| actions.iter().filter(|what| **what == action).count();
    assert_eq!((count("retention set"), count("series reduced")), (3, 2), "{actions:?}");
}

#[tokio::test]
async fn a_retention_rule_takes_effect_after_an_hour() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    measure(&app, &user).await;
    let age = sqlx::query("update run set finished_at = finished_at - ?").bind(400 * DAY_MS);
    age.execute(&app.state.db.write).await.expect("an old run");
    admin.put("/api/v1/retention", &json!({"after_days": 30, "reduction": "delete"})).await.ok();
    let after = async |minutes: i64| retention::apply(&app.state, now_ms() + minutes * 60_000).await.expect("applied");
    assert_eq!((after(59).await, after(61).await), (0, 1));
}

#[tokio::test]
async fn administrators_set_retention_on_the_settings_page() {
    let app = App::start().await;
    let (member, admin) =
        (app.signed_in(Role::Member).await.in_browser(), app.signed_in(Role::Admin).await.in_browser());
    let page = member.get("/settings").await.ok().text();
    assert!(page.contains("kept forever") && !page.contains("/settings/series"), "{page}");
    let downsample = [("reduction", "downsample"), ("days", " 90 ")];
    assert_eq!(member.form("/settings/series", &downsample).await.status, StatusCode::FORBIDDEN);
    assert_eq!(admin.form("/settings/series", &downsample).await.status, StatusCode::SEE_OTHER);
    assert!(member.get("/settings").await.ok().text().contains("downsampled after 90 days"));
    for bad in [
        [("reduction", "downsample"), ("days", "soon")],
        [("reduction", "downsample"), ("days", "0")],
        [("reduction", "burn"), ("days", "9")],
    ] {
        assert_eq!(admin.form("/settings/series", &bad).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad:?}");
    }
    let rule = app.reader().await.get("/api/v1/retention").await.ok().json();
    assert_eq!(rule["rule"], json!({"after_days": 90, "reduction": "downsample"}));
    assert_eq!(
        admin.form("/settings/series", &[("reduction", "keep"), ("days", "90")]).await.status,
        StatusCode::SEE_OTHER
    );
    assert_eq!(app.reader().await.get("/api/v1/retention").await.ok().json()["rule"], json!(null));
}

#[tokio::test]
async fn a_json_log_is_one_object_per_line() {
    let Some(tools) = Tools::find() else { return };
    let state = tempfile::tempdir().expect("a folder");
    // Nothing listens there.
    let mut command = brewbench(&["agent", "--server", "http://127.0.0.1:1/", "--log", "json"]);
    command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).env("BREWBENCH_AGENT_KEY", "bba_nothing");
    let mut agent = Running::start(command);
    agent.wait_for("failed to connect").await;
    let log = agent.stderr();
    let lines: Vec<serde_json::Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))).collect();
    assert!(lines.iter().any(|line| line["level"] == "WARN" && line["server"] == "http://127.0.0.1:1/"), "{log}");
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    agent.ended(Duration::from_secs(20)).await;
}

#[tokio::test]
async fn each_request_is_logged_if_wanted_without_the_secrets_of_links() {
    let data = tempfile::tempdir().expect("a folder");
    let mut command = brewbench(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data").arg(data.path()).env("RUST_LOG", "info,brewbench::access=debug");
    let server = Running::start(command);
    let address = server.wait_for("listens on ").await;
    let visitor = Actor::anonymous(&format!("http://{address}/").parse().expect("a URL"));
    visitor.get("/shared/of-a-link").await.refused(404);
    server.wait_for("route=\"/shared/{").await;
    let log = server.stderr();
    assert!(log.contains("status=404") && log.contains("method=GET") && !log.contains("of-a-link"), "{log}");
}

/// A script of the repository.
fn script(name: &str) -> Command {
    Command::new(root().join(name))
}

#[tokio::test]
async fn what_is_installed_below_a_prefix_runs_from_there() {
    if Tools::find().is_none() {
        return;
    }
    let root = tempfile::tempdir().expect("a folder");
    let install = async |argument: &Path| {
        let mut install = script("deploy/install.sh");
        install.arg(argument).env("PREFIX", "/opt/brewbench").env("DESTDIR", root.path());
        Output::of(install).await.ok()
    };
    let built = Path::new(PROGRAM).parent().expect("a folder");
    install(built).await;
    let mut version = Command::new(root.path().join("opt/brewbench/bin/brewbench"));
    version.arg("--version");
    assert!(Output::of(version).await.ok().starts_with("brewbench "));
    for (unit, start) in [("brewbench", "serve"), ("brewbench-agent", "agent")] {
        // systemd does not look below this prefix.
        let file = root.path().join(format!("etc/systemd/system/{unit}.service"));
        let text = fs::read_to_string(&file).expect("a unit");
        let line = format!("ExecStart=/opt/brewbench/lib/brewbench/brewbench {start}\n");
        assert!(text.contains(&line) && !text.contains("@LIB@"), "{text}");
    }

    let edited = root.path().join("etc/brewbench/targets/go-nethttp.toml");
    let manifest = fs::read_to_string(&edited).expect("a manifest");
    assert!(manifest.contains("command = [\"/opt/brewbench/lib/brewbench/targets/bin/go-nethttp\""), "{manifest}");
    fs::write(&edited, "# mine").expect("a file");
    assert!(install(built).await.contains("kept, because it was edited: "));
    assert_eq!(fs::read_to_string(&edited).expect("a manifest"), "# mine");
    install(Path::new("--remove")).await;
    assert!(!root.path().join("opt/brewbench/lib/brewbench").exists() && edited.exists());
}
