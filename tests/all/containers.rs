//! Targets in containers of a real Podman: measured by a real agent beside the same server in other kinds.

use std::{collections::BTreeMap, ffi::OsStr, fs, path::Path};

use brewbench_testing::{Guest, Image, Manner, Podman, Registry, public_folder};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::{
    harness::{
        App,
        program::{Output, Running, Tools, brewbench},
        submit::{plan_with, reaches, submit, text, vus},
    },
    processes::{GRACE, agent_with, assert_clean, serve_with_agent, until, user_of},
    url_targets::serve,
};

const CHECKS: &str = "[ready]\npath = \"/health\"\n[verify]\npath = \"/hash\"\ncontains = \"hash\"\n";

/// Loads the bundled servers as images, and writes manifests of the same server in all kinds but `url`.
fn offer(podman: &Podman, tools: &Tools, manifests: &Path) {
    let program = |name: &str| tools.targets.join("bin").join(name);
    podman.load("rust-hyper:1", &Image::of(&program("rust-hyper"), &[]));
    podman.load("go-nethttp:1", &Image::of(&program("go-nethttp"), &[]));
    let container = |image: &str, network: &str, listen: &str| {
        format!("[container]\nimage = \"localhost/{image}:1\"\nnetwork = \"{network}\"\ncommand = [{listen}]\n")
    };
    let (hyper, go) = ("\"--listen\", \"{host}:{port}\"", "\"-listen\", \"{host}:{port}\"");
    for (name, provided) in [
        ("started", format!("command = [\"{}\", {hyper}]\n", program("rust-hyper").display())),
        ("in-host", container("rust-hyper", "host", hyper)),
        ("in-bridge", container("rust-hyper", "bridge", hyper)),
        ("go-in-host", container("go-nethttp", "host", go)),
    ] {
        let text = format!("name = \"{name}\"\nversion = \"1\"\n{provided}{CHECKS}");
        fs::write(manifests.join(format!("{name}.toml")), text).expect("a manifest");
    }
}

#[tokio::test]
async fn the_same_server_is_measured_in_every_kind() {
    let (Some(tools), Some(podman), Some(guest)) = (Tools::find(), Podman::start(), Guest::build()) else { return };
    let (_target, base) = serve(&tools.targets).await;
    let (data, manifests) = (tempfile::tempdir().expect("a folder"), public_folder());
    offer(&podman, &tools, manifests.path());
    let staging = format!("name = \"staging\"\nversion = \"1\"\n{CHECKS}[url]\nbase = \"{base}/\"\n");
    fs::write(manifests.path().join("staging.toml"), staging).expect("a manifest");
    guest.install(&manifests.path().join("launch"));
    let launched = "[vm]\ncommand = [\"./launch\", \"{vcpus}\", \"{memory_mib}\", \"{host}:{port}\"]\n";
    let slow = CHECKS.replace("[verify]", "timeout_s = 60\n[verify]");
    let manifest = format!("name = \"in-guest\"\nversion = \"1\"\n{slow}{launched}");
    fs::write(manifests.path().join("in-guest.toml"), manifest).expect("a manifest");
    let mut command = serve_with_agent(data.path(), &tools);
    command.arg("--manifests").arg(manifests.path()).arg("--container-engine").arg(podman.socket());
    let site = Running::start(command);
    let user = user_of(&site, data.path()).await;
    until(&site, "the targets", async || {
        let list = user.get("/api/v1/targets").await.ok().json();
        (list["targets"].as_array()?.len() == 6).then_some(())
    })
    .await;

    let names = ["started", "in-host", "in-bridge", "go-in-host", "in-guest", "staging"];
    let plan = plan_with(&json!({"targets": names, "warm_up_s": 0}));
    let (_, runs) = submit(&user, &plan).await;
    assert_eq!(runs.len(), names.len());
    let mut ids = BTreeMap::new();
    for run in &runs {
        let run = until(&site, "the end of a run", async || {
            Some(user.run(run).await).filter(|run| !run["finished_at_ms"].is_null())
        })
        .await;
        ids.insert(text(&run["target"]), text(&run["id"]));
        let kind = match text(&run["target"]).as_str() {
            "started" => "process",
            "staging" => "url",
            "in-guest" => "vm",
            _ => "container",
        };
        assert_eq!((&run["phase"], &run["target_kind"]), (&json!("finished"), &json!(kind)), "{run}");
        let is_known = kind != "url";
        assert_eq!(run["cpu_ms_per_request"].is_number(), is_known, "{run}");
        assert_eq!(run["reasons"].to_string().contains("size_not_enforced"), !is_known, "{run}");
        assert_eq!(run["reasons"].to_string().contains("emulated"), kind == "vm", "{run}");
        if kind == "vm" {
            assert_eq!(run["enforced"], json!({"cpu": "guest", "memory": "guest"}), "{run}");
        }
        if kind == "container" {
            assert!(text(&run["target_identity"]).starts_with("sha256:"), "{run}");
            let facts = user.get(&format!("/api/v1/runs/{}/environment", text(&run["id"]))).await.ok().text();
            assert!(facts.contains("container.engine") && facts.contains("target.image_id"), "{facts}");
        }
    }
    assert_eq!(podman.leftovers(), Vec::<String>::new());

    let listed = user.get("/api/v1/runs?kind=container").await.ok().json();
    assert_eq!(listed["runs"].as_array().map(Vec::len), Some(3));
    let browser = user.clone().in_browser();
    let page = browser.get("/targets/in-bridge").await.ok().text();
    assert!(page.contains("<td>container</td>") && page.contains("localhost/rust-hyper:1"), "{page}");
    let page = browser.get(&format!("/compare?runs={},{}", ids["started"], ids["in-bridge"])).await.ok().text();
    assert!(page.contains("Kinds of targets"), "{page}");
}

