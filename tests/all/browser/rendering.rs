//! Pages load without layout shifts or flashes, and respect reduced motion.

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::emulation::{MediaFeature, SetEmulatedMediaParams};
use reqwest::{Method, header::COOKIE};
use serde_json::json;

use super::{
    Tab, two_targets, wait_for_chart,
    world::{World, sign_in},
};
use crate::harness::{
    Agent, Answer, App,
    submit::{plan_with, submit},
    summaries::good,
};

/// The sum of layout shifts without user input, in hundredths of the window, and the shifted elements.
const SHIFTS: &str = "new Promise((done) => { const shifts = [];
    const note = (list) => shifts.push(...list.getEntries().filter((entry) => !entry.hadRecentInput));
    const observer = new PerformanceObserver(note);
    observer.observe({type: 'layout-shift', buffered: true});
    requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => { note({getEntries: () => observer.takeRecords()});
      done([shifts.reduce((sum, entry) => sum + entry.value, 0) * 100,
        shifts.flatMap((entry) => entry.sources.map(({node}) => (node?.outerHTML ?? node?.textContent ?? '').slice(0, 120)))]); }))); })";

/// The accepted sum of shifts, in hundredths of the window: columns settle while the rows of a table load. Half of the
/// threshold for a good score.
const MAX_SHIFT: f64 = 5.0;

/// Pages with content that is drawn late or updated.
const DYNAMIC: [&str; 8] =
    ["dashboard", "runs", "run", "run-running", "experiment", "experiment-running", "compare-eight", "targets"];

