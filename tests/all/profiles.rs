//! Profiles: requested by plans, stored, shown, compared, downloaded; and kept out of measurements.

mod real;

use brewbench_wire::{
    job::Job,
    outcome::Outcome,
    profile::{
        ProfileData, ProfileKind, ProfileOffer, ProfileQuality, ProfileSource, Profiled, RunProfile, pprof,
        stacks::{Builder, Frame, Stacks},
    },
    series::Packed,
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    program::as_user,
    series::constant_series,
    submit::{plan_with, submit, text, vus},
    summaries::good,
};

/// Stacks as lines: `main;serve;hash 12`.
fn stacks(lines: &[(&str, u64)]) -> Stacks {
    let mut builder = Builder::default();
    for (line, value) in lines {
        let frames: Vec<u32> =
            line.split(';').map(|name| builder.frame(Frame::new(name, "", "server")).expect("small")).collect();
        builder.add(&frames, value * 1_000_000).expect("small");
    }
    builder.build()
}

fn profile(kind: ProfileKind, lines: &[(&str, u64)]) -> RunProfile {
    let quality = ProfileQuality {
        profiler: Some("perf 6.1".to_owned()),
        samples: lines.iter().map(|(_, value)| value).sum(),
        rate_hz: Some(999.0),
        ..ProfileQuality::default()
    };
    let data = pprof::encode(&stacks(lines), kind, &pprof::Facts::default());
    RunProfile { kind, source: ProfileSource::Perf, data, quality }
}

/// The constant series with another CPU time of the target.
fn series(factor: f64) -> Packed {
    let mut series = constant_series().unpack().expect("a series");
    for usage in series.measured.iter_mut().flat_map(|window| &mut window.usage) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "half a million")]
        let scaled = |us: u64| (us as f64 * factor) as u64;
        usage.target.cpu_us = usage.target.cpu_us.map(scaled);
    }
    Packed::pack(&series)
}

/// What an agent would send: `slow` burns a fifth more in one function, and runs differ a little.
fn measured(job: &Job, number: u64) -> Outcome {
    let is_slow = job.spec.target == "slow";
    let noise = 1.0 + number as f64 * 0.002;
    let burnt = if is_slow { 200 } else { 0 };
    let lines = [("main;serve;hash", 700 + number), ("main;serve;write", 300 - number), ("main;serve;burn", burnt)];
    let profiled =
        job.spec.profiled.then(|| Profiled { profiles: vec![profile(ProfileKind::Cpu, &lines)], faults: Vec::new() });
    let series = Some(series(noise * if is_slow { 1.2 } else { 1.0 }));
    Outcome { profiled, series, ..outcome(job, &good()) }
}

/// Submits a profiled experiment of `fast` and `slow`, and lets the agent do it. Returns the experiment and its runs.
pub async fn experiment(user: &Actor, agent: &mut Agent, repetitions: u32, profiled: u32) -> (String, Vec<Value>) {
    let plan = plan_with(&json!({
        "targets": ["fast", "slow"], "repetitions": repetitions, "profiled_repetitions": profiled, "seed": 7, "retries": 0,
    }));
    let (id, runs) = submit(user, &plan).await;
    for number in 0..runs.len() {
        let job = agent.job().await;
        agent.end(measured(&job, number as u64)).await;
    }
    let found = user.get(&format!("/api/v1/experiments/{id}")).await.ok().json();
    (id, found["runs"].as_array().expect("runs").clone())
}

/// The ids of a target's profiled runs, separated by commas.
pub fn ids(runs: &[Value], target: &str) -> String {
    let own = runs.iter().filter(|run| run["target"] == target && run["profiled"] == true);
    own.map(|run| text(&run["id"])).collect::<Vec<_>>().join(",")
}

