//! The commands, as users and scripts call them.

use std::{fs, os::unix::fs::PermissionsExt, time::Duration};

use brewbench::auth::model::Role;
use brewbench_cli::Cli;
use brewbench_wire::now_ms;
use clap::CommandFactory;
use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::{
    Agent, App,
    program::{Output, Running, as_user, brewbench},
    submit::{plan, submit, text},
    summaries::{good, path, target_down},
};

async fn run(arguments: &[&str]) -> Output {
    Output::of(brewbench(arguments)).await
}

fn file(name: &str) -> String {
    path(name).display().to_string()
}

#[tokio::test]
async fn login_stores_address_and_token_for_the_owner_only() {
    let app = App::start().await;
    let config = tempfile::tempdir().expect("a folder");
    let in_config = |arguments: &[&str]| {
        let mut command = brewbench(arguments);
        command.env("XDG_CONFIG_HOME", config.path());
        command
    };
    let secret = app.reader().await.secret().to_owned();
    let url = app.url.to_string();
    Output::of(in_config(&["login", &url, "--token", &secret])).await.ok();
    let stored = config.path().join("brewbench/login.json");
    let mode = stored.metadata().expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let list = Output::of(in_config(&["run", "list", "--json"])).await.json();
    assert_eq!(list, json!({"runs": [], "next": null}));

    // The environment takes precedence, and a stored token is not sent to another server.
    let mut command = in_config(&["run", "list"]);
    command.env("BREWBENCH_TOKEN", "bbt_wrong");
    let wrong = Output::of(command).await.refused(1);
    assert!(wrong.contains("log in, or send a token"), "{wrong}");
    let other = App::start().await;
    let mut command = in_config(&["run", "list"]);
    command.env("BREWBENCH_URL", other.url.as_str());
    Output::of(command).await.refused(1);
    let mut command = in_config(&["run", "list", "--json"]);
    command.env("BREWBENCH_URL", other.url.as_str()).env("BREWBENCH_TOKEN", other.reader().await.secret());
    Output::of(command).await.ok();
}

#[tokio::test]
async fn a_login_with_a_wrong_token_stores_nothing() {
    let app = App::start().await;
    let config = tempfile::tempdir().expect("a folder");
    let mut command = brewbench(&["login", app.url.as_str(), "--token", "bbt_wrong"]);
    command.env("XDG_CONFIG_HOME", config.path());
    let error = Output::of(command).await.refused(1);
    assert!(error.starts_with("brewbench: log in, or send a token"), "{error}");
    assert!(!config.path().join("brewbench").exists());
}

#[tokio::test]
async fn a_command_without_a_login_explains_how_to_log_in() {
    let error = run(&["run", "list"]).await.refused(1);
    assert!(error.contains("brewbench login URL"), "{error}");
    let unreachable = run(&["run", "list", "--url", "http://127.0.0.1:9", "--token", "x"]).await.refused(1);
    assert!(unreachable.contains("http://127.0.0.1:9/ can't be reached"), "{unreachable}");
}

#[tokio::test]
async fn the_owner_of_the_data_folder_needs_no_login() {
    let app = App::start().await;
    let data = app.data().display().to_string();
    let secret = run(&["token", "new", "ci", "--scope", "admin", "--data", &data]).await.ok();
    let admin = app.anonymous().with_secret(secret.trim());
    let key = run(&["agent-key", "new", "rack-1", "--data", &data, "--json"]).await.json();
    assert_eq!(key["name"], "rack-1");
    let invite = run(&["invite", "--role", "admin", "--data", &data]).await.ok();
    let link = invite.trim().replacen(app.state.public_url.as_str(), app.url.as_str(), 1);
    app.anonymous().in_browser().get(&link).await.ok();
    let agents = admin.get("/api/v1/agents").await.ok().json();
    assert_eq!(agents["agents"][0]["name"], "rack-1");
    let again = run(&["token", "new", "ci", "--data", &data]).await.refused(1);
    assert_eq!(again, "brewbench: a token \"ci\" already exists; choose another name\n");
}

