//! An agent in the server's own process.

use std::{fs, path::Path};

use brewbench::app::db;

use crate::{
    harness::program::{Running, Tools},
    processes::{serve_with_agent, until, user_of},
};

/// When a process closes a file, the kernel releases all locks that the process holds on it: another program
/// would take the database for unused and remove its log.
#[tokio::test]
async fn the_code_of_a_target_is_read_without_the_database_beside_it() {
    let Some(tools) = Tools::find() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("data");
    fs::write(folder.path().join("hello.py"), "").expect("a script");
    let manifest = "name = \"hello\"\nversion = \"1\"\ncommand = [\"/usr/bin/python3\", \"hello.py\", \"{port}\"]\n[ready]\npath = \"/\"\n";
    fs::write(folder.path().join("hello.toml"), manifest).expect("a manifest");
    let mut command = serve_with_agent(&data, &tools);
    command.arg("--manifests").arg(folder.path());
    let program = Running::start(command);
    let user = user_of(&program, &data).await;
    until(&program, "the target", async || {
        let list = user.get("/api/v1/targets").await.ok().text();
        Some(()).filter(|()| list.contains("hello"))
    })
    .await;
    use_once(&data).await;
    assert!(data.join("brewbench.db-wal").exists(), "the log of a running server");
    use_once(&data).await;
    user.get("/api/v1/runs").await.ok();
}

/// Opens the database and closes it, as commands with `--data` do.
async fn use_once(data: &Path) {
    db::open(data).await.expect("a database").close().await;
}
