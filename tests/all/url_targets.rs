//! Targets that already run: measured by a real agent beside the program that serves them, shown, filtered, compared.

use std::{fs, net::TcpListener, path::Path};

use serde_json::json;

use crate::{
    harness::{
        program::{Output, Running, Tools, brewbench, isolated},
        submit::{plan_with, submit},
    },
    processes::{serve_with_agent, until, user_of},
};

/// Starts a bundled target that no agent knows. Returns it with its base URL.
pub async fn serve(targets: &Path) -> (Running, String) {
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
    let mut command = isolated(targets.join("bin/rust-hyper").to_str().expect("a path"));
    command.args(["--listen", &format!("127.0.0.1:{port}")]);
    let program = Running::start(command);
    let base = format!("http://127.0.0.1:{port}");
    brewbench_io::client::prepare_tls();
    let client = reqwest::Client::builder().tls_certs_only([]).build().expect("a client");
    until(&program, "the target", async || client.get(format!("{base}/health")).send().await.ok()).await;
    (program, base)
}

#[tokio::test]
async fn a_server_that_already_runs_is_measured_beside_the_program_that_serves_it() {
    let Some(tools) = Tools::find() else { return };
    let (_target, base) = serve(&tools.targets).await;
    let (data, manifests) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let checks = "[ready]\npath = \"/health\"\n[verify]\npath = \"/hash\"\ncontains = \"hash\"\n";
    let program = tools.targets.join("bin/rust-hyper");
    for (name, provided) in [
        ("started", format!("command = [{program:?}, \"--listen\", \"{{host}}:{{port}}\"]\n")),
        ("staging", format!("[url]\nbase = \"{base}/\"\n")),
    ] {
        let text = format!("name = \"{name}\"\nversion = \"1\"\n{provided}{checks}");
        fs::write(manifests.path().join(format!("{name}.toml")), text).expect("a manifest");
    }
    let mut command = serve_with_agent(data.path(), &tools);
    command.arg("--manifests").arg(manifests.path());
    let site = Running::start(command);
    let user = user_of(&site, data.path()).await;
    let targets = until(&site, "the targets", async || {
        let list = user.get("/api/v1/targets").await.ok().json();
        (list["targets"].as_array()?.len() == 2).then_some(list)
    })
    .await;
    let staging = &targets["targets"][0];
    assert_eq!((&staging["kind"], &staging["identity"]), (&json!("url"), &json!(base)));
    assert_eq!(targets["targets"][1]["kind"], json!("process"));

    let plan = plan_with(&json!({"targets": ["started", "staging"], "warm_up_s": 0}));
    let (_, runs) = submit(&user, &plan).await;
    for run in &runs {
        let run = until(&site, "the end of a run", async || {
            Some(user.run(run).await).filter(|run| !run["finished_at_ms"].is_null())
        })
        .await;
        let is_staging = run["target"] == "staging";
        let expected =
            if is_staging { (json!("url"), json!("none")) } else { (json!("process"), run["enforced"]["cpu"].clone()) };
        assert_eq!((&run["phase"], &run["target_kind"]), (&json!("finished"), &expected.0), "{run}");
        assert_eq!(run["enforced"]["cpu"], expected.1, "{run}");
        assert_eq!(run["reasons"].to_string().contains("size_not_enforced"), is_staging, "{run}");
        let mut of_size =
            run["reasons"].as_array().expect("reasons").iter().filter(|one| one["code"] == "size_not_enforced");
        assert!(of_size.all(|one| one["verdict"] == "valid"), "a note, which no gate needs to accept: {run}");
        assert_eq!(
            (run["cpu_ms_per_request"].is_null(), run["target_memory_bytes"].is_null()),
            (is_staging, is_staging)
        );
    }

    let listed = user.get("/api/v1/runs?kind=url").await.ok().json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(1));
    assert_eq!(listed["runs"][0]["target_identity"], json!(base));
    user.get("/api/v1/runs?kind=pod").await.refused(422);

    // Comparing kinds is a choice.
    let path = format!("/api/v1/compare?runs={},{}", runs[0], runs[1]);
    let found = user.get(&path).await.ok().json()["rows"][0]["confounders"].to_string();
    assert!(found.contains("Kinds of targets") && found.contains("process") && found.contains("url"), "{found}");

    let browser = user.clone().in_browser();
    let page = browser.get("/targets/staging").await.ok().text();
    assert!(page.contains("<td>url</td>") && page.contains(&base), "{page}");
    let page = browser.get(&format!("/runs/{}", listed["runs"][0]["id"].as_str().expect("an id"))).await.ok().text();
    assert!(page.contains("<dt>Kind</dt><dd>url</dd>") && page.contains("time to open a connection"), "{page}");
    let server = format!("http://{}/", site.wait_for("brewbench listens on ").await);
    let list = |arguments: &[&str]| {
        let mut command = brewbench(arguments);
        command.env("BREWBENCH_URL", &server).env("BREWBENCH_TOKEN", user.secret());
        Output::of(command)
    };
    let text = list(&["target", "list"]).await.ok();
    assert!(
        text.lines().any(|line| line.contains("staging") && line.contains("url") && line.contains(&base)),
        "{text}"
    );
    let text = list(&["run", "list", "--kind", "url"]).await.ok();
    assert!(text.contains("staging") && !text.contains("started"), "{text}");
}