#[tokio::test]
async fn the_first_invited_user_is_an_administrator_and_later_ones_are_members() {
    let app = App::start().await;
    let data = app.data().display().to_string();
    let role = async |arguments: &[&str]| {
        run(&[&["invite", "--data", &data, "--json"], arguments].concat()).await.json()["role"].clone()
    };
    assert_eq!([role(&[]).await, role(&["--role", "viewer"]).await], ["admin", "admin"], "nobody could invite others");
    app.signed_in_as("Ada", Role::Admin, now_ms() + 86_400_000).await;
    assert_eq!([role(&[]).await, role(&["--role", "viewer"]).await], ["member", "viewer"]);
}

#[tokio::test]
async fn an_invitation_needs_a_server_that_has_run() {
    let empty = tempfile::tempdir().expect("a folder");
    let data = empty.path().display().to_string();
    let error = run(&["invite", "--data", &data]).await.refused(1);
    assert!(error.contains("no server has run on this data folder yet"), "{error}");
}

#[tokio::test]
async fn tokens_and_keys_are_created_listed_and_revoked() {
    let app = App::start().await;
    let admin = app.admin().await;
    let token = admin.secret();
    let created = as_user(&app, token, &["token", "new", "ci", "--scope", "read", "--json"]).await.json();
    let secret = text(&created["secret"]);
    as_user(&app, token, &["token", "new", "forever", "--never"]).await.ok();
    let list = as_user(&app, token, &["token", "list"]).await.ok();
    for row in ["ci read – never 89 days good", "forever read – never – good"] {
        assert!(list.lines().any(|line| line.split_whitespace().eq(row.split(' '))), "{list}");
    }
    assert!(!list.contains(&secret));
    as_user(&app, &secret, &["size", "list"]).await.ok();
    as_user(&app, token, &["token", "revoke", "ci"]).await.ok();
    as_user(&app, &secret, &["size", "list"]).await.refused(1);
    as_user(&app, token, &["agent-key", "new", "rack/1"]).await.ok();
    as_user(&app, token, &["agent-key", "revoke", "rack/1"]).await.ok();
    let list = as_user(&app, token, &["agent-key", "list"]).await.ok();
    assert!(list.contains("rack/1") && list.contains("revoked"), "{list}");
}

#[tokio::test]
async fn summaries_are_imported_listed_shown_compared_exported_and_deleted() {
    let app = App::start().await;
    let user = app.user().await;
    let token = user.secret();
    let (good_file, other) = (file("handle-summary-v1.8.1"), file("handle-summary-v0.52.0"));
    let arguments =
        ["run", "import", &good_file, &other, "--target", "servy", "--size", "2/4GiB", "--scenario", "hash", "--json"];
    let imported = as_user(&app, token, &arguments).await.json();
    let runs = imported["runs"].as_array().expect("runs").clone();
    let repetitions: Vec<_> = runs.iter().map(|run| run["repetition"].as_u64()).collect();
    assert_eq!(repetitions, [Some(1), Some(2)]);
    assert_eq!((&runs[0]["requests"], &runs[0]["size"]["name"]), (&json!(51_230), &json!("2 vCPU / 4 GiB")));
    let down =
        as_user(&app, token, &["run", "import", &file("summary-export-target-down-v1.8.1"), "--json"]).await.json();
    assert_eq!(down["runs"][0]["target"], "summary-export-target-down-v1.8.1");

    let list = as_user(&app, token, &["run", "list", "--json"]).await.json();
    assert_eq!(list, user.get("/api/v1/runs").await.ok().json());
    let id = text(&runs[0]["id"]);
    let end = id.rsplit('-').next().expect("an end");
    assert_eq!(as_user(&app, token, &["run", "show", end, "--json"]).await.json(), json!({"runs": [runs[0]]}));
    let table = as_user(&app, token, &["run", "list"]).await.ok();
    assert!(
        table.contains(end) && table.contains("invalid") && table.lines().all(|line| line.chars().count() <= 100),
        "{table}"
    );
    let shown = as_user(&app, token, &["run", "show", end]).await.ok();
    assert!(shown.contains("51,230") && shown.contains("valid"), "{shown}");
    assert_eq!(as_user(&app, token, &["run", "export", end]).await.ok(), good());
    let exported = as_user(&app, token, &["run", "export", &text(&down["runs"][0]["id"])]).await.ok();
    assert_eq!(exported, target_down());

    let compared = as_user(&app, token, &["compare", end, &text(&runs[1]["id"]), "--json"]).await.json();
    assert_eq!(compared["subjects"][0]["target"], "servy");
    let compared = as_user(&app, token, &["compare", end, &text(&runs[1]["id"])]).await.ok();
    assert!(compared.contains("servy") && compared.contains("req/s"), "{compared}");

    as_user(&app, token, &["run", "delete", end]).await.refused(1);
    as_user(&app, token, &["run", "delete", "--yes", end]).await.ok();
    let gone = as_user(&app, token, &["run", "show", &id]).await.refused(1);
    assert_eq!(gone, format!("brewbench: there is no run \"{id}\"\n"));
}

