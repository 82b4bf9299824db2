//! Databases that were emptied, damaged, or lost their write-ahead log.

use std::{
    fs::{self, File},
    net::SocketAddr,
    os::unix::fs::FileExt,
    path::Path,
};

use brewbench::app::{config::Config, db, local_admin, server::Server};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::harness::{App, summaries::good};

async fn start_error(data: &Path) -> String {
    let config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)), data);
    Server::start(config, CancellationToken::new()).await.expect_err("refused").to_string()
}

/// Copies what is in the data folder of a running server, as a kill would leave it.
fn copy_of(data: &Path) -> TempDir {
    let copy = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(data).expect("a folder").flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), copy.path().join(entry.file_name())).expect("a copy");
    }
    copy
}

/// Returns the kinds of the active alerts.
async fn alerts(app: &App) -> Vec<String> {
    let list = app.reader().await.get("/api/v1/alerts").await.ok().json();
    let kinds = list["alerts"].as_array().expect("a list").iter();
    kinds.map(|alert| alert["kind"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn an_empty_database_beside_its_keys_is_a_loss() {
    let folder = App::start().await.stop().await;
    let file = folder.path().join(db::FILE);
    for lose in [|file: &Path| File::create(file).map(drop), |file: &Path| fs::remove_file(file)] {
        lose(&file).expect("a loss");
        let error = start_error(folder.path()).await;
        assert!(error.contains("its results are lost; restore a backup") && error.contains("secrets.key"), "{error}");
        let error = local_admin::agent_key(folder.path(), "rack").await.err().expect("refused").to_string();
        assert!(error.contains("restore a backup"), "{error}");
    }
    for name in ["secrets.key", "public-url"] {
        fs::remove_file(folder.path().join(name)).expect("a file");
    }
    App::on(folder, |_| ()).await.anonymous().get("/readyz").await.ok();
}

#[tokio::test]
async fn a_missing_write_ahead_log_is_reported_after_a_kill() {
    let app = App::start().await;
    app.user().await.import(good()).await.ok();
    let (killed, robbed, checked) = (copy_of(app.data()), copy_of(app.data()), copy_of(app.data()));
    let folder = app.stop().await;
    let app = App::on(folder, |_| ()).await;
    assert_eq!(alerts(&app).await, Vec::<String>::new(), "after a stop");
    let app = App::on(killed, |_| ()).await;
    assert_eq!((alerts(&app).await, app.user().await.count_runs().await), (Vec::new(), 1), "after a kill");
    // A command moves the log into the file and removes it.
    local_admin::agent_key(checked.path(), "rack").await.expect("a key");
    let app = App::on(checked, |_| ()).await;
    assert_eq!((alerts(&app).await, app.user().await.count_runs().await), (Vec::new(), 1), "after a command");
    for part in ["brewbench.db-wal", "brewbench.db-shm"] {
        fs::remove_file(robbed.path().join(part)).expect("a part");
    }
    let app = App::on(robbed, |_| ()).await;
    let lost = async || Some(alerts(&app).await).filter(|kinds| *kinds == ["database.log_lost"]);
    app.until("an alert", lost).await;
    app.anonymous().get("/readyz").await.ok();
    assert!(app.reader().await.get("/").await.ok().text().contains("write-ahead log was removed"));
}

#[tokio::test]
async fn a_damaged_page_is_found_after_the_start() {
    let app = App::start().await;
    let user = app.user().await;
    for n in 0..5 {
        user.import(crate::harness::summaries::scaled(1.0 + f64::from(n) / 100.0)).await.ok();
    }
    let root: i64 = sqlx::query_scalar("select rootpage from sqlite_master where name = 'run_summary'")
        .fetch_one(&app.state.db.read)
        .await
        .expect("a page");
    let folder = app.stop().await;
    let file = File::options().write(true).open(folder.path().join(db::FILE)).expect("the database");
    file.write_all_at(&[0xa5; 512], (root.unsigned_abs() - 1) * 4096).expect("damage");
    let app = App::on(folder, |_| ()).await;
    let found = async || Some(app.anonymous().get("/readyz").await).filter(|answer| answer.status == 503);
    let answer = app.until("the check", found).await;
    assert_eq!(answer.refused(503), "the database is damaged; restore a backup");
    assert_eq!(alerts(&app).await, ["database.damaged"]);
    let list: Value = app.reader().await.get("/api/v1/alerts").await.ok().json();
    assert!(list["alerts"][0]["url"].as_str().expect("a URL").ends_with("/docs/guide/operations"), "{list}");
}