#[tokio::test]
async fn profiled_runs_come_last_and_enter_no_comparison_trend_or_baseline() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (id, runs) = experiment(&user, &mut agent, 4, 4).await;
    let profiled: Vec<bool> = runs.iter().map(|run| run["profiled"] == true).collect();
    assert_eq!(profiled, [[false; 8], [true; 8]].concat(), "after all measurements");

    let comparison = user.get(&format!("/api/v1/compare?experiments={id}")).await.ok().text();
    let trends = user.get("/api/v1/trends").await.ok().text();
    for run in runs.iter().filter(|run| run["profiled"] == true) {
        let run = text(&run["id"]);
        assert!(!comparison.contains(&run), "{run} is in {comparison}");
        assert!(!trends.contains(&run), "{run} is in {trends}");
        let refused = user.put("/api/v1/baselines/main", &json!({"runs": [run]})).await.refused(422);
        assert!(refused.contains("has no valid results"), "{refused}");
    }
    let listed = user.get("/api/v1/trends").await.ok().json();
    assert_eq!(listed["trends"][0]["runs"], json!(4), "{listed}");

    let alone =
        user.get(&format!("/api/v1/compare?runs={},{}", ids(&runs, "fast"), ids(&runs, "slow"))).await.ok().text();
    assert!(alone.contains("None of 8 runs counts: 8 profiled"), "{alone}");
}

#[tokio::test]
async fn a_comparison_names_the_function_that_burns_the_difference() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (id, runs) = experiment(&user, &mut agent, 4, 4).await;
    let query = format!("baseline={}&candidate={}", ids(&runs, "fast"), ids(&runs, "slow"));
    let found = user.get(&format!("/api/v1/profiles/compare?{query}")).await.ok().json();
    assert_eq!((&found["unit"], &found["confounders"]), (&json!("ms per 1,000 requests"), &json!([])));
    let difference = &found["difference"];
    assert_eq!(difference["is_significant"], true, "{found}");
    let first = &found["functions"][0];
    assert_eq!((&first["function"], &first["presence"]), (&json!("burn"), &json!("new")), "{found}");
    let (burnt, all) = (&first["own"]["difference"], &difference["difference"]);
    let ratio = burnt.as_f64().expect("a number") / all.as_f64().expect("a number");
    assert!((0.9..1.1).contains(&ratio), "{ratio}");
    assert!(first["own"]["low"].as_f64() > Some(0.0), "{first}");
    let headline = found["headline"].to_string();
    assert!(headline.contains("burn"), "{headline}");
    for function in &found["functions"].as_array().expect("functions")[1..] {
        assert_eq!(function["own"]["is_significant"], false, "{function}");
    }

    let graph = user.get(&format!("/api/v1/profiles/compare/graph?{query}")).await.ok().json();
    assert_eq!(graph["sides"], json!(["fast", "slow"]));
    let changed = graph["change"].as_array().expect("changes").iter().filter(|change| **change == 1).count();
    assert!(changed >= 1, "{graph}");
    assert_eq!(graph["depth"].as_array().map(Vec::len), graph["value"].as_array().map(Vec::len));

    let browser = user.clone().in_browser();
    let page = browser.get(&format!("/profiles/compare?{query}")).await.ok().text();
    assert!(page.contains("Where the difference is") && page.contains("<code>burn</code>"), "{page}");
    let page = browser.get(&format!("/experiments/{id}")).await.ok().text();
    assert!(page.contains(&format!("/profiles/compare?{}", query.replace('&', "&#38;"))), "{page}");
}

