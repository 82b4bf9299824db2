//! Other users of the server's machine: what they can read, and what they can put into the data folder.

use std::{
    fs::{self, Permissions},
    net::SocketAddr,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
};

use brewbench::{
    app::{config::Config, db, local_admin, server::Server},
    maintenance::backup,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::harness::{App, summaries::good};

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).expect("a file").permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("another mode");
}

/// Returns the files in a folder that other users can access.
fn open_to_others(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    entries.filter(|entry| mode(&entry.path()) & 0o077 != 0).map(|entry| entry.path().display().to_string()).collect()
}

async fn start_error(data: &Path) -> String {
    let config = Config::new(SocketAddr::from(([127, 0, 0, 1], 0)), data);
    Server::start(config, CancellationToken::new()).await.expect_err("refused").to_string()
}

#[tokio::test]
async fn only_the_owner_can_access_the_data_folder() {
    let parent = tempfile::tempdir().expect("a folder");
    let data = parent.path().join("data");
    let app = App::with(|config| config.data.clone_from(&data)).await;
    app.user().await.import(good()).await.ok();
    let copy = data.join("copy.db");
    backup::of_folder(&data, &copy, backup::IfExists::Refuse).await.expect("a backup");
    assert_eq!((mode(&data), open_to_others(&data)), (0o700, Vec::new()));
    for file in [db::FILE, "brewbench.db-wal", "lock", "public-url", "copy.db"] {
        assert_eq!(mode(&data.join(file)), 0o600, "{file}");
    }
}

#[tokio::test]
async fn the_start_tightens_permissions_of_an_earlier_version() {
    let folder = App::start().await.stop().await;
    let foreign = folder.path().join("foreign");
    fs::write(&foreign, "").expect("a file");
    let aside = folder.path().join("brewbench.db.before-20260101T000000Z");
    fs::write(&aside, "").expect("a file");
    for file in [&folder.path().join(db::FILE), &folder.path().join("public-url"), &aside, &foreign] {
        set_mode(file, 0o644);
    }
    set_mode(folder.path(), 0o755);
    let app = App::on(folder, |_| ()).await;
    assert_eq!(mode(app.data()), 0o700);
    assert_eq!(open_to_others(app.data()), [app.data().join("foreign").display().to_string()]);
    let folder = app.stop().await;
    set_mode(folder.path(), 0o755);
    db::open(folder.path()).await.expect("a database");
    assert_eq!(mode(folder.path()), 0o700);
}

#[tokio::test]
async fn symbolic_links_in_the_data_folder_are_refused() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let precious = elsewhere.path().join("precious");
    for file in [db::FILE, "brewbench.db-wal", "lock", "public-url", ".handing-out-x"] {
        let folder: TempDir = tempfile::tempdir().expect("a folder");
        fs::write(&precious, "precious").expect("a file");
        symlink(&precious, folder.path().join(file)).expect("a link");
        let error = start_error(folder.path()).await;
        assert!(error.contains(&format!("/{file} is a symbolic link")), "{error}");
        assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious", "{file}");
    }
    let folder = App::start().await.stop().await;
    let (file, moved) = (folder.path().join(db::FILE), elsewhere.path().join("moved.db"));
    fs::rename(&file, &moved).expect("moved");
    symlink(&moved, &file).expect("a link");
    let copy = elsewhere.path().join("copy.db");
    let error = backup::of_folder(folder.path(), &copy, backup::IfExists::Refuse).await.expect_err("refused");
    assert!(error.to_string().contains("is a symbolic link") && !copy.exists(), "{error}");
}

#[tokio::test]
async fn a_shared_folder_is_refused_and_left_unchanged() {
    let folder = tempfile::tempdir().expect("a folder");
    set_mode(folder.path(), 0o1777);
    let error = start_error(folder.path()).await;
    assert!(
        error.contains("is a shared folder that everybody can write to; choose a private folder with --data"),
        "{error}"
    );
    assert_eq!(mode(folder.path()), 0o777);
}

#[tokio::test]
async fn the_public_url_replaces_a_link_and_does_not_follow_it() {
    let (folder, elsewhere) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, "precious").expect("a file");
    symlink(&precious, folder.path().join("public-url")).expect("a link");
    local_admin::store_public_url(folder.path(), &"http://localhost/".parse().expect("an address")).expect("written");
    assert_eq!(fs::read_to_string(&precious).expect("a file"), "precious");
    assert_eq!(mode(&folder.path().join("public-url")), 0o600);
}
