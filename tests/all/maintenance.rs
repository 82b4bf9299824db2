//! Keeping a server running: backups and the way back, looking for damage, being asked how it is, old series.

use std::{fs, path::Path, time::Duration};

use brewbench::{
    app::db,
    auth::model::{Role, Scope},
    maintenance::{integrity_check, retention},
};
use brewbench_agent::wire::{now_ms, outcome::Outcome};
use brewbench_testing::SmallDisk;
use reqwest::StatusCode;
use serde_json::json;
use tempfile::TempDir;
use tokio::process::Command;

use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    program::{Output, PROGRAM, Running, Tools, as_user, brewbench},
    series::matching_series,
    submit::{plan_with, submit},
    summaries::good,
};

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The program on a data folder.
async fn owner(arguments: &[&str], data: &Path) -> Output {
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

/// How many runs a backup has, once it is somebody's database.
async fn runs_of(backup: &Path) -> usize {
    let folder = tempfile::tempdir().expect("a folder");
    owner(&["restore", &backup.display().to_string()], folder.path()).await.ok();
    let app = App::on(folder, |_| ()).await;
    app.reader().await.count_runs().await
}

#[tokio::test]
async fn a_backup_is_whole_although_runs_come_in_while_it_is_made() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.token_secret(Scope::Admin, None).await);
    for _ in 0..5 {
        user.import(good()).await.ok();
    }
    let to = tempfile::tempdir().expect("a folder");
    let (near, far) = (to.path().join("near.db"), to.path().join("far.db"));
    let (near_text, far_text) = (near.display().to_string(), far.display().to_string());
    let more = async {
        for _ in 0..20 {
            user.import(good()).await.ok();
        }
    };
    let by_owner = async { owner(&["backup", &near_text], app.data()).await };
    let by_token = async { as_user(&app, &admin, &["backup", &far_text, "--json"]).await };
    let ((), by_owner, by_token) = tokio::join!(more, by_owner, by_token);
    assert!(by_owner.ok().contains("near.db: "));
    assert_eq!(by_token.json()["bytes"], fs::metadata(&far).expect("a file").len());
    assert_eq!(names(to.path()), ["far.db", "near.db"], "nothing else is left");
    for backup in [&near, &far] {
        let found = integrity_check::check(backup).await.expect("a database");
        assert!(found.is_well(), "{found:?}");
        let runs = runs_of(backup).await;
        assert!((5..=25).contains(&runs), "{runs}");
    }
    assert!(!names(app.data()).iter().any(|name| name.starts_with(".handing-out")), "{:?}", names(app.data()));
    assert_eq!(user.count_runs().await, 25);
}

#[tokio::test]
async fn a_backup_takes_nobodys_place_unless_it_is_told_to_and_is_for_administrators() {
    let app = App::start().await;
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("mine.db");
    fs::write(&file, "mine").expect("a file");
    let text = file.display().to_string();
    let admin = app.token_secret(Scope::Admin, None).await;
    for done in [owner(&["backup", &text], app.data()).await, as_user(&app, &admin, &["backup", &text]).await] {
        assert!(done.refused(1).contains("mine.db already exists; choose another file, or use --force"));
    }
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    let user = app.token_secret(Scope::Submit, None).await;
    assert!(as_user(&app, &user, &["backup", &text, "--force"]).await.refused(1).contains("needs the scope admin"));
    assert_eq!(fs::read(&file).expect("a file"), b"mine");
    as_user(&app, &admin, &["backup", &text, "--force"]).await.ok();
    assert!(fs::read(&file).expect("a file").starts_with(b"SQLite format 3\0"));
    let nowhere = to.path().join("nowhere/a.db").display().to_string();
    assert!(owner(&["backup", &nowhere], app.data()).await.refused(1).contains("can't be written"));
    let empty = tempfile::tempdir().expect("a folder");
    assert!(owner(&["backup", &nowhere], empty.path()).await.refused(1).contains("nowhere/a.db"));
    let other = to.path().join("other.db").display().to_string();
    assert!(owner(&["backup", &other], empty.path()).await.refused(1).contains("there is no database at"));
    assert_eq!(names(to.path()), ["mine.db"]);
}

