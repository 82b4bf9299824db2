//! Supported k6 versions: at the agent's start, in the doctor, on the agent's page and in commands.

use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::harness::{
    App,
    program::{Output, as_user, brewbench},
    submit::text,
};

/// Creates a program that reports to be this version of k6.
fn fake_k6(folder: &Path, version: &str) -> PathBuf {
    let path = folder.join("k6");
    std::fs::write(&path, format!("#!/bin/sh\necho 'k6 v{version} (go1.27, linux/amd64)'\n")).expect("a file");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    path
}

fn agent(more: &[&str], app: &App, key: &str, state: &Path, k6: &Path) -> tokio::process::Command {
    let mut command = brewbench(&["agent"]);
    command.args(more).args(["--server", app.url.as_str(), "--key", key]);
    command.arg("--state").arg(state).arg("--k6").arg(k6);
    command
}

#[tokio::test]
async fn an_agent_with_an_unsupported_k6_does_not_start_and_the_reason_is_shown() {
    let app = App::start().await;
    let admin = app.admin().await;
    let folder = brewbench_testing::public_folder();
    let key = app.key("rack").await;
    for version in ["0.57.0", "3.0.0"] {
        let k6 = fake_k6(folder.path(), version);
        let sentence = format!("{} is k6 {version}; supported is 1.x … 2.x", k6.display());
        let error = Output::of(agent(&[], &app, &key, &folder.path().join("state"), &k6)).await.refused(1);
        assert!(error.contains(&sentence), "{error}");

        let listed = admin.get("/api/v1/agents").await.ok().json()["agents"][0].clone();
        let engine = &listed["about"]["engines"][0];
        assert_eq!(
            (&listed["connected"], &engine["name"], &engine["version"]),
            (&json!(false), &json!("k6"), &json!(version))
        );
        assert_eq!(engine["supported"], "1.x … 2.x");
        assert!(text(&engine["fault"]).starts_with(&sentence), "{listed}");
        let page = admin.clone().in_browser().get("/agents/rack").await.ok().text();
        assert!(page.contains("not supported") && page.contains(&sentence), "{page}");
        let table = as_user(&app, admin.secret(), &["fleet", "list"]).await.ok();
        assert!(table.contains(&format!("{version} (not supported)")) && table.contains("1.x … 2.x"), "{table}");
    }
}

#[tokio::test]
async fn the_doctor_reports_version_and_path_of_k6_and_the_supported_range() {
    let app = App::start().await;
    let folder = brewbench_testing::public_folder();
    let key = app.key("rack").await;
    for (version, rank) in [("1.0.0", "good"), ("2.2.0", "good"), ("0.57.0", "bad"), ("3.0.0", "bad")] {
        let k6 = fake_k6(folder.path(), version);
        let done = Output::of(agent(&["doctor", "--json"], &app, &key, &folder.path().join("state"), &k6)).await;
        let findings: Value = serde_json::from_str(&done.out).expect("JSON");
        let finding =
            findings.as_array().expect("findings").iter().find(|finding| finding["check"] == "k6").expect("k6");
        let observed = text(&finding["observed"]);
        assert_eq!(finding["rank"], rank, "{observed}");
        for part in [version, &k6.display().to_string(), "1.x … 2.x"] {
            assert!(observed.contains(part), "{part}: {observed}");
        }
    }
}
