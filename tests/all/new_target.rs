//! Adding a target: its manifest on the page, by the API and by the command, and the agent that picks it up.

use std::{ffi::OsStr, fs, path::Path};

use brewbench::auth::model::Role;
use brewbench_cli::events::Events;
use brewbench_wire::{manifest::ManifestFile, messages::TargetOffer};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{
    harness::{
        Actor, Agent, App, PATIENCE,
        program::{Output, Tools, brewbench},
        submit::text,
    },
    processes::agent_with,
};

const API: &str = "/api/v1/target-manifest";

fn hello() -> Value {
    json!({"name": "hello", "version": "2", "command": ["/usr/bin/python3", "hello.py", "{host}", "{port}"],
        "ready": {"path": "/"}})
}

const MANIFEST: &str = "name = \"hello\"\nversion = \"2\"\n\
    command = [\"/usr/bin/python3\", \"hello.py\", \"{host}\", \"{port}\"]\n\n[ready]\npath = \"/\"\n";

/// The form with [`MANIFEST`].
const FORM: [(&str, &str); 1] = [("toml", MANIFEST)];

/// Opens the live part of the page for a version of the target `hello`.
async fn open_live(who: &Actor, version: &str) -> Events {
    let request = who.request(&Method::GET, &format!("/targets/new/live?name=hello&version={version}"));
    Events::from_response(request.send().await.expect("an answer"))
}

/// Waits until the live part shows a text.
async fn wait_for(page: &mut Events, shown: &str) {
    let found = timeout(PATIENCE, async {
        while let Some(event) = page.next().await.expect("an event") {
            if event.data.contains(shown) {
                return true;
            }
        }
        false
    });
    assert!(found.await.unwrap_or(false), "the page never shows {shown:?}");
}

#[tokio::test]
async fn the_api_returns_a_manifest_that_an_agent_reads() {
    let app = App::start().await;
    let reader = app.reader().await;
    let written = reader.post(API, &hello()).await.ok().json();
    assert_eq!(written, json!({"file": "hello.toml", "toml": MANIFEST}));

    let mut hostile = hello();
    let texts = ["\"]\n[ready]\npath = \"/x", "a'''b\"\"\"", "\u{1b}[2J\u{7f}", "🦀 \\u{41} \\", "\r\n\t#"];
    hostile["env"] = texts.iter().map(|value| ((*value).replace('=', ""), json!(value))).collect();
    hostile["description"] = json!(texts.concat());
    hostile["verify"] = json!({"path": format!("/{}", texts[0]), "status": 404, "contains": texts.concat()});
    hostile["sandbox"] = json!({"read": texts, "write": []});
    hostile["profile"] = json!({"command": ["py-spy", "{pid}"], "rate_hz": 50});
    let written = reader.post(API, &hostile).await.ok().json();
    let read = ManifestFile::parse(&text(&written["toml"])).expect("a manifest");
    assert_eq!((json!(read.description), json!(read.env)), (hostile["description"].clone(), hostile["env"].clone()));
    let verify = read.verify.expect("a check");
    assert_eq!((json!(verify.path), verify.status), (hostile["verify"]["path"].clone(), 404));
    assert_eq!(verify.contains, Some(texts.concat()));
    assert_eq!(json!(read.sandbox.read), hostile["sandbox"]["read"]);
    assert_eq!(read.profile.map(|profile| (profile.command.len(), profile.rate_hz)), Some((2, Some(50))));
}

#[tokio::test]
async fn invalid_fields_are_refused_with_the_errors_of_the_agent() {
    let app = App::start().await;
    let reader = app.reader().await;
    for (field, value, error) in [
        ("name", json!("../x"), "name: \"../x\" must be 1 to 64 letters, digits, '-', '_' or '.'"),
        ("command", json!(["x"]), "command: {port} is missing in command and env, so the target can't know its port"),
        ("command", json!([]), "command: program is missing"),
        ("ready", json!({"path": "/", "status": 42}), "ready.status: 42 is not an HTTP status"),
        ("ready", json!({"path": "/", "timeout_s": 0}), "ready.timeout_s: 0 must be above 0 and at most 600"),
    ] {
        let mut body = hello();
        body[field] = value;
        assert!(reader.post(API, &body).await.refused(422).starts_with(error), "{body}");
    }
    let mut body = hello();
    (body["name"], body["version"]) = (json!("n".repeat(10_000)), json!(" "));
    let all = reader.post(API, &body).await.refused(422);
    assert!(
        all.starts_with("name: \"nnn") && all.ends_with("; version: must not be empty") && all.len() < 300,
        "{all}"
    );
    body = hello();
    body["port"] = json!(8080);
    assert!(reader.post(API, &body).await.refused(422).contains("port"), "an unknown field is not ignored");
}

