//! Profiles of the bundled targets by perf and pprof, taken by a real agent under load.

use std::{path::Path, process::Command};

use brewbench_agent::profile::offer::usable_perf;
use brewbench_testing::skip;
use serde_json::{Value, json};

use crate::{
    harness::{
        Actor,
        program::{Running, Tools},
        submit::{plan_with, submit, text, vus},
    },
    processes::{serve_with_agent, until, user_of},
    profiles::ids,
};

/// A server whose own agent lets profilers attach.
async fn site(data: &Path, tools: &Tools) -> (Running, Actor) {
    let mut command = serve_with_agent(data, tools);
    command.args(["--profilers", "pprof,perf"]);
    let site = Running::start(command);
    let user = user_of(&site, data).await;
    until(&site, "the targets", async || {
        let list = user.get("/api/v1/targets").await.ok().json();
        (list["targets"].as_array()?.len() >= 3).then_some(())
    })
    .await;
    (site, user)
}

/// Submits a plan and waits for its end. Returns its runs.
async fn measured(site: &Running, user: &Actor, plan: &Value) -> Vec<Value> {
    let (id, ids) = submit(user, plan).await;
    for run in ids {
        until(site, "the end of a run", async || {
            Some(user.run(&run).await).filter(|run| !run["finished_at_ms"].is_null())
        })
        .await;
    }
    let found = user.get(&format!("/api/v1/experiments/{id}")).await.ok().json();
    found["runs"].as_array().expect("runs").clone()
}

#[tokio::test]
async fn perf_names_the_function_that_a_slower_build_burns_its_time_in() {
    let Some(tools) = Tools::find() else { return };
    if let Err(why) = usable_perf() {
        return skip(&format!("no perf: {why}"));
    }
    let data = tempfile::tempdir().expect("a folder");
    let (site, user) = site(data.path(), &tools).await;
    let plan = plan_with(&json!({
        "targets": ["rust-hyper", "rust-hyper-slow"], "load": vus(2, 2.0), "warm_up_s": 0.3, "profiled_repetitions": 4,
    }));
    let runs = measured(&site, &user, &plan).await;
    let query = format!("baseline={}&candidate={}", ids(&runs, "rust-hyper"), ids(&runs, "rust-hyper-slow"));
    let found = user.get(&format!("/api/v1/profiles/compare?{query}&limit=1000")).await.ok().json();
    let difference = found["difference"]["difference"].as_f64().expect("a number");
    assert!(found["difference"]["is_significant"] == true && difference > 0.0, "{found}");
    assert!(found["headline"][0].as_str().expect("a sentence").contains("burn"), "{}", found["headline"]);
    let functions = found["functions"].as_array().expect("functions");
    let burnt = functions.iter().find(|row| text(&row["function"]).ends_with("::burn")).expect("the function");
    let part = &burnt["total"];
    assert!(burnt["presence"] == "new" && part["is_significant"] == true, "{burnt}");
    let (low, high) = (part["low"].as_f64().expect("a number"), part["high"].as_f64().expect("a number"));
    // All of the difference is in that function, but for what the load does to caches.
    assert!(low <= difference * 1.1 && high >= difference * 0.9, "{low} to {high} of {difference}");
    for profile in found["candidate"]["profiles"].as_array().expect("profiles") {
        assert_eq!(profile["source"], "perf");
        assert!(profile["samples"].as_u64() > Some(100) && profile["rate_hz"] == 999.0, "{profile}");
    }
}

#[tokio::test]
async fn the_table_of_a_go_target_agrees_with_go_tool_pprof() {
    let Some(tools) = Tools::find() else { return };
    let data = tempfile::tempdir().expect("a folder");
    let (site, user) = site(data.path(), &tools).await;
    let plan = plan_with(&json!({
        "targets": ["go-nethttp"], "load": vus(2, 3.0), "warm_up_s": 0.3, "profiled_repetitions": 1,
    }));
    let runs = measured(&site, &user, &plan).await;
    let run = ids(&runs, "go-nethttp");
    for kind in ["cpu", "heap", "allocs"] {
        let table = user.get(&format!("/api/v1/profiles?runs={run}&kind={kind}&limit=10000")).await.ok().json();
        let file = data.path().join(format!("{kind}.pb.gz"));
        let body = user.get(&format!("/api/v1/runs/{run}/profile?kind={kind}")).await.ok();
        std::fs::write(&file, &body.body).expect("a file");
        let mut pprof = Command::new("go");
        pprof.args(["tool", "pprof", "-top", "-nodecount=5", "-symbolize=none"]).arg(&file).current_dir(data.path());
        let printed = pprof.output().expect("go").stdout;
        let printed = String::from_utf8(printed).expect("text");
        let lines: Vec<Vec<&str>> = printed.lines().map(|line| line.split_whitespace().collect()).collect();
        let first = lines.iter().position(|line| line.first() == Some(&"flat")).expect("a header") + 1;
        for line in &lines[first..] {
            let [_, flat, _, _, total, name, ..] = line[..] else { panic!("{printed}") };
            // Instances of a generic function are one row of the table.
            if name.contains('[') {
                continue;
            }
            let percent = |text: &str| text.trim_end_matches('%').parse::<f64>().expect("a share");
            let row = table["functions"].as_array().expect("functions").iter().find(|row| row["function"] == name);
            let row = row.unwrap_or_else(|| panic!("{kind}: {name} of {printed} is not in {table}"));
            for (field, expected) in [("own_share", percent(flat)), ("total_share", percent(total))] {
                let share = row[field].as_f64().expect("a share") * 100.0;
                assert!((share - expected).abs() < 0.1, "{kind}: {name}: {share} % instead of {expected} %: {printed}");
            }
        }
    }
}