#[tokio::test]
async fn a_backup_that_finds_no_room_leaves_nothing_and_disturbs_nobody() {
    let Some(disk) = SmallDisk::mount("48m") else { return };
    let app = App::on(tempfile::tempdir_in(disk.path()).expect("a folder"), |_| ()).await;
    let (user, by_hand) = (app.user().await, app.admin().await);
    let admin = app.token_secret(Scope::Admin, None).await;
    user.import(good()).await.ok();
    let elsewhere = tempfile::tempdir().expect("a folder");
    let (full, roomy) = (disk.path().join("a.db").display().to_string(), elsewhere.path().join("a.db"));
    let roomy = roomy.display().to_string();
    let filler = disk.fill();
    let before = names(app.data());
    // The server copies into its data folder first, the owner right beside the file that it is to become.
    for done in [as_user(&app, &admin, &["backup", &roomy]).await, owner(&["backup", &full], app.data()).await] {
        let told = done.refused(1);
        assert!(told.contains("full"), "{told}");
    }
    let told = by_hand.get("/api/v1/backup").await.refused(507);
    assert!(told.contains("the server's disk is full"), "{told}");
    assert_eq!(names(app.data()), before, "nothing half done is left");
    assert_eq!(names(disk.path()).iter().filter(|name| name.contains("backup")).count(), 0);
    assert_eq!(names(elsewhere.path()), [""; 0]);
    user.get("/runs").await.ok();
    fs::remove_file(filler).expect("room");
    user.import(good()).await.ok();
    as_user(&app, &admin, &["backup", &roomy]).await.ok();
    assert_eq!(runs_of(Path::new(&roomy)).await, 2);
}

#[tokio::test]
async fn settings_say_when_the_last_backup_was_made_and_hand_one_out() {
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
    let log = app.admin().await.get("/api/v1/audit?what=backup+created").await.ok().json();
    assert_eq!(log["entries"][0]["detail"]["bytes"], backup.body.len());
}

#[tokio::test]
async fn a_backup_comes_back_and_what_was_there_is_kept_beside_it() {
    let app = App::start().await;
    let user = app.user().await;
    user.import(good()).await.ok();
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("a.db");
    let text = file.display().to_string();
    owner(&["backup", &text], app.data()).await.ok();
    user.import(good()).await.ok();
    let told = owner(&["restore", &text], app.data()).await.refused(1);
    assert!(told.contains("is in use by another brewbench server"), "{told}");
    assert_eq!(user.count_runs().await, 2);

    let folder = app.stop().await;
    let done = owner(&["restore", &text], folder.path()).await;
    assert!(done.err.contains("restored 1 run from") && done.err.contains("brewbench.db.before-"), "{}", done.err);
    done.ok();
    let aside: Vec<_> = names(folder.path()).into_iter().filter(|name| name.contains(".before-")).collect();
    let [aside] = aside.as_slice() else { panic!("{aside:?}") };
    assert_eq!(runs_of(&folder.path().join(aside)).await, 2);
    let app = App::on(folder, |_| ()).await;
    let admin = app.admin().await;
    assert_eq!(admin.count_runs().await, 1);
    let log = admin.get("/api/v1/audit?what=database+restored").await.ok().json();
    assert_eq!(log["entries"][0]["object"], text);
}

/// A data folder with a run, and no server.
async fn left_behind() -> TempDir {
    let app = App::start().await;
    app.user().await.import(good()).await.ok();
    app.stop().await
}

