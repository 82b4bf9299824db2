//! The form of a new run: from adding an agent to the result, and without JavaScript.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_agent::wire::Phase;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::{Tab, wait_for_chart};
use crate::harness::{Agent, App, summaries::good};

#[tokio::test]
async fn a_run_from_the_form_is_executed_by_an_agent_added_on_the_site() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let tab = Tab::signed_in(&app, Role::Admin).await;
    tab.go("/experiments/new").await;
    tab.shows("main", "No agent is connected").await;
    tab.go("/agents").await;
    tab.click("input[name=name]").await;
    tab.type_text("rack").await;
    tab.click("form[action='/agents'] button").await;
    tab.shows("pre.command", "brewbench agent --server").await;
    tab.assert_no_errors().await;
    // The displayed key connects an agent.
    let command: String = tab.eval("document.querySelector('pre.command').innerText").await;
    let key = command.split("--key ").nth(1).expect("a key").trim();
    let mut agent = Agent::disconnected(&app, "another").await;
    agent.name = "rack".to_owned();
    agent.http = app.anonymous().with_secret(&app.own_key(key).await);
    agent.connect(&app).await.expect("accepted");

    tab.go("/experiments/new").await;
    tab.shows("#forecast", "Choose at least one target and one machine size.").await;
    tab.click("input[name=target][value=fast]").await;
    tab.shows("#forecast", "Choose at least one machine size.").await;
    tab.shows("#fields .locked", "rack has 8 cores").await;
    let locked: bool = tab.eval("document.querySelector('input[value=\"16 vCPU / 16 GiB\"]').disabled").await;
    assert!(locked, "no agent can provide it");
    tab.click("input[name=size]").await;
    tab.shows("#forecast", "5 runs, about 1").await;
    tab.click("#repeat").await;
    tab.press("Backspace").await;
    tab.type_text("x").await;
    tab.shows("#fields .fault", "Repetitions: must be a whole number").await;
    tab.press("Backspace").await;
    tab.type_text("1").await;
    tab.shows("#forecast", "1 run, about 14").await;
    tab.click("#forecast summary").await;
    tab.shows("#forecast pre", "--target fast --size '1 vCPU / 256 MiB'").await;
    assert_eq!(tab.eval::<String>("document.querySelector('#repeat').value").await, "1", "input is kept");
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    let job = agent.job().await;
    assert_eq!((job.target.as_str(), job.size.name.as_str()), ("fast", "1 vCPU / 256 MiB"));
    agent.enter(job.run, Phase::Measuring);
    tab.shows("#progress", "measuring").await;
    agent.finish(&job, &good()).await;
    wait_for_chart(&tab, "throughput").await;
    tab.assert_no_errors().await;
    tab.go("/experiments").await;
    tab.shows("#experiments td", "17,070").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_load_is_sketched_while_typing_and_the_command_can_be_copied() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/experiments/new?target=fast&size=1%2F256MiB&repeat=1").await;
    let shows = |field: &str| format!("document.querySelector('#{field}').offsetHeight > 0");
    assert!(tab.eval::<bool>(&shows("vus")).await && !tab.eval::<bool>(&shows("rate-stages")).await);
    tab.shows("figure.shape", "10\u{a0}VUs, 10\u{a0}s").await;
    tab.click("input[name=load][value=rate-stages]").await;
    tab.until(&shows("rate-stages")).await;
    assert!(tab.eval::<bool>(&shows("max-vus")).await && !tab.eval::<bool>(&shows("duration")).await);
    tab.shows("figure.shape", "0 → 2,000 → 0\u{a0}iterations/s in 3 stages").await;
    tab.shows("#forecast", "1 run, about 24").await;
    tab.click("#rate-stages").await;
    tab.press("End").await;
    tab.type_text(",5s").await;
    tab.shows("#fields .fault", "stage 4 (\"5s\"): write it as 10s:50").await;
    tab.type_text(":9").await;
    tab.shows("figure.shape", "in 4 stages").await;
    tab.click("#forecast summary").await;
    tab.shows("#as-command", "--rate-stages 5s:500,10s:2000,5s:0,5s:9").await;
    tab.until("!document.querySelector('[data-copy=\"#as-command\"]').hidden").await;
    tab.click("[data-copy='#as-command']").await;
    tab.shows("body > [role=status]", "Copied").await;
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn without_javascript_the_form_is_checked_corrected_and_submitted() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.execute(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/experiments/new").await;
    tab.click("input[name=target][value=slow]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.until("location.search.includes('target=slow')").await;
    tab.shows("#fields .fault", "name at least one").await;
    tab.click("input[name=size]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.shows("#forecast", "5 runs, about 1").await;
    tab.click("input[name=load][value=vus-stages]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.shows("figure.shape", "0 → 50 → 0").await;
    tab.shows("#forecast", "5 runs, about 1").await;
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    tab.shows("h1", "hash: slow").await;
    tab.shows("main", "0 → 50 → 0").await;
    tab.assert_no_errors().await;
}
