//! Secrets in a copy of the data.

use std::{fs, path::Path};

use brewbench::{
    app::{db, networks::Networks, secrets_key},
    maintenance::backup,
};
use serde_json::json;

use crate::harness::{Actor, App};

/// Whether a text is anywhere in the data folder's files or in a backup of it.
async fn is_readable(data: &Path, text: &str) -> bool {
    let copy = data.join("copy.db");
    backup::of_folder(data, &copy, backup::IfExists::Replace).await.expect("a backup");
    let files = fs::read_dir(data).expect("a folder").flatten().filter(|entry| entry.path().is_file());
    let holds = |content: &[u8]| content.windows(text.len()).any(|part| part == text.as_bytes());
    files.map(|entry| fs::read(entry.path()).expect("a file")).any(|content| holds(&content))
}

async fn stored(app: &App) -> String {
    sqlx::query_scalar("select secret from webhook").fetch_one(&app.state.db.read).await.expect("a webhook")
}

/// Adds a webhook to a closed port; returns its secret.
async fn add(admin: &Actor) -> String {
    let request = json!({"url": "http://127.0.0.1:1/", "events": ["agent.disconnected"]});
    let created = admin.post("/api/v1/webhooks", &request).await.ok().json();
    created["secret"].as_str().expect("a secret").to_owned()
}

#[tokio::test]
async fn a_copy_of_the_data_has_no_webhook_secret() {
    let app = App::with(|config| config.webhooks_to = Networks::loopback()).await;
    let admin = app.admin().await;
    let secret = add(&admin).await;
    assert!(is_readable(app.data(), "agent.disconnected").await, "this test would find it");
    assert!(!is_readable(app.data(), &secret).await);
    assert_eq!(app.state.secrets_key.decrypt(&stored(&app).await).as_deref(), Ok(secret.as_str()));
}

#[tokio::test]
async fn secrets_of_an_earlier_version_are_encrypted_at_start() {
    let app = App::with(|config| config.webhooks_to = Networks::loopback()).await;
    add(&app.admin().await).await;
    let plain = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    sqlx::query("update webhook set secret = ?").bind(plain).execute(&app.state.db.write).await.expect("an update");
    let folder = app.stop().await;
    assert!(is_readable(folder.path(), plain).await);
    fs::remove_file(folder.path().join("copy.db")).expect("removed");
    let app = App::on(folder, |_| ()).await;
    assert_eq!(app.state.secrets_key.decrypt(&stored(&app).await).as_deref(), Ok(plain));
    assert!(!is_readable(app.data(), plain).await);
}

#[tokio::test]
async fn a_webhook_fails_with_another_key_until_its_key_is_restored() {
    let app = App::with(|config| config.webhooks_to = Networks::loopback()).await;
    add(&app.admin().await).await;
    let folder = app.stop().await;
    let (key, aside) = (folder.path().join(secrets_key::FILE), folder.path().join("aside"));
    fs::rename(&key, &aside).expect("moved");

    let app = App::on(folder, |config| config.webhooks_to = Networks::loopback()).await;
    let sent = app.admin().await.post("/api/v1/webhooks/1/test", &()).await.ok().json();
    let error = sent["error"].as_str().expect("an error");
    assert!(error.starts_with("the secret can't be decrypted with this server's key; restore the key"), "{error}");
    let folder = app.stop().await;

    fs::rename(&aside, &key).expect("moved back");
    let app = App::on(folder, |config| config.webhooks_to = Networks::loopback()).await;
    let sent = app.admin().await.post("/api/v1/webhooks/1/test", &()).await.ok().json();
    let error = sent["error"].as_str().expect("an error");
    assert!(error.contains("refused"), "{error}");
}

#[tokio::test]
async fn a_key_outside_the_data_folder_is_used_and_none_is_created() {
    let elsewhere = tempfile::tempdir().expect("a folder");
    let file = elsewhere.path().join("credential");
    fs::write(&file, "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").expect("written");
    let app = App::with(|config| config.secrets_key = Some(file.clone())).await;
    assert!(app.data().join(db::FILE).exists() && !app.data().join(secrets_key::FILE).exists());
}
