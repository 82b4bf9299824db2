//! Tools for assistants, used by the protocol's own client: over HTTP, and over the program's standard input and output.

use std::process::Stdio;

use reqwest::StatusCode;
use rmcp::{
    RoleClient, ServiceExt,
    model::{CallToolRequestParams, CallToolResult},
    service::RunningService,
    transport::{StreamableHttpClientTransport, streamable_http_client::StreamableHttpClientTransportConfig},
};
use serde_json::{Value, json};

use crate::harness::{
    Actor, Agent, App,
    program::brewbench,
    submit::{interleaved, text},
    summaries::good,
};

type Assistant = RunningService<RoleClient, ()>;

/// Connects over HTTP.
async fn assistant(app: &App, secret: &str) -> Assistant {
    let place = app.url.join("mcp").expect("a URL");
    let config = StreamableHttpClientTransportConfig::with_uri(place.as_str()).auth_header(secret);
    // Its own would want certificates of this machine, which plain HTTP does not need.
    let client = reqwest::Client::builder().tls_certs_only([]).build().expect("a client");
    ().serve(StreamableHttpClientTransport::with_client(client, config)).await.expect("a connection")
}

/// Calls a tool. Returns its answer, or why it failed.
async fn call(assistant: &Assistant, tool: &str, arguments: Value) -> Result<Value, String> {
    let Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
    let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let CallToolResult { content, is_error, .. } = assistant.call_tool(request).await.expect("an answer");
    let answer = &content[0].as_text().expect("text").text;
    if is_error == Some(true) { Err(answer.clone()) } else { Ok(serde_json::from_str(answer).expect("JSON")) }
}

async fn a_decided_experiment(user: &Actor) -> String {
    let runs = interleaved(user, &[("servy", "1", 1.0), ("gosherve", "1", 1.3)], 8).await;
    text(&user.run(&runs[0][0]).await["experiment"])
}

#[tokio::test]
async fn an_assistant_compares_and_gets_no_figure_without_its_interval() {
    let app = App::start().await;
    let user = app.user().await;
    let experiment = a_decided_experiment(&user).await;
    let assistant = assistant(&app, user.secret()).await;

    let listed = call(&assistant, "list_experiments", json!({})).await.expect("a list");
    assert_eq!(text(&listed["experiments"][0]["id"]), experiment);
    let comparison = call(&assistant, "compare", json!({"experiments": [experiment]})).await.expect("a comparison");
    let result = text(&comparison["result"][0]["sentence"]);
    assert!(result.contains("faster") || result.contains("slower"), "{comparison}");
    let page = text(&comparison["page"]);
    assert_eq!(page, format!("{}compare?experiments={experiment}", app.state.public_url));
    let targets = comparison["settings"][0]["targets"].as_array().expect("targets");
    assert_eq!(targets.len(), 2);
    for figure in targets.iter().flat_map(|target| target["figures"].as_array().expect("figures")) {
        assert!(text(&figure["range"]).ends_with("in 8 runs"), "{figure}");
    }
    assert_eq!((&targets[0]["is_baseline"], &targets[1]["is_baseline"]), (&json!(true), &json!(false)));
    let throughput = &targets[1]["figures"][0];
    let difference = text(&throughput["difference_and_95_percent_interval"]);
    assert!(difference.contains(" % (") && difference.contains(" to "), "{throughput}");

    let runs = call(&assistant, "list_runs", json!({"experiment": experiment, "limit": 3})).await.expect("a list");
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(3));
    assert!(!runs.to_string().contains("rps") && runs["next"].is_string(), "{runs}");
    let run = call(&assistant, "explain_run", json!({"id": runs["runs"][0]["id"]})).await.expect("a run");
    assert_eq!(run["run"]["verdict"], "valid");
    let found = call(&assistant, "search", json!({"query": "gosherve"})).await.expect("hits");
    assert!(text(&found[0]["page"]).ends_with("/targets/gosherve"), "{found}");
}

#[tokio::test]
async fn an_assistant_submits_and_waits() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let assistant = assistant(&app, user.secret()).await;
    let offered = call(&assistant, "list_targets", json!({})).await.expect("a catalog");
    assert!(
        offered["targets"].to_string().contains("\"fast\"") && offered["agents"][0]["connected"] == true,
        "{offered}"
    );

    let plan = json!({"targets": ["fast"], "sizes": ["1/256MiB"], "scenario": "hash", "repetitions": 1,
        "load": {"kind": "vus", "vus": 2, "duration_s": 1.0}});
    let submitted = call(&assistant, "submit_experiment", plan).await.expect("an experiment");
    let experiment = text(&submitted["experiment"]);
    let early = call(&assistant, "wait_for_experiment", json!({"experiment": experiment, "seconds": 0})).await;
    let early = early.expect("progress");
    assert_eq!((&early["state"], early.get("comparison")), (&json!("in_progress"), None));

    let job = agent.job().await;
    agent.finish(&job, &good()).await;
    let ended = call(&assistant, "wait_for_experiment", json!({"experiment": experiment})).await.expect("an end");
    assert_eq!((&ended["state"], ended["comparison"].is_object()), (&json!("finished"), true), "{ended}");
}

#[tokio::test]
async fn an_assistant_may_do_what_its_token_may_do() {
    let app = App::start().await;
    let reader = app.reader().await;
    let assistant = assistant(&app, reader.secret()).await;
    let plan = json!({"targets": ["fast"], "sizes": ["1/256MiB"], "scenario": "hash"});
    let refused = call(&assistant, "submit_experiment", plan).await.expect_err("a refusal");
    assert!(refused.contains("submit"), "{refused}");
    let unknown = call(&assistant, "explain_run", json!({"id": "../tokens"})).await.expect_err("a refusal");
    assert!(unknown.contains("there is no run"), "{unknown}");
    let misspelled = call(&assistant, "compare", json!({"experiment": "x"})).await.expect_err("a refusal");
    assert!(misspelled.contains("experiment"), "{misspelled}");

    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    app.anonymous().post("/mcp", &ping).await.refused(401);
    let off = App::with(|config| config.mcp = false).await;
    assert_eq!(off.admin().await.post("/mcp", &ping).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_program_offers_the_same_tools_over_its_standard_input_and_output() {
    let app = App::start().await;
    let user = app.user().await;
    let experiment = a_decided_experiment(&user).await;
    let mut command = brewbench(&["mcp"]);
    command.env("BREWBENCH_URL", app.url.as_str()).env("BREWBENCH_TOKEN", user.secret());
    let mut program = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a program");
    let channel = (program.stdout.take().expect("stdout"), program.stdin.take().expect("stdin"));
    let assistant = ().serve(channel).await.expect("a connection");
    let tools: Vec<_> = assistant.list_all_tools().await.expect("tools").into_iter().map(|tool| tool.name).collect();
    assert_eq!(tools.len(), 8, "{tools:?}");
    let comparison = call(&assistant, "compare", json!({"experiments": [experiment]})).await.expect("a comparison");
    assert!(!text(&comparison["result"][0]["sentence"]).is_empty(), "{comparison}");
    let faulty = call(&assistant, "compare", json!({})).await.expect_err("a refusal");
    assert!(!faulty.is_empty());
    assistant.cancel().await.expect("an end");
    assert!(program.wait().await.expect("an end").success());
}
