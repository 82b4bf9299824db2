//! The form of a new run: from adding an agent to the result, and without JavaScript.

use std::time::Duration;

use brewbench::auth::model::Role;
use brewbench_wire::{Phase, messages::TargetOffer};
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
    tab.shows("#forecast", "5 runs").await;
    tab.shows("#forecast", "about 1").await;
    tab.click("#repeat").await;
    tab.press("Backspace").await;
    tab.type_text("x").await;
    tab.shows("#fields .fault", "Repetitions: must be a whole number").await;
    tab.press("Backspace").await;
    tab.type_text("1").await;
    tab.shows("#forecast", "1 run").await;
    tab.shows("#forecast", "about 14").await;
    tab.click("#forecast summary").await;
    tab.shows("#forecast pre", "--target fast --size '1 vCPU / 256 MiB'").await;
    assert_eq!(tab.eval::<String>("document.querySelector('#repeat').value").await, "1", "input is kept");
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    let job = agent.job().await;
    assert_eq!(
        (job.spec.target.as_str(), job.spec.size.as_ref().expect("a size").name.as_str()),
        ("fast", "1 vCPU / 256 MiB")
    );
    agent.enter(job.run, Phase::Measuring);
    tab.shows("#progress", "measuring").await;
    agent.finish(&job, &good()).await;
    wait_for_chart(&tab, "throughput").await;
    tab.assert_no_errors().await;
    tab.go("/experiments").await;
    tab.shows("#experiments td", "17,070").await;
    tab.assert_no_errors().await;
}

/// Chooses an option with the keyboard, by the start of its text.
async fn choose(tab: &Tab, select: &str, option: &str) {
    tab.eval::<()>(&format!("void document.querySelector('{select}').focus()")).await;
    tab.type_text(option).await;
    tab.until(&format!("document.querySelector('{select}').selectedOptions[0].text === '{option}'")).await;
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
    choose(&tab, "#load", "Rate in stages").await;
    tab.until(&shows("rate-stages")).await;
    assert!(tab.eval::<bool>(&shows("max-vus")).await && !tab.eval::<bool>(&shows("duration")).await);
    tab.shows("figure.shape", "0 → 2,000 → 0\u{a0}iterations/s in 3 stages").await;
    tab.shows("#forecast", "about 24").await;
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
    tab.shows("#forecast", "5 runs").await;
    tab.shows("#forecast", "about 1").await;
    choose(&tab, "#load", "Virtual users in stages").await;
    tab.click("#forecast button[formmethod=get]").await;
    tab.shows("figure.shape", "0 → 50 → 0").await;
    tab.shows("#forecast", "5 runs").await;
    tab.shows("#forecast", "about 1").await;
    tab.click("#forecast .go").await;
    tab.until("location.pathname.startsWith('/experiments/')").await;
    tab.shows(".crumbs", "hash: slow").await;
    tab.shows("main", "0 → 50 → 0").await;
    tab.assert_no_errors().await;
}

/// Scrolls to a share of the page and returns whether the summary is completely inside the window.
async fn summary_is_visible_at(tab: &Tab, share: f64) -> bool {
    let scroll = format!("void scrollTo(0, {share} * (document.documentElement.scrollHeight - innerHeight))");
    tab.eval::<()>(&scroll).await;
    tab.eval(
        "(() => { const { top, bottom } = document.getElementById('forecast').getBoundingClientRect();
        return top >= 0 && bottom <= innerHeight; })()",
    )
    .await
}

/// The text of the first card or list whose content does not fit.
const CLIPPED: &str = "[...document.querySelectorAll('.what .card, .what .choices')].find((part) =>
    part.scrollHeight > part.clientHeight + 1)?.innerText ?? ''";

#[tokio::test]
async fn the_form_fits_one_screen_and_its_summary_stays_visible() {
    let app = App::start().await;
    let _agent = Agent::start_with(&app, "rack", |hello| {
        let [first, ..] = hello.targets.as_slice() else { panic!("a target") };
        let names = ["gateway", "gosherve", "go-nethttp", "servy"].map(str::to_owned);
        let description = "hyper 1 on tokio, multi-threaded".to_owned();
        hello.targets =
            names.map(|name| TargetOffer { name, description: description.clone(), ..first.clone() }).to_vec();
    })
    .await;
    let tab = Tab::signed_in(&app, Role::Admin).await;
    let ways = [
        "",
        "?target=servy&target=gosherve&size=1%2F256MiB&scenario=site-mix",
        "?target=servy&target=gosherve&size=1%2F256MiB&preset=decide",
        "?target=servy&size=1%2F256MiB&load=knee",
    ];
    for (place, query) in ways.into_iter().enumerate() {
        tab.set_width(1440).await;
        tab.go(&format!("/experiments/new{query}")).await;
        let [high, window]: [i64; 2] = tab.eval("[document.documentElement.scrollHeight, innerHeight]").await;
        assert!(high <= window && window == 900, "{query}: {high} px in a window of {window}");
        assert_eq!(tab.eval::<String>(CLIPPED).await, "", "{query}");
        let ends: Vec<f64> =
            tab.eval("[...document.querySelectorAll('.what > *')].map((e) => e.getBoundingClientRect().bottom)").await;
        assert!(ends.iter().all(|end| (end - ends[0]).abs() < 1.0), "columns end at the same height: {ends:?}");
        // A screenshot of the complete page resets the size of the window.
        tab.screenshot(&format!("new-run-one-screen-{place}")).await;
        tab.set_width(390).await;
        for share in [0.0, 0.3, 0.7, 1.0] {
            assert!(summary_is_visible_at(&tab, share).await, "{query} at {share} of the page");
        }
        tab.screenshot(&format!("new-run-phone-{place}")).await;
    }
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn a_preset_fills_in_load_and_repetitions() {
    let app = App::start().await;
    let _agent = Agent::start(&app, "rack").await;
    let tab = Tab::signed_in(&app, Role::Member).await;
    tab.go("/experiments/new").await;
    tab.click("#presets [value=decide]").await;
    tab.until("location.search.includes('preset=decide')").await;
    tab.shows("#presets [aria-pressed=true]", "Decide").await;
    tab.click("input[name=target][value=fast]").await;
    tab.click("input[name=target][value=slow]").await;
    tab.click("input[name=size]").await;
    tab.shows("#forecast", "8 to 40 runs").await;
    tab.assert_no_errors().await;
}