#[tokio::test]
async fn an_invalid_file_is_named_with_its_error() {
    let app = App::start().await;
    let user = app.user().await;
    let bad = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(bad.path(), "{\"metrics\": 1}").expect("written");
    let name = bad.path().display().to_string();
    let error = as_user(&app, user.secret(), &["run", "import", &name]).await.refused(1);
    assert!(error.contains(&format!("{name} was not imported")) && error.contains("metrics"), "{error}");
    let error = as_user(&app, user.secret(), &["run", "import", "/nonexistent.json"]).await.refused(1);
    assert!(error.contains("cannot read /nonexistent.json"), "{error}");
    assert_eq!(user.count_runs().await, 0);
}

#[tokio::test]
async fn sizes_and_scenarios_are_listed_and_added() {
    let app = App::start().await;
    let admin = app.admin().await;
    let token = admin.secret();
    let list = as_user(&app, token, &["size", "list"]).await.ok();
    assert!(list.contains("1 vCPU / 256 MiB") && list.contains("16/16GiB"), "{list}");
    let half = as_user(&app, token, &["size", "add", "--vcpus", "0.5", "--memory", "128MiB", "--json"]).await.json();
    assert_eq!(half, json!({"name": "0.5 vCPU / 128 MiB", "vcpus": 0.5, "memory_bytes": 128 << 20, "replicas": 1}));
    let add = ["size", "add", "--vcpus", "1", "--memory"];
    as_user(&app, token, &[&add[..], &["lots"]].concat()).await.refused(2);
    let replicas = as_user(&app, token, &[&add[..], &["1GiB", "--replicas", "3"]].concat()).await.ok();
    assert!(replicas.contains("3 x 1 vCPU / 1 GiB") && replicas.contains("3x1/1GiB"), "{replicas}");
    as_user(&app, token, &[&add[..], &["1GiB", "--replicas", "101"]].concat()).await.refused(2);

    let folder = tempfile::tempdir().expect("a folder");
    let (script, list) = (folder.path().join("mine.js"), folder.path().join("urls.json"));
    std::fs::write(&script, "export default function () {}\n").expect("written");
    std::fs::write(&list, "[]").expect("written");
    let (script, list) = (script.display().to_string(), list.display().to_string());
    let added =
        as_user(&app, token, &["scenario", "add", &script, "--file", &list, "--default", "N=1", "--json"]).await.json();
    assert_eq!((&added["name"], &added["revisions"]), (&json!("mine"), &json!(1)));
    let all = as_user(&app, token, &["scenario", "list", "--json"]).await.json();
    assert_eq!(all["scenarios"].as_array().map(Vec::len), Some(5));
    let shown = as_user(&app, token, &["scenario", "show", "mine"]).await.ok();
    assert!(
        shown.contains("parameter N=1") && shown.contains("file urls.json") && shown.contains("export default"),
        "{shown}"
    );
}

#[tokio::test]
async fn run_new_waits_for_the_end_and_exits_with_the_verdict() {
    let app = App::start().await;
    let user = app.user().await;
    let new = [
        "run",
        "new",
        "--target",
        "fast",
        "--size",
        "1/256MiB",
        "--repeat",
        "1",
        "--vus",
        "1",
        "--duration",
        "1s",
        "--wait",
        "--json",
    ];
    let refused = as_user(&app, user.secret(), &new).await.refused(1);
    assert!(refused.starts_with("brewbench: no agent is connected"), "{refused}");

    let mut agent = Agent::start(&app, "rack").await;
    for (summary, code) in [(good(), 0), (target_down(), 3)] {
        let agent_part = async {
            let job = agent.job().await;
            agent.finish(&job, &summary).await;
        };
        let (done, ()) = tokio::join!(as_user(&app, user.secret(), &new), agent_part);
        assert_eq!(done.code, Some(code), "{}", done.err);
        let created: Value = serde_json::from_str(&done.out).expect("JSON");
        assert_eq!(created["progress"]["ended"], 1);
        let experiment = text(&created["experiment"]["id"]);
        let shown = as_user(&app, user.secret(), &["experiment", "show", &experiment]).await.ok();
        assert!(shown.contains("1 of 1 runs ended") && shown.contains("fast"), "{shown}");
    }
    let watched =
        as_user(&app, user.secret(), &["run", "watch", &text(&user.get("/api/v1/runs").await.json()["runs"][0]["id"])])
            .await;
    assert_eq!(watched.code, Some(3), "{}", watched.err);
    let targets = as_user(&app, user.secret(), &["target", "list"]).await.ok();
    assert!(targets.contains("the fast one"), "{targets}");
}