#[tokio::test]
async fn what_is_no_backup_is_refused_and_nothing_changes() {
    let folder = left_behind().await;
    let before = names(folder.path());
    let to = tempfile::tempdir().expect("a folder");
    let file = to.path().join("bad.db");
    let refused = async |bytes: &[u8]| {
        fs::write(&file, bytes).expect("a file");
        owner(&["restore", &file.display().to_string()], folder.path()).await.refused(1)
    };
    let whole = fs::read(folder.path().join(db::FILE)).expect("a file");
    let mut damaged = whole.clone();
    let half = damaged.len() / 2;
    damaged[half..].fill(7);
    for bytes in [b"a text that is long enough to be read as something else".as_slice(), &whole[..half], &damaged] {
        let told = refused(bytes).await;
        assert!(told.contains("cannot restore ") && told.contains("bad.db: ") && told.contains("damaged"), "{told}");
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
    fs::write(to.path().join("bad.db-wal"), "what is not in the file yet").expect("a file");
    assert!(refused(&whole).await.contains("bad.db-wal"));
    let missing = owner(&["restore", "/nowhere/a.db"], folder.path()).await.refused(1);
    assert!(missing.contains("/nowhere/a.db"), "{missing}");
    assert_eq!(names(folder.path()), before);
    assert_eq!(App::on(folder, |_| ()).await.reader().await.count_runs().await, 1);
}

#[tokio::test]
async fn a_database_is_looked_over_and_each_fault_is_named() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 3}))).await;
    for _ in &runs {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    user.import(good()).await.ok();
    let well = owner(&["check"], app.data()).await.ok();
    assert!(well.contains("ok: 4 runs"), "{well}");
    let json = owner(&["check", "--json"], app.data()).await.json();
    assert_eq!((&json["runs"], &json["faults"], &json["unfit"]), (&json!(4), &json!([]), &json!(null)));

    let folder = app.stop().await;
    let pool = db::open_existing(&folder.path().join(db::FILE)).await.expect("a database");
    let hurt = async |sql: String| {
        sqlx::query("pragma foreign_keys = off").execute(&pool).await.expect("off");
        sqlx::query(sqlx::AssertSqlSafe(sql)).execute(&pool).await.expect("hurt");
    };
    hurt(format!("delete from run where id = '{}'", runs[0])).await;
    hurt(format!("delete from run_summary where run_id = '{}'", runs[1])).await;
    hurt(format!("update run_evidence set body = x'00' where run_id = '{}'", runs[2])).await;
    pool.close().await;
    let done = owner(&["check"], folder.path()).await;
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
    assert!(owner(&["check"], empty.path()).await.refused(1).contains("there is no database at"));
    fs::write(
        empty.path().join(db::FILE),
        "something else, and long enough for a header of SQLite, which has 100 bytes",
    )
    .expect("a file");
    let done = owner(&["check"], empty.path()).await;
    assert!(done.code == Some(1) && done.out.contains("unusable: "), "{done:?}");
}

#[tokio::test]
async fn a_server_is_ready_only_while_its_store_can_be_written() {
    let app = App::start().await;
    let nobody = app.anonymous();
    assert_eq!(nobody.get("/readyz").await.ok().text(), "ready");
    let other = db::open_existing(&app.data().join(db::FILE)).await.expect("a database");
    let held = other.begin_with("begin immediate").await.expect("the lock of writers");
    assert_eq!(nobody.get("/readyz").await.refused(503), "the database is busy");
    assert_eq!(nobody.get("/healthz").await.ok().text(), "ok", "it is alive");
    held.rollback().await.expect("given back");
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
async fn metrics_tell_of_runs_agents_requests_and_the_store() {
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
        assert!(text.lines().any(|seen| seen == line), "{line}: {text}");
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
    assert!(value("brewbench_connections") >= 2.0, "the agent's and this one");
    // Each family is announced once, before its figures.
    let families: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")).collect();
    let mut once = families.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), families.len(), "{families:?}");
    app.anonymous().get("/metrics").await.refused(401);
}

/// A finished run with a series of some seconds.
async fn measured(app: &App, user: &Actor) -> String {
    let mut agent = Agent::start(app, "rack").await;
    let (_, runs) = submit(user, &plan_with(&json!({"repetitions": 1}))).await;
    let job = agent.job().await;
    agent.end(Outcome { series: Some(matching_series(&good())), ..outcome(&job, &good()) }).await;
    runs[0].clone()
}