#[tokio::test]
async fn the_page_previews_checks_and_downloads_a_manifest_without_javascript() {
    let app = App::start().await;
    let user = app.signed_in(Role::Member).await;
    let page = user.get("/targets/new").await.ok().text();
    assert!(page.contains("An agent can read this manifest.") && page.contains("my-server.toml"), "{page}");
    let page = user.get("/targets/new?kind=container").await.ok().text();
    assert!(page.contains("[container]") && page.contains("An agent can read this manifest."), "{page}");
    assert!(user.get("/targets/new?kind=ship").await.refused(422).contains("kind"));

    let page = user.form("/targets/new", &FORM).await.ok().text();
    let escaped = MANIFEST.replace('"', "&#34;");
    assert!(page.contains(&escaped) && page.contains("brewbench target check hello.toml"), "{page}");
    // A comment is kept, and a browser ends lines with both characters.
    let sent = format!("# why\n{MANIFEST}");
    let file = user.form("/targets/new/manifest", &[("toml", &sent.replace('\n', "\r\n"))]).await.ok();
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"hello.toml\"");
    assert_eq!((file.header("content-type"), file.text()), ("application/toml", sent));

    let bad = MANIFEST.replace("path = \"/\"", "path = \"<script>'\"\n[env]\n\"A=B\" = \"1\"");
    for (path, status) in [("/targets/new", 200), ("/targets/new/manifest", 422)] {
        let answer = user.form(path, &[("toml", &bad)]).await;
        let page = answer.text();
        assert_eq!((answer.status.as_u16(), page.contains("<script>'")), (status, false), "{page}");
        assert!(page.contains("env: &#34;A=B&#34; is not the name of a variable"), "{page}");
        assert!(page.contains("ready.path: &#34;&#60;script&#62;&#39;&#34; must start with &#39;/&#39;"), "{page}");
        assert!(!page.contains("brewbench target check"), "{page}");
    }
    let unreadable = user.form("/targets/new", &[("toml", "name = \"hello\"\nversion = 2\n")]).await.ok().text();
    assert!(unreadable.contains("line 2") && unreadable.contains("can’t read this manifest yet"), "{unreadable}");
}

#[tokio::test]
async fn pages_link_to_the_form() {
    let app = App::start().await;
    let user = app.signed_in(Role::Member).await;
    for path in ["/", "/targets", "/experiments/new"] {
        assert!(user.get(path).await.ok().text().contains("href=\"/targets/new\""), "{path}");
    }
    let _agent = Agent::start(&app, "rack").await;
    for path in ["/targets", "/experiments/new"] {
        assert!(user.get(path).await.ok().text().contains("href=\"/targets/new\""), "{path}");
    }
}

#[tokio::test]
async fn a_target_with_the_name_of_the_page_is_still_reachable() {
    let app = App::start().await;
    let user = app.signed_in(Role::Member).await;
    assert!(!user.get("/targets/new").await.ok().text().contains("%6Eew"));
    let _agent = Agent::start_with(&app, "rack", |hello| hello.targets[0].name = "new".to_owned()).await;
    assert!(user.get("/targets/new").await.ok().text().contains("href=\"/targets/%6Eew\""));
    let page = user.get("/targets/%6Eew").await.ok().text();
    assert!(page.contains("<h2>Versions</h2>"), "{page}");
}

#[tokio::test]
async fn the_page_shows_which_agents_offer_the_target_as_they_connect() {
    let app = App::start().await;
    let viewer = app.signed_in(Role::Viewer).await;
    let mut page = open_live(&viewer, "2").await;
    wait_for(&mut page, "No agent is connected.").await;
    let mut agent = Agent::start(&app, "rack").await;
    wait_for(&mut page, "rack does not offer hello yet").await;

    let offer = TargetOffer { name: "hello".to_owned(), version: "1".to_owned(), ..agent.hello.targets[0].clone() };
    agent.hello.targets.push(offer);
    agent.connect(&app).await.expect("accepted");
    wait_for(&mut page, "rack offers hello 1, not 2 yet").await;
    agent.hello.targets[2].version = "2".to_owned();
    agent.connect(&app).await.expect("accepted");
    wait_for(&mut page, "href=\"/experiments/new?target=hello\"").await;
    let form = viewer.form("/targets/new", &FORM).await.ok().text();
    assert!(form.contains("<b>rack offers hello</b> 2") && form.contains("href=\"/targets/hello\""), "{form}");
}