#[tokio::test]
async fn no_page_shifts_while_it_loads() {
    let world = World::full().await;
    let tab = Tab::with_session(&world.app, &sign_in(&world.app, Role::Admin).await).await;
    let mut faults = Vec::new();
    for width in [1440, 390] {
        tab.set_width(width).await;
        for place in world.places.iter().filter(|place| DYNAMIC.contains(&place.name.as_str())) {
            tab.go(&place.path).await;
            tab.until(
                "[...document.querySelectorAll('figure[data-chart]')].every((figure) =>
                 !figure.checkVisibility() || figure.querySelector('.main-svg'))",
            )
            .await;
            let (shifted, what): (f64, Vec<String>) = tab.eval(SHIFTS).await;
            if shifted > MAX_SHIFT {
                faults.push(format!("{} at {width} px: {shifted:.2} % of the window: {what:#?}", place.path));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test]
async fn the_html_of_a_page_has_the_selected_scheme() {
    let app = App::start().await;
    for (chosen, attribute, supported) in [
        ("dark", r#" data-theme="dark""#, "dark"),
        ("light", r#" data-theme="light""#, "light"),
        ("", "", "light dark"),
    ] {
        let request = app.anonymous().in_browser().request(&Method::GET, "/login");
        let page = Answer::to(request.header(COOKIE, format!("brewbench_theme={chosen}"))).await.ok().text();
        assert!(page.contains(&format!("<html lang=\"en\"{attribute}>")), "{page}");
        assert!(page.contains(&format!(r#"<meta name="color-scheme" content="{supported}">"#)), "{page}");
    }
}

#[tokio::test]
async fn the_theme_of_the_site_overrides_the_system_in_pages_and_charts() {
    let world = World::full().await;
    let tab = Tab::with_session(&world.app, &sign_in(&world.app, Role::Admin).await).await;
    let compared = world.places.iter().find(|place| place.name == "compare-eight").expect("a comparison");
    let colours = "[getComputedStyle(document.body).backgroundColor,
        document.querySelector('#latency svg .xtick text')?.style.fill]";
    let mut observed: Vec<Vec<String>> = Vec::new();
    for (chosen, system) in [("dark", "light"), ("system", "dark"), ("light", "dark"), ("system", "light")] {
        tab.set_scheme(system).await;
        tab.go("/settings").await;
        tab.click(&format!("input[value={chosen}]")).await;
        tab.click("form[action='/settings/theme'] button").await;
        tab.until(&format!("(document.documentElement.dataset.theme ?? 'system') === '{chosen}'")).await;
        tab.go(&compared.path).await;
        super::wait_for_chart(&tab, "latency").await;
        observed.push(tab.eval(colours).await);
        let found = tab.violations(super::axe::Rules::Colours).await;
        assert!(found.is_empty(), "{chosen} while the system is {system}: {found:#?}");
    }
    assert_eq!(observed[0], observed[1], "dark by choice and dark by the system");
    assert_eq!(observed[2], observed[3], "light by choice and light by the system");
    assert_ne!(observed[0], observed[2]);
}

#[tokio::test]
async fn reduced_motion_disables_animations() {
    let world = World::full().await;
    let tab = Tab::with_session(&world.app, &sign_in(&world.app, Role::Admin).await).await;
    let less = MediaFeature::new("prefers-reduced-motion", "reduce");
    tab.execute(SetEmulatedMediaParams::builder().features(vec![less]).build()).await;
    for path in ["/", "/runs", "/experiments"] {
        tab.go(path).await;
        let moving: Vec<String> = tab
            .eval(
                "[...document.querySelectorAll('*')].filter((e) => ['', '::before', '::after'].some((part) => {
                 const s = getComputedStyle(e, part); return s.transitionDuration !== '0s' || s.animationName !== 'none'
                 || s.scrollBehavior !== 'auto'; })).map((e) => e.outerHTML.slice(0, 90))",
            )
            .await;
        assert!(moving.is_empty(), "{path}: {moving:#?}");
        assert_eq!(tab.eval::<usize>("document.getAnimations().length").await, 0, "{path}");
    }
}

#[tokio::test]
async fn the_first_result_is_near_the_top_of_a_comparison() {
    let app = App::start().await;
    let ids = two_targets(&app).await;
    let tab = Tab::signed_in(&app, Role::Viewer).await;
    for (width, at_most) in [(1440, 180.0), (390, 240.0)] {
        tab.set_width(width).await;
        tab.go(&format!("/compare?runs={}", ids.join(","))).await;
        let top: f64 = tab.eval("document.querySelector('#results h1').getBoundingClientRect().top").await;
        assert!(top <= at_most, "{width} px wide: {top}");
    }
    tab.assert_no_errors().await;
}

#[tokio::test]
async fn the_page_of_a_run_is_short_and_a_fragment_opens_its_fold() {
    let app = App::start().await;
    let user = app.user().await;
    let mut agent = Agent::start(&app, "rack").await;
    let (_, runs) = submit(&user, &plan_with(&json!({"repetitions": 2}))).await;
    for _ in &runs {
        let job = agent.job().await;
        agent.finish(&job, &good()).await;
    }
    let tab = Tab::signed_in(&app, Role::Member).await;
    for (width, at_most) in [(1440, 180.0), (390, 240.0)] {
        tab.set_width(width).await;
        tab.go(&format!("/runs/{}", runs[0])).await;
        wait_for_chart(&tab, "run-cpu").await;
        let top: f64 = tab.eval("document.querySelector('#results').getBoundingClientRect().top").await;
        assert!(top <= at_most, "{width} px wide: {top}");
    }
    tab.set_width(1440).await;
    tab.until("document.querySelector('#run-cpu .main-svg')?.clientWidth > 500").await;
    // Closed folds are lines, not cards.
    let cards: Vec<String> = tab
        .eval("[...document.querySelectorAll('main .card:not(details)')].filter((card) => card.checkVisibility()).map((card) => card.innerText)")
        .await;
    assert!(cards.len() <= 8, "{cards:#?}");
    assert_eq!(tab.eval::<usize>("document.querySelectorAll('.js-plotly-plot').length").await, 4);
    let height: f64 = tab.eval("document.documentElement.scrollHeight").await;
    assert!(height <= 2_200.0, "{height} px");
    tab.eval::<String>("location.hash = 'stages'").await;
    tab.until("document.querySelector('#stages').open && !document.querySelector('#machine').open").await;
    tab.go("/runs").await;
    tab.go(&format!("/runs/{}#machine", runs[0])).await;
    tab.until("document.querySelector('#machine').open && !document.querySelector('#stages').open").await;
    tab.assert_no_errors().await;
}
