//! The environment of runs: as JSON, as a page and as a command, alone and compared with another run's.

use brewbench_wire::outcome::{Conditions, IdleWaitResult, Outcome};
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    agent::outcome,
    program::as_user,
    submit::{plan_with, submit},
    summaries::good,
};

/// Two runs of different targets on different machines, and an imported run.
struct Site {
    app: App,
    user: Actor,
    runs: [String; 3],
    _agents: [Agent; 2],
}

impl Site {
    async fn start() -> Self {
        let app = App::start().await;
        let user = app.user().await;
        let (mut rack, mut laptop) = (Agent::start(&app, "rack").await, Agent::start(&app, "laptop").await);
        let mut runs = Vec::new();
        for (agent, target, model) in [(&mut rack, "fast", "Z80"), (&mut laptop, "slow", "6502")] {
            let plan = plan_with(&json!({"targets": [target], "agent": agent.name}));
            runs.push(submit(&user, &plan).await.1.remove(0));
            let job = agent.job().await;
            let mut outcome = outcome(&job, &good());
            outcome.environment.insert("cpu.model".to_owned(), model.to_owned());
            outcome.environment.insert("load.before".to_owned(), format!("{} 0 0", model.len()));
            let idle_wait = IdleWaitResult { waited_ms: 10_000, busy_cores: 1.5, limit_cores: 0.25, idle: false };
            let conditions =
                Conditions { idle_wait: Some(idle_wait), clock_jump_ms: Some(3_600_000), ..Conditions::default() };
            agent.end(Outcome { conditions, ..outcome }).await;
        }
        let imported = user.import(good()).await.json();
        runs.push(imported["runs"][0]["id"].as_str().expect("an id").to_owned());
        let runs = runs.try_into().expect("three");
        Self { app, user, runs, _agents: [rack, laptop] }
    }
}

fn facts(document: &Value) -> usize {
    document["facts"].as_object().map_or(0, serde_json::Map::len)
}

#[tokio::test]
async fn the_api_returns_an_environment_and_its_differences() {
    let Site { app: _app, user, runs: [rack, laptop, imported], _agents } = Site::start().await;
    let environment = user.get(&format!("/api/v1/runs/{rack}/environment")).await.ok().json();
    assert_eq!(
        (&environment["facts"]["cpu.model"], &environment["agent"]),
        (&json!("Z80"), &json!("rack")),
        "{environment}"
    );

    let path = format!("/api/v1/runs/{rack}/environment/difference");
    let difference = user.get(&format!("{path}?with={laptop}")).await.ok().json();
    let rows: Vec<_> = difference["differences"]
        .as_array()
        .expect("differences")
        .iter()
        .map(|one| [&one["fact"], &one["run"], &one["with"], &one["weight"]].map(|text| text.as_str().unwrap_or("?")))
        .collect();
    let expected = [
        ["cpu.model", "Z80", "6502", "matters"],
        ["target.command", "bin/fast --listen {port}", "bin/slow --listen {port}", "target"],
        ["load.before", "3 0 0", "4 0 0", "passing"],
    ];
    assert_eq!(rows, expected);
    assert!(difference["alike"].as_u64() > Some(10), "{difference}");

    let unknown = user.get(&format!("/api/v1/runs/{imported}/environment")).await.ok().json();
    assert_eq!(facts(&unknown), 0, "{unknown}");
    let difference = user.get(&format!("{path}?with={imported}")).await.ok().json();
    assert_eq!(difference["differences"], json!([]));
    user.get(&format!("{path}?with=nowhere")).await.refused(404);
    assert!(user.get(&path).await.refused(422).contains("with"));
    user.get("/api/v1/runs/nowhere/environment").await.refused(404);
}

#[tokio::test]
async fn pages_show_the_environment_and_link_to_the_differences() {
    let Site { app, runs: [rack, laptop, imported], .. } = Site::start().await;
    let user = app.user().await.in_browser();
    let page = async |path: String| user.get(&path).await.ok().text().replace('\u{a0}', " ");
    let run = page(format!("/runs/{rack}")).await;
    assert!(run.contains("not idle within 10 s: 1.50 cores in use, limit 0.25"), "{run}");
    assert!(run.contains("set forward by") && run.contains("net.core.somaxconn"));
    assert!(run.contains(&format!("/runs/{rack}/environment\"")));

    let compared = page(format!("/compare?runs={rack},{laptop}")).await;
    assert!(compared.contains(&format!("/runs/{rack}/environment?with={laptop}")), "{compared}");
    let differences = page(format!("/runs/{rack}/environment?with={laptop}")).await;
    assert!(differences.contains("1 relevant difference") && differences.contains("6502"), "{differences}");
    assert!(page(format!("/runs/{imported}/environment")).await.contains("No environment data"));
    assert!(page(format!("/runs/{rack}/environment?with={rack}")).await.contains("Both are the same run."));
    let gone = user.get(&format!("/runs/{rack}/environment?with=nowhere")).await;
    assert_eq!(gone.status, 404);
}

#[tokio::test]
async fn the_command_shows_environments_and_differences() {
    let Site { app, user, runs: [rack, laptop, imported], _agents } = Site::start().await;
    let end = |id: &str| id.rsplit('-').next().expect("an end").to_owned();
    let command = async |arguments: &[&str]| as_user(&app, user.secret(), arguments).await.ok();
    let text = command(&["run", "environment", &end(&rack)]).await;
    assert!(text.contains("\nProcessor\n") && text.contains("Z80") && text.contains("net.core.somaxconn"), "{text}");
    assert!(text.contains("not idle within 10 s: 1.50 cores in use,"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = command(&["run", "environment", &end(&rack), &end(&laptop)]).await;
    assert!(text.starts_with("1 relevant difference;") && text.contains("6502"), "{text}");
    let text = command(&["compare", &rack, &laptop]).await;
    assert!(
        text.contains(&format!("  details: brewbench run environment {} {}\n", end(&rack), end(&laptop))),
        "{text}"
    );
    let text = command(&["run", "environment", &imported]).await;
    assert!(text.contains("no environment: the run was imported"), "{text}");
    let printed: Value = serde_json::from_str(&command(&["run", "environment", &rack, "--json"]).await).expect("JSON");
    let request = user.request(&Method::GET, &format!("/api/v1/runs/{rack}/environment"));
    assert_eq!(printed, request.send().await.expect("an answer").json::<Value>().await.expect("JSON"));
}
