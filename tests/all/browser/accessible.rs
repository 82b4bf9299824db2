//! Every page, wide and narrow, light and dark: it fits, its controls have names, axe-core finds no violations.
//! `make screenshots` takes its screenshots during these tests.

use std::collections::{BTreeMap, btree_map::Entry};

use brewbench::auth::model::Role;
use chromiumoxide::cdp::browser_protocol::accessibility::{AxNode, AxValue, GetFullAxTreeParams};
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{
    Tab,
    axe::Rules,
    page::screenshot_folder,
    world::{Place, World, sign_in},
};
use crate::harness::Actor;

/// Roles of controls, which need an accessible name.
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

/// Windows in which the pages of a site are checked at the same time.
const WINDOWS: usize = 3;

#[tokio::test]
async fn pages_of_an_empty_site_are_accessible_and_fit_a_phone() {
    check_pages(World::empty().await).await;
}

#[tokio::test]
async fn pages_of_a_busy_site_are_accessible_and_fit_a_phone() {
    check_pages(World::full().await).await;
}

#[tokio::test]
async fn pages_of_a_load_from_pods_are_accessible_and_fit_a_phone() {
    check_pages(World::cluster().await).await;
}

#[tokio::test]
async fn pages_with_oversized_names_and_values_are_accessible_and_fit_a_phone() {
    check_pages(World::oversized().await).await;
}

async fn check_pages(world: World) {
    let mut users = BTreeMap::new();
    for role in world.places.iter().filter_map(|place| place.role) {
        if let Entry::Vacant(none) = users.entry(role.as_str()) {
            none.insert(sign_in(&world.app, role).await);
        }
    }
    // A window waits for its page most of the time.
    let window = |first| check_places(&world, &users, world.places.iter().skip(first).step_by(WINDOWS));
    let faults = join_all((0..WINDOWS).map(window)).await.concat();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

async fn check_places(
    world: &World,
    users: &BTreeMap<&str, Actor>,
    places: impl Iterator<Item = &Place>,
) -> Vec<String> {
    let mut tabs: BTreeMap<Option<&str>, Tab> = BTreeMap::new();
    let mut faults = Vec::new();
    for place in places {
        let role = place.role.map(Role::as_str);
        let tab = match tabs.entry(role) {
            Entry::Occupied(tab) => tab.into_mut(),
            Entry::Vacant(none) => none.insert(match role {
                Some(role) => Tab::with_session(&world.app, &users[role]).await,
                None => Tab::open(&world.app).await,
            }),
        };
        faults.extend(check_page(tab, world, place).await);
    }
    faults
}

/// Checks a page in each width and scheme. Returns its faults.
async fn check_page(tab: &Tab, world: &World, place: &Place) -> Vec<String> {
    let mut faults = Vec::new();
    tab.set_width(1440).await;
    tab.set_scheme("light").await;
    tab.go(&place.path).await;
    wait_for_charts(tab, 1440).await;
    let light: Vec<String> = tab.eval(COLOURS).await;
    faults.extend(document_fault(tab).await);
    faults.extend(unnamed_control(tab).await);
    faults.extend(missing_targets(tab).await);
    for (width, scheme) in
        [(1440, "light"), (1440, "dark"), (1280, "light"), (390, "dark"), (390, "light"), (360, "light")]
    {
        // The width does not depend on the scheme: this combination is for screenshots only.
        if (width, scheme) == (390, "dark") && screenshot_folder().is_none() {
            continue;
        }
        tab.set_width(width).await;
        tab.set_scheme(scheme).await;
        wait_for_charts(tab, width).await;
        let as_light = format!("JSON.stringify({COLOURS}) === JSON.stringify({})", json!(light));
        let differ = format!("{COLOURS}.every((colour, n) => colour !== {}[n])", json!(light));
        tab.until(if scheme == "light" { &as_light } else { &differ }).await;
        faults.extend(overflow_fault(tab, width).await);
        // The longest names may take more room.
        if width >= 1280 && world.name != "oversized" {
            faults.extend(table_faults(tab).await);
        }
        if let Some(rules) = axe_rules(world, width, scheme) {
            let found = tab.violations(rules).await;
            faults.extend(found.into_iter().map(|found| format!("{scheme} at {width} px: {found}")));
        }
        // The narrowest window needs no screenshot of its own.
        if width > 360 {
            tab.screenshot(&format!("{}-{}-{width}-{scheme}", world.name, place.name)).await;
        }
    }
    faults.extend(unnamed_control(tab).await);
    faults.extend(tab.errors().into_iter().filter(|error| !is_expected_status(error, place)));
    faults.into_iter().map(|fault| format!("{} {}: {fault}", world.name, place.path)).collect()
}

/// Returns the rules that axe-core checks; it is slow, so only rules whose result may differ.
fn axe_rules(world: &World, width: i64, scheme: &str) -> Option<Rules> {
    match (width, scheme) {
        (1440, "light") => Some(Rules::All),
        (1440, _) => Some(Rules::Colours),
        (390, "light") if world.name == "full" => Some(Rules::All),
        _ => None,
    }
}

/// Whether the browser reports the status of the page itself, such as 404 of a missing page.
fn is_expected_status(error: &str, place: &Place) -> bool {
    error.starts_with("network: Failed to load resource") && error.contains(&place.path)
}

/// Colours of the background, of text, and of text in charts.
const COLOURS: &str = "[getComputedStyle(document.body).backgroundColor,
    getComputedStyle(document.querySelector('h1')).color,
    ...[...document.querySelectorAll('figure svg .xtick text')].slice(0, 1).map((text) => text.style.fill)]";