#[tokio::test]
async fn old_series_are_thinned_then_deleted_by_a_rule_and_figures_stay() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.token_secret(Scope::Admin, None).await);
    let run = measured(&app, &user).await;
    let path = format!("/api/v1/runs/{run}/series");
    let apply = async |days: i64| retention::apply(&app.state, now_ms() + days * DAY_MS).await.expect("applied");
    let points = async || user.get(&path).await.ok().json()["measured"]["seconds"].as_array().expect("points").len();
    let (whole, before) = (points().await, user.run(&run).await);
    let latencies = user.get(&path).await.ok().json()["measured"]["succeeded"].clone();

    assert_eq!(as_user(&app, &admin, &["retention"]).await.ok(), "series are kept forever\n");
    assert_eq!(apply(4_000).await, 0, "off unless somebody says so");
    let told = as_user(&app, &admin, &["retention", "--downsample-after", "90"]).await.ok();
    assert!(told.starts_with("series are downsampled after 90 days; set by token admin"), "{told}");
    assert_eq!((apply(89).await, points().await), (0, whole));
    assert_eq!(apply(91).await, 1);
    let thinned = points().await;
    assert!(thinned < whole && thinned == whole.div_ceil(10), "{whole} → {thinned}");
    assert_eq!(user.get(&path).await.ok().json()["measured"]["succeeded"], latencies, "histograms add up");
    assert_eq!(apply(91).await, 0, "once is enough");
    let page = user.clone().in_browser().get(&format!("/runs/{run}")).await.ok().text();
    assert!(page.contains("was downsampled to points of ten seconds"), "{page}");

    let kept = as_user(&app, &admin, &["run", "rejudge", "--all", "--json"]).await.json();
    assert!(kept.to_string().contains("downsampled or deleted by retention"), "{kept}");
    as_user(&app, &admin, &["retention", "--delete-after", "30"]).await.ok();
    assert_eq!(apply(31).await, 1);
    assert!(user.get(&path).await.refused(404).contains("retention deleted it"));
    let page = user.clone().in_browser().get(&format!("/runs/{run}")).await.ok().text();
    assert!(page.contains("was deleted") && page.contains("17,070"), "{page}");
    assert_eq!(user.run(&run).await, before, "figures and verdict are what they were");

    assert_eq!(as_user(&app, &admin, &["retention", "--off"]).await.ok(), "series are kept forever\n");
    let log = app.admin().await.get("/api/v1/audit").await.ok().json();
    let deeds: Vec<_> = log["entries"].as_array().expect("a list").iter().map(|entry| entry["what"].clone()).collect();
    let counted = |deed: &str| deeds.iter().filter(|what| **what == deed).count();
    assert_eq!((counted("retention set"), counted("series reduced")), (3, 2), "{deeds:?}");
}

#[tokio::test]
async fn a_rule_for_series_can_be_taken_back_for_an_hour() {
    let app = App::start().await;
    let (user, admin) = (app.user().await, app.admin().await);
    measured(&app, &user).await;
    let age = sqlx::query("update run set finished_at = finished_at - ?").bind(400 * DAY_MS);
    age.execute(&app.state.db.write).await.expect("an old run");
    admin.put("/api/v1/retention", &json!({"after_days": 30, "reduction": "delete"})).await.ok();
    let after = async |minutes: i64| retention::apply(&app.state, now_ms() + minutes * 60_000).await.expect("applied");
    assert_eq!((after(59).await, after(61).await), (0, 1));
}

