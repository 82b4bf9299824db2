//! Adding a target: its manifest on the page, by the API and by the command, and the agent that picks it up.

use std::{ffi::OsStr, fs};

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
    wait_for(&mut page, "href=\"/experiments/new?target=hello&#38;scenario=get").await;
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
    let command = ["hello", "--set", "version=2", "--", "/usr/bin/python3", "hello.py", "{host}", "{port}"];
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

    let fault = target_new(&["my server", "--", "serve"]).await.refused(1);
    assert_eq!(
        fault,
        "brewbench: name: \"my server\" must be 1 to 64 letters, digits, '-', '_' or '.'; command: {port} is missing in \
         command and env, so the target can't know its port\n"
    );
    let fault = target_new(&["x", "--set", "ready.pth=/up"]).await.refused(1);
    assert!(fault.starts_with("brewbench: ready.pth: unknown field `pth`"), "{fault}");
    let fault = target_new(&["x", "--url", "http://x", "--image", "y"]).await.refused(1);
    assert!(fault.starts_with("brewbench: url: remove it; a target has one of "), "{fault}");
}

#[tokio::test]
async fn without_values_the_command_writes_the_template_of_the_page() {
    let page = app_template("vm").await;
    let template = target_new(&["shop", "--kind", "vm"]).await.ok();
    assert!(template.contains("# kernel = \"vmlinuz\"") && template.contains("name = \"shop\""), "{template}");
    assert_eq!(template.replace("shop", "my-server"), page);
    assert!(target_new(&["shop"]).await.ok().contains("\ncommand = [\"/usr/bin/my-server\""));
    let fault = target_new(&["shop", "--kind", "ship"]).await.refused(2);
    assert!(fault.contains("use one of process, container, vm, url, kubernetes"), "{fault}");
    assert!(target_new(&["a\"b"]).await.refused(1).contains("name: "));
}

/// The template of a kind on the page.
async fn app_template(kind: &str) -> String {
    let app = App::start().await;
    let page = app.reader().await.get(&format!("/targets/new?kind={kind}")).await.ok().text();
    let (_, text) = page.split_once("<textarea").expect("a text area");
    let text = text.split_once('>').and_then(|(_, text)| text.split_once("</textarea>")).expect("its text").0;
    text.trim_start_matches('\n').replace("&#34;", "\"").replace("&#39;", "'")
}

#[tokio::test]
async fn a_value_can_be_set_in_each_field() {
    let program: &[&str] = &["--set", "command=[\"serve\", \"{port}\"]"];
    let container = &["--image", "x", "--set", "container.port=80"];
    let image = &["--image", "x"];
    let pod = &["--kind", "kubernetes", "--image", "x", "--set", "kubernetes.port=80"];
    let server = &["--url", "http://x"];
    let scraped = &["--url", "http://x", "--set", "metrics.scrape=http://x:9100/metrics"];
    let launcher = &["--kind", "vm", "--", "run", "{vcpus}", "{memory_mib}", "{port}"];
    let disk = &["--set", "vm.disk=d.qcow2", "--set", "vm.port=80"];
    let kernel = &["--set", "vm.kernel=vmlinuz", "--set", "vm.port=80"];
    let verified = &[program, &["--set", "verify.path=/hash"]].concat();
    let pprof = &[program, &["--set", "profile.pprof=/debug/pprof/profile?seconds={s}"]].concat();
    for (given, set, pointer, value) in [
        (program, "version=1.2", "/version", json!("1.2")),
        (program, "revision=4f1c2ab", "/revision", json!("4f1c2ab")),
        (program, "description=a \"server\"", "/description", json!("a \"server\"")),
        (program, "env.ADDRESS={host}:{port}", "/env/ADDRESS", json!("{host}:{port}")),
        (program, "ready.path=/up", "/ready/path", json!("/up")),
        (program, "ready.status=204", "/ready/status", json!(204)),
        (program, "ready.timeout_s=60", "/ready/timeout_s", json!(60.0)),
        (program, "verify.path=/hash", "/verify/path", json!("/hash")),
        (verified, "verify.status=201", "/verify/status", json!(201)),
        (verified, "verify.contains=42", "/verify/contains", json!("42")),
        (pprof, "profile.kinds=[\"cpu\", \"heap\"]", "/profile/kinds/1", json!("heap")),
        (program, "profile.rate_hz=99", "/profile/rate_hz", json!(99)),
        (program, "sandbox.read=[\"/srv\"]", "/sandbox/read/0", json!("/srv")),
        (program, "sandbox.write=[\"/tmp/x\"]", "/sandbox/write/0", json!("/tmp/x")),
        (program, "identity=[\"src/**\"]", "/identity/0", json!("src/**")),
        (container, "container.image=y:1", "/container/image", json!("y:1")),
        (container, "container.command=[\"--quiet\"]", "/container/command/0", json!("--quiet")),
        (image, "container.port=8080", "/container/port", json!(8080)),
        (container, "container.network=bridge", "/container/network", json!("bridge")),
        (container, "container.pull=always", "/container/pull", json!("always")),
        (container, "container.seccomp=unconfined", "/container/seccomp", json!("unconfined")),
        (container, "container.user=65534:65534", "/container/user", json!("65534:65534")),
        (container, "container.env.MODE=1", "/container/env/MODE", json!("1")),
        (
            container,
            "container.mounts=[{source = \"/srv\", target = \"/data\"}]",
            "/container/mounts/0",
            json!({"source": "/srv", "target": "/data"}),
        ),
        (pod, "kubernetes.command=[\"/shop\"]", "/kubernetes/command/0", json!("/shop")),
        (pod, "kubernetes.env.MODE=fast", "/kubernetes/env/MODE", json!("fast")),
        (pod, "kubernetes.node_selector.\"a.b/pool\"=bench", "/kubernetes/node_selector/a.b~1pool", json!("bench")),
        (pod, "kubernetes.runtime_class=gvisor", "/kubernetes/runtime_class", json!("gvisor")),
        (pod, "kubernetes.pull_secrets=[\"s\"]", "/kubernetes/pull_secrets/0", json!("s")),
        (pod, "kubernetes.service=true", "/kubernetes/service", json!(true)),
        (server, "url.redirects=[\"www.x\"]", "/url/redirects/0", json!("www.x")),
        (server, "metrics.scrape=http://x:9100/metrics", "/metrics/scrape", json!("http://x:9100/metrics")),
        (scraped, "metrics.preset=cadvisor", "/metrics/preset", json!("cadvisor")),
        (scraped, "metrics.labels.name=shop", "/metrics/labels/name", json!("shop")),
        (launcher, "vm.env.MODE=fast", "/vm/env/MODE", json!("fast")),
        (disk, "vm.seed=seed", "/vm/seed", json!("seed")),
        (disk, "vm.accelerator=tcg", "/vm/accelerator", json!("tcg")),
        (disk, "vm.tap={interface = \"t0\", address = \"10.0.0.2\"}", "/vm/tap/address", json!("10.0.0.2")),
        (kernel, "vm.initrd=initrd.img", "/vm/initrd", json!("initrd.img")),
        (kernel, "vm.append=root=/dev/vda1 quiet", "/vm/append", json!("root=/dev/vda1 quiet")),
    ] {
        let toml = target_new(&[&["x", "--set", set], given].concat()).await.ok();
        let read = json!(ManifestFile::parse(&toml).expect(set));
        assert_eq!(read.pointer(pointer), Some(&value), "{set}: {toml}");
    }
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
