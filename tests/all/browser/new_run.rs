//! A new run from the form to its result, an agent added on the way, and the form without JavaScript.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_agent::wire::Phase;
use chromiumoxide::cdp::browser_protocol::emulation::SetScriptExecutionDisabledParams;

use super::{Tab, is_drawn};
use crate::harness::{Agent, App, summaries::good};

#[tokio::test]
async fn an_agent_is_added_and_does_a_run_from_the_form_to_its_result() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let tab = Tab::of(&app, Role::Admin).await;
    tab.go("/experiments/new").await;
    tab.says("main", "No agent is connected").await;
    tab.go("/agents").await;
    tab.click("input[name=name]").await;
    tab.write("rack").await;
    tab.click("form[action='/agents'] button").await;
    tab.says("pre.command", "brewbench agent --server").await;
    tab.is_quiet().await;
    // Whoever read the key dials in with it.
    let line: String = tab.eval("document.querySelector('pre.command').innerText").await;
    let key = line.split("--key ").nth(1).expect("a key").trim();
    let mut agent = Agent::away(&app, "another").await;
    agent.name = "rack".to_owned();
    agent.home = app.nobody().with_secret(&app.own_key(key).await);
    agent.dial(&app).await.expect("a welcome");

    tab.go("/experiments/new").await;
    tab.says("#forecast", "Choose at least one target and one machine size.").await;
    tab.click("input[name=target][value=fast]").await;
    tab.says("#forecast", "Choose at least one machine size.").await;
    tab.says("#fields .locked", "rack has 8 cores").await;
    let locked: bool = tab.eval("document.querySelector('input[value=\"16 vCPU / 16 GiB\"]').disabled").await;
    assert!(locked, "nobody can give it");
    tab.click("input[name=size]").await;
    tab.says("#forecast", "5 runs, about 1").await;
    tab.click("#repeat").await;
    tab.press("Backspace").await;
    tab.write("x").await;
    tab.says("#fields .fault", "Repetitions: a whole number").await;
    tab.press("Backspace").await;
    tab.write("1").await;
    tab.says("#forecast", "1 run, about 14").await;
    tab.click("#forecast summary").await;
    tab.says("#forecast pre", "--target fast --size '1 vCPU / 256 MiB'").await;
    assert_eq!(tab.eval::<String>("document.querySelector('#repeat').value").await, "1", "what is typed stays");
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    let job = agent.job().await;
    assert_eq!((job.target.as_str(), job.size.name.as_str()), ("fast", "1 vCPU / 256 MiB"));
    agent.enter(job.run, Phase::Measuring);
    tab.says("#progress", "measuring").await;
    agent.finish(&job, &good()).await;
    is_drawn(&tab, "throughput").await;
    tab.is_quiet().await;
    tab.go("/experiments").await;
    tab.says("#experiments td", "17,070").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn a_load_is_drawn_as_it_is_typed_and_what_is_shown_can_be_copied() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.go("/experiments/new?target=fast&size=1%2F256MiB&repeat=1").await;
    let shows = |field: &str| format!("document.querySelector('#{field}').offsetHeight > 0");
    assert!(tab.eval::<bool>(&shows("vus")).await && !tab.eval::<bool>(&shows("rate-stages")).await);
    tab.says("figure.shape", "10\u{a0}VUs, 10\u{a0}s").await;
    tab.click("input[name=load][value=rate-stages]").await;
    tab.until(&shows("rate-stages")).await;
    assert!(tab.eval::<bool>(&shows("max-vus")).await && !tab.eval::<bool>(&shows("duration")).await);
    tab.says("figure.shape", "0 → 2,000 → 0\u{a0}iterations/s in 3 stages").await;
    tab.says("#forecast", "1 run, about 24").await;
    tab.click("#rate-stages").await;
    tab.press("End").await;
    tab.write(",5s").await;
    tab.says("#fields .fault", "stage 4 is \"5s\": write it as 10s:50").await;
    tab.write(":9").await;
    tab.says("figure.shape", "in 4 stages").await;
    tab.click("#forecast summary").await;
    tab.says("#as-command", "--rate-stages 5s:500,10s:2000,5s:0,5s:9").await;
    tab.until("!document.querySelector('[data-copy=\"#as-command\"]').hidden").await;
    tab.click("[data-copy='#as-command']").await;
    tab.says("body > [role=status]", "Copied").await;
    tab.is_quiet().await;
}

#[tokio::test]
async fn without_javascript_the_form_is_checked_corrected_and_submitted() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let tab = Tab::of(&app, Role::Member).await;
    tab.ask(SetScriptExecutionDisabledParams::new(true)).await;
    tab.go("/experiments/new").await;
    tab.click("input[name=target][value=slow]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.until("location.search.includes('target=slow')").await;
    tab.says("#fields .fault", "name at least one").await;
    tab.click("input[name=size]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.says("#forecast", "5 runs, about 1").await;
    tab.click("input[name=load][value=vus-stages]").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.says("figure.shape", "0 → 50 → 0").await;
    tab.says("#forecast", "5 runs, about 1").await;
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    tab.says("h1", "hash: slow").await;
    tab.says("main", "0 → 50 → 0").await;
    tab.is_quiet().await;
}