#[tokio::test]
async fn the_progress_of_a_pull_is_shown() {
    let (Some(tools), Some(podman)) = (Tools::find(), Podman::start()) else { return };
    let (data, manifests) = (tempfile::tempdir().expect("a folder"), public_folder());
    let registry = Registry::start(Manner::Slow, Image::of_bytes(48 << 20));
    let image = registry.image();
    let manifest =
        format!("name = \"large\"\nversion = \"1\"\n{CHECKS}[container]\nimage = \"{image}\"\nport = 8080\n");
    fs::write(manifests.path().join("large.toml"), manifest).expect("a manifest");
    let mut command = serve_with_agent(data.path(), &tools);
    command.arg("--manifests").arg(manifests.path()).arg("--container-engine").arg(podman.socket());
    let site = Running::start(command);
    let user = user_of(&site, data.path()).await;
    until(&site, "the target", async || {
        let list = user.get("/api/v1/targets").await.ok().json();
        (list["targets"].as_array()?.len() == 1).then_some(())
    })
    .await;
    let run = submit(&user, &plan_with(&json!({"targets": ["large"]}))).await.1.remove(0);
    let step = until(&site, "the progress", async || {
        let now = user.get("/api/v1/runs/now").await.ok().json();
        now["running"][0]["step"].as_str().filter(|step| step.contains(" of ")).map(str::to_owned)
    })
    .await;
    assert!(step.starts_with(&format!("Pulling {image}: ")) && step.ends_with(" MiB"), "{step}");
    let page = user.clone().in_browser().get(&format!("/runs/{run}")).await.ok().text();
    assert!(page.contains(&format!("Pulling {image}")), "{page}");
    registry.release();
    // The content is no program.
    let ended = until(&site, "the end of the run", async || {
        Some(user.run(&run).await).filter(|run| !run["finished_at_ms"].is_null())
    })
    .await;
    assert_eq!(ended["phase"], "failed", "{ended}");
    assert!(text(&ended["error"]).contains("exec format error"), "{ended}");
}