#[tokio::test]
async fn a_busy_agent_reads_its_manifests_after_its_run() {
    let app = App::start().await;
    let mut agent = Agent::start(&app, "rack").await;
    crate::harness::submit::submit_one(&app.user().await).await;
    agent.job().await;
    let form = app.signed_in(Role::Member).await.form("/targets/new", &FORM).await.ok().text();
    assert!(form.contains("rack is busy with a run and reads its manifests afterwards"), "{form}");
}

async fn target_new(arguments: &[&str]) -> Output {
    Output::of(brewbench(&[&["target", "new"], arguments].concat())).await
}

#[tokio::test]
async fn the_command_prints_a_manifest_or_writes_a_new_file() {
    let command = ["hello", "--version", "2", "--", "/usr/bin/python3", "hello.py", "{host}", "{port}"];
    assert_eq!(target_new(&command).await.ok(), MANIFEST);
    let folder = brewbench_testing::public_folder();
    let file = folder.path().join("hello.toml").display().to_string();
    let to_file = [&["--output", &file], command.as_slice()].concat();
    let done = target_new(&to_file).await;
    assert!(done.err.contains(&format!("`brewbench target check {file}`")), "{}", done.err);
    assert_eq!(fs::read_to_string(&file).expect("a file"), MANIFEST);
    fs::write(&file, "mine").expect("a file");
    let refused = target_new(&to_file).await.refused(1);
    assert_eq!(refused, format!("brewbench: {file} exists; choose another file or remove it\n"));
    assert_eq!(fs::read_to_string(&file).expect("a file"), "mine");

    let all = [
        "x",
        "--revision",
        "4f1c2ab",
        "--description",
        "a \"server\"",
        "--env",
        "PORT={port}",
        "--ready-path",
        "/up",
        "--ready-status",
        "204",
        "--ready-timeout",
        "1m",
        "--verify-path",
        "/hash",
        "--verify-status",
        "201",
        "--verify-contains",
        "hash",
        "--read",
        "/srv",
        "--write",
        "/tmp/x",
        "--pprof",
        "/debug/pprof/profile?seconds={s}",
        "--profile-kind",
        "cpu",
        "--profile-kind",
        "heap",
        "--",
        "serve",
    ];
    let read = ManifestFile::parse(&target_new(&all).await.ok()).expect("a manifest");
    let profile = read.profile.expect("a profile");
    assert_eq!((profile.pprof.as_deref(), profile.kinds.len()), (Some("/debug/pprof/profile?seconds={s}"), 2));
    let verify = read.verify.expect("a check");
    assert_eq!((read.ready.status, read.ready.timeout_s, verify.status), (204, 60.0, 201));
    assert_eq!((read.env["PORT"].as_str(), read.sandbox.write[0].as_path()), ("{port}", Path::new("/tmp/x")));
    let fault = target_new(&["my server", "--", "serve"]).await.refused(1);
    assert_eq!(
        fault,
        "brewbench: name: \"my server\" must be 1 to 64 letters, digits, '-', '_' or '.'; command: {port} is missing in \
         command and env, so the target can't know its port\n"
    );
    assert!(target_new(&["x"]).await.refused(2).contains("COMMAND"));
}

#[tokio::test]
async fn a_running_agent_offers_a_target_as_soon_as_its_manifest_appears() {
    let Some(tools) = Tools::find() else { return };
    let (app, folder) = (App::start().await, brewbench_testing::public_folder());
    let (manifests, key) = (folder.path().join("targets"), app.one_time_key("rack").await);
    fs::create_dir(&manifests).expect("a folder");
    let more = [OsStr::new("--manifests"), manifests.as_os_str()];
    let agent = agent_with(&app, &key, &folder.path().join("state"), &tools, &more).await;
    agent.wait_for("no targets yet").await;
    let viewer = app.signed_in(Role::Viewer).await;
    let mut page = open_live(&viewer, "2").await;
    wait_for(&mut page, "rack does not offer hello yet").await;

    let toml = app.reader().await.post(API, &hello()).await.ok().json();
    fs::write(manifests.join("hello.toml"), text(&toml["toml"]).replace("/usr/bin/python3", "/bin/sh"))
        .expect("a file");
    wait_for(&mut page, "<b>rack offers hello</b> 2").await;
    let listed = viewer.get("/api/v1/targets").await.ok().json();
    assert_eq!((&listed["targets"][0]["name"], &listed["targets"][0]["version"]), (&json!("hello"), &json!("2")));
    fs::remove_file(manifests.join("hello.toml")).expect("removed");
    wait_for(&mut page, "rack does not offer hello yet").await;
    assert!(!agent.stderr().contains("connection lost"), "{}", agent.stderr());
}
