//! What holds on every page, wide and narrow, light and dark: it fits, its controls have names, axe-core finds nothing.
//! `make screenshots` takes its pictures on this walk.

use std::collections::{BTreeMap, btree_map::Entry};

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::accessibility::{AxNode, AxValue, GetFullAxTreeParams};
use serde_json::{Value, json};

use super::{
    Tab,
    axe::Rules,
    page::pictures,
    world::{Place, World, somebody},
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
async fn every_page_of_an_empty_site_is_accessible_in_both_schemes_and_fits_a_phone() {
    walk(World::empty().await).await;
}

#[tokio::test]
async fn every_page_with_a_teams_work_is_accessible_in_both_schemes_and_fits_a_phone() {
    walk(World::full().await).await;
}

#[tokio::test]
async fn every_page_with_names_and_figures_that_fit_nowhere_is_accessible_in_both_schemes_and_fits_a_phone() {
    walk(World::ugly().await).await;
}

async fn walk(world: World) {
    let mut tabs: BTreeMap<Option<&str>, Tab> = BTreeMap::new();
    let mut faults = Vec::new();
    for place in &world.places {
        let who = place.who.map(Role::as_str);
        let tab = match tabs.entry(who) {
            Entry::Occupied(tab) => tab.into_mut(),
            Entry::Vacant(none) => none.insert(seen_by(&world, place.who).await),
        };
        faults.extend(look_at(tab, &world, place).await);
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

async fn seen_by(world: &World, who: Option<Role>) -> Tab {
    match who {
        Some(role) => Tab::with(&world.app, &somebody(&world.app, role).await).await,
        None => Tab::open(&world.app).await,
    }
}

/// Looks at a page in every way; gives what is wrong with it.
async fn look_at(tab: &Tab, world: &World, place: &Place) -> Vec<String> {
    let mut faults = Vec::new();
    tab.width(1440).await;
    tab.scheme("light").await;
    tab.go(&place.path).await;
    charts_are(tab, 1440).await;
    let light: Vec<String> = tab.eval(COLOURS).await;
    faults.extend(outline(tab).await);
    faults.extend(nameless(tab).await);
    for (width, scheme) in [(1440, "light"), (1440, "dark"), (390, "dark"), (390, "light"), (360, "light")] {
        // What fits in one scheme fits in the other: this is for those who want to see it.
        if (width, scheme) == (390, "dark") && pictures().is_none() {
            continue;
        }
        tab.width(width).await;
        tab.scheme(scheme).await;
        charts_are(tab, width).await;
        let as_light = format!("JSON.stringify({COLOURS}) === JSON.stringify({})", json!(light));
        let differ = format!("{COLOURS}.every((colour, n) => colour !== {}[n])", json!(light));
        tab.until(if scheme == "light" { &as_light } else { &differ }).await;
        faults.extend(overflow(tab, width).await);
        if let Some(rules) = asked(world, width, scheme) {
            let found = tab.violations(rules).await;
            faults.extend(found.into_iter().map(|found| format!("{scheme} at {width} px: {found}")));
        }
        // The narrowest is as the one before, only narrower.
        if width > 360 {
            tab.picture(&format!("{}-{}-{width}-{scheme}", world.name, place.name)).await;
        }
    }
    faults.extend(nameless(tab).await);
    faults.extend(tab.complaints().into_iter().filter(|complaint| !is_the_pages_own_status(complaint, place)));
    faults.into_iter().map(|fault| format!("{} {}: {fault}", world.name, place.path)).collect()
}

/// What axe-core is asked. It takes its time, so not what it would answer as before.
fn asked(world: &World, width: i64, scheme: &str) -> Option<Rules> {
    match (width, scheme) {
        (1440, "light") => Some(Rules::All),
        (1440, _) => Some(Rules::Colours),
        (390, "light") if world.name == "full" => Some(Rules::All),
        _ => None,
    }
}

/// The browser tells that a page was not found or not allowed, which is what was asked for.
fn is_the_pages_own_status(complaint: &str, place: &Place) -> bool {
    complaint.starts_with("network: Failed to load resource") && complaint.contains(&place.path)
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

async fn outline(tab: &Tab) -> Option<String> {
    let (lang, heads, title): (String, usize, String) =
        tab.eval("[document.documentElement.lang, document.querySelectorAll('h1').length, document.title]").await;
    let is_good = lang == "en" && heads == 1 && title.ends_with(" · brewbench") && title.len() > 12;
    (!is_good).then(|| format!("lang {lang:?}, {heads} h1, title {title:?}"))
}

async fn overflow(tab: &Tab, width: i64) -> Option<String> {
    let wide: i64 = tab.eval("document.documentElement.scrollWidth").await;
    let beyond: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth
             && !e.closest('.scroll, pre')).map((e) => e.outerHTML.slice(0, 90)).slice(0, 5)",
        )
        .await;
    let fits = wide <= width && beyond.is_empty();
    (!fits).then(|| format!("it is {wide} px wide in a window of {width}: {beyond:#?}"))
}

async fn nameless(tab: &Tab) -> Option<String> {
    let tree = tab.ask(GetFullAxTreeParams::default()).await.nodes;
    let text = |value: &Option<AxValue>| {
        value.as_ref().and_then(|value| value.value.as_ref()).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_control = |node: &&AxNode| !node.ignored && CONTROLS.contains(&text(&node.role).as_str());
    let controls: Vec<_> = tree.iter().filter(is_control).map(|node| (text(&node.role), text(&node.name))).collect();
    let without = controls.iter().find(|(_, name)| name.trim().is_empty());
    (without.is_some() || controls.len() < 2).then(|| format!("a control without a name: {without:?} of {controls:?}"))
}