#[tokio::test]
async fn a_queued_run_can_be_cancelled() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let id = crate::harness::submit::submit_one(&user).await;
    agent.job().await;
    let cancelled = as_user(&app, user.secret(), &["run", "cancel", &id, "--json"]).await.json();
    assert_eq!(cancelled["runs"][0]["phase"], "cancelled");
    assert_eq!(agent.cancelled().await.to_string(), id);
    let again = as_user(&app, user.secret(), &["run", "cancel", &id]).await.refused(1);
    assert_eq!(again, "brewbench: the run has already ended: cancelled\n");
}

#[tokio::test]
async fn a_write_with_a_read_token_is_refused_with_the_required_scope() {
    let app = App::start().await;
    let reader = app.reader().await;
    let error = as_user(&app, reader.secret(), &["run", "import", &file("handle-summary-v1.8.1")]).await.refused(1);
    assert!(error.contains("this needs the scope submit; yours is read"), "{error}");
}

#[tokio::test]
async fn help_fits_the_terminal_and_completions_are_printed() {
    let nouns = [
        "serve",
        "agent",
        "demo",
        "invite",
        "login",
        "run",
        "experiment",
        "compare",
        "target",
        "size",
        "scenario",
        "agent-key",
        "token",
        "completions",
    ];
    let verbs = ["new", "list", "show", "watch", "cancel", "delete", "import", "export"].map(|verb| vec!["run", verb]);
    let all = nouns.iter().map(|noun| vec![*noun]).chain(verbs).chain([Vec::new()]);
    for words in all {
        let mut arguments = words.clone();
        arguments.push("--help");
        let help = run(&arguments).await.ok();
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{words:?}: {line}");
        }
    }
    for noun in nouns {
        assert!(run(&["--help"]).await.ok().contains(&format!("\n  {noun} ")), "{noun}");
    }
    assert!(run(&["completions", "bash"]).await.ok().contains("complete -F _brewbench"));
}

#[tokio::test]
async fn an_invalid_command_line_exits_with_2() {
    for arguments in [
        &["run", "fly"][..],
        &["--loud"],
        &["token", "new", "x", "--scope", "root"],
        &["run", "show"],
        &["run", "new", "--target", "a", "--size", "b", "--vus", "3"],
    ] {
        let error = run(arguments).await.refused(2);
        assert!(error.starts_with("error: "), "{error}");
    }
}

#[tokio::test]
async fn commands_list_and_remove_what_the_pages_do() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let (url, admin) = (app.url.to_string(), app.admin().await);
    let run = async |arguments: &[&str]| {
        let mut command = brewbench(arguments);
        command.env("BREWBENCH_URL", &url).env("BREWBENCH_TOKEN", admin.secret());
        Output::of(command).await
    };
    let none = run(&["experiment", "list"]).await.ok();
    assert!(none.contains("`brewbench run new` submits one"), "{none}");
    let (experiment, _) = submit(&admin, &plan()).await;
    let list = run(&["experiment", "list"]).await.ok();
    let short = experiment.rsplit('-').next().expect("an end");
    assert!(list.contains(short) && list.contains("hash: fast") && list.contains("0/1"), "{list}");
    assert!(list.contains("\n  No result yet\n") && list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let list = run(&["experiment", "list", "--limit", "5", "--after", &experiment, "--json"]).await.json();
    assert_eq!(list, json!({"experiments": [], "next": null}));
    for name in [short, "last", &experiment] {
        let shown = run(&["experiment", "show", name, "--json"]).await.json();
        assert_eq!(shown["experiment"]["id"], experiment, "{name}");
        let runs = run(&["run", "list", "--experiment", name, "--json"]).await.json();
        assert_eq!(runs["runs"].as_array().map(Vec::len), Some(1), "{name}");
    }
    let unknown = run(&["experiment", "show", "xyzxyzxyz"]).await.refused(1);
    assert!(unknown.contains("none of the newest experiments has an id that ends with \"xyzxyzxyz\""), "{unknown}");
    let short = run(&["experiment", "show", &experiment[29..]]).await.refused(1);
    assert!(short.contains("is no id: give at least its last 8 characters"), "{short}");
    run(&["size", "remove", "16 vCPU / 16 GiB"]).await.ok();
    let refused = run(&["size", "remove", "1 vCPU / 256 MiB"]).await.refused(1);
    assert!(refused.contains("runs use the size"), "{refused}");
    let revisions = run(&["scenario", "revisions", "hash", "--json"]).await.json();
    let sha256 = text(&revisions["revisions"][0]["sha256"]);
    let shown = run(&["scenario", "show", "hash", "--revision", &sha256]).await.ok();
    assert!(shown.contains("export default function"), "{shown}");
    run(&["scenario", "show", "hash", "--revision", "nothing"]).await.refused(1);
}