#[tokio::test]
async fn a_killed_agent_leaves_no_container_once_it_is_back() {
    let (Some(tools), Some(podman)) = (Tools::find(), Podman::start()) else { return };
    let manifests = public_folder();
    offer(&podman, &tools, manifests.path());
    let socket = podman.socket();
    let more: [&OsStr; 4] =
        ["--manifests".as_ref(), manifests.path().as_ref(), "--container-engine".as_ref(), socket.as_ref()];
    let plan = plan_with(&json!({"targets": ["in-bridge"], "load": vus(2, 60.0), "warm_up_s": 3}));
    for phase in ["preparing", "warming_up", "measuring"] {
        let app = App::start().await;
        let (user, key) = (app.user().await, app.key("rack").await);
        let state = tempfile::tempdir().expect("a folder");
        let mut agent = agent_with(&app, &key, state.path(), &tools, &more).await;
        let run = submit(&user, &plan).await.1.remove(0);
        reaches(&app, &user, &run, phase).await;
        agent.signal(Signal::SIGKILL);
        agent.ended(GRACE).await;
        if phase != "preparing" {
            assert_eq!(podman.containers(), [format!("brewbench-{run}")], "a container outlives its agent");
        }
        let mut back = agent_with(&app, &key, state.path(), &tools, &more).await;
        reaches(&app, &user, &run, "lost").await;
        // Podman may still be creating what the killed agent has requested.
        until(&back, "the end of the container", async || Some(()).filter(|()| podman.leftovers().is_empty())).await;
        back.signal(Signal::SIGTERM);
        assert!(back.ended(GRACE).await.success(), "{}", back.stderr());
        assert_clean(state.path());
    }
}

#[tokio::test]
async fn a_manifest_of_a_container_is_written_and_checked() {
    let (Some(tools), Some(podman)) = (Tools::find(), Podman::start()) else { return };
    let manifests = public_folder();
    podman.load("rust-hyper:1", &Image::of(&tools.targets.join("bin/rust-hyper"), &[]));
    let file = manifests.path().join("shop.toml").display().to_string();
    let new = ["target", "new", "shop", "--image", "localhost/rust-hyper:1", "--set", "container.network=bridge"];
    let more = ["--set", "ready.path=/health", "--output", &file, "--", "--listen", "{host}:{port}"];
    Output::of(brewbench(&[&new[..], &more].concat())).await.ok();
    let engine = podman.socket().display().to_string();
    let check = |engine: String| {
        let file = file.clone();
        async move { Output::of(brewbench(&["target", "check", &file, "--container-engine", &engine])).await }
    };
    let text = check(engine).await.ok();
    assert!(text.contains("Podman 4") && text.contains("this target can be measured"), "{text}");
    assert_eq!(podman.leftovers(), Vec::<String>::new());
    let Output { code, out, .. } = check("/nowhere/docker.sock".to_owned()).await;
    assert_eq!(code, Some(1));
    assert!(out.contains("there is no socket /nowhere/docker.sock"), "{out}");
}

#[tokio::test]
async fn the_demo_measures_a_container_too() {
    let (Some(tools), Some(podman)) = (Tools::find(), Podman::start()) else { return };
    let data = tempfile::tempdir().expect("a folder");
    let demo = |engine: &Path| {
        let short = ["demo", "--once", "--json", "--containers", "--target", "rust-hyper", "--size", "0.25/256MiB"];
        let mut command = brewbench(&[&short[..], &["--duration", "1s", "--warm-up", "0s", "--repeat", "1"]].concat());
        command.arg("--data").arg(data.path()).arg("--k6").arg(&tools.k6).arg("--manifests").arg(&tools.targets);
        command.arg("--container-engine").arg(engine);
        Output::of(command)
    };
    let document = demo(&podman.socket()).await.json();
    let kinds = |measured: &Value| -> BTreeMap<String, String> {
        let runs = measured["runs"].as_array().expect("runs");
        assert!(runs.iter().all(|run| run["phase"] == "finished"), "{measured}");
        runs.iter().map(|run| (text(&run["target"]), text(&run["target_kind"]))).collect()
    };
    let of = |target: &str, kind: &str| (target.to_owned(), kind.to_owned());
    let program = of("rust-hyper", "process");
    assert_eq!(kinds(&document), BTreeMap::from([program.clone()]), "kinds are not mixed");
    assert_eq!(kinds(&document["container"]), BTreeMap::from([program, of("rust-hyper-container", "container")]));
    assert_eq!(podman.leftovers(), Vec::<String>::new());
    assert!(!tools.targets.join("rust-hyper-container.toml").exists(), "the bundled targets stay as they are");

    let refused = demo(Path::new("/nowhere/docker.sock")).await.refused(1);
    assert!(refused.contains("cannot measure a container: the container engine at /nowhere/docker.sock"), "{refused}");
}