#[tokio::test]
async fn the_rule_for_series_is_set_on_the_settings_page_by_administrators() {
    let app = App::start().await;
    let (member, admin) =
        (app.signed_in(Role::Member).await.in_browser(), app.signed_in(Role::Admin).await.in_browser());
    let page = member.get("/settings").await.ok().text();
    assert!(page.contains("kept forever") && !page.contains("/settings/series"), "{page}");
    let thin = [("reduction", "thin"), ("days", " 90 ")];
    assert_eq!(member.form("/settings/series", &thin).await.status, StatusCode::FORBIDDEN);
    assert_eq!(admin.form("/settings/series", &thin).await.status, StatusCode::SEE_OTHER);
    assert!(member.get("/settings").await.ok().text().contains("downsampled after 90 days"));
    for bad in [
        [("reduction", "thin"), ("days", "soon")],
        [("reduction", "thin"), ("days", "0")],
        [("reduction", "burn"), ("days", "9")],
    ] {
        assert_eq!(admin.form("/settings/series", &bad).await.status, StatusCode::UNPROCESSABLE_ENTITY, "{bad:?}");
    }
    let rule = app.reader().await.get("/api/v1/retention").await.ok().json();
    assert_eq!(rule["rule"], json!({"after_days": 90, "reduction": "thin"}));
    assert_eq!(
        admin.form("/settings/series", &[("reduction", "keep"), ("days", "90")]).await.status,
        StatusCode::SEE_OTHER
    );
    assert_eq!(app.reader().await.get("/api/v1/retention").await.ok().json()["rule"], json!(null));
}

#[tokio::test]
async fn a_log_for_programs_is_a_json_object_a_line() {
    let Some(tools) = Tools::find() else { return };
    let state = tempfile::tempdir().expect("a folder");
    // Nobody listens there.
    let mut command = brewbench(&["agent", "--server", "http://127.0.0.1:1/", "--log", "json"]);
    command.arg("--state").arg(state.path()).arg("--k6").arg(&tools.k6).env("BREWBENCH_AGENT_KEY", "bba_nothing");
    let mut agent = Running::start(command);
    agent.wait_for("failed to connect").await;
    let said = agent.stderr();
    let lines: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|fault| panic!("{fault}: {line}"))).collect();
    assert!(lines.iter().any(|line| line["level"] == "WARN" && line["server"] == "http://127.0.0.1:1/"), "{said}");
    agent.signal(nix::sys::signal::Signal::SIGTERM);
    agent.ended(Duration::from_secs(20)).await;
}

/// A script of ours.
fn script(name: &str) -> Command {
    Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join(name))
}

#[tokio::test]
async fn an_archive_is_installed_where_somebody_wants_it_and_runs_from_there() {
    if Tools::find().is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let built = Path::new(PROGRAM).parent().expect("a folder");
    let mut pack = script("scripts/dist.sh");
    pack.arg(built).arg(folder.path()).env("LEVEL", "1");
    let archive = Output::of(pack).await.ok();
    let mut unpack = Command::new("tar");
    unpack.arg("-C").arg(folder.path()).arg("-xzf").arg(archive.trim());
    Output::of(unpack).await.ok();
    let unpacked = archive.trim().strip_suffix(".tar.gz").expect("an archive").to_owned();
    for file in ["README.md", "LICENSE", "targets/rust-hyper.toml", "targets/bin/rust-hyper"] {
        assert!(Path::new(&unpacked).join(file).is_file(), "{file}");
    }

    let prefix = folder.path().join("usr");
    let mut install = Command::new(format!("{unpacked}/install.sh"));
    install.env("PREFIX", &prefix).env_remove("DESTDIR").env_remove("UNITDIR");
    assert!(Output::of(install).await.ok().contains("systemctl enable --now brewbench"));
    let version = Output::of({
        let mut program = Command::new(prefix.join("bin/brewbench"));
        program.arg("--version");
        program
    });
    assert!(version.await.ok().starts_with("brewbench "));
    for (unit, start) in [("brewbench", "serve"), ("brewbench-agent", "agent")] {
        let file = prefix.join(format!("lib/systemd/system/{unit}.service"));
        let text = fs::read_to_string(&file).expect("a unit");
        let line = format!("ExecStart={}/lib/brewbench/brewbench {start}\n", prefix.display());
        assert!(text.contains(&line) && !text.contains("@LIB@"), "{text}");
        let mut verify = Command::new("systemd-analyze");
        verify.arg("verify").arg(&file);
        // Not every machine has systemd.
        if let Ok(output) = verify.output().await {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        }
    }
}