#[tokio::test]
async fn a_profile_is_shown_as_table_and_graph_and_downloaded_as_pprof() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = experiment(&user, &mut agent, 1, 1).await;
    let id = ids(&runs, "slow");
    let table = user.get(&format!("/api/v1/profiles?runs={id}")).await.ok().json();
    let names: Vec<_> =
        table["functions"].as_array().expect("functions").iter().map(|row| text(&row["function"])).collect();
    assert_eq!(names, ["hash", "write", "burn", "main", "serve"], "by own value");
    assert_eq!(table["functions"][3]["total_share"], json!(1.0), "{table}");
    assert_eq!(table["profiles"][0]["rate_hz"], json!(999.0));
    let graph = user.get(&format!("/api/v1/profiles/graph?runs={id}")).await.ok().json();
    assert_eq!(graph["depth"], json!([0, 1, 2, 3, 3, 3]));
    assert!(graph["base"].is_null() && graph["names"].as_array().is_some_and(|names| names.contains(&json!("burn"))));

    let file = user.get(&format!("/api/v1/runs/{id}/profile")).await.ok();
    assert_eq!(file.header("content-type"), "application/gzip");
    assert!(file.header("content-disposition").ends_with("-cpu.pb.gz\""), "{}", file.header("content-disposition"));
    let page = user.clone().in_browser().get(&format!("/profiles?runs={id}")).await.ok().text();
    assert!(page.contains("<code>hash</code>") && page.contains("data-flame=\"/api/v1/profiles/graph?"), "{page}");
    let page = user.clone().in_browser().get(&format!("/runs/{id}")).await.ok().text();
    assert!(
        page.contains("A profiler slows the target down") && page.contains(&format!("/profiles?runs={id}")),
        "{page}"
    );
}

#[tokio::test]
async fn profiles_that_do_not_exist_or_do_not_belong_together_are_refused_with_the_reason() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = experiment(&user, &mut agent, 1, 1).await;
    let (fast, slow) = (ids(&runs, "fast"), ids(&runs, "slow"));
    let plain = text(&runs[0]["id"]);
    let mut other = plan_with(&json!({"targets": ["slow"], "profiled_repetitions": 1, "load": vus(3, 1.0)}));
    other["retries"] = json!(0);
    let (_, more) = submit(&user, &other).await;
    for number in 0..more.len() {
        let job = agent.job().await;
        agent.end(measured(&job, number as u64)).await;
    }
    for (path, status, words) in [
        ("profiles?runs=".to_owned(), 422, "runs: name profiled runs"),
        (format!("profiles?runs={plain}"), 422, "was not profiled"),
        (format!("profiles?runs={fast},{slow}"), 422, "belong to different cells"),
        ("profiles?runs=0199".to_owned(), 404, "run 0199"),
        (format!("profiles?runs={fast}&kind=heap"), 404, "heap profile of run"),
        (format!("profiles?runs={fast}&kind=disk"), 422, "use one of cpu, heap, allocs"),
        (format!("profiles/compare?baseline={fast}&candidate={fast}"), 422, "is also in the baseline"),
        (format!("profiles/compare?baseline={fast}&candidate={}", more[1]), 409, "Loads differ: 2"),
        (format!("runs/{plain}/profile"), 404, "cpu profile of run"),
    ] {
        let why = user.get(&format!("/api/v1/{path}")).await.refused(status);
        assert!(why.contains(words), "{path}: {why}");
    }
    let anyway = format!("baseline={fast}&candidate={}&allow_confounders=true", more[1]);
    let found = user.get(&format!("/api/v1/profiles/compare?{anyway}")).await.ok().json();
    assert_eq!((found["confounders"].as_array().map(Vec::len), &found["headline"]), (Some(1), &json!([])), "{found}");
    let path = format!("/profiles/compare?baseline={fast}&candidate={}", more[1]);
    let page = user.clone().in_browser().get(&path).await.ok().text();
    assert!(page.contains("Compare anyway") && page.contains("Loads differ"), "{page}");
}