/// Waits until each chart is drawn for a window of this width.
async fn wait_for_charts(tab: &Tab, width: i64) {
    tab.until(&format!(
        "innerWidth === {width} && [...document.querySelectorAll('figure[data-chart]')].every((figure) =>
         !figure.checkVisibility() || figure.querySelector('.main-svg')?.clientWidth === figure.clientWidth) &&
         [...document.querySelectorAll('.flame-ring')].every((ring) => ring.getBoundingClientRect().right <= innerWidth)"
    ))
    .await;
}

async fn document_fault(tab: &Tab) -> Option<String> {
    let (lang, heads, title): (String, usize, String) =
        tab.eval("[document.documentElement.lang, document.querySelectorAll('h1').length, document.title]").await;
    let is_good = lang == "en" && heads == 1 && title.ends_with(" · brewbench") && title.len() > 12;
    (!is_good).then(|| format!("lang {lang:?}, {heads} h1, title {title:?}"))
}

async fn overflow_fault(tab: &Tab, width: i64) -> Option<String> {
    let wide: i64 = tab.eval("document.documentElement.scrollWidth").await;
    let beyond: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth
             && e.checkVisibility() && !e.closest('.scroll, pre')).map((e) => e.outerHTML.slice(0, 90)).slice(0, 5)",
        )
        .await;
    let fits = wide <= width && beyond.is_empty();
    (!fits).then(|| format!("{wide} px wide in a window of {width}: {beyond:#?}"))
}

/// Returns tables of which a row is taller than a reader expects, or whose columns do not fit a desktop.
async fn table_faults(tab: &Tab) -> Vec<String> {
    tab.eval(
        "[...document.querySelectorAll('main table')].filter((table) => table.checkVisibility()).flatMap((table) => {
           const name = table.caption?.innerText || table.innerText.slice(0, 60);
           const tall = [...table.rows].find((row) => row.offsetHeight > 200);
           const box = table.closest('.scroll');
           return [tall && `a row of ${tall.offsetHeight} px: ${name}`,
             box && box.scrollWidth > box.clientWidth && `cut by ${box.scrollWidth - box.clientWidth} px: ${name}`]
             .filter(Boolean);
         })",
    )
    .await
}

/// Returns links and buttons that point at nothing on the page.
async fn missing_targets(tab: &Tab) -> Option<String> {
    let missing: Vec<String> = tab
        .eval(
            "[...document.querySelectorAll('main a[href^=\"#\"], main [popovertarget]')].filter((e) =>
             !document.getElementById(e.getAttribute('popovertarget') ?? decodeURIComponent(e.hash.slice(1)))).map((e) => e.outerHTML)",
        )
        .await;
    (!missing.is_empty()).then(|| format!("nothing on the page for {missing:#?}"))
}

async fn unnamed_control(tab: &Tab) -> Option<String> {
    let tree = tab.execute(GetFullAxTreeParams::default()).await.nodes;
    let text = |value: &Option<AxValue>| {
        value.as_ref().and_then(|value| value.value.as_ref()).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let is_control = |node: &&AxNode| !node.ignored && CONTROLS.contains(&text(&node.role).as_str());
    let controls: Vec<_> = tree.iter().filter(is_control).map(|node| (text(&node.role), text(&node.name))).collect();
    let without = controls.iter().find(|(_, name)| name.trim().is_empty());
    (without.is_some() || controls.len() < 2).then(|| format!("a control without a name: {without:?} of {controls:?}"))
}
