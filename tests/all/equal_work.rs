//! A target that does less work, measured by a real k6: it looks faster, is reported, and wins nothing.
//!
//! Without k6 or the bundled targets, the tests print the reason and pass.

use std::{fmt::Write as _, path::Path};

use serde_json::{Value, json};

use crate::{
    harness::{
        Actor,
        program::{Running, Tools},
        submit::{plan_with, submit, text, vus},
    },
    processes::{serve_with_agent, until, user_of},
};

/// Requests one path and checks nothing.
const SCRIPT: &str = "import http from 'k6/http'; export default function () { http.get(__ENV.BASE_URL + '/hash'); }";

/// A server with a local agent whose targets are variants of the bundled `rust-hyper`.
struct Site {
    program: Running,
    user: Actor,
    _data: tempfile::TempDir,
}

impl Site {
    async fn start(variants: &[(&str, &[&str])]) -> Option<Self> {
        let tools = Tools::find()?;
        let data = brewbench_testing::public_folder();
        let targets = data.path().join("targets");
        std::fs::create_dir(&targets).expect("a folder");
        for (name, flags) in variants {
            std::fs::write(targets.join(format!("{name}.toml")), manifest(name, flags, &tools)).expect("a manifest");
        }
        let mut command = serve_with_agent(data.path(), &tools);
        // Otherwise k6 follows no redirects, and a redirecting target differs in statuses, not in requests.
        command.args(["--any-scenario", "--allow-any-address"]).arg("--manifests").arg(&targets);
        let program = Running::start(command);
        let user = user_of(&program, data.path()).await;
        until(&program, "the agent", async || {
            let list = user.get("/api/v1/agents").await.ok().json();
            (list["agents"][0]["connected"] == true).then_some(())
        })
        .await;
        user.post("/api/v1/scenarios", &json!({"name": "one-path", "script": SCRIPT})).await.ok();
        Some(Self { program, user, _data: data })
    }

    /// Submits a plan, waits until it has ended, and returns the experiment's id and its runs.
    async fn measure(&self, plan: &Value) -> (String, Vec<Value>) {
        let (experiment, ids) = submit(&self.user, &plan_with(plan)).await;
        let mut runs = Vec::new();
        for id in ids {
            runs.push(
                until(&self.program, "the end of a run", async || {
                    Some(self.user.run(&id).await).filter(|run| !run["finished_at_ms"].is_null())
                })
                .await,
            );
        }
        (experiment, runs)
    }
}

fn manifest(name: &str, flags: &[&str], tools: &Tools) -> String {
    let server = tools.targets.join("bin/rust-hyper");
    let mut command = format!("[{:?}, \"--listen\", \"{{host}}:{{port}}\"", path_text(&server));
    for flag in flags {
        let _ = write!(command, ", {flag:?}");
    }
    format!(
        "name = {name:?}\nversion = \"1\"\ncommand = {command}]\n[ready]\npath = \"/health\"\n\
         [verify]\npath = \"/health\"\nstatus = 200\n"
    )
}

fn path_text(path: &Path) -> &str {
    path.to_str().expect("a UTF-8 path")
}

fn codes(run: &Value) -> Vec<String> {
    run["reasons"].as_array().expect("reasons").iter().map(|reason| text(&reason["code"])).collect()
}

#[tokio::test]
async fn a_target_that_does_different_work_wins_nothing() {
    let variants: [(&str, &[&str]); 6] = [
        ("plain", &[]),
        ("redirect", &["--other-work", "redirect"]),
        ("empty", &["--other-work", "empty"]),
        ("not-modified", &["--other-work", "not-modified"]),
        ("error-page", &["--other-work", "error-page"]),
        ("close", &["--other-work", "close"]),
    ];
    let Some(site) = Site::start(&variants).await else { return };
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    let plan = json!({"targets": names, "scenario": "one-path", "load": vus(2, 1.0), "warm_up_s": 0.2, "retries": 0});
    let (experiment, runs) = site.measure(&plan).await;
    let run_of = |name: &str| runs.iter().find(|run| run["target"] == name).expect("a run").clone();
    for run in &runs {
        assert_eq!(run["phase"], "finished", "{run}");
        assert_eq!(run["work"]["protocols"].as_object().expect("protocols").len(), 1, "{run}");
    }
    let usual = run_of("plain");
    assert_eq!((&usual["work"]["requests_per_iteration"], &usual["work"]["new_connections"]), (&json!(1.0), &json!(2)));
    assert_eq!(usual["work"]["statuses"], json!({"200": usual["requests"]}));
    assert_eq!(run_of("redirect")["work"]["requests_per_iteration"], json!(2.0));
    assert_eq!(run_of("close")["work"]["new_connections"], run_of("close")["requests"]);

    let comparison =
        site.user.get(&format!("/api/v1/compare?experiments={experiment}&allow_confounders=true")).await.ok().json();
    let row = &comparison["rows"][0];
    let facts = |name: &str| {
        let work = row["work"].as_array().expect("differences").iter();
        let pair = [json!(name), json!("plain")];
        let own = work.filter(|one| {
            pair.iter().all(|target| one["targets"].as_array().is_some_and(|both| both.contains(target)))
        });
        own.map(|one| text(&one["fact"])).collect::<Vec<_>>()
    };
    assert_eq!(facts("redirect"), ["requests", "bytes", "statuses"]);
    assert_eq!(facts("empty"), ["bytes"]);
    assert_eq!(facts("not-modified"), ["bytes", "statuses"]);
    assert_eq!(facts("error-page"), ["bytes"]);
    assert!(facts("close").contains(&"connections".to_owned()), "{:?}", facts("close"));
    assert!(
        row["leaders"].as_object().expect("leads").values().all(|lead| *lead == "not_comparable"),
        "{}",
        row["leaders"]
    );
}