#[tokio::test]
async fn a_missing_or_hostile_profile_makes_the_run_suspect_or_an_error_and_never_markup() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"profiled_repetitions": 3, "retries": 0}))).await;
    let job = agent.job().await;
    agent.end(measured(&job, 0)).await;
    let hostile = profile(ProfileKind::Cpu, &[("main;<script>alert(1)</script>;\u{1b}[31mred", 5)]);
    let garbage = RunProfile { data: ProfileData::new(b"no profile".to_vec()), ..hostile.clone() };
    for profiled in [
        Profiled { profiles: Vec::new(), faults: vec!["perf is missing".to_owned()] },
        Profiled { profiles: vec![hostile], faults: Vec::new() },
        Profiled { profiles: vec![garbage], faults: Vec::new() },
    ] {
        let job = agent.job().await;
        assert!(job.spec.profiled);
        agent.end(Outcome { profiled: Some(profiled), ..measured(&job, 1) }).await;
    }
    let run = user.run(&runs[1]).await;
    assert_eq!(run["verdict"], "suspect", "{run}");
    assert!(run["reasons"].to_string().contains("no profile: perf is missing"), "{run}");
    let why = user.get(&format!("/api/v1/profiles?runs={}", runs[1])).await.refused(404);
    assert!(why.contains("no profile: perf is missing"), "{why}");
    let page = user.clone().in_browser().get(&format!("/profiles?runs={}", runs[2])).await.ok().text();
    assert!(!page.contains("<script>alert") && !page.contains('\u{1b}'), "{page}");
    user.get(&format!("/api/v1/profiles?runs={}", runs[3])).await.refused(404);
}

#[tokio::test]
async fn a_plan_with_profiles_needs_an_agent_that_can_profile() {
    let app = App::start().await;
    let user = app.user().await;
    let _agent = Agent::start_with(&app, "rack", |hello| {
        let reason = "this agent allows no profilers: start it with --profilers perf".to_owned();
        hello.targets[0].profile = Some(ProfileOffer::Impossible { reason });
    })
    .await;
    let plan = plan_with(&json!({"profiled_repetitions": 2}));
    let why = user.post("/api/v1/experiments", &plan).await.refused(409);
    assert!(why.contains("rack can't profile") && why.contains("--profilers perf"), "{why}");
    let plan = plan_with(&json!({"profiled_repetitions": 21}));
    let why = user.post("/api/v1/experiments", &plan).await.refused(422);
    assert!(why.contains("profiled_repetitions: at most 20"), "{why}");
    let page = user.in_browser().get("/experiments/new?target=fast&size=1/256MiB&profile=4").await.ok().text();
    assert!(page.contains("Profile the targets") && page.contains("--profilers perf"), "{page}");
}

#[tokio::test]
async fn commands_show_compare_and_download_profiles() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (id, runs) = experiment(&user, &mut agent, 4, 4).await;
    let run = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await;
    let shown = run(&["profile", "show", "slow", "--experiment", &id, "--top", "2"]).await.ok();
    assert!(shown.contains("hash") && shown.contains("and 3 more"), "{shown}");
    assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
    let compare = ["profile", "compare", "--experiment", &id, "--baseline", "fast", "--candidate", "slow"];
    let compared = run(&compare).await.ok();
    assert!(compared.contains("burn") && compared.contains('*'), "{compared}");
    assert!(compared.lines().all(|line| line.chars().count() <= 80), "{compared}");
    let listed = run(&["experiment", "show", &id]).await.ok();
    let marked = |line: &&str| line.contains("1/256MiB") && line.contains("profiled");
    assert_eq!(listed.lines().filter(marked).count(), 8, "{listed}");
    let markdown = run(&[&compare[..], &["--markdown"]].concat()).await.ok();
    assert!(markdown.contains("| `burn` |") && markdown.contains("**+"), "{markdown}");
    let json = run(&[&compare[..], &["--json"]].concat()).await.json();
    assert_eq!(json["functions"][0]["function"], "burn");
    let why = run(&["profile", "show", "nobody", "--experiment", &id]).await.refused(1);
    assert!(why.contains("no profiled runs of \"nobody\"; profiled: fast, slow"), "{why}");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("slow.pb.gz").display().to_string();
    let first = ids(&runs, "slow").split(',').next().expect("an id").to_owned();
    run(&["profile", "download", &first, "--output", &file]).await.ok();
    let stored = pprof::decode(&std::fs::read(&file).expect("a file"), ProfileKind::Cpu).expect("a profile");
    assert!(stored.frames.iter().any(|frame| frame.function == "burn"));
}