#[test]
fn every_flag_of_the_services_has_a_variable() {
    let mut root = Cli::command();
    root.build();
    for service in ["serve", "agent"] {
        let command = root.find_subcommand(service).expect("a service");
        let flags = command.get_arguments().filter(|flag| flag.get_long().is_some() && !flag.is_hide_set());
        for flag in flags.filter(|flag| !["help", "json", "version"].contains(&flag.get_id().as_str())) {
            assert!(flag.get_env().is_some(), "{service} --{}", flag.get_long().unwrap_or_default());
        }
    }
}

#[tokio::test]
async fn services_read_their_settings_from_a_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("brewbench.toml");
    let with_file = |text: &str, arguments: &[&str]| {
        fs::write(&file, text).expect("a file");
        let mut command = brewbench(arguments);
        command.env("BREWBENCH_CONFIG", &file);
        command
    };
    let data = folder.path().join("data");
    let settings =
        format!("[server]\nlisten = \"127.0.0.2:0\"\ndata = {:?}\nlog = \"json\"\n", data.display().to_string());
    let mut server = Running::start(with_file(&settings, &["serve", "--log=text"]));
    assert!(server.wait_for("brewbench listens on ").await.starts_with("127.0.0.2:"), "{}", server.stderr());
    server.signal(Signal::SIGTERM);
    assert!(server.ended(Duration::from_secs(30)).await.success());
    assert!(data.join("brewbench.db").exists());

    let valid = Output::of(with_file(&settings, &["config", "check"])).await.ok();
    assert_eq!(valid, format!("{} is valid\n", file.display()));
    let switch = format!("{settings}local-agent = true\ntls-cert = \"x\"\ntls-key = \"y\"\n");
    for (text, words) in [
        ("[server]\nlistem = \"x\"\n", "[server] has no setting \"listem\"; it has listen, data, "),
        ("[server]\nlisten = \"x\"\n", "[server] invalid value 'x' for '--listen <LISTEN>'"),
        ("[agent]\nnamespace = \"x\"\n", "[agent] the following required arguments were not provided"),
        (&switch, "[server] the argument '--local-agent' cannot be used with '--tls-cert <FILE>'"),
    ] {
        let fault = Output::of(with_file(text, &["config", "check"])).await.refused(1);
        assert!(fault.contains(&file.display().to_string()) && fault.contains(words), "{fault}");
        let service = if text.starts_with("[agent]") { "agent" } else { "serve" };
        let fault = Output::of(with_file(text, &[service])).await.refused(2);
        assert!(fault.contains(&file.display().to_string()), "{fault}");
    }
    let mut missing = brewbench(&["serve"]);
    missing.env("BREWBENCH_CONFIG", folder.path().join("missing"));
    let fault = Output::of(missing).await.refused(2);
    assert!(fault.contains("missing: No such file or directory"), "{fault}");
    let mut variable = brewbench(&["serve"]);
    variable.env("BREWBENCH_LOCAL_AGENT", "perhaps");
    let fault = Output::of(variable).await.refused(2);
    assert!(fault.contains("invalid value 'perhaps' for '--local-agent'"), "{fault}");
}