#[tokio::test]
async fn longer_headers_are_a_note_and_each_pair_is_judged_by_itself() {
    let variants: [(&str, &[&str]); 4] = [
        ("plain", &[]),
        ("headers", &["--other-work", "headers"]),
        ("another", &[]),
        ("an-empty", &["--other-work", "empty"]),
    ];
    let Some(site) = Site::start(&variants).await else { return };
    let names: Vec<&str> = variants.iter().map(|(name, _)| *name).collect();
    let plan = json!({"targets": names, "scenario": "one-path", "load": vus(2, 1.0), "warm_up_s": 0.0, "retries": 0});
    let (experiment, runs) = site.measure(&plan).await;
    let bytes = |name: &str| {
        let run = runs.iter().find(|run| run["target"] == name).expect("a run");
        run["work"]["bytes_per_request"].as_f64().expect("bytes")
    };
    assert!(bytes("headers") > 1.1 * bytes("plain"), "{} {}", bytes("headers"), bytes("plain"));
    let comparison = site.user.get(&format!("/api/v1/compare?experiments={experiment}")).await.ok().json();
    let work = comparison["rows"][0]["work"].as_array().expect("differences");
    let pairs: Vec<_> = work.iter().map(|one| (text(&one["fact"]), one["targets"].to_string())).collect();
    // Only the empty body is other work, and only in its own pairs.
    assert_eq!(pairs.len(), 3, "{pairs:?}");
    assert!(pairs.iter().all(|(fact, targets)| fact == "bytes" && targets.contains("an-empty")), "{pairs:?}");
    let notes = comparison["notes"].to_string();
    assert!(notes.contains("Response headers differ.") && notes.contains("headers "), "{notes}");
}

#[tokio::test]
async fn a_slow_start_makes_a_run_suspect_unless_an_automatic_warm_up_covers_it() {
    // Requests are expensive at the start and get cheaper every second.
    let slow: &[&str] = &["--extra-rounds", "20000", "--slow-start", "12"];
    let brief: &[&str] = &["--extra-rounds", "20000", "--slow-start", "4"];
    let Some(site) = Site::start(&[("slow", slow), ("brief", brief)]).await else { return };
    let plan =
        json!({"targets": ["slow"], "scenario": "one-path", "load": vus(2, 12.0), "warm_up_s": 0.2, "retries": 0});
    let cold = site.measure(&plan).await.1.remove(0);
    let reason = cold["reasons"].as_array().expect("reasons").iter().find(|reason| reason["code"] == "not_steady");
    match reason {
        Some(reason) => assert!(text(&reason["text"]).contains("throughput rose by"), "{reason:?}"),
        // Tests on the same cores may hide the slow start; then the run reports a disturbed host.
        None => assert!(is_disturbed(&cold), "{}", cold["reasons"]),
    }

    let plan = json!({"targets": ["brief"], "scenario": "one-path", "load": vus(2, 1.0), "warm_up_auto": true,
        "warm_up_s": 2.0, "retries": 0});
    let warm = site.measure(&plan).await.1.remove(0);
    let took = warm["warmed_up_s"].as_f64().expect("a time");
    assert!((9.5..=22.0).contains(&took), "at least three windows of 3 s, at most 20 s: {warm}");
    assert!(warm["warm_up_steady"].is_boolean() && warm["warm_up_auto"] == true, "{warm}");
    // The measurement starts after the slow start.
    let rps = |run: &Value| run["rps"].as_f64().expect("a rate");
    let is_faster = rps(&warm) > 1.2 * rps(&cold);
    assert!(is_faster || is_disturbed(&cold) || is_disturbed(&warm), "{} {}", rps(&warm), rps(&cold));
}

/// Returns whether other programs kept the cores of a run busy.
fn is_disturbed(run: &Value) -> bool {
    codes(run).contains(&"host_disturbed".to_owned())
}
