//! What holds on every page, wide and narrow, light and dark.

use std::time::Duration;

use brewbench::auth::Role;
use chromiumoxide::cdp::browser_protocol::accessibility::{AxNode, AxValue, GetFullAxTreeParams};
use serde_json::{Value, json};

use super::{Tab, bring, two_targets};
use crate::harness::{
    Agent, App,
    submit::{plan_with, submit},
    summaries::{good, good_checking},
};

/// What somebody can do something with, and so must be able to name.
const CONTROLS: [&str; 10] = [
    "button",
    "checkbox",
    "combobox",
    "DisclosureTriangle",
    "link",
    "listbox",
    "radio",
    "searchbox",
    "spinbutton",
    "textbox",
];

#[tokio::test]
async fn every_page_fits_a_narrow_window_in_both_schemes_and_names_its_controls() {
    let app = App::with(|config| config.lease = Duration::from_mins(10)).await;
    let ids = two_targets(&app).await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let plan = plan_with(&json!({"targets": ["fast", "slow"], "sizes": ["1/256MiB", "2/4GiB"], "repetitions": 2}));
    let (experiment, runs) = submit(&user, &plan).await;
    let long = [bring(&user, &"x".repeat(80), 1, good_checking(&"y".repeat(300))).await, ids[0].clone()];
    for _ in 0..3 {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let link = app.invite(Role::Viewer).await;
    let stranger = Tab::open(&app).await;
    for path in ["/login", &link] {
        look_at(&stranger, path).await;
    }
    let admin = Tab::of(&app, Role::Admin).await;
    app.named(&"x".repeat(80), Role::Member, i64::MAX).await;
    app.invite(Role::Viewer).await;
    for path in ["/account", "/tokens", "/people", "/people/invites/1/withdraw", "/audit"] {
        look_at(&admin, path).await;
    }
    let member = Tab::of(&app, Role::Member).await;
    for path in [
        "/runs",
        &format!("/runs?before={}", ids[5]),
        &format!("/runs/{}", ids[0]),
        &format!("/runs/{}", long[0]),
        &format!("/compare?runs={}", long.join(",")),
        &format!("/runs/{}", runs[0]),
        &format!("/runs/{}", runs[7]),
        &format!("/runs/{}/cancel", runs[7]),
        &format!("/experiments/{experiment}"),
        &format!("/compare?runs={}", ids.join(",")),
        &format!("/compare?runs={}", runs.join(",")),
        "/compare",
        "/runs/new",
        &format!("/runs/new?experiment={experiment}"),
        "/experiments",
        "/agents",
        "/agents/rack",
        "/targets",
        "/targets/fast",
        &format!("/targets/{}", "x".repeat(80)),
        "/sizes",
        "/scenarios",
        "/scenarios/site-mix",
        "/settings",
        "/",
    ] {
        look_at(&member, path).await;
    }
    let admin = Tab::of(&app, Role::Admin).await;
    for path in ["/agents", "/sizes", "/agents/rack/revoke", "/sizes/16%20vCPU%20%2F%2016%20GiB/remove"] {
        look_at(&admin, path).await;
    }
}

async fn look_at(tab: &Tab, path: &str) {
    tab.width(1440).await;
    tab.scheme("light").await;
    tab.go(path).await;
    charts_are(tab, 1440).await;
    let light: Vec<String> = tab.eval(COLOURS).await;
    assert_eq!(tab.eval::<String>("document.documentElement.lang").await, "en", "{path}");
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('h1').length").await, 1, "{path}");
    let title: String = tab.eval("document.title").await;
    assert!(title.ends_with(" · brewbench") && title.len() > 12, "{path}: {title}");
    controls_have_names(tab, path).await;

    tab.scheme("dark").await;
    let light = json!(light);
    tab.until(&format!("{COLOURS}.every((colour, n) => colour !== {light}[n])")).await;
    fits(tab, 1440, path).await;
    tab.width(390).await;
    charts_are(tab, 390).await;
    fits(tab, 390, path).await;
    controls_have_names(tab, path).await;
    tab.scheme("light").await;
    fits(tab, 390, path).await;
    tab.is_quiet().await;
}

/// The ground, the ink, and the ink of the charts.
const COLOURS: &str = "[getComputedStyle(document.body).backgroundColor,
    getComputedStyle(document.querySelector('h1')).color,
    ...[...document.querySelectorAll('figure svg .xtick text')].slice(0, 1).map((text) => text.style.fill)]";

/// Every chart of the page is drawn for a window of this width.
async fn charts_are(tab: &Tab, width: i64) {
    tab.until(&format!(
        "innerWidth === {width} && [...document.querySelectorAll('figure[data-chart]')].every((figure) =>
         figure.querySelector('.main-svg')?.clientWidth === figure.clientWidth)"
    ))
    .await;
}

async fn fits(tab: &Tab, width: i64, path: &str) {
    let wide: i64 = tab.eval("document.documentElement.scrollWidth").await;
    let beyond: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth
             && !e.closest('.scroll, pre')).map((e) => e.outerHTML.slice(0, 90)).slice(0, 5)",
        )
        .await;
    assert!(wide <= width && beyond.is_empty(), "{path} is {wide} px wide in a window of {width}: {beyond:#?}");
}

async fn controls_have_names(tab: &Tab, path: &str) {
    let tree = tab.ask(GetFullAxTreeParams::default()).await.nodes;
    let text = |value: &Option<AxValue>| {
        value.as_ref().and_then(|value| value.value.as_ref()).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_control = |node: &&AxNode| !node.ignored && CONTROLS.contains(&text(&node.role).as_str());
    let controls: Vec<_> = tree.iter().filter(is_control).map(|node| (text(&node.role), text(&node.name))).collect();
    assert!(controls.len() >= 2, "{path}: {controls:?}");
    for (role, name) in &controls {
        assert!(!name.trim().is_empty(), "{path}: a {role} without a name");
    }
}
